"""Functions that read and write at computed places: take, take_along_axis, put_along_axis,
`ufunc.at`, bincount."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block, Node, Weight
from npjit.core.op import Gather, Kind, Op
from npjit.core.size import Size
from npjit.ops import build, kinds
from npjit.ops.cell import Cell
from npjit.ops.errors import NotCaptured
from npjit.ops.gathering import Address, gather, in_range, put, set_at
from npjit.ops.indexing import is_basic
from npjit.ops.kinds import function
from npjit.ops.movement import ravel
from npjit.ops.operands import as_array, find_block, has_traced, one_axis
from npjit.ops.scatter import (
    REPEATED,
    REPEATED_UNARY,
    SCATTER_ADD,
    SCATTER_LAST,
    SCATTER_MAXIMUM,
    SCATTER_MINIMUM,
    SCATTER_MULTIPLY,
)
from npjit.ops.symint import is_int, size_of
from npjit.ops.tracer import Tracer, as_node, fresh

# ---------------------------------------------------------------- take


def _positions(block: Block, indices: Any) -> Any:
    """Indices as numbers, also where they are bools: np.take knows no masks."""
    if is_int(indices):
        return indices
    if type(indices) is not Tracer and not has_traced(indices):
        indices = np.asarray(indices)
    elif type(indices) is not Tracer:
        indices = as_array(block, indices)
    if indices.dtype.kind not in "biu":
        raise TypeError("np.take takes integers")
    return indices.astype(np.int64) if indices.dtype == np.bool_ else indices


@function(np.take, "take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    """np.take, as indexing; the modes clip and wrap change the indices before."""
    if out is not None:
        raise NotCaptured("np.take with out=")
    array = as_array(find_block(a, indices), a)
    indices = _positions(array.block, indices)
    if axis is None:
        array, place = ravel(array), 0
    else:
        place = one_axis(axis, array.ndim)
    if mode == "raise":
        return array[(*[slice(None)] * place, indices)]
    n = array.shape[place]
    if mode not in ("clip", "wrap"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    block = array.block
    index = as_array(block, indices).astype(np.int64)
    index = np.minimum(np.maximum(index, 0), n - 1) if mode == "clip" else index % n
    return gather(block, array.node, (place,), place, index.node)


# ---------------------------------------------------------------- along an axis


def along_axis(array: Tracer, indices: Any, axis: Any) -> Address:
    """The address with an index array for every axis, `indices` along one."""
    block = array.block
    index = as_array(block, indices)
    if index.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if index.ndim != array.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    place = one_axis(axis, array.ndim)
    index_shape = (*index.raw_shape[:place], 1, *index.raw_shape[place + 1 :])
    own_shape = (*array.raw_shape[:place], 1, *array.raw_shape[place + 1 :])
    around = build.broadcast_shapes(block, [own_shape, index_shape])
    shape = (*around[:place], index.raw_shape[place], *around[place + 1 :])
    nodes = []
    for d, n in enumerate(shape):
        if d == place:
            found = in_range(block, index.node, array.raw_shape[d])
        else:
            found = _counted(block, n, d, array)
        nodes.append(build.stretch(block, found, shape))
    return Address(array, tuple(range(array.ndim)), tuple(nodes), 0, shape)


def _counted(block: Block, n: Size, axis: int, array: Tracer) -> Node:
    """0, 1, ... along one axis of as many as the array has; all 0 where it has one element."""
    if array.raw_shape[axis] == 1:
        return build.constant(block, 0, build.INT64)
    line = build.iota(block, n)
    others = [d for d in range(array.ndim) if d != axis]
    return build.view(block, line, views.expand(line.shape, others))


@function(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Tracer:
    """np.take_along_axis."""
    array = as_array(find_block(arr, indices), arr)
    if axis is None:
        array, axis = ravel(array), 0
    at = along_axis(array, indices, axis)
    return gather(array.block, array.node, at.dims, at.place, *at.from_front())


@function(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """np.put_along_axis."""
    array = as_array(find_block(arr, indices, values), arr)
    if axis is None:
        raise NotCaptured("np.put_along_axis with axis=None")
    put(array.cell, along_axis(array, indices, axis), values, SCATTER_LAST)


# ---------------------------------------------------------------- at


def _at(ufunc: np.ufunc, op: Op) -> Any:
    """`ufunc.at`: every value takes part, however often its place comes up."""

    def at(a: Any, indices: Any, b: Any) -> None:
        array = as_array(find_block(a, indices, b), a)
        if array is not a:
            raise NotCaptured("ufunc.at on what is no array")
        value = as_array(array.block, b)
        if _is_exact(value.node, array.dtype):
            value = value.astype(array.dtype)
        dtypes = (array.dtype, value.dtype)[: ufunc.nin]
        *_, result = build.loop_dtypes(ufunc, dtypes)
        if not np.can_cast(result, array.dtype, "same_kind"):
            raise TypeError("Cannot cast ufunc operand")
        if result != array.dtype:
            raise NotCaptured("ufunc.at that computes in another dtype than the array's")
        keys = _as_arrays(array, indices)
        if all(is_basic(k) for k in keys):
            part = array[keys]
            ufunc(part, value, out=(part,))
        else:
            set_at(array, keys, value, op)

    return at


def _is_exact(value: Node, dtype: np.dtype[Any]) -> bool:
    """Whether a known number is one of a dtype, in which adding it then rounds alike."""
    if value.op.kind is Kind.VIEW:
        value = value.args[0]
    if value.op.kind is not Kind.CONST or value.dtype.kind == "c" or dtype.kind not in "fiu":
        return False
    known = value.params.value
    if dtype.kind in "iu" and known.dtype.kind == "f":
        return False
    with np.errstate(all="ignore"):
        return bool(known.astype(dtype) == known)


def _as_arrays(array: Tracer, key: Any) -> Any:
    """A key whose whole positions are index arrays of no axes."""
    keys = key if isinstance(key, tuple) else (key,)
    block = array.block
    return tuple(
        fresh(block, build.weigh(block, as_node(block, k), Weight.ARRAY))
        if isinstance(k, (int, np.integer))
        else k
        for k in keys
    )


for _ufunc, _row in (
    (np.add, SCATTER_ADD),
    (np.multiply, SCATTER_MULTIPLY),
    (np.maximum, SCATTER_MAXIMUM),
    (np.minimum, SCATTER_MINIMUM),
):
    function((_ufunc, "at"))(_at(_ufunc, _row))


for _ufunc, _row in REPEATED.items():
    function((_ufunc, "at"))(_at(_ufunc, _row))


def _at_places(ufunc: np.ufunc, op: Op) -> Any:
    """`ufunc.at` of a ufunc of one argument."""
    at = _at(ufunc, op)
    return lambda a, indices: at(a, indices, a.dtype.type(0))


for _ufunc, _row in REPEATED_UNARY.items():
    function((_ufunc, "at"))(_at_places(_ufunc, _row))


@function((np.subtract, "at"))
def subtract_at(a: Any, indices: Any, b: Any) -> None:
    """np.subtract.at: the negative numbers are added."""
    value = b if isinstance(b, (int, float)) else as_array(find_block(a, indices, b), b)
    kinds.FUNCTIONS[np.add, "at"](a, indices, -value)


# ---------------------------------------------------------------- counting


@function(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Tracer:
    """np.bincount of numbers below `minlength`: of others the result would be longer."""
    block = find_block(x, weights, minlength)
    array = as_array(block, x)
    length = size_of(minlength) if not isinstance(minlength, np.ndarray) else minlength
    if array.ndim != 1 or array.dtype.kind not in "iub":
        raise NotCaptured("np.bincount of this array")
    if not block.sizes.decide_le(1, length):
        raise NotCaptured("np.bincount without minlength=: its length depends on values")
    index = array.astype(np.int64)
    low, high = index >= 0, index < fresh(block, build.size_node(block, length))
    ok = np.all(low & high)
    block.add(kinds.CHECK, (ok.node,), "a number outside of minlength=", ok.node.type)
    if weights is None:
        value, dtype = build.constant(block, 1, build.INT64), build.INT64
    else:
        value, dtype = as_array(block, weights).astype(np.float64).node, build.FLOAT64
    value = build.stretch(block, value, index.raw_shape)
    start = build.broadcast(block, build.constant(block, 0, dtype), (length,))
    cell = Cell(block, start)
    cell.scatter(SCATTER_ADD, value, Gather((0,), 0), (index.node,))
    return Tracer(cell, None, Weight.ARRAY)
