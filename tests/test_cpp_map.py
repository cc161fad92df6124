"""Printed kernels without reductions against NumPy: dtypes, views, pads, scalars, gathers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npjit.codegen.cpp import print_functions
from npjit.codegen.cpp_types import constant, planes
from npjit.core.op import Literal
from npjit.core.tolerance import TRANSCENDENTAL, assert_equal_numpy
from npjit.ops.kinds import UFUNCS
from tests.plan_runner import (
    ADD,
    CAST,
    DIVIDE,
    EXP,
    MULTIPLY,
    SUBTRACT,
    KernelBuilder,
    N,
    S,
    row,
    run,
    single,
)

SIZES = [0, 1, 2, 15, 16, 17, 1023, 1025, 65537]
NUMBERS = ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"]


def sample(shape: Any, dtype: str, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 250, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_elementwise(dtype: str) -> None:
    k = KernelBuilder([S[0]], (0,), [(dtype, "in"), (dtype, "in"), (dtype, "out")])
    x, y = k.load(0, {0: 1}), k.load(1, {0: 1})
    k.store(2, {0: 1}, k.apply(ADD, dtype, k.apply(MULTIPLY, dtype, x, y), k.const(3, dtype)))
    for n in SIZES:
        a, b = sample(n, dtype), sample(n, dtype, 1)
        plan = single(k, [a, b], [(dtype, (N[0],))], (N[0],))
        got, want = run(plan, a, b, threads=2)[0], a * b + np.dtype(dtype).type(3)
        # NumPy's own complex products round differently in its vector loop and behind it
        loose = 4 * np.finfo(dtype).eps if dtype[0] == "c" else 0
        np.testing.assert_allclose(got, want, rtol=loose, atol=loose)


def test_bool_bytes_are_made_true() -> None:
    """A bool array may view bytes other than 0 and 1."""
    k = KernelBuilder([S[0]], (0,), [("?", "in"), ("?", "in"), ("?", "out"), ("i8", "out")])
    x, y = k.load(0, {0: 1}), k.load(1, {0: 1})
    k.store(2, {0: 1}, k.apply(row("and", "{0} & {1}"), "?", x, y))
    k.store(3, {0: 1}, k.apply(CAST, "i8", x))
    a = np.array([0, 1, 2, 255] * 9, np.uint8).view("?")
    b = np.array([1] * 36, "?")
    plan = single(k, [a, b], [("?", (N[0],)), ("i8", (N[0],))], (N[0],))
    both, number = run(plan, a, b)
    assert both.view("u1").tolist() == [0, 1, 1, 1] * 9
    assert number.tolist() == [0, 1, 1, 1] * 9


def test_broadcast_over_three_axes() -> None:
    k = KernelBuilder(S[:3], (0, 1, 2), [("f8", "in"), ("f8", "in"), ("f8", "in"), ("f8", "out")])
    x = k.load(0, {0: S[1] * S[2], 1: S[2], 2: 1})
    y, z = k.load(1, {2: 1}), k.load(2, {0: S[1], 1: 1})
    k.store(
        3,
        {0: S[1] * S[2], 1: S[2], 2: 1},
        k.apply(ADD, "f8", k.apply(MULTIPLY, "f8", x, y), k.apply(EXP, "f8", z)),
    )
    for shape in [(2, 3, 5), (1, 1, 1), (4, 0, 3), (0, 2, 2), (7, 1, 130), (3, 50, 41)]:
        a, b, c = sample(shape, "f8"), sample(shape[2:], "f8", 1), sample(shape[:2], "f8", 2)
        inputs = [a, b, c]
        plan = single(k, inputs, [("f8", (N[0], N[1], N[2]))], (N[0], N[1], N[2]))
        got = run(plan, *inputs, threads=3)[0]
        np.testing.assert_allclose(got, a * b + np.exp(c)[..., None], atol=1e-14)


@pytest.mark.parametrize("dtype", ["f8", "c16", "u1"])
def test_flip_transpose_and_stride(dtype: str) -> None:
    """out[i, j] = x[2*j, n-1-i]"""
    k = KernelBuilder([S[0], S[1]], (0, 1), [(dtype, "in"), (dtype, "out")])
    x = k.load(0, {0: -1, 1: 2 * S[0]}, S[0] - 1)
    k.store(1, {0: S[1], 1: 1}, x)
    a = sample((14, 9), dtype)
    plan = single(k, [a], [(dtype, (N[1], 7))], (N[1], 7))
    np.testing.assert_array_equal(run(plan, a, threads=2)[0], a[::2, ::-1].T)


def test_stencil() -> None:
    k = KernelBuilder([S[0], S[1]], (0, 1), [("f8", "in"), ("f8", "out")])
    width = S[1] + 2
    taps = [k.load(0, {0: width, 1: 1}, o) for o in (1, width, width + 1, width + 2, 2 * width + 1)]
    total = taps[0]
    for t in taps[1:]:
        total = k.apply(ADD, "f8", total, t)
    k.store(1, {0: S[1], 1: 1}, total)
    for shape in [(3, 3), (10, 70), (2, 9), (40, 19)]:
        a = sample(shape, "f8")
        plan = single(k, [a], [("f8", (N[0] - 2, N[1] - 2))], (N[0] - 2, N[1] - 2))
        want = a[:-2, 1:-1] + a[1:-1, :-2] + a[1:-1, 1:-1] + a[1:-1, 2:] + a[2:, 1:-1]
        np.testing.assert_array_equal(run(plan, a, threads=2)[0], want)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "f2", "c8", "?"])
def test_pad(dtype: str) -> None:
    """Loads outside their bounds are zero and read nothing."""
    k = KernelBuilder([S[0], S[1]], (0, 1), [(dtype, "in"), (dtype, "out"), (dtype, "out")])
    within = [(0, 2, S[0] - 1), (1, 1, S[1] - 3)]
    width = S[1] - 4
    x = k.load(0, {0: width, 1: 1}, -2 * width - 1, within)
    k.store(1, {0: S[1], 1: 1}, x)
    y = k.inside(x, dtype, (1, 3, 5))
    k.store(2, {0: S[1], 1: 1}, y)
    for shape in [(1, 1), (4, 9), (0, 3), (2, 0), (5, 40)]:
        a = sample(shape, "f8").astype(dtype)
        out = (dtype, (N[0] + 3, N[1] + 4))
        plan = single(k, [a], [out, out], (N[0] + 3, N[1] + 4))
        padded, cut = run(plan, a, threads=2)
        want = np.pad(a, [(2, 1), (1, 3)])
        np.testing.assert_array_equal(padded, want)
        want[:, :3] = 0
        want[:, 5:] = 0
        np.testing.assert_array_equal(cut, want)


def test_scalars_coordinates_and_sizes() -> None:
    buffers = [("f8", "out"), ("u8", "out"), ("c16", "out"), ("i4", "out"), ("f2", "out")]
    k = KernelBuilder([S[0]], (0,), buffers, ["f8", "u8", "c16", "i4", "f2"])
    j = k.coordinate(0, 5, -2)
    k.store(0, {0: 1}, k.apply(ADD, "f8", k.apply(CAST, "f8", j), k.scalar(0, "f8")))
    k.store(1, {0: 1}, k.scalar(1, "u8"))
    k.store(2, {0: 1}, k.scalar(2, "c16"))
    n = k.apply(CAST, "i4", k.extent(S[0] * 3))
    k.store(3, {0: 1}, k.apply(ADD, "i4", n, k.scalar(3, "i4")))
    k.store(4, {0: 1}, k.scalar(4, "f2"))
    shape = np.zeros(7)
    given = [
        np.float64(0.1),
        np.uint64(2**64 - 3),
        1.5 - 2.5j,
        np.int32(-7),
        np.float16(0.1),
        shape,
    ]
    kinds = ["f8", "u8", "c16", "i4", "f2"]
    k.buffers = (*k.buffers, k.buffers[0].__class__(np.dtype("f8"), "in"))
    plan = single(k, given, [(d, (N[0],)) for d in kinds], (N[0],))
    got = run(plan, *given, threads=2)
    np.testing.assert_array_equal(got[0], 5 - 2.0 * np.arange(7) + 0.1)
    for r, want in zip(got[1:], [2**64 - 3, 1.5 - 2.5j, 14, np.float16(0.1)], strict=True):
        assert np.all(r == want)


def test_gather() -> None:
    k = KernelBuilder([S[0]], (0,), [("i8", "in"), ("f8", "in"), ("f8", "out")])
    i = k.load(0, {0: 1})
    k.store(2, {0: 1}, k.load(1, {}, 1, gathers=[(i, 2)]))
    index = np.array([3, 0, 2, 2, 1] * 10)
    a = sample(10, "f8")
    plan = single(k, [index, a], [("f8", (N[0],))], (N[0],))
    np.testing.assert_array_equal(run(plan, index, a)[0], a[index * 2 + 1])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_with_a_row_buffer(dtype: str, axis: int) -> None:
    inner, outer = axis, 1 - axis
    k = KernelBuilder(
        [S[0], S[1]], (outer,), [(dtype, "in"), (dtype, "row", S[inner]), (dtype, "out")]
    )
    place = {0: S[1], 1: 1}
    k.phase(inner)
    top = k.reduce("max", dtype, k.load(0, place))
    k.phase(inner)
    e = k.apply(EXP, dtype, k.apply(SUBTRACT, dtype, k.load(0, place), top))
    k.store(1, {inner: 1}, e)
    total = k.reduce("sum", dtype, e)
    k.phase(inner)
    k.store(2, place, k.apply(DIVIDE, dtype, k.load(1, {inner: 1}), total))
    for shape in [(1, 1), (3, 300), (300, 3), (129, 257), (0, 4), (4, 0)]:
        if shape[axis] == 0:
            continue
        a = sample(shape, dtype)
        plan = single(k, [a], [(dtype, (N[0], N[1]))], (N[0], N[1]))
        want = np.exp(a - a.max(axis, keepdims=True))
        want /= want.sum(axis, keepdims=True)
        got = run(plan, a, threads=2)[0]
        np.testing.assert_allclose(got, want, rtol=20 * np.finfo(dtype).eps)


def test_invariants_leave_the_loop() -> None:
    """exp(y[i]) is computed once a row, exp(scalar) once a chunk."""
    k = KernelBuilder([S[0], S[1]], (0, 1), [("f8", "in"), ("f8", "in"), ("f8", "out")], ["f8"])
    row_value = k.apply(EXP, "f8", k.load(1, {0: 1}))
    fixed = k.apply(EXP, "f8", k.scalar(0, "f8"))
    x = k.load(0, {0: S[1], 1: 1})
    k.store(2, {0: S[1], 1: 1}, k.apply(MULTIPLY, "f8", k.apply(ADD, "f8", x, row_value), fixed))
    a, b = sample((5, 6), "f8"), sample(5, "f8", 1)
    plan = single(k, [a, b, 0.5], [("f8", (N[0], N[1]))], (N[0], N[1]))
    text = print_functions(plan)
    loop = text[text.index("#pragma omp simd") :]
    assert "nj_exp" in text and "nj_exp" not in loop
    np.testing.assert_allclose(
        run(plan, a, b, 0.5)[0], (a + np.exp(b)[:, None]) * np.exp(0.5), rtol=1e-14
    )


@pytest.mark.parametrize("function", [np.sin, np.cos])
def test_quick_forms_where_all_arguments_suit(function: Any) -> None:
    """Strips with and without arguments that the quick form of a function cannot take."""
    op = UFUNCS[function]
    k = KernelBuilder([S[0]], (0,), [("f4", "in"), ("f4", "in"), ("f4", "out")])
    angle = k.apply(ADD, "f4", k.load(0, {0: 1}), k.load(1, {0: 1}))
    k.store(2, {0: 1}, k.apply(op, "f4", angle))
    a = sample(6000, "f4") * np.float32(1000)
    a[:3] = -0.0, 0.0, 355.0
    a[2000:2008] = 1e4, -8192, 1e10, 3e38, np.inf, -np.inf, np.nan, 8191
    b = np.zeros_like(a)
    b[0] = -0.0
    plan = single(k, [a, b], [("f4", (N[0],))], (N[0],))
    assert print_functions(plan).count(f"nj_near_{function.__name__}") == 1
    with np.errstate(invalid="ignore"):
        want = function(a + b)
    assert_equal_numpy(run(plan, a, b, threads=2)[0], want, ulp=TRANSCENDENTAL)


def test_quick_forms_need_light_arguments() -> None:
    k = KernelBuilder([S[0]], (0,), [("f4", "in"), ("f4", "out")])
    k.store(1, {0: 1}, k.apply(UFUNCS[np.sin], "f4", k.apply(EXP, "f4", k.load(0, {0: 1}))))
    plan = single(k, [sample(9, "f4")], [("f4", (N[0],))], (N[0],))
    assert "nj_near" not in print_functions(plan)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_constants_are_exact(dtype: str) -> None:
    kind = np.dtype(dtype)
    info = np.finfo(kind)
    values = [0.1, -0.0, np.inf, -np.inf, np.nan, -np.nan, info.tiny, info.max, 1 / 3, 5e-8, -1.5]
    k = KernelBuilder([S[0]], (0,), [(dtype, "out")] * len(values) + [(dtype, "in")])
    for i, v in enumerate(values):
        k.store(i, {0: 1}, k.const(v, dtype))
    a = np.zeros(3, dtype)
    plan = single(k, [a], [(dtype, (N[0],))] * len(values), (N[0],))
    for got, v in zip(run(plan, a), values, strict=True):
        assert got.tobytes() == np.full(3, v, kind).tobytes()


def test_integer_constants() -> None:
    shown = {("i8", -(2**63)): "(-9223372036854775807LL - 1)", ("u8", 2**64 - 1): f"{2**64 - 1}ULL"}
    shown |= {("i1", -5): "i8(-5)", ("i4", -(2**31)): "(-2147483647 - 1)", ("?", True): "true"}
    for (dtype, value), text in shown.items():
        assert constant(Literal.of(value, np.dtype(dtype))) == text
    assert planes(Literal.of(1 - 2j, np.dtype("c8"))) == ("1.0f", "(-2.0f)")


def test_neighbours_of_large_arrays_are_read_by_half_lines() -> None:
    k = KernelBuilder([S[0], S[1]], (0, 1), [("f4", "in"), ("f4", "out")])
    left = k.load(0, {0: S[2], 1: 1})
    right = k.load(0, {0: S[2], 1: 1}, 2)
    k.store(1, {0: S[1], 1: 1}, k.apply(SUBTRACT, "f4", right, left))
    for shape in ((5, 40), (3, 300_000)):
        a = sample(shape, "f4")
        plan = single(k, [a], [("f4", (N[0], N[1] - 2))], (N[0], N[1] - 2, N[1]))
        text = print_functions(plan)
        assert "nj_are_close({0, 2})" in text and "simdlen(8)" in text
        np.testing.assert_array_equal(run(plan, a, threads=2)[0], a[:, 2:] - a[:, :-2])
