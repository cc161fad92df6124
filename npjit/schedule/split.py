"""Splitting reductions that run across rows whose own values they need.

In: a graph. Out: a graph with the same meaning, where `sum` over (i, j) of something that needs a
reduction over j for each i (softmax, normalised rows) is a sum over j, which joins the rows'
kernel, and a sum of the row sums. A kernel then reads the rows once, and the rest is one value per
row.

    sum(t * (x - bc(max(x, 1))), (0, 1))   ->   sum(sum(t * (x - bc(max(x, 1))), 1), 0)
"""

from __future__ import annotations

from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.op import Kind
from npjit.core.rebuild import rebuild
from npjit.core.view import Along

# reductions whose parts can be combined by the same op
_ASSOCIATIVE = ("sum", "product", "min", "max", "any", "all")
# below this many bytes an element the row results would lose accuracy that one long reduction keeps
_LEAST_ITEMSIZE = 4

Axes = frozenset[int]


def split(graph: Graph) -> Graph:
    """The graph with such reductions in two steps."""
    rows = row_axes(graph)
    parts = {n: rows[n.args[0]] for n in graph.nodes if _is_split(n, rows)}
    if not parts:
        return graph
    inner = {k: parts[n] for k, n in enumerate(graph.nodes) if n in parts}
    numbers = iter(range(len(graph.nodes)))

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        axes = inner.get(next(numbers))
        return None if axes is None else _in_two(block, n, args[0], axes)

    return rebuild(graph, rewrite)


def row_axes(graph: Graph) -> dict[Node, Axes]:
    """For each node the axes along which a reduction's result in it is broadcast."""
    rows: dict[Node, Axes] = {}
    reduced: set[Node] = set()
    for n in graph.nodes:
        kind = n.op.kind
        rows[n] = frozenset()
        if kind is Kind.REDUCE:
            reduced.add(n)
        elif kind is Kind.ELEMENTWISE:
            found = {rows[a] for a in n.args if rows[a]}
            rows[n] = found.pop() if len(found) == 1 else frozenset()
            if any(a in reduced for a in n.args):
                reduced.add(n)
        elif kind is Kind.VIEW and n.args[0] in reduced:
            used = {d.axis for d in n.params.dims if isinstance(d, Along)}
            wide = (d for d, size in enumerate(n.shape) if size != 1 and d not in used)
            rows[n] = frozenset(wide)
            if not rows[n]:
                reduced.add(n)
    return rows


def _is_split(n: Node, rows: dict[Node, Axes]) -> bool:
    if n.op.kind is not Kind.REDUCE or n.op.reduction is None:
        return False
    inner = rows[n.args[0]]
    good = n.op.reduction.style in _ASSOCIATIVE and n.dtype.itemsize >= _LEAST_ITEMSIZE
    return good and bool(inner) and inner < frozenset(n.params)


def _in_two(block: Block, n: Node, arg: Node, inner: Axes) -> Node:
    first = tuple(sorted(inner))
    kept = [d for d in range(len(arg.shape)) if d not in inner]
    middle = TensorType(tuple(arg.shape[d] for d in kept), n.dtype)
    partial = block.add(n.op, (arg,), first, middle)
    rest = tuple(i for i, d in enumerate(kept) if d in n.params)
    return block.add(n.op, (partial,), rest, n.type)
