"""Functions along an axis: differences, slopes on a grid, convolutions, trapezoids, polynomials."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from npjit.core.size import Size, mod
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import function
from npjit.ops.movement import part, ravel
from npjit.ops.operands import as_array, find_block, has_traced, listed_axes, one_axis
from npjit.ops.pad import zero_padded
from npjit.ops.tracer import Tracer, as_node, fresh

# a longer kernel than this is not written out as shifted products
LONGEST_KERNEL = 64
Absent = np._NoValue


def _span(array: Tracer, axis: int, start: Size, stop: Size) -> Tracer:
    """Elements start to n + stop of an axis."""
    n = array.raw_shape[axis]
    return part(array, axis, start, n + stop - start)


@function(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = Absent, append: Any = Absent) -> Tracer:
    """np.diff."""
    block = find_block(a, prepend, append)
    array = as_array(block, a)
    times = operator.index(n)
    if times < 0:
        raise ValueError(f"order must be non-negative but got {times}")
    if not array.ndim:
        raise ValueError("diff requires input that is at least one dimensional")
    place = one_axis(axis, array.ndim)
    ends = [None if e is Absent else as_array(block, e) for e in (prepend, append)]
    shape = list(array.shape)
    shape[place] = 1
    before, after = (
        None if e is None else (np.broadcast_to(e, tuple(shape)) if not e.ndim else e) for e in ends
    )
    pieces = [p for p in (before, array, after) if p is not None]
    if len(pieces) > 1:
        array = np.concatenate(pieces, axis=place)
    for _ in range(times):
        if array.block.sizes.decide_le(array.raw_shape[place], 0):
            return array
        ahead, behind = _span(array, place, 1, 0), _span(array, place, 0, -1)
        array = ahead != behind if array.dtype == build.BOOL else ahead - behind
    return array


@function(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tracer:
    """np.ediff1d without ends."""
    if to_end is not None or to_begin is not None:
        raise NotCaptured("np.ediff1d with ends")
    flat = ravel(as_array(find_block(ary), ary))
    return flat[1:] - flat[:-1]


# ---------------------------------------------------------------- gradients on a grid


@function(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """np.gradient on an even grid."""
    array = as_array(find_block(f, *varargs), f)
    axes = range(array.ndim) if axis is None else listed_axes(axis, array.ndim)
    steps = list(varargs) if varargs else [1.0]
    if len(steps) == 1:
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise TypeError("invalid number of arguments")
    if any(as_node(array.block, s).shape for s in steps):
        raise NotCaptured("np.gradient on an uneven grid")
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    if array.dtype == build.BOOL:
        raise TypeError("numpy boolean subtract, the `-` operator, is not supported")
    if array.dtype.kind not in "fc":
        array = array.astype(float)
    made = [_slope(array, i, h, edge_order) for i, h in zip(axes, steps, strict=True)]
    return made[0] if len(axes) == 1 else tuple(made)


def _slope(f: Tracer, axis: int, h: Any, edge_order: int) -> Tracer:
    n = f.raw_shape[axis]
    if not f.block.sizes.decide_le(edge_order + 1, n):
        raise ValueError("Shape of array too small to calculate a numerical gradient")

    def at(i: int) -> Tracer:
        return part(f, axis, i if i >= 0 else n + i, 1)

    inside = (_span(f, axis, 2, 0) - _span(f, axis, 0, -2)) / (2.0 * h)
    if edge_order == 1:
        first, last = (at(1) - at(0)) / h, (at(-1) - at(-2)) / h
    else:
        a, b, c = -1.5 / h, 2.0 / h, -0.5 / h
        first = a * at(0) + b * at(1) + c * at(2)
        last = 0.5 / h * at(-3) + -2.0 / h * at(-2) + 1.5 / h * at(-1)
    parts = [p.astype(f.dtype, copy=False) for p in (first, inside, last)]
    return np.concatenate(parts, axis=axis)


@function(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """np.trapezoid."""
    block = find_block(y, x, dx)
    array = as_array(block, y)
    place = one_axis(axis, array.ndim)
    if x is None:
        steps = dx
    else:
        steps = diff(as_array(block, x), axis=0 if as_array(block, x).ndim == 1 else place)
        if steps.ndim == 1:
            steps = steps[tuple(slice(None) if i == place else None for i in range(array.ndim))]
    ahead, behind = _span(array, place, 1, 0), _span(array, place, 0, -1)
    return np.sum(steps * (ahead + behind) / 2.0, axis=place)


# ---------------------------------------------------------------- convolutions


@function(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Tracer:
    """np.convolve with a short kernel of known length."""
    block = find_block(a, v)
    signal, kernel = (np.atleast_1d(as_array(block, t)) for t in (a, v))
    if signal.ndim != 1 or kernel.ndim != 1:
        raise ValueError("object too deep for desired array")
    sizes = block.sizes
    if not sizes.decide_le(kernel.raw_shape[0], signal.raw_shape[0]):
        signal, kernel = kernel, signal
    m = kernel.raw_shape[0]
    if not isinstance(m, int):
        if not sizes.decide_le(m, LONGEST_KERNEL):
            raise NotCaptured("np.convolve with a long kernel")
        m = sizes.specialise(m)
    if m > LONGEST_KERNEL:
        raise NotCaptured("np.convolve with a long kernel")
    if m == 0:
        raise ValueError("v cannot be empty")
    dtype = np.result_type(signal.dtype, kernel.dtype)
    full = _shifted_products(signal.astype(dtype), kernel.astype(dtype), m)
    n = signal.raw_shape[0]
    if mode == "full":
        return full
    if mode == "same":
        return part(full, 0, (m - 1) // 2, n)
    if mode == "valid":
        return part(full, 0, m - 1, n - m + 1)
    raise ValueError("mode must be one of 'valid', 'same', or 'full'")


def _shifted_products(signal: Tracer, kernel: Tracer, m: int) -> Tracer:
    """sum over j of kernel[j] * signal[i - j], for every i where they overlap."""
    block = signal.block
    padded = fresh(block, zero_padded(block, signal.node, [(m - 1, m - 1)]))
    length = signal.raw_shape[0] + m - 1
    made: Any = None
    for j in range(m):
        term = part(padded, 0, m - 1 - j, length) * kernel[j]
        made = term if made is None else made + term
    return made


@function(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Tracer:
    """np.correlate."""
    block = find_block(a, v)
    signal, kernel = as_array(block, a), as_array(block, v)
    if not block.sizes.decide_le(kernel.raw_shape[0], signal.raw_shape[0]):
        raise NotCaptured("np.correlate with a kernel longer than the signal")
    if mode == "same" and block.sizes.decide_eq(mod(kernel.raw_shape[0], 2), 0):
        raise NotCaptured("np.correlate in mode 'same' with an even kernel")
    return convolve(signal, np.flip(kernel.conj()), mode)


# ---------------------------------------------------------------- formulas


@function(np.sinc)
def sinc(x: Any) -> Tracer:
    """np.sinc."""
    array = as_array(find_block(x), x)
    if array.dtype.kind not in "fc":
        array = array.astype(float)
    tiny = 1.0e-20 if array.dtype.itemsize > 2 else float(np.finfo(array.dtype).smallest_subnormal)
    y = math.pi * np.where(array == 0, tiny, array)
    return np.sin(y) / y


@function(np.polyval)
def polyval(p: Any, x: Any) -> Tracer:
    """np.polyval by Horner's rule, of a known number of coefficients."""
    block = find_block(p, x)
    array = as_array(block, p) if has_traced([p]) else np.asarray(p)
    coefficients = [array[i] for i in range(len(array))]
    if len(coefficients) > LONGEST_KERNEL:
        raise NotCaptured("np.polyval of a long polynomial")
    at = as_array(block, x)
    made: Any = np.zeros_like(at)
    for c in coefficients:
        made = made * at + c
    return made
