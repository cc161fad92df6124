"""Arrays that are only ever seen column by column are stored column by column.

In: a graph whose carried values are storage (see `carried`). Out: the same values, where a cell
that nobody gets has the dimensions in front that every reader and writer picks one index of:

    c = cell (n, m); loop k: c[:, k] = c[:, k - 1] + a[:, k]
    c = cell (m, n); loop k: c[k] = c[k - 1] + a[:, k]

Neighbours of a column then are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from npjit.core.graph import Block, Graph, Node, TensorType, every_node, named_graphs
from npjit.core.op import CONTROL, Kind
from npjit.core.view import At, View
from npjit.schedule.apart import views_of
from npjit.schedule.cells import before, inputs_of, storage_of

T = TypeVar("T")
# for each dimension in memory, which one of the program it is
Order = tuple[int, ...]


def stand_upright(graph: Graph) -> Graph:
    """See the module's docstring."""
    if not any(n.op.kind in CONTROL for n in graph.nodes):
        return graph
    if not any(n.op.kind is Kind.CELL and len(n.shape) > 1 for n in every_node(graph)):
        return graph
    return replace(_Turning(graph, {}).graph(), guards=graph.guards)


@dataclass
class _Turning:
    """One graph, and the orders of those of its inputs that are turned."""

    old: Graph
    orders: dict[Node, Order]
    block: Block = field(default_factory=Block)
    new: dict[Node, Node] = field(default_factory=dict)

    def graph(self) -> Graph:
        """The graph with turned cells."""
        seen = {*self.old.outputs, *(n for _, n in self.old.writes)}
        self.kept = {storage_of(n) for n in seen} - set(self.orders)
        for n in self.old.nodes:
            self.block.where = n.where
            order = self._order(n)
            if order is not None:
                self.orders[n] = order
            type_ = TensorType(_sorted(n.shape, order), n.dtype, n.type.weight)
            if n.op.kind is Kind.INPUT:
                self.new[n] = Node(n.op, (), n.params, type_, n.where)
                self.block.nodes.append(self.new[n])
            else:
                args = self._args(n, order)
                self.new[n] = self.block.add(n.op, args, self._params(n), type_)
        return Graph.of(
            self.block,
            [self.new[n] for n in self.old.inputs],
            [self.new[n] for n in self.old.outputs],
            [(p, self.new[n]) for p, n in self.old.writes],
            self.old.sources,
        )

    def _order(self, n: Node) -> Order | None:
        """How a version of a turned cell lies in memory."""
        if n.op.kind is Kind.CELL:
            is_own = n not in self.kept and all(_is_spread(a) for a in n.args)
            return _upright(list(views_of(self.old, n))) if is_own and len(n.shape) > 1 else None
        return self.orders.get(before(n) or n)

    def _args(self, n: Node, order: Order | None) -> tuple[Node, ...]:
        if n.op.kind is not Kind.CELL or order is None:
            return tuple(self.new[a] for a in n.args)
        # what fills a cell is spread over its new shape
        found = []
        for a in n.args:
            view = replace(a.params, shape=_sorted(a.shape, order))
            type_ = TensorType(view.shape, a.dtype)
            found.append(self.block.add(a.op, (self.new[a.args[0]],), view, type_))
        return tuple(found)

    def _params(self, n: Node) -> Any:
        order = self.orders.get(n.args[0]) if n.args else None
        if n.op.kind in (Kind.VIEW, Kind.UPDATE) and order is not None:
            v: View = n.params
            return View(_sorted(v.base, order), _sorted(v.dims, order), v.shape)
        if n.op.kind not in CONTROL:
            return n.params
        inner = {name: _Turning(g, self._given(n, g)).graph() for name, g in named_graphs(n.params)}
        return replace(n.params, **inner)

    def _given(self, n: Node, body: Graph) -> dict[Node, Order]:
        pairs: Mapping[Node, Node] = dict(zip(body.inputs, inputs_of(n), strict=False))
        return {i: self.orders[a] for i, a in pairs.items() if a in self.orders}


def _is_spread(n: Node) -> bool:
    """Whether a value is one element everywhere."""
    return n.op.kind is Kind.VIEW and not n.params.axes_used()


def _upright(views: Sequence[View]) -> Order | None:
    """The order in which dimensions that all views pick one index of come first; None where the
    last one is no such, or all are."""
    if not views:
        return None
    dims = range(len(views[0].base))
    picked = [d for d in dims if all(isinstance(v.dims[d], At) for v in views)]
    others = [d for d in dims if d not in picked]
    return (*picked, *others) if others and dims[-1] in picked else None


def _sorted(items: tuple[T, ...], order: Order | None) -> tuple[T, ...]:
    return items if order is None else tuple(items[d] for d in order)
