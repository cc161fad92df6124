"""Updates in one kernel with what reads them: when that is legal, and that values are NumPy's."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.schedule.plan import Launch, Loop, Plan
from tests.calls import check_calls
from tests.schedule_reference import run
from tests.test_control_schedule import plan_of

rng = np.random.default_rng(21)


def shallow(n, h, u):
    for _ in range(n):
        u -= 0.1 * (np.roll(h, -1, axis=0) - h)
        flux = u * 0.5 * (h + np.roll(h, -1, axis=0))
        h -= 0.1 * (flux - np.roll(flux, 1, axis=0) + np.roll(flux, 1, axis=1))


def tree(n, h, u):
    for i in range(n - 1, 0, -1):
        h[0, :i] = 0.5 * (h[0, 1 : i + 1] + h[0, :i])
        u[0, :i] *= 1.01
        h[0, :i] = np.maximum(h[0, :i], 1.0 - u[0, :i])


def best(n, h, u):
    score = u[0]
    back = np.zeros((n, h.shape[1]), np.int64)
    for t in range(n):
        ways = score[:, None] + h[: len(score)] * (t + 1)
        back[t] = np.argmax(ways, axis=0)
        score = np.max(ways, axis=0) * 0.5
    return back, score


@pytest.mark.parametrize(("f", "kernels"), [(shallow, 2), (tree, 1), (best, 2)])
def test_one_kernel(f: Callable[..., Any], kernels: int) -> None:
    """A statement that reads just the elements that another one stores runs with it; so does one
    that reduces the same values. `best` has one more kernel, which copies its score."""
    h, u = rng.random((2, 12, 9))
    plan = plan_of(f, 7, h, u)
    (loop,) = [s for s in plan.steps if isinstance(s, Loop)]
    assert sum(isinstance(s, Launch) for s in loop.body) == kernels, str(plan)
    check_calls(npjit.jit(f), 7, h, u, calls=2)


def old_neighbours(n, h, u):
    for _ in range(n):
        mean = 0.5 * (u[:, ::-1] + u)
        u += h
        h -= mean * u


def new_neighbours(n, h, u):
    for _ in range(n):
        u += h
        h *= u[:, ::-1]


def whole_rows(n, h, u):
    for _ in range(n):
        u += h
        h[:] = u * np.sum(u, axis=1, keepdims=True)


def old_rows(n, h, u):
    for _ in range(n):
        total = np.sum(u, axis=1)
        u[:, 0] += h[:, 0]
        h += u[:, :1] * total[:, None]


@pytest.mark.parametrize("f", [old_neighbours, new_neighbours, whole_rows, old_rows])
def test_apart(f: Callable[..., Any]) -> None:
    """What reads other elements of what is overwritten waits, or runs first."""
    h, u = rng.random((2, 12, 9))
    want = h.copy(), u.copy()
    f(4, *want)
    npjit.jit(f)(4, h, u)
    np.testing.assert_allclose((h, u), want, rtol=1e-12)


def random_program(number: int) -> Callable[..., Any]:
    """Statements that store, change and read two arrays at the same, other and all places."""
    draw = np.random.default_rng(number)
    names = ["A", "B"]
    forms = ["{}", "{}", "{}[:, ::-1]", "{}[::-1]", "{}.sum(axis=1)[:, None]", "{}.max(axis=0)"]
    body = []
    for k in range(draw.integers(3, 7)):
        parts = [draw.choice(forms).format(draw.choice(names)) for _ in range(2)]
        value = f"{parts[0]} * 0.5 + {parts[1]} * t"
        kind = draw.integers(4)
        if kind == 0:
            names.append(f"c{k}")
            body.append(f"        {names[-1]} = {value} + A")
        elif kind == 1:
            body.append(f"        {draw.choice(['A', 'B'])}[:] = {value}")
        elif kind == 2:
            body.append(f"        {draw.choice(['A', 'B'])} += {value}")
        else:
            target = draw.choice(["A", "B"])
            body.append(f"        {target}[1:] = ({value} + {target})[:-1]")
    text = "\n".join(["def f(n, A, B):", "    for t in range(n):", *body]) + "\n"
    name = f"<updates {number}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


def check_plan(number: int) -> None:
    """The plan of a random program, run step by step, against NumPy."""
    f = random_program(number)
    A, B = rng.random((2, 4, 3))
    want = A.copy(), B.copy()
    f(3, *want)
    plan: Plan = plan_of(f, 3, A.copy(), B.copy())
    for backwards in (False, True):
        got = A.copy(), B.copy()
        run(plan, [np.int64(3), *got], backwards)
        np.testing.assert_allclose(got, want, rtol=1e-9, err_msg=str(plan))


@pytest.mark.parametrize("number", [*range(12), 105])
def test_random_programs(number: int) -> None:
    check_plan(number)
