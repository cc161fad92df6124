"""The sum of squared distances from the mean, in one pass: every form of kernel, Numba, np.var."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.codegen.cpp_form import Form, choose
from npjit.codegen.numba_printer import load_numba
from npjit.core.size import Size
from tests.plan_runner import N, run, single
from tests.test_cpp_reduce import columns_kernel, lanes_kernel, rows_kernel, whole_kernel

# form, maker of its kernel, shape, sizes, shape of the result, reduced axes
CASES: list[tuple[Form, Any, tuple[int, ...], tuple[Size, ...], tuple[Size, ...], Any]] = [
    (Form.ROWS, rows_kernel, (3, 5000), (N[0], N[1]), (N[0],), 1),
    (Form.ROWS, rows_kernel, (2, 1), (N[0], N[1]), (N[0],), 1),
    (Form.COLUMNS, columns_kernel, (700, 5), (N[0], N[1]), (N[1],), 0),
    (Form.LANES, lanes_kernel, (40, 2, 3), (N[0],), (N[0],), (1, 2)),
    (Form.WHOLE, whole_kernel, (300, 431), (N[0], N[1]), (), None),
    (Form.WHOLE, whole_kernel, (0, 4), (N[0], N[1]), (), None),
]


def squares(x: Any, axis: Any) -> Any:
    """In double precision, whatever x is."""
    wide = x.astype("f8")
    mean = wide.mean(axis=axis, keepdims=True) if x.size else 0.0
    return np.square(wide - mean).sum(axis=axis)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("form", "maker", "shape", "sizes", "result", "axis"), CASES)
def test_forms(
    form: Form,
    maker: Callable[..., Any],
    shape: Any,
    sizes: Any,
    result: Any,
    axis: Any,
    dtype: str,
) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 3 + 1000).astype(dtype)
    k = maker("deviation", dtype)
    assert choose(k.kernel(len(sizes))) is form
    plan = single(k, [x], [(dtype, result)], sizes)
    limit = 1e-4 if dtype == "f4" else 1e-11
    np.testing.assert_allclose(run(plan, x, threads=2)[0], squares(x, axis), rtol=limit)


def test_numba() -> None:
    pytest.importorskip("numba")
    x = np.random.default_rng(0).standard_normal((7, 100)) + 1e6
    k = rows_kernel("deviation", "f8")
    plan = single(k, [x], [("f8", (N[0],))], (N[0], N[1]))
    np.testing.assert_allclose(load_numba(plan)([x])[0], squares(x, 1), rtol=1e-9)


@pytest.mark.parametrize("values", [[], [-0.0], [1e200], [np.inf, 1], [np.nan, 1], [3, 3, 3]])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values(values: list[float]) -> None:
    x = np.array(values, float)
    compiled = npjit.jit(lambda x: np.var(x))
    np.testing.assert_array_equal(compiled(x), np.var(x))
    assert compiled.cache_info()["numpy"] == 0


def moving(kind: str) -> Any:
    """Values whose mean moves much further than they spread, at different places."""
    x = np.random.default_rng(0).standard_normal(9000)
    if kind == "first":
        x[0] = 1e5
    elif kind == "ramp":
        x += np.arange(9000) * 10.0
    else:
        x += {"step": [0, 1e4, 0], "scales": [1e4, 1e-4, 3], "far": [1e5] * 3}[kind][0]
        x[4321:] += {"step": 1e4, "scales": -1e4, "far": 0}[kind]
    return x


@pytest.mark.parametrize("kind", ["first", "ramp", "step", "scales", "far"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_values_far_from_those_before(kind: str, dtype: str) -> None:
    x = moving(kind).astype(dtype)
    got = npjit.jit(lambda x: np.var(x))(x)
    np.testing.assert_allclose(got, np.var(x.astype("f8")), rtol=2e-6 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("count", [3000, 200_000])
@pytest.mark.parametrize("mean", [1e6, 1e8, 1e10])
def test_means_of_parts_keep_their_last_digits(mean: float, count: int) -> None:
    x = np.random.default_rng(1).standard_normal(count) + mean
    got = npjit.jit(lambda x: np.var(x))(x)
    np.testing.assert_allclose(got, np.square((x - mean) - (x - mean).mean()).mean(), rtol=1e-13)


def test_squares_beyond_float32() -> None:
    x = np.full(300, 2.0**84, "f4")
    assert npjit.jit(lambda x: np.var(x))(x) == np.var(x) == 0.0


@pytest.mark.parametrize("width", [100, 702, 1300])
def test_parts_of_rows(width: int) -> None:
    x = np.random.default_rng(0).standard_normal((40, width)).astype("f4") + 7
    got = npjit.jit(lambda x: np.var(x[1:-1, 1:-1]))(x)
    np.testing.assert_allclose(got, np.var(x[1:-1, 1:-1].astype("f8")), rtol=2e-6)


def test_one_pass_for_mean_and_variance() -> None:
    x = np.random.default_rng(0).standard_normal((30, 41))
    text = npjit.jit(lambda x: (np.mean(x), np.var(x))).lower(x).as_text("kernels")
    assert text.count("for (i") == 1


def test_gradient() -> None:
    x = np.random.default_rng(0).standard_normal(50)
    got = npjit.grad(lambda x: np.var(x))(x)
    np.testing.assert_allclose(got, 2 * (x - x.mean()) / x.size, rtol=1e-12)
