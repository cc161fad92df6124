"""How much rounding matters to a program: its inexact operations made to err a little, at random.

`make_noisy(size)` is a function (name, function, *args) that calls the function and moves float
results by about `size` roundings, for names that are not exact; sums and products of many numbers
also get inputs that err by one rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

NOISY = "_noisy"

# bit for bit NumPy's: movement, comparison, rounding, and what IEEE 754 rounds correctly
_EXACT = """
    negative positive absolute abs fabs add subtract multiply sqrt square floor ceil trunc
    rint fix sign signbit copysign maximum minimum fmax fmin nextafter spacing isnan isinf
    isfinite equal not_equal less less_equal greater greater_equal logical_and logical_or
    logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_count invert
    left_shift right_shift gcd lcm heaviside ldexp conjugate conj floor_divide remainder
    fmod reshape ravel flatten transpose swapaxes moveaxis rollaxis squeeze expand_dims
    broadcast_to broadcast_arrays flip fliplr flipud rot90 roll concatenate stack vstack
    hstack dstack column_stack split array_split tile repeat pad where select choose clip
    max min amax amin any all argmax argmin ptp count_nonzero nanmax nanmin zeros ones full
    empty eye identity zeros_like ones_like full_like empty_like arange copy copyto astype
    diagonal diag diagflat tril triu take delete append atleast_1d atleast_2d atleast_3d
    array asarray fill view real imag item diff ediff1d isclose allclose array_equal
    meshgrid indices tri nan_to_num round around fill_diagonal matrix_transpose int float
    bool complex range len divide
"""
# of these only for real numbers
_REAL_ONLY = """
    absolute abs sqrt divide sign square multiply reciprocal isclose
"""
# sums and products of many, and what may cancel: they err by each term's rounding
_MANY = """
    sum prod mean var std nansum nanmean nanprod nanvar nanstd matmul dot einsum tensordot
    inner outer vdot kron trace average cov corrcoef convolve correlate norm vecdot matvec
    vecmat cross trapezoid polyval gradient reduce logaddexp logaddexp2
"""
# which of 0.0 and -0.0 they give depends on the order in which NumPy's lanes meet
EXTREMES = frozenset(["max", "min", "amax", "amin", "nanmax", "nanmin", "ptp", "fmax", "fmin"])
EXACT, REAL_ONLY, MANY = (frozenset(text.split()) for text in (_EXACT, _REAL_ONLY, _MANY))


def make_noisy(size: float) -> Callable[..., Any]:
    """The noisy call, with random errors of its own each time."""
    rng = np.random.default_rng()

    def moved(value: Any, roundings: float, least: float = 0.0) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(moved(v, roundings) for v in value)
        if isinstance(value, float | complex) and not isinstance(value, np.generic):
            return value * (1 + roundings * 2.2e-16 * rng.choice([-1.0, 1.0]))
        if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc":
            return value
        step = rng.choice([-1.0, 1.0], np.shape(value)) * roundings
        eps = max(least, float(np.finfo(value.dtype).eps))
        exact = np.asarray(value)
        # computed in double, so that half-precision noise is not lost to rounding
        wide = exact.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        shaken = np.where(exact == 0, wide, wide + eps * step * _sizes(wide, rng))
        shaken = np.where(np.isfinite(exact), shaken, wide)
        made = np.empty_like(exact)
        made[...] = shaken.astype(value.dtype)
        return made if isinstance(value, np.ndarray) else made[()]

    def noisy(name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if name in ("signbit", "copysign"):
            args = tuple(_any_sign(a, rng) for a in args)
            noisy.used = True  # type: ignore[attr-defined]
        if name in ("astype", "asarray", "array", "copyto", "full_like"):
            noisy.used = True  # type: ignore[attr-defined]
            return _any_unsigned(function(*args, **kwargs), function, args, rng)
        if name in EXTREMES:
            noisy.used = True  # type: ignore[attr-defined]
            return _any_zero(function(*args, **kwargs), rng)
        if name in EXACT and not (name in REAL_ONLY and _has_complex(function, args)):
            return function(*args, **kwargs)
        noisy.used = True  # type: ignore[attr-defined]
        target = kwargs.get("out")
        if name in MANY:
            owner = getattr(function, "__self__", None)
            if isinstance(owner, np.ndarray):
                function = getattr(moved(owner, size / 4), name)
            args = tuple(moved(a, size / 4) for a in args)
        result = function(*args, **kwargs)
        if target is not None:
            outs = target if isinstance(target, tuple) else (target,)
            for out in outs:
                out[...] = moved(out, size, max((_epsilon(a) for a in args), default=0.0))
            return result
        made = moved(result, size)
        if name in MANY and np.iscomplexobj(made) and not np.all(np.isfinite(made)):
            # products of infinities differ between BLAS's own routines
            other = rng.choice([np.inf, np.nan, rng.normal()])
            made = np.where(np.isfinite(made), made, other)[()]
        return _any_zero(made, rng) if name in MANY else made

    noisy.used = False  # type: ignore[attr-defined]
    return noisy


def _any_sign(value: Any, rng: Any) -> Any:
    """The value with random signs of its NaNs, which nobody promises."""
    if np.asarray(value).dtype.kind != "f":
        return value
    signs = rng.choice([-1.0, 1.0], np.shape(value)).astype(np.asarray(value).dtype)
    return np.where(np.isnan(value), np.copysign(np.nan, signs), value)[()]


def _any_unsigned(result: Any, function: Any, args: Any, rng: Any) -> Any:
    """The result of a cast, with random numbers where an unsigned integer has no room for it."""
    sources = [getattr(function, "__self__", None), *args]
    source = next((s for s in sources if isinstance(s, np.ndarray | np.generic)), None)
    if getattr(result, "dtype", None) is None or result.dtype.kind != "u" or source is None:
        return result
    if source.dtype.kind != "f" or np.shape(source) != np.shape(result):
        return result
    with np.errstate(invalid="ignore"):
        fits = (source > -1) & (source <= np.iinfo(result.dtype).max)
    most = np.iinfo(result.dtype).max
    any_numbers = rng.integers(0, most, np.shape(result), result.dtype, endpoint=True)
    return np.where(fits, result, any_numbers)[()]


def _epsilon(value: Any) -> float:
    kind = getattr(value, "dtype", None)
    return float(np.finfo(kind).eps) if kind is not None and kind.kind in "fc" else 0.0


def _any_zero(value: Any, rng: Any) -> Any:
    """The value with random signs of its zeros, complex numbers' parts included."""
    if np.asarray(value).dtype.kind == "c":
        made = np.array(value)
        made.real, made.imag = _any_zero(made.real, rng), _any_zero(made.imag, rng)
        return made[()]
    if np.asarray(value).dtype.kind != "f":
        return value
    signs = rng.choice([-1.0, 1.0], np.shape(value)).astype(np.asarray(value).dtype)
    return np.where(np.equal(value, 0), signs * 0, value)[()]


def _sizes(values: Any, rng: Any) -> Any:
    """The numbers themselves; of complex ones a turned copy, for either part may lose what the
    other holds."""
    if values.dtype.kind != "c":
        return values
    return np.abs(values) * np.exp(2j * np.pi * rng.random(values.shape))


def _has_complex(function: Any, args: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return any(np.iscomplexobj(a) for a in (owner, *args) if not callable(a))
