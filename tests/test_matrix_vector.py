"""A matrix and a vector: whatever is left of rows and columns, steps, threads, infinities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from tests.prelude_loops import needs_compiler

pytestmark = needs_compiler


@npjit.jit
def product(a: Any, x: Any) -> Any:
    return a @ x


@npjit.jit
def turned_product(x: Any, a: Any) -> Any:
    return x @ a


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("turned", [False, True])
def test_all_that_is_left_over(dtype: str, turned: bool) -> None:
    """Fewer rows than are done at once, rows shorter than a vector, and what ends within one."""
    rng = np.random.default_rng(0)
    for m in (2, 7, 8, 9, 17):
        for n in (2, 5, 7, 8, 9, 15, 16, 17, 31, 40):
            a, x = rng.random((m, n)).astype(dtype), rng.random(n).astype(dtype)
            got = turned_product(x, a.T) if turned else product(a, x)
            np.testing.assert_allclose(got, a @ x, rtol=4e-6 if dtype == "f4" else 1e-14)


def test_steps() -> None:
    rng = np.random.default_rng(1)
    wide, x = rng.random((40, 60)), rng.random(90)
    np.testing.assert_allclose(product(wide[:, :30], x[::3]), wide[:, :30] @ x[::3], rtol=1e-14)
    np.testing.assert_allclose(product(wide[::2], x[:60]), wide[::2] @ x[:60], rtol=1e-14)
    np.testing.assert_allclose(product(wide[::-1], x[59::-1]), wide[::-1] @ x[59::-1], rtol=1e-14)


def test_on_all_threads() -> None:
    rng = np.random.default_rng(2)
    for m, n in ((700, 900), (3, 100_000), (50_000, 3)):
        a, x = rng.random((m, n)), rng.random(n)
        np.testing.assert_allclose(product(a, x), a @ x, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_infinities_count_once(dtype: str) -> None:
    """The last vector of a row has elements that have been added already."""
    for place in range(21):
        a, x = np.ones((9, 21), dtype), np.ones(21, dtype)
        a[:, place] = np.inf
        assert (product(a, x) == np.inf).all()
        x[place] = 0
        assert np.isnan(product(a, x)).all()
