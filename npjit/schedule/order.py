"""Memory order of values: which axes NumPy would nest outermost in the array it allocates for a
result.

In: a graph and the layouts of its array inputs. Out: per node a permutation, outermost axis first,
or None for C order. Elementwise results follow their operands as NumPy's K order does; `x.T + 1` is
in Fortran order.

    memory_orders(graph, layouts)[node] -> (1, 0)
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.core.graph import Graph, Node
from npjit.core.layout import Layout, strides_of
from npjit.core.op import Kind
from npjit.core.size import Size
from npjit.core.view import Along, View

Order = tuple[int, ...]
# per axis how far out it lies in memory; None: extent 1 or stride 0, it has no say
Ranks = tuple[int | None, ...]


def memory_orders(graph: Graph, layouts: Sequence[Layout]) -> dict[Node, Order | None]:
    """The order of every node's value; None is C order."""
    if all(layout == "C" for layout in layouts) and not any(_may_turn(n) for n in graph.nodes):
        return dict.fromkeys(graph.nodes)
    ranks: dict[Node, Ranks] = {}
    for n in graph.nodes:
        ranks[n] = _ranks(n, [ranks[a] for a in n.args], layouts)
    return {n: _order(r) for n, r in ranks.items()}


def _may_turn(n: Node) -> bool:
    """Whether a node can bring axes out of C order."""
    if not isinstance(n.params, View):
        return False
    axes = [d.axis for d in n.params.dims if isinstance(d, Along)]
    return axes != sorted(axes)


def _ranks(n: Node, args: list[Ranks], layouts: Sequence[Layout]) -> Ranks:
    kind = n.op.kind
    if kind is Kind.INPUT:
        return _input_ranks(n, layouts[n.params])
    if kind is Kind.VIEW:
        return _view_ranks(n.params, args[0])
    if kind is Kind.REDUCE:
        return tuple(r for axis, r in enumerate(args[0]) if axis not in n.params)
    if kind is Kind.ELEMENTWISE:
        return _elementwise_ranks(n, args)
    if kind in (Kind.CELL, Kind.UPDATE, Kind.SCATTER) and args:
        if any(r is not None for r in args[0]):
            return args[0]
        return _c_ranks(n)
    if kind is Kind.PAD and _order(args[0]) == tuple(reversed(range(len(n.shape)))):
        return tuple(range(len(n.shape)))
    return _c_ranks(n)


def _c_ranks(n: Node) -> Ranks:
    last = len(n.shape) - 1
    return tuple(None if size == 1 else last - d for d, size in enumerate(n.shape))


def _input_ranks(n: Node, layout: Layout) -> Ranks:
    """From the order text of a layout, which names the axes from the largest stride to the
    least."""
    rank = len(n.shape)
    if layout == "C" or len(layout) <= rank:
        return _c_ranks(n)
    nested = [ord(c) - ord("0") for c in layout[rank].split("|")[0]]
    place = {d: len(nested) - 1 - k for k, d in enumerate(nested)}
    return tuple(None if layout[d] in "0x" else place.get(d) for d in range(rank))


def input_strides(n: Node, layout: Layout) -> tuple[Size, ...]:
    """Strides of an array input in elements; where the order text says that two axes merge, one
    stride is the other's times an extent."""
    strides = list(strides_of(n.params, n.shape, layout))
    rank = len(n.shape)
    if layout == "C" or len(layout) <= rank:
        return tuple(strides)
    long = [d for d in range(rank) if layout[d] != "x"]
    pairs = list(zip(long, long[1:], layout[rank].split("|")[1], strict=False))
    for one, after, flag in pairs:
        if flag == "f" and layout[after] in "pn":
            strides[after] = strides[one] * n.shape[one]
    for one, after, flag in reversed(pairs):
        if flag == "m" and layout[one] in "pn":
            strides[one] = strides[after] * n.shape[after]
    return tuple(strides)


def _view_ranks(view: View, base: Ranks) -> Ranks:
    found: list[int | None] = [None] * len(view.shape)
    for entry, rank in zip(view.dims, base, strict=True):
        if isinstance(entry, Along) and rank is not None and view.shape[entry.axis] != 1:
            before = found[entry.axis]
            found[entry.axis] = rank if before is None else max(before, rank)
    return tuple(found)


def _elementwise_ranks(n: Node, args: list[Ranks]) -> Ranks:
    """NumPy's nditer: insertion sort of the axes, conflicts between operands go to C order."""
    nested: list[int] = []  # innermost first
    for axis in range(len(n.shape) - 1, -1, -1):
        place = len(nested)
        for k in range(len(nested) - 1, -1, -1):
            inner = _lies_inside(axis, nested[k], args)
            if inner is None:
                continue
            if not inner:
                break
            place = k
        nested.insert(place, axis)
    found = {axis: rank for rank, axis in enumerate(nested)}
    return tuple(None if n.shape[d] == 1 else found[d] for d in range(len(n.shape)))


def _lies_inside(axis: int, other: int, args: list[Ranks]) -> bool | None:
    """Whether `axis` should go inside `other`; None when no operand has an opinion."""
    answer: bool | None = None
    for ranks in args:
        mine, its = ranks[axis], ranks[other]
        if mine is None or its is None:
            continue
        if its <= mine:
            return False
        answer = True
    return answer


def _order(ranks: Ranks) -> Order | None:
    """The permutation; axes without a say keep the place they have in C order."""
    said = sorted((d for d, r in enumerate(ranks) if r is not None), key=lambda d: -(ranks[d] or 0))
    if said == sorted(said):
        return None
    outward = iter(said)
    return tuple(d if r is None else next(outward) for d, r in enumerate(ranks))
