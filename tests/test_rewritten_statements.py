"""Statements that are brought into a simpler form before they are staged: `match`, and assignment
expressions wherever they stand."""

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
    return (n := len(x)) if x[0] > 100 else (m := 3)


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


ALL = [in_operands, in_a_while, in_comprehensions, in_an_argument, on_one_side, behind_a_read]
ALL += [matched_numbers, matched_shapes, matched_tuples, matched_sequences]


@pytest.mark.parametrize("f", ALL)
def test_whole(f: Any) -> None:
    check_calls(npjit.jit(f, backend="numpy"), X)


def test_nested_short_loops() -> None:
    """Loops of few trips unroll, as long as that is not too many of them in each other."""

    def six_deep(x):
        t = 0.0
        for a in range(4):
            for b in range(4):
                for c in range(4):
                    for d in range(4):
                        for e in range(4):
                            t += x[a, b, c, d, e] * (a - b + c - d + e)
        return t

    x = np.random.default_rng(0).standard_normal((4,) * 5)
    lowered = npjit.jit(six_deep).lower(x).as_text("graph")
    assert lowered.count("loop %") == 64
    check_calls(npjit.jit(six_deep, backend="numpy"), x)
