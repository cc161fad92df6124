"""Loops over the same rows that run strip by strip together, and arrays stored by columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.graph import Graph
from npjit.schedule import through
from npjit.schedule.strips import cut_in_strips
from npjit.schedule.upright import stand_upright
from tests.control_programs import PROGRAMS
from tests.test_strips import arguments, check_program, settled_graph


def there_and_back(x: Any, y: Any) -> None:
    """Two arrays that only the loops see."""
    n, m = x.shape
    c = np.zeros((n, m))
    d = np.zeros((n, m))
    for k in range(m):
        if k > 0:
            c[:, k] = 1.0 / (3.0 - c[:, k - 1])
            d[:, k] = (x[:, k] + d[:, k - 1]) * c[:, k]
        else:
            c[:, k] = 0.5
            d[:, k] = x[:, k]
    last = d[:, m - 1]
    y[:, m - 1] = 2.0 * last
    for k in range(m - 2, -1, -1):
        last = d[:, k] - c[:, k] * last
        y[:, k] = 2.0 * last


def three(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1]):
        y[:, k] += y[:, k - 1]
    for k in range(1, x.shape[1]):
        x[:, k] = y[:, k] - x[:, k - 1]
    x[:, 0] = 7.0
    for k in range(1, x.shape[1]):
        y[:, k] = x[:, k - 1] * y[:, k]


JOINED = {f.__name__: f for f in (there_and_back, three)}


def neighbours(x: Any, y: Any) -> None:
    """The second loop reads other rows of what the first one wrote."""
    for k in range(1, x.shape[1]):
        y[:, k] += y[:, k - 1]
    for k in range(1, x.shape[1]):
        x[1:, k] = y[:-1, k] + x[1:, k - 1]


def seen_between(x: Any, y: Any) -> Any:
    """What stands between the loops is given back."""
    for k in range(1, x.shape[1]):
        y[:, k] += y[:, k - 1]
    ends = y[:, -1] * 2.0
    for k in range(1, x.shape[1]):
        x[:, k] = x[:, k - 1] + ends
    return ends


def summed(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1]):
        y[:, k] += y[:, k - 1]
    total = np.sum(y)
    for k in range(1, x.shape[1]):
        x[:, k] = x[:, k - 1] + total


def other_rows(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1]):
        y[:, k] += y[:, k - 1]
    for k in range(1, x.shape[0]):
        x[k] += y[k] * x[k - 1]


def old_version(x: Any, y: Any) -> None:
    before = x[:, 0] * 1.0
    x[:, 0] = 5.0
    for k in range(1, x.shape[1]):
        y[:, k] += y[:, k - 1]
    x[:, 1] = before
    for k in range(1, x.shape[1]):
        x[:, k] = x[:, k - 1] + y[:, k]


APART = {f.__name__: f for f in (neighbours, seen_between, summed, other_rows)}
ALL = JOINED | APART | {"old_version": old_version}


def outermost(graph: Graph) -> int:
    """How many loops stand in no other."""
    return sum(line.startswith("  %") for line in str(graph).splitlines() if "= loop" in line)


@pytest.mark.parametrize("name", ALL)
def test_meaning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(through, "LINES", 6)
    cut = cut_in_strips(stand_upright(settled_graph(ALL[name], *arguments())))
    cut.verify()
    if name in JOINED or name in APART:
        assert outermost(cut) == (1 if name in JOINED else 2)
    want, got = arguments(), arguments()
    ALL[name](*want)
    cut.run(*got)
    for a, b in zip(got, want, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", ALL)
def test_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(through, "LINES", 6)
    monkeypatch.setattr("npjit.api.plans.recall", lambda key: None)
    monkeypatch.setattr("npjit.api.plans.remember", lambda *given: None)
    compiled = npjit.jit(ALL[name])
    for rows in (7, 1, 20):
        want, got = (
            [np.random.default_rng(rows).random((rows, 9)) for _ in range(2)] for _ in range(2)
        )
        ALL[name](*want)
        compiled(*got)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)
    assert compiled.cache_info()["numpy"] == 0


def test_numbers_of_the_caller_between_joined_loops() -> None:
    """They lie in no memory that a body could read."""

    def scaled(x: Any, y: Any, by: float) -> None:
        for k in range(1, x.shape[1]):
            y[:, k] += y[:, k - 1]
        last = y[:, -1] * by
        for k in range(x.shape[1] - 1, -1, -1):
            last = y[:, k] - by * last
            x[:, k] = last

    compiled = npjit.jit(scaled)
    rng = np.random.default_rng(4)
    want = [rng.random((800, 300)), rng.random((800, 300))]
    got = [a.copy() for a in want]
    scaled(*want, 0.5)
    compiled(*got, 0.5)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
    assert compiled.cache_info()["numpy"] == 0


def test_golden(golden: Callable[[str, str], None]) -> None:
    wide = [np.random.default_rng(2).random((40, 17)) for _ in range(2)]
    graph = settled_graph(there_and_back, *wide)
    golden("graph_joined.txt", str(cut_in_strips(stand_upright(graph))) + "\n")


def test_only_own_arrays_stand_upright() -> None:
    """Not what is given back, nor what is seen in rows as well."""

    def mixed(x: Any, y: Any) -> Any:
        upright, rows, back = np.zeros(x.shape), np.ones(x.shape), np.ones(x.shape)
        for k in range(1, x.shape[1]):
            upright[:, k] = upright[:, k - 1] + x[:, k]
            rows[:, k] = upright[:, k] * rows[:, k - 1]
            back[:, k] = rows[:, k] + 1.0
        for k in range(1, x.shape[0]):
            y[k] = rows[k] + y[k - 1]
        return back

    shape = np.random.default_rng(0).random((30, 20))
    graph = settled_graph(mixed, shape, shape.copy())
    old, new = str(graph), str(stand_upright(graph))
    cells = [line.split("=")[0].split(":")[1] for line in new.splitlines() if " = cell " in line]
    assert old != new
    assert [c.strip() for c in cells].count("f64[n1, n0]") == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_mean_the_same(name: str) -> None:
    """With their cells turned."""
    check_program(name, stand_upright)
