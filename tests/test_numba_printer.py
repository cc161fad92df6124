"""Plans printed for Numba: the same results as NumPy's, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npjit.codegen.numba_prelude import NoNumbaText
from npjit.codegen.numba_printer import PlanStopped, load_numba, print_numba
from npjit.core.assume import Guard
from npjit.schedule.plan import (
    Check,
    Contract,
    Launch,
    Matrix,
    OutputSpec,
    Place,
    Plan,
    Source,
)
from tests.plan_runner import (
    ADD,
    CAST,
    DIVIDE,
    EXP,
    LESS,
    MULTIPLY,
    SUBTRACT,
    KernelBuilder,
    N,
    S,
    describe,
    row,
    single,
)

pytest.importorskip("numba")

F8 = np.dtype("f8")
MATRIX = {0: S[1], 1: 1}
REDUCTIONS = {
    "sum": np.sum,
    "product": np.prod,
    "min": np.min,
    "max": np.max,
    "any": np.any,
    "all": np.all,
    "argmin": np.argmin,
    "argmax": np.argmax,
}


def result_dtype(style: str, dtype: str) -> str:
    return {"any": "?", "all": "?", "argmin": "i8", "argmax": "i8"}.get(style, dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "?"])
@pytest.mark.parametrize("form", ["rows", "columns", "whole"])
def test_reductions(form: str, dtype: str) -> None:
    axis = {"rows": 1, "columns": 0, "whole": None}[form]
    outer = {"rows": (0,), "columns": (1,), "whole": ()}[form]
    kinds = [result_dtype(style, dtype) for style in REDUCTIONS]
    k = KernelBuilder([S[0], S[1]], outer, [(dtype, "in"), *((d, "out") for d in kinds)])
    k.phase(*(a for a in (0, 1) if a not in outer))
    x = k.load(0, MATRIX)
    found = [k.reduce(style, d, x) for style, d in zip(REDUCTIONS, kinds, strict=True)]
    k.phase()
    for i, value in enumerate(found):
        k.store(i + 1, dict.fromkeys(outer, 1), value)
    rng = np.random.default_rng(0)
    make = {"f": rng.standard_normal, "i": lambda s: rng.integers(-9, 9, s)}
    shape = tuple(N[a] for a in outer)
    run = None
    for size in [(1, 1), (3, 300), (300, 3), (40, 150)]:
        x_given = make.get(np.dtype(dtype).kind, lambda s: rng.random(s) < 0.9)(size).astype(dtype)
        if run is None:
            run = load_numba(single(k, [x_given], [(d, shape) for d in kinds], (N[0], N[1])))
        for got, (style, want) in zip(run([x_given]), REDUCTIONS.items(), strict=True):
            keeps = {"dtype": dtype} if style in ("sum", "product") and dtype != "?" else {}
            expected = np.asarray(want(x_given, axis=axis, **keeps))
            if dtype == "?" and style in ("sum", "product"):
                expected = expected.astype("?")
            loose = 100 * np.finfo(dtype).eps if dtype[0] == "f" else 0
            np.testing.assert_allclose(got, expected, rtol=loose, atol=loose * 100)


def test_nan_wins() -> None:
    k = KernelBuilder([S[0]], (), [("f8", "in"), ("f8", "out"), ("i8", "out")])
    k.phase(0)
    x = k.load(0, {0: 1})
    best, place = k.reduce("max", "f8", x), k.reduce("argmin", "i8", x)
    k.phase()
    k.store(1, {}, best)
    k.store(2, {}, place)
    given = np.arange(300.0)
    given[[40, 200]] = np.nan
    got = load_numba(single(k, [given], [("f8", ()), ("i8", ())], (N[0],)))([given])
    assert np.isnan(got[0])
    assert got[1] == 40


def test_sums_are_pairwise() -> None:
    k = KernelBuilder([S[0]], (), [("f4", "in"), ("f4", "out")])
    k.phase(0)
    total = k.reduce("sum", "f4", k.load(0, {0: 1}))
    k.phase()
    k.store(1, {}, total)
    x = np.full(1_000_000, 0.1, "f4")
    got = load_numba(single(k, [x], [("f4", ())], (N[0],)))([x])[0]
    assert abs(float(got) / (float(x[0]) * 1e6) - 1) < 60 * np.finfo("f4").eps


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_with_a_row_buffer(axis: int) -> None:
    inner, outer = axis, 1 - axis
    buffers = [("f8", "in"), ("f8", "row", S[inner]), ("f8", "out")]
    k = KernelBuilder([S[0], S[1]], (outer,), buffers)
    k.phase(inner)
    top = k.reduce("max", "f8", k.load(0, MATRIX))
    k.phase(inner)
    e = k.apply(EXP, "f8", k.apply(SUBTRACT, "f8", k.load(0, MATRIX), top))
    k.store(1, {inner: 1}, e)
    total = k.reduce("sum", "f8", e)
    k.phase(inner)
    k.store(2, MATRIX, k.apply(DIVIDE, "f8", k.load(1, {inner: 1}), total))
    a = np.random.default_rng(1).standard_normal((30, 40))
    got = load_numba(single(k, [a], [("f8", (N[0], N[1]))], (N[0], N[1])))([a])[0]
    want = np.exp(a - a.max(axis, keepdims=True))
    np.testing.assert_allclose(got, want / want.sum(axis, keepdims=True), rtol=1e-13)


def test_narrow_types_wrap_and_casts_are_numpys() -> None:
    k = KernelBuilder(
        [S[0]], (0,), [("i1", "in"), ("f8", "in"), ("i1", "out"), ("i4", "out"), ("?", "out")]
    )
    x, y = k.load(0, {0: 1}), k.load(1, {0: 1})
    k.store(2, {0: 1}, k.apply(ADD, "i1", k.apply(MULTIPLY, "i1", x, x), k.const(100, "i1")))
    k.store(3, {0: 1}, k.apply(CAST, "i4", y))
    k.store(4, {0: 1}, k.apply(row("unlike", "!nj_cast<b1>({0})"), "?", y))
    a = np.array([100, -128, 7, 0, 1], "i1")
    b = np.array([np.nan, 1e300, -1.9, 0.0, 2.5])
    plan = single(k, [a, b], [("i1", (N[0],)), ("i4", (N[0],)), ("?", (N[0],))], (N[0],))
    got = load_numba(plan)([a, b])
    np.testing.assert_array_equal(got[0], a * a + np.int8(100))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got[1], b.astype("i4"))
    np.testing.assert_array_equal(got[2], b == 0)


def test_pads_scalars_and_choices() -> None:
    """out[i] = i + start where x, padded by two zeros, is positive, else its square."""
    k = KernelBuilder([S[0]], (0,), [("f8", "in"), ("f8", "out")], ["f8"])
    x = k.load(0, {0: 1}, -2, [(0, 2, S[0])])
    i = k.apply(ADD, "f8", k.apply(CAST, "f8", k.coordinate(0)), k.scalar(0, "f8"))
    choice = row("choice", "{0} > 0.0 ? {1} : {0} * {0}")
    k.store(1, {0: 1}, k.apply(choice, "f8", x, i))
    a = np.random.default_rng(2).standard_normal(9)
    got = load_numba(single(k, [a, 0.5], [("f8", (N[0] + 2,))], (N[0] + 2,)))([a, 0.5])[0]
    padded = np.pad(a, (2, 0))
    np.testing.assert_array_equal(got, np.where(padded > 0, np.arange(11) + 0.5, padded**2))


def test_strided_inputs_and_transposed_outputs() -> None:
    """A copy of x[::-1, ::2], read by its own strides, kept in Fortran order."""
    k = KernelBuilder([S[0], S[1]], (0, 1), [("f8", "in"), ("f8", "out")])
    k.store(1, {0: 1, 1: S[0]}, k.load(0, {0: S[2], 1: S[3]}))
    a = np.arange(24.0).reshape(4, 6)[::-1, ::2]
    specs, sources = describe([a])
    names = [v.terms[0][0][0] for v in N]
    sources |= {names[2 + axis]: Source(0, "stride", axis) for axis in (0, 1)}
    launch = Launch(0, (Place("input", 0), Place("output", 0)), (), tuple(N[:4]))
    fresh = (OutputSpec("fresh", F8, (N[0], N[1]), (1, 0)),)
    got = load_numba(Plan(specs, fresh, (k.kernel(4),), (launch,), 0, (), sources))([a])[0]
    np.testing.assert_array_equal(got, a)
    assert got.flags.f_contiguous


def test_steps() -> None:
    """A product into the arena, its sum compared with a limit, and a guard."""
    total = KernelBuilder([S[0]], (), [("f8", "in"), ("?", "out"), ("f8", "out")])
    total.phase(0)
    found = total.reduce("sum", "f8", total.load(0, {0: 1}))
    total.phase()
    total.store(1, {}, total.apply(LESS, "?", found, total.const(100.0, "f8")))
    total.store(2, {}, found)
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    specs, sources = describe([a, b])
    flag, product = Place("arena", 0), Place("arena", 0, 64)
    matrices = [
        Matrix(Place("input", 0), 0, (), N[1], 1),
        Matrix(Place("input", 1), 0, (), N[3], 1),
        Matrix(product, 0, (), N[3], 1),
    ]
    steps = (
        Contract(F8, F8, (), N[0], N[3], N[1], *matrices),
        Launch(0, (product, flag, Place("output", 0)), (), (N[0] * N[3],)),
        Check(7, flag, "too large"),
    )
    guards = (Guard("==", N[1], N[2]),)
    fresh = (OutputSpec("fresh", F8, ()),)
    arena = 64 + 8 * N[0] * N[3]
    run = load_numba(Plan(specs, fresh, (total.kernel(1),), steps, arena, guards, sources))
    assert run([a / 10, b])[0] == pytest.approx((a / 10 @ b).sum())
    with pytest.raises(PlanStopped) as stopped:
        run([a, b])
    assert stopped.value.number == 7
    with pytest.raises(PlanStopped) as stopped:
        run([a, b[:2]])
    assert stopped.value.number == 0


@pytest.mark.parametrize(
    ("dtype", "text"),
    [("f8", "nj_spacing({0})"), ("c16", "nj_exp({0})"), ("c16", "{0} / {0}"), ("f2", "-{0}")],
)
def test_refusals(dtype: str, text: str) -> None:
    """What Numba computes differently from NumPy, or not at all, is refused."""
    k = KernelBuilder([S[0]], (0,), [(dtype, "in"), (dtype, "out")])
    k.store(1, {0: 1}, k.apply(row("some", text), dtype, k.load(0, {0: 1})))
    a: Any = np.ones(3, dtype)
    with pytest.raises(NoNumbaText):
        print_numba(single(k, [a], [(dtype, (N[0],))], (N[0],)))
