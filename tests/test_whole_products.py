"""Products of rows made for all trips of a loop: which are, that they mean the same, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.graph import Graph, every_node
from npjit.ops.cut_product import CUT_PRODUCT

Arrays = tuple[Any, Any, Any]


def lower_rows(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i, : i + 1] *= 2
        for k in range(a.shape[1]):
            c[i, : i + 1] += 3 * a[i, k] * b[: i + 1, k]


def two_terms(a: Any, b: Any, c: Any) -> None:
    n = a.shape[0]
    for i in range(n):
        for k in range(a.shape[1]):
            c[i, i:n] -= a[i, k] * b[i:n, k] - b[i, k] * a[i:n, k]


def inner_triangle(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        for k in range(i):
            c[i] += a[i, k] * b[k]


def symmetric(a: Any, b: Any, c: Any) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[:i, j] += 1.5 * b[i, j] * a[i, :i]
            c[i, j] += 1.5 * (b[i, j] * a[i, i] + b[:i, j] @ a[i, :i])


def growing_outer(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[:, : i + 1] += b[i][:, None] * a[i, : i + 1]


def shrinking_outer(a: Any, b: Any, c: Any) -> None:
    n = a.shape[0]
    for i in range(n):
        c[i:n] -= a[i, i:n, None] * b[i]


def shrinking_columns(a: Any, b: Any, c: Any) -> None:
    n = a.shape[0]
    for i in range(n):
        c[:, i + 1 : n] += b[i][:, None] * (0.5 * a[i, i + 1 : n])


def plain_outer(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c += np.outer(a[i], b[i])


def rows_below(a: Any, b: Any, c: Any) -> None:
    """The rows that a trip reads are written by later ones only."""
    for i in range(a.shape[0]):
        c[i] += a[i + 1 :, i] @ c[i + 1 :]


def upper(a: Any, b: Any, c: Any) -> None:
    n = a.shape[1]
    for i in range(n):
        c[i, i:n] = a[:, i] @ b[:, i:n]
        c[i:n, i] = c[i, i:n]


def both_cut(a: Any, b: Any, c: Any) -> None:
    n = a.shape[0]
    for i in range(n):
        c[i, i:n] = a[i, :i] @ b[:i, i:n]


def nested(a: Any, b: Any, c: Any) -> None:
    for k in range(a.shape[0] // 8):
        for i in range(a.shape[0]):
            c[i] = c[i] * 0.5 + a[i, :i] @ b[:i] * k


def fewer_trips(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0] - 5):
        c[i, : i + 1] += a[i] @ b[:, : i + 1]


LEGAL = (
    lower_rows,
    two_terms,
    inner_triangle,
    symmetric,
    growing_outer,
    shrinking_outer,
    shrinking_columns,
    plain_outer,
    rows_below,
    upper,
    both_cut,
    nested,
    fewer_trips,
)


def rows_above(a: Any, b: Any, c: Any) -> None:
    """What a trip writes is what the next ones multiply."""
    for i in range(a.shape[0]):
        c[i] += a[i, :i] @ c[:i] * 1e-2


def written_factor(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0] - 1):
        c[i, : i + 1] += a[i] @ b[:, : i + 1]
        a[i + 1] = a[i] * 0.5


def horner(a: Any, b: Any, c: Any) -> None:
    """Each step scales what the ones before have added."""
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            c[i, : i + 1] = c[i, : i + 1] * 0.5 + a[i, k] * b[: i + 1, k]


def moving_part(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            c[i, k:] += a[i, k] * b[k, k:]


def read_between(a: Any, b: Any, c: Any) -> None:
    """Somebody looks at what has been added up so far."""
    for i in range(a.shape[0]):
        c[:i] += a[i, :i, None] * b[i]
        a[i, 0] = c[0, 0]


def taken_from(a: Any, b: Any, c: Any) -> None:
    """The sign of what is there alternates."""
    for i in range(a.shape[0]):
        c[:i] = a[i, :i, None] * b[i] - c[:i]


def stopped(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        if c[i, 0] > 0.99:
            break
        c[i, i:] = a[i] @ b[:, i:]


def no_room(a: Any, b: Any, c: Any) -> Any:
    """All products together would be larger than anything that the loop writes."""
    total = np.zeros(a.shape[1])
    for i in range(a.shape[0]):
        total += (a[i] @ b) ** 2
    return total


ILLEGAL = (
    rows_above,
    written_factor,
    horner,
    moving_part,
    read_between,
    taken_from,
    stopped,
    no_room,
)


def arguments(n: int, dtype: Any = np.float64) -> Arrays:
    rng = np.random.default_rng(n)
    a, b, c = (rng.random((3, n, n)) * 8).astype(dtype)
    return a, b, c


def products_in(f: Callable[..., Any], *args: Any) -> int:
    found: list[Graph] = []

    def backend(graph: Graph, types: Any) -> Any:
        found.append(graph)
        return lambda inputs: graph.run(*inputs)

    npjit.jit(f, backend=backend)(*args)
    return sum(n.op is CUT_PRODUCT for n in every_node(found[0]))


@pytest.mark.parametrize("f", LEGAL, ids=lambda f: f.__name__)
def test_products_of_all_trips(f: Callable[..., Any]) -> None:
    assert products_in(f, *arguments(20)) == (2 if f in (two_terms, symmetric) else 1)


@pytest.mark.parametrize("f", ILLEGAL, ids=lambda f: f.__name__)
def test_refusals(f: Callable[..., Any]) -> None:
    assert not products_in(f, *arguments(20))


@pytest.mark.parametrize("dtype", [np.int64, np.complex128, np.float16])
def test_other_types_stay_loops(dtype: Any) -> None:
    assert not products_in(lower_rows, *arguments(20, dtype))


@pytest.mark.parametrize("f", [*LEGAL, *ILLEGAL], ids=lambda f: f.__name__)
def test_compiled(f: Callable[..., Any]) -> None:
    """Also where tiles, panels and strips are not full, and ranges are empty."""
    compiled = npjit.jit(f)
    for n in (40, 75, 17, 3):
        want, got = arguments(n), arguments(n)
        results = compiled(*got), f(*want)
        np.testing.assert_allclose(*results, rtol=1e-12) if results[1] is not None else None
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-11)
    info = compiled.cache_info()
    assert info["whole"] and not info["numpy"]


@pytest.mark.parametrize("f", [lower_rows, symmetric, shrinking_outer, rows_below, both_cut])
def test_infinities_and_nans_stay_in_their_places(f: Callable[..., Any]) -> None:
    """Tiles multiply by no zeros in place of what is not wanted."""
    compiled = npjit.jit(f)
    for place, value in (
        ((3, 5), np.inf),
        ((5, 3), np.nan),
        ((19, 20), -np.inf),
        ((20, 0), np.nan),
    ):
        for number in range(2):
            want, got = arguments(30), arguments(30)
            want[number][place] = got[number][place] = value
            with np.errstate(all="ignore"):
                f(*want)
            compiled(*got)
            for x, y in zip(got, want, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("f", [lower_rows, symmetric, rows_below], ids=lambda f: f.__name__)
def test_single_precision(f: Callable[..., Any]) -> None:
    want, got = arguments(50, np.float32), arguments(50, np.float32)
    f(*want)
    npjit.jit(f)(*got)
    assert got[2].dtype == np.float32
    np.testing.assert_allclose(got[2], want[2], rtol=2e-5)


@pytest.mark.parametrize("view", ["same", "turned", "backwards", "strided"])
def test_arguments_that_overlap_or_lie_otherwise(view: str) -> None:
    """An array that is read through another name; columns, flips and steps."""
    show = {
        "same": lambda x: x,
        "turned": lambda x: x.T,
        "backwards": lambda x: x[::-1, ::-1],
        "strided": lambda x: x[::2, ::3],
    }[view]
    compiled = npjit.jit(lower_rows)
    want, got = (np.random.default_rng(1).random((3, 90, 90)) for _ in range(2))
    for x, f in ((want, lower_rows), (got, compiled)):
        a, b, c = map(show, x)
        n = min(a.shape)
        f(a[:n, :n], b[:n, :n], c[:n, :n])
        f(a[:n, :n], c[:n, :n], c[:n, :n])
    np.testing.assert_allclose(got, want, rtol=1e-9)


def replaced(a: Any, b: Any, c: Any) -> None:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = c[i, j] @ b


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_products_that_take_the_place_of_their_rows(dtype: Any) -> None:
    compiled = npjit.jit(replaced)
    rng = np.random.default_rng(2)
    for shape in ((20, 30, 40), (3, 5, 20), (1, 70, 33)):
        b = (rng.random((shape[2], shape[2])) * 9).astype(dtype)
        for order in "CF":
            want = np.asarray(rng.random(shape) * 9, dtype, order)
            got = want.copy(order="K")
            replaced(None, b, want)
            compiled(None, b, got)
            np.testing.assert_allclose(got, want, rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_a_matrix_by_itself_is_not_multiplied_in_place() -> None:
    def squared(a: Any) -> None:
        a[:] = a @ a

    want = np.random.default_rng(3).random((40, 40))
    got = want.copy()
    squared(want)
    npjit.jit(squared)(got)
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_in_tiles(dtype: Any) -> None:
    """Operands and results by rows and by columns; sums longer than registers take at a time."""
    tolerance = 1e-12 if dtype == np.float64 else 1e-4
    products = npjit.jit(lambda a, b: (a @ b, (b.T @ a.T).T + 1, a @ a.T, a.T @ a))
    for m, n, k in ((40, 70, 1100), (75, 46, 513), (130, 9, 64), (8, 8, 8)):
        rng = np.random.default_rng(k)
        a, b = rng.random((m, k)).astype(dtype), rng.random((k, n)).astype(dtype)
        for x, y in ((a, np.asfortranarray(b)), (np.asfortranarray(a), b), (a[::-1], b)):
            want = (x @ y, x @ y + 1, x @ x.T, x.T @ x)
            got = products(x, y)
            for made, expected in zip(got, want, strict=True):
                np.testing.assert_allclose(made, expected, rtol=tolerance)
            for made in got[2:]:
                np.testing.assert_array_equal(made, made.T)
