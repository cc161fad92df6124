"""Gradients of functions made of several rows, against central differences, to order 2."""

from typing import Any

import numpy as np
import pytest

from tests.gradients import check_gradients, gradient

RANDOM = np.random.default_rng(8)
X = RANDOM.uniform(0.4, 1.6, (3, 4))
W = RANDOM.normal(size=(3, 4))
WITH_NAN = np.where(np.eye(3, 4, dtype=bool), np.nan, X)


def weighted(y: Any) -> Any:
    """A scalar that tells the elements of y apart."""
    return np.sum(np.sin(y * 1.3) * (1 + np.arange(y.size).reshape(y.shape) / 7))


FUNCTIONS = {
    "mean": lambda x: np.mean(x, axis=0),
    "var": lambda x: np.var(x, axis=1, ddof=1),
    "std": lambda x: np.std(x, axis=0),
    "average": lambda x: np.average(x, axis=1, weights=x),
    "ptp": lambda x: np.ptp(x, axis=1),
    "cov": lambda x: np.cov(x),
    "corrcoef": lambda x: np.corrcoef(x),
    "logaddexp.reduce": lambda x: np.logaddexp.reduce(x, axis=1),
    "clip": lambda x: np.clip(x, 0.7, 1.2),
    "select": lambda x: np.select([x > 1, x > 0.7], [x**2, x], 0.0),
    "norm": lambda x: np.linalg.norm(x, axis=1),
    "norm 3": lambda x: np.linalg.norm(x, 3, axis=0),
    "norm 1": lambda x: np.linalg.norm(x, 1),
    "matmul": lambda x: x @ (x.T * 2),
    "dot of vectors": lambda x: np.dot(x[0], x[1]) * x,
    "einsum": lambda x: np.einsum("ij,kj,kl->il", x, W, x),
    "einsum diagonal": lambda x: np.einsum("ii->i", x[:, :3]) * x[:, 3],
    "tensordot": lambda x: np.tensordot(x, x, axes=([0], [0])),
    "outer": lambda x: np.outer(x[0], x[:, 0]),
    "kron": lambda x: np.kron(x[:2], x[1:, :2]),
    "cross": lambda x: np.cross(x[:, :3], x[:, 1:]),
    "trace": lambda x: np.trace(x) * x,
    "diag": lambda x: np.diag(x[0], 1) @ np.diag(np.diag(x, 1)[:1].repeat(5)),
    "triangles": lambda x: np.tril(x, 1) * np.triu(x),
    "concatenate": lambda x: np.concatenate([x, x[:1] ** 2, W]),
    "stack": lambda x: np.stack([x, x * x], axis=1),
    "roll": lambda x: x * np.roll(x, 1, axis=1),
    "tile": lambda x: np.tile(x, (2, 2)) ** 2,
    "repeat": lambda x: np.repeat(x, 3, axis=1) ** 2,
    "pad": lambda x: np.pad(x, 1, mode="edge") ** 2 + np.pad(x, 1),
    "flip": lambda x: np.flip(x) * x,
    "diff": lambda x: np.diff(x, axis=1) ** 2,
    "gradient": lambda x: np.gradient(x, 0.5, axis=1),
    "trapezoid": lambda x: np.trapezoid(x**2, axis=1),
    "convolve": lambda x: np.convolve(x[0], x[1][:3], "same"),
    "sinc": lambda x: np.sinc(x),
    "polyval": lambda x: np.polyval([1.0, -2.0, 0.5], x),
    "powers": lambda x: x**3 + x**4 + x**0.5 + x**-1 + x**2.5 + 1.7**x,
    "reshape": lambda x: x.reshape(4, 3).T * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient(name: str) -> None:
    function = FUNCTIONS[name]
    check_gradients(lambda x: weighted(function(x)), X)


@pytest.mark.parametrize("function", [np.nansum, np.nanmean, np.nanvar, np.nanstd, np.nanmax])
def test_missing_numbers_get_no_gradient(function: Any) -> None:
    found = gradient(lambda x: np.sum(function(x, axis=1)), WITH_NAN)
    assert np.isfinite(found).all()
    assert (found[np.isnan(WITH_NAN)] == 0).all()


def test_second_derivative_where_the_gradient_is_zero() -> None:
    """A gate lets derivatives through: at the minimum of (log x - c)^2 the curvature is not 0."""

    def slope_sum(x: Any) -> Any:
        return np.sum(gradient_of_loss(x))

    def gradient_of_loss(x: Any) -> Any:
        residual = np.log(x) - np.log(np.array([2.0, 3.0]))
        return 2 * residual / x

    x = np.array([2.0, 3.0])
    np.testing.assert_allclose(gradient(slope_sum, x), 2 / x**2, rtol=1e-12)
    check_gradients(lambda x: np.sum((np.log(x) - np.log(np.array([2.0, 3.0]))) ** 2), x)
