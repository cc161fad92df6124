"""Local names that some path leaves unbound: Python's error where they are read, and only there."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.frontend.unbound import FLAG, flag_unbound


def after_branch(x: Any, n: int) -> Any:
    if x[0] > 0:
        u = x * 2
    return u


def read_under_the_same_condition(x: Any, n: int) -> Any:
    if x[0] > 0:
        u = x * 2
    y = x + 1
    if x[0] > 0:
        y += u
    return y


def after_while(x: Any, n: int) -> Any:
    while n > 0:
        u = x * 2.0
        n -= 1
    return u


def after_for(x: Any, n: int) -> Any:
    for i in range(n):
        u = x * i
    return u


def bound_by_some_trip(x: Any, n: int) -> Any:
    for i in range(n):
        if x[i] > 0:
            u = x + i
    return u


def left_before(x: Any, n: int) -> Any:
    for i in range(n):
        if x[i] > 0:
            break
        u = x + i
    return u


def found_and_left(x: Any, n: int) -> Any:
    for i in range(n):
        if x[i] > 0:
            u = i
            break
    return x * u


def found_or_else(x: Any, n: int) -> Any:
    for i in range(n):
        if x[i] > 0:
            u = i
            break
    else:
        u = -1
    return x * u


def of_the_trip_before(x: Any, n: int) -> Any:
    s = x[0]
    for i in range(n):
        if x[i] > 0:
            s += u  # noqa: F821
        u = x[i]  # noqa: F841
    return s


def bound_in_inner_loops(x: Any, n: int) -> Any:
    s = x[0]
    for j in range(n):
        for i in range(3 - n):
            s += x[i] * j
    return s * i


def written(x: Any, n: int) -> Any:
    if x[1] > 0:
        u = np.zeros(5)
    u[0] = 1.0
    return u


def added_to(x: Any, n: int) -> Any:
    if x[1] > 0:
        t = x[1]
    t += 1.0
    return t


def deleted(x: Any, n: int) -> Any:
    u = x + 1
    if x[1] > 0:
        del u
    return u


def short_circuit(x: Any, n: int) -> Any:
    if x[0] > 0:
        t = x[0]
    return x + 1 if x[0] < 0 or t > 0 else x + 2


PROGRAMS = [
    after_branch,
    read_under_the_same_condition,
    after_while,
    after_for,
    bound_by_some_trip,
    left_before,
    found_and_left,
    found_or_else,
    of_the_trip_before,
    bound_in_inner_loops,
    written,
    added_to,
    deleted,
    short_circuit,
]
ARRAYS = [
    np.ones(5),
    -np.ones(5),
    np.array([-1, 1, -1, 1, 1.0]),
    np.array([1, -1, 1, -1, 1.0]),
]


def outcome(function: Callable[..., Any], x: Any, n: int) -> Any:
    try:
        return np.asarray(function(x.copy(), n))
    except UnboundLocalError as error:
        return str(error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_unbound_names_raise_as_in_python(program: Callable[..., Any]) -> None:
    jitted = npjit.jit(program)
    kinds = set()
    for x in ARRAYS:
        for n in (0, 1, 5):
            want = outcome(program, x, n)
            got = outcome(jitted, x, n)
            assert type(got) is type(want), (x, n, got, want)
            np.testing.assert_array_equal(got, want)
            kinds.add(type(want))
    assert np.ndarray in kinds
    if program is not deleted:
        assert jitted.cache_info()["whole"] > 0


def rewritten(text: str) -> str:
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    flag_unbound(function, frozenset(a.arg for a in function.args.args))
    return ast.unparse(function)


def test_only_names_that_may_be_unbound_get_flags() -> None:
    sure = """
def f(x, n):
    if n:
        u = 1
    else:
        u = 2
    for i in range(n):
        v = i
    return u + v
"""
    assert FLAG not in rewritten(sure)
    unsure = """
def f(x, n):
    if n:
        u = [1]
        w = 2
    u.append(n)
    return u
"""
    assert rewritten(unsure).splitlines() == [
        "def f(x, n):",
        "    _nj_has_u = False",
        "    if n:",
        "        u = [1]",
        "        _nj_has_u = True",
        "        w = 2",
        "    _nj.given(u, _nj_has_u)",
        "    u.append(n)",
        "    return u",
    ]
