"""bfloat16 of ml_dtypes: what NumPy makes of its arrays, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from tests.cuda import fake_cupy

ml_dtypes = pytest.importorskip("ml_dtypes")
BRAIN = np.dtype(ml_dtypes.bfloat16)
SPECIAL = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3e38, 1e-39, -1e-40, 2.5, -2.5])


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(BRAIN)


X = np.concatenate([normal(300), np.repeat(SPECIAL, 12).astype(BRAIN)])
Y = np.concatenate([normal(300, seed=1), np.tile(SPECIAL, 12).astype(BRAIN)])


def assert_same(got: Any, want: Any) -> None:
    """Equal in type and value, also in the sign of zero; all NaNs are alike."""
    assert type(got) is type(want) and got.dtype == want.dtype
    if want.dtype == BRAIN:
        got, want = (np.asarray(a).astype("f4") for a in (got, want))
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


def check(function: Any, *args: Any) -> Any:
    """What the compiled function gives: exactly what NumPy gives."""
    jitted = npjit.jit(function, fullgraph=True)
    with np.errstate(all="ignore"):
        got, want = jitted(*args), function(*args)
    assert jitted.cache_info()["whole"] == 1
    assert_same(got, want)
    return got


ONE = [
    np.negative, np.absolute, np.sqrt, np.exp, np.log, np.log1p, np.sin, np.tanh, np.arctan,
    np.floor, np.rint, np.sign, np.square, np.reciprocal, np.cbrt, np.spacing, np.isnan,
    np.signbit,
]  # fmt: skip
TWO = [
    np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum, np.fmax, np.fmin,
    np.power, np.arctan2, np.fmod, np.floor_divide, np.copysign, np.nextafter, np.less, np.equal,
    np.greater_equal,
]  # fmt: skip


@pytest.mark.parametrize("group", [ONE[:6], ONE[6:12], ONE[12:], TWO[:6], TWO[6:12], TWO[12:]])
def test_functions(group: list[np.ufunc]) -> None:
    """Exact: computed in float32 and rounded, as ml_dtypes does."""

    def all_of(x: Any, y: Any) -> Any:
        return tuple(f(*(x, y)[: f.nin]) for f in group)

    with np.errstate(all="ignore"):
        got, want = npjit.jit(all_of, fullgraph=True)(X, Y), all_of(X, Y)
    for f, g, w in zip(group, got, want, strict=True):
        try:
            assert_same(g, w)
        except AssertionError as e:
            raise AssertionError(f.__name__) from e


def test_chains_round_after_each_operation() -> None:
    check(lambda x, y: (x * y + x) / (y * y + x * 2) - np.tanh(x), X, Y)


@pytest.mark.parametrize("other", ["?", "i1", "u1", "i4", "i8", "f2", "f4", "f8"])
def test_conversions_and_promotions(other: str) -> None:
    y = (np.arange(300) % 100 - (0 if other in ("?", "u1") else 50)).astype(other)
    x = X[:300]
    check(lambda y: y.astype(BRAIN), y)
    check(lambda x: x.astype(other), x)
    check(lambda x, y: x + y, x, y)


def test_python_numbers_and_scalars() -> None:
    half = BRAIN.type(0.5)
    assert check(lambda x: x * 2, X).dtype == BRAIN
    assert check(lambda x: x * 2.0, X).dtype == np.float32
    assert check(lambda x: x * half, X).dtype == BRAIN
    check(lambda x: x[3] * x[5], X)
    check(lambda x: ml_dtypes.bfloat16(x[0].astype("f4")) * x + ml_dtypes.bfloat16(2), X)


def test_movement_and_storage() -> None:
    def program(x: Any) -> Any:
        made = np.zeros_like(x)
        made[1:4] = x[::-1][:3]
        made[x > 1] *= 2
        return np.concatenate([made, x[np.array([3, 1, 2])], np.sort(x)])

    check(program, normal(50))
    check(lambda x: np.where(x > 0, x, x.T), normal(9, 9))


def test_reductions_accumulate_in_float32() -> None:
    x = normal(64, 96)
    wide = x.astype("f8")
    for function in (np.sum, np.mean):
        got = npjit.jit(lambda x, f=function: f(x, axis=1), fullgraph=True)(x)
        assert got.dtype == BRAIN
        np.testing.assert_allclose(got.astype("f8"), function(wide, axis=1), rtol=0.02, atol=1e-3)
    check(lambda x: x.max(axis=0), x)
    check(lambda x: x.argmax(axis=1), x)
    check(lambda x: (x.max(), x.min(), x.argmin())[0], x)


def test_products_and_gradients() -> None:
    x, w = normal(20, 30), normal(30, 7, seed=1)
    np.testing.assert_allclose(npjit.jit(np.matmul)(x, w), x @ w, rtol=1e-5, atol=1e-5)
    assert npjit.jit(np.matmul)(x, w).dtype == np.float32

    def loss(w: Any) -> Any:
        return (np.tanh(x @ w) ** 2).sum()

    got = npjit.grad(loss)(w)
    t = np.tanh(x.astype("f8") @ w.astype("f8"))
    assert got.dtype == BRAIN
    want = x.astype("f8").T @ (2 * t * (1 - t * t))
    np.testing.assert_allclose(got.astype("f8"), want, rtol=0.02, atol=0.02)


def test_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = fake_cupy.install(monkeypatch)
    x, y = X[:300], Y[:300]

    def program(x: Any, y: Any) -> Any:
        e = np.exp(x - np.maximum(x, y)) * 2 - y
        return e, e.astype("f4") + x, e.max(), np.where(x > y, e, x)

    got = npjit.jit(program, fullgraph=True)(cupy.asarray(x), cupy.asarray(y))
    for g, w in zip(got, program(x, y), strict=True):
        assert_same(np.asarray(g.get()), np.asarray(w))
