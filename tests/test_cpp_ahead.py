"""Loops whose indices are asked about in front: as vectors where all is in range and no trip reads
what an earlier one wrote, else as they were, errors and all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.codegen.cpp_ahead import ask_ahead
from npjit.schedule.plan import If, Plan, every_step

rng = np.random.default_rng(43)


def knapsack(best: Any, weights: Any, gains: Any) -> None:
    for i in range(len(weights)):
        w = weights[i]
        for c in range(len(best) - 1, w - 1, -1):
            best[c] = max(best[c], best[c - w] + gains[i])


def coins(best: Any, weights: Any, gains: Any) -> None:
    """Reads what earlier trips have written, where the weight is not negative."""
    for i in range(len(weights)):
        w = weights[i]
        for c in range(w, len(best)):
            best[c] = min(best[c], best[c - w] + gains[i])


def two_arrays(best: Any, weights: Any, gains: Any) -> None:
    other = np.zeros(len(best) + 3)
    for w in weights:
        for c in range(len(best)):
            other[c + w] = best[c] * 2.0 + c
    best += other[: len(best)]


def backwards(best: Any, weights: Any, gains: Any) -> None:
    """Indices from the end."""
    for w in weights:
        for c in range(1, len(best)):
            best[-c] = best[-c - w] * 0.5 + gains[w]


ALL = [knapsack, coins, two_arrays, backwards]


def choices(f: Callable[..., Any], *args: Any) -> int:
    """How many loops have two forms."""
    plan = npjit.jit(f).lower(*args).compiled.plan
    assert isinstance(plan, Plan)
    before, after = (
        sum(isinstance(s, If) for s in every_step(p.steps)) for p in (plan, ask_ahead(plan))
    )
    return after - before


def outcome(f: Callable[..., Any], best: Any, *args: Any) -> tuple[str, list[float]]:
    """The error, if there is one, and what has been written when it was raised."""
    own = best.copy()
    try:
        f(own, *args)
    except IndexError as e:
        return type(e).__name__, own.tolist()
    return "", own.tolist()


@pytest.mark.parametrize("f", ALL)
def test_all_shifts(f: Callable[..., Any]) -> None:
    """In range, at its ends and beyond; more trips than a vector has lanes, and none."""
    best, gains = rng.random(40), rng.random(90)
    jitted = npjit.jit(f)
    for shift in [*range(-4, 5), 8, 9, 31, 32, 38, 39, 40, 41, 60, -39, -40, -41, -60]:
        weights = np.array([1, shift, 2])
        want = outcome(f, best, weights, gains)
        assert outcome(jitted, best, weights, gains) == want, shift


@pytest.mark.parametrize("f", [knapsack, two_arrays, backwards])
def test_form(f: Callable[..., Any]) -> None:
    assert choices(f, rng.random(40), np.arange(20), rng.random(90)) == 1


def carried(best: Any, weights: Any, gains: Any) -> Any:
    x = 0.0
    for c in range(5, len(best)):
        x = x * 0.5 + best[c - weights[0]]
        best[c] = x
    return x


def gathered(best: Any, weights: Any, gains: Any) -> None:
    """Indices that no steps lead to."""
    for c in range(len(weights)):
        best[weights[c]] += gains[c]


def twice(best: Any, weights: Any, gains: Any) -> None:
    """Stored at two places."""
    w = weights[0]
    for c in range(5, len(best)):
        best[c - w] = gains[c]
        best[c - 2 * w] = gains[c] + 1.0


@pytest.mark.parametrize("f", [carried, gathered, twice])
def test_refused(f: Callable[..., Any]) -> None:
    args = rng.random(40), np.arange(20), rng.random(90)
    assert choices(f, *args) == 0
    assert outcome(npjit.jit(f), *args) == outcome(f, *args)
