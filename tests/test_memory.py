"""Storage: updates in place, old versions, aliases between what is read and written, and the
arena."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.size import bounds, text, var
from npjit.core.view import At, identity, index, slice_of
from npjit.schedule.kernel import Load
from npjit.schedule.memory import Use, plan_memory
from npjit.schedule.plan import Place
from tests import schedule_reference as r
from tests.schedule_reference import Builder, compare, kernels_of

rng = np.random.default_rng(2)


def rows_of(plan: Any) -> list[str]:
    return [b.role for k in plan.kernels for b in k.buffers]


def test_an_update_of_an_input_is_in_place() -> None:
    b = Builder()
    x = b.input((b.size("n"),))
    v = b.update(x, b.ew(r.add, x, x), identity(x.shape))
    plan = compare(b.graph([], [(0, v)]), [rng.random(5)])
    assert kernels_of(plan) == 1
    assert rows_of(plan) == ["inout"]
    assert plan.arena == 0


def test_shifted_reads_need_a_temporary() -> None:
    b = Builder()
    n = b.size("n")
    x = b.input((n,))
    v = b.update(x, b.cut(x, (0, 1, n - 1)), index((n,), [slice_of(1, 1, n - 1)]))
    plan = compare(b.graph([], [(0, v)]), [rng.random(5)])
    assert kernels_of(plan) == 2
    b = Builder()
    x = b.input((n,))
    v = b.update(x, x, index((n,), [slice_of(n - 1, -1, n)]))
    compare(b.graph([], [(0, v)]), [rng.random(5)])


def test_disjoint_reads_need_none() -> None:
    b = Builder()
    n, m = b.size("n"), b.size("m")
    x = b.input((n, m))
    first = b.view(x, index(x.shape, [At(0), slice_of(0, 1, m)]))
    rest = index(x.shape, [slice_of(1, 1, n - 1), slice_of(0, 1, m)])
    v = b.update(x, b.bc(b.ew(r.negative, first), (n - 1, m)), rest)
    plan = compare(b.graph([], [(0, v)]), [rng.random((4, 3))])
    assert kernels_of(plan) == 1


def test_a_read_before_an_update_keeps_its_value() -> None:
    b = Builder()
    x = b.input((b.size("n"),))
    y = b.ew(r.exp, x)
    v = b.update(x, b.full(0.0, x.shape), identity(x.shape))
    z = b.ew(r.add, y, v)
    compare(b.graph([z], [(0, v)]), [rng.random(5)])
    compare(b.graph([y], [(0, v)]), [rng.random(5)])


def test_an_old_version_that_is_returned_is_copied() -> None:
    b = Builder()
    x = b.input((b.size("n"),))
    v = b.update(x, b.full(0.0, x.shape), identity(x.shape))
    plan = compare(b.graph([x, v], [(0, v)]), [rng.random(5)])
    assert kernels_of(plan) == 2


def test_cells_fill_the_output_they_become() -> None:
    b = Builder()
    n = b.size("n")
    x = b.input((n,))
    c = b.cell(b.full(0.0, (n,)))
    v = b.update(c, b.cut(x, (0, 1, n - 1)), index((n,), [slice_of(1, 1, n - 1)]))
    plan = compare(b.graph([v]), [rng.random(5)])
    assert plan.arena == 0
    assert kernels_of(plan) == 2


def test_concatenation_into_an_empty_cell() -> None:
    b = Builder()
    n, m = b.size("n"), b.size("m")
    x, y = b.input((n,)), b.input((m,))
    c = b.empty((n + m,))
    v = b.update(c, b.ew(r.exp, x), index((n + m,), [slice_of(0, 1, n)]))
    w = b.update(v, y, index((n + m,), [slice_of(n, 1, m)]))
    plan = compare(b.graph([w, b.sum(w)]), [rng.random(3), rng.random(2)])
    assert plan.arena == 0


def test_versions_in_a_row() -> None:
    b = Builder()
    n = b.size("n")
    x = b.input((n,))
    c = b.cell(b.ew(r.exp, x))
    seen = [b.sum(c)]
    for k in range(3):
        part = b.view(c, index((n,), [slice_of(k, 1, n - 3)]))
        seen.append(b.ew(r.negative, part))
        c = b.update(c, b.ew(r.add, part, part), index((n,), [slice_of(k, 1, n - 3)]))
        seen.append(b.sum(c))
    compare(b.graph([c, *seen]), [rng.random(7)])


def test_rows_of_a_matrix_are_updated_from_rows_above() -> None:
    b = Builder()
    m = b.size("m")
    x = b.input((4, m))
    v = x
    for i in range(1, 4):
        above = b.view(v, index(x.shape, [At(i - 1), slice_of(0, 1, m)]))
        own = b.view(v, index(x.shape, [At(i), slice_of(0, 1, m)]))
        v = b.update(v, b.ew(r.add, above, own), index(x.shape, [At(i), slice_of(0, 1, m)]))
    plan = compare(b.graph([], [(0, v)]), [rng.random((4, 3))])
    assert kernels_of(plan) == 3
    assert plan.arena == 0


def test_a_written_input_without_a_version_is_copied_into() -> None:
    b = Builder()
    _, y = b.input((b.size("n"),)), b.input((b.size("n"),))
    plan = compare(b.graph([], [(0, b.ew(r.exp, y))]), [rng.random(5), rng.random(5)])
    assert plan.arena == 0


def test_strided_inputs_are_read_and_written_where_they_lie() -> None:
    b = Builder()
    n, m = b.size("n"), b.size("m")
    x, y = b.input((n, m)), b.input((n, m))
    v = b.update(x, b.ew(r.add, x, y), identity(x.shape))
    base = rng.random((8, 9))
    compare(b.graph([b.sum(v, (0,))], [(0, v)]), [base[::2, ::-2], base[:5, :4].T])
    b = Builder()
    x = b.input((n, m))
    g = b.graph([b.reshape(x, (n * m,)), b.ew(r.exp, x), b.reshape(b.ew(r.exp, x), (n * m,))])
    compare(g, [base[::2, ::3]])
    compare(g, [base[::-1, ::-1]])
    compare(g, [np.broadcast_to(base[0], (3, 9))])


def test_dying_operands_give_their_place_to_results() -> None:
    b = Builder()
    n, m = b.size("n"), b.size("m")
    x = b.input((n, m))
    y = x
    for _ in range(4):
        y = b.ew(r.exp, b.t(b.contract(y, x, "ab,cb->ac"), (0, 1)))
        y = b.contract(y, x, "ac,cb->ab")
    plan = compare(b.graph([b.sum(y)]), [rng.random((2, 3)) / 10])
    # one place for each of the two shapes: exp runs in place
    assert text(plan.arena).count("floordiv") == 2


def test_places_of_unknown_sizes_are_never_shared() -> None:
    n, m = var("n", lo=0), var("m", lo=0)
    b = Builder()
    a, c, d = b.input((n,)), b.input((m,)), b.input((n + 1,))
    one, two, three = (a, 0), (c, 0), (d, 0)
    uses = [
        Use((one,), frozenset([one])),
        Use((two,), frozenset([two])),
        Use((three,), frozenset([three])),
    ]
    places, arena = plan_memory(uses, {}, {one: n * 64, two: m * 64, three: n * 64 + 64})
    assert places[one] == Place("arena", 0, 0)
    assert places[two].offset != 0
    assert places[three].offset not in (0, places[two].offset)
    assert bounds(arena)[0] is not None


def test_scalars_are_passed_by_value() -> None:
    from npjit.core.graph import Weight

    b = Builder()
    x = b.input((b.size("n"),))
    a = b.input((), "f8", Weight.WEAK)
    y = b.ew(r.multiply, x, b.bc(a, x.shape))
    plan = compare(b.graph([y, a]), [rng.random(4), 2.5])
    assert plan.inputs[1].is_scalar
    assert not any(
        isinstance(i, Load) and i.access.buffer > 1
        for k in plan.kernels
        for _, i in k.instructions()
    )
