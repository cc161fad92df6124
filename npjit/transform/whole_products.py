"""Sums of products that a loop makes row by row are made for all trips at once.

In: a graph. Out: the same values up to the order of additions, where products in a LOOP that read
nothing which an earlier trip has written are products of matrices in front of it:

    a sum in each trip      loop i:  b[i] = b[i] + sum over k > i of a[k, i] * b[k]
    a loop in each trip     loop i: loop k:  c[i, :i+1] = c[i, :i+1] + a[i, k] * b[:i+1, k]
    what all trips add up   loop i:  c[:i] = c[:i] + outer(a[i, :i], b[i])

    made = a.T @ b, with the sums or the results that are wanted (see ops/cut_product.py)
    loop i:  b[i] = b[i] + made[i]

The last kind becomes an addition behind the loop, where all else that happens to the array is that
something is added to parts of it. What is made is no larger than an array that the loop writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npjit.core.assume import Assumptions
from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node
from npjit.core.op import Kind
from npjit.ops.control import results
from npjit.transform.accumulated import Accumulation, accumulating_loop, accumulations
from npjit.transform.bodies import change_control, with_bodies, with_inputs
from npjit.transform.row_products import RowProducts
from npjit.transform.simplify import simplify
from npjit.transform.spread import spread
from npjit.transform.within import within

# no fewer trips than these
_FEWEST = 8


def with_whole_products(graph: Graph) -> Graph:
    """See the module's docstring; the graph is a simplified one, before and after. Rows that a loop
    makes element by element are rows once it is spread."""
    wider = spread(graph)
    whole = _again(wider, Assumptions.given(graph.guards))
    return graph if whole is wider else simplify(whole)


def _again(graph: Graph, known: Assumptions) -> Graph:
    def change(block: Block, n: Node, args: tuple[Node, ...]) -> tuple[Node, list[Node] | None]:
        loop = n.params
        if isinstance(loop, Loop) and len(args) == len(loop.body.inputs):
            inside = within(known, loop, n.args)
            found = _Rewritten(loop, inside["body"], block, args)
            if found.is_new:
                made = found.loop(n)
                return made, found.ends(made)
        return block.add(n.op, args, with_bodies(n, known, _again), n.type), None

    return change_control(graph, change)


class _Rewritten:
    """One loop: its products, which are made at once, and the loop with them."""

    def __init__(
        self, loop: Loop, known: Assumptions, block: Block, args: tuple[Node, ...]
    ) -> None:
        self.old = loop
        self.block = block
        self.args = args
        self.products = RowProducts(loop, known, block, args)
        # loops in the body that only add up, and additions that move behind the loop
        self.loops: dict[Node, Accumulation] = {}
        self.moved: dict[Node, Accumulation] = {}
        few = isinstance(loop.trips, int) and loop.trips < _FEWEST
        if not few and not loop.stops:
            self._find()

    @property
    def is_new(self) -> bool:
        """Whether there is anything to change."""
        return bool(self.products.made)

    def _find(self) -> None:
        products = self.products
        for n in self.old.body.nodes:
            if n.op.kind in (Kind.REDUCE, Kind.CONTRACT):
                products.sum_in_trip(n)
            elif n.op.kind is Kind.LOOP:
                found = accumulating_loop(n)
                if found is not None and products.sums_of_loop(n, found):
                    self.loops[n] = found
        for a in accumulations(self.old.body):
            if products.sums_of_trips(a):
                self.moved[a.update] = a

    # -- the new loop

    def loop(self, n: Node) -> Node:
        """The loop that reads what is made, which are arguments behind the old ones."""
        made = self.products.made.values()
        body = with_inputs(self.old.body, [m.node.type for m in made], self._trip)
        writes = tuple((p, last) for p, last in body.writes if last.op.kind is not Kind.INPUT)
        args = (*self.args, *(m.node for m in made))
        loop = replace(self.old, body=replace(body, writes=writes))
        return self.block.add(n.op, args, loop, n.type)

    def _trip(
        self, block: Block, m: Node, new: dict[Node, Node], made: Sequence[Node]
    ) -> Node | None:
        """A node of the body by what is made."""
        given = dict(zip(self.products.made, made, strict=True))
        if m in self.moved:
            return new[m.args[0]]
        if m in given:
            return self.products.row(block, m, given[m])
        if m.op.kind is Kind.RESULT and m.args[0] in self.loops:
            a = self.loops[m.args[0]]
            before = new[m.args[0].args[a.storage.params]]
            return a.again(block, before, a.view, lambda p: self.products.row(block, p, given[p]))
        return None

    def ends(self, made: Node) -> list[Node]:
        """What the old loop's results are: those of the new one, with what has moved behind it. An
        array that the new one does not write is what it was."""
        loop: Loop = made.params
        positions = [*range(loop.carried), *loop.written]
        found = results(self.block, made, [self.args[p].type for p in positions])
        last = dict(zip(positions, found, strict=True))
        for a in self.moved.values():
            p = a.storage.params
            before = last.get(p, self.args[p])
            last[p] = a.again(self.block, before, *self.products.all_rows(a))
        return [last[p] for p in (*range(self.old.carried), *self.old.written)]
