"""Arrays whose extents only the running code knows: x[mask], nonzero, unique, and what follows."""

from __future__ import annotations

import numpy as np
import pytest

import npjit
from npjit.core.graph import Graph
from npjit.core.op import Kind
from npjit.ops.cell import Cell, room_for
from npjit.ops.places import PLACES, places
from npjit.schedule.blank import leave_blank
from npjit.transform.device import for_device
from tests.calls import assert_same
from tests.tracing import Trace


def orbits(c):
    z = np.zeros_like(c)
    counts = np.zeros(len(c), int)
    places = np.arange(len(c))
    for i in range(3):
        z = z * z + c
        out = abs(z) > 2
        counts[places[out]] = i + 1
        z, c, places = z[~out], c[~out], places[~out]
    return counts


def masked_axes(a):
    a = a.copy()
    rows, columns = a[:, 0] > 0, a[0] > 0
    a[:, columns] = 9.0
    a[rows, 2:4] *= 2
    a[np.where(rows)[0], 1] = 3.0
    return a, a[:, columns].sum(), a[rows][:, 1]


def over_elements(a):
    total = 0.0
    for v in a[a > 0]:
        total += v * 2
    return total


CASES = {
    "sorted": lambda a: np.sort(a[a > 0])[:3],
    "length": lambda a: len(a[a > 0]),
    "cumulated": lambda a: a[a > 0].cumsum() / len(a[a > 0]),
    "first": lambda a: a.ravel()[np.where(a.ravel() > 0)[0][0]],
    "other mask": lambda a: np.concatenate((a[a > 0], a[a < 0])),
    "of a selection": lambda a: a[a > -1][a[a > -1] < 1],
    "slices": lambda a: a[a > 0][1:-1:2],
    "product": lambda a: a[a > 0] @ a[a > 0],
    "argwhere": lambda a: np.argwhere(a > 0),
    "unique": lambda a: np.unique(np.round(a), return_counts=True, return_index=True),
    "inverse": lambda a: np.unique(np.round(a), return_inverse=True),
    "written": lambda a: _written(a),
    "mask axes": masked_axes,
    "looped over": over_elements,
    "orbits": lambda a: orbits(a.ravel() + 0j),
    "histogram": lambda a: np.histogram(a, 5 * len(a)),
}


def _written(a):
    found = a[a > 0]
    found[0] = 7.0
    found[1:] += found[:-1]
    return found, a


@pytest.mark.parametrize("backend", ["numpy", "cpp"])
@pytest.mark.parametrize("name", CASES)
def test_found(name: str, backend: str) -> None:
    f = CASES[name]
    jitted = npjit.jit(f, backend=backend)
    for seed in (1, 2):
        a = np.random.default_rng(seed).standard_normal((20, 5))
        assert_same(jitted(a), f(a))
    assert jitted.cache_info()["whole"] == 2, jitted.cache_info()


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_nothing_found_and_errors() -> None:
    first = npjit.jit(lambda x: x[x > 0][0])
    with pytest.raises(IndexError, match="out of bounds"):
        first(np.full(30, -1.0))
    added = npjit.jit(lambda x: x[x > 0] + x[x < 0])
    x = np.array([1.0, -2.0, 3.0, -4.0] * 9)
    assert_same(added(x), x[x > 0] + x[x < 0])
    with pytest.raises(ValueError, match="broadcast"):
        added(np.abs(x) - 1.5)
    assert_same(npjit.jit(CASES["sorted"])(np.full((20, 5), -1.0)), np.zeros(0))


def test_one_mask_is_looked_through_once() -> None:
    def both(x, y):
        chosen = x > 0.5
        for _ in range(30):
            x = x * 0.99
        return np.sort(x[chosen]), np.sort(y[chosen]), np.nonzero(chosen)[0] * 2

    x, y = np.random.default_rng(3).random((2, 40))
    compiled = npjit.jit(both, backend="numpy")
    assert_same(compiled(x, y), both(x, y))
    assert compiled.lower(x, y).as_text().count("= places ") == 1


def test_places_in_masks_of_all_lengths() -> None:
    def found(x):
        return np.cumsum(np.flatnonzero(x > 0)), np.cumsum(x[::3][x[::3] > 0])

    compiled = npjit.jit(found)
    random = np.random.default_rng(4)
    for n in (*range(2, 35), 500):
        for share in (0.0, 0.03, 0.5, 1.0):
            x = np.where(random.random(n) < share, 1.0, -1.0) * np.arange(1, n + 1)
            assert_same(compiled(x), found(x))
    assert compiled.cache_info()["numpy"] == 0


@pytest.mark.parametrize("shape", [(0,), (1,), (30,), (4, 7)], ids=str)
def test_places_on_devices(shape: tuple[int, ...]) -> None:
    mask = np.random.default_rng(5).random(shape) < 0.4
    trace = Trace()
    at = places(trace, trace.input(mask).node)
    graph = Graph.of(trace, trace.inputs, [at], (), trace.sources)
    by_scatter = for_device(graph)
    assert PLACES not in [n.op for n in by_scatter.nodes]
    for g in (graph, by_scatter):
        (found,) = g.run(mask)
        assert_same(found, np.flatnonzero(mask))


def test_room_is_not_filled() -> None:
    trace = Trace()
    x = trace.input(np.ones(3))
    room = room_for(trace, (5,), x.dtype)
    filled = Cell(trace, room.origin.args[0])
    ends = []
    for cell in (room, filled):
        whole = type(x)(cell, None, x.weight)
        whole[:3] = x
        ends.append(whole[:3].node)
    graph = leave_blank(Graph.of(trace, trace.inputs, ends))
    cells = [n for n in graph.nodes if n.op.kind is Kind.CELL]
    assert [len(n.args) for n in cells] == [0, 1]
