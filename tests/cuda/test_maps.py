"""Printed CUDA kernels without reductions against NumPy, under the emulator: views, bounds, types,
alignment."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from tests.cuda.emulate import run, run_all
from tests.plan_runner import ADD, CAST, MULTIPLY, SIN, KernelBuilder, N, S, single

SIZES = (0, 1, 3, 4, 5, 129, 1000)
DTYPES = ("?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16")


def values(shape: Any, dtype: str) -> Any:
    rng = np.random.default_rng(3)
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return (rng.integers(-50, 50, shape) / 4).astype(dtype)


@pytest.mark.parametrize("shift", [0, 4, 8])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sum_of_three(dtype: str, shift: int) -> None:
    kind = np.dtype(dtype).kind
    on_gpu = "NPJIT_TEST_GPU" in os.environ
    if shift % (np.dtype(dtype).itemsize if on_gpu else np.dtype(dtype).alignment):
        pytest.skip("arrays are aligned to their own type")
    k = KernelBuilder([S[0]], (0,), [(dtype, "in"), (dtype, "in"), (dtype, "out")])
    op = MULTIPLY if kind == "c" else ADD
    total = k.apply(op, dtype, k.load(0, {0: 1}), k.load(1, {0: 1}))
    k.store(2, {0: 1}, total)
    calls = [(values(n, dtype), values(n, dtype)[::-1].copy()) for n in SIZES]
    plan = single(k, calls[0], [(dtype, (N[0],))], (N[0],))
    for (x, y), (got,) in zip(calls, run_all(plan, calls, shift), strict=True):
        want = (x | y) if kind == "b" else x * y if kind == "c" else x + y
        if kind == "c":
            np.testing.assert_allclose(got, want, rtol=1e-5 if dtype == "c8" else 1e-14)
        else:
            np.testing.assert_array_equal(got, want.astype(dtype))


def test_types_mix() -> None:
    """Lanes are as many as all types of a kernel allow."""
    buffers = [("?", "in"), ("f8", "in"), ("f2", "in"), ("i1", "out"), ("f8", "out")]
    k = KernelBuilder([S[0]], (0,), buffers)
    flag = k.apply(CAST, "f8", k.load(0, {0: 1}))
    total = k.apply(ADD, "f8", flag, k.load(1, {0: 1}))
    total = k.apply(ADD, "f8", total, k.apply(CAST, "f8", k.load(2, {0: 1})))
    k.store(4, {0: 1}, total)
    k.store(3, {0: 1}, k.apply(CAST, "i1", total))
    calls = [(values(n, "?"), values(n, "f8"), values(n, "f2")) for n in SIZES]
    plan = single(k, calls[0], [("i1", (N[0],)), ("f8", (N[0],))], (N[0],))
    for (a, b, c), (small, large) in zip(calls, run_all(plan, calls), strict=True):
        np.testing.assert_array_equal(large, a + b + c)
        np.testing.assert_array_equal(small, (a + b + c).astype("i1"))


def test_broadcast_reversed_and_strided() -> None:
    k = KernelBuilder(
        [S[0], S[1]], (0, 1), [("f4", "in"), ("f4", "in"), ("f4", "in"), ("f4", "out")]
    )
    row = k.load(0, {1: 1})
    turned = k.load(1, {0: -S[1], 1: -1}, S[2])
    spread = k.load(2, {0: 2 * S[1], 1: 2})
    k.store(3, {0: S[1], 1: 1}, k.apply(ADD, "f4", row, k.apply(ADD, "f4", turned, spread)))
    calls = []
    for n, m in [(1, 1), (3, 5), (7, 64), (33, 130), (0, 4)]:
        calls.append((values(m, "f4"), values((n, m), "f4"), values(n * m * 2, "f4")))
    sizes = (N[1], N[2], N[1] * N[2] - 1)
    plan = single(k, calls[0], [("f4", (N[1], N[2]))], sizes)
    for (x, y, z), (got,) in zip(calls, run_all(plan, calls), strict=True):
        np.testing.assert_array_equal(got, x + (y[::-1, ::-1] + z[::2].reshape(y.shape)))


@pytest.mark.parametrize("dtype", ["?", "f2", "f4", "f8", "c8"])
def test_transposes_go_through_tiles(dtype: str) -> None:
    buffers = [(dtype, "in"), (dtype, "in"), (dtype, "out")]
    k = KernelBuilder([S[0], S[1], S[2]], (0, 1, 2), buffers)
    plane = S[1] * S[2]
    turned = k.load(0, {0: plane, 2: S[1], 1: 1})
    plain = k.load(1, {0: plane, 1: S[2], 2: 1})
    k.store(2, {0: plane, 1: S[2], 2: 1}, k.apply(ADD, dtype, turned, plain))
    calls = []
    for b, n, m in [(1, 64, 64), (2, 70, 36), (1, 1, 90), (3, 16, 16), (1, 65, 129)]:
        calls.append((values((b, m, n), dtype), values((b, n, m), dtype)))
    plan = single(k, calls[0], [(dtype, (N[3], N[4], N[5]))], (N[3], N[4], N[5]))
    for shift in (0, 8):
        for (x, y), (got,) in zip(calls, run_all(plan, calls, shift), strict=True):
            want = x.swapaxes(1, 2) | y if dtype == "?" else x.swapaxes(1, 2) + y
            np.testing.assert_array_equal(got, want)


def test_bounds_are_kept() -> None:
    """A pad: outside its bounds a load is zero and touches nothing."""
    k = KernelBuilder([S[0]], (0,), [("f8", "in"), ("f8", "out")])
    padded = k.load(0, {0: 1}, offset=-2, within=[(0, 2, S[1])])
    k.store(1, {0: 1}, k.apply(SIN, "f8", padded))
    calls = [(values(n, "f8"),) for n in (1, 2, 50)]
    plan = single(k, calls[0], [("f8", (N[0] + 5,))], (N[0] + 5, N[0] + 2))
    for (x,), (got,) in zip(calls, run_all(plan, calls), strict=True):
        np.testing.assert_allclose(got, np.sin(np.pad(x, (2, 3))), rtol=1e-15)


@pytest.mark.parametrize("per_row", [True, False])
def test_gathers(per_row: bool) -> None:
    k = KernelBuilder([S[0], S[1]], (0, 1), [("f4", "in"), ("i8", "in"), ("f4", "out")])
    index = k.load(1, {0: 1} if per_row else {1: 1})
    if per_row:
        found = k.load(0, {1: 1}, gathers=[(index, S[1])])
    else:
        found = k.load(0, {0: S[1]}, gathers=[(index, 1)])
    k.store(2, {0: S[1], 1: 1}, found)
    table = values((9, 40), "f4")
    index = np.random.default_rng(0).integers(0, 9 if per_row else 40, 9 if per_row else 40)
    plan = single(k, [table, index], [("f4", (N[0], N[1]))], (N[0], N[1]))
    (got,) = run(plan, table, index)
    np.testing.assert_array_equal(got, table[index] if per_row else table[:, index])


@pytest.mark.parametrize(
    "value", [np.float32(2.5), np.int16(-3), np.uint64(2**63), np.complex64(1 + 2j)]
)
def test_scalars(value: Any) -> None:
    dtype = value.dtype.str[1:]
    k = KernelBuilder([S[0]], (0,), [(dtype, "in"), (dtype, "out")], scalars=[dtype])
    k.store(1, {0: 1}, k.apply(MULTIPLY, dtype, k.load(0, {0: 1}), k.scalar(0, dtype)))
    x = values(50, dtype)
    plan = single(k, [x, value], [(dtype, (N[0],))], (N[0],))
    (got,) = run(plan, x, value)
    np.testing.assert_array_equal(got, x * value)


def test_wide_indices_where_narrow_ones_do_not_reach() -> None:
    from npjit.codegen.cuda import print_cuda

    k = KernelBuilder([S[0]], (0,), [("f4", "in"), ("f4", "out")])
    k.store(1, {0: 1}, k.load(0, {0: 1}))
    module = print_cuda(single(k, [np.ones(3, "f4")], [("f4", (N[0],))], (N[0],)))
    names = [module.configure(0, (n,), {}).starts[0].function for n in (2**29, 2**31)]
    assert "<i32" in names[0] and "<i64" in names[1]
