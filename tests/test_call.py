"""Rows on whole arrays through the schedule and the backends: what they read in place, in which
order they run, what happens when they raise."""

from typing import Any

import numpy as np
import pytest

import npjit
import npjit.ops
from npjit.core.graph import Node, TensorType, Weight
from npjit.core.op import Gather
from npjit.core.tolerance import assert_equal_numpy
from npjit.core.view import identity
from npjit.ops.kinds import ROWS
from npjit.schedule.plan import Call, Plan
from tests import schedule_reference as r
from tests.schedule_reference import Builder
from tests.tracing import copies

RANDOM = np.random.default_rng(31)
X = RANDOM.normal(size=(4, 6))
I = np.array([0, 3, -1, 1, 1, 0])  # noqa: E741


def calls(plan: Plan) -> list[Call]:
    return [s for s in plan.steps if isinstance(s, Call)]


def sort(b: Builder, x: Node, axis: int = -1) -> Node:
    return b.block.add(ROWS["sort"], (x,), (axis, "quicksort"), x.type)


def test_views_are_read_in_place() -> None:
    b = Builder()
    n, m = b.size("n"), b.size("m")
    x = b.input((n, m))
    part = b.t(b.cut(x, (0, 1, n), (1, 2, 3)))
    plan = r.compare(b.graph([sort(b, part, 0)]), [X])
    (call,) = calls(plan)
    assert len(plan.steps) == 1
    assert call.arguments[0].place.space == "input"
    assert call.results[0][1].place.space == "output"


def test_computed_arguments_are_stored() -> None:
    b = Builder()
    x = b.input((b.size("n"), b.size("m")))
    made = sort(b, b.ew(r.exp, x))
    plan = r.compare(b.graph([b.ew(r.add, made, b.ew(r.exp, x))]), [X])
    assert r.kernels_of(plan) == 2
    assert len(calls(plan)) == 1


def test_several_results_and_unwanted_ones() -> None:
    b = Builder()
    n = b.size("n")
    a = b.input((n, n))
    call = b.block.add(ROWS["eigh"], (a,), ("L",), TensorType((), a.dtype, Weight.SCALAR))
    values = b.block.add(ROWS["result"], (call,), 0, TensorType((n,), a.dtype))
    vectors = b.block.add(ROWS["result"], (call,), 1, TensorType((n, n), a.dtype))
    square = X[:, :4] + X[:, :4].T
    both = r.compare(b.graph([vectors, b.ew(r.exp, values)]), [square])
    assert [k for k, _ in calls(both)[0].results] == [0, 1]
    one = r.compare(b.graph([b.ew(r.exp, vectors)]), [square])
    assert [k for k, _ in calls(one)[0].results] == [1]


def scatter(b: Builder, base: Node, value: Node, at: Node, row: str = "scatter_last") -> Node:
    return b.block.add(ROWS[row], (base, value, at), Gather((0,), 0), base.type)


def test_a_scatter_waits_for_readers_and_writers() -> None:
    b = Builder()
    n = b.size("n")
    x, at = b.input((n,)), b.input((n,), np.int64)
    cell = b.cell(b.ew(r.exp, x))
    before = b.ew(r.add, cell, x)
    first = scatter(b, cell, x, at)
    between = b.ew(r.multiply, first, x)
    # the value reads what is being changed
    second = scatter(b, first, b.cut(first, (n - 1, -1, n)), at, "scatter_add")
    last = b.update(second, x, identity((n,)))
    order = np.array([3, 1, 1, 0, 5, 2])
    graph = b.graph([before, between, b.ew(r.exp, second), last])
    r.compare(graph, [X[0], order])


def test_a_scatter_into_the_callers_memory() -> None:
    b = Builder()
    n = b.size("n")
    x, at = b.input((n,)), b.input((n,), np.int64)
    changed = scatter(b, x, b.ew(r.exp, x), at)
    graph = b.graph([b.ew(r.add, changed, x)], [(0, changed)])
    plan = r.compare(graph, [X[0].copy(), np.array([3, 1, 1, 0, 5, 2])])
    (call,) = calls(plan)
    assert call.arguments[0] == call.results[0][1]
    assert call.arguments[0].place.space == "input"


# ---------------------------------------------------------------- compiled


def compare(function: Any, *args: Any, backend: str | None = None) -> Any:
    """The compiled function equals NumPy, and was compiled."""
    jitted = npjit.jit(function, backend=backend)
    own, mine = copies(args), copies(args)
    with np.errstate(all="ignore"):
        want = function(*own)
    got = jitted(*mine)
    assert_equal_numpy(got, want, bound=1e-13)
    assert_equal_numpy(mine, own, bound=1e-13)
    assert jitted.cache_info()["whole"] == 1, jitted.cache_info()
    return jitted


def everything(x: Any, i: Any) -> Any:
    spectrum = np.fft.rfft(x[:, ::-1], axis=1)
    w, v = np.linalg.eigh(x[:, :4] @ x[:, :4].T)
    y = np.exp(x)
    y[:, i] += x
    np.add.at(y, (slice(None), i), 2.0)
    made = (
        np.sort(x, axis=0) * 2,
        np.argsort(x.T),
        np.abs(spectrum),
        np.cumsum(x, 1),
        np.cumsum(x[:, ::2], 0),
        np.cumprod(x[1]),
        np.median(x, axis=0),
        np.linalg.solve(v @ v.T, x) + w[:, None],
        x[i % 4, i] + y[0],
    )
    np.maximum.at(x, (0, i), 0.5)
    return made


@pytest.mark.parametrize("backend", [None, "numba", "numpy"])
def test_backends(backend: str | None) -> None:
    if backend == "numba":
        pytest.importorskip("numba")
    compare(everything, X, I, backend=backend)


SCATTERED = ["?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]


def scatters(x: Any, i: Any, v: Any) -> Any:
    x[1:, ::2][:, i % 3] = v[:3]
    np.add.at(x, i % 4, v[0])
    np.multiply.at(x.T, i, v.T[0])
    return np.cumsum(x, 0), np.maximum.accumulate(x, 1), x[i % 4][:, i]


@pytest.mark.parametrize("dtype", SCATTERED)
def test_compiled_dtypes(dtype: str) -> None:
    v = (RANDOM.normal(size=(4, 6)) * 3).astype(dtype)
    function = scatters
    if dtype == "c8":

        def function(x: Any, i: Any, v: Any) -> Any:
            return scatters(x, i, v)[::2]

    compare(function, (X * 2).astype(dtype), I, v)


def test_long_scans() -> None:
    x = RANDOM.normal(size=(3, 70_000))
    compare(lambda x: (np.cumsum(x, 1), np.cumsum(x, 0), np.cumsum(x.T, 0), np.cumsum(x)), x)


def selections(x: Any) -> Any:
    m = x > 0
    i, j = np.nonzero(m)
    y = np.exp(x)
    y[np.where(x < 0)] = 0.0
    picked = x[m]
    picked *= 2
    return picked, i, {"rows": x[m[:, 0]] + 1.0}, np.flatnonzero(x[0] > 0), y, x[i, j].sum()


@pytest.mark.parametrize("backend", [None, "numpy"])
def test_results_whose_size_depends_on_values(backend: str | None) -> None:
    jitted = compare(selections, X, backend=backend)
    for x in (-np.abs(X), np.abs(X)):
        assert_equal_numpy(jitted(x), selections(x), bound=1e-13)
    assert jitted.cache_info()["whole"] == 3


def test_a_selection_beside_a_gradient() -> None:
    def loss(x: Any) -> Any:
        return np.sum(x[x > 0] ** 2), x[x < 0]

    found, rest = npjit.grad(loss, has_aux=True)(X)
    np.testing.assert_array_equal(found, np.where(X > 0, 2 * X, 0))
    np.testing.assert_array_equal(rest, X[X < 0])


def test_an_index_out_of_range() -> None:
    def reads(x: Any, i: Any) -> Any:
        x += 1.0
        return x[i]

    jitted = compare(reads, X[0], I)
    x = X[0].copy()
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 6"):
        jitted(x, I + 6)
    # as NumPy leaves it
    np.testing.assert_array_equal(x, X[0] + 1.0)


def invert(a: Any, out: Any) -> Any:
    out[0] += 1.0
    try:
        return np.linalg.inv(a * out[0])
    except np.linalg.LinAlgError:
        out[1] = 7.0
        return np.zeros_like(a)


def test_the_functions_own_handler_runs() -> None:
    jitted = npjit.jit(invert)
    out = np.zeros(2)
    np.testing.assert_array_equal(jitted(np.eye(3), out), np.eye(3))
    np.testing.assert_array_equal(jitted(np.zeros((3, 3)), out), np.zeros((3, 3)))
    np.testing.assert_array_equal(out, [2.0, 7.0])
    assert jitted.cache_info()["whole"] == 1
    assert jitted.cache_info()["numpy"] == 1


def test_an_unused_result_may_still_raise() -> None:
    def is_definite(a: Any) -> Any:
        try:
            np.linalg.cholesky(a)
            np.linalg.eigh(a)
            return True, np.sum(a)
        except np.linalg.LinAlgError:
            return False, np.sum(a)

    jitted = npjit.jit(is_definite)
    assert jitted(np.eye(3)) == (True, 3.0)
    assert jitted(-np.eye(3)) == (False, -3.0)
    assert jitted.cache_info()["whole"] == 1


def test_numpys_own_error() -> None:
    jitted = compare(lambda a: np.linalg.cholesky(a), np.eye(3))
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        jitted(-np.eye(3))


def test_in_loops() -> None:
    def program(x: Any, i: Any, n: Any) -> Any:
        h = np.zeros(6)
        for t in range(n):
            row = np.sort(x[t])
            h[i] += row
            np.add.at(h, i, x[t])
            h[np.searchsorted(row, x[t, 0])] -= 1.0
            m = h > 0
            h[m] = np.sqrt(h[m])
        return h

    compare(program, X, I, 4)


def test_compiled_gradients() -> None:
    def loss(x: Any, i: Any) -> Any:
        spectrum = np.fft.rfft(x)
        picked = x[i % 4] * np.cumprod(x, axis=1)[:1]
        return (
            np.sum(np.abs(spectrum) ** 2)
            + np.sum(picked**2)
            + np.linalg.slogdet(x[:, :4])[1]
            + np.median(x)
        )

    def numbers(backend: str | None) -> Any:
        gradient = npjit.grad(loss, backend=backend)
        found = gradient(X, I)
        assert gradient.cache_info()["whole"] == 1
        return found

    np.testing.assert_allclose(numbers(None), numbers("numpy"), rtol=1e-12)
