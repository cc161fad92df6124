"""Loops in which each trip goes on until data end it: several trips at once, one in each lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import check_calls

rng = np.random.default_rng(8)


def points(x, y, steps):
    for i in range(len(x)):
        for j in range(len(y)):
            a, b, n = 0.0, 0.0, 0
            while n < 30 and a * a + b * b < 4.0:
                a, b = a * a - b * b + x[i], 2.0 * a * b + y[j]
                n += 1
            steps[i, j] = n


def roots(x, y, steps):
    for i in range(len(x)):
        v, guess, k = abs(x[i]) + 0.1, 1.0, 0
        before = 2.0 * v
        while abs(guess * guess - v) > 1e-12 and k < 60:
            guess = 0.5 * (guess + v / guess)
            k += 1
        x[i] = guess + before
        steps[i, 0] = k


def stopped(x, y, steps):
    for i in range(len(x)):
        s, a = 0.0, 3.0 * x[i]
        for k in range(40):
            if s > 5.0:
                break
            s = s + abs(x[i]) * k + np.sqrt(a * a)
        x[i] = s - a


def down_and_up(x, y, steps):
    for i in range(len(x)):
        k, odd = i, False
        while k != 0:
            k = k >> 1
            odd = not odd
        steps[i, 0] = 1 if odd else -1


def sizes_of_ints(x, y, steps):
    for i in range(len(x)):
        a, k = x[i], steps[i, 0] - 5
        while a < 2.0 and k < 20:
            k = abs(k) - 3
            a = a + 0.25
        steps[i, 0] = k


IN_LANES = [points, roots, stopped, sizes_of_ints]


def in_order_of_bools(x, y, steps):
    for i in range(len(x)):
        a, k = 0.25, 0
        while k < 20 and (a < 4.0) >= (k >= 6):
            a = a * a + x[i]
            k += 1
        steps[i, 0] = k


def summed(x, y, steps):
    total = 0
    for i in range(len(x)):
        v = abs(x[i])
        while v > 0.1:
            v = 0.5 * v
            total += 1
    steps[0, 0] = total


def carried(x, y, steps):
    for i in range(1, len(x)):
        v = x[i]
        while abs(v) > abs(x[i - 1]):
            v = 0.5 * v
        x[i] = v


def memory_of_a_trip(x, y, steps):
    for i in range(len(x)):
        pair = np.empty(2)
        pair[steps[i, 0] & 1] = x[i]
        pair[1 - (steps[i, 0] & 1)] = 2.0 * x[i]
        v = 9.0
        while v > abs(x[i]):
            v = 0.5 * v
        x[i] = pair[0] - pair[1] + v


def computed_places(x, y, steps):
    for i in range(len(x)):
        k = 0
        while y[k] < x[i] and k < len(y) - 1:
            k += 1
        steps[i, 0] = k


ONE_BY_ONE = [
    down_and_up,
    in_order_of_bools,
    summed,
    carried,
    memory_of_a_trip,
    computed_places,
]


@pytest.mark.parametrize("n", [2, 7, 8, 16, 17, 45])
@pytest.mark.parametrize("f", IN_LANES + ONE_BY_ONE, ids=lambda f: f.__name__)
def test_values(f: Callable[..., Any], n: int) -> None:
    check_calls(compiled(f), *arguments(n), calls=2)


def arguments(n: int) -> tuple[np.ndarray[Any, Any], ...]:
    x, y = rng.normal(size=n), np.sort(rng.normal(size=max(n // 3, 2)))
    return x, y, np.zeros((n, len(y)), np.int64)


COMPILED: dict[Callable[..., Any], Any] = {}


def compiled(f: Callable[..., Any]) -> Any:
    return COMPILED.setdefault(f, npjit.jit(f))


def test_what_is_done_in_lanes() -> None:
    def is_in_lanes(f: Callable[..., Any]) -> bool:
        return "nj_many<" in compiled(f).lower(*arguments(45)).as_text("cpp")

    assert [f for f in IN_LANES if not is_in_lanes(f)] == []
    assert [f for f in (summed, carried, memory_of_a_trip) if is_in_lanes(f)] == []


def test_a_check_behind_the_inner_loop() -> None:
    """It fails for one of the points, and NumPy says so."""

    def narrow(x, out):
        for i in range(len(x)):
            n = 0
            while n < x[i]:
                n += 1
            out[i] = n

    x = rng.integers(0, 100, 40)
    check_calls(npjit.jit(narrow), x, np.zeros(40, np.int8), calls=1)
    x[23] = 300
    check_calls(npjit.jit(narrow), x, np.zeros(40, np.int8), calls=1, mode="numpy")
