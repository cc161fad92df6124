"""Stores by position: `.flat`, put, place, putmask, fill_diagonal, `ufunc.at`, parts of complex
numbers; and functions of one number for arrays of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import assert_same

A = np.random.default_rng(1).standard_normal((12, 9))
TALL = np.arange(60.0).reshape(20, 3)
I = np.random.default_rng(2).integers(0, 9, 20)  # noqa: E741
Z = A + 1j * A[::-1]


def flat(a):
    a.flat[3] = 5.0
    a.flat[::4] = 1.0
    a.flat[[2, 5]] = [7.0, 8.0]
    for i in range(a.size):
        a.flat[i] += i
    total = 0.0
    for v in a.flat:
        total += v
    return total, a.flat[2:5], a.flat[7]


def whole_flat(a):
    a.flat = np.arange(5.0)


def puts(a):
    np.put(a, [1, -3, 5], [9.0, 8.0])
    a.put(3, 2.0)


def places(a):
    np.place(a, a > 1, [1.0, 2.0, 3.0])
    np.putmask(a, a < 0, a * 2)
    np.putmask(a, a > 0.5, [4.0, 5.0])


def diagonals(a):
    np.fill_diagonal(a, 7.0)
    np.fill_diagonal(a[1:], np.arange(3.0))


def wrapped_diagonal(a):
    np.fill_diagonal(a, 1.0, wrap=True)


def at(a):
    n = np.arange(9)
    np.divide.at(a[0], I, 2.0)
    np.negative.at(a[1], I)
    np.bitwise_or.at(n, I, 1)
    np.bitwise_xor.at(n, I, 3)
    return n


def parts(z):
    z.real = 1.0
    z.imag[:] = z.imag * 2
    z.real *= 2
    z.imag += 1
    for i in range(len(z)):
        z.real[i] = i
    return z.real.sum(), z.T.imag[1] * 1


def new_shape(a):
    b = a * 2
    b.shape = (9, 12)
    c = np.ndarray((3, len(a)), dtype=a.dtype)
    c[:] = a[:, 0]
    return b.sum(axis=0), c, isinstance(b, np.ndarray), type(b) is np.ndarray


MUTATING = {
    "flat": (flat, A),
    "flat of a view": (flat, A[::2, ::-1]),
    "flat in another order": (flat, np.asfortranarray(A)),
    "whole flat": (whole_flat, A),
    "put": (puts, A),
    "put into a view": (puts, A[:, 1:]),
    "place": (places, A),
    "diagonal": (diagonals, A),
    "diagonal, tall": (diagonals, TALL),
    "diagonal, wrapped": (wrapped_diagonal, TALL),
    "diagonal, wrapped, wide": (wrapped_diagonal, A[:4]),
    "at": (at, A),
    "parts": (parts, Z),
    "shape": (new_shape, A),
}


@pytest.mark.parametrize("backend", ["numpy", "cpp"])
@pytest.mark.parametrize("name", MUTATING)
def test_stores(name: str, backend: str) -> None:
    f, model = MUTATING[name]
    jitted = npjit.jit(f, backend=backend)
    for _ in range(2):
        got, want = (np.array(model, order="K", copy=True) for _ in range(2))
        if not model.flags.forc:
            got, want = (np.array(model.base)[_window(model)] for _ in range(2))
        assert_same(jitted(got), f(want))
        assert_same(got, want)
    assert jitted.cache_info()["whole"] == 2, jitted.cache_info()


def _window(model: Any) -> Any:
    """The key by which `model` is a part of A."""
    return (slice(None, None, 2), slice(None, None, -1)) if len(model) < 12 else np.s_[:, 1:]


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


clipped = np.vectorize(lambda a, low: a if a > low else low)
VECTORIZED = {
    "outside": lambda x: clipped(x, 0.0),
    "inside": lambda x: np.vectorize(lambda a: a * 2 if a > 0 else -a)(x),
    "otypes": lambda x: np.vectorize(lambda a, b: math.sqrt(abs(a)) + b, otypes=[float])(
        x[:, None], x
    ),
    "two results": lambda x: np.vectorize(lambda a: (a * 2, int(a * 3)))(x),
    "ints": lambda x: np.vectorize(collatz)((np.abs(x) * 10).astype(int) + 1),
    "float32": lambda x: np.vectorize(lambda a: a / 3)(x.astype(np.float32)),
}


@pytest.mark.parametrize("name", VECTORIZED)
def test_vectorized(name: str) -> None:
    f = VECTORIZED[name]
    jitted = npjit.jit(f)
    for x in (A[:, 0], A[:, 1]):
        assert_same(jitted(x), f(x))
    assert jitted.cache_info()["whole"] == 2, jitted.cache_info()


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_the_first_element_decides_a_dtype() -> None:
    f = np.vectorize(lambda a: a if a > 0 else 0)
    jitted = npjit.jit(lambda x: f(x))
    for x in (np.array([1.5, -1.0, 2.5] * 5), np.array([-1.0, 1.5, 2.5] * 5)):
        assert_same(jitted(x), f(x))


def numbers(x):
    total = 0
    for i in range(1, len(x)):
        quotient, rest = divmod(100, i)
        total += quotient * rest + (-1) ** i
        total += round(x[i]) + math.floor(x[i]) + math.ceil(x[i] * 2)
    most = 0
    for n in (x * 5).astype(int):
        most = max(most, n)
    return total, most, max(v for v in x if v > 0.5)


def test_numbers_in_loops() -> None:
    jitted = npjit.jit(numbers)
    for seed in (1, 2):
        x = np.random.default_rng(seed).standard_normal(300)
        assert_same(jitted(x), numbers(x))
    assert jitted.cache_info()["whole"] == 2, jitted.cache_info()


def test_products_of_quotients_stay_within_64_bits() -> None:
    """A size that multiplies quotients of extents takes guards on the extents."""

    def pooled(x, n, m):
        y = x[:, : x.shape[1] // 2 * 2 : 2] + x[:, 1::2][:, : x.shape[1] // 2]
        y = y[: y.shape[0] // 2]
        return np.reshape(y, (n, m))

    jitted = npjit.jit(pooled)
    x = np.arange(40.0 * 30).reshape(40, 30)
    assert_same(jitted(x, 60, 5), pooled(x, 60, 5))
    assert jitted.cache_info()["whole"] == 1, jitted.cache_info()
