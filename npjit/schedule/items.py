"""The values that one kernel needs, as a DAG of instructions over axis labels.

In: a fused group. Out: `Items`: for every value at every place it is needed one `Item`, an
instruction whose arguments are item numbers and whose axes are labels. Views, reshapes, cells and
updates of the element itself leave no item: they only change where their argument is read. A pad
becomes the bounds of the loads below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from npjit.core.graph import Node, Weight
from npjit.core.op import Kind
from npjit.core.size import Size
from npjit.schedule.group import Group, Labels
from npjit.schedule.index import Index, Limit, address, rename, through_pad
from npjit.schedule.kernel import (
    Access,
    Apply,
    Bound,
    Const,
    Coordinate,
    DType,
    Extent,
    Inside,
    Instr,
    Load,
    Reduce,
    Scalar,
    Store,
)
from npjit.schedule.pull import arguments

# memory of a kernel: the node whose storage it is, and which of its copies (an output may be
# returned twice)
Memory = tuple[Node, int]
Within = tuple[Limit, ...]
Key = tuple[Node, Index, Within]


@dataclass(frozen=True)
class Item:
    """A value. `axes` are the labels it varies over; `stage` counts the reductions that must be
    over before it."""

    instr: Instr
    args: tuple[int, ...]
    axes: frozenset[int]
    stage: int
    # labels a Reduce runs over, in the order of its dimensions
    over: tuple[int, ...] = ()

    @property
    def dtype(self) -> DType:
        """The value's type."""
        assert not isinstance(self.instr, Store)
        return self.instr.dtype


@dataclass
class Items:
    """Builds the items of one group on demand; `memories` and `scalars` are numbered as they are
    met."""

    group: Group
    labels: Labels
    base: dict[Node, Node]
    strides_of: Callable[[Node], Sequence[Size]]
    items: list[Item] = field(default_factory=list)
    memories: dict[Memory, int] = field(default_factory=dict)
    scalars: dict[Node, int] = field(default_factory=dict)
    _known: dict[Key, int] = field(default_factory=dict)
    _unique: dict[Instr, int] = field(default_factory=dict)

    def value(self, n: Node, index: Index) -> int:
        """The item of n at index."""
        first: Key = (n, rename(index, self.labels.find), ())
        stack: list[Key] = [first]
        while stack:
            key = stack[-1]
            if key in self._known:
                stack.pop()
                continue
            needed = self._needs(key)
            missing = [k for k in needed if k not in self._known]
            if missing:
                stack.extend(reversed(missing))
            else:
                self._known[key] = self._build(key, [self._known[k] for k in needed])
                stack.pop()
        return self._known[first]

    def memory(self, n: Node, copy: int = 0) -> int:
        """The number of a node's storage."""
        return self.memories.setdefault((self.base.get(n, n), copy), len(self.memories))

    def access(self, n: Node, index: Index, copy: int = 0) -> Access:
        """Where an element of a stored node lies; strides are given per label."""
        found = address(index, n.shape, self.strides_of(n))
        assert found is not None, f"{n} is stored in an order that {index} cannot read"
        offset, strides = found
        return Access(self.memory(n, copy), tuple(sorted(strides.items())), offset)

    # -- one key

    def _source(self, n: Node) -> Node | None:
        """The stored node that is read in place of n; None when n is computed here."""
        source = self.group.replaced.get(n, n)
        return source if source in self.group.loads else None

    def _over(self, n: Node) -> tuple[int | None, ...]:
        return tuple(
            None if a is None else self.labels.find(a) for a in self.group.reduces[n].inner
        )

    def _needs(self, key: Key) -> list[Key]:
        n, index, within = key
        if self._source(n) is not None:
            return []
        if n.op.kind is Kind.UPDATE:
            root = self.group.roots[n]
            return [(root.value, rename(root.value_index, self.labels.find), within)]
        if n.op.kind is Kind.PAD:
            padded = through_pad(n.params, n.args[0].shape, index)
            assert padded is not None
            both = tuple(sorted({*within, *padded[1]}, key=str))
            return [(n.args[0], padded[0], both)]
        inner = None
        if n.op.kind is Kind.REDUCE:
            inner = self._over(n)
            # one result per outer index: bounds on inner axes are those of its users' loops
            within = tuple(w for w in within if w.label in (self.group.outer or ()))
        found = arguments(n, index, inner)
        assert found is not None, f"{n} cannot be computed at {index}"
        # further arguments are BIND nodes, which have run before
        pairs = list(zip(n.args, found, strict=False))
        if n.op.kind is Kind.GATHER:
            pairs = pairs[1:]
        return [(a, at, within) for a, at in pairs]

    def _build(self, key: Key, args: list[int]) -> int:
        n, index, within = key
        kind = n.op.kind
        source = self._source(n)
        if source is not None:
            return self._load(source, index, within)
        if kind in (Kind.VIEW, Kind.RESHAPE, Kind.CELL, Kind.UPDATE):
            return args[0]
        if kind is Kind.PAD:
            return self._inside(n, index, args[0])
        if kind is Kind.CONST:
            return self._add(Const(n.params, n.dtype))
        if kind is Kind.SIZE:
            return self._add(Extent(n.params, n.dtype))
        if kind is Kind.IOTA:
            return self._iota(n, index)
        if kind is Kind.ELEMENTWISE:
            return self._add(Apply(n.op, tuple(args), n.params, n.dtype), args)
        if kind is Kind.REDUCE:
            return self._reduce(n, args[0])
        assert kind is Kind.GATHER, kind
        return self._gather(n, index, within, args)

    def _add(
        self, instr: Instr, args: Sequence[int] = (), axes: frozenset[int] = frozenset()
    ) -> int:
        found = self._unique.get(instr)
        if found is not None:
            return found
        parts = [self.items[a] for a in args]
        axes = axes.union(*(p.axes for p in parts))
        stage = max((p.stage for p in parts), default=0)
        self.items.append(Item(instr, tuple(args), axes, stage))
        self._unique[instr] = len(self.items) - 1
        return len(self.items) - 1

    def _load(self, source: Node, index: Index, within: Within) -> int:
        if source.op.kind is Kind.INPUT and source.type.weight is not Weight.ARRAY:
            number = self.scalars.setdefault(source, len(self.scalars))
            return self._add(Scalar(number, source.dtype))
        access = self.access(source, index)
        axes = frozenset([a for a, _ in access.strides] + [w.label for w in within])
        return self._add(Load(access, source.dtype, _bounds(within)), (), axes)

    def _inside(self, n: Node, index: Index, arg: int) -> int:
        padded = through_pad(n.params, n.args[0].shape, index)
        assert padded is not None
        limits = _bounds(padded[1])
        instr = self.items[arg].instr
        if isinstance(instr, Load | Inside) and set(limits) <= set(instr.within):
            return arg
        axes = frozenset(b.axis for b in limits)
        return self._add(Inside(arg, limits, n.dtype), [arg], axes) if limits else arg

    def _iota(self, n: Node, index: Index) -> int:
        span = index[0]
        if not span.terms:
            return self._add(Extent(span.start, n.dtype))
        axis, step = span.terms[0]
        return self._add(Coordinate(axis, span.start, step, n.dtype), (), frozenset([axis]))

    def _reduce(self, n: Node, arg: int) -> int:
        over = tuple(a for a in self._over(n) if a is not None)
        body = self.items[arg]
        axes = body.axes.difference(over)
        self.items.append(Item(Reduce(n.op, arg, n.dtype), (arg,), axes, body.stage + 1, over))
        return len(self.items) - 1

    def _gather(self, n: Node, index: Index, within: Within, args: list[int]) -> int:
        base = n.args[0]
        source = self._source(base)
        found = arguments(n, index)
        assert source is not None and found is not None
        still = tuple(s._replace(anywhere=False) for s in found[0])
        access = self.access(source, still)
        steps = self.strides_of(source)
        gathers = tuple((v, steps[d]) for v, d in zip(args, n.params.dims, strict=True))
        access = Access(access.buffer, access.strides, access.offset, gathers)
        axes = frozenset([a for a, _ in access.strides] + [w.label for w in within])
        return self._add(Load(access, n.dtype, _bounds(within)), args, axes)


def _bounds(within: Within) -> tuple[Bound, ...]:
    return tuple(Bound(w.label, w.lo, w.hi) for w in within)
