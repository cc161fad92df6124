"""Running folds along an axis: cumsum, cumprod, `ufunc.accumulate`, and differences of them.

A SCAN node's argument has the fold's element type already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.core.dtypes import c_name
from npjit.core.graph import TensorType
from npjit.core.op import Kind, Op, Reduction
from npjit.ops import build
from npjit.ops.create import counting
from npjit.ops.errors import NotCaptured
from npjit.ops.gathering import put
from npjit.ops.kinds import function, row
from npjit.ops.movement import ravel
from npjit.ops.operands import as_array, deliver, dtype_of, find_block, one_axis
from npjit.ops.putting import along_axis
from npjit.ops.scatter import SCATTER_ADD
from npjit.ops.tracer import Tracer, fresh

DType = np.dtype[Any]

# ---------------------------------------------------------------- rows


def _reversed_sum(g: Any, axis: int) -> Any:
    """At each place the sum of it and of all behind it."""
    return np.flip(np.cumsum(np.flip(g, axis), axis), axis)


def _sum_vjp(axis: int, g: Any, y: Any, x: Any) -> list[Any]:
    return [_reversed_sum(g, axis)]


def _prod_vjp(axis: int, g: Any, y: Any, x: Any) -> list[Any]:
    """By division; for the first zero by the products that leave it out. Behind it products vanish
    in value, though not their derivatives."""
    is_zero = x == 0
    zeros = np.cumsum(is_zero, axis)
    is_first = is_zero & (zeros == 1)
    others = _reversed_sum(g * np.conj(y), axis) / np.conj(np.where(is_zero, 1, x))
    without = np.where(zeros >= 1, np.cumprod(np.where(is_first, 1, x), axis), 0)
    for_first = np.sum(g * np.conj(without), axis, keepdims=True)
    return [np.where(is_first, for_first, np.where(is_zero, 0, others))]


def _extreme_vjp(axis: int, g: Any, y: Any, x: Any) -> list[Any]:
    """Each result's gradient goes to the element that it still is, the last one of equals."""
    counted = counting(x.block, x.raw_shape[axis])
    places = counted[(slice(None), *[None] * (x.ndim - 1 - axis))]
    holder = np.maximum.accumulate(np.where(x == y, places, 0), axis)
    made = fresh(g.block, np.zeros_like(g).node)
    put(made.cell, along_axis(made, holder, axis), g, SCATTER_ADD)
    return [made]


def _logaddexp_vjp(axis: int, g: Any, y: Any, x: Any) -> list[Any]:
    last = np.max(y, axis, keepdims=True)
    return [np.exp(x - last) * _reversed_sum(g * np.exp(last - y), axis)]


def _scan(name: str, ufunc: np.ufunc, join: str, style: str, vjp: Callable[..., Any]) -> Op:
    def text(params: int, arguments: list[DType], result: DType) -> str:
        return f"nj_scan<{c_name(result)}, nj_join_{join}>(api, arrays[0], arrays[1], {params})"

    def evaluate(node: Any, x: Any) -> Any:
        return ufunc.accumulate(x, node.params, node.dtype)

    return row(Op(name, Kind.SCAN, evaluate, c=text, cost=4, vjp=vjp, reduction=Reduction(style)))


SCANS = {
    np.add: _scan("cumulative_sum", np.add, "add", "sum", _sum_vjp),
    np.multiply: _scan("cumulative_prod", np.multiply, "multiply", "product", _prod_vjp),
    np.maximum: _scan("cumulative_maximum", np.maximum, "maximum", "max", _extreme_vjp),
    np.minimum: _scan("cumulative_minimum", np.minimum, "minimum", "min", _extreme_vjp),
    np.logaddexp: _scan(
        "cumulative_logaddexp", np.logaddexp, "logaddexp", "logaddexp", _logaddexp_vjp
    ),
}


# ---------------------------------------------------------------- functions


def _run(
    ufunc: np.ufunc, a: Any, axis: Any, dtype: Any = None, out: Any = None, flat: bool = False
) -> Any:
    """A running fold; `flat`: axis=None is the flattened array."""
    array = as_array(find_block(a, out), a)
    block = array.block
    if axis is None and flat:
        array, axis = ravel(array), 0
    place = one_axis(axis, array.ndim)
    asked = dtype_of(dtype)
    kind = asked or (out.dtype if type(out) is Tracer else _fold_dtype(ufunc, array.dtype))
    node = build.cast(block, array.node, build.require_known(kind))
    if node.shape[place] == 1:
        return deliver(out, fresh(block, node))
    type_ = TensorType(node.shape, node.dtype)
    return deliver(out, fresh(block, block.add(SCANS[ufunc], (node,), place, type_)))


def _fold_dtype(ufunc: np.ufunc, dtype: DType) -> DType:
    """The element type that NumPy accumulates in."""
    return ufunc.accumulate(np.ones(1, dtype)).dtype


def _sum_of(ufunc: np.ufunc) -> Callable[..., Any]:
    def cumulative(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        return _run(ufunc, a, axis, dtype, out, flat=True)

    return cumulative


cumsum = function(np.cumsum, "cumsum")(_sum_of(np.add))
cumprod = function(np.cumprod, "cumprod")(_sum_of(np.multiply))


def _accumulate_of(ufunc: np.ufunc) -> Callable[..., Any]:
    def accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        (target,) = out if isinstance(out, tuple) else (out,)
        return _run(ufunc, array, axis, dtype, target)

    return accumulate


for _ufunc in SCANS:
    function((_ufunc, "accumulate"))(_accumulate_of(_ufunc))


@function(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """np.nancumsum."""
    return cumsum(_without_nan(a, 0), axis, dtype, out)


@function(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """np.nancumprod."""
    return cumprod(_without_nan(a, 1), axis, dtype, out)


def _without_nan(a: Any, filler: int) -> Any:
    array = as_array(find_block(a), a)
    if array.dtype.kind not in "fc":
        return array
    return np.where(np.isnan(array), array.dtype.type(filler), array)


def _with_initial(fold: Callable[..., Any], start: int) -> Callable[..., Any]:
    def cumulative(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: Any = False,
    ) -> Any:
        array = as_array(find_block(x), x)
        if axis is None:
            if array.ndim > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument")
            axis = 0
        made = fold(array, axis, dtype)
        if include_initial:
            place = one_axis(axis, array.ndim)
            shape = (*array.shape[:place], 1, *array.shape[place + 1 :])
            one = fresh(array.block, build.constant(array.block, start, made.dtype))
            first = np.broadcast_to(one, shape)
            made = np.concatenate([first, made], axis=place)
        return deliver(out, made)

    return cumulative


if hasattr(np, "cumulative_sum"):
    function(np.cumulative_sum)(_with_initial(cumsum, 0))
    function(np.cumulative_prod)(_with_initial(cumprod, 1))


@function(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * np.pi) -> Tracer:
    """np.unwrap of floats with a known period."""
    array = as_array(find_block(p), p)
    if array.dtype.kind != "f" or not isinstance(period, (int, float)):
        raise NotCaptured("np.unwrap of integers, or with a traced period")
    place = one_axis(axis, array.ndim)
    steps = np.diff(array, axis=place)
    high = period / 2
    least = high if discont is None else discont
    moved = np.mod(steps + high, period) - high
    moved = np.where((moved == -high) & (steps > 0), high, moved)
    change = np.where(np.abs(steps) < least, 0, moved - steps)
    rest = (*[slice(None)] * place, slice(1, None))
    first = (*[slice(None)] * place, slice(0, 1))
    return np.concatenate([array[first], array[rest] + np.cumsum(change, place)], axis=place)
