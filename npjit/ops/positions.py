"""Positions: of extremes among NaN, of flat numbers in shapes; and folds of segments between
positions (`ufunc.reduceat`)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.core.graph import Block, TensorType
from npjit.ops import build, kinds
from npjit.ops.create import counting
from npjit.ops.errors import NotCaptured
from npjit.ops.extern import call, dense, extern
from npjit.ops.kinds import function
from npjit.ops.operands import as_array, dtype_of, find_block, one_axis
from npjit.ops.symint import is_int


def _require(block: Block, held: Any, failure: str) -> None:
    """A condition on values, without which the call runs as NumPy."""
    every = np.all(held)
    block.add(kinds.CHECK, (every.node,), failure, every.node.type)


# ---------------------------------------------------------------- extremes


def _without_nan(find: Callable[..., Any], filler: float) -> Callable[..., Any]:
    def position(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
        array = as_array(find_block(a), a)
        if array.dtype.kind == "f":
            missing = np.isnan(array)
            failure = "ValueError: All-NaN slice encountered"
            _require(array.block, ~np.all(missing, axis=axis), failure)
            array = np.where(missing, array.dtype.type(filler), array)
        elif array.dtype.kind == "c":
            raise NotCaptured(f"np.nan{find.__name__} of complex numbers")
        return find(array, axis, out, keepdims=keepdims)

    return position


function(np.nanargmin)(_without_nan(np.argmin, np.inf))
function(np.nanargmax)(_without_nan(np.argmax, -np.inf))


# ---------------------------------------------------------------- flat numbers


def _extents(shape: Any) -> tuple[int, ...]:
    items = (shape,) if is_int(shape) or isinstance(shape, np.integer) else tuple(shape)
    return tuple(operator.index(n) for n in items)


@function(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> tuple[Any, ...]:
    """np.unravel_index for a known shape."""
    block = find_block(indices)
    array = as_array(block, indices)
    if array.dtype.kind not in "iu":
        raise TypeError("only int indices permitted")
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    extents = _extents(shape)
    rest = array.astype(np.int64)
    _require(block, (rest >= 0) & (rest < math.prod(extents)), "ValueError: index out of bounds")
    found: dict[int, Any] = {}
    places = range(len(extents))
    for d in reversed(places) if order == "C" else places:
        found[d] = rest % extents[d]
        rest = rest // extents[d]
    return tuple(found[d] for d in places)


@function(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    """np.ravel_multi_index for a known shape, indices in range."""
    block = find_block(multi_index)
    if mode != "raise":
        raise NotCaptured("np.ravel_multi_index with mode=")
    extents = _extents(dims)
    parts = [as_array(block, i).astype(np.int64) for i in multi_index]
    if len(parts) != len(extents):
        raise ValueError("parameter multi_index must be a sequence of length")
    made: Any = 0
    pairs = list(zip(parts, extents, strict=True))
    for part, n in pairs if order == "C" else reversed(pairs):
        _require(block, (part >= 0) & (part < n), "ValueError: invalid entry in coordinates array")
        made = made * n + part
    return made


# ---------------------------------------------------------------- segments


def _reduceat_types(params: Any, x: TensorType, at: TensorType) -> list[TensorType]:
    _, axis = params
    return [dense((*x.shape[:axis], at.shape[0], *x.shape[axis + 1 :]), x.dtype)]


def _reduceat_vjp(params: Any, g: Any, y: Any, x: Any, at: Any) -> list[Any]:
    """Of sums over segments that follow each other: every element has its segment's gradient."""
    name, axis = params
    if name != "add":
        raise NotCaptured(f"the gradient of np.{name}.reduceat")
    if at.raw_shape[0] != 1:
        _require(x.block, at[1:] > at[:-1], "segments that do not follow each other")
    places = counting(x.block, x.raw_shape[axis])
    number = np.searchsorted(at, places, "right") - 1
    spread = np.take(g, np.maximum(number, 0), axis)
    inside = (number >= 0)[(slice(None), *[None] * (x.ndim - 1 - axis))]
    return [np.where(inside, spread, 0), None]


REDUCEAT = extern(
    "reduceat",
    lambda node, x, at: getattr(np, node.params[0]).reduceat(x, at, node.params[1], x.dtype),
    _reduceat_types,
    vjp=_reduceat_vjp,
    raises=True,
)


def _reduceat_of(ufunc: np.ufunc) -> Callable[..., Any]:
    def reduceat(
        array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        block = find_block(array, indices)
        x, at = as_array(block, array), as_array(block, indices)
        if out is not None or at.ndim != 1 or at.dtype.kind not in "iu":
            raise NotCaptured("ufunc.reduceat of this kind")
        place = one_axis(axis, x.ndim)
        kind = dtype_of(dtype) or ufunc.reduceat(np.ones(1, x.dtype), [0]).dtype
        nodes = [build.cast(block, x.node, kind), build.cast(block, at.node, build.INT64)]
        (made,) = call(block, REDUCEAT, nodes, (ufunc.__name__, place))
        return made

    return reduceat


for _ufunc in (np.add, np.multiply, np.maximum, np.minimum):
    function((_ufunc, "reduceat"))(_reduceat_of(_ufunc))


# ---------------------------------------------------------------- grids


@function(np.ix_)
def ix_(*args: Any) -> tuple[Any, ...]:
    """np.ix_ of integer vectors."""
    block = find_block(*args)
    found = []
    for k, a in enumerate(args):
        array = as_array(block, a)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise NotCaptured("np.ix_ of what are no integer vectors")
        found.append(array[(*[None] * k, slice(None), *[None] * (len(args) - 1 - k))])
    return tuple(found)
