"""Statements that are brought into a simpler form before they are staged: `match`, assignment
expressions wherever they stand, `nonlocal` and `global`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import check_calls

X = np.random.default_rng(4).standard_normal(300)


# ---------------------------------------------------------------- assignment expressions


def in_operands(x):
    t = 0.0
    for v in x:
        if v > 0 and (s := math.sqrt(v)) > 0.5:
            t += s
        elif v < -2 or (u := v * 2) < -3:
            t -= v
        else:
            t += u
    return t


def in_a_while(x):
    i, t = 0, 0.0
    while i < len(x) and (v := x[i]) < 2:
        t += v
        i += 1
    return t, i


def in_comprehensions(x):
    return np.array([s * 2 for v in x if (s := v**2) > 0.5]), s


def in_an_argument(x):
    return np.sum([(w := v) * 2 for v in x]), w


def on_one_side(x):
    n = 0
    size = (n := len(x)) if x[0] > 100 else (m := 3)
    return size + n, m


def behind_a_read(x):
    y = x[0] + (x := x * 2)[1]
    a = 1.0
    a += (a := 5.0) * y
    return y, x, a


# ---------------------------------------------------------------- match


def matched_numbers(x):
    t = 0.0
    for v in x:
        match int(v > 0) + int(v > 1):
            case 0:
                t += 1
            case 1 | 5:
                t += 10
            case n if n > 7:
                t += n
            case n:
                t += 100 * n
    return t


def matched_shapes(x):
    t = 0.0
    match x.shape:
        case (n, m):
            t = 2.0 * n * m
        case (n,) if n < 10:
            t = -1.0
        case (n,):
            t = 3.0 * n
    for v in x:
        t += v
    return t


def matched_tuples(x, mode="b", flag=None):
    y = x.copy()
    for i in range(len(x)):
        match mode, i % 2:
            case "a", _:
                y[i] = 0
            case "b", 0:
                y[i] += 1
            case "b", r:
                y[i] -= r
    match flag:
        case None:
            return y
        case True | False:
            return -y


def matched_sequences(x):
    """A pattern that is left to Python."""
    match [1, 2, 3]:
        case [first, *rest]:
            return x * first + len(rest)


# ---------------------------------------------------------------- scopes

SCALE = 2.0


def declared_global(x):
    global SCALE
    t = 0.0
    for v in x:
        t += v * SCALE
    return t


def counted(x):
    total, calls = 0.0, 0

    def add(v):
        nonlocal total, calls
        total += v
        calls += 1

    for v in x:
        if v > 0:
            add(v)
    return total, calls


def grown_parameter(x, k=1.0):
    def grow():
        nonlocal k
        k *= 1.01

    y = np.zeros(len(x))
    for i in range(len(x)):
        grow()
        y[i] = x[i] * k
    return y, k


def bisected(x):
    calls = 0

    def f(z):
        nonlocal calls
        calls += 1
        return z * z - 2

    a, b = 0.0, 2.0
    while b - a > 1e-9:
        m = (a + b) / 2
        if f(m) > 0:
            b = m
        else:
            a = m
    return a, calls


def arrays_in_scopes(x):
    y = x.copy()

    def change():
        nonlocal y
        y += 1
        y = y * 2

    z = y
    change()
    return z, y


def one_name_in_two_scopes(x):
    n = 0

    def f():
        nonlocal n
        n += 1
        return sum(n for n in range(3))

    return f(), n


ALL = [in_operands, in_a_while, in_comprehensions, in_an_argument, on_one_side, behind_a_read]
ALL += [matched_numbers, matched_shapes, matched_tuples, matched_sequences]
ALL += [declared_global, counted, grown_parameter, bisected, arrays_in_scopes]
ALL += [one_name_in_two_scopes]


@pytest.mark.parametrize("f", ALL)
def test_whole(f: Any) -> None:
    check_calls(npjit.jit(f, backend="numpy"), X)


def test_nested_short_loops() -> None:
    """Loops of few trips unroll, as long as that is not too many of them in each other."""

    def four_deep(x):
        t = 0.0
        for a in range(4):
            for b in range(4):
                for c in range(4):
                    for d in range(3):
                        t += x[a, b, c, d] * (a - b + c - d)
        return t

    x = np.random.default_rng(0).standard_normal((4, 4, 4, 3))
    jitted = npjit.jit(four_deep, backend="numpy")
    check_calls(jitted, x)
    assert jitted.lower(x).as_text("graph").count("loop %") == 64
