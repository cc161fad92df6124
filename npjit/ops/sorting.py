"""Sorting and its kin: sort, argsort, partition, argpartition, lexsort, searchsorted."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from npjit.core.graph import TensorType
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.extern import call, dense, extern, like_first
from npjit.ops.kinds import function
from npjit.ops.movement import ravel
from npjit.ops.operands import array_result, as_array, common_dtype, find_block, one_axis
from npjit.ops.tracer import Tracer, as_node

# ---------------------------------------------------------------- rows


def _positions(params: Any, first: TensorType) -> list[TensorType]:
    return [dense(first.shape, np.intp)]


def _sort_vjp(params: Any, g: Any, y: Any, x: Any) -> list[Any]:
    """Each element's gradient is that of the place it went to."""
    axis, kind = params
    places = np.argsort(np.argsort(x, axis, kind=kind), axis, kind="stable")
    return [np.take_along_axis(g, places, axis)]


def _partition_vjp(params: Any, g: Any, y: Any, x: Any) -> list[Any]:
    axis = params[0]
    (order,) = call(x.block, ARGPARTITION, [x.node], params)
    return [np.take_along_axis(g, np.argsort(order, axis, kind="stable"), axis)]


def _kth(params: Any, x: Any) -> Any:
    """Places to partition by; None is the middle, and the end, where NaN goes."""
    axis, kth = params
    n = x.shape[axis]
    return ((n - 1) // 2, n // 2, n - 1) if kth is None else kth


def _search_types(params: Any, a: TensorType, v: TensorType) -> list[TensorType]:
    return [dense(v.shape, np.intp)]


SORT = extern(
    "sort", lambda node, x: np.sort(x, node.params[0], node.params[1]), like_first, vjp=_sort_vjp
)
ARGSORT = extern(
    "argsort", lambda node, x: np.argsort(x, node.params[0], node.params[1]), _positions, flat=True
)
PARTITION = extern(
    "partition",
    lambda node, x: np.partition(x, _kth(node.params, x), node.params[0]),
    like_first,
    vjp=_partition_vjp,
)
ARGPARTITION = extern(
    "argpartition",
    lambda node, x: np.argpartition(x, _kth(node.params, x), node.params[0]),
    _positions,
    flat=True,
)
LEXSORT = extern(
    "lexsort",
    lambda node, *keys: np.lexsort(keys, node.params),
    lambda params, first, *rest: [dense(first.shape, np.intp)],
    flat=True,
)
SEARCHSORTED = extern(
    "searchsorted", lambda node, a, v: np.searchsorted(a, v, node.params), _search_types, flat=True
)


# ---------------------------------------------------------------- functions


def _kind(kind: Any, stable: Any) -> str:
    """The algorithm; None is the usual one, and NumPy's names for the stable ones mean the same."""
    if stable:
        if kind is not None:
            raise ValueError("`kind` and `stable` parameters can't be provided at the same time")
        return "stable"
    return {"quicksort": None, "mergesort": "stable"}.get(kind, kind)


def _flat(a: Any, axis: Any) -> tuple[Tracer, int]:
    """The array and its axis; None is the flattened array."""
    array = as_array(find_block(a), a)
    if axis is None:
        return ravel(array), 0
    if not array.ndim:
        raise NotCaptured("sorting a 0-d array")
    return array, one_axis(axis, array.ndim)


def _in_order(row: Any, a: Any, axis: Any, kind: Any, order: Any, stable: Any) -> Tracer:
    if order is not None:
        raise NotCaptured("sorting by fields")
    array, axis = _flat(a, axis)
    (made,) = call(array.block, row, [array.node], (axis, _kind(kind, stable)))
    return made


@function(np.sort)
def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tracer:
    """np.sort."""
    return _in_order(SORT, a, axis, kind, order, stable)


@function(np.argsort, "argsort")
def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Tracer:
    """np.argsort."""
    return _in_order(ARGSORT, a, axis, kind, order, stable)


@function("sort")
def sort_method(
    a: Tracer, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    """ndarray.sort, in place."""
    if axis is None:
        raise TypeError("ndarray.sort takes an axis")
    a.write(sort(a, axis, kind, order, stable=stable).node)


@function(np.sort_complex)
def sort_complex(a: Any) -> Tracer:
    """np.sort_complex."""
    made = sort(a)
    if made.dtype.kind == "c":
        return made
    small = made.dtype.kind in "iu" and made.dtype.itemsize <= 2
    return made.astype(np.complex64 if small else np.complex128)


def _plain(kth: Any) -> tuple[int, ...]:
    """Places to partition by, as plain numbers."""
    items = kth if isinstance(kth, (tuple, list, np.ndarray)) else (kth,)
    if any(type(k) in (bool, np.bool_) for k in items):
        raise ValueError("Booleans unacceptable as partition index")
    return tuple(operator.index(k) for k in items)


def _divided(row: Any, a: Any, kth: Any, axis: Any, kind: Any, order: Any) -> Tracer:
    if order is not None or kind != "introselect":
        raise NotCaptured("a partition by fields, or of another kind")
    array, axis = _flat(a, axis)
    params = (axis, _plain(kth))
    block, n = array.block, array.raw_shape[axis]
    for k in params[1]:
        if not (block.sizes.decide_le(-k, n) and block.sizes.decide_le(k + 1, n)):
            raise ValueError(f"kth(={k}) out of bounds ({n})")
    (made,) = call(block, row, [array.node], params)
    return made


@function(np.partition)
def partition(
    a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Tracer:
    """np.partition."""
    return _divided(PARTITION, a, kth, axis, kind, order)


@function(np.argpartition, "argpartition")
def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Tracer:
    """np.argpartition."""
    return _divided(ARGPARTITION, a, kth, axis, kind, order)


@function("partition")
def partition_method(
    a: Tracer, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> None:
    """ndarray.partition, in place."""
    if axis is None:
        raise TypeError("ndarray.partition takes an axis")
    a.write(partition(a, kth, axis, kind, order).node)


@function(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> Tracer:
    """np.lexsort of keys of one shape: the last key is the primary one."""
    block = find_block(keys)
    parts = [as_array(block, k) for k in (keys if isinstance(keys, (tuple, list)) else list(keys))]
    axis = one_axis(axis, parts[0].ndim)
    shape = parts[0].raw_shape
    for p in parts[1:]:
        same = len(p.raw_shape) == len(shape)
        if not same or not all(map(block.sizes.decide_eq, p.raw_shape, shape)):
            raise ValueError("all keys need to be the same shape")
    (made,) = call(block, LEXSORT, [p.node for p in parts], axis)
    return made


@function(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Tracer:
    """np.searchsorted."""
    block = find_block(a, v, sorter)
    array, values = as_array(block, a), as_node(block, v)
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got '{side}')")
    if array.ndim != 1:
        raise ValueError("object too deep for desired array")
    if sorter is not None:
        order = as_array(block, sorter)
        if order.ndim != 1 or order.dtype.kind not in "iu":
            raise NotCaptured("np.searchsorted with this sorter")
        if order.shape != array.shape:
            raise ValueError("sorter.size must equal a.size")
        array = np.take(array, order)
    dtype = common_dtype(array.block, [array.node, values])
    nodes = [build.cast(block, n, dtype) for n in (array.node, values)]
    (made,) = call(block, SEARCHSORTED, nodes, side)
    return made


@function("searchsorted")
def searchsorted_method(a: Tracer, v: Any, side: Any = "left", sorter: Any = None) -> Tracer:
    """ndarray.searchsorted."""
    return searchsorted(a, v, side, sorter)


@function(np.digitize)
def digitize(x: Any, bins: Any, right: Any = False) -> Tracer:
    """np.digitize for bins whose order is known: those of a NumPy array."""
    block = find_block(x)
    if isinstance(bins, Tracer):
        raise NotCaptured("np.digitize with traced bins: their order decides")
    edges = np.asarray(bins)
    steps = np.diff(edges)
    if np.all(steps >= 0):
        return searchsorted(edges, as_array(block, x), "left" if right else "right")
    if not np.all(steps <= 0):
        raise ValueError("bins must be monotonically increasing or decreasing")
    found = searchsorted(edges[::-1], as_array(block, x), "right" if right else "left")
    return array_result(block, (len(edges) - found).node)
