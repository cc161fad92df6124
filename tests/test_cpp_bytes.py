"""Rows of small numbers: a last vector begins earlier, where nothing is read that is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from tests.prelude_loops import needs_compiler

pytestmark = needs_compiler


def life(board: Any, generations: int) -> None:
    for _ in range(generations):
        near = np.zeros(board.shape, dtype=board.dtype)
        near[1:-1, 1:-1] = (
            board[:-2, 1:-1] + board[2:, 1:-1] + board[1:-1, :-2] + board[1:-1, 2:] + board[2:, 2:]
        )
        board[:] = (near == 3) | ((board == 1) & (near == 2))


def inner(a: Any, b: Any) -> Any:
    return (a[:, 1:-1] + b[:, 2:]) * 3 ^ b[:, :-2]


def in_place(a: Any, b: Any) -> None:
    a[:, 1:-1] += b[:, 2:] * 2
    a[:, 1:-1] *= 3


def row_of(dtype: str, width: int) -> Any:
    return np.random.default_rng(width).integers(0, 2, (5, width)).astype(dtype)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4"])
def test_widths(dtype: str) -> None:
    compiled = [npjit.jit(f) for f in (inner, in_place, life)]
    for width in [*range(3, 20), 31, 33, 34, 63, 64, 65, 66, 67, 100, 127, 129, 130, 131, 200]:
        a, b = row_of(dtype, width), row_of(dtype, width + 1)[:, :-1].copy()
        np.testing.assert_array_equal(compiled[0](a, b), inner(a, b))
        for f, made, more in ((in_place, compiled[1], b), (life, compiled[2], 3)):
            got, want = a.copy(), a.copy()
            made(got, more)
            f(want, more)
            np.testing.assert_array_equal(got, want)


def test_what_is_written_is_done_once() -> None:
    a, b = row_of("i1", 70), row_of("i1", 70)
    apart = npjit.jit(inner).lower(a, b).as_text("cpp")
    same = npjit.jit(in_place).lower(a, b).as_text("cpp")
    wide = npjit.jit(inner).lower(a.astype("i8"), b.astype("i8")).as_text("cpp")
    assert "whole1" in apart
    assert "whole1" not in same + wide


def test_results_in_the_place_of_operands() -> None:
    """A kernel whose result takes its operand's memory is not repeated either."""

    def f(a: Any, b: Any) -> Any:
        total = np.cumsum(a, axis=1, dtype=a.dtype)
        doubled = total * 2 + b
        return np.cumsum(doubled, axis=1, dtype=a.dtype)

    compiled = npjit.jit(f)
    for width in (5, 64, 70, 130):
        a, b = row_of("i1", width), row_of("i1", width)
        np.testing.assert_array_equal(compiled(a, b), f(a, b))
