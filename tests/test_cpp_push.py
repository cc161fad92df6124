"""Folds over earlier elements of a row that these hand on: which loops are such, and that every
element comes out the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.codegen.cpp_push import push_folds

rng = np.random.default_rng(47)


def pairs(t: Any, x: Any) -> None:
    """The most pairs that can form (Nussinov)."""
    n = len(x)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            pair = 1 if x[i] + x[j] == 3 and i < j - 1 else 0
            t[i, j] = max(t[i, j], t[i, j - 1], t[i + 1, j], t[i + 1, j - 1] + pair)
            for k in range(i + 1, j):
                t[i, j] = max(t[i, j], t[i, k] + t[k + 1, j])


def least(t: Any, x: Any) -> None:
    """Another array down whose columns the fold goes, and a gap of two elements."""
    b = np.ones((len(x) + 3, len(x)), dtype=t.dtype)
    b[: len(x)] = t.T
    for i in range(len(x)):
        for j in range(2, len(x)):
            t[i, j] = min(x[j], t[i, j])
            for k in range(j - 1):
                t[i, j] = min(t[i, k] * b[k, j] - x[i], t[i, j])


def counted(t: Any, x: Any) -> None:
    """Sums that wrap."""
    for i in range(1, len(x)):
        for j in range(1, len(x)):
            t[i, j] = x[j] + (t[i, j] + t[i - 1, j])
            for k in range(j):
                t[i, j] = t[i, j] + t[i, k] * t[k % 1, j]


def into_itself(t: Any, x: Any) -> None:
    """Other rows are this one where i is small."""
    for i in range(len(x)):
        for j in range(1, len(x)):
            t[i, j] = max(t[i, j], x[j])
            for k in range(j):
                t[i, j] = max(t[i, j], t[i, k] - t[k, j])


PUSHED = [pairs, least, counted, into_itself]


def overwritten(t: Any, x: Any) -> None:
    """What an element has is not joined to anything."""
    for i in range(1, len(x)):
        for j in range(1, len(x)):
            t[i, j] = x[j]
            for k in range(j):
                t[i, j] = max(t[i, j], t[i, k] - t[0, j])


def mixed(t: Any, x: Any) -> None:
    for i in range(1, len(x)):
        for j in range(1, len(x)):
            t[i, j] = min(t[i, j], x[j])
            for k in range(j):
                t[i, j] = max(t[i, j], t[i, k] - t[0, j])


def used_twice(t: Any, x: Any) -> None:
    for i in range(1, len(x)):
        for j in range(1, len(x)):
            t[i, j] = max(t[i, j], x[j])
            for k in range(j):
                t[i, j] = max(t[i, j], t[i, k] - t[i, j])


def ahead(t: Any, x: Any) -> None:
    """Reads elements of the row that are not through."""
    for i in range(1, len(x)):
        for j in range(1, len(x) - 1):
            t[i, j] = max(t[i, j], x[j], t[i, j + 1])
            for k in range(j):
                t[i, j] = max(t[i, j], t[i, k] - t[0, j])


def all_of_it(t: Any, x: Any) -> None:
    """The element itself is among what it takes in."""
    for i in range(1, len(x)):
        for j in range(1, len(x)):
            t[i, j] = max(t[i, j], x[j])
            for k in range(j + 1):
                t[i, j] = max(t[i, j], t[i, k] - t[0, j])


REFUSED = [overwritten, mixed, used_twice, ahead, all_of_it]


def is_pushed(f: Callable[..., Any], dtype: str) -> bool:
    t, x = np.ones((30, 30), dtype), np.ones(30, dtype)
    plan = npjit.jit(f).lower(t, x).compiled.plan
    assert plan is not None
    return push_folds(plan) != plan


def check(f: Callable[..., Any], dtype: str) -> None:
    jitted = npjit.jit(f)
    for n in (2, 5, 9, 10, 23, 40, 57):
        want = rng.integers(-9, 9, (n, n)).astype(dtype)
        x = rng.integers(0, 4, n).astype(dtype)
        got = want.copy()
        with np.errstate(over="ignore"):
            f(want, x)
        jitted(got, x)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["i8", "i4"])
@pytest.mark.parametrize("f", PUSHED)
def test_pushed(f: Callable[..., Any], dtype: str) -> None:
    assert is_pushed(f, dtype)
    check(f, dtype)


@pytest.mark.parametrize("f", REFUSED)
def test_refused(f: Callable[..., Any]) -> None:
    assert not is_pushed(f, "i8")
    check(f, "i8")


def test_order_matters_for_floats() -> None:
    """Sums are rounded, and of two zeros the first one counts."""
    assert not any(is_pushed(f, "f8") for f in PUSHED)
