"""Small kernels and products of known sizes inside loops: written out, with the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import check_calls

rng = np.random.default_rng(4)


def filtered(seen, F, H, Q):
    n = F.shape[0]
    x, P = np.zeros(n, F.dtype), np.eye(n, dtype=F.dtype)
    states = np.zeros((len(seen), n), F.dtype)
    for t in range(len(seen)):
        x = F @ x
        P = F @ P @ F.T + Q
        gain = P @ H / (H @ P @ H + np.float32(0.5))
        x = x + gain * (seen[t] - H @ x)
        P = P - np.outer(gain, H @ P)
        states[t] = x
    return states


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_filter(n: int, dtype: str) -> None:
    F = (np.eye(n) + 0.1 * rng.normal(size=(n, n)) / n).astype(dtype)
    Q = (0.01 * np.eye(n)).astype(dtype)
    H = rng.random(n).astype(dtype)
    seen = rng.random(20).astype(dtype)
    compiled = npjit.jit(filtered)
    got, want = compiled(seen, F, H, Q), filtered(seen, F, H, Q)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == "f4" else 1e-11)
    is_long = n == 8
    assert (
        is_long or "nj_matmul<" not in compiled.lower(seen, F, H, Q).as_text("cpp").split("k0(")[-1]
    )


def rotated(points, turns):
    for t in range(len(turns)):
        points[:] = turns[t] @ points
        points[0] = np.where(points[0] > 1.0, points[0] - points[1], points[0])
        points[1] *= np.abs(points[0]).max() < 3.0
    return points


@pytest.mark.parametrize("m", [1, 2, 3, 6])
def test_in_place(m: int) -> None:
    """A product that overwrites its own factor, a maximum and a choice."""
    turns = rng.normal(size=(9, 2, 2))
    check(rotated, rng.normal(size=(2, m)), turns)


def check(f: Any, *given: Any) -> None:
    mine, theirs = ([x.copy() for x in given] for _ in range(2))
    np.testing.assert_allclose(npjit.jit(f)(*mine), f(*theirs), rtol=1e-12)
    np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-12)


def first_of_each(table, counts):
    for k in range(len(counts)):
        table[:] = np.cumsum(table)
        counts[k] = np.argmax(table) + (table[::-1] > k).sum()


def test_positions_and_counts() -> None:
    check_calls(npjit.jit(first_of_each), rng.integers(-3, 4, 6), np.zeros(5, np.int64), calls=2)
