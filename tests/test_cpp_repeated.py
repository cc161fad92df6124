"""Reductions that a loop of the plan launches, against NumPy: short ones are done on the spot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from npjit.codegen.cpp import print_functions
from npjit.core.size import Var
from npjit.schedule.plan import Loop, Place, Plan, every_step
from tests.plan_runner import ADD, KernelBuilder, N, S, run, single
from tests.test_cpp_reduce import (
    DTYPES,
    STYLES,
    agree,
    columns_kernel,
    expected,
    has_value,
    result_dtype,
    sample,
)

LENGTHS = [0, 1, 2, 7, 8, 9, 15, 33, 63, 64, 127, 129, 511, 513, 2049, 40000]


def repeated(plan: Plan) -> Plan:
    """The plan's steps in a loop of two trips."""
    return replace(plan, steps=(Loop(Var("i9", 0), 2, plan.steps),))


def line_kernel(style: str, dtype: str, stride: int = 1) -> KernelBuilder:
    k = KernelBuilder([S[0]], (), [(dtype, "in"), (result_dtype(style, dtype), "out")])
    k.phase(0)
    total = k.reduce(style, result_dtype(style, dtype), k.load(0, {0: stride}))
    k.phase()
    k.store(1, {}, total)
    return k


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("style", STYLES)
def test_lines(style: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    k = line_kernel(style, dtype)
    for n in LENGTHS:
        x = sample(rng, (n,), dtype, style)
        if has_value(style, n):
            plan = repeated(single(k, [x], [(result_dtype(style, dtype), ())], (N[0],)))
            got = run(plan, x, threads=2)[0]
            agree(style, got, np.asarray(expected(style, x, 0, dtype)), x, n)


@pytest.mark.parametrize("style", ["sum", "max", "all"])
def test_strided_lines(style: str) -> None:
    rng = np.random.default_rng(1)
    k = line_kernel(style, "f8", stride=3)
    for n in (0, 1, 9, 300):
        x = sample(rng, (n, 3), "f8", style)
        if has_value(style, n):
            plan = repeated(single(k, [x], [(result_dtype(style, "f8"), ())], (N[0],)))
            agree(style, run(plan, x)[0], np.asarray(expected(style, x[:, 0], 0, "f8")), x, n)


@pytest.mark.parametrize("style", ["sum", "min", "any"])
def test_gathered_lines(style: str) -> None:
    rng = np.random.default_rng(2)
    k = KernelBuilder([S[0]], (), [("f8", "in"), ("i8", "in"), (result_dtype(style, "f8"), "out")])
    k.phase(0)
    at = k.load(1, {0: 1})
    total = k.reduce(style, result_dtype(style, "f8"), k.load(0, {}, gathers=[(at, 1)]))
    k.phase()
    k.store(2, {}, total)
    x = rng.random(50)
    for n in (1, 2, 13, 600):
        places = rng.integers(0, 50, n)
        plan = single(k, [x, places], [(result_dtype(style, "f8"), ())], (N[1],))
        got = run(repeated(plan), x, places)[0]
        agree(style, got, np.asarray(expected(style, x[places], 0, "f8")), x[places], n)


def test_short_sums_need_no_call() -> None:
    x = np.ones(40)
    plan = single(line_kernel("sum", "f8"), [x], [("f8", ())], (N[0],))
    assert "lane" in print_functions(repeated(plan)).split("npjit_run")[0]
    assert "_long0" in print_functions(repeated(plan)) not in print_functions(plan)


def test_the_sum_of_negative_zeros_is_zero() -> None:
    for n in (3, 8, 200):
        x = np.full(n, -0.0)
        plan = repeated(single(line_kernel("sum", "f8"), [x], [("f8", ())], (N[0],)))
        assert not np.signbit(run(plan, x)[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("style", STYLES)
def test_columns(style: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    k = columns_kernel(style, dtype)
    for rows, columns in [(1, 1), (3, 5), (40, 8), (131, 9), (5, 77), (300, 301), (0, 5)]:
        x = sample(rng, (rows, columns), dtype, style)
        if has_value(style, rows):
            plan = single(k, [x], [(result_dtype(style, dtype), (N[1],))], (N[0], N[1]))
            got = run(repeated(plan), x, threads=2)[0]
            agree(style, got, expected(style, x, 0, dtype), x, max(rows, 1))


def test_lanes_done_twice_are_stored_once() -> None:
    """A store that reads its own target: of the last strip some lanes are computed again."""
    k = KernelBuilder([S[0], S[1]], (1,), [("f8", "in"), ("f8", "inout")])
    k.phase()
    before = k.load(1, {1: 1})
    k.phase(0)
    total = k.reduce("sum", "f8", k.load(0, {0: S[1], 1: 1}))
    k.phase()
    k.store(1, {1: 1}, k.apply(ADD, "f8", before, total))
    x = np.random.default_rng(4).random((6, 75))
    for columns in (75, 41, 9, 8, 3):
        part, target = np.ascontiguousarray(x[:, :columns]), np.zeros(columns)
        plan = single(k, [part, target], [], (N[0], N[1]))
        both = (Place("input", 0), Place("input", 1))
        launch = replace(next(every_step(plan.steps)), buffers=both)
        run(repeated(replace(plan, steps=(launch,))), part, target)
        np.testing.assert_allclose(target, 2 * part.sum(0), rtol=1e-14)


@pytest.mark.parametrize("style", ["argmin", "argmax"])
def test_equal_extremes_and_nan(style: str) -> None:
    k = columns_kernel(style, "f8")
    worst = -np.inf if style == "argmax" else np.inf
    x = np.full((5, 20), worst)
    x[2, 3] = x[4, 3] = 1.0
    x[1, 4] = x[3, 4] = np.nan
    x[0, 5] = np.nan
    plan: Any = single(k, [x], [("i8", (N[1],))], (N[0], N[1]))
    want = expected(style, x, 0, "f8")
    for p in (plan, repeated(plan)):
        np.testing.assert_array_equal(run(p, x)[0], want)
