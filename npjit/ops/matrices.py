"""Functions on matrices: diagonals, triangles, traces, cross and Kronecker products, norms."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.ops.create import counting, tri
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import function
from npjit.ops.movement import diagonal, ravel
from npjit.ops.operands import as_array, find_block, is_set, many_axes, one_axis
from npjit.ops.pad import zero_padded
from npjit.ops.settings import require_usual
from npjit.ops.statistics import root, squared_size
from npjit.ops.symint import size_of
from npjit.ops.tracer import Tracer, fresh

# ---------------------------------------------------------------- diagonals and triangles


@function(np.diag)
def diag(v: Any, k: Any = 0) -> Tracer:
    """np.diag: a matrix of a vector, or the diagonal of a matrix."""
    array = as_array(find_block(v), v)
    offset = operator.index(k)
    if array.ndim == 2:
        return diagonal(array, offset)
    if array.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    n = array.shape[0] + abs(offset)
    rows = fresh(
        array.block,
        zero_padded(array.block, array.node, [(max(-offset, 0), max(offset, 0))]),
    )
    index = counting(array.block, size_of(n))
    return np.where(index[:, None] + offset == index, rows[:, None], array.dtype.type(0))


@function(np.diagflat)
def diagflat(v: Any, k: Any = 0) -> Tracer:
    """np.diagflat."""
    return diag(ravel(as_array(find_block(v), v)), k)


def _triangle(array: Tracer, k: Any) -> Tracer:
    return tri(array.block, *array.shape[-2:], k=k, dtype=bool)


@function(np.tril)
def tril(m: Any, k: Any = 0) -> Tracer:
    """np.tril."""
    require_usual({"k": k})
    array = as_array(find_block(m), m)
    return np.where(_triangle(array, k), array, array.dtype.type(0))


@function(np.triu)
def triu(m: Any, k: Any = 0) -> Tracer:
    """np.triu."""
    require_usual({"k": k})
    array = as_array(find_block(m), m)
    return np.where(_triangle(array, k - 1), array.dtype.type(0), array)


@function(np.trace, "trace")
def trace(
    a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> Any:
    """np.trace."""
    return np.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


@function(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    """np.linalg.trace."""
    return trace(x, offset, -2, -1, dtype)


# ---------------------------------------------------------------- products


@function(np.kron)
def kron(a: Any, b: Any) -> Tracer:
    """np.kron."""
    block = find_block(a, b)
    x, y = as_array(block, a), as_array(block, b)
    rank = max(x.ndim, y.ndim)
    x, y = (t.through(views.expand(t.raw_shape, range(rank - t.ndim))) for t in (x, y))
    product = x[tuple(i for _ in range(rank) for i in (slice(None), None))]
    product = product * y[tuple(i for _ in range(rank) for i in (None, slice(None)))]
    return np.reshape(product, tuple(m * n for m, n in zip(x.shape, y.shape, strict=True)))


@function(np.cross)
def cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Tracer:
    """np.cross of three-vectors."""
    if axis is not None:
        axisa = axisb = axisc = axis
    block = find_block(a, b)
    x = np.moveaxis(as_array(block, a), axisa, -1)
    y = np.moveaxis(as_array(block, b), axisb, -1)
    if x.raw_shape[-1] != 3 or y.raw_shape[-1] != 3:
        raise NotCaptured("np.cross of other than three-vectors")
    (x0, x1, x2), (y0, y1, y2) = ([t[..., i] for i in range(3)] for t in (x, y))
    parts = [x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0]
    return np.stack(parts, axis=axisc)


@function(np.linalg.cross)
def linalg_cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Tracer:
    """np.linalg.cross."""
    if axis is None:
        raise TypeError("np.linalg.cross takes an axis")
    return cross(x1, x2, axis=axis)


# ---------------------------------------------------------------- norms


@function(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """np.linalg.norm."""
    array = as_array(find_block(x), x)
    if array.dtype.kind not in "fc":
        array = array.astype(float)
    if axis is None and (
        ord is None or (ord in ("f", "fro") and array.ndim == 2) or (ord == 2 and array.ndim == 1)
    ):
        axes = tuple(range(array.ndim))
        return root(np.sum(squared_size(array), axis=axes, keepdims=keepdims))
    axes = many_axes(axis, array.ndim)
    if isinstance(axis, (tuple, list)):
        axes = tuple(one_axis(i, array.ndim) for i in axis)
    if len(axes) == 1:
        return _vector_norm(array, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm(array, ord, axes, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _vector_norm(array: Tracer, ord: Any, axis: Any, keepdims: Any) -> Any:
    if ord is None or ord == 2:
        return root(np.sum(squared_size(array), axis=axis, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    size = np.abs(array)
    if ord == np.inf:
        return np.max(size, axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum((array != 0).astype(size.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    total = np.sum(size**ord, axis=axis, keepdims=keepdims)
    flat = total == 0
    safe = np.where(flat, 1, total)
    return np.where(flat, total, safe ** size.dtype.type(1 / ord))[()]


_OF_SINGULAR_VALUES = {2: np.max, -2: np.min, "nuc": np.sum}


def _matrix_norm(array: Tracer, ord: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    rows, columns = axes
    if rows == columns:
        raise ValueError("Duplicate axes given.")
    if ord in (None, "fro", "f"):
        return root(np.sum(squared_size(array), axis=axes, keepdims=keepdims))
    if ord in _OF_SINGULAR_VALUES:
        values = np.linalg.svdvals(np.moveaxis(array, (rows, columns), (-2, -1)))
        made = _OF_SINGULAR_VALUES[ord](values, axis=-1)
        return np.expand_dims(made, tuple(sorted(axes))) if is_set(keepdims) else made
    extreme = {1: np.max, -1: np.min, np.inf: np.max, -np.inf: np.min}.get(ord)
    if extreme is None:
        raise ValueError("Invalid norm order for matrices.")
    inner, outer = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = np.sum(np.abs(array), axis=inner, keepdims=True)
    made = extreme(sums, axis=outer, keepdims=True)
    return made if is_set(keepdims) else np.squeeze(made, axis=tuple(sorted(axes)))[()]


@function(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Any:
    """np.linalg.vector_norm over one axis or all."""
    array = as_array(find_block(x), x)
    if array.dtype.kind not in "fc":
        array = array.astype(float)
    axes = many_axes(axis, array.ndim)
    return _vector_norm(array, ord, axes, keepdims)


@function(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Any:
    """np.linalg.matrix_norm."""
    return norm(x, ord, (-2, -1), keepdims)
