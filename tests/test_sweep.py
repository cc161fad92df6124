"""Launches that advance together: which do, how far they lag, and that all orders give NumPy's
values.

The compiled code is run with rows of a few bytes at a time, caches that hold little, and more
threads than there are, whose parts are done one after the other or in front of it: what a part
needs of another one must not depend on that order.
"""

from __future__ import annotations

import functools
import linecache
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.schedule.plan import Plan, Sweep, every_step
from npjit.schedule.sweep import in_sweeps
from tests.plan_runner import run

rng = np.random.default_rng(31)


def jacobi(steps, A, B):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.25 * (A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:])
        A[1:-1, 1:-1] = 0.25 * (B[:-2, 1:-1] + B[2:, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:])


def waves(steps, A, B):
    for t in range(steps):
        A[0, :] = t
        A[1:, :] -= 0.5 * (B[1:, :] - B[:-1, :])
        B[:-1, :-1] -= 0.5 * (A[1:, :-1] - A[:-1, :-1])


def life(steps, A, B):
    for _ in range(steps):
        near = np.zeros(A.shape)
        near[1:-1, 1:-1] = A[:-2, 1:-1] + A[2:, 2:]
        A[:] = (near + B > 1.0) | (near == A)


def lines(steps, A, B):
    x, y = A[0], B[0]
    for _ in range(steps):
        y[1:-1] = 0.3 * (x[:-2] + x[1:-1] + x[2:])
        x[2:] = 0.5 * (y[:-2] + y[2:])


def own_elements(steps, A, B):
    for k in range(steps):
        inside = A < 2.0
        A[inside] = A[inside] * 1.5 + k
        B[inside] = k


def once(steps, A, B):
    inner = A[2:] - A[:-2]
    flux = np.where(inner[1:] * inner[:-1] > 0, 0, inner[1:] * B[1:-2] - inner[:-1] * B[2:-1])
    B[3:-2] = np.sin(flux[2:] - flux[:-2]) * np.sin(flux[1:-1])
    A[2:-3] -= np.sqrt(np.abs(B[:-5] + B[5:]))


def ring(steps, A, B):
    for _ in range(steps):
        B[:] = np.roll(A, 1, axis=0) * 0.5
        A[:] = np.roll(B, -1, axis=0) + 1.0


def shallow(steps, A, B):
    """Rows and columns are rings, and some rows are no neighbours of the others."""
    for _ in range(steps):
        B += np.roll(A, -1, axis=0) - A
        flux = B * 0.1 * (A + np.roll(A, -1, axis=0))
        A -= flux - np.roll(flux, 1, axis=0) + 0.1 * (A - np.roll(A, 2, axis=1))


def wide_ring(steps, A, B):
    for t in range(steps):
        A[:] = 0.3 * (B + np.roll(B, 3, axis=0)) + t
        B[:] = 0.3 * (A + np.roll(A, -2, axis=0) + np.roll(A, 1, axis=0))


def nested(steps, A, B):
    """Each trip is one of many trips itself."""
    for s in range(steps):
        for t in range(3):
            B[1:-1] = A[:-2] * 0.3 + A[2:] * 0.1 * s
            A[1:-1] = B[:-2] * 0.3 + B[2:] * 0.1 * t


def nested_alone(steps, A, B):
    """The same, and the inner trips know no number."""
    for _ in range(steps):
        for _ in range(3):
            A[1:-1] += 0.1 * (A[2:] - A[:-2])


def follows(plan: Plan) -> list[str]:
    """The sweeps of a plan."""
    return [str(s.paces) for s in every_step(plan.steps) if isinstance(s, Sweep)]


def plan_of(f: Callable[..., Any], *args: Any) -> Plan:
    plan = npjit.jit(f).lower(*args).compiled.plan
    assert plan is not None
    return plan


def small(text: str, step: int, cache: int) -> str:
    """The unit for caches of so many bytes, where any work is worth a thread."""
    for name, value in (("STEP", step), ("CACHE", cache), ("GRAIN", 1)):
        text = re.sub(rf"(#define NJ_SWEEP_{name}) \d+", rf"\1 {value}", text)
    return text


def check(f: Callable[..., Any], rows: int, steps: int = 7) -> None:
    A, B = rng.random((2, rows, 9)) * 2.0
    want = A.copy(), B.copy()
    f(steps, *want)
    plan = plan_of(f, steps, A.copy(), B.copy())
    for step, cache in ((1, 1), (200, 3000)):
        edit = functools.partial(small, step=step, cache=cache)
        for threads in (1, 8, 20):
            for backwards in (False, True):
                got = A.copy(), B.copy()
                run(plan, steps, *got, threads=threads, backwards=backwards, edit=edit)
                for x, y in zip(got, want, strict=True):
                    np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        jacobi,
        waves,
        life,
        lines,
        own_elements,
        once,
        ring,
        shallow,
        wide_ring,
        nested,
        nested_alone,
    ],
)
@pytest.mark.parametrize("rows", [6, 47, 200])
def test_all_orders(f: Callable[..., Any], rows: int) -> None:
    check(f, rows)


@pytest.mark.parametrize("f", [ring, shallow, wide_ring])
def test_rings(f: Callable[..., Any]) -> None:
    """They are sweeps, of few rows as well, in which nothing is left out at the ends."""
    sweeps = in_sweeps(plan_of(f, 5, *np.ones((2, 40, 30)))).steps
    assert any(isinstance(s, Sweep) and s.is_round for s in sweeps)
    for rows in (2, 3, 11, 17, 18, 30):
        check(f, rows, steps=4)


def test_lags() -> None:
    """Each launch is behind by the rows that it reads ahead, and from trip to trip as much more."""
    A, B = np.ones((2, 40, 30))
    (sweep,) = in_sweeps(plan_of(jacobi, 5, A, B)).steps
    assert isinstance(sweep, Sweep)
    assert [(p.first, p.lag, p.below) for p in sweep.paces] == [(1, 0, 0), (1, 1, 1)]
    assert (sweep.lag, sweep.below) == (2, 2)


def transposed(steps, A, B):
    for _ in range(steps):
        B[:9] = A[:9].T
        A[:9] = B[:9] + 1.0


def along_one_row(steps, A, B):
    for k in range(steps):
        B[:] = A + A[k]
        A[:] = B + B[k]


def summed(steps, A, B):
    for _ in range(steps):
        B[:] = A - A.sum(axis=1, keepdims=True)
        A[:] = B - B.sum(axis=0)


@pytest.mark.parametrize("f", [transposed, along_one_row, summed])
def test_refused(f: Callable[..., Any]) -> None:
    """What reads far away, or columns as rows, or one row for all, waits for whole arrays."""
    A, B = rng.random((2, 40, 9))
    assert not follows(in_sweeps(plan_of(f, 5, A, B)))
    want = A.copy(), B.copy()
    f(5, *want)
    npjit.jit(f)(5, A, B)
    np.testing.assert_allclose((A, B), want, rtol=1e-12, atol=1e-12)


def random_program(number: int) -> Callable[..., Any]:
    """Three or four statements, each of which stores a part of one array from parts of others."""
    draw = np.random.default_rng(number)
    body = []
    for _ in range(draw.integers(2, 5)):
        target, *sources = draw.choice(["A", "B"], 3)
        shifts = draw.integers(-2, 3, (2, 2))
        parts = [
            f"{s}[{2 + r}:-{4 - r}, {2 + c}:-{4 - c}]"
            for s, (r, c) in zip(sources, shifts, strict=True)
        ]
        body.append(f"        {target}[2:-4, 2:-4] = 0.5 * ({parts[0]} + {parts[1]} * t)")
    text = "\n".join(["def f(steps, A, B):", "    for t in range(steps):", *body]) + "\n"
    return made_of(text, f"<sweep {number}>")


def made_of(text: str, name: str) -> Callable[..., Any]:
    """The function f of a text."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


@pytest.mark.parametrize("number", range(6))
def test_random_programs(number: int) -> None:
    check(random_program(number), 61, steps=5)


def random_ring(number: int) -> Callable[..., Any]:
    """The same with parts of rings."""
    draw = np.random.default_rng(number)
    body = []
    for _ in range(draw.integers(2, 4)):
        target, *sources = draw.choice(["A", "B"], 3)
        shifts = draw.integers(-2, 3, 2)
        parts = [f"np.roll({s}, {r}, axis=0)" for s, r in zip(sources, shifts, strict=True)]
        body.append(f"        {target}[:] = 0.4 * ({parts[0]} + {parts[1]} * 0.1) + t")
    text = "\n".join(["def f(steps, A, B):", "    for t in range(steps):", *body]) + "\n"
    return made_of(text, f"<ring {number}>")


@pytest.mark.parametrize("number", range(6))
def test_random_rings(number: int) -> None:
    check(random_ring(number), 37, steps=5)
