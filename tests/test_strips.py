"""Loops over columns in strips of rows: which are cut, that they mean the same, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.graph import Graph
from npjit.schedule import through
from npjit.schedule.carried import settle
from npjit.schedule.strips import cut_in_strips
from tests.control_programs import PROGRAMS

rng = np.random.default_rng(8)


def recurrence(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1]):
        y[:, k] = 0.5 * y[:, k - 1] + x[:, k]


def carried(x: Any, y: Any) -> None:
    last = y[:, 0].copy()
    for k in range(1, x.shape[1]):
        last = 0.5 * last + x[:, k]
        y[:, k] = last + 1.0


def inside(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1]):
        y[1:-1, k] = y[1:-1, k - 1] + x[:-2, k] - x[2:, k]


def branches(x: Any, y: Any) -> None:
    for k in range(x.shape[1]):
        change = np.zeros(x.shape[0])
        if k > 0:
            change -= 2.0 * x[:, k] - y[:, k - 1]
            scale = 3.0 * x[:, k]
        else:
            scale = x[:, k] + 1.0
        y[:, k] = change * scale


def two_arrays(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1]):
        x[:, k] = x[:, k - 1] / (x[:, k] + 2.0)
        y[:, k] = (y[:, k - 1] - x[:, k - 1]) * 0.5


LEGAL = {f.__name__: f for f in (recurrence, carried, inside, branches, two_arrays)}


def jacobi(x: Any, y: Any) -> None:
    for _ in range(x.shape[1]):
        y[1:-1] = 0.5 * (x[:-2] + x[2:])
        x[1:-1] = 0.5 * (y[:-2] + y[2:])


def gauss_seidel(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1] - 1):
        x[1:-1, k] = x[:-2, k] + x[2:, k] + x[1:-1, k - 1]


def floyd_warshall(x: Any, y: Any) -> None:
    for k in range(min(x.shape)):
        x[:] = np.minimum(x, x[:, k, None] + x[k, None, :])


def neighbours(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1]):
        y[1:, k] = y[:-1, k - 1] + x[1:, k]


def summed(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1]):
        y[:, k] = y[:, k - 1] - np.sum(y[:, k - 1])


def counted(x: Any, y: Any) -> float:
    total = 0.0
    for k in range(1, x.shape[1]):
        y[:, k] = y[:, k - 1] + total
        total = total * 0.5 + 1.0
    return total


def until(x: Any, y: Any) -> None:
    for k in range(1, x.shape[1]):
        y[:, k] = y[:, k - 1] + x[:, k]
        if y[0, k] > 3.0:
            break


ILLEGAL = {
    f.__name__: f
    for f in (jacobi, gauss_seidel, floyd_warshall, neighbours, summed, counted, until)
}


def settled_graph(f: Callable[..., Any], *args: Any) -> Graph:
    found: list[Graph] = []

    def backend(graph: Graph, types: Any) -> Any:
        found.append(settle(graph))
        return lambda inputs: graph.run(*inputs)

    npjit.jit(f, backend=backend)(*args)
    return found[0]


def arguments() -> list[Any]:
    return [np.random.default_rng(2).random((7, 17)) for _ in range(2)]


def loops_of(graph: Graph) -> str:
    """The lines of a graph's text that name loops, without the numbers of nodes."""
    found = (line for line in str(graph).splitlines() if "= loop" in line)
    return "\n".join(line[line.index("index") :] for line in found)


@pytest.mark.parametrize("name", LEGAL)
def test_columns_are_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(through, "LINES", 6)
    graph = settled_graph(LEGAL[name], *arguments())
    cut = cut_in_strips(graph)
    cut.verify()
    assert len(loops_of(cut).splitlines()) == 2
    want, got = arguments(), arguments()
    LEGAL[name](*want)
    cut.run(*got)
    for a, b in zip(got, want, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", ILLEGAL)
def test_refusals(name: str) -> None:
    graph = settled_graph(ILLEGAL[name], *arguments())
    assert "loop" in str(graph)
    assert str(cut_in_strips(graph)) == str(graph)


def test_contiguous_rows_stay() -> None:
    def rows(x: Any, y: Any) -> None:
        for k in range(1, x.shape[0]):
            y[k] = 0.5 * y[k - 1] + x[k]

    graph = settled_graph(rows, *arguments())
    assert str(cut_in_strips(graph)) == str(graph)


def test_golden(golden: Callable[[str, str], None]) -> None:
    arguments = [np.random.default_rng(2).random((40, 17)) for _ in range(2)]
    golden("graph_strips.txt", str(cut_in_strips(settled_graph(carried, *arguments))) + "\n")


def check_program(name: str, change: Callable[[Graph], Graph]) -> None:
    """A program of the control tests, its settled graph changed and run by NumPy."""
    f, make = PROGRAMS[name]

    def backend(graph: Graph, types: Any) -> Any:
        made = change(settle(graph))
        made.verify()
        return lambda inputs: [
            np.asarray(v)[()] if not n.shape else v
            for v, n in zip(made.run(*inputs), graph.outputs, strict=True)
        ]

    want_args, got_args = (make(np.random.default_rng(3)) for _ in range(2))
    want, got = f(*want_args), npjit.jit(f, backend=backend)(*got_args)
    pairs = zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]
    for w, g in [*pairs, *zip(want_args, got_args, strict=True)]:
        np.testing.assert_allclose(g, w, rtol=1e-12) if w is not None else None


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_mean_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In strips where they can be."""
    monkeypatch.setattr(through, "LINES", 4)
    check_program(name, cut_in_strips)


@pytest.mark.parametrize("name", LEGAL)
def test_compiled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(through, "LINES", 6)
    monkeypatch.setattr("npjit.api.plans.recall", lambda key: None)
    monkeypatch.setattr("npjit.api.plans.remember", lambda *given: None)
    compiled = npjit.jit(LEGAL[name])
    for rows in (7, 1, 3, 20):
        want, got = (
            [np.random.default_rng(rows).random((rows, 9)) for _ in range(2)] for _ in range(2)
        )
        LEGAL[name](*want)
        compiled(*got)
        for a, b in zip(got, want, strict=True):
            assert a.tobytes() == b.tobytes()
    assert compiled.cache_info()["numpy"] == 0
