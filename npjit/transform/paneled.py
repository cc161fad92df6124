"""A loop as a loop over panels of trips, with values that are made in front of each panel.

In: a LOOP node, the number of trips of a panel, what is made in front of one, and which nodes of
the body that replaces. Out: the outer loop, whose body makes them and runs the old trips:

    loop i < n:  ...f(i)...
    loop p < n / ROWS:  made = f(o), ..., f(o + ROWS - 1),   o = ROWS*p
        loop r < ROWS:  ...made[r]...,   i = o + r
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from npjit.core.assume import Assumptions
from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.size import Size, Var, as_size, atoms, floordiv, linear, smin, substitute
from npjit.core.view import Along, Entry, View
from npjit.ops import kinds
from npjit.ops.control import results
from npjit.transform.bodies import Use, with_inputs
from npjit.transform.respell import respelled

# from the inputs of the loop's body, in front of a panel: what its trips start from instead, and
# behind that what has been made for them
Make = Callable[[Block, Sequence[Node]], list[Node]]


class Paneled:
    """The trips of a loop, `count` at a time: names for both loops, and sizes in them."""

    def __init__(self, loop: Loop, count: int, known: Assumptions) -> None:
        self.loop = loop
        self.known = known
        self.count = count
        self.index = loop.index
        # what the outer loop counts, and the trips of the inner one and the first of them
        self.outer = Var(f"{self.index.name}p", 0)
        self.row = Var(f"{self.index.name}r", 0)
        self.first = count * as_size(self.outer)
        self.rows = smin(count, loop.trips - self.first)
        self.trip = self.first + as_size(self.row)

    def has_trips(self, fewest: int) -> bool:
        """Whether the loop may have so many trips, as many in each call."""
        few = self.known.lt(self.loop.trips, fewest)
        return not few and not self.loop.stops and self.index not in atoms(self.loop.trips)

    def at(self, size: Size, trip: Size) -> Size:
        """A size of the body in one trip."""
        return substitute(size, {self.index: trip})

    def all_rows(self, v: View) -> View:
        """What the trips of a panel pick, their axis in front, in the order in which it lies in
        memory."""
        dims: list[Entry] = []
        for d in v.dims:
            if isinstance(d, Along):
                dims.append(replace(d, axis=d.axis + 1))
                continue
            step, _ = linear(d.index, self.index)
            if step == 0:
                dims.append(d)
                continue
            assert isinstance(step, int)
            first = self.first if step > 0 else self.first + self.rows - 1
            dims.append(Along(self.at(d.index, first), abs(step), 0))
        return View(v.base, tuple(dims), (self.rows, *v.shape))

    def loop_of_loops(self, n: Node, make: Make, use: Use) -> Loop:
        """See the module's docstring; `n` is the node of the old loop."""
        old = self.loop
        block = Block()
        inputs = [block.add(kinds.INPUT, (), i.params, i.type) for i in old.body.inputs]
        args = make(block, inputs)
        made = [a.type for a in args[len(inputs) :]]
        loop = replace(old, body=self._trip(made, use), index=self.row, trips=self.rows)
        inner = block.add(n.op, args, loop, n.type)
        ends = results(block, inner, [inputs[p].type for p in (*range(old.carried), *old.written)])
        writes = list(zip(old.written, ends[old.carried :], strict=True))
        body = Graph.of(block, inputs, ends[: old.carried], writes)
        trips = floordiv(old.trips + self.count - 1, self.count)
        return Loop(body, old.carried, self.outer, trips)

    def _trip(self, made: Sequence[TensorType], use: Use) -> Graph:
        """The old body with what is made for the panel."""
        graph = with_inputs(self.loop.body, made, use)
        trip: Graph = respelled(graph, lambda s: self.at(s, self.trip))
        return trip
