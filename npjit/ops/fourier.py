"""Fourier transforms, as np.fft has them.

Four rows transform along one axis; lengths are made right before by cutting or padding with zeros,
and the transforms of several axes go one axis at a time, as NumPy's do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import TensorType
from npjit.core.op import Op
from npjit.core.size import Size, floordiv
from npjit.core.view import Cut
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.extern import call, dense, extern
from npjit.ops.kinds import function
from npjit.ops.operands import as_array, deliver, find_block, one_axis
from npjit.ops.pad import zero_padded
from npjit.ops.symint import is_int, size_of, wrap
from npjit.ops.tracer import Tracer, fresh

# of each normalisation the one that gives the other direction this one's factor
SWAPPED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}

# ---------------------------------------------------------------- rows


@lru_cache(maxsize=256)
def _dtype(function: Callable[..., Any], dtype: np.dtype[Any]) -> np.dtype[Any]:
    return function(np.ones(2, dtype)).dtype


def _same_length(function: Callable[..., Any]) -> Callable[..., list[TensorType]]:
    return lambda params, x: [dense(x.shape, _dtype(function, x.dtype))]


def _half_length(params: Any, x: TensorType) -> list[TensorType]:
    axis = params[0]
    n = floordiv(x.shape[axis], 2) + 1
    shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
    return [dense(shape, _dtype(np.fft.rfft, x.dtype))]


def _full_length(params: Any, x: TensorType) -> list[TensorType]:
    axis, _, odd = params
    n = 2 * x.shape[axis] - 2 + odd
    shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
    return [dense(shape, _dtype(np.fft.irfft, x.dtype))]


def _fft_vjp(params: Any, g: Any, y: Any, x: Any) -> list[Any]:
    axis, norm = params
    return [np.fft.ifft(g, None, axis, SWAPPED[norm])]


def _ifft_vjp(params: Any, g: Any, y: Any, x: Any) -> list[Any]:
    axis, norm = params
    return [np.fft.fft(g, None, axis, SWAPPED[norm])]


def _weighted(g: Any, axis: int, n: Size, inner: float) -> Any:
    """Half a spectrum of n values, those that stand for two of them times `inner`."""
    block, rank = g.block, g.ndim
    k = fresh(block, build.iota(block, g.raw_shape[axis]))
    alone = (k == 0) | (2 * k == wrap(block, n))
    factors = np.where(alone, 1.0, inner).astype(np.real(g).dtype)
    return g * factors[(slice(None), *[None] * (rank - 1 - axis))]


def _rfft_vjp(params: Any, g: Any, y: Any, x: Any) -> list[Any]:
    axis, norm = params
    n = x.raw_shape[axis]
    weighted = _weighted(g, axis, n, 0.5)
    return [np.fft.irfft(weighted, wrap(x.block, n), axis, SWAPPED[norm])]


def _irfft_vjp(params: Any, g: Any, y: Any, x: Any) -> list[Any]:
    axis, norm, _ = params
    made = np.fft.rfft(g, None, axis, SWAPPED[norm])
    return [_weighted(made, axis, g.raw_shape[axis], 2.0)]


FFT = extern(
    "fft",
    lambda node, x: np.fft.fft(x, None, *node.params),
    _same_length(np.fft.fft),
    vjp=_fft_vjp,
)
IFFT = extern(
    "ifft",
    lambda node, x: np.fft.ifft(x, None, *node.params),
    _same_length(np.fft.ifft),
    vjp=_ifft_vjp,
)
RFFT = extern(
    "rfft", lambda node, x: np.fft.rfft(x, None, *node.params), _half_length, vjp=_rfft_vjp
)
IRFFT = extern(
    "irfft",
    lambda node, x: np.fft.irfft(x, node.shape[node.params[0]], *node.params[:2]),
    _full_length,
    vjp=_irfft_vjp,
)


# ---------------------------------------------------------------- one axis


def _with_length(x: Tracer, axis: int, n: Size) -> Tracer:
    """Cut or padded with zeros to length n along an axis."""
    block, have = x.block, x.raw_shape[axis]
    if have == n or block.sizes.decide_eq(have, n):
        shape = (*x.raw_shape[:axis], n, *x.raw_shape[axis + 1 :])
        return fresh(block, build.same_shape(block, x.node, shape))
    if block.sizes.decide_le(n, have):
        cuts = [Cut(0, 1, n if d == axis else m) for d, m in enumerate(x.raw_shape)]
        return fresh(block, build.view(block, x.node, views.index(x.raw_shape, cuts)))
    widths = [(0, n - have if d == axis else 0) for d in range(x.ndim)]
    return fresh(block, zero_padded(block, x.node, widths))


def _prepared(a: Any, axis: Any, norm: Any) -> tuple[Tracer, int]:
    if norm not in SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    array = as_array(find_block(a), a)
    return array, one_axis(axis, array.ndim)


def _length(x: Tracer, n: Any, default: Size) -> Size:
    length = default if n is None else size_of(n if is_int(n) else operator.index(n))
    if not x.block.sizes.decide_le(1, length):
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    return length


def _along(row: Op, a: Any, n: Any, axis: Any, norm: Any, out: Any) -> Any:
    x, axis = _prepared(a, axis, norm)
    x = _with_length(x, axis, _length(x, n, x.raw_shape[axis]))
    (made,) = call(x.block, row, [x.node], (axis, norm))
    return deliver(out, made)


@function(np.fft.fft)
def fft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.fft."""
    return _along(FFT, a, n, axis, norm, out)


@function(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.ifft."""
    return _along(IFFT, a, n, axis, norm, out)


@function(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.rfft."""
    if as_array(find_block(a), a).dtype.kind == "c":
        raise TypeError("ufunc 'rfft_n_even' did not contain a loop for complex numbers")
    return _along(RFFT, a, n, axis, norm, out)


@function(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.irfft; whether n is even is guarded when sizes do not tell."""
    x, axis = _prepared(a, axis, norm)
    length = _length(x, n, 2 * x.raw_shape[axis] - 2)
    half = floordiv(length, 2)
    odd = 0 if x.block.sizes.decide_eq(2 * half, length) else 1
    x = _with_length(x, axis, half + 1)
    (made,) = call(x.block, IRFFT, [x.node], (axis, norm, odd))
    shape = (*made.raw_shape[:axis], length, *made.raw_shape[axis + 1 :])
    return deliver(out, fresh(x.block, build.same_shape(x.block, made.node, shape)))


@function(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.hfft."""
    return irfft(np.conj(as_array(find_block(a), a)), n, axis, SWAPPED[norm], out)


@function(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.ihfft."""
    return deliver(out, np.conj(rfft(a, n, axis, SWAPPED[norm])))


# ---------------------------------------------------------------- several axes


def _several(x: Tracer, s: Any, axes: Any) -> list[tuple[Any, int]]:
    """Pairs of length (None: as it is) and axis."""
    if s is not None and axes is None:
        raise NotCaptured("a Fourier transform with s= and without axes=")
    axes = range(x.ndim) if axes is None else axes
    numbers = [one_axis(d, x.ndim) for d in axes]
    if len(set(numbers)) != len(numbers):
        raise NotCaptured("a Fourier transform twice along one axis")
    if s is None:
        return [(None, d) for d in numbers]
    if len(s) != len(numbers):
        raise ValueError("Shape and axes have different lengths.")
    return [(None if is_int(n) and n == -1 else n, d) for n, d in zip(s, numbers, strict=True)]


def _over(
    first: Callable[..., Any] | None,
    other: Callable[..., Any],
    last: Callable[..., Any] | None,
    default: Sequence[int] | None,
) -> Callable[..., Any]:
    """A transform of several axes: `first` on the last axis, `other` on those before it (from the
    last but one), or `other` in order and `last` on the last axis."""

    def transform(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None):
        x: Any = as_array(find_block(a), a)
        pairs = _several(x, s, axes)
        if last is not None:
            for n, axis in pairs[:-1]:
                x = other(x, n, axis, norm)
            n, axis = pairs[-1]
            return last(x, n, axis, norm, out)
        for k, (n, axis) in enumerate(reversed(pairs)):
            step = first if first is not None and k == 0 else other
            x = step(x, n, axis, norm)
        return deliver(out, x)

    return transform


for _targets, _parts in (
    ((np.fft.fftn, np.fft.fft2), (None, fft, None)),
    ((np.fft.ifftn, np.fft.ifft2), (None, ifft, None)),
    ((np.fft.rfftn, np.fft.rfft2), (rfft, fft, None)),
    ((np.fft.irfftn, np.fft.irfft2), (None, ifft, irfft)),
):
    for _target, _default in zip(_targets, (None, (-2, -1)), strict=True):
        function(_target)(_over(*_parts, _default))


# ---------------------------------------------------------------- shifts


def _shifted(x: Any, axes: Any, sign: int) -> Any:
    array = as_array(find_block(x), x)
    if axes is None:
        axes = tuple(range(array.ndim))
    numbers = (axes,) if is_int(axes) else tuple(axes)
    for d in numbers:
        n = array.shape[d]
        array = np.roll(array, n // 2 if sign > 0 else -(n // 2), d)
    return array


@function(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """np.fft.fftshift."""
    return _shifted(x, axes, 1)


@function(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """np.fft.ifftshift."""
    return _shifted(x, axes, -1)
