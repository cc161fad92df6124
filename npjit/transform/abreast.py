"""Loops whose trips sum along rows of their own do some rows at once.

In: a graph. Out: the same values, where a LOOP over rows, in which an inner loop makes the elements
of the row one after the other, runs that inner loop for ROWS rows abreast as far as these depend
on nothing but earlier rows:

    loop i < n:                                         loop p < n / ROWS:   o = ROWS*p
        loop j < i:                                         loop j < o:  loop r < ROWS:
            a[i, j] = f(a[i, :j] @ a[j, :j])      ->            a[o+r, j] = f(a[o+r, :j] @ a[j, :j])
        g(i)                                                loop r < ROWS:
                                                                loop j < r:  a[o+r, o+j] = ...
                                                                g(o+r)

The loop over r is then an axis (`spread`), the products one of a matrix and a vector. The rows of
a panel are each trip's own to write; nobody else in the panel may read them before that trip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from npjit.core.assume import Assumptions
from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node
from npjit.core.op import Kind
from npjit.core.rebuild import rebuild
from npjit.core.size import Size, Var, as_size, linear, substitute
from npjit.core.view import Along, At, View
from npjit.ops import kinds
from npjit.ops.control import results
from npjit.transform.bodies import change_loops
from npjit.transform.locate import APART, locate
from npjit.transform.paneled import Paneled
from npjit.transform.respell import respelled
from npjit.transform.spread import is_spreadable
from npjit.transform.touches import Touch, touches

# rows at once: as many sums as a processor keeps in registers
ROWS = 8


def rows_abreast(graph: Graph) -> Graph:
    """See the module's docstring."""

    def again(n: Node, loop: Loop, known: Assumptions) -> Loop | None:
        for inner in loop.body.nodes:
            if isinstance(inner.params, Loop):
                rows = _Rows(loop, inner, inner.params, known)
                return rows.loop_of_loops(n, rows.front, rows.rest) if rows.may_run() else None
        return None

    return change_loops(graph, again)


class _Rows(Paneled):
    """A loop over rows and the first loop in it, `across`, at the node `inner`."""

    def __init__(self, loop: Loop, inner: Node, across: Loop, known: Assumptions) -> None:
        super().__init__(loop, ROWS, known)
        self.inner = inner
        self.across = across
        # how many trips of the inner loop all rows of a panel have in common
        self.common = self.at(across.trips, self.first)

    # -- legality

    def may_run(self) -> bool:
        """Whether the inner loop's common trips may run in front of a panel, and gain by it."""
        loop, across = self.loop, self.across
        if not self.has_trips(2 * ROWS) or across.stops or across.carried:
            return False
        if linear(across.trips, self.index)[0] != 1 or not self.known.le(0, self.common):
            return False  # what has fewer trips than none has another end
        if not any(map(_is_sum, across.body.nodes)) or not self._comes_first():
            return False
        if not is_spreadable(self._row_loop(), self._in_trip(across.index)):
            return False
        body: Graph = respelled(loop.body, lambda s: self.at(s, self.trip))
        return all(self._is_own(body, body.inputs[p]) for p in loop.written)

    def _comes_first(self) -> bool:
        """Whether the inner loop starts from what the panel starts from, and nothing else in a trip
        does, as far as the loop writes that."""
        args = self.inner.args
        if any(a.op.kind is not Kind.INPUT or a.params < self.loop.carried for a in args):
            return False
        users = self.loop.body.users()
        return all(users[self.inner.args[p]] == [self.inner] for p in self.across.written)

    def _in_trip(self, across: Var | None = None) -> Assumptions:
        """What is known in a trip, or in one of the common trips of the inner loop."""
        known = Assumptions()
        known.ranges[self.row] = (0, ROWS - 1)
        if across is not None:
            known.ranges[across] = (0, self.common - 1)
        return known

    def _is_own(self, body: Graph, storage: Node) -> bool:
        """Whether each trip writes a row of its own of an input, and reads none that lie ahead: in
        the common trips of the inner loop no other one of the panel, else none of later trips."""
        own = list(touches(body, storage, self._in_trip()))
        common = list(self._common_touches(body, storage))
        stores = [t.view for t in own if t.is_store]
        return any(
            all(s.dims[d] == row for s in stores)
            and all(t.is_store or self._is_apart(t, d, row, self.first) for t in common)
            and all(t.is_store or self._is_apart(t, d, row, self.trip + 1) for t in own)
            for d, row in enumerate(stores[0].dims)
            if isinstance(row, At) and self._step(row) != 0
        )

    def _step(self, row: At) -> int:
        """How far apart the rows of neighbouring trips are; 0 if that differs."""
        step, _ = linear(row.index, self.row)
        return step if isinstance(step, int) else 0

    def _common_touches(self, body: Graph, storage: Node) -> Iterator[Touch]:
        """What the common trips of the inner loop touch of an input."""
        inner = next(n for n in body.nodes if isinstance(n.params, Loop))
        known = self._in_trip(self.across.index)
        for a, i in zip(inner.args, inner.params.body.inputs, strict=True):
            if a is storage:
                yield from touches(inner.params.body, i, known)

    def _is_apart(self, t: Touch, d: int, row: At, trip: Size) -> bool:
        """Whether a view shows a trip's own row, or none of those from that of `trip` on."""
        if t.view.dims[d] == row:
            return True
        start = substitute(row.index, {self.row: trip - self.first})
        dims = [Along(0, 1, axis) for axis in range(len(t.view.base))]
        dims[d] = Along(start, self._step(row), d)
        shape = tuple(ROWS if axis == d else n for axis, n in enumerate(t.view.base))
        rows = View(t.view.base, tuple(dims), shape)
        return locate(t.view, rows, t.known) is APART

    # -- the loops

    def _row_loop(self) -> Loop:
        """One trip of the inner loop for the rows of a panel."""
        body: Graph = respelled(_with_products(self.across.body), lambda s: self.at(s, self.trip))
        return Loop(body, 0, self.row, self.rows)

    def front(self, block: Block, inputs: Sequence[Node]) -> list[Node]:
        """The common trips of the inner loop, and what it then starts from."""
        across = self.across
        inner = Block()
        own = [inner.add(kinds.INPUT, (), i.params, i.type) for i in across.body.inputs]
        rows = inner.add(self.inner.op, own, self._row_loop(), self.inner.type)
        written = across.written
        ends = results(inner, rows, [own[p].type for p in written])
        body = Graph.of(inner, own, [], list(zip(written, ends, strict=True)))
        loop = Loop(body, 0, across.index, self.common)
        places = [a.params for a in self.inner.args]
        args = [inputs[p] for p in places]
        node = block.add(self.inner.op, args, loop, self.inner.type)
        made = list(inputs)
        for p, end in zip(
            written, results(block, node, [own[p].type for p in written]), strict=True
        ):
            made[places[p]] = end
        return made

    def rest(
        self, block: Block, n: Node, new: dict[Node, Node], panels: Sequence[Node]
    ) -> Node | None:
        """The inner loop from where the rows part."""
        if n is not self.inner:
            return None
        behind = {self.across.index: self.common + as_size(self.across.index)}
        body: Graph = respelled(self.across.body, lambda s: substitute(s, behind))
        loop = replace(self.across, body=body, trips=self.across.trips - self.common)
        return block.add(n.op, [new[a] for a in n.args], loop, n.type)


def _is_sum(n: Node) -> bool:
    """Whether a node is a sum of products of two vectors that a BLAS has, too."""
    sums = n.op.reduction is not None and n.op.reduction.style == "sum"
    if not sums or n.dtype not in (np.float32, np.float64) or n.shape:
        return False
    return n.args[0].op.powers == (1, 1) and len(n.args[0].shape) == 1


def _with_products(body: Graph) -> Graph:
    """A body with its sums of products as products of vectors."""

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if not _is_sum(n):
            return None
        return block.add(kinds.ROWS["contract"], args[0].args, ("k", "k", ""), n.type)

    return rebuild(body, rewrite)
