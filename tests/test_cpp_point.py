"""Scalar code in loops: what is computed only where it is needed, and how indices are wrapped."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import check_calls

rng = np.random.default_rng(12)


def accepted(energies, draws):
    count = 0
    for k in range(len(energies)):
        if energies[k] <= 0 or draws[k] < np.exp(-energies[k]):
            count += 1
    return count


def both_sides(energies, draws):
    total = 0.0
    for k in range(len(energies)):
        e = np.exp(-energies[k])
        near = e if energies[k] > 0 else np.sin(draws[k]) * np.cos(draws[k])
        total = 0.5 * total + near + e
        draws[k] = near if total > 1.0 else np.log(total * total + 1.0)
    return total


def counted(energies, draws):
    places = (energies * 10).astype(np.int64) % 7 - 3
    counts = np.zeros(7, np.int64)
    for k in range(len(places)):
        counts[places[k]] += 1
    return counts


def from_the_end(energies, draws):
    for k in range(1, len(draws)):
        draws[k - len(draws)] += 0.5 * draws[-k] + energies[k - 1]
    return draws[-1]


FUNCTIONS = [accepted, both_sides, counted, from_the_end]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_values(f: Callable[..., Any]) -> None:
    check_calls(npjit.jit(f), rng.normal(size=300), rng.random(300), calls=2)


def text_of(f: Callable[..., Any]) -> str:
    text: str = npjit.jit(f).lower(np.ones(300), np.ones(300)).as_text("cpp")
    return text[text.index("NJ_INLINE void k") :]


def test_dear_side_is_computed_where_it_is_needed() -> None:
    """`or` in scalar code costs the exponential of those alone that need it."""
    assert re.search(r"else \{[^}]*nj_exp\([^}]*\}", text_of(accepted))


def test_what_others_need_stays_outside() -> None:
    """The exponential that both sides need is no side's own; sine and cosine are."""
    inside = "".join(re.findall(r"else \{([^}]*)\}", text_of(both_sides)))
    assert "nj_sin" in inside and "nj_log" in inside and "nj_exp" not in inside


def test_negative_indices_are_a_branch() -> None:
    assert "nj_place(" in text_of(lambda x, y: scatter(x, y))


def scatter(x, y):
    places = x.astype(np.int64)
    for k in range(len(places)):
        y[places[k]] += 1.0


def test_neighbours_of_an_index() -> None:
    """(place + 1) % n divides at the border alone."""
    check_calls(npjit.jit(smoothed), rng.normal(size=300), rng.random(300), calls=2)
    assert "nj_near_remainder(" in text_of(smoothed)


def smoothed(places, y):
    n = len(y)
    for k in range(len(places)):
        i = int(places[k] * 100) % 300
        y[(i + 1) % n] += 0.5 * y[(i - 2) % n] - y[i]
    return y


def test_a_place_beyond_the_end_is_numpys_error() -> None:
    """The arrays are then as NumPy leaves them."""
    compiled = npjit.jit(lambda k, y: marked(k, y))
    for last, mode in ((-6, "whole"), (5, "whole"), (6, "numpy"), (-7, "numpy")):
        places = np.array([3, -1, 0, 5, -6, last])
        check_calls(compiled, places, np.zeros(6), calls=1, mode=mode)


def marked(places, y):
    for k in range(len(places)):
        y[places[k]] += k + 1.0
    return y


def test_one_condition_for_several_ints_is_no_branch() -> None:
    text = npjit.jit(extremes).lower(rng.integers(-9, 9, 99)).as_text("cpp")
    assert text[text.index("NJ_INLINE void k") :].count("nj_either(") > 1
    check_calls(npjit.jit(extremes), rng.integers(-9, 9, 99), calls=2)


def extremes(values):
    up = down = turns = 0
    for v in values:
        if v > 0:
            up += 1
            turns += down & 1
            down = 0
        else:
            down += 1
            up = up >> 1
    return up, down, turns


def test_gathers_alone_are_no_vectors() -> None:
    """A processor loads elements one by one, and faster so."""
    places = rng.integers(0, 50, 4000)
    table = rng.normal(size=50)

    def near(places, table):
        return table[places]

    def far(places, table):
        return np.exp(np.sin(table[places]))

    for f, is_scalar in ((near, True), (far, False)):
        check_calls(npjit.jit(f), places, table, calls=2)
        text = npjit.jit(f).lower(places, table).as_text("cpp")
        assert ("no vectors" in text[text.index("_chunk(") :]) == is_scalar
