"""Results computed in place of a copy, and copies that must stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def in_place(x: Any) -> None:
    x[...] = softmax(x)


def product(x: Any) -> Any:
    y = x @ x
    y[0] = 1
    return y


def turned(x: Any) -> None:
    x[...] = softmax(x).T


def read_between(x: Any) -> Any:
    t = softmax(x)
    total = np.sum(x, axis=0)
    x[...] = t
    return total


def overwritten_between(x: Any) -> None:
    t = softmax(x)
    x[0] = 3
    x[...] = t


def into_itself(x: Any) -> None:
    x[...] = x @ x


def shifted(x: Any) -> None:
    x[1:] = x[:-1] * 2


CASES = [
    (in_place, 1),
    (product, 2),
    (turned, 2),
    (read_between, None),
    (overwritten_between, None),
    (into_itself, 2),
    (shifted, 2),
]


@pytest.mark.parametrize(("f", "steps"), CASES)
def test_values_and_steps(f: Callable[..., Any], steps: int | None) -> None:
    for n in (1, 4, 50):
        x = np.random.default_rng(n).standard_normal((n, n))
        mine = x.copy()
        compiled = npjit.jit(f)
        lowered = compiled.lower(x.copy()).as_text("kernels")
        got, want = compiled(mine), f(x)
        np.testing.assert_allclose(mine, x, rtol=1e-12)
        if want is not None:
            np.testing.assert_allclose(got, want, rtol=1e-12)
        assert compiled.cache_info()["numpy"] == 0
    if steps is not None:
        made = lowered.splitlines()
        assert sum(line.startswith(("  launch", "  contract")) for line in made) == steps
