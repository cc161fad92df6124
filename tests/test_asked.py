"""Checks of all indices in the sums that read there: which are, bad indices, what is undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.codegen.cpp_asked import with_questions
from npjit.schedule.plan import Plan
from tests.prelude_loops import needs_compiler

pytestmark = needs_compiler


def rows(starts: Any, index: Any, values: Any, x: Any) -> Any:
    y = np.empty(len(starts) - 1)
    for i in range(len(starts) - 1):
        a, b = starts[i], starts[i + 1]
        y[i] = values[a:b] @ x[index[a:b]]
    return y


def without_values(starts: Any, index: Any, values: Any, x: Any) -> Any:
    """One slice alone, and a reduction of another kind."""
    y = np.empty(len(starts) - 1)
    for i in range(len(starts) - 1):
        y[i] = np.sum(x[index[starts[i] : starts[i + 1]]] ** 2)
    return y


def stored(starts: Any, index: Any, values: Any, x: Any) -> None:
    """Into an argument, which a call that fails must not have changed."""
    for i in range(len(starts) - 1):
        a, b = starts[i], starts[i + 1]
        values[i] += x[index[a:b]].sum()


def two_arrays(starts: Any, index: Any, values: Any, x: Any) -> Any:
    """Two arrays of their own lengths at the same indices."""
    y = np.empty(len(starts) - 1)
    for i in range(len(starts) - 1):
        a, b = starts[i], starts[i + 1]
        y[i] = (x[index[a:b]] * values[index[a:b]]).sum()
    return y


def in_parts(starts: Any, index: Any, values: Any, x: Any) -> Any:
    """More happens to the indices before they are used."""
    y = np.empty(len(starts) - 1)
    for i in range(len(starts) - 1):
        a, b = starts[i], starts[i + 1]
        y[i] = x[index[a:b] // 2].sum() + index[a:b].max()
    return y


PROGRAMS = (rows, without_values, stored, two_arrays, in_parts)


def arguments(count: int, longest: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(count)
    starts = np.concatenate(([0], np.cumsum(rng.integers(1, longest, count))))
    total = int(starts[-1])
    return starts, rng.integers(-40, 40, total), rng.random(total), rng.random(40)


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return f(*args)
    except IndexError as e:
        return str(e)


@pytest.mark.parametrize("f", [rows, without_values])
def test_checks_are_asked_where_indices_are_read(f: Callable[..., Any]) -> None:
    plans: list[Plan] = []
    lowered = npjit.jit(f).lower(*arguments(20, 9))
    plans.append(lowered.compiled.plan)
    _, asks = with_questions(plans[0])
    assert len(asks) == 1
    assert "= 0; break; }" in lowered.as_text("cpp")


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("longest", [9, 1500])
def test_compiled(f: Callable[..., Any], longest: int) -> None:
    """Rows of a few elements, and of more than are done in the launch."""
    compiled = npjit.jit(f)
    got, want = arguments(30, longest), arguments(30, longest)
    results = compiled(*got), f(*want)
    if results[1] is not None:
        np.testing.assert_allclose(*results, rtol=1e-12)
    np.testing.assert_allclose(got[2], want[2], rtol=1e-12)
    info = compiled.cache_info()
    assert info["whole"] and not info["numpy"]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("longest", [9, 1500])
@pytest.mark.parametrize("bad", [40, -41, 2**62, -(2**63)])
def test_bad_indices(f: Callable[..., Any], longest: int, bad: int) -> None:
    compiled = npjit.jit(f)
    compiled(*arguments(30, longest))
    got, want = arguments(30, longest), arguments(30, longest)
    for args in (got, want):
        args[1][args[0][20] + 1] = bad
    answers = outcome(compiled, got), outcome(f, want)
    if isinstance(answers[1], str) or answers[1] is None:
        assert answers[0] == answers[1]
    else:
        np.testing.assert_allclose(*answers, rtol=1e-12)
    np.testing.assert_allclose(got[2], want[2], rtol=1e-12)


def test_an_array_without_elements() -> None:
    """No index is good; none is tried."""
    starts, index, values, _ = arguments(5, 4)
    with pytest.raises(IndexError):
        npjit.jit(rows)(starts, index, values, np.empty(0))
