"""Sums over what earlier trips have made, begun for many trips at once: which are, that they mean
the same, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.graph import Graph, nested_graphs
from npjit.core.op import Kind
from tests.calls import check_rounded
from tests.test_panels import graph_of

Arrays = tuple[Any, Any, Any]


def forwards(a: Any, b: Any, x: Any) -> None:
    for i in range(len(b)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]


def backwards(a: Any, b: Any, x: Any) -> None:
    for i in range(len(b) - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]


def from_the_right(a: Any, b: Any, x: Any) -> None:
    """The vector first, and a range that does not begin at 0."""
    for i in range(2, len(b)):
        x[i] = b[i] - x[2:i] @ a[i, 2:i] * 0.1


def every_second(a: Any, b: Any, x: Any) -> None:
    """Each trip's row lies two further on."""
    for i in range(len(b) // 2):
        x[i] = b[i] - a[2 * i, :i] @ x[:i] * 0.1


def columns(a: Any, b: Any, x: Any) -> None:
    for i in range(len(b)):
        x[i] = b[i] - a[:i, i] @ x[:i] * 0.1


def two_sums(a: Any, b: Any, x: Any) -> Any:
    """With a carried value, and two sums of a trip."""
    total = 0.0
    for i in range(len(b)):
        x[i] = b[i] - a[i, :i] @ x[:i] * 0.1 - a[i, :i] @ b[:i] * 0.01 + total * 0.001
        total += x[i]
    return total


LEGAL = dict.fromkeys((forwards, backwards, from_the_right, every_second, columns), 1)
LEGAL[two_sums] = 2


def own_end(a: Any, b: Any, x: Any) -> None:
    """The range has an element that its trip is still to write."""
    for i in range(len(b)):
        x[i] = b[i] - a[i, : i + 1] @ x[: i + 1] * 0.1


def written_behind(a: Any, b: Any, x: Any) -> None:
    """Each trip writes what other trips have summed."""
    for i in range(1, len(b)):
        x[i] = b[i] - a[i, :i] @ x[:i] * 0.1
        x[i // 2] = x[i] * 0.5


def written_rows(a: Any, b: Any, x: Any) -> None:
    """Each trip writes into the rows of all others."""
    for i in range(len(b)):
        x[i] = b[i] - a[i, :i] @ x[:i] * 0.1
        a[:, 0] *= 0.9


def shrinking(a: Any, b: Any, x: Any) -> None:
    for i in range(len(b)):
        x[i] = b[i] - a[i, i:] @ b[i:] * 0.1


def window(a: Any, b: Any, x: Any) -> None:
    for i in range(len(b) - 3):
        x[i] = b[i] - a[i, i : i + 3] @ b[i : i + 3] * 0.1


def turned_round(a: Any, b: Any, x: Any) -> None:
    """What one factor adds in a trip is at its end, the other one's at its front."""
    for i in range(1, len(b)):
        x[i] = b[i] - a[i, :i] @ x[:i][::-1] * 0.1


def no_rows(a: Any, b: Any, x: Any) -> None:
    for i in range(len(b)):
        x[i] = b[i] - b[:i] @ x[:i] * 0.01


def stopped(a: Any, b: Any, x: Any) -> None:
    for i in range(len(b)):
        if x[i] > 0.99:
            break
        x[i] = b[i] - a[i, :i] @ x[:i] * 0.1


ILLEGAL = (
    own_end,
    written_behind,
    written_rows,
    shrinking,
    window,
    turned_round,
    no_rows,
    stopped,
)


def begun_in(graph: Graph) -> int:
    """How many products of a matrix and a vector stand in loops."""
    bodies = [g for n in graph.nodes for g in nested_graphs(n)]
    own = [m for g in bodies for m in g.nodes if m.op.kind is Kind.CONTRACT]
    return len(own) + sum(map(begun_in, bodies))


def arguments(n: int) -> Arrays:
    rng = np.random.default_rng(n)
    return rng.random((n, n)) / n + np.eye(n), rng.random(n), rng.random(n)


@pytest.mark.parametrize("f", LEGAL, ids=lambda f: f.__name__)
def test_sums_are_begun_in_front_of_their_trips(f: Callable[..., Any]) -> None:
    assert begun_in(graph_of(f, *arguments(70))) == LEGAL[f]


@pytest.mark.parametrize("f", ILLEGAL, ids=lambda f: f.__name__)
def test_refusals(f: Callable[..., Any]) -> None:
    assert begun_in(graph_of(f, *arguments(70))) == 0


def test_loops_of_few_trips_stay() -> None:
    def few(a: Any, b: Any, x: Any) -> None:
        for i in range(min(len(b), 40)):
            x[i] = b[i] - a[i, :i] @ x[:i]

    assert begun_in(graph_of(few, *arguments(70))) == 0


@pytest.mark.parametrize("f", [*LEGAL, *ILLEGAL], ids=lambda f: f.__name__)
def test_compiled(f: Callable[..., Any]) -> None:
    """Also where the last panel is full, or the only one is not; large enough for threads."""
    check_rounded(f, arguments, (70, 600, 128, 64, 9, 3))


@pytest.mark.parametrize("f", [forwards, backwards])
def test_float32(f: Callable[..., Any]) -> None:
    want, got = (tuple(x.astype("f4") for x in arguments(300)) for _ in range(2))
    f(*want)
    npjit.jit(f)(*got)
    np.testing.assert_allclose(got[2], want[2], rtol=1e-5)
