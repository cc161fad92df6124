"""Which programs become how many kernels, and that their plans mean what the graphs mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npjit.core.graph import Graph, Node
from npjit.core.view import At, index, slice_of
from npjit.schedule import schedule
from npjit.schedule.plan import Plan
from tests import schedule_reference as r
from tests.schedule_reference import Builder

rng = np.random.default_rng(1)


def same(g: Graph, arrays: list[Any], kernels: int | None = None) -> Plan:
    """Schedule, run both ways, compare; the plan for further looks."""
    plan = r.compare(g, arrays)
    if kernels is not None:
        assert r.kernels_of(plan) == kernels, str(plan)
    return plan


def rows(b: Builder) -> tuple[Node, tuple[Any, Any]]:
    n, m = b.size("n"), b.size("m")
    return b.input((n, m)), (n, m)


def softmax(b: Builder, x: Node) -> tuple[Node, Node, Node]:
    top = b.bc(b.max(x, (1,), keep=True), x.shape)
    moved = b.ew(r.subtract, x, top)
    e = b.ew(r.exp, moved)
    s = b.sum(e, (1,), keep=True)
    return b.ew(r.divide, e, b.bc(s, x.shape)), moved, s


def test_a_chain_is_one_kernel_without_arena() -> None:
    b = Builder()
    x, _ = rows(b)
    y = x
    for k in range(40):
        y = b.ew(r.sin if k % 3 else r.negative, y)
    plan = same(b.graph([y]), [rng.random((3, 4))], 1)
    assert plan.arena == 0
    assert len(plan.kernels[0].axes) == 1


def test_softmax() -> None:
    b = Builder()
    x, _ = rows(b)
    plan = same(b.graph([softmax(b, x)[0]]), [rng.random((3, 4))], 1)
    assert [k.role for k in plan.kernels[0].buffers] == ["in", "out", "row"]


def test_log_softmax_cross_entropy_and_gradient() -> None:
    b = Builder()
    x, shape = rows(b)
    t = b.input(shape)
    y, moved, s = softmax(b, x)
    logp = b.ew(r.subtract, moved, b.bc(b.ew(r.log, s), shape))
    loss = b.ew(r.negative, b.sum(b.ew(r.multiply, t, logp)))
    weight = b.bc(b.sum(t, (1,), keep=True), shape)
    gradient = b.ew(r.subtract, b.ew(r.multiply, y, weight), t)
    same(b.graph([loss, gradient]), [rng.random((3, 4)), rng.random((3, 4))], 2)


def layer_norm(b: Builder) -> Graph:
    """Loss and three gradients of a weighted square of normalised rows."""
    x, shape = rows(b)
    n, m = shape
    gain, shift, w = b.input((m,)), b.input((m,)), b.input(shape)
    count = b.block.add(r.size_op, (), m, b.const(1, "i8").type)
    count = b.bc(b.ew(r.cast, count, dtype="f8"), (n, 1))

    def mean(a: Node) -> Node:
        return b.ew(r.divide, b.sum(a, (1,), keep=True), count)

    centred = b.ew(r.subtract, x, b.bc(mean(x), shape))
    variance = mean(b.ew(r.multiply, centred, centred))
    sigma = b.ew(r.sqrt, b.ew(r.add, variance, b.full(1e-5, (n, 1))))
    hat = b.ew(r.divide, centred, b.bc(sigma, shape))
    wide = b.bc(gain, shape)
    y = b.ew(r.add, b.ew(r.multiply, hat, wide), b.bc(shift, shape))
    loss = b.sum(b.ew(r.multiply, y, b.ew(r.multiply, y, w)))
    dy = b.ew(r.multiply, b.ew(r.add, y, y), w)
    dgain = b.sum(b.ew(r.multiply, dy, hat), (0,))
    dshift = b.sum(dy, (0,))
    dhat = b.ew(r.multiply, dy, wide)
    inner = b.ew(r.subtract, dhat, b.bc(mean(dhat), shape))
    outer = b.ew(r.multiply, hat, b.bc(mean(b.ew(r.multiply, dhat, hat)), shape))
    dx = b.ew(r.divide, b.ew(r.subtract, inner, outer), b.bc(sigma, shape))
    return b.graph([loss, dx, dgain, dshift])


def test_layer_norm_loss_and_three_gradients() -> None:
    arrays = [rng.random((3, 4)), rng.random(4), rng.random(4), rng.random((3, 4))]
    same(layer_norm(Builder()), arrays, 3)


def test_mean_and_variance_of_a_whole_array() -> None:
    b = Builder()
    x, shape = rows(b)
    scale = b.const(1 / 12)
    mean = b.ew(r.multiply, b.sum(x), scale)
    d = b.ew(r.subtract, x, b.bc(mean, shape))
    variance = b.ew(r.multiply, b.sum(b.ew(r.multiply, d, d)), scale)
    same(b.graph([mean, variance]), [rng.random((3, 4))], 1)


def test_divided_by_its_sum() -> None:
    b = Builder()
    x = b.input((b.size("n"),))
    same(b.graph([b.ew(r.divide, x, b.bc(b.sum(x), x.shape))]), [rng.random(5)], 1)


def test_standardised_columns() -> None:
    b = Builder()
    x, shape = rows(b)
    scale = b.full(1 / 3, (shape[1],))
    mean = b.ew(r.multiply, b.sum(x, (0,)), scale)
    d = b.ew(r.subtract, x, b.bc(mean, shape))
    sigma = b.ew(r.sqrt, b.ew(r.multiply, b.sum(b.ew(r.multiply, d, d), (0,)), scale))
    plan = same(b.graph([b.ew(r.divide, d, b.bc(sigma, shape))]), [rng.random((3, 4))], 1)
    assert plan.arena == 0


def test_pairwise_distances() -> None:
    b = Builder()
    n, m, d = b.size("n"), b.size("m"), b.size("d")
    x, y = b.input((n, d)), b.input((m, d))
    shape = (n, m, d)
    diff = b.ew(r.subtract, b.bc(b.expand(x, (1,)), shape), b.bc(b.expand(y, (0,)), shape))
    far = b.ew(r.sqrt, b.sum(b.ew(r.multiply, diff, diff), (2,)))
    plan = same(b.graph([far]), [rng.random((2, 3)), rng.random((4, 3))], 1)
    assert plan.arena == 0


def test_stencil_by_slices() -> None:
    b = Builder()
    x, (n, m) = rows(b)

    def at(i: int, j: int) -> Node:
        return b.cut(x, (1 + i, 1, n - 2), (1 + j, 1, m - 2))

    total = b.ew(r.add, b.ew(r.add, at(-1, 0), at(1, 0)), b.ew(r.add, at(0, -1), at(0, 1)))
    y = b.ew(r.subtract, total, at(0, 0))
    same(b.graph([y]), [rng.random((4, 5))], 1)


def test_two_results_of_shared_work() -> None:
    """Black-Scholes in its shape: a call and a put from the same dear values."""
    b = Builder()
    n = b.size("n")
    s, k = b.input((n,)), b.input((n,))
    d = b.ew(r.log, b.ew(r.divide, s, k))
    p, q = b.ew(r.exp, d), b.ew(r.exp, b.ew(r.negative, d))
    call = b.ew(r.subtract, b.ew(r.multiply, s, p), b.ew(r.multiply, k, q))
    put = b.ew(r.subtract, b.ew(r.multiply, k, p), b.ew(r.multiply, s, q))
    plan = same(b.graph([call, put]), [1 + rng.random(5), 1 + rng.random(5)], 1)
    ops = [i.op for _, i in plan.kernels[0].instructions() if hasattr(i, "op")]
    assert ops.count(r.log) == 1


def test_epilogue_of_a_reduction() -> None:
    b = Builder()
    x, _ = rows(b)
    same(b.graph([b.ew(r.sqrt, b.sum(b.ew(r.multiply, x, x), (1,)))]), [rng.random((3, 4))], 1)


def test_logsumexp() -> None:
    b = Builder()
    x, shape = rows(b)
    top = b.max(x, (1,))
    e = b.ew(r.exp, b.ew(r.subtract, x, b.bc(b.expand(top, (1,)), shape)))
    y = b.ew(r.add, top, b.ew(r.log, b.sum(e, (1,))))
    same(b.graph([y]), [rng.random((3, 4))], 1)


def test_dear_values_are_stored_rather_than_computed_at_five_places() -> None:
    b = Builder()
    x, (n, m) = rows(b)
    y = b.ew(r.exp, x)
    parts = [b.cut(y, (i, 1, n - 3), (0, 1, m)) for i in range(4)]
    z = b.ew(r.add, b.ew(r.add, *parts[:2]), b.ew(r.add, *parts[2:]))
    plan = same(b.graph([z]), [rng.random((5, 3))], 2)
    assert any("exp" in text for text in plan.refusals)


def test_a_stored_value_is_summed_where_it_is_computed() -> None:
    """As in a loss and its gradient: nothing reads the stored value just to add it up."""
    b = Builder()
    x, (n, m) = rows(b)
    y = b.ew(r.exp, b.cut(x, (0, 1, n - 1), (0, 1, m - 1)))
    around = [b.pad(y, [(i, 1 - i), (j, 1 - j)]) for i in (0, 1) for j in (0, 1)]
    z = b.ew(r.add, b.ew(r.add, *around[:2]), b.ew(r.add, *around[2:]))
    plan = same(b.graph([b.sum(y), z]), [rng.random((4, 3))], 2)
    assert [len(k.buffers) for k in plan.kernels] == [3, 2]


def test_a_stored_value_stays_with_the_rows_it_needs() -> None:
    """The gradient of the last layer: rows give it, a product reads it, its columns are summed."""
    b = Builder()
    x, _ = rows(b)
    y = softmax(b, x)[0]
    outputs = [b.contract(y, x, "ab,cb->ac"), b.sum(y, (0,))]
    plan = same(b.graph(outputs), [rng.random((3, 4))], 2)
    assert [k.buffers[-1].role for k in plan.kernels] == ["row", "out"]
    assert len(plan.kernels[1].buffers) == 2


def test_cheap_values_are_computed_again() -> None:
    b = Builder()
    x, (n, m) = rows(b)
    y = b.ew(r.add, x, x)
    z = b.ew(r.add, b.cut(y, (0, 1, n - 1), (0, 1, m)), b.cut(y, (1, 1, n - 1), (0, 1, m)))
    same(b.graph([z]), [rng.random((5, 3))], 1)


def test_rows_and_columns_do_not_share_a_kernel() -> None:
    b = Builder()
    x, _ = rows(b)
    plan = same(b.graph([b.sum(x, (0,)), b.sum(x, (1,))]), [rng.random((3, 4))], 2)
    assert any("outer axes" in text for text in plan.refusals)


def test_sums_of_one_input_share_a_kernel() -> None:
    b = Builder()
    x, _ = rows(b)
    outputs = [b.sum(x, (1,)), b.max(x, (1,)), b.ew(r.exp, x)]
    same(b.graph(outputs), [rng.random((3, 4))], 1)


def test_reshape_of_computed_values_is_free() -> None:
    b = Builder()
    x, (n, m) = rows(b)
    flat = b.reshape(b.ew(r.exp, x), (n * m,))
    same(b.graph([b.sum(flat)]), [rng.random((3, 4))], 1)
    y = b.reshape(b.iota(12), (3, 4))
    same(b.graph([y]), [rng.random((3, 4))], 1)


def test_transposed_then_reshaped_is_stored() -> None:
    b = Builder()
    x, (n, m) = rows(b)
    flat = b.reshape(b.t(b.ew(r.exp, x)), (n * m,))
    same(b.graph([b.ew(r.negative, flat)]), [rng.random((3, 4))], 2)


def test_pads_become_bounds() -> None:
    b = Builder()
    x, _ = rows(b)
    y = b.pad(b.ew(r.exp, x), [(1, 2), (0, 1)])
    z = b.ew(r.add, y, b.pad(x, [(2, 1), (1, 0)]))
    plan = same(b.graph([z]), [rng.random((3, 4))], 1)
    assert "if" in str(plan.kernels[0])


def test_argmax_counts_in_row_major_order() -> None:
    b = Builder()
    x = b.input((b.size("n"), b.size("m"), b.size("k")))
    y = b.reduce(r.reduce_argmax, x, (0, 2), dtype="i8")
    same(b.graph([y, b.max(x, (0, 2))]), [rng.random((3, 4, 5))], 1)


def test_gather_is_a_load() -> None:
    b = Builder()
    x, _ = rows(b)
    where = b.input((b.size("k"),), "i8")
    y = b.ew(r.exp, b.gather(x, where, dims=(1,), place=1))
    z = b.gather(b.ew(r.exp, x), where, where, dims=(0, 1))
    arrays = [rng.random((3, 4)), np.array([2, 0, 1, 1, 2])]
    same(b.graph([y]), arrays, 1)
    same(b.graph([z]), arrays, 2)


def test_matrix_products_read_views_in_place() -> None:
    b = Builder()
    x, (n, _) = rows(b)
    y = b.input((n, b.size("k")))
    z = b.contract(b.t(x), b.ew(r.exp, y), "mn,nk->mk")
    same(b.graph([b.ew(r.negative, z)]), [rng.random((3, 4)), rng.random((3, 2))], 2)
    same(b.graph([b.contract(x, x, "ab,cb->ac")]), [rng.random((3, 4)), rng.random((3, 2))], 0)
    same(b.graph([b.contract(x, x, "ab,ab->")]), [rng.random((3, 4)), rng.random((3, 2))], 0)


def test_products_over_several_axes() -> None:
    b = Builder()
    x = b.input((2, b.size("n"), 3))
    y = b.input((3, b.size("n"), 4))
    arrays = [rng.random((2, 5, 3)), rng.random((3, 5, 4))]
    same(b.graph([b.contract(x, y, "anc,cnd->ad")]), arrays)
    same(b.graph([b.contract(x, y, "anc,cnd->nda")]), arrays)
    same(b.graph([b.contract(x, y, "anc,cmd->amnd")]), arrays)


def test_a_product_over_no_elements_has_all_its_axes() -> None:
    b = Builder()
    x, (n, _) = rows(b)
    none = b.cut(x, (0, 1, n), (0, 1, 0))
    same(b.graph([b.contract(none, b.ew(r.exp, none), "ab,cb->ac")]), [rng.random((3, 4))])


def test_a_check_runs_before_what_it_guards() -> None:
    b = Builder()
    x = b.input((4,))
    where = b.input((3,), "i8")
    good = b.reduce(r.reduce_all, b.ew(r.less, where, b.full(4, (3,), "i8"), dtype="?"), (0,))
    b.check(good)
    g = b.graph([b.ew(r.exp, b.gather(x, where, dims=(0,)))])
    same(g, [rng.random(4), np.array([1, 0, 3])])
    with pytest.raises(r.Failed):
        r.run(schedule(g, ["C", "C"]), [rng.random(4), np.array([1, 0, 9])])


def test_every_output_has_memory_of_its_own() -> None:
    b = Builder()
    x, (n, m) = rows(b)
    part = b.view(x, index(x.shape, [slice_of(0, 2, 2), At(1)]))
    g = b.graph([x, part, b.t(x), x, b.reshape(x, (n * m,)), b.bc(part, (3, 2))])
    plan = same(g, [rng.random((3, 4))])
    assert {o.kind for o in plan.outputs} == {"fresh"}


def test_one_value_returned_twice_has_two_memories() -> None:
    b = Builder()
    x, _ = rows(b)
    y = b.ew(r.exp, x)
    same(b.graph([y, y]), [rng.random((3, 4))], 1)


def test_results_follow_the_memory_order_of_their_operands() -> None:
    b = Builder()
    x, _ = rows(b)
    y = b.ew(r.exp, b.t(x))
    plan = same(b.graph([y, b.ew(r.add, b.t(y), x)]), [rng.random((3, 4))], 1)
    assert [o.perm for o in plan.outputs] == [(1, 0), None]
    assert len(plan.kernels[0].axes) == 1
    b = Builder()
    x, _ = rows(b)
    plan = same(b.graph([b.ew(r.exp, x)]), [np.asfortranarray(rng.random((3, 4)))], 1)
    assert plan.outputs[0].perm == (1, 0)


def test_equal_kernels_are_shared() -> None:
    b = Builder()
    n, m = b.size("n"), b.size("m")
    x, y = b.input((n,)), b.input((m, m))
    plan = same(b.graph([b.ew(r.exp, x), b.ew(r.exp, y)]), [rng.random(3), rng.random((2, 2))], 2)
    assert len(plan.kernels) == 1


def test_names_of_ops_do_not_matter() -> None:
    def build(rename: bool) -> str:
        from dataclasses import replace

        b = Builder()
        x, _ = rows(b)
        g = b.graph([softmax(b, x)[0]])
        words: dict[Any, Any] = {}
        if rename:
            from npjit.core.rebuild import rebuild

            def turn(block: Any, n: Node, args: Any) -> Node:
                op = words.setdefault(n.op, replace(n.op, name=f"w{len(words)}"))
                return block.add(op, args, n.params, n.type)

            g = rebuild(g, turn)
        text = str(schedule(g, ["C"]))
        for op, other in words.items():
            text = text.replace(f"= {other.name} ", f"= {op.name} ")
        return text

    assert build(True) == build(False)
