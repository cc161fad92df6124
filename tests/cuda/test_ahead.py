"""Launches that start before the host knows a check's answer, under the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from npjit.codegen.cuda import print_cuda
from npjit.schedule.plan import Check, every_step
from tests.cuda import driver_double, fake_cupy

ROWS = np.arange(60.0).reshape(20, 3)
INDEX = np.array([3, -1, 19, 0, -20])


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cupy.install(monkeypatch)


def picked(table, index):
    return (table[index],)


def summed(table, index):
    return ((table[index] * 2).sum(axis=0),)


def twice(table, index, other):
    return table[index][other]


def written(table, index, target):
    target[...] = table[index]
    return target[0] * 1


def checks(cupy: Any, function: Any, *args: Any) -> list[Check]:
    """The checks of a function's plan on a GPU."""
    compiled = npjit.jit(function).lower(*map(cupy.asarray, args)).compiled
    return [s for s in every_step(print_cuda(compiled.plan).plan.steps) if isinstance(s, Check)]


@pytest.mark.parametrize("function", [picked, summed])
def test_results_and_errors_are_numpys(cupy: Any, function: Any) -> None:
    assert any(c.ahead for c in checks(cupy, function, ROWS, INDEX))
    jitted = npjit.jit(function, fullgraph=True)
    table = cupy.asarray(ROWS)
    for k in range(4):
        index = np.roll(INDEX, k)
        (got,), (want,) = jitted(table, cupy.asarray(index)), function(ROWS, index)
        np.testing.assert_array_equal(got.get(), want)
    for bad in (20, -21, 2**62, -(2**63)):
        with pytest.raises(IndexError, match="out of bounds"):
            jitted(table, cupy.asarray(np.array([0, bad, 1])))
    assert jitted.cache_info()["whole"] == 4


def test_each_of_two_indices_is_asked(cupy: Any) -> None:
    jitted = npjit.jit(twice, fullgraph=True)
    good, bad = np.array([2, 0]), np.array([5, 0])
    table, index, other, beyond = map(cupy.asarray, (ROWS, INDEX, good, bad))
    for _ in range(3):
        np.testing.assert_array_equal(jitted(table, index, other).get(), ROWS[INDEX][good])
    for indices in ((index, beyond), (cupy.asarray(INDEX * 2), other)):
        with pytest.raises(IndexError, match="out of bounds"):
            jitted(table, *indices)


def test_what_writes_an_input_waits(cupy: Any) -> None:
    target = np.zeros((5, 3))
    assert not any(c.ahead for c in checks(cupy, written, ROWS, INDEX, target))
    jitted, given = npjit.jit(written, fullgraph=True), cupy.asarray(target)
    with pytest.raises(IndexError, match="out of bounds"):
        jitted(cupy.asarray(ROWS), cupy.asarray(INDEX - 1), given)
    assert not given.get().any()
    jitted(cupy.asarray(ROWS), cupy.asarray(INDEX), given)
    np.testing.assert_array_equal(given.get(), ROWS[INDEX])


@pytest.mark.skipif(fake_cupy.ON_GPU, reason="watches the driver's double")
def test_the_host_waits_behind_the_launch(cupy: Any) -> None:
    jitted, given = npjit.jit(picked, fullgraph=True), [cupy.asarray(a) for a in (ROWS, INDEX)]
    jitted(*given)
    driver_double.log.clear()
    jitted(*given)
    starts = [what for what in driver_double.log if what in ("launch", "read", "wait")]
    assert starts[-3:] == ["read", "launch", "wait"]
