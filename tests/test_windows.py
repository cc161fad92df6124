"""np.lib.stride_tricks.sliding_window_view: values, errors, gradients, memory that is shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit

windows = np.lib.stride_tricks.sliding_window_view
LINE = np.random.default_rng(0).standard_normal(50)
PLANE = np.random.default_rng(1).standard_normal((12, 15))
IMAGES = np.random.default_rng(2).standard_normal((2, 3, 9, 8))
WEIGHTS = np.random.default_rng(3).standard_normal((5, 3, 2, 3))


def convolved(x, w):
    return np.einsum("nchwij,ocij->nohw", windows(x, w.shape[2:], axis=(2, 3)), w)


def read_before(x):
    y = x * 1
    sums = windows(y, 3).sum(axis=1)
    y[0] = 7.0
    return sums + y[2:]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: windows(x, 5).mean(axis=-1), (LINE,)),
        (lambda x, n: windows(x, n)[::3] * np.arange(n), (LINE, 8)),
        (lambda x: np.abs(np.fft.rfft(windows(x, 8)[::4])), (LINE,)),
        (lambda x: windows(x, (3, 2)).max(axis=(2, 3)), (PLANE,)),
        (lambda x: windows(x, 4, axis=0).sum(axis=-1), (PLANE,)),
        (lambda x: windows(x, 4, axis=-1).sum(axis=-1), (PLANE,)),
        (lambda x: windows(x, (2, 3), axis=(0, 0)).sum(axis=(-1, -2)), (PLANE,)),
        (lambda x: windows(x[::2, 1:], (2, 2)).sum(axis=(0, 1)), (PLANE,)),
        (convolved, (IMAGES, WEIGHTS)),
        (read_before, (LINE,)),
    ],
)
def test_values(function: Any, args: Any) -> None:
    got, want = npjit.jit(function, fullgraph=True)(*args), function(*args)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def written(x):
    y = x * 1
    seen = windows(y, 3)
    y[0] = 7.0
    return seen.sum(axis=1)


def test_memory_is_shared() -> None:
    """What is written shows in the windows, and windows of an argument are its memory."""
    np.testing.assert_allclose(npjit.jit(written)(LINE), written(LINE))
    assert np.shares_memory(npjit.jit(lambda x: windows(x, 3))(LINE), LINE)


@pytest.mark.parametrize("extent", [60, -1, (2, 2)])
def test_errors(extent: Any) -> None:
    with pytest.raises(ValueError, match="window") as theirs:
        windows(LINE, extent)
    with pytest.raises(ValueError, match="window") as mine:
        npjit.jit(lambda x: windows(x, extent).sum())(LINE)
    assert str(mine.value) == str(theirs.value)


def test_gradients() -> None:
    def loss(x, w):
        return np.sum(convolved(x, w) ** 2)

    for k, g in enumerate(npjit.grad(loss, argnums=(0, 1))(IMAGES, WEIGHTS)):
        step = np.random.default_rng(k).standard_normal(g.shape) * 1e-6
        moved = [a + step if i == k else a for i, a in enumerate((IMAGES, WEIGHTS))]
        back = [a - step if i == k else a for i, a in enumerate((IMAGES, WEIGHTS))]
        np.testing.assert_allclose(np.sum(g * step), (loss(*moved) - loss(*back)) / 2, rtol=1e-6)
