"""Plans of loops and branches: what lives where, what is in place, what a failed check undoes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.graph import Graph
from npjit.core.size import Var, floordiv, smin, text, var
from npjit.schedule import NotScheduled, schedule
from npjit.schedule.carried import settle
from npjit.schedule.plan import Bind, Check, If, Launch, Loop, Plan, While, every_step
from npjit.schedule.reach import greatest
from npjit.schedule.through import every_node
from tests import schedule_reference as r
from tests.control_programs import PROGRAMS

rng = np.random.default_rng(5)


def graph_of(f: Callable[..., Any], *args: Any) -> Graph:
    found: list[Graph] = []

    def backend(graph: Graph, types: Any) -> Any:
        found.append(graph)
        return lambda inputs: graph.run(*inputs)

    npjit.jit(f, backend=backend)(*args)
    return found[0]


def plan_of(f: Callable[..., Any], *args: Any) -> Plan:
    graph = graph_of(f, *args)
    return schedule(graph, ["C"] * len(graph.inputs))


def count(plan: Plan, kind: Any) -> int:
    return sum(isinstance(s, kind) for s in every_step(plan.steps))


@pytest.mark.parametrize("name", PROGRAMS)
def test_settled_graphs_mean_the_same(name: str) -> None:
    """Carried values in storage, run by NumPy."""
    f, make = PROGRAMS[name]

    def backend(graph: Graph, types: Any) -> Any:
        settled = settle(graph)
        settled.verify()
        return lambda inputs: [
            np.asarray(v)[()] if not n.shape else v
            for v, n in zip(settled.run(*inputs), graph.outputs, strict=True)
        ]

    want_args = make(np.random.default_rng(3))
    got_args = make(np.random.default_rng(3))
    want, got = f(*want_args), npjit.jit(f, backend=backend)(*got_args)
    pairs = zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]
    for a, b in [*pairs, *zip(want_args, got_args, strict=True)]:
        if a is not None:
            np.testing.assert_allclose(b, a, rtol=1e-6)


def test_numbers_live_in_variables() -> None:
    plan = plan_of(PROGRAMS["scalar_recurrence"][0], rng.random(30))
    assert plan.arena == 0
    assert len(plan.locals) == 1
    (loop,) = (s for s in plan.steps if isinstance(s, Loop))
    (step,) = loop.body
    assert isinstance(step, Launch)
    assert {p.space for p in step.buffers} == {"local", "input"}


def test_writes_in_a_loop_are_in_place() -> None:
    a = rng.random((30, 30))
    plan = plan_of(PROGRAMS["jacobi"][0], a, a.copy(), 3)
    assert plan.arena == 0
    assert count(plan, Launch) == 2
    plan = plan_of(PROGRAMS["gauss_seidel"][0], a, 3)
    assert plan.arena == 0
    assert count(plan, Launch) == 1
    assert count(plan, Check) == 0


def test_an_array_carried_by_value_is_not_copied() -> None:
    def decay(x: Any, n: int) -> Any:
        for _ in range(n):
            x = x * 0.5 + 1.0
        return x

    plan = plan_of(decay, rng.random(30), 7)
    assert plan.arena == 0
    (loop,) = (s for s in plan.steps if isinstance(s, Loop))
    (step,) = loop.body
    assert isinstance(step, Launch)
    (place,) = step.buffers
    assert place.space == "output"


def test_updates_that_share_a_value_are_one_kernel() -> None:
    def paths(normals: Any, start: Any) -> Any:
        price = start * 1.0
        total = np.zeros(len(start))
        for t in range(normals.shape[0]):
            price = price * np.exp(normals[t])
            total += price
        return total

    plan = plan_of(paths, rng.random((20, 30)), rng.random(30))
    (loop,) = (s for s in plan.steps if isinstance(s, Loop))
    assert len(loop.body) == 1


def test_updates_that_read_each_other_stay_apart() -> None:
    def exchange(u: Any, v: Any, n: int) -> None:
        for _ in range(n):
            w = u[1:] + v[1:]
            u[1:] = w
            v[:-1] = w + u[:-1]

    u, v = rng.random(30), rng.random(30)
    plan = plan_of(exchange, u, v, 4)
    (loop,) = (s for s in plan.steps if isinstance(s, Loop))
    assert len(loop.body) > 1
    r.compare(graph_of(exchange, u, v, 4), [u, v, np.asarray(4)])


def test_parts_of_a_joined_array_are_stored_by_one_kernel() -> None:
    def butterfly(x: Any) -> Any:
        even, odd = x[: len(x) // 2], np.exp(x[len(x) // 2 :])
        y = np.concatenate((even + odd, even - odd))
        return y[::-1] * y

    plan = plan_of(butterfly, rng.random(30))
    assert count(plan, Launch) == 2
    assert len(plan.kernels[0].buffers) == 2
    r.compare(graph_of(butterfly, rng.random(30)), [rng.random(30)])


def test_joined_parts_that_cost_little_are_not_stored() -> None:
    def turned(x: Any) -> Any:
        return np.roll(x, 1) + np.roll(x, -1)

    plan = plan_of(turned, rng.random(30))
    assert count(plan, Launch) == 1
    assert plan.arena == 0


def test_a_padded_array_is_not_stored_for_its_border() -> None:
    def f(x: Any) -> Any:
        y = np.roll(x, -1, axis=1)
        return y * 2 + x, y[:, -1] * x[:, 1], y[:, 0] + 1

    x = rng.random((20, 30))
    assert plan_of(f, x).arena == 0
    for got, want in zip(npjit.jit(f)(x), f(x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_fluxes_that_are_needed_at_three_places_are_stored_once() -> None:
    def flow(h: Any, u: Any) -> None:
        flux = u * 0.5 * (h + np.roll(h, -1, axis=1))
        h -= flux - np.roll(flux, 1, axis=1)

    h, u = rng.random((20, 30)), rng.random((20, 30))
    plan = plan_of(flow, h, u)
    assert count(plan, Launch) == 2
    want, got = h.copy(), h.copy()
    flow(want, u)
    npjit.jit(flow)(got, u)
    np.testing.assert_allclose(got, want, rtol=1e-13)


def test_an_array_is_filled_unless_all_of_it_is_stored_to() -> None:
    def whole(x: Any) -> Any:
        y = np.zeros((2, 20))
        y[0] = np.sin(x)
        y[1] = np.cos(x)
        return y

    def partly(x: Any) -> Any:
        y = np.zeros((2, 20))
        y[0] = np.sin(x)
        y[1, 1:] = np.cos(x[1:])
        return y

    x = rng.random(20)
    for f, fills in ((whole, 0), (partly, 1)):
        kernels = plan_of(f, x).kernels
        assert sum(all(b.role == "out" for b in k.buffers) for k in kernels) == fills
        np.testing.assert_allclose(npjit.jit(f)(x), f(x), rtol=1e-15)


def test_computed_indices_are_variables_of_the_plan() -> None:
    plan = plan_of(PROGRAMS["histogram"][0], np.zeros(30), np.arange(20))
    assert count(plan, Bind) == 1
    assert count(plan, Check) > 0
    assert [s.input for s in plan.saves] == [0]


def test_what_checks_find_before_the_first_write_needs_no_copy() -> None:
    def shift(x: Any, k: int, i: Any) -> None:
        x += x[i[k]]

    plan = plan_of(shift, np.zeros(30), 1, np.arange(20))
    assert count(plan, Check) == 1
    assert plan.saves == ()


def test_a_check_of_fixed_numbers_stands_in_front_of_its_loop() -> None:
    def halve(x: Any, d: float, n: int) -> None:
        for _ in range(n):
            x /= x.sum() + 1.0 / d

    x = rng.random(30)
    plan = plan_of(halve, x, 2.0, 4)
    assert count(plan, Check) == 1
    assert plan.saves == ()
    (loop,) = (s for s in plan.steps if isinstance(s, Loop))
    assert not any(isinstance(s, Check) for s in loop.body)
    for d, n in ((2.0, 3), (0.0, 0)):
        want, got = x.copy(), x.copy()
        halve(want, d, n)
        npjit.jit(halve)(got, d, n)
        np.testing.assert_allclose(got, want)


def test_a_check_is_hoisted_from_a_loop_of_computed_length() -> None:
    def halve(x: Any, d: float, counts: Any) -> Any:
        total = 0.0
        for row in range(3):
            for k in range(counts[row]):
                total += x[k] / d
        return total

    x, counts = rng.random(30), np.array([3, 0, 20])
    compiled = npjit.jit(halve)
    np.testing.assert_allclose(compiled(x, 2.0, counts), halve(x, 2.0, counts))
    assert compiled.cache_info()["numpy"] == 0


def test_a_list_of_any_length_needs_no_plan() -> None:
    def first(x: Any, d: float, counts: Any) -> Any:
        return [1.0 / d for _ in range(counts[0])][0] + x  # noqa: RUF015

    x, counts = rng.random(30), np.array([3, 0, 20])
    compiled = npjit.jit(first)
    np.testing.assert_array_equal(compiled(x, 2.0, counts), first(x, 2.0, counts))
    with pytest.raises(ZeroDivisionError):
        compiled(x, 0.0, counts)


def test_a_check_that_a_trip_decides_stays_in_its_loop() -> None:
    def halve(x: Any, d: float, n: int) -> None:
        for _ in range(n):
            d = d - 1.0
            x += 1.0 / d

    plan = plan_of(halve, rng.random(30), 9.0, 4)
    (loop,) = (s for s in plan.steps if isinstance(s, Loop))
    assert any(isinstance(s, Check) for s in loop.body)
    with pytest.raises(ZeroDivisionError):
        npjit.jit(halve)(rng.random(30), 3.0, 4)


def test_a_number_is_spread_over_an_array_inside_the_loop() -> None:
    def drift(x: Any, c: float, n: int) -> Any:
        y = np.full(x.shape, c)
        for _ in range(n):
            x = x * y + c
        return x, y + x

    x = rng.random((30, 40))
    plan = plan_of(drift, x, 0.5, 3)
    (loop,) = (s for s in plan.steps if isinstance(s, Loop))
    (step,) = loop.body
    assert isinstance(step, Launch)
    assert sum(p.space != "local" for p in step.buffers) == 1
    for got, want in zip(npjit.jit(drift)(x, 0.5, 3), drift(x, 0.5, 3), strict=True):
        np.testing.assert_allclose(got, want)


def test_a_row_that_the_loop_writes_is_not_spread_inside() -> None:
    def pile(x: Any, n: int) -> Any:
        wide = np.broadcast_to(x, (5, len(x))) * 1.0
        for _ in range(n):
            x += wide[1] + wide[3]
        return wide

    x = rng.random(30)
    want, got = x.copy(), x.copy()
    np.testing.assert_array_equal(npjit.jit(pile)(got, 3), pile(want, 3))
    np.testing.assert_array_equal(got, want)


def test_a_branch_gives_an_array_whatever_the_order_of_the_arguments() -> None:
    def either(x: Any, k: float) -> Any:
        if k > 0.5:
            y = np.sort(x, 0) * 2
        else:
            y = np.cumsum(x, 0) + k
            k = k + 1
        return y.T + k

    x = np.asfortranarray(rng.random((4, 5)))
    for k in (0.0, 1.0):
        compiled = npjit.jit(either)
        np.testing.assert_allclose(compiled(x, k), either(x, k))
        assert compiled.cache_info()["numpy"] == 0


def test_branches_and_open_loops_are_steps() -> None:
    plan = plan_of(PROGRAMS["insertion_sort"][0], rng.random(30))
    assert count(plan, While) == 1
    plan = plan_of(PROGRAMS["branch_writes_arrays"][0], rng.random(30), 0.5)
    assert count(plan, If) == 1
    assert "if local" in str(plan)


def test_memory_serves_every_trip() -> None:
    n, i, j = var("n", lo=0), Var("i", 0), Var("j", 0)
    at = {v: var(v.name, lo=0) for v in (i, j)}
    ranges = {i: (0, n - 1), j: (0, at[i])}
    assert text(greatest(n - at[i], ranges)) == "n"
    assert text(greatest(at[i] + at[j] + 2, ranges)) == "2*n"
    assert text(greatest(at[i] * n, ranges)) == "max(0, n*n - n)"
    assert text(greatest(floordiv(at[j] + 1, 2), ranges)) == "floordiv(n, 2)"
    assert text(greatest(smin(at[i], 3), ranges)) == "max(0, min(3, n - 1))"
    assert greatest(8 * n, ranges) == 8 * n
    with pytest.raises(NotScheduled):
        greatest(floordiv(n, at[i] + 1), ranges)


def shifted(a: Any) -> None:
    for _ in range(30):
        a[:-1] = 0.5 * (a[:-1] + a[1:])


def shifted_back(a: Any) -> None:
    for _ in range(30):
        a[1:] = 0.5 * (a[:-1] + a[1:])


def shifted_both(a: Any) -> None:
    for _ in range(30):
        a[1:-1] = a[:-2] + a[2:]


def shifted_flipped(a: Any) -> None:
    for _ in range(30):
        a[:-1][::-1] = 0.5 * (a[1:][::-1] + a[:-1][::-1])


def shifted_rows(a: Any) -> None:
    for _ in range(30):
        a[:-1, :-1] = 0.5 * (a[1:, :-1] + a[:-1, 1:])


def shifted_corner(a: Any) -> None:
    for _ in range(30):
        a[:-1, 1:] = 0.5 * (a[1:, :-1] + a[:-1, 1:])


@pytest.mark.parametrize(
    ("f", "shape", "ordered"),
    [
        (shifted, (1000,), True),
        (shifted_back, (1000,), False),
        (shifted_both, (1000,), False),
        (shifted_flipped, (1000,), False),
        (shifted_rows, (25, 40), True),
        (shifted_corner, (25, 40), False),
    ],
)
def test_reads_ahead_need_no_temporary(
    f: Callable[[Any], None], shape: tuple[int, ...], ordered: bool
) -> None:
    """Elements that are overwritten later are read in place by one thread that goes up."""
    plan = plan_of(f, np.ones(shape))
    assert any(k.in_order for k in plan.kernels) == ordered
    assert (plan.arena == 0) == ordered
    graph = graph_of(f, np.ones(shape))
    for_gpu = schedule(graph, ["C"] * len(graph.inputs), few_threads=False)
    assert not any(k.in_order for k in for_gpu.kernels)
    want = np.random.default_rng(1).random(shape)
    got = want.copy()
    f(want)
    npjit.jit(f)(got)
    assert got.tobytes() == want.tobytes()


def test_outside_loops_a_temporary_is_shared_by_threads() -> None:
    def f(a: Any) -> None:
        a[:-1] = 0.5 * (a[:-1] + a[1:])

    assert not any(k.in_order for k in plan_of(f, np.ones(1000)).kernels)


def ten(x: Any) -> Any:
    s = 0.0
    for i in range(10):
        s = 0.5 * s + x[i % 7]
        x[i % 5] = s
    return s


def thousand(x: Any) -> Any:
    s = 0.0
    for i in range(1000):
        s = 0.5 * s + x[i % 7]
        x[i % 5] = s
    return s


def million(x: Any) -> Any:
    s = 0.0
    for i in range(1000000):
        s = 0.5 * s + x[i % 7]
        x[i % 5] = s
    return s


def test_what_is_compiled_does_not_grow_with_the_trips() -> None:
    """The time to compile follows the graph and the text: neither knows how often a loop runs."""
    lowered = [npjit.jit(f).lower(np.ones(8)) for f in (ten, thousand, million)]
    assert len({sum(1 for _ in every_node(low.graph)) for low in lowered}) == 1
    lines = {len(low.as_text("cpp").splitlines()) for low in lowered}
    assert max(lines) - min(lines) <= 8
