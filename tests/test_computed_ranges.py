"""range() over ints that the compiled code computes, and powers of masked elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.calls import check_calls

Jit = Callable[..., Any]


def between(x, ends):
    total = np.float64(0.0)
    for k in range(len(ends) - 1):
        for i in range(ends[k], ends[k + 1]):
            total += x[i]
    return total


def downwards(x, ends):
    for k in range(len(ends)):
        for i in range(5, ends[k] - 1, -2):
            x[i] += i
    return x


def sums_before(x, ends):
    for k in range(len(ends)):
        w = ends[k]
        if w > 2:
            for i in range(w):
                x[i] += np.sum(x[:i])
    return x


def counted(x, ends):
    total = 0
    for i in range(int(ends[2])):
        total += i
    return total


ENDS = [[0, 2, 4, 5], [3, 3, 1, 1], [1, 8, 3, 3], [4, 0, 0, 7]]


@pytest.mark.parametrize("f", [between, downwards, sums_before, counted])
def test_computed_range(f: Callable[..., Any], jit: Jit) -> None:
    compiled = jit(f)
    for ends in ENDS:
        check_calls(compiled, np.arange(9.0), np.array(ends), calls=1)


def test_range_near_the_end_of_int64_is_numpys(jit: Jit) -> None:
    def last(n):
        found = 0
        for i in range(n[0] - 2, n[0]):
            found = i
        return found

    check_calls(jit(last), np.array([2**62]), mode="numpy", calls=1)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.int64])
def test_square_of_masked_elements(dtype: Any, jit: Jit) -> None:
    def f(x):
        m = x.real > 2
        y = x + 1
        y[m] = x[m] ** 2
        return y

    x = np.arange(1, 8).astype(dtype)
    check_calls(jit(f), x * (1 + 0.3j) if dtype is np.complex128 else x)


def test_root_of_masked_elements(jit: Jit) -> None:
    """The operator takes the square root, which keeps -0.0 as np.power does not."""

    def f(x):
        m = x < 1
        y = x + 1
        y[m] = x[m] ** 0.5
        return y

    check_calls(jit(f), np.array([-0.0, 0.0, 0.3, 4.0, -np.inf]))
