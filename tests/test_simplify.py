"""`simplify` keeps values bit for bit, and does the rewrites that it is there for."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npjit.core.assume import Assumptions, Guard
from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, TensorType, Weight
from npjit.core.op import Bind, Kind
from npjit.core.size import Expr, Var, var
from npjit.core.view import At, Cut, View, index
from npjit.ops import build, kinds
from npjit.ops.control import BIND, LOOP, results
from npjit.ops.tracer import fresh
from npjit.transform.locate import APART, locate
from npjit.transform.simplify import simplify
from npjit.transform.storage import remove_storage
from tests.gradients import Trace
from tests.random_programs import programs, run_program

X = np.random.default_rng(2).uniform(0.5, 1.5, (3, 4))


def simplified(f: Callable[..., Any], *arguments: Any, symbolic: bool = True) -> Graph:
    """The simplified graph, after its results were compared with the plain one's."""
    trace = Trace.of(lambda block, *a: f(*a), *arguments, symbolic=symbolic)
    graph = simplify(trace.graph)
    graph.verify()
    assert_same_bits(trace, graph)
    return graph


def assert_same_bits(trace: Trace, graph: Graph) -> None:
    before = [np.array(v) for v in trace.values]
    after = [np.array(v) for v in trace.values]
    pairs = zip(trace.graph.run(*before), graph.run(*after), strict=True)
    for old, new in [*pairs, *zip(before, after, strict=True)]:
        assert (old.dtype, old.shape) == (new.dtype, new.shape)
        assert np.asarray(old).tobytes() == np.asarray(new).tobytes()
    assert [n.type for n in trace.graph.outputs] == [n.type for n in graph.outputs]


def kinds_of(graph: Graph) -> list[str]:
    return [n.op.kind.value for n in graph.nodes if n.op.kind is not Kind.INPUT]


# ---------------------------------------------------------------- values


@given(programs(), st.booleans())
@settings(max_examples=150)
def test_random_programs_keep_their_bits(program: Any, symbolic: bool) -> None:
    steps, arrays = program

    def call(block: Any, *inputs: Any) -> list[Any]:
        return run_program(steps, list(inputs))

    trace = Trace.of(call, *arrays, symbolic=symbolic)
    graph = simplify(trace.graph)
    graph.verify()
    assert_same_bits(trace, graph)
    for got, wanted in zip(trace.run(graph), run_program(steps, arrays), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_repeated_simplification_changes_nothing() -> None:
    def f(x: Any) -> Any:
        y = np.sin(x).T[1:] * 1.0
        y[0] = 2.0
        return y + y[0]

    graph = simplified(f, X)
    assert str(simplify(graph)) == str(graph)


# ---------------------------------------------------------------- rules


NOTHING = {
    "times one": lambda x: 1.0 * (x * 1.0),
    "by one": lambda x: x / 1.0,
    "minus zero": lambda x: x - 0.0,
    "plus negative zero": lambda x: x + -0.0,
    "negated twice": lambda x: np.negative(np.negative(x)),
    "transposed twice": lambda x: x.T.T,
    "reshaped twice": lambda x: x.reshape(2, 6).reshape(3, 4),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_changes_nothing_goes(name: str) -> None:
    graph = simplified(lambda x: np.sin(NOTHING[name](x)), X, symbolic="reshaped" not in name)
    assert kinds_of(graph) == ["elementwise"]


def test_lossless_conversions_merge() -> None:
    f32 = X.astype(np.float32)
    there_and_back = simplified(lambda x: np.sin(x.astype(np.float64).astype(np.float32)), f32)
    assert kinds_of(there_and_back) == ["elementwise"]
    lossy = simplified(lambda x: np.sin(x.astype(np.float32).astype(np.float64)), X)
    assert len(kinds_of(lossy)) == 3
    # int64 to float64 counts as safe for NumPy, and is not exact
    big = np.array([2**62 + 1, 2**53 + 1])
    assert len(kinds_of(simplified(lambda x: x.astype(np.float64).astype(np.int64) + 1, big))) > 3


def test_adding_positive_zero_stays() -> None:
    """-0.0 + 0.0 is 0.0."""
    graph = simplified(lambda x: x + 0.0, np.array([-0.0, 1.0]))
    assert "elementwise" in kinds_of(graph)


def test_complex_times_one_stays() -> None:
    """(inf + 0i) * (1 + 0i) has a NaN."""
    z = np.array([complex(np.inf, 0), 1j])
    with np.errstate(invalid="ignore"):
        graph = simplified(lambda z: z * 1.0, z)
    assert "elementwise" in kinds_of(graph)


def test_constants_fold() -> None:
    def f(x: Any) -> Any:
        scale = np.sqrt(np.ones_like(x) * 4.0)[0]
        return x * scale

    graph = simplified(f, X)
    assert sorted(kinds_of(graph)) == ["const", "elementwise", "view"]


def test_views_and_reshapes_merge() -> None:
    graph = simplified(lambda x: np.sin(x.T[1:][:, ::-1][None]), X)
    assert sorted(kinds_of(graph)) == ["elementwise", "view"]
    graph = simplified(lambda x: x.reshape(4, 3).reshape(2, 6), X, symbolic=False)
    assert kinds_of(graph) == ["reshape"]


def test_view_into_padding() -> None:
    inside = simplified(lambda x: np.pad(x, 2)[2:4, 3:5] * 2, X, symbolic=False)
    assert "pad" not in kinds_of(inside)
    beside = simplified(lambda x: x + np.pad(x, 2)[0, 0], X, symbolic=False)
    assert "pad" not in kinds_of(beside)
    across = simplified(lambda x: np.pad(x, 2)[1:3] * 2, X, symbolic=False)
    assert "pad" in kinds_of(across)


def test_sums_of_sums_merge_unless_shared() -> None:
    def total(x: Any) -> Any:
        return np.sum(np.sum(x, axis=1), axis=0)

    trace = Trace.of(lambda block, x: total(x), X)
    graph = simplify(trace.graph)
    assert kinds_of(graph) == ["reduce"]
    np.testing.assert_allclose(trace.run(graph), np.sum(X), rtol=1e-15)
    both = simplify(Trace.of(lambda b, x: [np.sum(x, 1), np.sum(np.sum(x, 1))], X).graph)
    assert kinds_of(both) == ["reduce", "reduce"]


def test_positions_do_not_merge() -> None:
    graph = simplified(lambda x: np.argmax(np.argmax(x, axis=0)), X)
    assert kinds_of(graph).count("reduce") == 2


def test_sizes_that_guards_equate_are_spelled_alike() -> None:
    graph = simplified(lambda x, y: x + np.sin(y), X, X * 2)
    assert "view" not in kinds_of(graph)
    assert len({n.shape for n in graph.nodes}) == 1


# ---------------------------------------------------------------- storage


def test_reads_of_stored_parts_are_the_stored_values() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        y[:2] = np.sin(x[:2])
        y[2:] = np.cos(x[2:])
        return y[:2] + 1, y[2:, 1:] * 2

    assert "update" not in kinds_of(simplified(f, X, symbolic=False))


def test_storage_that_is_overwritten_whole_goes() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        y[::-1] = np.sin(x)
        return y + 1

    assert sorted(kinds_of(simplified(f, X))) == [
        "const",
        "elementwise",
        "elementwise",
        "view",
        "view",
    ]


def test_reads_across_parts_keep_the_storage() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        y[:2] = np.sin(x[:2])
        return y[1:] + 1

    trace = Trace.of(lambda block, x: f(x), X)
    assert "update" in kinds_of(remove_storage(trace.graph))
    # but as a sum of padded parts it needs no storage
    graph = simplified(f, X, symbolic=False)
    assert "update" not in kinds_of(graph) and "pad" in kinds_of(graph)


@pytest.mark.parametrize("symbolic", [False, True])
def test_short_chains_of_updates_become_selections(symbolic: bool) -> None:
    def f(x: Any) -> Any:
        y = np.sin(x)
        y[0] = 0.5
        y[1:, 1] *= x[0, 0]
        y[:, ::-1] += x
        return y + 1

    graph = simplified(f, X, symbolic=symbolic)
    assert not {"cell", "update"} & set(kinds_of(graph))


def test_results_long_chains_and_steps_keep_their_storage() -> None:
    def result(x: Any) -> Any:
        y = np.sin(x)
        y[0] = 0.5
        return y

    def chain(x: Any) -> Any:
        y = np.sin(x)
        for i in range(10):
            y[i] = y[i + 1] * 2
        return y + 1

    def steps(x: Any) -> Any:
        y = np.sin(x)
        y[::2] = 0.5
        return y + 1

    for f in (result, chain, steps):
        assert "update" in kinds_of(simplified(f, np.arange(20.0)))


def test_interleaved_updates_are_told_apart() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        y[::2] = 0.5
        return y[1::2] + 1

    assert "update" not in kinds_of(simplified(f, np.arange(20.0)))


def test_updates_of_arguments_stay() -> None:
    def f(x: Any) -> Any:
        x[0] = 1.0
        return x[0] + x[1]

    graph = simplified(f, X)
    assert [position for position, _ in graph.writes] == [0]
    assert "update" in kinds_of(graph)


def test_loops_are_simplified_inside_and_keep_the_storage_they_write() -> None:
    """y[0] *= 1.0 * 2.0, three times, by a LOOP whose body writes its second input."""
    f64 = TensorType((), np.dtype(np.float64), Weight.SCALAR)

    def body(array: TensorType) -> Graph:
        block = Block()
        s = block.add(kinds.INPUT, (), 0, f64)
        y = block.add(kinds.INPUT, (), 1, array)
        one, two = (build.constant(block, v, np.dtype(np.float64)) for v in (1.0, 2.0))
        factor = build.ufunc(block, kinds.UFUNCS[np.multiply], np.multiply, [one, two])
        head = index(array.shape, [At(0)])
        new = build.ufunc(
            block, kinds.UFUNCS[np.multiply], np.multiply, [build.view(block, y, head), factor]
        )
        last = block.add(kinds.UPDATE, (y, new), head, array)
        total = build.ufunc(block, kinds.UFUNCS[np.add], np.add, [s, new])
        return Graph.of(block, [s, y], [total], [(1, last)])

    def call(block: Any, x: Any) -> Any:
        array = TensorType(x.node.shape, x.dtype)
        cell = block.add(kinds.CELL, (x.node,), len(block.nodes), array)
        zero = build.constant(block, 0.0, x.dtype)
        loop = Loop(body(array), 1, Var("i", lo=0), 3)
        node = block.add(LOOP, (zero, cell), loop, f64)
        total, after = results(block, node, [f64, array])
        return fresh(block, total), fresh(block, after) + 1

    trace = Trace.of(call, np.arange(1.0, 5.0))
    graph = simplify(trace.graph)
    assert_same_bits(trace, graph)
    np.testing.assert_array_equal(trace.run(graph)[1], [9, 3, 4, 5])
    assert "cell" in kinds_of(graph)
    (loop,) = (n for n in graph.nodes if n.op.kind is Kind.LOOP)
    assert sum(n.op.kind is Kind.ELEMENTWISE for n in loop.params.body.nodes) == 2


def test_indices_known_only_at_run_time_stay() -> None:
    def call(block: Any, x: Any) -> Any:
        two = build.constant(block, 2, build.INT64)
        place = Var("p", lo=0)
        block.add(BIND, (two,), Bind(place, 0, 4), two.type)
        here = index(x.node.shape, [At(Expr((((place,), 1),)))])
        scalar = TensorType((), x.dtype, Weight.SCALAR)
        cell = block.add(kinds.CELL, (x.node,), len(block.nodes), x.node.type)
        value = build.constant(block, 9.0, x.dtype)
        last = block.add(kinds.UPDATE, (cell, value), here, x.node.type)
        read = block.add(kinds.VIEW, (last,), here, scalar)
        before = block.add(kinds.VIEW, (cell,), here, scalar)
        return [fresh(block, n) for n in (read, before, last)]

    trace = Trace.of(call, np.arange(5.0))
    graph = simplify(trace.graph)
    assert_same_bits(trace, graph)
    assert trace.run(graph)[:2] == [9.0, 2.0]


def test_locate() -> None:
    n = var("n", lo=4)
    known = Assumptions.given([Guard("<=", 4, n)])

    def cut(*entries: Any) -> View:
        return index((n,), entries)

    stored = cut(Cut(1, 1, n - 2))
    assert locate(cut(Cut(2, 1, n - 3)), stored, known) == index((n - 2,), [Cut(1, 1, n - 3)])
    assert locate(cut(Cut(n - 2, -1, n - 2)), stored, known) == index(
        (n - 2,), [Cut(n - 3, -1, n - 2)]
    )
    assert locate(cut(At(0)), stored, known) is APART
    assert locate(cut(At(n - 1)), stored, known) is APART
    assert locate(cut(At(n - 2)), stored, known) == index((n - 2,), [At(n - 3)])
    assert locate(cut(Cut(0, 1, n)), stored, known) is None
    odd, even = cut(Cut(1, 2, 2)), cut(Cut(0, 2, 2))
    assert locate(odd, even, known) is APART
    assert locate(cut(At(1)), even, known) is APART
    assert locate(cut(At(2)), even, known) == index((2,), [At(1)])


def test_an_update_that_the_next_one_replaces_goes() -> None:
    def f(x: Any) -> Any:
        for k in range(1, 3):
            x[:2] = np.sin(x[1:3]) * k
            x[:2] = np.maximum(x[:2], 0.25)
        return x + 1.0

    graph = simplified(f, X.copy(), symbolic=False)
    assert kinds_of(graph).count("update") == 2


def test_what_lies_under_a_replaced_update_stays() -> None:
    """Columns 0 and 1 in turn: only the first store to column 1 can go."""

    def f(x: Any) -> Any:
        x[:, 0] = np.sin(x[:, 2])
        x[:, 1] = np.cos(x[:, 2])
        x[:, 1] = x[:, 1] * 2.0
        x[:, 2] = x[:, 3]
        return x + 1.0

    graph = simplified(f, X.copy(), symbolic=False)
    assert kinds_of(graph).count("update") == 3
