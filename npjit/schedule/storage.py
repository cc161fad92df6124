"""How stored values lie in memory.

In: a graph and the layouts of its inputs. Out: for every stored node its strides, in elements.
Results have the memory order that NumPy would give them; what a program only stores for itself
lies in C order, products of 16 bits in rows that begin on boundaries, as the units want them.

    Storage(graph, ["C"]).strides(node)   ->   (n1, 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from npjit.core.graph import Graph, Node, Weight
from npjit.core.layout import Layout, strides_of
from npjit.core.op import Kind
from npjit.core.size import Shape, Size, Var, atoms, floordiv
from npjit.schedule.cells import Program
from npjit.schedule.index import row_major
from npjit.schedule.order import Order, input_strides, memory_orders
from npjit.schedule.plan import Source

# elements that rows of products of 16 bits are whole multiples of
_WHOLE = 8
# what reads such rows one by one, however far apart they lie
_BY_ROWS = (Kind.ELEMENTWISE, Kind.REDUCE)


class Storage:
    """How stored nodes lie in memory."""

    def __init__(self, graph: Graph, layouts: Sequence[Layout]) -> None:
        self.graph = graph
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

    @cached_property
    def _users(self) -> dict[Node, list[Node]]:
        return self.graph.users()

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

    def spare(self, n: Node) -> Size:
        """The elements behind each row of a stored node."""
        return self.room(n)[-1] - n.shape[-1] if n.shape else 0

    def room(self, n: Node) -> Shape:
        """The extents of a stored node's memory, its rows to their ends."""
        if n.op.kind is not Kind.CONTRACT or not self._has_rows_apart(n):
            return n.shape
        return (*n.shape[:-1], _WHOLE * floordiv(n.shape[-1] + (_WHOLE - 1), _WHOLE))

    def _has_rows_apart(self, n: Node) -> bool:
        first, second, made = n.params
        is_matrix = len(made) > 1 and made[-1] not in first and made[-2] not in second
        if not is_matrix or n.args[0].dtype.itemsize != 2 or self.order(n) is not None:
            return False
        is_result = self.program is not None and n in self.program.results
        return not is_result and all(u.op.kind in _BY_ROWS for u in self._users[n])

    def _find_strides(self, n: Node) -> tuple[Size, ...]:
        if n.op.kind is not Kind.INPUT or self.layouts[n.params] == "C":
            return row_major(self.room(n), self.order(n) if n.op.kind is not Kind.INPUT else None)
        layout = self.layouts[n.params]
        strides = input_strides(n, layout)
        needed = set().union(*map(atoms, strides))
        for axis, stride in enumerate(strides_of(n.params, n.shape, layout)):
            for v in atoms(stride) & needed:
                self.sources[v] = Source(n.params, "stride", axis)
        return strides
