"""Values of all pairs without the array of pairs, under the emulator: what is joined, what is not,
and at which sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from benches.gpu import workloads
from tests.cuda import fake_cupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cupy.install(monkeypatch)


def normal(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def text(cupy: Any, function: Any, *args: Any) -> str:
    return npjit.jit(function).lower(*map(cupy.asarray, args)).as_text("cuda")


def check(cupy: Any, jitted: Any, function: Any, *args: Any) -> None:
    got = jitted(*map(cupy.asarray, args))
    want = np.asarray(function(*(a.astype("f8") for a in args)))
    tolerance = (1e-5 if args[0].dtype == "f4" else 1e-12) * np.abs(want).max(initial=1)
    np.testing.assert_allclose(got.get(), want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_forces(cupy: Any, dtype: str) -> None:
    jitted = npjit.jit(workloads.nbody, fullgraph=True)
    for n in (40, 64, 130, 515):
        check(cupy, jitted, workloads.nbody, normal(dtype, n, 3), np.abs(normal(dtype, n)))
    source = text(cupy, workloads.nbody, normal(dtype, 40, 3), normal(dtype, 40))
    assert "_partners(" in source and "k2_ends(" in source


def nearest(x, y):
    apart = np.abs(x[:, None] - y[None, :])
    return apart.min(axis=1)


def which(x, y):
    return np.argmin((x[:, None] - y[None, :]) ** 2, axis=1)


def density(x, y):
    return np.exp(-((x[:, None] - y[None, :]) ** 2)).mean(axis=0)


@pytest.mark.parametrize("function", [nearest, which, density])
def test_one_value_of_every_pair(cupy: Any, function: Any) -> None:
    jitted = npjit.jit(function, fullgraph=True)
    for n, m in [(70, 300), (600, 65), (3, 500)]:
        check(cupy, jitted, function, normal("f8", n), normal("f8", m))
    assert "_partners(" in text(cupy, function, normal("f8", 70), normal("f8", 300))


def kept(x, m):
    apart = x[:, None, :] - x[None, :, :]
    w = np.sqrt((apart * apart).sum(axis=-1) + 1)
    return w, (apart * (m / w)[:, :, None]).sum(axis=1)


def normalised(x, m):
    w = np.exp(-np.abs(x[:, None] - x[None, :]))
    return (w / w.sum(axis=1, keepdims=True) * m).sum(axis=1)


def test_arrays_of_pairs_that_are_needed(cupy: Any) -> None:
    x, m = normal("f8", 70, 3), np.abs(normal("f8", 70))
    for got, want in zip(
        npjit.jit(kept)(cupy.asarray(x), cupy.asarray(m)), kept(x, m), strict=True
    ):
        np.testing.assert_allclose(got.get(), want, rtol=1e-12, atol=1e-12)
    check(cupy, npjit.jit(normalised, fullgraph=True), normalised, x[:, 0], m)


def test_gradients_of_pairs(cupy: Any) -> None:
    x, y = normal("f8", 70), normal("f8", 90)
    gradient = npjit.grad(lambda x, y: density(x, y).max(), argnums=(0, 1))
    for got, want in zip(gradient(cupy.asarray(x), cupy.asarray(y)), gradient(x, y), strict=True):
        np.testing.assert_allclose(got.get(), want, rtol=1e-12, atol=1e-12)


def moved(x, m):
    w = 1 / (1 + np.abs(x[:, None] - x[None, :]))
    x[:] = (w * m[None, :]).sum(axis=1)
    return x


def growing(x, m, n):
    total = np.zeros(3)
    for k in range(n, n + 30):
        apart = x[:k, None, :] - x[None, :k, :]
        w = 1 / ((apart * apart).sum(axis=-1) + 1)
        total = total + (apart * (w * m[None, :k])[:, :, None]).sum(axis=1)[0]
    return total


def test_rows_in_place_and_pairs_that_grow(cupy: Any) -> None:
    x, m = normal("f8", 70, 3), np.abs(normal("f8", 70))
    given, want = cupy.asarray(x[:, 0].copy()), x[:, 0].copy()
    npjit.jit(moved, fullgraph=True)(given, cupy.asarray(m))
    np.testing.assert_allclose(given.get(), moved(want, m), rtol=1e-12)
    got = npjit.jit(growing, fullgraph=True)(cupy.asarray(x), cupy.asarray(m), 20)
    np.testing.assert_allclose(got.get(), growing(x, m, 20), rtol=1e-11, atol=1e-11)
