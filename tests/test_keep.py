"""Values kept between loops: long chains of reductions stay linear in work, text and time."""

from __future__ import annotations

from typing import Any

import numpy as np

import npjit
from npjit.schedule.merge import MOST_REDUCTIONS


def chain(x: Any, axis: Any, turns: int) -> Any:
    if turns == 0:
        return x
    x = (x - np.sum(x, axis=axis, keepdims=True) * 0.001) * 0.999
    return chain(x, axis, turns - 1)


def kernels(turns: int, axis: Any) -> str:
    x = np.ones((4, 5))
    text: str = npjit.jit(lambda x: chain(x, axis, turns)).lower(x).as_text("kernels")
    return text


def test_values() -> None:
    x = np.random.default_rng(0).standard_normal((30, 40))
    for axis in (None, 0, 1):
        compiled = npjit.jit(lambda x, axis=axis: chain(x, axis, 40))
        np.testing.assert_allclose(compiled(x), chain(x, axis, 40), rtol=1e-12, atol=1e-12)
        assert compiled.cache_info()["numpy"] == 0


def test_text_grows_with_the_chain() -> None:
    for axis in (None, 1):
        short, long = (len(kernels(turns, axis)) for turns in (30, 120))
        assert long < 5 * short


def test_kept_values_share_memory() -> None:
    assert kernels(12, 1).count(": row float64") == 1


def test_equal_kernels_are_one() -> None:
    turns = 6 * MOST_REDUCTIONS
    assert kernels(turns, None).count("= kernel over") < 6
