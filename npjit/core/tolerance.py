"""What "equal to NumPy" means, for every test of the project.

In: a result and NumPy's. Out: nothing, or an AssertionError that says where they differ:

    assert_equal_numpy(np.float64(0.1), np.float64(0.1))          # bit for bit
    assert_equal_numpy(npjit_sin(x), np.sin(x), ulp=TRANSCENDENTAL)
    assert_equal_numpy(npjit_sum(x), x.sum(), bound=sum_bound(x))

Types, shapes, and whether a result is an array, a NumPy scalar or a Python number are compared
always; infinities, the sign of zero and the places of NaN exactly (a NaN's payload never).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

EXACT = 0
"""Integers, bool, movement, comparison, + - * / sqrt, rounding, casts, min max any all."""

TRANSCENDENTAL = 4
"""Units in the last place between our result of a transcendental function and NumPy's."""


def assert_equal_numpy(got: Any, want: Any, *, ulp: int = EXACT, bound: Any = None) -> None:
    """Fails unless `got` is what NumPy gives.

    `ulp` allows a distance in units in the last place (for complex numbers: of the larger part);
    `bound` allows an absolute difference, an array or number, for sums and contractions.
    """
    if isinstance(want, Mapping):
        assert type(got) is type(want), f"{type(got).__name__}, not {type(want).__name__}"
        assert list(got) == list(want), f"keys {list(got)}, not {list(want)}"
        for key in want:
            assert_equal_numpy(got[key], want[key], ulp=ulp, bound=bound)
    elif isinstance(want, Sequence) and not isinstance(want, str | bytes):
        assert type(got) is type(want), f"{type(got).__name__}, not {type(want).__name__}"
        assert len(got) == len(want), f"{len(got)} results, not {len(want)}"
        for one, other in zip(got, want, strict=True):
            assert_equal_numpy(one, other, ulp=ulp, bound=bound)
    elif isinstance(want, np.ndarray | np.generic | float | complex):
        assert type(got) is type(want), f"a {type(got).__name__}, not a {type(want).__name__}"
        _assert_arrays(np.asarray(got), np.asarray(want), ulp, bound)
    else:
        assert type(got) is type(want), f"a {type(got).__name__}, not a {type(want).__name__}"
        assert got == want, f"{got!r}, not {want!r}"


def sum_bound(values: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """How far two pairwise sums of `values` may lie apart: both err by NumPy's bound at most.

    NumPy adds up to 128 values in 8 lanes (16 roundings, and 3 for the lanes) and then halves.
    """
    values = np.asarray(values)
    sizes = np.sum(np.abs(values), axis=axis, keepdims=keepdims, dtype=_bound_type(values))
    count = values.size // max(1, sizes.size)
    return 2 * _roundings(count) * _epsilon(values.dtype) * sizes


def product_bound(left: Any, right: Any) -> Any:
    """How far two results of left @ right may lie apart: every order of additions is allowed."""
    left, right = np.asarray(left), np.asarray(right)
    wide = _bound_type(left)
    sizes = np.matmul(np.abs(left).astype(wide), np.abs(right).astype(wide))
    return 2 * (left.shape[-1] + 2) * _epsilon(left.dtype) * sizes


def ulp_distance(got: Any, want: Any) -> Any:
    """How many floats lie between equally shaped arrays, as float64; NaN to NaN is 0."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype.kind == "c":
        return _complex_distance(got, want)
    nan = np.isnan(got) & np.isnan(want)
    # Steps are counted within a sign, so that they stay in int64; across zero both parts add up.
    one, other = _magnitude_steps(got), _magnitude_steps(want)
    same_sign = np.signbit(got) == np.signbit(want)
    distance = np.where(same_sign, np.abs(one - other), 1.0 * one + other)
    return np.where(nan, 0.0, np.where(np.isnan(got) != np.isnan(want), np.inf, distance))


def _assert_arrays(got: Any, want: Any, ulp: int, bound: Any) -> None:
    assert got.dtype == want.dtype, f"dtype {got.dtype}, not {want.dtype}"
    assert got.shape == want.shape, f"shape {got.shape}, not {want.shape}"
    if want.dtype.kind not in "fc":
        wrong = np.asarray(got != want)
    else:
        wrong = _differs_in_kind(got, want)
        near = ulp_distance(got, want) <= ulp
        if bound is not None:
            with np.errstate(invalid="ignore", over="ignore"):
                near |= np.abs(got - want) <= bound
        wrong |= ~near
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        amount = f"{int(wrong.sum())} of {wrong.size} differ, first at {where}"
        raise AssertionError(f"{amount}: {got[where]!r}, not {want[where]!r}")


def _differs_in_kind(got: Any, want: Any) -> Any:
    """Where one is NaN, infinite or a zero of some sign and the other is not the same."""
    if got.dtype.kind == "c":
        return _differs_in_kind(got.real, want.real) | _differs_in_kind(got.imag, want.imag)
    special = np.isnan(want) | np.isinf(want) | np.isnan(got) | np.isinf(got)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    zero = (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
    return np.asarray((special & ~same) | zero)


def _complex_distance(got: Any, want: Any) -> Any:
    """In units of the larger part: a small part may come from cancellation in NumPy too."""
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.abs(want.real), np.abs(want.imag))
        unit = np.spacing(np.where(np.isfinite(size), size, 1))
        parts = [
            np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0, np.abs(one - other))
            for one, other in ((got.real, want.real), (got.imag, want.imag))
        ]
        return np.nan_to_num(np.maximum(*parts) / unit, nan=np.inf)


def _magnitude_steps(values: Any) -> Any:
    integer = np.dtype(f"i{values.dtype.itemsize}")
    return np.abs(values).view(integer).astype(np.int64)


def _roundings(count: int) -> float:
    return 19 + math.ceil(math.log2(max(1.0, count / 128)))


def _epsilon(dtype: np.dtype[Any]) -> float:
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0


def _bound_type(values: Any) -> Any:
    return np.float64 if values.dtype.kind in "fc" else values.dtype
