"""Running folds and order statistics: NumPy's values and dtypes, gradients to order 2."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.gradients import check_gradients, gradient
from tests.tracing import check

RANDOM = np.random.default_rng(29)
X = RANDOM.normal(size=(4, 5))
SOME_NAN = np.where(RANDOM.uniform(size=X.shape) < 0.2, np.nan, X)
SOME_NAN[:, 3] = np.nan
SMALL = np.array([100, 100, 27, -3], np.int8)
INTEGERS = RANDOM.integers(0, 9, (6, 3))

SCANS: dict[str, Callable[..., Any]] = {
    "cumsum": lambda x: np.cumsum(x),
    "cumsum 0": lambda x: x.cumsum(axis=0),
    "cumsum 1": lambda x: np.cumsum(x, 1),
    "cumsum of a part": lambda x: np.cumsum(x[::-2, 1:], axis=1),
    "cumsum of the transposed": lambda x: np.cumsum(x.T, axis=1),
    "cumsum dtype": lambda x: np.cumsum(x, dtype="f4"),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda x: np.cumulative_prod(x[0]),
    "nancumsum": lambda x: np.nancumsum(x, axis=0),
    "nancumprod": lambda x: np.nancumprod(x),
    "maximum": lambda x: np.maximum.accumulate(x, axis=1),
    "minimum": lambda x: np.minimum.accumulate(x),
    "add": lambda x: np.add.accumulate(x, 1),
    "logaddexp": lambda x: np.logaddexp.accumulate(x, axis=1),
    "diff": lambda x: np.diff(np.cumsum(x, axis=1), axis=1),
}


@pytest.mark.parametrize("name", SCANS)
def test_scan(name: str) -> None:
    check(SCANS[name], X)
    check(SCANS[name], SOME_NAN)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "c8"])
def test_scan_dtypes(dtype: str) -> None:
    x = (X * 3).astype(dtype)
    check(lambda x: (np.cumsum(x, 0), np.cumprod(x), np.add.accumulate(x, 1)), x)
    if dtype != "c8":
        check(lambda x: np.maximum.accumulate(x, 1), x)


def test_scan_into_out() -> None:
    def fills(x: Any, out: Any) -> Any:
        np.cumsum(x, axis=1, out=out)
        return out * 2

    check(fills, X, np.zeros_like(X))


def test_a_small_integer_does_not_wrap() -> None:
    check(lambda x: np.cumsum(x), SMALL)


def test_scans_of_nothing() -> None:
    check(lambda x: (np.cumsum(x), np.cumsum(x, 0), np.cumprod(x, 1)), X[:0])


STATISTICS: dict[str, Callable[..., Any]] = {
    "median": lambda x: np.median(x),
    "median 0": lambda x: np.median(x, axis=0),
    "median kept": lambda x: np.median(x, axis=1, keepdims=True),
    "median of all axes": lambda x: np.median(x, axis=(0, 1)),
    "nanmedian": lambda x: (np.nanmedian(x), np.nanmedian(x, 0), np.nanmedian(x, (1,))),
    "percentile": lambda x: np.percentile(x, 30),
    "percentiles": lambda x: np.percentile(x, [0, 10, 99.5, 100], axis=1),
    "quantile kept": lambda x: np.quantile(x, 0.25, axis=0, keepdims=True),
    "quantiles of all axes": lambda x: np.quantile(x, [[0.2, 0.5]], axis=(1, 0)),
    "nanpercentile": lambda x: np.nanpercentile(x, [10, 50], axis=1),
    "nanquantile": lambda x: (np.nanquantile(x, 0.3), np.nanquantile(x, 0.3, axis=0)),
}


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("x", [X, SOME_NAN, X.astype("f4"), INTEGERS, X[:3, :1]])
def test_order_statistic(name: str, x: Any) -> None:
    check(STATISTICS[name], x)


@pytest.mark.parametrize(
    "method",
    ["lower", "higher", "nearest", "midpoint", "hazen", "weibull", "median_unbiased"],
)
def test_method_of_quantiles(method: str) -> None:
    check(lambda x: np.percentile(x, [0, 30, 77, 100], axis=1, method=method), X)


def test_computed_quantile() -> None:
    check(lambda x, q: np.quantile(x, q[0] * 0.5 + 0.25), X, np.array([0.3]))


W = np.arange(1.0, 21.0).reshape(4, 5)
GRADIENTS: dict[str, Callable[..., Any]] = {
    "cumsum": lambda x: np.sum(np.sin(np.cumsum(x)) * W.ravel()),
    "cumsum 0": lambda x: np.sum(np.cumsum(x, 0) ** 2 * W),
    "cumprod": lambda x: np.sum(np.cumprod(x, 1) ** 2 * W),
    "maximum": lambda x: np.sum(np.maximum.accumulate(x, 1) ** 2 * W),
    "minimum": lambda x: np.sum(np.minimum.accumulate(x, 0) ** 3 * W),
    "logaddexp": lambda x: np.sum(np.logaddexp.accumulate(x, 1) * W),
    "median": lambda x: np.sum(np.median(x, axis=0) ** 2) + np.median(x),
    "nanmedian": lambda x: np.sum(np.nanmedian(np.where(x > 1, np.nan, x), axis=1) ** 2),
    "percentile": lambda x: np.sum(np.percentile(x, [30, 75], axis=1) ** 2) + np.percentile(x, 10),
    "nanquantile": lambda x: np.sum(np.nanquantile(np.where(x > 1, np.nan, x), 0.3, axis=1) ** 2),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name: str) -> None:
    check_gradients(GRADIENTS[name], X)


def test_running_product_through_zeros() -> None:
    weights = np.array([1.0, 10, 100, 1000])

    def total(x: Any) -> Any:
        return np.sum(np.cumprod(x) * weights)

    for x in ([2.0, 0, 3, 5], [0.0, 2, 3, 4], [2.0, 0, 3, 0]):
        check_gradients(total, np.array(x), order=1)
    check_gradients(total, np.array([2.0, 0, 3, 5]))


def test_equal_elements_of_a_running_maximum() -> None:
    found = gradient(lambda x: np.sum(np.maximum.accumulate(x)), np.array([1.0, 1.0, 0.5]))
    np.testing.assert_array_equal(found, [1.0, 2.0, 0.0])
