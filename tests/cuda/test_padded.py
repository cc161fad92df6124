"""Products of 16 bits whose rows lie between boundaries, under the emulator: in padded rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npjit.backends import cuda_padded
from npjit.backends.cuda_device import Region
from npjit.backends.cuda_padded import in_padded_rows
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
    assert [r.shape for r in padded] == [(5, 16), (16, 8), (5, 8)]
    assert [r.strides for r in padded] == [(16, 1), (8, 1), (8, 1)]
    monkeypatch.setattr(cuda_padded, "_LARGE", 6)
    assert in_padded_rows(*regions(5, 9, 7)) is None
