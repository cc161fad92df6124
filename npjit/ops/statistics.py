"""Means, variances and other summaries, made of other rows by NumPy's own formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.dtypes import accumulator_of
from npjit.core.size import product
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import function
from npjit.ops.operands import as_array, deliver, dtype_of, find_block, is_set, many_axes
from npjit.ops.reduce import SINGLE, squared_deviations
from npjit.ops.symint import wrap
from npjit.ops.tracer import Tracer

Absent = np._NoValue


def count_along(a: Tracer, axis: Any) -> Any:
    """How many elements these axes have, as an int."""
    return wrap(a.block, product(a.raw_shape[i] for i in many_axes(axis, a.ndim)))


def _counted(a: Tracer, axis: Any, where: Any, keepdims: Any) -> Any:
    """How many elements `where` selects."""
    if where is True or where is Absent:
        return count_along(a, axis)
    mask = np.broadcast_to(np.asarray(where) if not _traced(where) else where, a.shape)
    return np.sum(mask, axis=axis, keepdims=keepdims)


def _traced(value: Any) -> bool:
    return type(value) is Tracer


def _share(total: Tracer, count: Any) -> Tracer:
    """total / count in the dtype of the total."""
    if _traced(count):
        count = count.astype(total.dtype)
    return np.true_divide(total, count)


def root(v: Tracer) -> Tracer:
    """The square root, with gradient 0 where v is 0."""
    flat = v == 0
    return np.where(flat, 0, np.sqrt(np.where(flat, 1, v)))[()]


def squared_size(a: Tracer) -> Tracer:
    """|a|^2 as a real array."""
    if a.dtype.kind == "c":
        return np.square(a.real) + np.square(a.imag)
    return np.square(a)


def _is_whole(a: Tracer, axis: Any) -> bool:
    """Whether every element goes into one number: memory is then read once for a mean and once
    more for distances from it, unless one reduction does both."""
    return a.ndim > 0 and len(many_axes(axis, a.ndim)) == a.ndim


def _accumulator(a: Tracer, dtype: Any) -> np.dtype[Any]:
    wanted = dtype_of(dtype)
    if wanted is not None:
        if wanted.kind in "iub":
            raise NotCaptured("a mean or variance with an integer dtype")
        return wanted
    return build.FLOAT64 if a.dtype.kind in "iub" else a.dtype


@function(np.mean, "mean")
def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """np.mean."""
    array = as_array(find_block(a, out, where), a)
    many_axes(axis, array.ndim)
    kind = _accumulator(array, dtype)
    inner = accumulator_of(kind) if dtype is None else kind
    kept = is_set(keepdims)
    total = np.sum(array, axis=axis, dtype=inner, keepdims=kept, where=where)
    made = _share(total, _counted(array, axis, where, kept))
    return deliver(out, made.astype(kind, copy=False))


@function(np.var, "var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = Absent,
    correction: Any = Absent,
) -> Any:
    """np.var: the mean of squared deviations from the mean."""
    array = as_array(find_block(a, out, where), a)
    many_axes(axis, array.ndim)
    kind = _accumulator(array, dtype)
    if dtype is not None and "c" in (kind.kind, array.dtype.kind):
        raise NotCaptured("a variance of complex numbers, or with a complex dtype")
    if correction is not Absent:
        if ddof != 0:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
    kept = is_set(keepdims)
    own_mean = mean is Absent or mean is None
    if own_mean and where is True and _is_whole(array, axis) and kind in (SINGLE, build.FLOAT64):
        total = squared_deviations(array.astype(kind, copy=False), kept)
    else:
        if own_mean:
            total = np.sum(array, axis=axis, dtype=kind, keepdims=True, where=where)
            mean = _share(total, _counted(array, axis, where, True))
        squared = squared_size(array - mean)
        kind = squared.dtype if array.dtype.kind == "c" else kind
        total = np.sum(squared, axis=axis, dtype=kind, keepdims=kept, where=where)
    left = _counted(array, axis, where, kept) - ddof
    left = np.maximum(left, 0) if _traced(left) else (left if left > 0 else 0)
    return deliver(out, _share(total, left))


@function(np.std, "std")
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = Absent,
    correction: Any = Absent,
) -> Any:
    """np.std."""
    find_block(a, out, where)
    variance = var(
        a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
    )
    return deliver(out, root(variance))


@function(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False
) -> Any:
    """np.average."""
    block = find_block(a, weights)
    array = as_array(block, a)
    many_axes(axis, array.ndim)
    kept = is_set(keepdims)
    if weights is None:
        made = mean(array, axis, keepdims=kept)
        total: Any = np.full_like(made, count_along(array, axis))
        return (made, total if made.ndim else total[()]) if returned else made
    w = _spread_weights(array, as_array(block, weights), axis)
    kind = np.result_type(array.dtype, w.dtype)
    if array.dtype.kind in "iub":
        kind = np.result_type(kind, np.float64)
    total = np.sum(w, axis=axis, dtype=kind, keepdims=kept)
    some = np.all(total != 0).node
    message = "ZeroDivisionError: Weights sum to zero, can't be normalized"
    block.add(kinds.CHECK, (some,), message, some.type)
    made = np.sum(np.multiply(array, w, dtype=kind), axis=axis, keepdims=kept) / total
    if not returned:
        return made
    return made, total if total.ndim == made.ndim else np.copy(np.broadcast_to(total, made.shape))


def _spread_weights(array: Tracer, weights: Tracer, axis: Any) -> Tracer:
    """Weights along one axis, or of the array's own shape."""
    if weights.ndim == array.ndim:
        if not all(map(array.block.sizes.decide_eq, weights.raw_shape, array.raw_shape)):
            raise TypeError("Shape of weights must be consistent with shape of a")
        return weights
    axes = many_axes(axis, array.ndim)
    if axis is None or len(axes) != 1 or weights.ndim != 1:
        raise NotCaptured("np.average with weights of another shape")
    place = tuple(slice(None) if i == axes[0] else None for i in range(array.ndim))
    return weights[place]


@function(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """np.ptp."""
    array = as_array(find_block(a, out), a)
    kept = is_set(keepdims)
    high, low = (f(array, axis=axis, keepdims=kept) for f in (np.max, np.min))
    return deliver(out, high - low)


@function(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """np.count_nonzero."""
    array = as_array(find_block(a), a)
    return np.sum(array.astype(bool), axis=axis, dtype=np.int64, keepdims=keepdims)


# ---------------------------------------------------------------- NaNs left out


def _without_nan(a: Any, filler: Any) -> tuple[Tracer, Any]:
    """The array with NaNs replaced, and where they are not (True: nowhere)."""
    array = as_array(find_block(a), a)
    if array.dtype.kind not in "fc":
        return array, True
    missing = np.isnan(array)
    return np.where(missing, filler, array), ~missing


@function(np.nansum)
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """np.nansum."""
    array, _ = _without_nan(a, 0)
    return np.sum(array, axis, dtype, out, keepdims, initial=initial, where=where)


@function(np.nanprod)
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """np.nanprod."""
    array, _ = _without_nan(a, 1)
    return np.prod(array, axis, dtype, out, keepdims, initial=initial, where=where)


def _nan_extreme(reduce: Any, filler: float) -> Any:
    def extreme(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        array, present = _without_nan(a, filler)
        kept = is_set(keepdims)
        made = reduce(array, axis=axis, keepdims=kept)
        if present is not True:
            some = np.any(present, axis=axis, keepdims=kept)
            made = np.where(some, made, np.nan)[()]
        return deliver(out, made)

    return extreme


function(np.nanmax)(_nan_extreme(np.max, -np.inf))
function(np.nanmin)(_nan_extreme(np.min, np.inf))


@function(np.nanmean)
def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """np.nanmean."""
    array, present = _without_nan(a, 0)
    if present is True or where is not True:
        return mean(array, axis, dtype, out, keepdims, where=where)
    kept = is_set(keepdims)
    total = np.sum(array, axis=axis, dtype=dtype, keepdims=kept)
    count = np.sum(present, axis=axis, keepdims=kept)
    return deliver(out, _share(total, count))


@function(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """np.nanvar."""
    array, present = _without_nan(a, 0)
    if present is True:
        return var(array, axis, dtype, out, ddof, keepdims, where=where)
    if where is not True:
        raise NotCaptured("np.nanvar with where=")
    kept = is_set(keepdims)
    count = np.sum(present, axis=axis, keepdims=True)
    middle = _share(np.sum(array, axis=axis, dtype=dtype, keepdims=True), count)
    squared = squared_size(np.where(present, array - middle, 0))
    total = np.sum(squared, axis=axis, dtype=dtype, keepdims=kept)
    left = np.sum(present, axis=axis, keepdims=kept) - ddof
    made = _share(total, np.where(left > 0, left, 1))
    return deliver(out, np.where(left > 0, made, np.nan)[()])


@function(np.nanstd)
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """np.nanstd."""
    return deliver(out, root(nanvar(a, axis, dtype, None, ddof, keepdims, where=where)))


# ---------------------------------------------------------------- covariance


@function(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: Any = True,
    bias: Any = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """np.cov without weights."""
    if fweights is not None or aweights is not None:
        raise NotCaptured("np.cov with weights")
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    block = find_block(m, y)
    rows = [as_array(block, v) for v in (m, y) if v is not None]
    kind = (
        np.dtype(dtype)
        if dtype is not None
        else np.result_type(np.float64, *[r.dtype for r in rows])
    )
    rows = [np.atleast_2d(r).astype(kind) for r in rows]
    if not rowvar:
        rows = [r.T if r.shape[0] != 1 else r for r in rows]
    x = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=0)
    ddof = ddof if ddof is not None else (1 if bias == 0 else 0)
    left = x.shape[1] - ddof
    x = x - np.mean(x, axis=1, keepdims=True)
    product_ = np.matmul(x, np.conj(x.T))
    return np.squeeze(product_ * np.true_divide(1, left if left > 0 else 0.0))


@function(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: Any = True, *, dtype: Any = None) -> Any:
    """np.corrcoef."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    deviation = np.sqrt(np.diagonal(c).real)
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        raise NotCaptured("np.corrcoef of complex numbers")
    return np.clip(c, -1, 1)
