"""Printed CUDA reductions against NumPy, under the emulator: every form, style and dtype, at
awkward sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from npjit.core.size import Size
from npjit.core.tolerance import assert_equal_numpy, sum_bound
from npjit.schedule.plan import Plan
from tests.cuda.emulate import run_all
from tests.plan_runner import KernelBuilder, N, S, single

STYLES = ("sum", "product", "min", "max", "any", "all", "argmin", "argmax")
DTYPES = ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16")
FEW = (0, 1, 33, 1025)
MANY = (0, 1, 31, 32, 33, 1023, 1025, 65537)
NUMPY = {"product": np.prod, "sum": np.sum, "min": np.min, "max": np.max, "any": np.any}
NUMPY |= {"all": np.all, "argmin": np.argmin, "argmax": np.argmax}


def result_dtype(style: str, dtype: str) -> str:
    return {"any": "?", "all": "?", "argmin": "i8", "argmax": "i8"}.get(style, dtype)


def sample(shape: tuple[int, ...], dtype: str, near_one: bool) -> Any:
    rng = np.random.default_rng(len(shape) + sum(shape))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.9
    if kind in "iu":
        return np.where(rng.random(shape) < 0.9, rng.integers(0, 100, shape), 0).astype(dtype)
    x = rng.standard_normal(shape)
    x = 1 + x / 500 if near_one else x
    if kind == "c":
        x = x + 1j * rng.standard_normal(shape) * (0.001 if near_one else 1)
    x = x.astype(dtype)
    if not near_one and x.size > 100:
        # one slice has a NaN, one two equal extremes
        x.reshape(-1)[x.size // 3] = np.nan
        x.reshape(-1)[-1] = x.reshape(-1)[-2] = 9
    return x


def kernel_of(dtype: str, outer: Sequence[int], inner: Sequence[int]) -> KernelBuilder:
    """All reductions over the axes `inner` of two arrays, the second one for products."""
    outputs = [(result_dtype(s, dtype), "out") for s in STYLES]
    k = KernelBuilder([S[0], S[1]], outer, [(dtype, "in"), (dtype, "in"), *outputs])
    k.phase(*inner)
    strides: dict[int, Size] = {0: S[1], 1: 1}
    x, near_one = k.load(0, strides), k.load(1, strides)
    found = []
    for style in STYLES:
        found.append(
            k.reduce(style, result_dtype(style, dtype), near_one if style == "product" else x)
        )
    k.phase()
    for i, value in enumerate(found):
        k.store(2 + i, dict.fromkeys(outer, 1), value)
    return k


def plan_of(k: KernelBuilder, dtype: str, pair: Sequence[Any], outer: Sequence[int]) -> Plan:
    shape = tuple(N[a] for a in outer)
    outputs = [(result_dtype(s, dtype), shape) for s in STYLES]
    return single(k, pair, outputs, (N[0], N[1]))


def compare(dtype: str, pair: Sequence[Any], got: Sequence[Any], axes: Any) -> None:
    x, near_one = pair
    count = x.size if axes is None else x.shape[axes]
    for style, result in zip(STYLES, got, strict=True):
        if count == 0 and style in ("min", "max", "argmin", "argmax"):
            continue
        given = near_one if style == "product" else x
        dtypes = {"dtype": np.dtype(dtype)} if style in ("sum", "product") else {}
        with np.errstate(all="ignore"):
            want = np.asarray(NUMPY[style](given, axis=axes, **dtypes))
        if style in ("min", "max") and x.dtype.kind == "c":
            # a NaN may be any of those there are
            result = np.where(np.isnan(result), np.nan, result)
            want = np.where(np.isnan(want), np.nan, want)
        parts = [(result, want, x)]
        if style in ("sum", "product") and x.dtype.kind == "c":
            # apart, since one may be NaN and the other not
            parts = [(result.real, want.real, x.real), (result.imag, want.imag, x.imag)]
        for one, other, values in parts:
            assert_equal_numpy(one, other, bound=allowed(style, values, other, count, axes))


def allowed(style: str, x: Any, want: Any, count: int, axes: Any) -> Any:
    """How far a result may be from NumPy's."""
    if x.dtype.kind != "f" or style not in ("sum", "product"):
        return None
    with np.errstate(all="ignore"):
        if style == "sum":
            return sum_bound(x, axes)
        return 4 * (count + 1) * np.finfo(x.dtype).eps * max(1, np.abs(want).max(initial=1))


def pairs(shapes: Sequence[tuple[int, ...]], dtype: str) -> list[tuple[Any, Any]]:
    return [(sample(s, dtype, False), sample(s, dtype, True)) for s in shapes]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows(dtype: str) -> None:
    shapes = [(3, n) for n in (MANY if dtype == "f4" else FEW)]
    calls = pairs(shapes, dtype)
    plan = plan_of(kernel_of(dtype, (0,), (1,)), dtype, calls[0], (0,))
    for pair, got in zip(calls, run_all(plan, calls), strict=True):
        compare(dtype, pair, got, 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_columns(dtype: str) -> None:
    heights = MANY[:-1] if dtype == "f4" else FEW
    shapes = [(n, 5) for n in heights] + [(n, 260) for n in (3, 40)]
    calls = pairs(shapes, dtype)
    plan = plan_of(kernel_of(dtype, (1,), (0,)), dtype, calls[0], (1,))
    for pair, got in zip(calls, run_all(plan, calls), strict=True):
        compare(dtype, pair, got, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_whole(dtype: str) -> None:
    shapes = [(1, n) for n in (MANY if dtype == "f4" else FEW)] + [(7, 40)]
    calls = pairs(shapes, dtype)
    plan = plan_of(kernel_of(dtype, (), (0, 1)), dtype, calls[0], ())
    for pair, got in zip(calls, run_all(plan, calls), strict=True):
        compare(dtype, pair, got, None)


def test_unaligned_rows() -> None:
    calls = pairs([(3, 1024), (2, 70)], "f4")
    plan = plan_of(kernel_of("f4", (0,), (1,)), "f4", calls[0], (0,))
    for pair, got in zip(calls, run_all(plan, calls, shift=4), strict=True):
        compare("f4", pair, got, 1)
