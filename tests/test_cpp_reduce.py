"""Printed reductions against NumPy: every form, style and class of dtype, at awkward sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npjit.codegen.cpp_form import Form, choose
from tests.plan_runner import MULTIPLY, KernelBuilder, N, S, run, single

STYLES = ["sum", "product", "min", "max", "any", "all", "argmin", "argmax"]
DTYPES = ["?", "i1", "u4", "i8", "f2", "f4", "f8", "c8", "c16"]
SIZES = [0, 1, 2, 15, 16, 17, 127, 128, 129, 1023, 1025]
NUMPY = {"product": np.prod, "sum": np.sum, "min": np.min, "max": np.max, "any": np.any}
NUMPY |= {"all": np.all, "argmin": np.argmin, "argmax": np.argmax}


def result_dtype(style: str, dtype: str) -> str:
    return {"any": "?", "all": "?", "argmin": "i8", "argmax": "i8"}.get(style, dtype)


def sample(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, style: str) -> Any:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < (0.999 if style in ("all", "min", "product") else 0.001)
    if kind in "iu":
        x = rng.integers(0, 100, shape).astype(dtype)
        return np.where(rng.random(shape) < 0.9, x, 0).astype(dtype)
    near_one = style == "product"
    x = 1 + rng.standard_normal(shape) / 50 if near_one else rng.standard_normal(shape)
    if kind == "c":
        x = x + 1j * (rng.standard_normal(shape) * (0.02 if near_one else 1))
    return x.astype(dtype)


def expected(style: str, x: Any, axis: Any, dtype: str) -> Any:
    if style in ("sum", "product"):
        return NUMPY[style](x, axis=axis, dtype=dtype)
    return NUMPY[style](x, axis=axis)


def agree(style: str, got: Any, want: Any, x: Any, count: int) -> None:
    assert got.dtype == np.asarray(want).dtype
    if style in ("sum", "product") and x.dtype.kind in "fc":
        eps = float(np.finfo(x.dtype).eps)
        largest = float(np.abs(want).max(initial=1.0))
        scale = np.abs(x).sum() if style == "sum" else count * largest
        bound = eps * (2 * np.log2(count + 1) + 20) * max(float(scale), 1.0)
        assert np.all(np.abs(got.astype("c16") - want) <= bound)
    else:
        np.testing.assert_array_equal(got, want)


def rows_kernel(style: str, dtype: str) -> KernelBuilder:
    k = KernelBuilder([S[0], S[1]], (0,), [(dtype, "in"), (result_dtype(style, dtype), "out")])
    k.phase(1)
    total = k.reduce(style, result_dtype(style, dtype), k.load(0, {0: S[1], 1: 1}))
    k.phase()
    k.store(1, {0: 1}, total)
    return k


def columns_kernel(style: str, dtype: str) -> KernelBuilder:
    k = KernelBuilder([S[0], S[1]], (1,), [(dtype, "in"), (result_dtype(style, dtype), "out")])
    k.phase(0)
    total = k.reduce(style, result_dtype(style, dtype), k.load(0, {0: S[1], 1: 1}))
    k.phase()
    k.store(1, {1: 1}, total)
    return k


def lanes_kernel(style: str, dtype: str) -> KernelBuilder:
    axes = [S[0], 2, 3]
    k = KernelBuilder(axes, (0,), [(dtype, "in"), (result_dtype(style, dtype), "out")])
    k.phase(1, 2)
    total = k.reduce(style, result_dtype(style, dtype), k.load(0, {0: 6, 1: 3, 2: 1}))
    k.phase()
    k.store(1, {0: 1}, total)
    return k


def whole_kernel(style: str, dtype: str) -> KernelBuilder:
    k = KernelBuilder([S[0], S[1]], (), [(dtype, "in"), (result_dtype(style, dtype), "out")])
    k.phase(0, 1)
    total = k.reduce(style, result_dtype(style, dtype), k.load(0, {0: S[1], 1: 1}))
    k.phase()
    k.store(1, {}, total)
    return k


def has_value(style: str, count: int) -> bool:
    return count > 0 or style not in ("min", "max", "argmin", "argmax")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("style", STYLES)
def test_rows(style: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    k = rows_kernel(style, dtype)
    assert choose(k.kernel(2)) is Form.ROWS
    for n in SIZES:
        x = sample(rng, (3, n), dtype, style)
        if has_value(style, n):
            plan = single(k, [x], [(result_dtype(style, dtype), (N[0],))], (N[0], N[1]))
            got = run(plan, x, threads=2)[0]
            agree(style, got, expected(style, x, 1, dtype), x, n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("style", STYLES)
def test_columns(style: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    k = columns_kernel(style, dtype)
    assert choose(k.kernel(2)) is Form.COLUMNS
    for rows, columns in [(0, 5), (1, 17), (129, 300), (300, 1), (700, 3), (2, 0)]:
        x = sample(rng, (rows, columns), dtype, style)
        if has_value(style, rows):
            plan = single(k, [x], [(result_dtype(style, dtype), (N[1],))], (N[0], N[1]))
            got = run(plan, x, threads=2)[0]
            agree(style, got, expected(style, x, 0, dtype), x, rows)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("style", STYLES)
def test_lanes(style: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    k = lanes_kernel(style, dtype)
    assert choose(k.kernel(1)) is Form.LANES
    for n in [0, 1, 2, 17, 1023]:
        x = sample(rng, (n, 2, 3), dtype, style)
        plan = single(k, [x], [(result_dtype(style, dtype), (N[0],))], (N[0],))
        got = run(plan, x, threads=2)[0]
        agree(style, got, expected(style, x.reshape(n, 6), 1, dtype), x, max(n, 6))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("style", STYLES)
def test_whole(style: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    k = whole_kernel(style, dtype)
    assert choose(k.kernel(2)) is Form.WHOLE
    for shape in [(0, 5), (5, 0), (1, 1), (3, 17), (2, 8300), (701, 129)]:
        x = sample(rng, shape, dtype, style)
        if has_value(style, x.size):
            plan = single(k, [x], [(result_dtype(style, dtype), ())], (N[0], N[1]))
            for threads in (1, 3):
                got = run(plan, x, threads=threads)[0]
                agree(style, got, np.asarray(expected(style, x, None, dtype)), x, x.size)


FORMS = {"rows": rows_kernel, "columns": columns_kernel, "whole": whole_kernel}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("style", ["min", "max", "argmin", "argmax"])
@pytest.mark.parametrize("form", FORMS)
def test_nan_wins(form: str, style: str, dtype: str) -> None:
    rng = np.random.default_rng(4)
    k = FORMS[form](style, dtype)
    axis, shape = {"rows": (1, (N[0],)), "columns": (0, (N[1],)), "whole": (None, ())}[form]
    for place in (0, 5, 130, 299):
        x = sample(rng, (300, 300), dtype, style)
        x[place, place] = np.nan
        x[place, min(place + 3, 299)] = -np.inf
        x[min(place + 7, 299), place] = np.nan
        plan = single(k, [x], [(result_dtype(style, dtype), shape)], (N[0], N[1]))
        got = run(plan, x, threads=3)[0]
        np.testing.assert_array_equal(got, expected(style, x, axis, dtype))


@pytest.mark.parametrize("style", ["min", "max"])
def test_infinities_only(style: str) -> None:
    for value in (np.inf, -np.inf):
        x = np.full((3, 40), value)
        plan = single(rows_kernel(style, "f8"), [x], [("f8", (N[0],))], (N[0], N[1]))
        np.testing.assert_array_equal(run(plan, x)[0], x[:, 0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_are_pairwise(form: str, dtype: str) -> None:
    """0.1 added a million times: one accumulator would be wrong in the third digit of float32."""
    x = np.full((1_000_000, 1) if form == "columns" else (1, 1_000_000), 0.1, dtype)
    shape = () if form == "whole" else (1,)
    plan = single(FORMS[form]("sum", dtype), [x], [(dtype, shape)], (N[0], N[1]))
    exact = float(x.flat[0]) * 1e6
    allowed = 1000 if form == "columns" else 60
    assert abs(float(run(plan, x)[0].reshape(())) / exact - 1) < allowed * np.finfo(dtype).eps


def test_sum_of_negative_zeros_is_zero() -> None:
    x = np.full((2, 40), -0.0)
    plan = single(rows_kernel("sum", "f8"), [x], [("f8", (N[0],))], (N[0], N[1]))
    assert not np.signbit(run(plan, x)[0]).any()


def test_wider_accumulator() -> None:
    """The result's dtype is the accumulator's, whatever the values are."""
    k = KernelBuilder([S[0]], (), [("i1", "in"), ("i8", "out"), ("f8", "out")])
    k.phase(0)
    v = k.load(0, {0: 1})
    total, real = k.reduce("sum", "i8", v), k.reduce("sum", "f8", v)
    k.phase()
    k.store(1, {}, total)
    k.store(2, {}, real)
    x = np.full(1000, 100, "i1")
    whole, floating = run(single(k, [x], [("i8", ()), ("f8", ())], (N[0],)), x)
    assert whole == floating == 100_000


def test_phases_share_values() -> None:
    """Mean and variance of everything: a phase without axes between two with them."""
    from tests.plan_runner import CAST, DIVIDE, SUBTRACT

    k = KernelBuilder([S[0]], (), [("f8", "in"), ("f8", "out"), ("f8", "out")])
    k.phase(0)
    total = k.reduce("sum", "f8", k.load(0, {0: 1}))
    k.phase()
    count = k.apply(CAST, "f8", k.extent(S[0]))
    mean = k.apply(DIVIDE, "f8", total, count)
    k.store(1, {}, mean)
    k.phase(0)
    d = k.apply(SUBTRACT, "f8", k.load(0, {0: 1}), mean)
    squares = k.reduce("sum", "f8", k.apply(MULTIPLY, "f8", d, d))
    k.phase()
    k.store(2, {}, k.apply(DIVIDE, "f8", squares, count))
    x = np.random.default_rng(5).standard_normal(65537)
    mean_got, variance = run(single(k, [x], [("f8", ()), ("f8", ())], (N[0],)), x, threads=2)
    np.testing.assert_allclose([mean_got, variance], [x.mean(), x.var()], rtol=1e-13)
