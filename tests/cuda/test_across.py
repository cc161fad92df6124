"""Rows and columns in one kernel, under the emulator: what is joined, what is not, and at which
sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from benches.gpu import workloads
from npjit.codegen import cuda_persistent
from tests.cuda import fake_cupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    # few blocks, so that each does many rows
    monkeypatch.setattr(cuda_persistent, "_UNITS", 1)
    return fake_cupy.install(monkeypatch)


def normal(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def check(cupy: Any, jitted: Any, function: Callable[..., Any], *args: Any) -> None:
    """What a compiled function gives is what the same in float64 gives."""
    got = jitted(*map(cupy.asarray, args))
    want = function(*(a.astype("f8") for a in args))
    assert jitted.cache_info()["whole"] >= 1
    for g, w in zip(got, want, strict=True):
        scale = np.abs(w).max(initial=1)
        tolerance = (1e-5 if args[0].dtype == "f4" else 1e-12) * scale
        np.testing.assert_allclose(g.get(), w, rtol=0, atol=tolerance)


def both(x, w, y):
    z = x @ w
    g = np.tanh(z) - y
    return (g * g).mean(), x.T @ g


def text(cupy: Any, function: Any, *args: Any) -> str:
    return npjit.jit(function).lower(*map(cupy.asarray, args)).as_text("cuda")


def arguments(dtype: str, rows: int, columns: int) -> Any:
    return normal(dtype, rows, columns), normal(dtype, columns), normal(dtype, rows)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_from_both_sides(cupy: Any, dtype: str) -> None:
    jitted = npjit.jit(both, fullgraph=True)
    for rows, columns in [(1, 17), (40, 128), (300, 89), (700, 30), (50, 50), (3, 1000), (0, 20)]:
        check(cupy, jitted, both, *arguments(dtype, rows, columns))
    assert "_rows(" in text(cupy, both, *arguments(dtype, 30, 40))


def test_rows_that_no_group_holds(cupy: Any) -> None:
    check(cupy, npjit.jit(both, fullgraph=True), both, *arguments("f8", 3, 20_000))


def columns_and_rows(x, scale, weights):
    mean = x.mean(axis=-1, keepdims=True)
    y = (x - mean) * scale
    total = (y * weights).sum(axis=(0, 1))
    return y, total, (x * weights).max(axis=(0, 1)), mean.min()


@pytest.mark.parametrize("columns", [20, 33, 260])
def test_rows_along_two_axes(cupy: Any, columns: int) -> None:
    x, weights = normal("f8", 7, 9, columns), normal("f8", 7, 9, columns) + 1
    check(
        cupy,
        npjit.jit(columns_and_rows, fullgraph=True),
        columns_and_rows,
        x,
        normal("f8", columns),
        weights,
    )


@pytest.mark.parametrize("columns", [20, 89, 716])
def test_layer_norm_in_single_precision(cupy: Any, columns: int) -> None:
    args = [normal("f4", 50, columns), normal("f4", columns), normal("f4", columns)]
    args.append(normal("f4", 50, columns) + 2)
    gradient = npjit.value_and_grad(workloads.layer_norm_loss, argnums=(0, 1, 2))
    value, parts = gradient(*map(cupy.asarray, args))
    want, wanted = gradient(*(a.astype("f8") for a in args))
    np.testing.assert_allclose(value.get(), want, rtol=1e-4)
    for g, w in zip(parts, wanted, strict=True):
        np.testing.assert_allclose(g.get(), w, rtol=0, atol=2e-5 * np.abs(w).max())


def not_joined(x, w):
    z = x @ w
    x[:, 0] = z
    return x.T @ z


def needs_all_rows(x, w):
    z = x @ w
    return x.T @ (z / z.sum())


@pytest.mark.parametrize("function", [not_joined, needs_all_rows])
def test_what_needs_other_rows_is_not_joined(cupy: Any, function: Any) -> None:
    x, w, _ = arguments("f8", 30, 20)
    assert "_rows(" not in text(cupy, function, x, w)
    got = npjit.jit(function, fullgraph=True)(cupy.asarray(x.copy()), cupy.asarray(w))
    np.testing.assert_allclose(got.get(), function(x, w), rtol=1e-12, atol=1e-12)


def descent(x, y, w):
    for _ in range(30):
        z = x @ w
        w = w - 0.001 * (x.T @ (np.tanh(z) - y))
    return w


def inside_a_loop(x, w):
    for _ in range(40):
        w = w * 0.5 + 1
    z = x @ w
    return x.T @ z, w


def test_in_and_behind_loops(cupy: Any) -> None:
    x, w, y = arguments("f8", 40, 20)
    got = npjit.jit(descent, fullgraph=True)(*map(cupy.asarray, (x, y, w)))
    np.testing.assert_allclose(got.get(), descent(x, y, w), rtol=1e-12)
    assert "_rows(" in text(cupy, descent, x, y, w)
    check(cupy, npjit.jit(inside_a_loop, fullgraph=True), inside_a_loop, x, w)
