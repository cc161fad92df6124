"""Reductions and summaries against NumPy: axes, keepdims, dtype=, initial=, where=, out=."""

from typing import Any

import numpy as np
import pytest

from npjit.core.tolerance import sum_bound
from npjit.ops.errors import NotCaptured
from tests.tracing import check, run

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(3, 4))
WITH_NAN = np.where(RANDOM.random((3, 4)) < 0.4, np.nan, X)
WITH_NAN[2] = np.nan
ARRAYS = {
    "f8": X,
    "f4": X.astype("f4"),
    "f2": X.astype("f2"),
    "i8": np.arange(-3, 9).reshape(3, 4),
    "i1": np.arange(-3, 9, dtype="i1").reshape(3, 4) * 10,
    "u1": np.arange(12, dtype="u1").reshape(3, 4) * 20,
    "bool": X > 0,
    "complex": X + 1j * X[::-1],
    "nan": WITH_NAN,
    "0-d": np.array(2.5),
    "scalar": np.float64(2.5),
    "vector": X[0],
    "cube": RANDOM.normal(size=(2, 3, 4)),
    "empty": np.zeros((0, 3)),
    "fortran": np.asfortranarray(X),
    "strided": RANDOM.normal(size=(6, 8))[::2, ::-2],
}
FUNCTIONS = [
    *(np.sum, np.prod, np.max, np.min, np.mean, np.var, np.std, np.ptp, np.average),
    *(np.any, np.all, np.count_nonzero, np.argmax, np.argmin),
    *(np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean, np.nanvar, np.nanstd),
]
AXES: list[Any] = [0, -1, 1, (0, 1), ()]
EPSILON = {2: 1e-2, 4: 1e-5, 8: 1e-12, 16: 1e-12}


def bound_for(values: Any) -> Any:
    values = np.asarray(values)
    return EPSILON.get(values.dtype.itemsize, 0) * 50 if values.dtype.kind in "fc" else 1e-10


def compare(function: Any, *args: Any) -> None:
    """As NumPy, or NotCaptured where NumPy raises."""
    try:
        with np.errstate(all="ignore"):
            function(*args)
    except (TypeError, ValueError):
        with pytest.raises(NotCaptured):
            run(function, *args)
        return
    check(function, *args, ulp=4, bound=bound_for(args[0]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_summary(function: Any, name: str) -> None:
    x = ARRAYS[name]
    if function is np.average and name == "empty":
        return
    compare(lambda x: function(x), x)
    for axis in AXES:
        compare(lambda x, axis=axis: function(x, axis=axis), x)
        compare(lambda x, axis=axis: function(x, axis=axis, keepdims=True), x)


def test_arguments_of_sum() -> None:
    check(lambda x: np.sum(x, axis=1, dtype="f4"), X, bound=1e-5)
    check(lambda x: np.sum(x, dtype=int), X)
    check(lambda x: np.sum(x, initial=3.0), X, bound=sum_bound(X))
    check(lambda x: np.sum(x, where=x > 0), X, bound=sum_bound(X))
    check(lambda x: np.prod(x, axis=0, dtype="f8", initial=2), ARRAYS["i8"])


def test_arguments_of_max() -> None:
    check(lambda x: np.max(x, initial=3.0), ARRAYS["empty"])
    check(lambda x: np.max(x, axis=0, initial=3.0), ARRAYS["empty"])
    check(lambda x: np.max(x, axis=1, initial=9, where=x > 0), X)
    for refused in (
        lambda x: np.max(x),
        lambda x: np.min(x, axis=0),
        lambda x: np.argmax(x),
        lambda x: np.max(x, where=x > 0),
        lambda x: np.sum(x, axis=2),
        lambda x: np.sum(x, axis=(0, 0)),
        lambda x: np.sum(x, where=np.ones((2, 0, 3), bool)),
        lambda x: np.sum(x, where=np.ones(4, bool)),
        lambda x: np.sum(x, initial=np.ones(3)),
    ):
        with pytest.raises(NotCaptured):
            run(refused, ARRAYS["empty"])


def test_where_and_ddof() -> None:
    check(lambda x: np.mean(x, where=x > 0, axis=1), X, bound=1e-14)
    check(lambda x: np.var(x, where=x > -1, axis=1, ddof=1), X, bound=1e-14)
    check(lambda x: x.std(axis=0, ddof=1), X, bound=1e-14)
    check(lambda x: np.std(x, correction=1), X, bound=1e-14)


@pytest.mark.parametrize(
    "method",
    ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin"],
)
def test_method(method: str) -> None:
    check(lambda x: getattr(x, method)(), X, bound=1e-13)
    check(lambda x: getattr(x, method)(axis=0), X, bound=1e-13)
    check(lambda x: getattr(x, method)(1), X, bound=1e-13)


def test_ufunc_reduce() -> None:
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum):
        check(lambda x, u=ufunc: u.reduce(x), X, bound=1e-13)
        check(lambda x, u=ufunc: u.reduce(x, axis=None, keepdims=True), X, bound=1e-13)
    for ufunc in (np.logical_or, np.logical_and):
        check(lambda x, u=ufunc: u.reduce(x, axis=1), X > 0)


def test_logaddexp_reduce() -> None:
    x = np.where(X > 1, -np.inf, X)
    check(lambda x: np.logaddexp.reduce(x), x, bound=1e-14)
    check(lambda x: np.logaddexp.reduce(x, axis=1, keepdims=True), x, bound=1e-14)


def test_out() -> None:
    def into(x: Any) -> Any:
        total = np.zeros_like(x[0])
        np.sum(x, axis=0, out=total)
        np.add.reduce(x, axis=0, out=x[0])
        return total

    check(into, X, bound=1e-13)


def test_weights() -> None:
    check(lambda x, w: np.average(x, axis=1, weights=w), X, np.abs(X[0]), bound=1e-13)
    check(lambda x, w: np.average(x, weights=w, returned=True), X, X**2, bound=1e-13)
    with pytest.raises(NotCaptured):
        run(lambda x: np.average(x, weights=x[:1]), X)
    with pytest.raises(ArithmeticError):
        run(lambda x: np.average(x, axis=1, weights=x), np.zeros((2, 3)))


def test_covariance() -> None:
    check(np.cov, X, bound=1e-13)
    check(lambda x: np.cov(x, rowvar=False, bias=True), X, bound=1e-13)
    check(lambda x, y: np.cov(x, y), X[0], X[1], bound=1e-13)
    check(np.corrcoef, X, bound=1e-13)
