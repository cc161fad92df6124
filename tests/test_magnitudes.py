"""Comparisons of |z| with a number: by squares where that is the same, in every kind of loop."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from tests.prelude_loops import check, needs_compiler

pytestmark = needs_compiler

LIMITS = (2.0, 5.0, 0.1, 1e-200, 1e200, 5e-324, 0.0, -1.0, np.inf, np.nan)
# parts whose magnitudes are far from the limits or just so large
PARTS = np.array([0.0, -0.0, 3.0, -4.0, 0.1, 1.25, 1e-201, 3e-170, 1e170, 3e200, np.inf, np.nan])
Z = (PARTS[:, None] + 1j * np.where(np.isfinite(PARTS), PARTS, 1.0)).ravel()
Z.imag[::7] = np.inf
Z.imag[3::11] = np.nan

COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq)


@pytest.mark.parametrize("compare", COMPARISONS)
def test_all_numbers(compare: Callable[[Any, Any], Any]) -> None:
    def both(z: Any, h: float) -> Any:
        return compare(np.abs(z), h), compare(h, np.abs(z))

    compiled = npjit.jit(both)
    for h in LIMITS:
        for got, want in zip(compiled(Z, h), both(Z, h), strict=True):
            np.testing.assert_array_equal(got, want, err_msg=str(h))


def test_squares_are_taken_for_fixed_numbers_alone() -> None:
    def below(z: Any, h: Any) -> Any:
        return np.abs(z) < h

    fixed = npjit.jit(below).lower(Z, 2.0)
    varying = npjit.jit(below).lower(Z, np.abs(Z))
    single = npjit.jit(below).lower(np.ones(9, "c8"), np.float32(2.0))
    assert "nj_square_reaching" in fixed.as_text("cpp")
    assert "nj_square_reaching" not in varying.as_text("cpp") + single.as_text("cpp")


@pytest.mark.parametrize("limit", [2.0, 1e140])
def test_trips_by_masks(limit: float) -> None:
    def escapes(c: Any, rounds: int, limit: float) -> Any:
        z = np.zeros(c.shape, dtype=np.complex128)
        count = np.zeros(c.shape, dtype=np.int64)
        for n in range(rounds):
            inside = np.abs(z) <= limit
            count[inside] = n
            z[inside] = z[inside] ** 2 + c[inside]
        return z, count

    rng = np.random.default_rng(0)
    c = rng.uniform(-2, 1, (30, 31)) + 1j * rng.uniform(-1, 1, (30, 31))
    got, want = npjit.jit(escapes)(c, 12, limit), escapes(c, 12, limit)
    np.testing.assert_array_equal(got[1], want[1])
    np.testing.assert_allclose(got[0], want[0], rtol=1e-12)


def test_least_square_that_reaches() -> None:
    """The one just below it has a root that does not."""
    held = "nj_from_bits((nj_bits(v0) & 0x800fffffffffffff) | 0x3ff0000000000000)"
    moderate = f"nj_absolute({held})"
    least = f"nj_square_reaching({moderate})"
    below = f"nj_from_bits(nj_bits({least}) - 1)"
    reaches = f"b1(nj_sqrt({least}) >= {moderate})"
    falls = f"b1(nj_sqrt({below}) < {moderate})"
    check([(f"b1({reaches} & {falls})", "d", "?", lambda x: np.ones(x.shape, bool))])
