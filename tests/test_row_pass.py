"""Row passes: which steps go over a matrix together, and that all orders give NumPy's values.

The compiled code is run with a few rows at a time and more threads than there are, whose parts are
done one after the other or in front of it: what one does with its rows must not depend on another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.assume import Assumptions
from npjit.schedule.plan import Launch, Place, Plan, RowPass, VectorProduct
from npjit.schedule.row_pass import _is_sound, _Member, _Touch, in_row_passes
from tests.plan_runner import run
from tests.prelude_loops import needs_compiler

pytestmark = needs_compiler

Function = Callable[..., Any]


def left(A, u, v):
    return u @ A


def right(A, u, v):
    return A @ v


def both_sides(A, u, v):
    u += A @ v
    v += u @ A


def apart(A, u, v):
    return v @ A.T, u @ A


def there_and_back(A, u, v):
    z = np.tanh(A @ v) - u
    return z @ A


def updated(A, u, v):
    A += np.outer(u, v)
    return u @ A, A @ v


def twice(A, u, v):
    return A @ v, A @ (v + 1)


def behind_others(A, u, v):
    w = u @ A
    v += w
    return A @ w, A.T @ u


def in_loop(A, u, v):
    for _ in range(3):
        s = A @ v
        v[:] = (s + u) @ A
        v /= np.abs(v).max()


def plan_of(f: Function, *args: Any) -> Plan:
    plan = npjit.jit(f).lower(*args).compiled.plan
    assert plan is not None
    return plan


def arrays(m: int, n: int, code: str = "d") -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(m + n)
    return [rng.uniform(-1, 1, shape).astype(code) for shape in ((m, n), m, n)]


def steps_of(f: Function, *args: Any) -> list[str]:
    """What goes over a matrix together."""
    steps = in_row_passes(plan_of(f, *args)).steps
    names = {False: "along", True: "across"}
    return [
        names[m.across] if isinstance(m, VectorProduct) else "launch"
        for s in steps
        if isinstance(s, RowPass)
        for m in s.members
    ]


def small(text: str) -> str:
    """The unit for passes of a few rows at a time, where any work is worth a thread."""
    for name, value in (
        ("PASS_STEP", 1),
        ("PASS_GRAIN", 1),
        ("PASS_ROWS", 8),
        ("ROWS_BLOCK", 32),
    ):
        text = re.sub(rf"(#define NJ_{name}) \d+", rf"\1 {value}", text)
    return text.replace("rows >= 3 * NJ_ROWS", "rows >= 0")


def check(f: Function, code: str) -> None:
    plan = plan_of(f, *arrays(40, 30, code))
    for m, n in ((37, 37), (200, 70), (9, 130), (2, 3)):
        given = arrays(m, n, code)
        wide = [a.astype(np.longdouble) for a in given]
        want = f(*wide)
        wanted = [*wide, *([want] if isinstance(want, np.ndarray) else want or [])]
        for threads, backwards in ((1, False), (3, False), (20, True)):
            got = [a.copy() for a in given]
            got += run(plan, *got, threads=threads, backwards=backwards, edit=small)
            for x, y in zip(got, wanted, strict=True):
                bound = 20 * (m + n) * np.finfo(code).eps * max(1.0, np.abs(y).max())
                np.testing.assert_allclose(x, y.astype(float), rtol=0, atol=bound)


FUNCTIONS = [left, right, both_sides, apart, there_and_back, updated, twice, behind_others, in_loop]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_all_orders(f: Function) -> None:
    check(f, "d")


def test_single_precision() -> None:
    check(both_sides, "f")
    check(there_and_back, "f")


def test_members() -> None:
    """Products from both sides stand next to each other where nothing between needs them apart."""
    given = arrays(40, 30)
    assert steps_of(both_sides, *given) == ["along", "launch", "across"]
    assert steps_of(apart, *given) == ["along", "across"]
    assert steps_of(there_and_back, *given) == ["along", "launch", "across"]
    assert steps_of(updated, *given) == ["launch", "across", "along"]
    assert steps_of(twice, *given) == ["along", "along"]
    assert steps_of(behind_others, *given) == ["across", "across"]
    text = npjit.jit(apart).lower(*given).as_text("cpp")
    assert "nj_add_across<true, f64>" in text


def test_columns_in_memory() -> None:
    """What is contiguous counts, not which side the vector is on."""
    a, u, v = arrays(40, 30)
    assert steps_of(apart, np.asfortranarray(a), u, v) == ["across", "along"]
    assert steps_of(apart, a[::2], u[::2].copy(), v) == ["along", "across"]


def whole_result(A, u, v):
    return A @ (A @ v)


def whole_sum(A, u, v):
    return A @ (u @ A)


def other_rows(A, u, v):
    A *= v[:, None] + v
    B = A[1:] - A[:-1]
    return A @ v, B @ v


def integers(A, u, v):
    A, u, v = A.astype(int), u.astype(int), v.astype(int)
    return A @ v, u @ A


@pytest.mark.parametrize("f", [whole_result, whole_sum, integers])
def test_no_pass(f: Function) -> None:
    """Of what another step writes, a step in a pass has one row alone."""
    assert steps_of(f, *arrays(40, 40)) == []


def test_rows_that_others_read_are_written_before() -> None:
    check_square(other_rows)
    check_square(whole_result)
    check_square(whole_sum)


def check_square(f: Function) -> None:
    plan = plan_of(f, *arrays(40, 40))
    given = arrays(67, 67)
    wanted = f(*(a.copy() for a in given))
    found = run(plan, *given, threads=5, edit=small)
    for x, y in zip(found, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)


def test_memory_used_again_for_another_type() -> None:
    """Rows of float64 and of float32 in the same memory do not lie at the same places."""
    place, known = Place("arena", 0), Assumptions()
    launch = Launch(0, (place,), (), ())
    wide, narrow = (_Member(launch, 40, (_Touch(place, size, True, 1, 0),)) for size in (8, 4))
    assert _is_sound([wide, wide], known)
    assert not _is_sound([wide, narrow], known)


def test_nan_and_infinity() -> None:
    a, u, v = arrays(50, 33)
    a[7, 5], a[20, 32], v[3] = np.nan, np.inf, -np.inf
    for f in (apart, there_and_back):
        with np.errstate(all="ignore"):
            wanted = f(a, u, v)
        found = run(plan_of(f, a, u, v), a, u, v, threads=3, edit=small)
        for x, y in zip(found, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11)


def test_small_matrices() -> None:
    """A matrix of known extents may be too small for a pass; of rows there may be too few."""
    assert steps_of(apart, *arrays(4, 4)) == []
    a, u, v = arrays(20, 9000)
    for x, y in zip(npjit.jit(apart)(a, u, v), apart(a, u, v), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10)


def test_empty() -> None:
    for shape in ((0, 20), (20, 0)):
        a = np.empty(shape)
        got = npjit.jit(apart)(a, np.ones(shape[0]), np.ones(shape[1]))
        np.testing.assert_array_equal(got[0], np.zeros(shape[0]))
        np.testing.assert_array_equal(got[1], np.zeros(shape[1]))
