"""Arrays that repeat or shift another: roll, tile, repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.size import Size
from npjit.ops.errors import NotCaptured
from npjit.ops.join import join
from npjit.ops.kinds import function
from npjit.ops.memory_order import in_order_of
from npjit.ops.movement import part, ravel
from npjit.ops.operands import (
    as_array,
    find_block,
    listed_axes,
    one_axis,
)
from npjit.ops.symint import is_int, size_of
from npjit.ops.tracer import Tracer, fresh


@function(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Tracer:
    """np.roll by a known number of places."""
    array = as_array(find_block(a), a)
    if axis is None:
        return np.reshape(roll(ravel(array), shift, 0), array.shape)
    axes = listed_axes(axis, array.ndim)
    shifts = shift if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if len(shifts) != len(axes):
        if len(axes) != 1:
            raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
        axes = axes * len(shifts)
    rolled = array
    for places, i in zip(shifts, axes, strict=True):
        rolled = _rolled(rolled, size_of(places), i)
    return fresh(array.block, in_order_of(array.block, rolled.node, array.node))


def _rolled(array: Tracer, places: Size, axis: int) -> Tracer:
    n = array.raw_shape[axis]
    sizes = array.block.sizes
    if sizes.decide_eq(n, 0):
        return array
    if sizes.decide_le(places, -1) and sizes.decide_le(1 - n, places):
        places = places + n
    if not (sizes.decide_le(0, places) and sizes.decide_le(places + 1, n)):
        places = sizes.specialise(places) % sizes.specialise(n)
    if places == 0:
        return array
    tail = part(array, axis, n - places, places)
    head = part(array, axis, 0, n - places)
    return join(array.block, [tail.node, head.node], axis)


@function(np.tile)
def tile(A: Any, reps: Any) -> Tracer:
    """np.tile."""
    block = find_block(A, reps)
    array = as_array(block, A)
    counts = list(reps) if isinstance(reps, (tuple, list)) else [reps]
    rank = max(array.ndim, len(counts))
    counts = [1] * (rank - len(counts)) + counts
    old = [1] * (rank - array.ndim) + list(array.shape)
    spread = np.reshape(array, tuple(n for pair in old for n in (1, pair)))
    shape = tuple(n for c, m in zip(counts, old, strict=True) for n in (c, m))
    tiled = np.broadcast_to(spread, shape)
    final = tuple(c * m for c, m in zip(counts, old, strict=True))
    return np.copy(np.reshape(tiled, final))


@function(np.repeat, "repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    """np.repeat, every element the same known number of times."""
    array = as_array(find_block(a, repeats), a)
    if axis is None:
        array, axis = ravel(array), 0
    if not is_int(repeats) and not isinstance(repeats, np.integer):
        raise NotCaptured("np.repeat with an array of counts")
    place = one_axis(axis, array.ndim)
    spread = array.through(views.expand(array.raw_shape, [place + 1]))
    shape = list(array.shape)
    wide = np.broadcast_to(spread, (*shape[: place + 1], repeats, *shape[place + 1 :]))
    shape[place] = shape[place] * repeats
    return np.copy(np.reshape(wide, tuple(shape)))
