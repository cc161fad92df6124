"""Whether an axis runs through everything that a loop writes, and where.

In: a LOOP whose carried values are storage, and an extent. Out: a `Through`, which knows each value
and each storage that has the axis, or `Refused`:

    loop k < n (c: c[:, k] = c[:, k - 1] + a[:, k]), 7   ->   dimension 0 of c, axis 0 of values
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, every_node, named_graphs, nested_graphs
from npjit.core.op import CONTROL, Kind, Op
from npjit.core.rebuild import rebuild
from npjit.core.size import Size, Var, atoms, bounds, floordiv, product, smax
from npjit.core.view import Along, At, Entry, View, identity
from npjit.schedule.cells import inputs_of

# cache lines of a strip of all arrays together: a first-level cache
LINES = 512


def slices(n: Any) -> tuple[slice, ...]:
    """What a node's view shows, which has the base's axes in their order."""
    starts = [n.size(e.start) for e in n.params.dims]
    return tuple(slice(k, k + n.size(e)) for k, e in zip(starts, n.params.shape, strict=True))


def _stored(n: Any, a: Any, b: Any) -> Any:
    made = np.array(a)
    made[slices(n)] = b
    return made


_WRITE = Op("write", Kind.UPDATE, _stored)


class Refused(Exception):
    """No axis runs through the loop."""


def explicit(graph: Graph) -> Graph:
    """A body whose last values are all versions of what they are written to."""

    def again(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        inner = {name: explicit(g) for name, g in named_graphs(n.params)}
        return block.add(n.op, args, replace(n.params, **inner), n.type) if inner else None

    made = rebuild(graph, again)
    base = _storage(made, {})
    last = {b: n for n, b in base.items()}
    nodes, writes = list(made.nodes), []
    for p, n in made.writes:
        target = made.inputs[p]
        if base.get(n) is not target:
            old = last[target]
            n = Node(_WRITE, (old, n), identity(target.shape), target.type, n.where)
            nodes.append(n)
        writes.append((p, n))
    return Graph(made.inputs, tuple(nodes), made.outputs, tuple(writes))


def _storage(graph: Graph, outer: Mapping[Node, Node]) -> dict[Node, Node]:
    """The storage of each version in a body, in their order; `outer` has that of its inputs where
    they are versions of the world around."""
    base: dict[Node, Node] = {}
    for n in graph.nodes:
        if n.op.kind in (Kind.CELL, Kind.INPUT):
            base[n] = outer.get(n, n)
        elif n.op.kind in (Kind.UPDATE, Kind.SCATTER):
            base[n] = base[n.args[0]]
        elif n.op.kind is Kind.RESULT and n.args[0].op.kind in CONTROL:
            control = n.args[0]
            base[n] = base[inputs_of(control)[control.params.written[n.params]]]
    return base


@dataclass
class Through:
    """One loop and the axis along which it is cut: `extent` positions."""

    loop: Loop
    extent: Size
    # the axis of each value that has it, and the dimension and first position of each storage
    axis: dict[Node, int] = field(default_factory=dict)
    places: dict[Node, tuple[int, Size]] = field(default_factory=dict)
    # for the input of a branch what it stands for; for each version its storage
    outer: dict[Node, Node] = field(default_factory=dict)
    base: dict[Node, Node] = field(default_factory=dict)
    # arrays that a node reads as they stand, and the axis along which it wants them cut
    direct: dict[tuple[Node, Node], int] = field(default_factory=dict)
    # arrays in which neighbouring trips find their elements in one cache line
    shared: set[Node] = field(default_factory=set)
    # the other extents of the slices
    beside: Size = 1
    written: set[Node] = field(default_factory=set)
    # what moves through the slices: the loop's index, and those of loops in it
    indices: set[Var] = field(default_factory=set)

    # -- which axis

    def find(self) -> None:
        """Follow the axis from the updates through the whole body."""
        self._name_storage(self.loop.body, {})
        loops = [n.params for n in every_node(self.loop.body) if n.op.kind is Kind.LOOP]
        self.indices = {self.loop.index, *(inner.index for inner in loops)}
        if self.indices & atoms(self.extent):
            raise Refused
        updates = [n for n in every_node(self.loop.body) if n.op.kind is Kind.UPDATE]
        self.written = {self.base[u] for u in updates}
        self.written |= {self.loop.body.inputs[p] for p in self.loop.written}
        for u in updates:
            if self.base[u].op.kind is Kind.INPUT and self.base[u] not in self.places:
                self._start(u, updates)
        for storage, (d, _) in list(self.places.items()):
            if storage.args:
                self._want(storage, storage.args[0], d)
        self._check([u for u in updates if self.base[u] not in self.places])

    def _start(self, first: Node, updates: list[Node]) -> None:
        """Find the axis in an update that nothing has led to yet."""
        kept = replace(
            self,
            axis=dict(self.axis),
            places=dict(self.places),
            direct=dict(self.direct),
            shared=set(self.shared),
        )
        for axis, extent in enumerate(first.params.shape):
            if extent != self.extent:
                continue
            try:
                self._settle(self.base[first], first.params, axis)
                self._follow(updates)
            except Refused:
                self.axis, self.places = dict(kept.axis), dict(kept.places)
                self.direct, self.shared = dict(kept.direct), set(kept.shared)
                continue
            self.beside = product(n for k, n in enumerate(first.params.shape) if k != axis)
            return
        raise Refused

    def _follow(self, updates: list[Node]) -> None:
        """What the updates of cut storage need, until nothing new is cut."""
        done: set[Node] = set()
        while known := [u for u in updates if self.base[u] in self.places and u not in done]:
            for u in known:
                axis = self._axis_in(u.params, self.base[u])
                self._share(self.base[u], u.params, axis)
                self._want(u, u.args[1], axis)
            done.update(known)

    def _name_storage(self, graph: Graph, outer: Mapping[Node, Node]) -> None:
        """Fill `base` and `outer`, branches included; a branch's input may stand for a value."""
        for n, storage in _storage(graph, outer).items():
            if n not in self.outer or n in outer:
                self.base[n] = storage
        for n in graph.nodes:
            for g in nested_graphs(n):
                given = dict(zip(g.inputs, inputs_of(n), strict=False))
                self.outer |= given
                known = {i: self.base[a] for i, a in given.items() if a in self.base}
                self._name_storage(g, known)

    def _is_read_only(self, n: Node) -> bool:
        """Whether a node is an array that the loop does not write."""
        return n in self.base and self.base[n] not in self.written

    def _settle(self, storage: Node, v: View, axis: int) -> None:
        """Note where the axis runs in a storage that is seen through a view."""
        found = [(d, e) for d, e in enumerate(v.dims) if isinstance(e, Along) and e.axis == axis]
        if len(found) != 1 or v.shape[axis] != self.extent:
            raise Refused
        ((d, entry),) = found
        if entry.step != 1 or self.indices & atoms(entry.start):
            raise Refused
        if self.places.setdefault(storage, (d, entry.start)) != (d, entry.start):
            raise Refused
        if storage.op.kind is Kind.CELL and (entry.start != 0 or v.base[d] != self.extent):
            raise Refused

    def _axis_in(self, v: View, storage: Node) -> int:
        """The view's axis that runs along the cut dimension of a storage."""
        d, _ = self.places[storage]
        entry = v.dims[d]
        if not isinstance(entry, Along):
            raise Refused
        self._settle(storage, v, entry.axis)
        return entry.axis

    def axis_of_update(self, n: Node) -> int | None:
        """The axis along which an update is cut, if it is."""
        storage = self.base[n]
        return self._axis_in(n.params, storage) if storage in self.places else None

    def _want(self, user: Node, n: Node, axis: int) -> None:
        """A value is needed strip by strip, cut along this axis."""
        stack = [(user, n, axis)]
        while stack:
            user, n, axis = stack.pop()
            if n in self.axis:
                if self.axis[n] != axis:
                    raise Refused
                continue
            if n.shape[axis] != self.extent:
                raise Refused
            if n in self.base:
                self.direct[user, n] = axis
                self._see(n, identity(n.shape), axis)
                continue
            self.axis[n] = axis
            if n.op.kind is Kind.INPUT:
                stack.append((n, self.outer[n], axis))
            elif n.op.kind is Kind.ELEMENTWISE:
                stack += [(n, a, axis) for a in n.args]
            elif n.op.kind is Kind.REDUCE:
                kept = [k for k in range(len(n.args[0].shape)) if k not in n.params]
                stack.append((n, n.args[0], kept[axis]))
            elif n.op.kind is Kind.VIEW and n.args[0] in self.base:
                self._see(n.args[0], n.params, axis)
            elif n.op.kind is Kind.VIEW:
                stack += self._through(n, axis)
            else:
                raise Refused

    def _see(self, version: Node, v: View, axis: int) -> None:
        """A version is read through a view, of which one axis is cut."""
        self._share(self.base[version], v, axis)
        if not self._is_read_only(version):
            self._settle(self.base[version], v, axis)

    def _share(self, storage: Node, v: View, axis: int) -> None:
        """Note an array in which the next trip's elements stand behind this one's."""
        along = [d for d, e in enumerate(v.dims) if _runs(e, axis)]
        moving = [
            d for d, e in enumerate(v.dims) if isinstance(e, At) and self.indices & atoms(e.index)
        ]
        if storage.op.kind is Kind.INPUT and any(a < m for a in along for m in moving):
            self.shared.add(storage)

    def _through(self, n: Node, axis: int) -> list[tuple[Node, Node, int]]:
        """What a view needs of the value that it looks at."""
        along = [d for d, e in enumerate(n.params.dims) if _runs(e, axis)]
        if not along:
            return []  # the same for all positions
        if len(along) > 1 or n.params.dims[along[0]] != Along(0, 1, axis):
            raise Refused
        return [(n, n.args[0], along[0])]

    def _check(self, whole: list[Node]) -> None:
        """Nothing sees more than its strip of what is cut, and everything written is cut; but what
        a trip writes for itself alone may be `whole` updates."""
        body = self.loop.body
        if any(body.inputs[p] not in self.places for p in self.loop.written):
            raise Refused
        for n in every_node(body):
            if n.op.kind is Kind.VIEW and n in self.axis:
                blind = not any(_runs(e, self.axis[n]) for e in n.params.dims)
                seen = n.args if blind else ()
            elif n in self.axis or n.op.kind is Kind.RESULT or n in self.places:
                continue
            elif n.op.kind is Kind.UPDATE:
                seen = n.args[1:] if n in whole else n.args[2:]
            else:
                # bodies see only what they look at
                seen = n.args[:1] if n.op.kind is Kind.COND else n.args
                seen = () if n.op.kind is Kind.LOOP else seen
            if any(a in self.axis or self.base.get(a) in self.places for a in seen):
                raise Refused

    @property
    def rows(self) -> Size:
        """Positions of a strip."""
        return smax(1, floordiv(LINES // len(self.shared), smax(1, self.beside)))

    @property
    def is_one(self) -> bool:
        """Whether all positions surely are in one strip."""
        low, _ = bounds(self.rows - self.extent)
        return low is not None and low >= 0


def _runs(entry: Entry, axis: int) -> bool:
    return isinstance(entry, Along) and entry.axis == axis
