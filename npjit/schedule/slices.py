"""Slices of what a block overwrites, told apart from the axes that they are spread over.

In: a graph. Out: the same values, where a view of storage that an update overwrites has no axes but
those it runs along, and a view of this slice spreads it over others. Where the update must not read
such a slice in place (see `overlap`), the slice is copied first, and not the whole value:

    %1 = view %0 [@0, 3]          (n, m)      %1 = view %0 [@0, 3]     (n)
                                              %2 = view %1 [@0]        (n, m)
"""

from __future__ import annotations

from dataclasses import replace

from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.op import Kind
from npjit.core.rebuild import rebuild
from npjit.core.view import Along, View


def tell_slices(graph: Graph) -> Graph:
    """See the module's docstring."""
    overwritten = {n.args[0] for n in graph.nodes if n.op.kind is Kind.UPDATE}
    spread = [_is_spread(n) and n.args[0] in overwritten for n in graph.nodes]
    if not any(spread):
        return graph
    found = iter(spread)

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        return _in_two(block, n, args) if next(found) else None

    return rebuild(graph, rewrite)


def _is_spread(n: Node) -> bool:
    return n.op.kind is Kind.VIEW and len(n.params.axes_used()) < len(n.shape)


def _in_two(block: Block, n: Node, args: tuple[Node, ...]) -> Node:
    """The slice, and the view that spreads it."""
    view: View = n.params
    kept = sorted(view.axes_used())
    shape = tuple(view.shape[axis] for axis in kept)
    dims = tuple(
        replace(d, axis=kept.index(d.axis)) if isinstance(d, Along) else d for d in view.dims
    )
    cut = block.add(n.op, args, View(view.base, dims, shape), TensorType(shape, n.dtype))
    spread = View(shape, tuple(Along(0, 1, axis) for axis in kept), view.shape)
    return block.add(n.op, (cut, *args[1:]), spread, n.type)
