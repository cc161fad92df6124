"""Divisions and roots without branches (`cuda_usual`), under the emulator: NumPy's bits, whatever
the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from tests.cuda import fake_cupy

# 0, the least and the largest numbers, one beyond what is usual on either side
ODD = np.array(
    [0, -0.0, 1e-45, 1.2e-38, 3.4e38, np.inf, np.nan, -3, 2.0**-63, 2.0**-64, 2.0**64, 2.0**65],
    "f4",
)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cupy.install(monkeypatch)


def quotients(a, b):
    one = np.float32(1)
    return a / b, one / b, np.sqrt(a), b / np.sqrt(a), np.float32(3) / (a + b)


def halved(a, b):
    a[::2] /= b[::2] / (np.sqrt(b[::2]) + 1 / (2 / b[::2] + np.sqrt(a[::2])))
    return a * 1


def usual(count: int) -> Any:
    rng = np.random.default_rng(count)
    return (10 ** rng.uniform(-18, 18, count)).astype("f4")


@pytest.mark.parametrize("fastmath", [None, "contract", "approx"])
def test_only_exact_ones_are_made_so(cupy: Any, fastmath: str | None) -> None:
    given = [cupy.asarray(usual(8))] * 2
    text = npjit.jit(quotients, fastmath=fastmath).lower(*given).as_text("cuda")
    assert ("nj_quotient(usual" in text) is (fastmath != "approx")


def test_few_divisions_have_their_branches(cupy: Any) -> None:
    given = [cupy.asarray(usual(8))] * 2
    assert "usual" not in npjit.jit(lambda a, b: a / b).lower(*given).as_text("cuda")


def test_bits_are_numpys(cupy: Any) -> None:
    jitted = npjit.jit(quotients, fullgraph=True)
    others = np.concatenate([usual(1003), ODD, usual(50), -usual(60)])
    pairs = np.stack(np.meshgrid(ODD, ODD)).reshape(2, -1)
    for a, b in ((usual(1000), usual(999)[:1000]), (others, others[::-1].copy()), pairs):
        a, b = a[: len(b)].copy(), b[: len(a)].copy()
        with np.errstate(all="ignore"):
            want = quotients(a, b)
        for g, w in zip(jitted(cupy.asarray(a), cupy.asarray(b)), want, strict=True):
            np.testing.assert_array_equal(g.get(), w)
            signs = (np.signbit(np.nan_to_num(v)) for v in (g.get(), w))
            np.testing.assert_array_equal(*signs)


def test_what_is_overwritten_is_read_once(cupy: Any) -> None:
    a, b = usual(40), usual(41)[:40].copy()
    b[6] = 0
    given = cupy.asarray(a)
    with np.errstate(all="ignore"):
        npjit.jit(halved, fullgraph=True)(given, cupy.asarray(b))
        halved(a, b)
    np.testing.assert_array_equal(given.get(), a)
