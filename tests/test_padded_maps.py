"""Values with padding in one kernel: concatenation, roll and zero borders, compiled.

Where one range of the vector axis decides about all padding, the kernel's inner loop is three
loops; complex elements are loaded by an opaque choice, as g++ 12 would swap their planes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import check_calls

DTYPES = [np.int8, np.float32, np.float64, np.complex64, np.complex128, np.bool_]


def border(x):
    out = np.zeros(x.shape, x.dtype)
    out[1:-1, 2:] = x[:-2, :-2] ^ x[2:, 2:] if x.dtype == bool else x[:-2, :-2] - x[2:, 2:]
    return out == x


def one_side(x):
    out = np.zeros(x.shape, x.dtype)
    out[:, 3:] = x[:, :-3]
    return out


def two_borders(x):
    a = np.zeros(x.shape, x.dtype)
    b = np.zeros(x.shape, x.dtype)
    a[:, 1:] = x[:, :-1]
    b[:, :-2] = x[:, 2:]
    return a * b


def two_rows(x):
    a = np.zeros(x.shape, x.dtype)
    b = np.zeros(x.shape, x.dtype)
    a[1:] = x[:-1]
    b[:-1] = x[1:]
    return a * b


def halves(x):
    return np.concatenate((x[:, :2] * x[:, -2:], x[:, :2]), axis=0)


def butterfly(x):
    half = x.shape[1] // 2
    turn = (np.arange(x.shape[0]) + 1j)[:, None]
    low, high = x[:, :half], x[:, half : 2 * half]
    y = np.concatenate((low + high, low * high), axis=0)
    turn = np.concatenate((turn, -turn), axis=0)
    even, odd = y[:, : half // 2], turn * y[:, half // 2 : 2 * (half // 2)]
    return np.concatenate((even + odd, even * odd), axis=0)


def rolled(x):
    return np.roll(x, 1, axis=1) * np.roll(x, -1, axis=0)


def backwards(x):
    return np.roll(x[::-1], 2, axis=0) * np.roll(x[:, ::-1], -1, axis=0)


def rolled_far(x):
    return np.roll(x, 70, axis=1) * np.roll(x, (-2, -1), axis=(0, 1))


FUNCTIONS = [
    border,
    one_side,
    two_borders,
    two_rows,
    halves,
    butterfly,
    rolled,
    rolled_far,
    backwards,
]


def arguments(dtype: Any, shape: tuple[int, int]) -> Any:
    # small integers: every sum and product of them is exact
    rng = np.random.default_rng(shape[1])
    values = rng.integers(-4, 5, shape).astype(dtype)
    if values.dtype.kind == "c":
        values += 1j * rng.integers(-4, 5, shape).astype(values.real.dtype)
    return values


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_padded(f: Callable[..., Any], dtype: Any) -> None:
    compiled = npjit.jit(f, dynamic=True)
    for shape in [(3, 4), (5, 67), (40, 133)]:
        check_calls(compiled, arguments(dtype, shape), calls=1)


def test_masked_rows_stay_inside() -> None:
    """Where a whole row is padding, its masked loads leave their offset out: they are slow at
    addresses that are not mapped."""
    x = np.ones((40, 133))
    text = npjit.jit(two_rows).lower(x).as_text("cpp")
    loads = re.findall(r"< end\w+\)\) \? mem\d+\[(.*?)\]", text)
    assert loads
    assert all(re.search(r" \+ offset\w+$", index) for index in loads), loads


@pytest.mark.parametrize("f", [rolled, backwards])
def test_a_roll_is_one_load(f: Callable[..., Any]) -> None:
    """Each element is read at one of two places: nothing is masked, and where the place depends on
    the vector axis, the loop is cut where it changes."""
    text = npjit.jit(f).lower(np.ones((40, 133))).as_text("cpp")
    assert " ? mem" not in text and "nj_select(" not in text.split("_chunk(")[1]
    assert ("nj_cut(part" in text) == (f is rolled)
