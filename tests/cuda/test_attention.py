"""softmax(q @ k.T) @ v as people write it becomes one kernel, and so do its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.codegen.cuda_attention import attention_for
from npjit.codegen.cuda_calls import Operand
from npjit.core.weighing import Weighing
from npjit.schedule import schedule
from npjit.schedule.plan import Call, Plan
from npjit.transform.device import for_device
from npjit.transform.simplify import simplify
from tests.cuda import emulate

ml_dtypes = pytest.importorskip("ml_dtypes")
BRAIN = np.dtype(ml_dtypes.bfloat16)
HALF = np.dtype(np.float16)


def planned(function: Callable[..., Any], *args: Any) -> tuple[Plan, list[Any]]:
    """The plan for a GPU, and its inputs."""
    captured = npjit.jit(function).capture(args, {})
    graph = for_device(simplify(captured.graph))
    graph.verify()
    plan = schedule(graph, [i.layout for i in captured.inputs], False)
    return plan, [i.value for i in captured.inputs]


def weighings(plan: Plan) -> list[Weighing]:
    return [s.params for s in plan.steps if isinstance(s, Call) and isinstance(s.params, Weighing)]


def check(function: Callable[..., Any], *args: Any, near: float, shift: int = 0) -> Weighing:
    """The function is one kernel, whose result is near that of float64."""
    plan, inputs = planned(function, *args)
    (found,) = weighings(plan)
    (got,) = emulate.run(plan, *inputs, shift=shift)
    want = function(*args)
    assert got.dtype == want.dtype and got.shape == want.shape
    exact = function(*(a.astype("f8") if a.dtype.itemsize == 2 else a for a in args))
    np.testing.assert_allclose(got.astype("f8"), exact.astype("f8"), atol=near, rtol=near)
    return found


def normal(*shape: int, dtype: Any = BRAIN, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def operands(rows: int, keys: int, depth: int, width: int, dtype: Any = BRAIN) -> tuple[Any, ...]:
    shapes = ((2, rows, depth), (2, keys, depth), (2, keys, width))
    return tuple(normal(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes))


def softmax(s: Any) -> Any:
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rounded(q: Any, k: Any, v: Any) -> Any:
    p = softmax(q @ k.swapaxes(-1, -2) * np.float32(0.125))
    return (p.astype(v.dtype) @ v).astype(v.dtype)


def plain(q: Any, k: Any, v: Any) -> Any:
    return softmax(np.matmul(q, k.swapaxes(-1, -2)) * np.float32(-0.3)) @ v


@pytest.mark.parametrize(
    ("rows", "keys", "depth", "width", "shift"),
    [(1, 1, 32, 32, 0), (70, 65, 64, 64, 0), (17, 130, 44, 36, 0), (5, 40, 33, 70, 2)],
)
def test_sizes(rows: int, keys: int, depth: int, width: int, shift: int) -> None:
    found = check(rounded, *operands(rows, keys, depth, width), near=1e-2, shift=shift)
    assert found == Weighing(0.125, rounded=True)


@pytest.mark.parametrize(("depth", "dtype"), [(64, BRAIN), (100, HALF), (200, BRAIN)])
def test_weights_are_as_exact_as_the_program_has_them(depth: int, dtype: Any) -> None:
    def widened(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.astype("f4") for x in (q, k, v))
        return plain(q, k, v)

    found = check(widened, *operands(20, 70, depth, depth, dtype), near=2e-5)
    assert found == Weighing(float(np.float32(-0.3)))


def test_float16(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(q: Any, k: Any, v: Any) -> Any:
        return softmax(q @ k.swapaxes(-1, -2) / 8) @ v

    assert check(short, *operands(33, 70, 64, 64, HALF), near=2e-3).rounded


def causal(q: Any, k: Any, v: Any) -> Any:
    s = q.astype("f4") @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    n = s.shape[-1]
    s = np.where(np.arange(n)[None, :] <= np.arange(n)[:, None], s, -np.inf)
    return softmax(s).astype(v.dtype) @ v


def test_causal() -> None:
    assert check(causal, *operands(70, 70, 64, 64), near=1e-2).mask == "where"


@pytest.mark.parametrize("scale", [0.0, -0.5])
def test_hidden_scores_stay_hidden(scale: float) -> None:
    def hidden(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.swapaxes(-1, -2) * np.float32(scale)
        s = np.where(np.arange(s.shape[-1]) < 67, s, -np.inf)
        return softmax(s).astype(v.dtype) @ v

    check(hidden, *operands(20, 80, 64, 64), near=1e-2)


def test_ragged_lengths() -> None:
    def ragged(q: Any, k: Any, v: Any, lengths: Any) -> Any:
        s = np.einsum("bid,bjd->bij", q.astype("f4"), k.astype("f4"))
        gone = np.arange(k.shape[1])[None, None, :] >= lengths[:, None, None]
        s = np.where(gone, np.float32(-1e9), s)
        return np.einsum("bij,bjd->bid", softmax(s), v.astype("f4"))

    found = check(ragged, *operands(20, 90, 32, 32), np.array([3, 80]), near=2e-5)
    assert (found.mask, found.fill) == ("where", -1e9)


def test_two_masks_and_heads_of_one_key() -> None:
    def program(q: Any, k: Any, v: Any, keep: Any) -> Any:
        s = np.einsum("bihd,bjd->bhij", q.astype("f4"), k.astype("f4")) * np.float32(0.5)
        n = np.arange(s.shape[-1])
        s = np.where(n[None, :] < 12, s, -np.inf)
        s = np.where(keep[:, None, None, :], s, -np.inf)
        return np.einsum("bhij,bjd->bihd", softmax(s), v.astype("f4"))

    q, k, v = normal(2, 21, 3, 32), normal(2, 20, 32, seed=1), normal(2, 20, 32, seed=2)
    keep = np.random.default_rng(0).random((2, 20)) < 0.7
    check(program, q, k, v, keep, near=2e-5)


def test_numbers_added_to_scores() -> None:
    def biased(q: Any, k: Any, v: Any, bias: Any) -> Any:
        s = q.astype("f4") @ k.swapaxes(-1, -2) + bias
        return softmax(s).astype(v.dtype) @ v

    bias = normal(20, 70, dtype="f4")
    assert check(biased, *operands(20, 70, 64, 64), bias, near=1e-2).mask == "add"


def test_rows_without_any_key_are_nan() -> None:
    def masked(q: Any, k: Any, v: Any, keep: Any) -> Any:
        s = np.where(keep, q.astype("f4") @ k.swapaxes(-1, -2), -np.inf)
        return softmax(s).astype(v.dtype) @ v

    keep = np.ones((20, 70), bool)
    keep[3] = False
    keep[4, :66] = False
    plan, inputs = planned(masked, *operands(20, 70, 64, 64), keep)
    (got,) = emulate.run(plan, *inputs)
    assert np.isnan(got[:, 3]).all() and not np.isnan(np.delete(got, 3, axis=1)).any()


def test_what_is_no_attention() -> None:
    def without_maximum(q: Any, k: Any, v: Any) -> Any:
        e = np.exp(q.astype("f4") @ k.swapaxes(-1, -2))
        return e / e.sum(axis=-1, keepdims=True) @ v.astype("f4")

    def other_axis(q: Any, k: Any, v: Any) -> Any:
        s = q.astype("f4") @ k.swapaxes(-1, -2)
        e = np.exp(s - s.max(axis=-2, keepdims=True))
        return (e / e.sum(axis=-2, keepdims=True)) @ v

    def used_twice(q: Any, k: Any, v: Any) -> Any:
        p = softmax(q.astype("f4") @ k.swapaxes(-1, -2))
        return p @ v, p

    for function in (without_maximum, other_axis, used_twice):
        assert not weighings(planned(function, *operands(20, 20, 32, 32))[0])
    wide = tuple(x.astype("f4") for x in operands(20, 20, 32, 32))
    assert not weighings(planned(plain, *wide)[0])


def test_narrow_products_stay_narrow() -> None:
    x, w = normal(33, 40), normal(40, 17, seed=1)
    plan, inputs = planned(lambda x, w: np.tanh(x @ w), x, w)
    assert "bf16" not in str(plan.kernels)  # nothing but cuBLAS reads the narrow numbers
    (got,) = emulate.run(plan, *inputs)
    np.testing.assert_allclose(got, np.tanh(x.astype("f4") @ w.astype("f4")), rtol=1e-5, atol=1e-6)


def gradients(function: Callable[..., Any], *args: Any) -> tuple[list[Any], list[Any], Plan]:
    """The gradients for q, k and v of a sum of the results times numbers: ours, and those of the
    same program in float64."""

    def loss(q: Any, k: Any, v: Any, *others: Any) -> Any:
        *rest, by = others
        return (function(q, k, v, *rest) * by).sum()

    both = npjit.grad(loss, argnums=(0, 1, 2))
    by = normal(*function(*args).shape, dtype="f4", seed=9)
    plan, inputs = planned(both, *args, by)
    got = emulate.run(plan, *inputs)
    wide = [a.astype("f8") if a.dtype.itemsize == 2 else a for a in args]
    return got, both(*wide, by), plan


@pytest.mark.parametrize(
    ("function", "sizes", "dtype"),
    [(rounded, (70, 65, 64, 32), BRAIN), (causal, (70, 70, 33, 33), HALF)],
)
def test_gradients(function: Callable[..., Any], sizes: Any, dtype: Any) -> None:
    def rounds(q: Any, k: Any, v: Any) -> Any:
        return function(q, k, v).astype(v.dtype)

    got, want, plan = gradients(rounds, *operands(*sizes, dtype))
    (found,) = weighings(plan)
    assert found.backward
    for g, w in zip(got, want, strict=True):
        assert g.dtype == dtype
        np.testing.assert_allclose(g.astype("f8"), w, atol=2e-2, rtol=2e-2)


def test_a_value_with_its_gradients_is_two_rows() -> None:
    def loss(q: Any, k: Any, v: Any, by: Any) -> Any:
        return (rounded(q, k, v) * by).sum()

    args = *operands(20, 20, 32, 32), normal(2, 20, 32, dtype="f4")
    plan, _ = planned(npjit.value_and_grad(loss, argnums=(0, 1, 2)), *args)
    assert [w.backward for w in weighings(plan)] == [False, True]


@pytest.mark.parametrize(("depth", "shared"), [(64, 32768), (128, 65536), (256, 65536)])
def test_longer_rows_have_more_shared_memory(depth: int, shared: int) -> None:
    operand = Operand(BRAIN, (2, 100, depth), (100 * depth, depth, 1), 16)
    routine = attention_for(Weighing(0.125, rounded=True), [operand] * 4, [0])
    assert routine is not None and [p.start.shared for p in routine.parts] == [shared]


def test_gradients_of_masked_heads() -> None:
    def program(q: Any, k: Any, v: Any, lengths: Any) -> Any:
        s = np.einsum("bihd,bjhd->bhij", q.astype("f4"), k.astype("f4")) / math.sqrt(q.shape[-1])
        keep = np.arange(k.shape[1])[None, None, None, :] < lengths[:, None, None, None]
        s = np.where(keep, s, np.float32(-1e9))
        weights = softmax(s).astype(v.dtype).astype("f4")
        return np.einsum("bhij,bjhd->bihd", weights, v.astype("f4")).astype(v.dtype)

    shapes = ((2, 21, 3, 32), (2, 20, 3, 32), (2, 20, 3, 32))
    args = [normal(*s, seed=i) for i, s in enumerate(shapes)]
    got, want, plan = gradients(program, *args, np.array([0, 13]))
    assert [w.backward for w in weighings(plan)] == [True]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.astype("f8"), w, atol=2e-2, rtol=2e-2)
