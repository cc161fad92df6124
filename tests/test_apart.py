"""Loops whose trips threads share out: which are, that all shares together do every trip once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from npjit._runtime import num_threads, set_num_threads

import npjit


def triangle(a: Any, b: Any, c: Any) -> None:
    for i in range(c.shape[0]):
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[i, k] / b[k, : i + 1]


def counted(a: Any, b: Any, c: Any) -> None:
    """A `while` in each trip, whose numbers are the trip's own."""
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            x, count = a[i, j], 0
            while x < 10.0 and count < 50:
                x = x * 1.5 + 0.1
                count += 1
            c[i, j] = count


def row_of_temporaries(a: Any, b: Any, c: Any) -> None:
    """An array in each trip, in memory of the share's own."""
    for i in range(c.shape[0]):
        row = np.zeros(a.shape[1])
        for k in range(a.shape[0] - 1):
            row[1:] = row[:-1] * 0.5 + a[k, 1:]
            row[0] = b[k, i]
        c[i] = row


def conditional(a: Any, b: Any, c: Any) -> None:
    for i in range(c.shape[0]):
        if a[i, 0] > 0.5:
            for k in range(i):
                c[i] = c[i] * 0.5 + b[k]
        else:
            c[i, 1:] = a[i, 1:] - 1.0


def below(a: Any, b: Any, c: Any) -> None:
    """Rows of the lower half; what they read of the upper half nobody writes."""
    half = c.shape[0] // 2
    upper = c[:half].copy()
    for i in range(half):
        for k in range(i + 1):
            c[half + i] += upper[k] / a[i, k]


def in_columns(a: Any, b: Any, c: Any) -> None:
    """Strips of rows, each through all columns."""
    for j in range(1, c.shape[1]):
        c[:, j] = c[:, j - 1] * 0.5 + a[:, j]


APART = (triangle, counted, row_of_temporaries, conditional, below, in_columns)


def row_above(a: Any, b: Any, c: Any) -> None:
    for i in range(1, c.shape[0]):
        for k in range(i):
            c[i] = c[i] * 0.5 + c[i - 1] * a[i, k]


def one_place(a: Any, b: Any, c: Any) -> None:
    for i in range(c.shape[0]):
        for k in range(i):
            c[0] = c[0] * 0.5 + a[i] * b[k, i]


def common_row(a: Any, b: Any, c: Any) -> None:
    """Each trip has two rows, of which the next one has one too."""
    for i in range(c.shape[0] - 1):
        for k in range(2):
            c[i + k] = c[i + k] * 0.5 + a[i] * b[k, 0]


def moving_inside(a: Any, b: Any, c: Any) -> None:
    """Rows i + k of different trips are the same ones."""
    for i in range(c.shape[0] // 2):
        for k in range(c.shape[0] // 2):
            c[i + k, :] = c[i + k, :] * 0.5 + a[i, k]


def one_number(a: Any, b: Any, c: Any) -> None:
    last = 0.0
    for i in range(c.shape[0]):
        for k in range(i):
            c[i, k] = last
        last = a[i, 0]


def early_end(a: Any, b: Any, c: Any) -> None:
    for i in range(c.shape[0]):
        if a[i, 0] > 0.99:
            break
        for k in range(i):
            c[i, k] = a[i, k] * b[k, i]


def by_index(a: Any, b: Any, c: Any) -> None:
    """Where a trip stores, data say."""
    places = np.argsort(a[:, 0]) // 2
    for i in range(c.shape[0]):
        for k in range(i):
            c[places[i], 0] = c[places[i], 0] * 0.5 + a[i, k]


def replaced(a: Any, b: Any, c: Any) -> None:
    """The inner loop puts a whole array in the place of its row."""
    row = c[0].copy()
    for i in range(c.shape[0]):
        for k in range(3):
            row = row * 0.5 + a[i] + k
        c[i] = row


TOGETHER = (
    replaced,
    row_above,
    one_place,
    common_row,
    moving_inside,
    one_number,
    early_end,
    by_index,
)


def arguments(n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n)
    return rng.random((n, n)), rng.random((n, n)), rng.random((n, n))


def kernels_of(f: Callable[..., Any], *args: Any) -> str:
    return str(npjit.jit(f).lower(*args).as_text("kernels"))


@pytest.mark.parametrize("f", APART, ids=lambda f: f.__name__)
def test_which_trips_are_apart(f: Callable[..., Any]) -> None:
    assert " apart" in kernels_of(f, *arguments(40))


@pytest.mark.parametrize("f", TOGETHER, ids=lambda f: f.__name__)
def test_refusals(f: Callable[..., Any]) -> None:
    assert " apart" not in kernels_of(f, *arguments(40))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("f", [*APART, *TOGETHER], ids=lambda f: f.__name__)
def test_every_bit(f: Callable[..., Any], threads: int) -> None:
    compiled = npjit.jit(f)
    before = num_threads()
    set_num_threads(threads)
    try:
        for n in (120, 64, 9, 3, 301):
            want, got = arguments(n), arguments(n)
            f(*want)
            compiled(*got)
            assert got[2].tobytes() == want[2].tobytes()
    finally:
        set_num_threads(before)
    assert not compiled.cache_info()["numpy"]


@pytest.mark.parametrize("place", [0, 500, 999])
def test_a_check_that_fails_in_one_share(place: int) -> None:
    """The caller's array is as it was before, and NumPy raises."""

    def picked(x: Any, at: Any, out: Any) -> None:
        for i in range(out.shape[0]):
            total = 0.0
            for k in range(at.shape[1]):
                total += x[at[i, k]]
            out[i] = total

    rng = np.random.default_rng(0)
    x, at = rng.random(50), rng.integers(0, 50, (1000, 20))
    compiled = npjit.jit(picked)
    want, got = np.zeros(1000), np.zeros(1000)
    picked(x, at, want)
    compiled(x, at, got)
    assert got.tobytes() == want.tobytes()
    assert " apart" in kernels_of(picked, x, at, got)
    at[place, 7] = 50
    got[:] = 7.0
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 50"):
        compiled(x, at, got)
    assert (got[:place] == want[:place]).all() and (got[place:] == 7.0).all()


def test_golden(golden: Callable[[str, str], None]) -> None:
    text = npjit.jit(counted).lower(*arguments(40)).as_text("cpp")
    golden("apart_counted.txt", text[text.index('extern "C" int npjit_run(') :] + "\n")
