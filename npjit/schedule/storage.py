"""How stored values lie in memory.

In: a graph and the layouts of its inputs. Out: for every stored node its strides, in elements.
Results have the memory order that NumPy would give them; what a program only stores for itself
lies in C order.

    Storage(graph, ["C"]).strides(node)   ->   (n1, 1)
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.core.graph import Graph, Node, Weight
from npjit.core.layout import Layout, strides_of
from npjit.core.op import Kind
from npjit.core.size import Size, Var, atoms
from npjit.schedule.cells import Program
from npjit.schedule.index import row_major
from npjit.schedule.order import Order, input_strides, memory_orders
from npjit.schedule.plan import Source


class Storage:
    """How stored nodes lie in memory."""

    def __init__(self, graph: Graph, layouts: Sequence[Layout]) -> None:
        self.layouts = [
            layout if n.type.weight is Weight.ARRAY else "C"
            for n, layout in zip(graph.inputs, layouts, strict=True)
        ]
        self.orders = memory_orders(graph, self.layouts)
        self.sources: dict[Var, Source] = {}
        for v, s in graph.sources.items():
            what = "value" if s.axis is None else "extent"
            self.sources[v] = Source(s.input, what, s.axis or 0)
        self.program: Program | None = None
        self._strides: dict[Node, tuple[Size, ...]] = {}

    def give(self, n: Node, strides: tuple[Size, ...]) -> None:
        """An input lies in memory like this."""
        self._strides[n] = strides

    def order(self, n: Node) -> Order | None:
        """Memory order of a node stored in memory of its own; a view is stored to be read in C
        order."""
        returned = self.program is not None and n in self.program.results
        return None if n.op.kind is Kind.VIEW and not returned else self.orders.get(n)

    def strides(self, n: Node) -> tuple[Size, ...]:
        """In elements; all versions of a cell lie as its base does."""
        if self.program is not None:
            n = self.program.base.get(n, n)
        found = self._strides.get(n)
        if found is None:
            found = self._strides[n] = self._find_strides(n)
        return found

    def _find_strides(self, n: Node) -> tuple[Size, ...]:
        if n.op.kind is not Kind.INPUT or self.layouts[n.params] == "C":
            return row_major(n.shape, self.order(n) if n.op.kind is not Kind.INPUT else None)
        layout = self.layouts[n.params]
        strides = input_strides(n, layout)
        needed = set().union(*map(atoms, strides))
        for axis, stride in enumerate(strides_of(n.params, n.shape, layout)):
            for v in atoms(stride) & needed:
                self.sources[v] = Source(n.params, "stride", axis)
        return strides
