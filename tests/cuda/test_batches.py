"""Products of several batch axes, as cuBLAS takes them: one axis where they follow each other, some
products where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from tests.cuda import fake_cupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    def refuse(self: Any, *regions: Any) -> None:
        raise AssertionError("a product that cuBLAS does not take")

    monkeypatch.setattr(fake_cupy.ArrayDevice, "multiply", refuse)
    return fake_cupy.install(monkeypatch)


def plain(a, b):
    return a @ b


def heads(x, w):
    b, n, d = x.shape

    def split(z):
        return z.reshape(b, n, 4, d // 4).transpose(0, 2, 1, 3)

    return split(x @ w) @ split(x).swapaxes(-1, -2)


def normal(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape)


@pytest.mark.parametrize(
    ("function", "a", "b"),
    [
        (plain, normal(3, 4, 5, 6), normal(3, 4, 6, 7)),
        (plain, normal(3, 4, 5, 6), normal(4, 6, 7)),
        (plain, normal(3, 1, 5, 6), normal(1, 4, 6, 7)),
        (plain, normal(2, 3, 4, 5, 6), normal(2, 1, 4, 6, 7)),
        (plain, normal(70, 2, 5, 6)[:, ::-1], normal(70, 2, 6, 7)),
        (heads, normal(3, 10, 16), normal(16, 16)),
    ],
)
def test_batches(cupy: Any, function: Any, a: Any, b: Any) -> None:
    got = npjit.jit(function, fullgraph=True)(cupy.asarray(a), cupy.asarray(b)).get()
    np.testing.assert_allclose(got, function(a, b), rtol=1e-10, atol=1e-12)
