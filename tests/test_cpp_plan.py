"""Printed plans: sizes, guards, arena, checks, matrix products, and what npjit_prepare says."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest

from npjit.codegen.cpp import print_cpp
from npjit.codegen.cpp_parts import print_parts
from npjit.codegen.toolchain import compile_object, find_compiler
from npjit.core.assume import Guard
from npjit.core.size import floordiv, smax
from npjit.schedule.plan import (
    Check,
    Contract,
    InputSpec,
    Launch,
    Matrix,
    OutputSpec,
    Place,
    Plan,
    Source,
)
from tests.plan_runner import (
    ADD,
    LESS,
    MULTIPLY,
    CheckFailed,
    KernelBuilder,
    N,
    S,
    describe,
    run,
    words,
)

F8 = np.dtype("f8")


def add_one() -> KernelBuilder:
    k = KernelBuilder([S[0]], (0,), [("f8", "in"), ("f8", "out")])
    k.store(1, {0: 1}, k.apply(ADD, "f8", k.load(0, {0: 1}), k.const(1.0, "f8")))
    return k


def test_two_kernels_through_the_arena() -> None:
    double = KernelBuilder([S[0]], (0,), [("f8", "inout")])
    x = double.load(0, {0: 1})
    double.store(0, {0: 1}, double.apply(MULTIPLY, "f8", x, x))
    a = np.arange(100.0)
    specs, sources = describe([a])
    scratch = Place("arena", 0, 64)
    steps = (
        Launch(0, (Place("input", 0), scratch), (), (N[0],)),
        Launch(1, (scratch,), (), (N[0],)),
        Launch(0, (scratch, Place("output", 0)), (), (N[0],)),
    )
    kernels = (add_one().kernel(1), double.kernel(1))
    fresh = (OutputSpec("fresh", F8, (N[0],)),)
    plan = Plan(specs, fresh, kernels, steps, 64 + 8 * N[0], (), sources)
    np.testing.assert_array_equal(run(plan, a)[0], (a + 1) ** 2 + 1)


def test_guards_refuse_sizes() -> None:
    a, b = np.zeros(3), np.zeros(4)
    specs, sources = describe([a, b])
    guards = (Guard("<=", N[0], N[1]), Guard("!=", N[0], 2))
    steps = (Launch(0, (Place("input", 0), Place("output", 0)), (), (N[0],)),)
    fresh = (OutputSpec("fresh", F8, (N[0],)),)
    plan = Plan(specs, fresh, (add_one().kernel(1),), steps, 0, guards, sources)
    assert run(plan, a, b)[0].tolist() == [1, 1, 1]
    for refused in ((b, a), (a[:2], b)):
        with pytest.raises(CheckFailed):
            run(plan, *refused)


def test_check_stops_the_run() -> None:
    k = KernelBuilder([], (), [("f8", "in"), ("?", "out")])
    k.store(1, {}, k.apply(LESS, "?", k.load(0, {}), k.const(1.0, "f8")))
    a = np.array(0.5)
    specs, sources = describe([a])
    flag = Place("arena", 0)
    steps = (
        Launch(0, (Place("input", 0), flag), (), ()),
        Check(5, flag, "too large"),
    )
    plan = Plan(specs, (), (k.kernel(0),), steps, 64, (), sources)
    assert run(plan, a) == []
    with pytest.raises(CheckFailed, match="5"):
        run(plan, np.array(1.5))


def test_what_prepare_says() -> None:
    """Arena, extents of fresh outputs, offset, extents, strides of aliases; ints as sizes."""
    a, count = np.zeros((6, 10))[::2, ::-1], 7
    specs = (
        InputSpec(F8, (N[0], N[1]), False, ("p", "n")),
        InputSpec(np.dtype("i8"), (), True),
    )
    names = [n.terms[0][0][0] for n in N]
    what = [("extent", 0), ("extent", 1), ("stride", 0), ("stride", 1)]
    sources = {names[i]: Source(0, kind, axis) for i, (kind, axis) in enumerate(what)}
    sources[names[4]] = Source(1, "value", 0)
    outputs = (
        OutputSpec("fresh", F8, (floordiv(N[0] - 10, 4), smax(N[1], N[4]))),
        OutputSpec("input", F8, (), input=0),
        OutputSpec("alias", F8, (N[1],), input=0, offset=N[2] * (N[0] - 1), strides=(N[3],)),
    )
    plan = Plan(specs, outputs, (), (), 8 * N[4] + 64, (), sources)
    compiler = find_compiler()
    assert compiler is not None
    library = ctypes.CDLL(str(compile_object(print_cpp(plan, compiler.vector), compiler=compiler)))
    out = (ctypes.c_longlong * 16)()
    assert library.npjit_prepare(words([a, count]), out) == 0
    assert list(out[:6]) == [8 * 7 + 64, (3 - 10) // 4, 10, 20 * 2, 10, -1]


# ---------------------------------------------------------------- matrix products


def product(dtype: str, order: str, batch: bool) -> Plan:
    """c = a @ b; `order` says for a, b and c whether rows ("r") or columns ("c") are contiguous."""
    lead = (N[0],) if batch else ()
    first = len(lead)
    rank = 2 + first
    m, k, n = N[first], N[first + 1], N[2 * rank - 1]
    kind = np.dtype(dtype)

    def matrix(place: Place, rows: Any, columns: Any, letter: str) -> Matrix:
        strides = (columns, 1) if letter == "r" else (1, rows)
        return Matrix(place, 0, tuple(rows * columns for _ in lead), *strides)

    a = matrix(Place("input", 0), m, k, order[0])
    b = matrix(Place("input", 1), k, n, order[1])
    c = matrix(Place("output", 0), m, n, order[2])
    shapes = [(*lead, m, k), (*lead, k, n)]
    inputs = tuple(InputSpec(kind, tuple(s), False) for s in shapes)
    names = [v.terms[0][0][0] for v in N]
    sources = {names[i]: Source(i // rank, "extent", i % rank) for i in range(2 * rank)}
    step = Contract(kind, kind, lead, m, n, k, a, b, c)
    return Plan(inputs, (OutputSpec("fresh", kind, (*lead, m, n)),), (), (step,), 0, (), sources)


def stored(x: Any, letter: str) -> Any:
    """The memory of x in row or column order, under x's own shape, as the plan reads it."""
    last_two = np.swapaxes(x, -1, -2) if letter == "c" else x
    return np.ascontiguousarray(last_two).reshape(x.shape)


def close(got: Any, want: Any, k: int) -> None:
    if want.dtype.kind in "fc":
        eps = np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, rtol=k * eps, atol=4 * np.sqrt(k + 1) * eps)
    else:
        np.testing.assert_array_equal(got, want)


SHAPES = [
    (1, 1, 1),
    (3, 5, 4),
    (17, 33, 40),
    (64, 1, 50),
    (1, 64, 70),
    (65, 70, 1),
    (2, 0, 3),
    (0, 2, 2),
]


@pytest.mark.parametrize("blas", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8", "i4", "?", "f2"])
def test_products(dtype: str, blas: bool) -> None:
    rng = np.random.default_rng(0)
    for order in ("rrr", "crr", "rcr", "ccc", "rrc"):
        plan = product(dtype, order, batch=False)
        for m, k, n in SHAPES:
            a, b = (rng.integers(-3, 4, s).astype(dtype) for s in ((m, k), (k, n)))
            got = run(plan, stored(a, order[0]), stored(b, order[1]), blas=blas)[0]
            if order[2] == "c":
                got = got.reshape(n, m).T
            close(got, a @ b, k)


def test_batches_of_products() -> None:
    rng = np.random.default_rng(1)
    plan = product("f8", "rcr", batch=True)
    for size in [(3, 4, 5, 6), (2, 20, 30, 40), (0, 3, 3, 3)]:
        batch, m, k, n = size
        a, b = rng.standard_normal((batch, m, k)), rng.standard_normal((batch, k, n))
        for blas in (False, True):
            close(run(plan, a, stored(b, "c"), blas=blas)[0], a @ b, 16 * k)


def test_every_layout_reaches_blas() -> None:
    """Beyond what our own tiles take, in any layout: a fallback never calls the pointer."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((40, 30_000)), rng.standard_normal((30_000, 60))
    for order in map("".join, itertools.product("rc", repeat=3)):
        calls: list[int] = []
        plan = product("f8", order, batch=False)
        run(plan, stored(a, order[0]), stored(b, order[1]), blas=calls.append)
        assert calls == [0], order


def test_a_long_plan_in_several_units_gives_the_same() -> None:
    compiler = find_compiler()
    assert compiler is not None
    kernels = []
    for number in range(60):
        k = KernelBuilder([S[0]], (0,), [("f8", "inout")])
        k.store(0, {0: 1}, k.apply(ADD, "f8", k.load(0, {0: 1}), k.const(float(number), "f8")))
        kernels.append(k.kernel(1))
    specs, sources = describe([np.zeros(9)])
    out = Place("output", 0)
    first = add_one().kernel(1)
    steps = [Launch(0, (Place("input", 0), out), (), (N[0],))]
    steps += [Launch(1 + i, (out,), (), (N[0],)) for i in range(60)]
    outputs = (OutputSpec("fresh", F8, (N[0],)),)
    plan = Plan(specs, outputs, (first, *kernels), tuple(steps), 0, (), sources)
    assert len(print_parts(plan, compiler, 1)) == 1
    units = print_parts(plan, compiler, 3)
    assert len(units) == 3
    assert sum("npjit_run(" in text.split("#endif")[-1] for text in units) == 1
    (got,) = run(plan, np.arange(9.0), most=3)
    np.testing.assert_array_equal(got, np.arange(9.0) + 1 + sum(range(60)))
