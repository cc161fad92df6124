"""Choices in the trips of a loop, under the emulator: the same values, signs of zeros included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from tests.cuda import fake_cupy

# what is chosen where 1 or 0 was to be added
CHOSEN = " + 1.0f;"


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cupy.install(monkeypatch)


def counting(x, start):
    count = start
    for _ in range(6):
        count = count + np.where(x > 1, np.float32(1), np.float32(0))
        x = np.where(x > 1, x - np.float32(0.5), x)
    return count, x


def from_zeros(x):
    return counting(x, np.zeros_like(x))


def swapped(x, y):
    for _ in range(5):
        small = x < y
        x, y = np.where(small, y, x + 1), np.where(small, x, y)
    return x, y


def added_to_a_product(x):
    total = np.zeros_like(x)
    for _ in range(6):
        total = total * x + np.where(x > 0, np.float32(1), np.float32(0))
    return (total,)


def in_integers(x, n):
    for _ in range(5):
        n = n + np.where(x > n, 2, 0)
    return (n,)


def check(cupy: Any, function: Any, *args: Any) -> str:
    """Bits are equal; the printed text."""
    jitted = npjit.jit(function, fullgraph=True)
    given = [cupy.asarray(a) for a in args]
    for got, want in zip(jitted(*given), function(*args), strict=True):
        np.testing.assert_array_equal(got.get(), want)
        np.testing.assert_array_equal(np.signbit(got.get()), np.signbit(want))
    text = jitted.lower(*given).as_text("cuda")
    assert "for (idx trip" in text
    return text.rpartition("for (idx trip")[2].partition("nj_store")[0]


def line(low: float = -3) -> Any:
    return np.linspace(low, 7, 41, dtype="f4")


def test_what_is_added_to_no_minus_zero_is_chosen(cupy: Any) -> None:
    assert CHOSEN in check(cupy, from_zeros, line())


def test_minus_zeros_become_zeros(cupy: Any) -> None:
    """-0.0 + 0.0 is 0.0."""
    start = np.full(41, -0.0, "f4")
    assert CHOSEN not in check(cupy, counting, line(), start)


def test_a_product_may_be_minus_zero(cupy: Any) -> None:
    assert CHOSEN not in check(cupy, added_to_a_product, line())


def test_values_that_take_each_others_place(cupy: Any) -> None:
    check(cupy, swapped, line(), line()[::-1].copy())


def test_integers(cupy: Any) -> None:
    check(cupy, in_integers, line(), np.arange(41) % 5)
