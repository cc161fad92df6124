"""Windows of neighbouring elements under the emulator: shapes, alignments, dtypes, and what has
none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from benches.gpu import workloads
from tests.cuda import fake_cupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cupy.install(monkeypatch)


def normal(dtype: str, *shape: int) -> Any:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * 8).astype(dtype)


def has_window(cupy: Any, function: Any, *args: Any) -> bool:
    given = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    return "nj_more(count" in npjit.jit(function).lower(*given).as_text("cuda")


def heat(x):
    return (
        x[1:-1, 1:-1, 2:] - 2 * x[1:-1, 1:-1, 1:-1] + x[1:-1, 1:-1, :-2] + x[1:-1, 2:, 1:-1]
    ) + x[1:-1, :-2, 1:-1]


def far(x, y):
    return x[:-3, 4:] + x[3:, :-4] * y[3:, 4:] - x[1:-2, 2:-2]


def seven_points(x):
    middle = x[1:-1, 1:-1, 1:-1]
    return (
        (x[2:, 1:-1, 1:-1] - 2 * middle + x[:-2, 1:-1, 1:-1])
        + (x[1:-1, 2:, 1:-1] - 2 * middle + x[1:-1, :-2, 1:-1])
        + (x[1:-1, 1:-1, 2:] - 2 * middle + x[1:-1, 1:-1, :-2])
    )


def along_rows(x):
    return x[:, 2:] - x[:, 1:-1] + x[:, :-2]


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1"])
def test_two_axes(cupy: Any, dtype: str) -> None:
    for function in (workloads.jacobi, along_rows):
        jitted = npjit.jit(function, fullgraph=True)
        for shape in ((3, 3), (6, 67), (19, 40)):
            x = normal(dtype, *shape)
            np.testing.assert_allclose(jitted(cupy.asarray(x)).get(), function(x), rtol=1e-12)
        assert has_window(cupy, function, x)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1"])
def test_windows_of_any_width(cupy: Any, dtype: str) -> None:
    """Behind a thread's own columns stand 2 to 4 more."""
    for width in (3, 4, 5):

        def filtered(x: Any, n: Any = width) -> Any:
            return sum(x[:, i : x.shape[1] - n + 1 + i] * (i + 1) for i in range(n))

        for columns in (width, 9, 38):
            x = normal(dtype, 7, columns)
            got = npjit.jit(filtered, fullgraph=True)(cupy.asarray(x)).get()
            np.testing.assert_allclose(got, filtered(x), rtol=1e-12)
        assert has_window(cupy, filtered, x)


def test_three_axes_and_two_arrays(cupy: Any) -> None:
    for function in (heat, seven_points):
        for shape in ((5, 4, 9), (3, 20, 66)):
            x = normal("f4", *shape)
            got = npjit.jit(function, fullgraph=True)(cupy.asarray(x))
            np.testing.assert_array_equal(got.get(), function(x))
        assert has_window(cupy, function, normal("f4", 20, 20, 20))
    x, y = normal("f8", 20, 70), normal("f8", 20, 70)
    got = npjit.jit(far, fullgraph=True)(cupy.asarray(x), cupy.asarray(y))
    np.testing.assert_allclose(got.get(), far(x, y), rtol=1e-12)
    assert has_window(cupy, far, x, y)


def relax(x, n):
    y = x.copy()
    for _ in range(n):
        x[1:-1, 1:-1] = 0.25 * (y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:])
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return y


def test_steps_in_place(cupy: Any) -> None:
    x = normal("f8", 20, 37)
    want, given = x.copy(), cupy.asarray(x.copy())
    result = npjit.jit(relax, fullgraph=True)(given, 20)
    np.testing.assert_allclose(result.get(), relax(want, 20), rtol=1e-12)
    np.testing.assert_allclose(given.get(), want, rtol=1e-12)
    assert has_window(cupy, relax, x, 20)


def test_what_has_no_window(cupy: Any) -> None:
    x = normal("f4", 40, 60)
    assert not has_window(cupy, lambda x: x[1:, 1:] + x[:-1, :-1], x)
    assert not has_window(cupy, lambda x: x[20:, 9:] + x[:-20, 9:] + x[10:-10, 9:], x)
    assert not has_window(cupy, lambda x: x[1:-1].T + x[2:].T + x[:-2].T, x)
