"""Loops with their trips inside a kernel: which, to the last bit, and matrices turned for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.codegen import cpp_trips


def row_sums(a: Any, c: Any) -> None:
    for k in range(a.shape[0]):
        c += a[k]


def counted(a: Any, c: Any) -> None:
    """The index is a value too."""
    for k in range(a.shape[0]):
        c[:] = c * 0.5 + a[k] * k


def backwards(a: Any, c: Any) -> None:
    for k in range(a.shape[0] - 1, -1, -1):
        c[:] = c * 0.5 + a[k, ::-1]


def rank_one(a: Any, c: Any) -> None:
    for k in range(a.shape[0]):
        c[1:] = c[1:] - a[k, 0] * a[k, 1:]


def columns(a: Any, c: Any) -> None:
    """The columns of a lie a row apart; c is gone through again and again."""
    for i in range(c.shape[0] // 3):
        for k in range(a.shape[1]):
            c[: i + 1] += a[i, k] * a[: i + 1, k]


def escaping(a: Any, c: Any) -> None:
    """Complex numbers and counts, with nothing that moves from trip to trip."""
    z = a[0] + 1j * a[-1]
    start = z.copy()
    count = np.zeros(z.shape, np.int32)
    for _ in range(a.shape[0]):
        inside = np.abs(z) < 2.0
        z[...] = np.where(inside, z * z + start, z)
        count[...] = np.where(inside, count + 1, count)
    c += np.abs(z) + count


def picked(a: Any, c: Any) -> None:
    places = np.argsort(a[0])
    for k in range(a.shape[0]):
        c[:] = c + a[k][places]


def changing(a: Any, c: Any) -> None:
    """A matrix that the loop writes is not turned in front of it."""
    for i in range(1, c.shape[0] // 3):
        for k in range(a.shape[1]):
            c[: i + 1] += a[i, k] * a[: i + 1, k]
        a[i, 1:] = a[i, 1:] * 0.5 + c[0] * 1e-6


JOINED = (row_sums, counted, backwards, rank_one, columns, escaping)


def shifted(a: Any, c: Any) -> None:
    for k in range(a.shape[0]):
        c[1:] = c[:-1] + a[k, 1:]


def moving_target(a: Any, c: Any) -> None:
    for k in range(c.shape[0] - 2):
        c[k : k + 2] += a[k % 3, :2]


def total(a: Any, c: Any) -> None:
    for k in range(a.shape[0]):
        c[:] = c + a[k] * c[0]


def squared_index(a: Any, c: Any) -> None:
    for k in range(3):
        c += a[k * k // 2]


REFUSED = (shifted, moving_target, total)


def arguments(n: int, m: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n + m)
    return rng.random((n, m)), rng.random(m)


def text_of(f: Callable[..., Any], *args: Any) -> str:
    return str(npjit.jit(f).lower(*args).as_text("cpp"))


@pytest.mark.parametrize("f", JOINED, ids=lambda f: f.__name__)
def test_trips_are_inside_the_kernel(f: Callable[..., Any]) -> None:
    assert "_near" in text_of(f, *arguments(60, 70))


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_refusals(f: Callable[..., Any]) -> None:
    assert "_near" not in text_of(f, *arguments(60, 70))


@pytest.mark.parametrize(
    "f", [*JOINED, *REFUSED, changing, picked, squared_index], ids=lambda f: f.__name__
)
def test_every_bit(f: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """All lengths of a last strip, wide ones, no trip and one, several pieces of trips."""
    monkeypatch.setattr(cpp_trips, "PIECE", 20)
    compiled = npjit.jit(f)
    shapes = [(60, m) for m in (*range(17, 44), 64, 99, 6000)]
    for n, m in [*shapes, (20, 50), (21, 50), (17, 9), (300, 700)]:
        if f in (columns, changing):
            n = m = min(n, m)
        want, got = arguments(n, m), arguments(n, m)
        f(*want)
        compiled(*got)
        if f is escaping:  # NumPy rounds products of complex numbers another way
            np.testing.assert_allclose(got[1], want[1], rtol=1e-9)
        else:
            assert [x.tobytes() for x in got] == [x.tobytes() for x in want]
    assert not compiled.cache_info()["numpy"]


def test_no_trip_changes_nothing() -> None:
    def f(c: Any, a: Any, n: int) -> None:
        for k in range(n):
            c[:] = a[k]

    compiled = npjit.jit(f)
    a, c = np.ones((40, 30)), np.zeros(30)
    for n in (3, 0, -2):
        c[:] = 7.0
        compiled(c, a, n)
        assert (c == (1.0 if n > 0 else 7.0)).all()


def test_several_axes() -> None:
    def f(c: Any, a: Any) -> None:
        for k in range(a.shape[0]):
            c[1:, ::2] = c[1:, ::2] * 0.5 + a[k]

    def g(c: Any, a: Any) -> None:
        for k in range(a.shape[0]):
            c[1:, 1:] = c[1:, 1:] * 0.5 + a[k]

    for function, shape in ((f, (25, 30, 20)), (g, (25, 30, 39))):
        a = np.random.default_rng(0).random(shape)
        want, got = np.ones((31, 40)), np.ones((31, 40))
        function(want, a)
        npjit.jit(function)(got, a)
        assert got.tobytes() == want.tobytes()


def test_golden(golden: Callable[[str, str], None]) -> None:
    """A matrix whose columns a loop reads again and again is turned; the sums are in registers."""
    plan = npjit.jit(columns).lower(*arguments(60, 60)).as_text("kernels")
    text = text_of(columns, *arguments(60, 60))
    golden("trips_columns.txt", f"{plan}\n\n{text[text.index('struct k') :]}")


def along_rows(a: Any, c: Any) -> None:
    """Each element goes along a row of its own."""
    for k in range(a.shape[1]):
        c[:] = c * 0.5 + np.exp(a[:, k])


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
def test_rows_are_asked_for_ahead(dtype: str) -> None:
    compiled = npjit.jit(along_rows)
    for rows, columns in ((5, 3), (33, 50), (700, 9)):
        a = np.random.default_rng(rows).random((rows, columns)).astype(dtype)
        got, want = np.ones(rows, dtype), np.ones(rows, dtype)
        compiled(a, got)
        along_rows(a, want)
        np.testing.assert_allclose(got, want, rtol=1e-12 if dtype != "f4" else 1e-5)
    matrix, vector = np.ones((9, 30)), np.ones(9)
    assert "__builtin_prefetch" in compiled.lower(matrix, vector).as_text("cpp")
    beside = npjit.jit(row_sums).lower(matrix, np.ones(30)).as_text("cpp")
    assert "__builtin_prefetch" not in beside
