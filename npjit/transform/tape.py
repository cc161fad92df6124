"""What a loop's or branch's adjoint needs of the forward pass: made again, or recorded on a tape.

In: a `Body` and those of its inputs that are still there afterwards. Out: a `Tape`. Values that
cheap operations give from what is there are made again; of the others the tape keeps the fewest
elements that suffice. `recording` and `replaying` then print the two bodies.

    s = sin(s)          the adjoint reads cos(s): the tape keeps s, one element a trip
    u = u + a * (l @ u) the adjoint reads l and a, which are there: nothing is kept
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from npjit.core.graph import Block, Graph, Node, TensorType, Weight, may_stop, reachable
from npjit.core.op import Bind, Kind
from npjit.core.size import Size, Var
from npjit.core.view import Along, At, View
from npjit.ops import build, kinds
from npjit.ops.control import BIND
from npjit.transform.adjoints import zeros
from npjit.transform.nested import Body, gradient_type
from npjit.transform.respell import Spell, respelled, respelled_type

# always made again
_FREE = frozenset([Kind.CONST, Kind.SIZE, Kind.IOTA, Kind.BIND, Kind.CELL])
# made again where the arguments are there
_CHEAP = _FREE | {Kind.VIEW, Kind.RESHAPE, Kind.PAD, Kind.ELEMENTWISE, Kind.GATHER}


@dataclass
class Tape:
    """`live` are the adjoint's own nodes, `made` those made again, `kept` those recorded."""

    body: Body
    there: set[Node]
    live: set[Node] = field(default_factory=set)
    made: set[Node] = field(default_factory=set)
    kept: dict[Node, None] = field(default_factory=dict)

    @staticmethod
    def of(body: Body, there: set[Node]) -> Tape:
        """The tape of a body, some of whose inputs are still there when the adjoint runs."""
        tape = Tape(body, there)
        after = _after(body)
        ends = [*body.ends.values(), *(n for n in body.values.values() if n is not None)]
        roots = [*ends, *(n for n in body.nodes if n in after and may_stop(n))]
        tape.live = (reachable(roots) & after).difference(body.gradients)
        read = {a for n in tape.live for a in n.args} | set(ends)
        for n in primal(body, after):
            if n in read:
                tape._need(n)
        return tape

    def _need(self, n: Node) -> None:
        """See that the adjoint can have a value."""
        if n.op.kind in _FREE:
            for a in n.args:
                self._need(a)
            self.made.add(n)
            return
        missing = self._missing(n)
        rank = len(n.shape)
        fewer = len(missing) == 1 and len(missing[0].shape) <= rank
        if fewer or all(len(m.shape) < rank for m in missing):
            self.kept |= dict.fromkeys(missing)
        else:
            self.kept[n] = None
        self._make(n)

    def _missing(self, n: Node) -> list[Node]:
        """The values that have to be kept for making this one again; they may be this one."""
        found: dict[Node, None] = {}
        seen: set[Node] = set()
        stack = [n]
        while stack:
            m = stack.pop()
            if m in seen or m in self.there or m in self.kept:
                continue
            seen.add(m)
            if m.op.kind not in _CHEAP or (_is_part(m) and any(map(self._missing, m.args))):
                found[m] = None
            else:
                stack += m.args
        return list(found)

    def _make(self, n: Node) -> None:
        stack = [n]
        while stack:
            m = stack.pop()
            if m not in self.there and m not in self.kept and m not in self.made:
                self.made.add(m)
                stack += m.args

    @property
    def inputs_read(self) -> set[Node]:
        """Which of the body's inputs the adjoint reads."""
        users = self.live | self.made
        ends = [*self.body.ends.values(), *self.body.values.values()]
        read = {a for n in users for a in n.args} | {n for n in ends if n is not None}
        return read & self.there


def _is_part(n: Node) -> bool:
    """Whether a node picks elements of a larger array."""
    if n.op.kind is Kind.VIEW:
        return len(n.params.axes_used()) == len(n.shape)
    return n.op.kind is Kind.GATHER


def _after(body: Body) -> set[Node]:
    """Nodes that depend on gradients."""
    found = set(body.gradients)
    for n in body.nodes[body.forward :]:
        if any(a in found for a in n.args):
            found.add(n)
    return found


def primal(body: Body, after: set[Node]) -> list[Node]:
    """Nodes that do not depend on gradients; what the adjoint has added stands as early as it can,
    before arrays that it reads are written again.
    """
    place = {n: (i, 0) for i, n in enumerate(body.nodes[: body.forward])}
    for i, n in enumerate(body.nodes[body.forward :], 1):
        if n not in after:
            place[n] = (max((place[a][0] for a in n.args), default=-1), i)
    return sorted(place, key=lambda n: place[n])


# ---------------------------------------------------------------- the two bodies


@dataclass(frozen=True)
class Entries:
    """How values are kept from trip to trip: `count` entries, now at `index`.

    `counted`: the trips done are counted, in a further array behind the tapes. `number` is then the
    size variable for that count, where no loop index counts them.
    """

    count: Size
    index: Size
    counted: bool = False
    number: Var | None = None

    def type(self, block: Block, n: Node) -> TensorType:
        """The type of the array that holds a node's values, of the greatest extents they have."""
        greatest = tuple(block.sizes.greatest(s) for s in n.shape)
        return TensorType((self.count, *greatest), n.dtype)

    def view(self, n: Node, array: TensorType, spell: Spell) -> View:
        """Where in the array the value is."""
        along = tuple(Along(0, 1, axis) for axis in range(len(n.shape)))
        at = At(respelled(self.index, spell))
        return View(array.shape, (at, *along), respelled(n.shape, spell))


def recording(
    block: Block, tape: Tape, entries: Entries, arrays: Sequence[TensorType], first: int
) -> Graph:
    """The body that also keeps its values: in `arrays`, further inputs, from number `first` on."""
    body = tape.body
    position = len(body.inputs)
    with block.apart():
        new = {n: block.add(kinds.INPUT, (), p, n.type) for p, n in enumerate(body.inputs)}
        inputs = list(new.values())
        inputs += [
            block.add(kinds.INPUT, (), position + t, type_) for t, type_ in enumerate(arrays)
        ]
        number = {n: position + first + t for t, n in enumerate(tape.kept)}
        writes: list[tuple[int, Node]] = []
        if entries.counted:
            writes.append((len(inputs) - 1, _count(block, inputs[-1], entries)))
        for n in primal(body, _after(body)):
            block.where = n.where
            if n not in new:
                new[n] = block.add(n.op, [new[a] for a in n.args], n.params, n.type)
            if n in number:
                target = inputs[number[n]]
                v = entries.view(n, target.type, _same)
                stored = block.add(kinds.UPDATE, (target, new[n]), v, target.type)
                writes.append((number[n], stored))
        writes = [*((p, new[n]) for p, n in body.finals.items()), *sorted(writes, key=_first)]
        graph = Graph.of(block, inputs, [new[n] for n in body.outputs], writes)
    return replace(graph, guards=())


COUNT = TensorType((1,), build.INT64)
_FIRST = View((1,), (At(0),), ())


def counted(block: Block, array: Node) -> Node:
    """The number in an array of type COUNT."""
    return block.add(kinds.VIEW, (array,), _FIRST, TensorType((), build.INT64, Weight.SCALAR))


def _count(block: Block, array: Node, entries: Entries) -> Node:
    """One trip more; a check that there is room for it."""
    number = counted(block, array)
    if entries.number is not None:
        end = build.weigh(block, build.size_node(block, entries.count), Weight.SCALAR)
        ok = build.ufunc(block, kinds.UFUNCS[np.less], np.less, [number, end])
        block.add(kinds.CHECK, (ok,), "a loop of more trips than its tape has room for", ok.type)
        known = Bind(entries.number, 0, entries.count - 1)
        block.add(BIND, (number,), known, number.type)
    one = build.constant(block, 1, build.INT64)
    more = build.ufunc(block, kinds.UFUNCS[np.add], np.add, [number, one])
    return block.add(kinds.UPDATE, (array, more), _FIRST, array.type)


def _same(size: Size) -> Size:
    return size


def _first(pair: tuple[int, Node]) -> int:
    return pair[0]


@dataclass(frozen=True)
class Slots:
    """The inputs of an adjoint's body: types, and where each thing comes in."""

    types: tuple[TensorType, ...]
    # a body's gradient inputs and its inputs that are still there
    nodes: Mapping[Node, int]
    # kept values
    arrays: Mapping[Node, int]
    # size variables that the sizes name: BIND nodes around the loop
    binds: Mapping[Node, int]


def replaying(
    block: Block,
    tape: Tape,
    entries: Entries,
    slots: Slots,
    results: Sequence[int],
    buffers: Sequence[int],
    spell: Spell,
) -> Graph:
    """The adjoint's body: its outputs are the gradients of the inputs `results`, and it writes the
    buffers of the inputs `buffers`.
    """
    body = tape.body
    with block.apart():
        inputs = [block.add(kinds.INPUT, (), i, type_) for i, type_ in enumerate(slots.types)]
        for n, i in slots.binds.items():
            block.add(n.op, (inputs[i],), n.params, n.type)
        new = {n: inputs[i] for n, i in slots.nodes.items()}
        for n in body.nodes:
            block.where = n.where
            if n in slots.arrays:
                array = inputs[slots.arrays[n]]
                v = entries.view(n, array.type, spell)
                type_ = respelled_type(n.type, spell)
                new[n] = block.add(kinds.VIEW, (array,), v, type_)
            elif n in tape.live or n in tape.made:
                params, type_ = respelled(n.params, spell), respelled_type(n.type, spell)
                new[n] = block.add(n.op, [new[a] for a in n.args], params, type_)
        outputs = []
        for p in results:
            value, type_ = body.values[p], gradient_type(body.inputs[p].type)
            node = zeros(block, type_.shape, type_.dtype) if value is None else new[value]
            outputs.append(build.weigh(block, node, type_.weight))
        writes = [(slots.nodes[body.buffers[p]], new[body.ends[p]]) for p in buffers]
        graph = Graph.of(block, inputs, outputs, writes)
    return replace(graph, guards=())
