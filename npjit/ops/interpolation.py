"""np.interp: piecewise linear interpolation, in NumPy's own steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.ops.errors import NotCaptured
from npjit.ops.gathering import gather
from npjit.ops.kinds import function
from npjit.ops.operands import as_array, find_block, result
from npjit.ops.tracer import Tracer, is_traced


@function(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """np.interp for increasing xp."""
    block = find_block(x, xp, fp, left, right, period)
    values = as_array(block, fp)
    kind = np.complex128 if values.dtype.kind == "c" else np.float64
    at, places = (as_array(block, v).astype(np.float64) for v in (x, xp))
    values = values.astype(kind)
    if places.ndim != 1 or values.ndim != 1 or places.raw_shape[0] == 0:
        raise ValueError("Data points must be 1-D sequences")
    if not block.sizes.decide_eq(places.raw_shape[0], values.raw_shape[0]):
        raise ValueError("fp and xp are not of the same length.")
    if period is not None:
        left = right = None
        at, places, values = _periodic(at, places, values, period)
    made = _interpolated(at, places, values)
    low = values[0] if left is None else left
    high = values[-1] if right is None else right
    made = np.where(at < places[0], low, np.where(at > places[-1], high, made))
    return result(block, np.where(np.isnan(at), at, made).astype(kind).node)


def _periodic(at: Any, places: Any, values: Any, period: Any) -> tuple[Any, Any, Any]:
    if is_traced(period):
        raise NotCaptured("np.interp with a traced period")
    if period == 0:
        raise ValueError("period must be a non-zero value")
    size = abs(period)
    at, places = at % size, places % size
    order = np.argsort(places)
    places, values = np.take(places, order), np.take(values, order)
    wide = np.concatenate((places[-1:] - size, places, places[0:1] + size))
    return at, wide, np.concatenate((values[-1:], values, values[0:1]))


def _interpolated(at: Tracer, places: Tracer, values: Tracer) -> Any:
    """Between the first and the last place."""
    n = places.shape[0]
    if n == 1:
        return values[0]
    index = np.searchsorted(places, at, "right") - 1
    low = np.minimum(np.maximum(index, 0), n - 2)
    x0, x1 = (_at(places, low + k) for k in range(2))
    y0, y1 = (_at(values, low + k) for k in range(2))
    slope = (y1 - y0) / (x1 - x0)
    made = slope * (at - x0) + y0
    # infinite values: from the other side, and equal ones as they are
    other = slope * (at - x1) + y1
    other = np.where(np.isnan(other) & (y0 == y1), y0, other)
    made = np.where(np.isnan(made), other, made)
    return np.where(at == x0, y0, np.where(index >= n - 1, y1, made))


def _at(values: Tracer, index: Any) -> Tracer:
    return gather(values.block, values.node, (0,), 0, index.node)
