"""A loop's body written again for one strip of an axis that runs through it.

In: where the axis is, the first position and the number of positions. Out: the body with views and
shapes cut:

    c[:, k] = c[:, k - 1] + a[:, k]    ->    c[o:o+B, k] = c[o:o+B, k - 1] + a[o:o+B, k]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from npjit.core.graph import Block, Graph, Node, TensorType, named_graphs
from npjit.core.op import Kind, Op
from npjit.core.size import Shape, Size
from npjit.core.view import Along, Entry, View, identity
from npjit.schedule.through import Through, slices

_VIEW = Op("cut", Kind.VIEW, lambda n, a: a[slices(n)])


@dataclass
class Narrow:
    """Writes a body again for one strip: `count` positions from `offset` on."""

    along: Through
    offset: Size
    count: Size

    def graph(self, graph: Graph) -> Graph:
        """A body for one strip."""
        block = Block()
        new: dict[Node, Node] = {}
        for n in graph.nodes:
            block.where = n.where
            type_ = replace(n.type, shape=self._shape(n))
            if n.op.kind is Kind.INPUT:
                new[n] = Node(n.op, (), n.params, type_, n.where)
                block.nodes.append(new[n])
                continue
            args = tuple(self._given(block, n, a, new) for a in n.args)
            new[n] = block.add(n.op, args, self._params(n), type_)
        inputs = [new[n] for n in graph.inputs]
        writes = [(p, new[n]) for p, n in graph.writes]
        return Graph.of(block, inputs, [new[n] for n in graph.outputs], writes)

    def _cut_dim(self, n: Node) -> int | None:
        """The dimension along which a node is only a strip here."""
        if n in self.along.axis:
            return self.along.axis[n]
        storage = self.along.base.get(n)
        if storage is None or storage.op.kind is not Kind.CELL:
            return None
        return self.along.places[storage][0] if storage in self.along.places else None

    def _shape(self, n: Node) -> Shape:
        return _with(n.shape, self._cut_dim(n), self.count)

    def _given(self, block: Block, user: Node, a: Node, new: dict[Node, Node]) -> Node:
        """An argument: what is whole but wanted as a strip is seen through a view."""
        axis = self.along.direct.get((user, a))
        if axis is None or self._cut_dim(a) is not None:
            return new[a]
        view = self._view(identity(a.shape), axis, None)
        return block.add(_VIEW, (new[a],), view, TensorType(view.shape, a.dtype))

    def _params(self, n: Node) -> object:
        inner = {name: self.graph(g) for name, g in named_graphs(n.params)}
        if inner:
            return replace(n.params, **inner)
        if n.op.kind is Kind.UPDATE:
            axis = self.along.axis_of_update(n)
            return n.params if axis is None else self._view(n.params, axis, self._cut_dim(n))
        if n.op.kind is Kind.VIEW:
            return self._view(n.params, self.along.axis.get(n), self._cut_dim(n.args[0]))
        return n.params

    def _view(self, v: View, axis: int | None, base: int | None) -> View:
        """A view one axis of which is cut; `base`: so is the base, along this dimension."""
        dims: list[Entry] = []
        for e in v.dims:
            if base is None and isinstance(e, Along) and e.axis == axis:
                e = replace(e, start=e.start + e.step * self.offset)
            dims.append(e)
        return View(_with(v.base, base, self.count), tuple(dims), _with(v.shape, axis, self.count))


def _with(shape: Shape, axis: int | None, extent: Size) -> Shape:
    return tuple(extent if k == axis else n for k, n in enumerate(shape))
