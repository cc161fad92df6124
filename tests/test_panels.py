"""Products of rows made for many trips at once: which are, that they mean the same, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.control import Loop
from npjit.core.graph import Graph, Node
from npjit.core.op import Kind

Arrays = tuple[Any, Any, Any]


def upper(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[1]):
        c[i, i:] = a[:, i] @ a[:, i:]
        c[i:, i] = c[i, i:]


def strictly_upper(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[1] - 1):
        c[i, i + 1 :] = a[:, i] @ b[:, i + 1 :]


def lower(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        c[i, : i + 1] += b[: i + 1] @ a[i]


def every_second(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0] // 2):
        c[i + 1] = c[i] + a[2 * i + 1] @ b


def carried(a: Any, b: Any, c: Any) -> Any:
    total = 0.0
    for i in range(a.shape[0]):
        row = a[i] @ b + total
        c[i] = row
        total += row[0] * 0.01
    return total


def nested(a: Any, b: Any, c: Any) -> None:
    for k in range(a.shape[0] // 8):
        for i in range(a.shape[0]):
            c[i, i:] = c[i, i:] * 0.5 + a[i] @ b[:, i:] * k


LEGAL = (upper, strictly_upper, lower, every_second, carried, nested)


def written(a: Any, b: Any, c: Any) -> None:
    """What a trip writes is what the next one multiplies."""
    for i in range(a.shape[0] - 1):
        c[i + 1] = a[i] @ c * 1e-2


def window(a: Any, b: Any, c: Any) -> None:
    """A product for all trips would be much wider than all the windows."""
    for i in range(a.shape[1] - 3):
        c[i, i : i + 3] = a[:, i] @ b[:, i : i + 3]


def shorter_sums(a: Any, b: Any, c: Any) -> None:
    """Each trip sums over another range."""
    for i in range(a.shape[0]):
        c[i, i:] = a[i, :i] @ b[:i, i:]


def moved_sums(a: Any, b: Any, c: Any) -> None:
    """Each trip sums over other rows of the matrix."""
    for i in range(a.shape[0] // 2):
        c[i, i:] = a[i, :5] @ b[i : i + 5, i:]


def both_picked(a: Any, b: Any, c: Any) -> None:
    stack = a.reshape(a.shape[0], a.shape[1], 1) * b[:, None, :]
    for i in range(a.shape[0]):
        c[i, i:] = a[i] @ stack[i, :, i:]


def backwards(a: Any, b: Any, c: Any) -> None:
    """BLAS counts rows upwards."""
    for i in range(a.shape[0] - 1, -1, -1):
        c[i, i:] = a[i] @ b[:, i:]


def stopped(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        if c[i, 0] > 0.99:
            break
        c[i, i:] = a[i] @ b[:, i:]


ILLEGAL = (written, window, shorter_sums, moved_sums, both_picked, backwards, stopped)


def graph_of(f: Callable[..., Any], *args: Any) -> Graph:
    found: list[Graph] = []

    def backend(graph: Graph, types: Any) -> Any:
        found.append(graph)
        return lambda inputs: graph.run(*inputs)

    npjit.jit(f, backend=backend)(*args)
    return found[0]


def panels_in(graph: Graph) -> list[Node]:
    """Products of matrices that stand beside a loop."""
    found: list[Node] = []
    for n in graph.nodes:
        if isinstance(n.params, Loop):
            body = n.params.body
            beside = any(isinstance(m.params, Loop) for m in body.nodes)
            made = [m for m in body.nodes if m.op.kind is Kind.CONTRACT and len(m.shape) == 2]
            found += [*made * beside, *panels_in(body)]
    return found


def arguments(n: int, dtype: Any = np.float64) -> Arrays:
    rng = np.random.default_rng(n)
    a, b, c = rng.random((3, n, n)).astype(dtype)
    return a, b, c


@pytest.mark.parametrize("f", LEGAL, ids=lambda f: f.__name__)
def test_products_stand_in_front_of_their_trips(f: Callable[..., Any]) -> None:
    """Real ones are made for all trips, see test_whole_products."""
    graph = graph_of(f, *arguments(70, np.complex128))
    assert len(panels_in(graph)) == 1


@pytest.mark.parametrize("f", ILLEGAL, ids=lambda f: f.__name__)
def test_refusals(f: Callable[..., Any]) -> None:
    assert not panels_in(graph_of(f, *arguments(70, np.complex128)))


@pytest.mark.parametrize("f", [*LEGAL, *ILLEGAL], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_compiled(f: Callable[..., Any], dtype: Any) -> None:
    """Also where the last panel is full, or the only one is not."""
    compiled = npjit.jit(f)
    for n in (70, 150, 128, 64, 9, 3):
        want, got = arguments(n, dtype), arguments(n, dtype)
        results = compiled(*got), f(*want)
        np.testing.assert_allclose(*results, rtol=1e-12) if results[1] is not None else None
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)
    info = compiled.cache_info()
    assert info["whole"] and not info["numpy"]


def test_integers_wrap_alike() -> None:
    def rows(a: Any, b: Any, c: Any) -> None:
        for i in range(a.shape[0]):
            c[i, i:] = a[i] @ b[:, i:]

    rng = np.random.default_rng(3)
    a, b = (rng.integers(-(2**62), 2**62, (40, 40)) for _ in range(2))
    want, got = np.zeros((40, 40), int), np.zeros((40, 40), int)
    rows(a, b, want)
    npjit.jit(rows)(a, b, got)
    np.testing.assert_array_equal(got, want)


def test_a_matrix_with_infinities_spoils_no_other_trip() -> None:
    """A panel multiplies more than its trips want of the matrix."""
    want, got = arguments(70), arguments(70)
    want[1][:, 10] = got[1][:, 10] = np.inf
    strictly_upper(*want)
    npjit.jit(strictly_upper)(*got)
    np.testing.assert_allclose(got[2], want[2], rtol=1e-12)
