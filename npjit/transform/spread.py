"""Loops whose trips do not depend on each other become operations on arrays with one more axis.

In: a simplified graph. Out: the same values, where such a LOOP is straight-line code: the index
becomes the first axis of what depends on it. An element read at `[i]` is a vector, a sum of
products a product with a matrix, and neighbouring trips share vector registers and threads.

    loop j < n (C: C[:, j] = C[:, j] + b[j])     C[...] = C + b

All trips' first statements now run before all trips' second ones. Nobody can tell when each trip
has a part of its own of every array that the loop writes, one index of some dimension, and reads
nothing else that is written: Jacobi's, Gauss-Seidel's and Floyd and Warshall's loops stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from npjit.core.assume import Assumptions
from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, TensorType, sizes_in
from npjit.core.op import Kind
from npjit.core.size import Size, Var, atoms, linear, smax
from npjit.core.view import Along, At, Entry, View, identity
from npjit.ops import build, kinds
from npjit.transform.bodies import change_control, with_bodies
from npjit.transform.locate import APART, locate
from npjit.transform.within import within

_VALUES = frozenset(
    [Kind.INPUT, Kind.CONST, Kind.SIZE, Kind.IOTA, Kind.ELEMENTWISE, Kind.REDUCE, Kind.VIEW]
)
_KNOWN = _VALUES | {Kind.CONTRACT, Kind.UPDATE}
_BATCH = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def spread(graph: Graph) -> Graph:
    """The graph with every loop spread out that can be."""
    return _spread(graph, Assumptions.given(graph.guards))


def is_spreadable(loop: Loop, known: Assumptions) -> bool:
    """Whether `spread` makes the index of this loop an axis; `known` is known around it."""
    return _Trips(loop, known).are_apart()


def _spread(graph: Graph, known: Assumptions) -> Graph:
    def change(block: Block, n: Node, args: tuple[Node, ...]) -> tuple[Node, list[Node] | None]:
        params = with_bodies(n, known, _spread)
        made = block.add(n.op, args, params, n.type)
        if isinstance(params, Loop):
            trips = _Trips(params, within(known, n.params, n.args)["body"])
            if trips.are_apart():
                return made, trips.spread(block, args)
        return made, None

    return change_control(graph, change)


@dataclass
class _Trips:
    """One loop: whether its trips are apart, and its body for all of them at once."""

    loop: Loop
    known: Assumptions
    # what differs from trip to trip, in the order of the body
    own: set[Node] = field(default_factory=set)

    @property
    def index(self) -> Var:
        return self.loop.index

    @property
    def count(self) -> Size:
        """The extent of the new axis; a range may be empty by being negative."""
        trips = self.loop.trips
        return trips if self.known.le(0, trips) else smax(trips, 0)

    # -- legality

    def are_apart(self) -> bool:
        """Whether no trip sees what another one writes, and the body can have one more axis."""
        body = self.loop.body
        if self.loop.carried or self.loop.stops or not all(map(self._fits, body.nodes)):
            return False
        return all(self._is_apart(position) for position in self.loop.written)

    def _fits(self, n: Node) -> bool:
        """Whether a node has a form for all trips; notes if it differs from trip to trip."""
        if n.op.kind not in _KNOWN or n.op.raises or any(map(self._names, n.shape)):
            return False
        if n.op.kind is Kind.UPDATE:
            return len(n.args) == 2 and self._all_trips(n.params, False) is not None
        differs = any(a in self.own for a in n.args) or any(map(self._names, sizes_in(n.params)))
        if not differs:
            return True
        self.own.add(n)
        if n.op.kind is Kind.VIEW:
            return len(n.args) == 1 and self._all_trips(n.params, n.args[0] in self.own) is not None
        if n.op.kind is Kind.SIZE:
            return linear(n.params, self.index)[0] is not None
        # a product of matrices is as fast as it gets
        large = n.op.kind is Kind.CONTRACT and len(n.shape) > 1 and not self._takes_place(n)
        return not large and len(n.shape) < max(len(i.shape) for i in self.loop.body.inputs)

    def _names(self, size: Size) -> bool:
        return self.index in atoms(size)

    def _takes_place(self, n: Node) -> bool:
        """Whether a product of matrices is stored where its rows come from: for all trips it needs
        no memory."""
        rows = n.args[0]
        users = [m for m in self.loop.body.nodes if n in m.args]
        first, _, result = n.params
        return (
            [m.op.kind for m in users] == [Kind.UPDATE]
            and rows.op.kind is Kind.VIEW
            and (rows.args, rows.params) == (users[0].args[:1], users[0].params)
            and n.args[1] not in self.own
            and (first[:-1], rows.shape, rows.dtype) == (result[:-1], n.shape, n.dtype)
            and n.dtype.kind == "f"
        )

    def _all_trips(self, v: View, is_own: bool) -> View | None:
        """The view for all trips, their axis in front; `is_own`: of an array that has it too."""
        dims: list[Entry] = [Along(0, 1, 0)] if is_own else []
        for d in v.dims:
            if isinstance(d, Along):
                if self._names(d.start) or self._names(d.step):
                    return None
                dims.append(replace(d, axis=d.axis + 1))
                continue
            step, start = linear(d.index, self.index)
            if step is None:
                return None
            dims.append(d if step == 0 else Along(start, step, 0))
        base = (self.count, *v.base) if is_own else v.base
        return View(base, tuple(dims), (self.count, *v.shape))

    def _is_apart(self, position: int) -> bool:
        """Whether each trip has its own part of a written input, and reads nothing else of what is
        written."""
        storage = self.loop.body.inputs[position]
        versions = {storage}
        writes: list[View] = []
        reads: list[View] = []
        for n in self.loop.body.nodes:
            if n.op.kind is Kind.UPDATE and n.args[0] in versions:
                versions.add(n)
                writes.append(n.params)
            elif n.op.kind is Kind.VIEW and n.args[0] in versions:
                reads.append(n.params)
            elif any(a in versions for a in n.args):
                reads.append(identity(storage.shape))
        return any(
            all(w.dims[d] == writes[0].dims[d] for w in writes)
            and all(r.dims[d] == writes[0].dims[d] or self._is_beside(r, writes) for r in reads)
            for d in range(len(writes[0].base))
            if self._is_index(writes[0].dims[d])
        )

    def _is_index(self, entry: Entry) -> bool:
        """Whether an entry is another index in each trip."""
        if not isinstance(entry, At):
            return False
        step, _ = linear(entry.index, self.index)
        return isinstance(step, int) and step != 0

    def _is_beside(self, read: View, writes: Sequence[View]) -> bool:
        """Whether what is read in any trip is written in none."""
        every = self._all_trips(read, False)
        stored = [self._all_trips(w, False) for w in writes]
        return every is not None and all(
            s is not None and locate(every, s, self.known) is APART for s in stored
        )

    # -- the body for all trips

    def spread(self, block: Block, args: Sequence[Node]) -> list[Node]:
        """The last versions of what the loop writes, all trips done."""
        new: dict[Node, Node] = {}
        for n in self.loop.body.nodes:
            block.where = n.where or block.where
            new[n] = args[n.params] if n.op.kind is Kind.INPUT else self._made(block, n, new)
        return [new[last] for _, last in self.loop.body.writes]

    def _made(self, block: Block, n: Node, new: dict[Node, Node]) -> Node:
        if n.op.kind is Kind.UPDATE:
            version, value = new[n.args[0]], self._stretched(block, n.args[1], new)
            view = self._all_trips(n.params, False)
            return block.add(n.op, (version, value), view, version.type)
        if n not in self.own:
            return block.add(n.op, tuple(new[a] for a in n.args), n.params, n.type)
        if n.op.kind is Kind.VIEW:
            view = self._all_trips(n.params, n.args[0] in self.own)
            assert view is not None
            return build.view(block, new[n.args[0]], view)
        if n.op.kind is Kind.SIZE:
            return self._sizes(block, n.params)
        type_ = TensorType((self.count, *n.shape), n.dtype)
        if n.op.kind is Kind.CONTRACT:
            args = tuple(new[a] for a in n.args)
            return block.add(n.op, args, self._letters(n), type_)
        params = tuple(axis + 1 for axis in n.params) if n.op.kind is Kind.REDUCE else n.params
        return block.add(n.op, [self._stretched(block, a, new) for a in n.args], params, type_)

    def _stretched(self, block: Block, n: Node, new: dict[Node, Node]) -> Node:
        """A value of the body with the trips' axis, along which it may be the same."""
        if n in self.own:
            return new[n]
        dims = tuple(Along(0, 1, axis + 1) for axis in range(len(n.shape)))
        return build.view(block, new[n], View(n.shape, dims, (self.count, *n.shape)))

    def _sizes(self, block: Block, size: Size) -> Node:
        """start + step * index, for all trips."""
        step, start = linear(size, self.index)
        assert step is not None
        made = build.iota(block, self.count)
        for ufunc, number in ((np.multiply, step), (np.add, start)):
            other = build.size_node(block, number)
            made = build.ufunc(block, kinds.UFUNCS[ufunc], ufunc, [made, other])
        return made

    def _letters(self, n: Node) -> tuple[str, ...]:
        """A product's labels with one for the trips."""
        trips = next(x for x in _BATCH if x not in "".join(n.params))
        differs = [*(a in self.own for a in n.args), True]
        return tuple(trips * d + labels for d, labels in zip(differs, n.params, strict=True))
