"""Rows whose elements are made side by side: which are, that they mean the same, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import check_rounded
from tests.test_behind import begun_in
from tests.test_panels import graph_of


def cholesky(a: Any, b: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])


def lu(a: Any, b: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]


def by_columns(a: Any, b: Any) -> None:
    """A trip's own part is a column."""
    for i in range(a.shape[0]):
        for j in range(i):
            a[j, i] = (a[j, i] - a[:j, i] @ a[:j, j]) / a[j, j]
        a[i, i] = np.sqrt(a[i, i] - a[:i, i] @ a[:i, i])


def other_rows(a: Any, b: Any) -> None:
    """Rows of another array, from the second one on."""
    for i in range(1, a.shape[0]):
        for j in range(i):
            b[i, j] = a[i, j] - b[i, :j] @ a[j, :j] * 0.1


def carried(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[i, j] - a[i, :j] @ a[j, :j] * 0.1
        total += a[i, 0]
        a[i, i] += total * 0.01
    return total


LEGAL = (cholesky, lu, by_columns, other_rows, carried)


def later_row(a: Any, b: Any) -> None:
    """Behind its own row each trip reads the next one."""
    for i in range(a.shape[0] - 1):
        for j in range(i):
            a[i, j] = a[i, j] - a[i, :j] @ a[j, :j] * 0.1
        a[i, i] = a[i + 1, 0]


def row_in_front(a: Any, b: Any) -> None:
    """The inner loop reads the row of the trip before."""
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] = a[i, j] - a[i, :j] @ a[i - 1, :j] * 0.1


def column_too(a: Any, b: Any) -> None:
    """Each trip writes a column as well, of which others read."""
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[i, j] - a[i, :j] @ a[j, :j] * 0.1
        a[:, i] *= 0.9


def changed_before(a: Any, b: Any) -> None:
    """Something happens to the row before the inner loop."""
    for i in range(a.shape[0]):
        a[i] *= 0.9
        for j in range(i):
            a[i, j] = a[i, j] - a[i, :j] @ a[j, :j] * 0.1


def read_before(a: Any, b: Any) -> None:
    """What the row held before the inner loop is needed after it."""
    for i in range(1, a.shape[0]):
        old = a[i, 0] * 0.5
        for j in range(i):
            a[i, j] = a[i, j] - a[i, :j] @ a[j, :j] * 0.1
        b[i, i] = old


def all_of_it(a: Any, b: Any) -> None:
    """The inner loop reads rows that the panel is still to make."""
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[i, j] - a[i, :j] @ a[:j, j] * 0.1 - a[a.shape[0] - 1, j] * 0.01


def summing(a: Any, b: Any) -> None:
    """The inner loop carries a value."""
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(i):
            total += a[i, :j] @ a[j, :j]
            a[i, j] = total * 0.01


def fewer_than_none(a: Any, b: Any) -> None:
    """The range of the first row ends before it begins."""
    for i in range(a.shape[0]):
        for j in range(i - 1):
            a[i, j] = a[i, j] - a[i, :j] @ a[j, :j] * 0.1


def by_a_carried_value(a: Any, b: Any) -> Any:
    """The inner loop reads what the trips carry."""
    total = 1.0
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[i, j] - a[i, :j] @ a[j, :j] * 0.1 * total
        total += a[i, i] * 0.01
    return total


def other_matrix(a: Any, b: Any) -> None:
    """What the rest of a trip writes is what the inner loop of the next one reads."""
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[i, j] - a[i, :j] @ b[j, :j] * 0.1
        b[0, :] *= 0.9


ILLEGAL = (
    later_row,
    row_in_front,
    column_too,
    changed_before,
    read_before,
    all_of_it,
    summing,
    fewer_than_none,
    by_a_carried_value,
    other_matrix,
)


def arguments(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    half = rng.random((n, n)) - 0.5
    return half @ half.T / n + np.eye(n), rng.random((n, n))


@pytest.mark.parametrize("f", LEGAL, ids=lambda f: f.__name__)
def test_rows_are_made_abreast(f: Callable[..., Any]) -> None:
    assert begun_in(graph_of(f, *arguments(30))) == 1


@pytest.mark.parametrize("f", ILLEGAL, ids=lambda f: f.__name__)
def test_refusals(f: Callable[..., Any]) -> None:
    text = str(graph_of(f, *arguments(30)))
    assert "index i0p" not in text.replace("i1p", "")


@pytest.mark.parametrize("f", [*LEGAL, *ILLEGAL], ids=lambda f: f.__name__)
def test_compiled(f: Callable[..., Any]) -> None:
    """Also where the last rows are fewer, or all rows are."""
    check_rounded(f, arguments, (30, 75, 64, 8, 9, 5, 2))


def test_memory_in_fortran_order() -> None:
    want, got = (np.asfortranarray(arguments(40)[0]) for _ in range(2))
    cholesky(want, None)
    npjit.jit(cholesky)(got, None)
    np.testing.assert_allclose(got, want, rtol=1e-11)
