"""Rows of recurrences that run together: which loops do, in vectors or one by one, and that every
element has NumPy's bits, at sizes around those of groups, squares and rows that change places."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import npjit
from npjit.codegen.cpp_skew import ROWS, skew_rows
from npjit.schedule.plan import If, Plan, every_step

rng = np.random.default_rng(41)


def smooth(a: Any) -> None:
    for i in range(1, a.shape[0] - 1):
        a[i, 1:-1] += a[i - 1, :-2] + a[i - 1, 2:] + a[i, 2:] + a[i + 1, :-2] + a[i + 1, 2:]
        for j in range(1, a.shape[1] - 1):
            a[i, j] += a[i, j - 1]
            a[i, j] /= 6.0


def upwards(a: Any) -> None:
    for i in range(a.shape[0] - 2, -1, -1):
        for j in range(a.shape[1] - 2, -1, -1):
            a[i, j] = 0.25 * a[i, j] + 0.5 * a[i, j + 1] - 0.25 * a[i + 1, j]


def upwards_to_the_right(a: Any) -> None:
    for i in range(a.shape[0] - 2, -1, -1):
        for j in range(1, a.shape[1] - 2):
            a[i, j] = 0.25 * a[i, j + 2] + 0.5 * a[i, j - 1] - 0.25 * a[i + 1, j - 1]


def single(a: Any) -> None:
    b = a.astype(np.float32)
    for i in range(1, b.shape[0]):
        for j in range(2, b.shape[1] - 2):
            b[i, j] = max(b[i, j - 2] - b[i - 1, j + 2], b[i - 1, j - 2]) * np.float32(0.5)
    a[:] = b


def alignment(a: Any) -> None:
    """Two tables, letters of a row and of a column."""
    n, m = a.shape
    left, best = np.zeros((n, m)), np.zeros((n, m))
    x, y = a[:, 0].copy(), a[0].copy()
    for i in range(1, n):
        for j in range(1, m):
            left[i, j] = max(left[i, j - 1] - 0.125, best[i, j - 1] - 0.5)
            same = 1.0 if x[i] > y[j] else -0.25
            best[i, j] = max(best[i - 1, j - 1] + same, left[i, j], best[i - 1, j] - 0.5)
    a[:] = best + left


def warped(a: Any) -> None:
    x, y = a[:, 0].copy(), a[0].copy()
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            nearest = np.minimum(a[i - 1, j], min(a[i, j - 1], a[i - 1, j - 1]))
            a[i, j] = abs(x[i] - y[j]) + nearest


def edited(a: Any) -> None:
    """Letters of 8 bytes, counts of 4, and what several comparisons decide."""
    letters = (a * 4).astype(np.int64)
    counts = np.zeros(a.shape, np.int32)
    counts[0] = np.arange(a.shape[1])
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            x, y = letters[i, 0], letters[0, j]
            cost = 0 if (x == y) | ((x > 2) & ~(y <= 2)) else 1
            fewest = min(counts[i - 1, j] + 1, counts[i, j - 1] + 1)
            counts[i, j] = min(fewest, counts[i - 1, j - 1] + cost)
    a[:] = counts


def common(a: Any) -> None:
    """Either side of a branch stores."""
    letters = (a * 3).astype(np.int64)
    longest = np.zeros(a.shape, np.int64)
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            if letters[i, 0] == letters[0, j]:
                longest[i, j] = longest[i - 1, j - 1] + 1
            else:
                longest[i, j] = max(longest[i - 1, j], longest[i, j - 1])
    a[:] = longest


def some(a: Any) -> None:
    """One side stores; what both sides leave in a variable is used."""
    for i in range(1, a.shape[0]):
        a[i, 1:] *= 0.5
        for j in range(1, a.shape[1]):
            if a[i, j] > a[i - 1, j]:
                a[i, j] = a[i, j - 1] - a[i, j]
                half = 0.5
            else:
                half = a[i - 1, j - 1]
            a[i, j] = a[i, j] * half


def in_columns(a: Any) -> None:
    """Reads down a column of another array."""
    b = np.ones((a.shape[1], a.shape[0]))
    b[:] = a.T
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = b[j, i] + 0.5 * (a[i, j - 1] - a[i - 1, j])


def roots(a: Any) -> None:
    """A function is no operator."""
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = np.sqrt(a[i, j - 1] + a[i - 1, j])


def two_above(a: Any) -> None:
    for i in range(2, a.shape[0]):
        for j in range(1, a.shape[1] - 1):
            a[i, j] = 0.5 * (a[i, j - 1] + a[i - 2, j + 1]) - a[i - 1, j]


def far_ahead(a: Any) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1] - 12):
            a[i, j] = 0.5 * (a[i, j - 1] - a[i - 1, j + 12])


def far_behind(a: Any) -> None:
    for i in range(1, a.shape[0]):
        for j in range(12, a.shape[1]):
            a[i, j] = 0.5 * (a[i, j - 12] - a[i - 1, j])


def every_other(a: Any) -> None:
    b = a[:, ::2]
    for i in range(1, b.shape[0]):
        for j in range(1, b.shape[1]):
            b[i, j] = b[i, j] + 0.5 * (b[i, j - 1] - b[i - 1, j])


def positions(a: Any) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = 0.5 * a[i, j - 1] + 0.25 * a[i - 1, j] + (i - j)


VECTORS = [
    smooth,
    upwards,
    upwards_to_the_right,
    single,
    alignment,
    warped,
    edited,
    common,
    some,
    in_columns,
]
ELEMENTS = [roots, two_above, far_ahead, far_behind, every_other, positions]


def plan_of(f: Callable[..., Any], *args: Any) -> Plan:
    plan = npjit.jit(f).lower(*args).compiled.plan
    assert plan is not None
    return plan


def check(f: Callable[..., Any], *shapes: tuple[int, int]) -> None:
    """Every element has the bits that NumPy gives it."""
    jitted = npjit.jit(f)
    for shape in shapes:
        want = rng.random(shape)
        got = want.copy()
        f(want)
        jitted(got)
        np.testing.assert_array_equal(got, want)
    assert jitted.cache_info()["whole"] == len(shapes)


@pytest.mark.parametrize("f", VECTORS + ELEMENTS)
def test_bits(f: Callable[..., Any]) -> None:
    rows = (17, 20, 27, 33)
    check(f, *((n, m) for n in rows for m in (18, 33, 51, 66, 150)))


@pytest.mark.parametrize("f", VECTORS + ELEMENTS)
def test_form(f: Callable[..., Any]) -> None:
    """Operators on elements that lie side by side become vectors."""
    plan, waves = skew_rows(plan_of(f, rng.random((40, 60))))
    assert any(isinstance(s, If) for s in every_step(plan.steps))
    assert bool(waves) == (f in VECTORS)


def stops(a: Any) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            if a[i, j] > 0.99:
                break
            a[i, j] += a[i, j - 1] + a[i - 1, j]


def at_the_edge(a: Any) -> None:
    """Sizes decide: there is nothing above the first row."""
    for i in range(a.shape[0]):
        for j in range(1, a.shape[1]):
            above = a[i - 1, j] if i > 0 else 0.0
            a[i, j] = 0.5 * a[i, j - 1] + above


def carries(a: Any) -> None:
    """What a row ends with is where the next one begins."""
    x = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            x = 0.5 * x + a[i, j]
            a[i, j] = x


def triangle(a: Any) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, i):
            a[i, j] += a[i, j - 1] + a[i - 1, j]


def apart(a: Any) -> None:
    """No row needs another one: threads share them out."""
    for i in range(a.shape[0]):
        for j in range(2, a.shape[1]):
            a[i, j] = a[i, j] * 0.5 + a[i, j - 2]


def across(a: Any) -> None:
    """A row needs all of the row above, and what was behind it in the row is in front of it."""
    for i in range(1, a.shape[0]):
        a[i, 1:] += a[i, :-1]
        for j in range(1, a.shape[1]):
            a[i, j] += a[i, j - 1] + a[i - 1, a.shape[1] - 1 - j]


def overtaken(a: Any) -> None:
    """The loop reads what the launch in front of it has stored further on."""
    for i in range(1, a.shape[0]):
        a[i, 1:-1] *= a[i - 1, 1:-1]
        for j in range(1, a.shape[1] - 1):
            a[i, j] += a[i, j - 1] + a[i, j + 1]


@pytest.mark.parametrize("f", [stops, at_the_edge, carries, triangle, apart, across, overtaken])
def test_refused(f: Callable[..., Any]) -> None:
    plan = plan_of(f, rng.random((40, 60)))
    assert skew_rows(plan)[0] == plan
    check(f, (40, 60))


def test_rows_that_overlap() -> None:
    """Rows shorter than what the loop goes through: sizes tell, and the loop runs as it was."""

    def f(flat: Any, width: int, columns: int) -> None:
        for i in range(1, 24):
            for j in range(1, columns):
                flat[i * width + j] += 0.5 * flat[i * width + j - 1] - flat[i * width - width + j]

    for width, columns in ((70, 70), (70, 71), (9, 70), (1, 70), (70, 69)):
        want = rng.random(24 * 71)
        got = want.copy()
        f(want, width, columns)
        npjit.jit(f)(got, width, columns)
        np.testing.assert_array_equal(got, want)


def program(distances: list[tuple[int, int]], backwards: bool) -> Callable[..., Any]:
    """Each element from others at these distances."""
    parts = " ".join(f"- 0.25 * a[i + {r}, j + {c}]" for r, c in distances)
    text = "\n".join(
        [
            "def f(a):",
            f"    for i in range({'a.shape[0] - 4, 2, -1' if backwards else '3, a.shape[0] - 3'}):",
            "        for j in range(3, a.shape[1] - 3):",
            f"            a[i, j] = 0.5 * a[i, j - 1] {parts}",
            "",
        ]
    )
    name = f"<skew {distances} {backwards}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=4),
    st.booleans(),
)
def test_distances(distances: list[tuple[int, int]], backwards: bool) -> None:
    check(program(distances, backwards), (25, 150), (31, 97))


def test_groups_need_rows() -> None:
    """Fewer rows than a group has, and rows too short to be under way together."""
    check(smooth, (ROWS + 1, 90), (ROWS + 2, 90), (ROWS + 2, 20), (40, 8))
