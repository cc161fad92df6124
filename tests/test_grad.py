"""Gradients of movement, storage and contraction, and what `grad` accepts and gives."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.op import Kind, Op
from npjit.core.size import Var
from npjit.ops import kinds
from npjit.ops.control import LOOP, results
from npjit.ops.errors import NotCaptured
from npjit.ops.tracer import Tracer, fresh
from npjit.transform.adjoints import NotDifferentiable
from npjit.transform.api_grad import grad_of_traced, value_and_grad_of_traced
from npjit.transform.simplify import simplify
from tests.gradients import Trace, check_gradients, gradient
from tests.random_programs import programs, run_program

NOTHING = TensorType((), np.dtype(np.bool_))
RANDOM = np.random.default_rng(5)
X = RANDOM.uniform(0.5, 1.5, (3, 4))
V = RANDOM.uniform(0.5, 1.5, 5)
Z = X + 1j * RANDOM.uniform(0.5, 1.5, (3, 4))


def weighted(y: Any) -> Any:
    """A scalar that feels each element of y differently, to second order."""
    return np.sum(np.sin(y + np.arange(1, y.size + 1).reshape(y.shape) / 7))


# ---------------------------------------------------------------- kinds


VIEWS = {
    "slice": lambda x: x[1:, :-1],
    "element": lambda x: x[2, -1],
    "row": lambda x: x[1],
    "flip": lambda x: x[::-1, 1:3],
    "step": lambda x: x[::2, 1::2],
    "backward step": lambda x: x[:, ::-3],
    "newaxis": lambda x: x[:, None, 1:],
    "transpose": lambda x: x.T[1:],
    "broadcast": lambda x: np.broadcast_to(x[:, :1], (2, 3, 4)),
    "diagonal": lambda x: np.diagonal(x[:, 1:]),
    "empty": lambda x: x[2:1],
    "chain": lambda x: x.T[::-1][1:, None].T,
}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, symbolic: bool) -> None:
    look = VIEWS[name]

    def loss(x: Any) -> Any:
        return np.sum(np.sin(look(x) * 1.3))

    check_gradients(loss, X, order=1 if symbolic else 2)
    wanted = np.zeros_like(X)
    np.testing.assert_allclose(gradient(loss, X, symbolic=symbolic).shape, wanted.shape)


MOVES = {
    "reshape": lambda x: x.reshape(2, 6)[1:],
    "ravel": lambda x: x.ravel()[::2],
    "concatenate": lambda x: np.concatenate([x * x, x[1:]]),
    "stack": lambda x: np.stack([x[0], x[1] * x[2]], axis=1),
    "pad": lambda x: np.pad(x, ((1, 0), (2, 1))),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "tile": lambda x: np.tile(x, (2, 1)),
    "gather": lambda x: x[[0, 2, 2, -1]],
    "gather beside slices": lambda x: x[1:, [3, 3, 0]],
    "gather of two axes": lambda x: x[[0, 1, 1], [3, 2, 2]],
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str) -> None:
    check_gradients(lambda x: weighted(MOVES[name](x)), X)


CONTRACTIONS = {
    "matrices": lambda a, b: a @ b.T,
    "matrix and vector": lambda a, b: a @ b[0],
    "vectors": lambda a, b: a[0] @ b[1] + a[:, 0] * 0,
    "outer": lambda a, b: np.einsum("ij,kl->ijkl", a, b),
    "batch": lambda a, b: np.einsum("ij,ij->i", a, b),
    "one operand's own label": lambda a, b: np.einsum("ij,kj->k", a, b),
}


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_contractions(name: str) -> None:
    call = CONTRACTIONS[name]
    check_gradients(lambda a, b: weighted(call(a, b)), X, X[::-1] * 0.7)


def test_complex_contraction() -> None:
    def loss(a: Any, b: Any) -> Any:
        y = a @ b.T
        return np.sum(np.abs(y) ** 2) + weighted(np.real(y)) + weighted(np.imag(y) * 0.3)

    check_gradients(loss, Z / 3, np.conj(Z) * 0.2)
    check_gradients(loss, X / 3, Z * 0.2)


def overwrite(x: Any) -> Any:
    y = x * x
    y[0] = x[1] * x[2]
    y[1:, 1] *= x[0, 0]
    y[::2] += y[1]
    return y


def swap(x: Any) -> Any:
    y = np.sin(x)
    y[:] = y[::-1] * x
    return y


def fill(x: Any) -> Any:
    y = x * 0.0
    for i in range(3):
        y[i, i + 1] = x[i, i] ** 3
    return y


@pytest.mark.parametrize("write", [overwrite, swap, fill])
def test_writes(write: Any) -> None:
    check_gradients(lambda x: weighted(write(x)), X)


def test_rows_that_are_no_ufuncs() -> None:
    check_gradients(lambda x: weighted(np.where(x > 1, x * x, np.sin(x))), X)
    check_gradients(lambda x: weighted(x.astype(np.complex128).real * x), X)
    check_gradients(lambda x: weighted(np.modf(3 * x)[0]), X)
    check_gradients(lambda x: weighted(np.frexp(3 * x)[0]), X)
    check_gradients(lambda z: weighted(np.angle(z)), Z)
    check_gradients(lambda z: weighted(z.real * z.imag), Z)


@given(programs(smooth=True))
@settings(max_examples=60)
def test_random_programs(program: Any) -> None:
    steps, arrays = program

    def loss(*inputs: Any) -> Any:
        total = np.sum(inputs[0])
        for value in run_program(steps, list(inputs))[2:]:
            total = total + np.sum(np.tanh(value))
        return total

    check_gradients(loss, *arrays, order=1)


# ---------------------------------------------------------------- element types


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_gradient_has_the_arguments_dtype(dtype: Any) -> None:
    x = np.array([1.0, 2.0], dtype)
    found = gradient(lambda x: np.sum(np.abs(x.astype(np.complex128)) ** 2), x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, 2 * x)


def test_real_argument_of_complex_work_takes_the_real_part() -> None:
    w = np.array([1 + 2j, 3 - 1j])
    found = gradient(lambda x: np.sum(np.real(x * w)), np.array([1.0, 1.0]))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, w.real)


def test_integers_on_the_way_stop_the_gradient() -> None:
    found = gradient(lambda x: np.sum(x * np.floor(x).astype(np.int64)), X * 3)
    np.testing.assert_array_equal(found, np.floor(X * 3))


def test_number_gives_numpy_scalar_and_array_gives_array() -> None:
    trace = Trace.of(
        lambda b, *a: grad_of_traced(b, lambda x, y, z: x * y * z, a, {}, (0, 1, 2)),
        2.0,
        np.float32(3),
        np.array(4.0),
    )
    weights = [n.type.weight.value for n in trace.graph.outputs]
    assert weights == ["scalar", "scalar", "array"]
    assert [n.dtype.name for n in trace.graph.outputs] == ["float64", "float32", "float64"]
    np.testing.assert_allclose([float(v) for v in trace.run()], [12, 8, 6])


# ---------------------------------------------------------------- what grad takes and gives


@dataclass
class Layer:
    weight: Any
    bias: Any = None


def test_tree_in_the_arguments_structure() -> None:
    params = {"w": [V, V * 2], "layer": Layer(V * 3), "none": None}

    def loss(p: Any) -> Any:
        return np.sum(p["w"][0] * p["w"][1]) + np.sum(p["layer"].weight ** 2)

    found = gradient(loss, params)
    assert list(found) == ["w", "layer", "none"]
    assert found["none"] is None
    assert type(found["layer"]) is Layer and found["layer"].bias is None
    np.testing.assert_allclose(found["w"][0], V * 2)
    np.testing.assert_allclose(found["w"][1], V)
    np.testing.assert_allclose(found["layer"].weight, V * 6)


def test_argnums_keywords_aux_and_value() -> None:
    def call(block: Block, x: Any, y: Any) -> Any:
        def f(x: Any, y: Any, *, scale: float) -> Any:
            return np.sum(x * y) * scale, {"twice": 2 * x}

        both = value_and_grad_of_traced(block, f, (x, y), {"scale": 3.0}, (-1, 0), True)
        last = grad_of_traced(block, f, (x, y), {"scale": 3.0}, 1, True)
        return both, last

    ((value, aux), (by_y, by_x)), (last, again) = Trace.of(call, V, V + 1).run()
    np.testing.assert_allclose(value, 3 * np.sum(V * (V + 1)))
    np.testing.assert_allclose(by_y, 3 * V)
    np.testing.assert_allclose(by_x, 3 * (V + 1))
    np.testing.assert_allclose(last, 3 * V)
    np.testing.assert_allclose(aux["twice"], again["twice"])


def test_argument_without_influence_has_zeros() -> None:
    found = gradient(lambda x, y: np.sum(np.floor(x)) + y * 0 + 1.0, V, 2.0, argnums=(0, 1))
    np.testing.assert_array_equal(found[0], np.zeros(5))
    assert found[1] == 0.0
    np.testing.assert_array_equal(gradient(lambda x: 3.0, V), np.zeros(5))


@pytest.mark.parametrize(
    ("f", "arguments", "message"),
    [
        (lambda x: x * 2, (V,), r"scalar output, got shape \(5,\)"),
        (lambda x: (np.sum(x), 1), (V,), "scalar output, got tuple"),
        (lambda x: np.sum(x > 0), (V,), "floating output, got dtype int64"),
        (lambda x: np.sum(x * 1j), (V,), "floating output, got dtype complex128"),
        (lambda p: np.sum(p["n"]), ({"n": np.arange(3)},), r"argument 0\['n'\].*got int64"),
        (lambda x: x, (), "positional"),
    ],
)
def test_refusals_name_the_problem(f: Any, arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        gradient(f, *arguments)


def test_gradient_of_a_loop() -> None:
    """Whatever the control node's own type: its result depends on the argument."""

    def call(block: Block, x: Any) -> Any:
        def f(x: Any) -> Any:
            inner = Block()
            value = inner.add(kinds.INPUT, (), 0, x.node.type)
            body = Graph.of(inner, [value], [(fresh(inner, value) * 2.0).node])
            node = block.add(LOOP, (x.node,), Loop(body, 1, Var("i", lo=0), 3), NOTHING)
            (last,) = results(block, node, [x.node.type])
            return np.sum(fresh(block, last))

        return grad_of_traced(block, f, (x,), {})

    found = Trace.of(call, V).run()
    np.testing.assert_array_equal(found, np.full_like(V, 8.0))


def test_missing_rule_names_the_op_and_the_line() -> None:
    op = Op("mystery", Kind.ELEMENTWISE, lambda node, x: x)

    def call(block: Block, x: Any) -> Any:
        def f(x: Tracer) -> Any:
            y = np.sin(x)
            return np.sum(fresh(block, block.add(op, (y.node,), None, y.node.type)))

        return grad_of_traced(block, f, (x,), {})

    with pytest.raises(NotDifferentiable, match=r"mystery has no derivative rule \(.*test_grad.py"):
        Trace.of(call, V)


# ---------------------------------------------------------------- nesting and aliases


def run_nested(call: Any, *arguments: Any) -> Any:
    trace = Trace.of(call, *arguments)
    found, simpler = trace.run(), trace.run(simplify(trace.graph))
    np.testing.assert_array_equal(found, simpler)
    return found


def test_same_array_twice_has_two_gradients() -> None:
    found = gradient(lambda x, y: np.sum(x * y * y), V, V, argnums=(0, 1))
    one_array = Trace.of(
        lambda b, x: grad_of_traced(b, lambda x, y: np.sum(x * y * y), (x, x), {}, (0, 1)), V
    ).run()
    for a, b, wanted in zip(found, one_array, (V * V, 2 * V * V), strict=True):
        np.testing.assert_allclose(a, wanted)
        np.testing.assert_allclose(b, wanted)


def test_closure_is_constant_for_the_inner_gradient_only() -> None:
    def call(block: Block, x: Any) -> Any:
        def outer(x: Any) -> Any:
            # d/dy sum(x * y^2) = 2 x y, then at y = x: 2 x^2
            inner = grad_of_traced(block, lambda y: np.sum(x * y * y), (x,), {})
            return np.sum(inner)

        return grad_of_traced(block, outer, (x,), {})

    np.testing.assert_allclose(run_nested(call, V), 4 * V)


def test_third_derivative() -> None:
    def call(block: Block, x: Any) -> Any:
        f: Any = lambda x: x**4  # noqa: E731
        for _ in range(3):
            f = lambda x, f=f: grad_of_traced(block, f, (x,), {})  # noqa: E731
        return f(x)

    np.testing.assert_allclose(run_nested(call, 1.5), 24 * 1.5)


def test_written_argument_is_differentiated_at_entry_and_reaches_the_caller() -> None:
    def call(block: Block, x: Any) -> Any:
        def f(x: Any) -> Any:
            x[1:] *= x[:-1]
            return np.sum(x * x)

        g = grad_of_traced(block, f, (x,), {})
        return g, x * 1

    def pure(x: Any) -> Any:
        return x[0] * x[0] + np.sum((x[1:] * x[:-1]) ** 2)

    found, after = Trace.of(call, V).run()
    np.testing.assert_allclose(found, gradient(pure, V))
    np.testing.assert_allclose(after, np.r_[V[0], V[1:] * V[:-1]])


def test_returned_argument_is_the_callers_array() -> None:
    def call(block: Block, x: Any) -> Any:
        g, aux = grad_of_traced(block, lambda x: (np.sum(x * x), x[1:]), (x,), {}, 0, True)
        x[:] = 0.0
        return g, aux

    found, aux = Trace.of(call, V).run()
    np.testing.assert_allclose(found, 2 * V)
    np.testing.assert_array_equal(aux, np.zeros(4))


def test_writing_an_array_known_by_two_names_is_refused() -> None:
    def write(x: Any, other: Any) -> Any:
        x[0] = 0.0
        return np.sum(x * other)

    with pytest.raises(NotCaptured, match="two names"):
        Trace.of(lambda b, x: grad_of_traced(b, write, (x, x), {}, (0, 1)), V)
    with pytest.raises(NotCaptured, match="two names"):
        Trace.of(lambda b, x: grad_of_traced(b, lambda y: write(y, x), (x,), {}), V)


def test_forward_values_are_shared() -> None:
    """exp's rule reads exp(x), and the joint graph computes that once."""

    def call(block: Block, x: Any) -> Any:
        return value_and_grad_of_traced(block, lambda x: np.sum(np.exp(x)), (x,), {})

    nodes = Trace.of(call, V).graph.nodes
    assert sum(n.op is kinds.UFUNCS[np.exp] for n in nodes) == 1


def test_adjoint_nodes_carry_the_users_line() -> None:
    def call(block: Block, x: Any) -> Any:
        return grad_of_traced(block, lambda x: np.sum(np.exp(np.sin(x))), (x,), {})

    cos = [n for n in Trace.of(call, V).graph.nodes if n.op is kinds.UFUNCS[np.cos]]
    assert len(cos) == 1 and "test_grad.py" in cos[0].where


def test_adjoint_of_a_slice_is_padding() -> None:
    """Shifted reads must not become stores: they gather into one sum of padded values."""

    def call(block: Block, x: Any) -> Any:
        return grad_of_traced(block, lambda x: np.sum((x[1:] - x[:-1]) ** 2), (x,), {})

    graph = simplify(Trace.of(call, V, symbolic=True).graph)
    stores: list[Node] = [n for n in graph.nodes if n.op.kind in (Kind.CELL, Kind.UPDATE)]
    assert not stores
    assert sum(n.op.kind is Kind.PAD for n in graph.nodes) == 2
    assert isinstance(graph.outputs[0].type, TensorType)
