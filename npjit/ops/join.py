"""Arrays made of other arrays, end to end: concatenate and its kin.

A joined array is an empty cell into which each part is stored, so that each part is computed
straight into its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block, Node, Weight
from npjit.core.size import Size
from npjit.core.view import At
from npjit.ops import build
from npjit.ops.kinds import function
from npjit.ops.memory_order import is_c_ordered
from npjit.ops.movement import part, ravel
from npjit.ops.operands import as_array, common_dtype, deliver, find_block, one_axis
from npjit.ops.tracer import Tracer, fresh

# ---------------------------------------------------------------- joins


def join(block: Block, parts: Sequence[Node], axis: int) -> Tracer:
    """Nodes of one dtype and one shape but for `axis`, end to end."""
    first = parts[0]
    total: Size = 0
    for p in parts:
        total = total + p.shape[axis]
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    blank = build.constant(block, 0, first.dtype, Weight.ARRAY)
    for p in parts:
        if 0 not in p.shape and not is_c_ordered(block, p):
            # any element of it: what the array is made of tells that its order is not known
            corner = views.index(p.shape, [At(0)] * len(shape))
            blank = build.view(block, p, corner)
            break
    made = fresh(block, build.broadcast(block, blank, shape))
    place: Size = 0
    for p in parts:
        extent = p.shape[axis]
        if extent != 0:
            target = part(made, axis, place, extent)
            made.cell.write(target.window, build.stretch(block, p, target.raw_shape))
        place = place + extent
    return made


def _same_but(block: Block, nodes: Sequence[Node], axis: int) -> None:
    """All extents but that of `axis` agree, or ValueError."""
    for n in nodes[1:]:
        if len(n.shape) != len(nodes[0].shape):
            raise ValueError(
                "all the input arrays must have same number of dimensions, "
                f"but there are {len(nodes[0].shape)} and {len(n.shape)}"
            )
        for i, (a, b) in enumerate(zip(nodes[0].shape, n.shape, strict=True)):
            if i != axis and not block.sizes.decide_eq(a, b):
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis "
                    "must match exactly"
                )


@function(np.concatenate)
def concatenate(
    arrays: Any,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    """np.concatenate."""
    block = find_block(arrays, out)
    items = list(arrays) if type(arrays) is not Tracer else [arrays[i] for i in range(len(arrays))]
    made = [as_array(block, a) for a in items]
    if axis is None:
        made, axis = [ravel(a) for a in made], 0
    nodes = [a.node for a in made]
    if not nodes:
        raise ValueError("need at least one array to concatenate")
    if not nodes[0].shape:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    place = one_axis(axis, len(nodes[0].shape))
    _same_but(block, nodes, place)
    wanted = (
        build.require_known(np.dtype(dtype)) if dtype is not None else common_dtype(block, nodes)
    )
    if not all(np.can_cast(n.dtype, wanted, casting) for n in nodes):
        raise TypeError("Cannot cast array data")
    return deliver(out, join(block, [build.cast(block, n, wanted) for n in nodes], place))


@function(np.stack)
def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """np.stack."""
    block = find_block(arrays, out)
    made = [as_array(block, a) for a in arrays]
    if not made:
        raise ValueError("need at least one array to stack")
    if any(
        a.ndim != made[0].ndim
        or not all(
            block.sizes.decide_eq(m, n) for m, n in zip(a.raw_shape, made[0].raw_shape, strict=True)
        )
        for a in made
    ):
        raise ValueError("all input arrays must have the same shape")
    place = one_axis(axis, made[0].ndim + 1)
    raised = [a.through(views.expand(a.raw_shape, [place])) for a in made]
    return concatenate(raised, place, out, dtype=dtype, casting=casting)


@function(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """np.vstack."""
    block = find_block(tup)
    rows = [np.atleast_2d(as_array(block, a)) for a in tup]
    return concatenate(rows, 0, dtype=dtype, casting=casting)


if hasattr(np, "row_stack"):
    function(np.row_stack)(vstack)


@function(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """np.hstack."""
    block = find_block(tup)
    made = [np.atleast_1d(as_array(block, a)) for a in tup]
    axis = 0 if made and made[0].ndim == 1 else 1
    return concatenate(made, axis, dtype=dtype, casting=casting)


@function(np.dstack)
def dstack(tup: Any) -> Any:
    """np.dstack."""
    block = find_block(tup)
    return concatenate([np.atleast_3d(as_array(block, a)) for a in tup], 2)


@function(np.column_stack)
def column_stack(tup: Any) -> Any:
    """np.column_stack."""
    block = find_block(tup)
    columns = []
    for value in tup:
        a = as_array(block, value)
        columns.append(np.transpose(np.atleast_2d(a)) if a.ndim < 2 else a)
    return concatenate(columns, 1)


@function(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """np.append."""
    block = find_block(arr, values)
    first, second = as_array(block, arr), as_array(block, values)
    if axis is None:
        return concatenate((ravel(first), ravel(second)), 0)
    return concatenate((first, second), axis)


@function(np.block)
def block_(arrays: Any) -> Any:
    """np.block of nested lists."""
    block = find_block(arrays)
    depth = _depth(arrays)
    return _joined_block(block, arrays, depth, max(depth, _rank(block, arrays)))


def _depth(arrays: Any) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _rank(block: Block, arrays: Any) -> int:
    if isinstance(arrays, list):
        return max(_rank(block, a) for a in arrays)
    return as_array(block, arrays).ndim


def _joined_block(block: Block, arrays: Any, depth: int, rank: int) -> Any:
    if depth == 0:
        a = as_array(block, arrays)
        return a.through(views.expand(a.raw_shape, range(rank - a.ndim)))
    parts = [_joined_block(block, a, depth - 1, rank) for a in arrays]
    return concatenate(parts, -depth)
