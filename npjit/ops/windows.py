"""Sliding windows: np.lib.stride_tricks.sliding_window_view.

In: an array and the extents of a window. Out: all windows, one more axis for each that they move
along. No View has two axes along one dimension, so the elements are gathered; as NumPy's result
shares memory, nobody may write while both are alive:

    sliding_window_view(x, 3)   ->   x[arange(n - 2)[:, None] + arange(3)]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.size import Size
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.gathering import gather
from npjit.ops.kinds import function
from npjit.ops.movement import read_shape
from npjit.ops.operands import as_array, find_block, one_axis
from npjit.ops.sharing import share_unwritten
from npjit.ops.tracer import Tracer, fresh


@function(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: Any = False, writeable: Any = False
) -> Tracer:
    """np.lib.stride_tricks.sliding_window_view, for reading."""
    if subok or writeable:
        raise NotCaptured("sliding_window_view with subok or writeable")
    array = as_array(find_block(x, window_shape), x)
    extents = read_shape(window_shape)
    given = range(array.ndim) if axis is None else axis
    axes = [one_axis(a, array.ndim) for a in (given if np.iterable(given) else (given,))]
    if len(axes) != len(extents):
        raise ValueError("window_shape and axis must have the same number of entries")
    found = array
    for along, extent in zip(axes, extents, strict=True):
        found = _windows(found, along, extent)
    return share_unwritten(array, found) if axes else found


def _windows(array: Tracer, axis: int, extent: Size) -> Tracer:
    """Windows along one axis; their own axis is the last one."""
    block, n = array.block, array.raw_shape[axis]
    if not block.sizes.decide_le(0, extent):
        raise ValueError("`window_shape` cannot contain negative values")
    if not block.sizes.decide_le(extent, n):
        raise ValueError("window shape cannot be larger than input array shape")
    first: Any = fresh(block, build.iota(block, n - extent + 1))
    at = first[:, None] + fresh(block, build.iota(block, extent))
    made: Any = gather(block, array.node, (axis,), axis, at.node)
    moved: Tracer = np.moveaxis(made, axis + 1, -1)
    return moved
