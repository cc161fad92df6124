"""Sums along columns of which there are few, a literal number: they are one strip of lanes."""

from __future__ import annotations

import numpy as np
import pytest

from npjit.codegen.cpp import print_kernel
from tests.plan_runner import KernelBuilder, N, S, run, single
from tests.test_cpp_reduce import DTYPES, STYLES, agree, expected, has_value, result_dtype, sample
from tests.test_cpp_repeated import repeated


def few_columns(style: str, dtype: str, columns: int) -> KernelBuilder:
    k = KernelBuilder([S[0], columns], (1,), [(dtype, "in"), (result_dtype(style, dtype), "out")])
    k.phase(0)
    total = k.reduce(style, result_dtype(style, dtype), k.load(0, {0: columns, 1: 1}))
    k.phase()
    k.store(1, {1: 1}, total)
    return k


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("style", STYLES)
def test_few_columns(style: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    result = result_dtype(style, dtype)
    for columns, lengths in ((3, (0, 1, 5, 300, 40000)), (16, (7, 2000))):
        k = few_columns(style, dtype, columns)
        for rows in lengths:
            x = sample(rng, (rows, columns), dtype, style)
            if not has_value(style, rows):
                continue
            plan = single(k, [x], [(result, (columns,))], (N[0],))
            want = expected(style, x, 0, dtype)
            for made in (plan, repeated(plan)):
                agree(style, run(made, x, threads=2)[0], want, x, max(rows, 1))


def test_other_numbers_of_columns_are_strips() -> None:
    assert "k0_near<3>(" in print_kernel(few_columns("sum", "f8", 3).kernel(1), "k0")
    assert "k0_near" not in print_kernel(few_columns("sum", "f8", 17).kernel(1), "k0")
