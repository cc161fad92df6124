"""Operands read across memory for every row are packed once a strip; results stay the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npjit.codegen.cpp import print_kernel
from npjit.codegen.cpp_outer import LanesPrinter
from npjit.codegen.cpp_packed import PackedPrinter, printer_of
from tests.plan_runner import MULTIPLY, KernelBuilder, N, S, run, single

TAPS = 3


def products(dtype: str, turned: bool = False) -> KernelBuilder:
    """out[i, j] = sum over k of a[i, k] * b[j, k]; `turned`: b[k, j]."""
    k = KernelBuilder([S[0], S[1], TAPS], (0, 1), [(dtype, "in"), (dtype, "in"), (dtype, "out")])
    k.phase(2)
    a = k.load(0, {0: TAPS, 2: 1})
    b = k.load(1, {1: 1, 2: S[1]} if turned else {1: TAPS, 2: 1})
    total = k.reduce("sum", dtype, k.apply(MULTIPLY, dtype, a, b))
    k.phase()
    k.store(2, {0: S[1], 1: 1}, total)
    return k


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
@pytest.mark.parametrize(
    ("rows", "columns"), [(0, 4), (4, 0), (1, 1), (3, 300), (257, 129), (1, 5000), (700, 128)]
)
def test_strips(dtype: str, rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    a: Any = rng.integers(-9, 9, (rows, TAPS)).astype(dtype)
    b: Any = rng.integers(-9, 9, (columns, TAPS)).astype(dtype)
    k = products(dtype)
    plan = single(k, [a, b], [(dtype, (N[0], N[2]))], (N[0], N[2]))
    np.testing.assert_array_equal(run(plan, a, b, threads=2)[0], a @ b.T)


def test_only_what_lies_across_is_packed() -> None:
    assert printer_of(products("f8").kernel(2)) is PackedPrinter
    assert printer_of(products("f8", turned=True).kernel(2)) is LanesPrinter
    assert "128*x2" in print_kernel(products("f8").kernel(2), "k0")
