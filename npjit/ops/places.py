"""The places where a mask holds, as a row: what `x[mask]` reads.

In: a mask of one axis. Out: the positions where it holds, in order, at the front of an array with
room for all; what stands behind them nobody reads. Whatever one mask selects shares its places:

    x[m] + y[m]    ->    at = places(m)[:count];  x[at] + y[at]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.graph import Block, Node, TensorType
from npjit.core.op import Gather
from npjit.core.size import Size
from npjit.core.view import Along, View
from npjit.ops import build
from npjit.ops.extern import call, dense, extern
from npjit.ops.indexing import bind
from npjit.ops.scatter import SCATTER_ADD
from npjit.ops.tracer import as_node, fresh


def _meaning(node: Any, mask: Any) -> Any:
    found = np.flatnonzero(mask)
    return np.concatenate([found, np.zeros(mask.size - found.size, found.dtype)])


def _types(params: Any, mask: TensorType) -> list[TensorType]:
    return [dense(mask.shape, build.INT64)]


PLACES = extern("places", _meaning, _types, c="nj_places(arrays)", flat=True)


def places(block: Block, mask: Node) -> Node:
    """The positions in C order at which a mask holds."""
    return block.once(("places", mask), lambda: _made(block, mask))


def _made(block: Block, mask: Node) -> Node:
    total = build.element_count(mask.shape)
    flags = build.reshape(block, mask, (total,))
    (found,) = call(block, PLACES, [flags])
    held = as_node(block, np.sum(fresh(block, flags)))
    count = bind(block, held, 0, total)
    return _first(block, found.node, count)


def by_scatter(block: Block, mask: Node) -> Node:
    """PLACES by other rows, which run in parallel: each position is added to a zero at the number
    of those before it; those that are not wanted fill the end, so that no two meet."""
    (total,) = mask.shape
    at: Any = fresh(block, build.iota(block, total))
    held: Any = np.cumsum(fresh(block, mask), 0)
    last: Any = fresh(block, build.size_node(block, total - 1))
    ranks: Any = np.where(fresh(block, mask), held - 1, last - (at - held))
    found = np.zeros_like(at)
    found.cell.scatter(SCATTER_ADD, at.node, Gather((0,), 0), (ranks.node,))
    return found.node


def _first(block: Block, line: Node, count: Size) -> Node:
    return build.view(block, line, View(line.shape, (Along(0, 1, 0),), (count,)))
