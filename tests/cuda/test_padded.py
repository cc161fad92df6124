"""Products of 16 bits whose rows lie between boundaries, under the emulator: in padded rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npjit.backends import cuda_padded
from npjit.backends.cuda_device import Region
from npjit.backends.cuda_padded import in_padded_rows
from npjit.schedule.plan import Contract
from tests.cuda import emulate
from tests.cuda.test_attention import BRAIN, HALF, normal, planned


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_padded, "_LARGE", 4)


def plain(x: Any, w: Any) -> Any:
    return x @ w


def turned(x: Any, w: Any) -> Any:
    return np.tanh(w.swapaxes(-1, -2) @ x.swapaxes(-1, -2))


def rows_apart(x: Any, w: Any) -> Any:
    return x[..., ::-1, :] @ w[..., 1:] + 1


def one_for_all(x: Any, w: Any) -> Any:
    return x @ w[0]


def with_bias(x: Any, w: Any) -> Any:
    return np.tanh(x @ w + np.arange(w.shape[-1], dtype="f4"))


def row_sums(x: Any, w: Any) -> Any:
    return (x @ w).sum(axis=-1)


def stored(x: Any, w: Any) -> Any:
    made = np.ones((*x.shape[:-1], -(-w.shape[-1] // 8) * 8), dtype="f4")
    made[..., : w.shape[-1]] = x @ w
    return made


def reshaped(x: Any, w: Any) -> Any:
    return np.tanh((x @ w).reshape(-1))


@pytest.mark.parametrize("dtype", [BRAIN, HALF])
@pytest.mark.parametrize("function", [with_bias, row_sums, stored, reshaped])
@pytest.mark.parametrize("shape", [(5, 9, 7), (16, 12, 33), (8, 16, 24), (3, 2, 5)])
def test_results_are_read_where_they_lie(function: Any, shape: Any, dtype: Any) -> None:
    m, k, n = shape
    x, w = normal(3, m, k, dtype=dtype), normal(3, k, n, dtype=dtype, seed=1)
    plan, inputs = planned(lambda x, w: function(x.astype("f4"), w.astype("f4")), x, w)
    (product,) = [s for s in plan.steps if isinstance(s, Contract)]
    assert (product.spare != 0) == (function in (with_bias, row_sums))
    (got,) = emulate.run(plan, *inputs, shift=2)
    np.testing.assert_allclose(got, function(x.astype("f4"), w.astype("f4")), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [BRAIN, HALF])
@pytest.mark.parametrize("shape", [(5, 9, 7), (8, 16, 24), (3, 2, 5)])
@pytest.mark.parametrize("function", [plain, np.dot, lambda x, w: np.tanh((x @ w).astype(x.dtype))])
def test_what_is_rounded_at_once_is_written_so(function: Any, shape: Any, dtype: Any) -> None:
    m, k, n = shape
    x, w = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype, seed=1)
    plan, inputs = planned(lambda x, w: function(x, w).astype(x.dtype), x, w)
    (product,) = [s for s in plan.steps if isinstance(s, Contract)]
    assert product.dtype == product.factors == dtype
    (got,) = emulate.run(plan, *inputs)
    want = function(x.astype("f4"), w.astype("f4"))
    assert got.dtype == dtype
    ulp = 2.0 ** (-8 if dtype == BRAIN else -11)
    np.testing.assert_allclose(got.astype("f4"), want, rtol=2 * ulp, atol=2 * ulp)


@pytest.mark.parametrize("dtype", [BRAIN, HALF])
@pytest.mark.parametrize("function", [plain, turned, rows_apart, one_for_all])
@pytest.mark.parametrize("shape", [(5, 9, 7), (16, 12, 33), (8, 16, 24)])
def test_results_are_those_of_float32(function: Any, shape: Any, dtype: Any) -> None:
    m, k, n = shape
    x, w = normal(3, m, k, dtype=dtype), normal(3, k, n, dtype=dtype, seed=1)
    plan, inputs = planned(lambda x, w: function(x.astype("f4"), w.astype("f4")), x, w)
    (got,) = emulate.run(plan, *inputs, shift=2)
    np.testing.assert_allclose(got, function(x.astype("f4"), w.astype("f4")), rtol=1e-5, atol=1e-5)


def regions(m: int, k: int, n: int, address: int = 0) -> list[Region]:
    shapes = ((m, k), (k, n), (m, n))
    made = [Region(address, BRAIN, s, (s[1], 1)) for s in shapes]
    return [*made[:2], Region(0, np.dtype("f4"), shapes[2], (n, 1))]


def test_only_what_lies_between_boundaries_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_padded_rows(*regions(5, 16, 24)) is None
    assert in_padded_rows(*regions(8, 16, 24, address=8)) is not None
    padded = in_padded_rows(*regions(5, 9, 7))
    assert padded is not None
    assert [r and r.shape for r in padded] == [(5, 16), (16, 8), (5, 8)]
    assert [r and r.strides for r in padded] == [(16, 1), (8, 1), (8, 1)]
    padded = in_padded_rows(*regions(5, 16, 9))
    assert padded is not None and padded[0] is None
    assert [r and r.shape for r in padded[1:]] == [(16, 16), (5, 16)]
    monkeypatch.setattr(cuda_padded, "_LARGE", 6)
    assert in_padded_rows(*regions(5, 9, 7)) is None
