"""np.unique and np.argwhere: as many results as the running code finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.ops import build
from npjit.ops.convert import array as as_new_array
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import function
from npjit.ops.masks import nonzero
from npjit.ops.operands import as_array, find_block
from npjit.ops.tracer import Tracer


@function(np.argwhere)
def argwhere(a: Any) -> Tracer:
    """np.argwhere."""
    array = as_array(find_block(a), a)
    if not array.ndim:
        raise NotCaptured("np.argwhere of a number")
    return np.stack([places.packed() for places in nonzero(array)], axis=1)


@function(np.unique)
def unique(
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    *,
    equal_nan: Any = True,
    sorted: Any = True,
) -> Any:
    """np.unique of all elements: those that differ from the one before them in order."""
    block = find_block(ar)
    given = as_array(block, ar)
    if axis is not None or given.dtype.kind not in "biuf":
        raise NotCaptured("np.unique along an axis, or of complex numbers")
    if build.is_empty(block, build.element_count(given.raw_shape)):
        raise NotCaptured("np.unique of no elements")
    line = np.ravel(given)
    order: Any = None
    if return_index or return_inverse:
        # as NumPy does: of equal elements the very first where its place is asked for
        order = np.argsort(line, kind="stable" if return_index else None)
    line = np.sort(line) if order is None else line[order]
    differs = line[1:] != line[:-1]
    if equal_nan and line.dtype.kind == "f":
        differs = differs & ~np.isnan(line[:-1])
    first = np.concatenate((as_new_array(block, [True]), differs))
    results = [line[first].packed()]
    if return_index:
        results.append(order[first].packed())
    if return_inverse:
        inverse = np.zeros_like(order)
        inverse[order] = np.cumsum(first) - 1
        results.append(np.reshape(inverse, given.shape))
    if return_counts:
        places = nonzero(first)[0].packed()
        ends = np.concatenate((places[1:], as_new_array(block, [line.size])))
        results.append(ends - places)
    return results[0] if len(results) == 1 else tuple(results)
