"""Loops whose trips are apart as one more axis: which are, that they mean the same, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.graph import Graph
from npjit.core.tolerance import assert_equal_numpy


def scaled(a: Any, b: Any, c: Any) -> None:
    for j in range(a.shape[1]):
        c[:, j] = c[:, j] * 2.0 + a[:, j]


def rows_times(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i, :] = a[i, :] @ b


def dots(a: Any, b: Any, c: Any) -> None:
    for j in range(a.shape[1]):
        c[0, j] -= a[1:, j] @ b[1:, 0]


def numbers(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i, 0] = 2.0 * i + a[i, 0]


def backwards(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0] - 1, -1, -1):
        c[i] = a[-1 - i] - b[i]


def twice(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i] = a[i] + 1.0
        c[i, 0] = c[i, 1] * 2.0


def beside(a: Any, b: Any, c: Any) -> None:
    """Row 0 is read in every trip, and never written."""
    for i in range(1, a.shape[0]):
        c[i] = c[i] + c[0]


def triangle(a: Any, b: Any, c: Any) -> None:
    """The inner loop's trips are apart, the outer one's are not."""
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] -= a[i, :i] @ c[:i, j]


def diagonal(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i, i] = a[i, i] * b[0, i]


LEGAL = {
    f.__name__: f
    for f in (
        scaled,
        rows_times,
        dots,
        numbers,
        backwards,
        twice,
        beside,
        triangle,
        diagonal,
    )
}


def jacobi(a: Any, b: Any, c: Any) -> None:
    for _ in range(a.shape[0]):
        c[1:-1] = a[:-2] + a[2:]
        a[1:-1] = c[:-2] + c[2:]


def gauss_seidel(a: Any, b: Any, c: Any) -> None:
    for i in range(1, a.shape[0] - 1):
        c[i] = 0.5 * (c[i - 1] + c[i + 1])


def floyd_warshall(a: Any, b: Any, c: Any) -> None:
    for k in range(a.shape[0]):
        c[:] = np.minimum(c, c[:, k, None] + c[k, None, :])


def shifted(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0] - 1):
        c[i] = c[i + 1] * 2.0


def last_one_wins(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[0] = a[i]


def added_up(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[0] += a[i]


def ragged(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i, :i] = a[i, :i] * 2.0


def crossed(a: Any, b: Any, c: Any) -> None:
    """Each trip writes its row and reads its column, where others have written."""
    for i in range(a.shape[0]):
        c[i] = a[i] + c[:, i]


def whole(a: Any, b: Any, c: Any) -> None:
    """Each trip multiplies by all that the others write."""
    for i in range(a.shape[0] - 1):
        c[i + 1] = a[i] @ c * 0.01


def two_places(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0] - 1):
        c[i, 0] = a[i, 0]
        c[i + 1, 0] = b[i, 0]


def products(a: Any, b: Any, c: Any) -> None:
    """A product of matrices gains nothing by a further axis."""
    stack = a.reshape(a.shape[0], 1, a.shape[1]) * np.ones((1, 2, 1))
    for i in range(a.shape[0]):
        c[i, :2] = (stack[i] @ b)[:, 0]


ILLEGAL = {
    f.__name__: f
    for f in (
        jacobi,
        gauss_seidel,
        floyd_warshall,
        shifted,
        last_one_wins,
        added_up,
        ragged,
        crossed,
        whole,
        two_places,
        products,
    )
}


def graph_of(f: Callable[..., Any], *args: Any) -> Graph:
    found: list[Graph] = []

    def backend(graph: Graph, types: Any) -> Any:
        found.append(graph)
        return lambda inputs: graph.run(*inputs)

    npjit.jit(f, backend=backend)(*args)
    return found[0]


def arguments(n: int) -> list[Any]:
    return [np.random.default_rng(n).random((n, n)) for _ in range(3)]


def loops_in(graph: Graph) -> int:
    return str(graph).count("= loop")


@pytest.mark.parametrize("name", LEGAL)
def test_trips_become_an_axis(name: str) -> None:
    graph = graph_of(LEGAL[name], *arguments(20))
    assert loops_in(graph) == (1 if name == "triangle" else 0)
    want, got = arguments(20), arguments(20)
    LEGAL[name](*want)
    graph.run(*got)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", ILLEGAL)
def test_refusals(name: str) -> None:
    graph = graph_of(ILLEGAL[name], *arguments(20))
    assert loops_in(graph) == 1
    want, got = arguments(20), arguments(20)
    ILLEGAL[name](*want)
    graph.run(*got)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("name", [*LEGAL, *ILLEGAL])
def test_compiled(name: str) -> None:
    """Also at sizes where loops make no trip, or one."""
    f = (LEGAL | ILLEGAL)[name]
    compiled = npjit.jit(f)
    for n in (20, 33, 2, 3):
        want, got = arguments(n), arguments(n)
        f(*want)
        compiled(*got)
        for a, b in zip(got, want, strict=True):
            assert_equal_numpy(a, b, bound=40 * n * np.finfo(float).eps * np.max(np.abs(b)))


def test_a_range_that_is_empty_by_being_negative() -> None:
    def f(a: Any, low: int, high: int) -> None:
        for i in range(low, high):
            a[i] = a[i] * 2.0

    compiled = npjit.jit(f)
    for low, high in ((2, 9), (9, 2), (4, 4), (0, 20)):
        want, got = np.ones(20), np.ones(20)
        f(want, low, high)
        compiled(got, low, high)
        assert want.tobytes() == got.tobytes()


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("graph_spread.txt", str(graph_of(triangle, *arguments(20))) + "\n")


def test_conditions_on_sizes_are_facts() -> None:
    """Inside `if k > 0` an index k - 1 needs neither a check nor a select."""

    def f(a: Any, c: Any) -> None:
        for k in range(a.shape[0]):
            if k > 0:
                c[k] = c[k - 1] + a[k]
            else:
                c[k] = a[k]

    shown = str(graph_of(f, np.ones(20), np.zeros(20)))
    assert "check" not in shown and "select" not in shown


def test_conditions_and_guards_are_facts_together() -> None:
    """Inside `if k < n - 1` k + 1 is an index of an array that a guard has found to be as long."""

    def f(a: Any, c: Any) -> None:
        n = c.shape[0]
        for k in range(n):
            c[k] = a[k]
            if k < n - 1:
                c[k] += a[k + 1]

    assert "check" not in str(graph_of(f, np.ones(25), np.zeros(20)))


def test_small_unsigned_indices_need_no_check() -> None:
    """All 256 values of a byte are indices of 256 places, but not of 200."""

    def count(image: Any, counts: Any) -> None:
        for i in range(image.shape[0]):
            counts[image[i]] += 1

    def look_up(image: Any, table: Any) -> Any:
        return table[image]

    image = np.arange(20, dtype=np.uint8)
    for f in (count, look_up):
        for n, checks in ((256, 0), (300, 0), (255, 1), (200, 1)):
            shown = str(graph_of(f, image, np.zeros(n)))
            assert ("check" in shown) == bool(checks)
    for f in (count, look_up):
        with pytest.raises(IndexError):
            npjit.jit(f)(np.full(20, 250, np.uint8), np.zeros(200))
