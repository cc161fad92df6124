"""Every row's gradient rule against central differences, to second order, from the table."""

from typing import Any

import numpy as np
import pytest

import npjit
import npjit.ops
from npjit.core.op import Kind
from npjit.ops import kinds
from tests.gradients import check_gradients, gradient

# where a function is smooth; most are between 0.3 and 0.9
DOMAINS: dict[Any, tuple[float, float]] = {np.arccosh: (1.2, 2.0)}
WITH_RULE = sorted(
    (u for u, op in kinds.UFUNCS.items() if op.vjp is not None and not op.flat),
    key=lambda u: u.__name__,
)
COMPLEX = [u for u in WITH_RULE if any(t.startswith("D" * u.nin + "->") for t in u.types)]
WEIGHTS = np.array([1.0, -0.7, 0.4])
OTHERS = np.array([0.3, 0.9, -1.1])
# second argument is an int, or the derivative exists nowhere in the interior
SPECIAL = {np.ldexp}


def points(ufunc: np.ufunc, argument: int) -> np.ndarray:
    low, high = DOMAINS.get(ufunc, (0.3, 0.9))
    random = np.random.default_rng(11 + argument)
    return random.uniform(low, high, 3)


@pytest.mark.parametrize("ufunc", [u for u in WITH_RULE if u not in SPECIAL])
def test_rule(ufunc: np.ufunc) -> None:
    if not any(t.startswith("d" * ufunc.nin) for t in ufunc.types):
        pytest.skip("has no float64 loop")
    args = [points(ufunc, i) for i in range(ufunc.nin)]
    check_gradients(lambda *a: np.sum(ufunc(*a) * WEIGHTS), *args)


@pytest.mark.parametrize("ufunc", COMPLEX)
def test_rule_on_complex_arguments(ufunc: np.ufunc) -> None:
    args = [points(ufunc, i) + 1j * points(ufunc, i + 5) for i in range(ufunc.nin)]

    def loss(*a: Any) -> Any:
        y = ufunc(*a)
        if y.dtype.kind != "c":
            return np.sum(y * WEIGHTS)
        return np.sum(np.real(y) * WEIGHTS) + np.sum(np.imag(y) * OTHERS)

    check_gradients(loss, *args)


def test_ldexp() -> None:
    n = np.array([1, -2, 3])
    check_gradients(lambda x: np.sum(np.ldexp(np.sin(x), n)), points(np.sin, 0))


@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1])
@pytest.mark.parametrize("reduce", [np.sum, np.prod, np.max, np.min, np.mean, np.var, np.std])
def test_reduction(reduce: Any, axis: Any) -> None:
    x = np.random.default_rng(3).uniform(0.5, 1.5, (2, 3, 2))
    check_gradients(lambda x: np.sum(np.sin(reduce(x, axis=axis))), x)
    check_gradients(lambda x: np.sum(x * reduce(x, axis=axis, keepdims=True)), x, order=1)


def test_every_rule_is_tested() -> None:
    """A row that is no ufunc and has a rule is named here, and has its test in test_grad.py."""
    ufuncs = set(kinds.UFUNCS.values())
    others = {
        op.name
        for op in kinds.ROWS.values()
        if op.vjp is not None and op not in ufuncs and op.kind is Kind.ELEMENTWISE
    }
    named = {"cast", "gate", "select", "real", "imag", "angle", "modf_fraction", "frexp_mantissa"}
    named |= {"from_parts", "in_order_of"}
    assert others == named


def test_complex_of_two_parts() -> None:
    def f(x: Any) -> Any:
        z = complex(np.sum(x), np.sum(x * x))
        return (z * z).real + abs(z)

    x = np.array([0.5, 1.5, -0.25])
    g = npjit.grad(f)
    differences = central_differences(f, x)
    np.testing.assert_allclose(g(x), differences, rtol=1e-7)
    assert g.cache_info()["whole"] == 1


def test_values_in_another_memory_order() -> None:
    weights = np.asfortranarray(np.arange(40.0 * 30).reshape(40, 30))

    def f(x: Any, w: Any) -> Any:
        return np.sum(np.roll(w, 1, axis=0) * np.roll(x, 2, axis=1) ** 2)

    x = np.asfortranarray(np.random.default_rng(1).standard_normal((40, 30)))
    g = npjit.grad(f)
    want = 2 * x * np.roll(np.roll(weights, 1, axis=0), -2, axis=1)
    np.testing.assert_allclose(g(x, weights), want, rtol=1e-12)
    assert g.cache_info()["whole"] == 1


def central_differences(f: Any, x: Any) -> Any:
    """df/dx of a scalar function by central differences."""
    steps = 1e-6 * np.eye(x.size)
    return np.array([(f(x + h) - f(x - h)) / 2e-6 for h in steps])


# ---------------------------------------------------------------- singular points


@pytest.mark.parametrize(
    ("f", "x", "wanted"),
    [
        (lambda x: np.sum(np.abs(x)), [0.0, -3.0], [0.0, -1.0]),
        (lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), [4.0, -1.0], [0.25, 0.0]),
        (lambda x: np.sum(np.where(x > 0, np.log(x), x)), [2.0, 0.0], [0.5, 1.0]),
        (lambda x: np.sum(np.where(x == 0, 1.0, np.sin(x) / x)), [0.0], [0.0]),
        (lambda x: np.prod(x), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
        (lambda x: np.prod(x), [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
        (lambda x: np.max(x), [2.0, 2.0], [0.5, 0.5]),
        (lambda x: np.std(x), [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
        (lambda x: np.sum(x**2), [0.0], [0.0]),
        (lambda x: np.sum(x**0), [0.0], [0.0]),
        (lambda x: np.sum(np.hypot(x, 0.0)), [0.0], [0.0]),
        (lambda x: np.sum(np.where(x > 1, np.exp(1000 * x), x)), [0.5, 0.9], [1.0, 1.0]),
    ],
)
def test_singular_point(f: Any, x: Any, wanted: Any) -> None:
    with np.errstate(all="ignore"):
        found = gradient(f, np.array(x))
    np.testing.assert_allclose(found, wanted, atol=1e-12)
