"""np.pad: zeros are a PAD node, other borders are joined from views of the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.size import Shape, Size
from npjit.core.view import Cut
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.join import join
from npjit.ops.kinds import function
from npjit.ops.movement import part
from npjit.ops.operands import (
    as_array,
    find_block,
)
from npjit.ops.symint import size_of, wrap
from npjit.ops.tracer import Tracer, as_node, fresh


def _widths(pad_width: Any, rank: int) -> list[tuple[Size, Size]]:
    """Pairs (before, after) per axis, by NumPy's broadcasting of pad_width."""
    if isinstance(pad_width, dict):
        raise NotCaptured("np.pad with a dict of widths")
    items = pad_width if isinstance(pad_width, (tuple, list)) else [pad_width]
    if not any(isinstance(i, (tuple, list)) for i in items):
        pair = list(items) * 2 if len(items) == 1 else list(items)
        items = [pair] * rank
    pairs = [list(i) * 2 if len(i) == 1 else list(i) for i in items]
    pairs = pairs * rank if len(pairs) == 1 else pairs
    if len(pairs) != rank or any(len(p) != 2 for p in pairs):
        raise ValueError("operands could not be broadcast together")
    return [(size_of(a), size_of(b)) for a, b in pairs]


@function(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tracer:
    """np.pad with constant, edge, wrap, reflect and symmetric modes."""
    a = as_array(find_block(array, pad_width), array)
    widths = _widths(pad_width, a.ndim)
    if any(not a.block.sizes.decide_le(0, n) for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        return _pad_constant(a, widths, kwargs.pop("constant_values", 0), kwargs)
    if kwargs or mode not in _BORDERS:
        raise NotCaptured(f"np.pad with mode={mode!r}")
    for axis, (before, after) in enumerate(widths):
        a = _BORDERS[mode](a, axis, before, after)
    return fresh(a.block, a.node)


def _pad_constant(a: Tracer, widths: list[tuple[Size, Size]], value: Any, rest: Any) -> Tracer:
    if rest or (isinstance(value, (tuple, list, np.ndarray)) and np.ndim(value)):
        raise NotCaptured("np.pad with several constants")
    block = a.block
    padded = zero_padded(block, a.node, widths)
    if type(value) in (int, float) and value == 0:
        return fresh(block, padded)
    fill = build.cast(block, as_node(block, value), a.dtype)
    inside = zero_padded(block, build.broadcast(block, _true(block), a.raw_shape), widths)
    return fresh(block, build.select(block, inside, padded, fill))


def _true(block: Block) -> Node:
    return build.constant(block, True, build.BOOL, Weight.ARRAY)


def zero_padded(block: Block, node: Node, widths: Sequence[tuple[Size, Size]]) -> Node:
    """The node with zeros around it."""
    if all(pair == (0, 0) for pair in widths):
        return node
    shape: Shape = tuple(n + a + b for n, (a, b) in zip(node.shape, widths, strict=True))
    return block.add(kinds.PAD, (node,), tuple(widths), TensorType(shape, node.dtype))


def _with_borders(a: Tracer, axis: int, before: list[Tracer], after: list[Tracer]) -> Tracer:
    pieces = [p for p in (*before, a, *after) if p.raw_shape[axis] != 0]
    return join(a.block, [p.node for p in pieces], axis) if len(pieces) > 1 else a


def _pad_edge(a: Tracer, axis: int, before: Size, after: Size) -> Tracer:
    n = a.raw_shape[axis]

    def spread(start: Size, length: Size) -> Tracer:
        shape = list(a.shape)
        shape[axis] = wrap(a.block, length)
        return np.broadcast_to(part(a, axis, start, 1), tuple(shape))

    return _with_borders(a, axis, [spread(0, before)], [spread(n - 1, after)])


def _pad_wrap(a: Tracer, axis: int, before: Size, after: Size) -> Tracer:
    n = a.raw_shape[axis]
    _require_within(a, n, before, after)
    left, right = part(a, axis, n - before, before), part(a, axis, 0, after)
    return _with_borders(a, axis, [left], [right])


def _mirrored(edge: int) -> Any:
    """reflect skips the edge element (1), symmetric repeats it (0)."""

    def bordered(a: Tracer, axis: int, before: Size, after: Size) -> Tracer:
        n = a.raw_shape[axis]
        _require_within(a, n - edge, before, after)
        left = _backwards(a, axis, before - 1 + edge, before)
        right = _backwards(a, axis, n - 1 - edge, after)
        return _with_borders(a, axis, [left], [right])

    return bordered


def _backwards(a: Tracer, axis: int, start: Size, length: Size) -> Tracer:
    entries = [Cut(0, 1, n) for n in a.raw_shape]
    entries[axis] = Cut(start, -1, length)
    return a.through(views.index(a.raw_shape, entries))


def _require_within(a: Tracer, n: Size, before: Size, after: Size) -> None:
    sizes = a.block.sizes
    if not (sizes.decide_le(before, n) and sizes.decide_le(after, n)):
        raise NotCaptured("np.pad by more than the array's own extent")


_BORDERS = {
    "edge": _pad_edge,
    "wrap": _pad_wrap,
    "reflect": _mirrored(1),
    "symmetric": _mirrored(0),
}
