"""Gradients of programs with loops and branches: against central differences, first and second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from tests.gradient_programs import PROGRAMS
from tests.gradients import numeric_gradient


def arguments_of(name: str) -> tuple[Any, ...]:
    """Fresh arguments; programs may write them."""
    return PROGRAMS[name][1](np.random.default_rng(5))


def unwriting(f: Any) -> Any:
    """The function with arguments of its own, and Python floats where it was given some."""

    def call(*args: Any) -> Any:
        own = [a.copy() if np.ndim(a) else a.item() if hasattr(a, "item") else a for a in args]
        return f(*own)

    return call


@pytest.mark.parametrize("backend", ["numpy", "cpp"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient(name: str, backend: str) -> None:
    f, _, numbers = PROGRAMS[name]
    compiled = npjit.value_and_grad(f, argnums=numbers, backend=backend)
    value, found = compiled(*arguments_of(name))
    args = arguments_of(name)
    assert value == pytest.approx(unwriting(f)(*args), rel=1e-12)
    for k, g in zip(numbers, found, strict=True):
        want = numeric_gradient(unwriting(f), args, k)
        assert np.shape(g) == np.shape(args[k])
        np.testing.assert_allclose(g, want, rtol=2e-6, atol=2e-8)
    info = compiled.cache_info()
    assert info["whole"] == 1, info


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_gradient(name: str) -> None:
    """The gradient of a gradient's weighted sum, where arguments are real."""
    f, _, numbers = PROGRAMS[name]
    args = arguments_of(name)
    k = numbers[0]
    if np.asarray(args[k]).dtype.kind == "c":
        return
    weights = np.random.default_rng(8).random(np.shape(args[k]))
    first = npjit.grad(f, argnums=k, backend="numpy")

    def slope(*args: Any) -> Any:
        return np.sum(npjit.grad(f, argnums=k)(*args) * weights)

    def numeric_slope(*args: Any) -> Any:
        return np.sum(unwriting(first)(*args) * weights)

    found = npjit.grad(slope, argnums=k, backend="numpy")(*arguments_of(name))
    want = numeric_gradient(numeric_slope, args, k)
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-7)


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_a_while_loop_longer_than_its_tape_is_still_right() -> None:
    def f(a: Any, n: Any) -> Any:
        x = 1.0
        while n > 0:
            x = x * 0.999 + a * 0.001 * x * x
            n = n - 1
        return x

    args = (0.3, np.int64(5000))
    compiled = npjit.grad(f)
    want = numeric_gradient(lambda a, n: f(float(a), n), args, 0)
    np.testing.assert_allclose(compiled(*args), want, rtol=1e-6)
    assert compiled.cache_info()["numpy"] == 1


def test_one_compilation_serves_all_sizes() -> None:
    f, _, _ = PROGRAMS["gauss_seidel"]
    compiled = npjit.grad(f)
    rng = np.random.default_rng(2)
    for shape, n in [((18, 19), 2), ((20, 17), 3)]:
        a = rng.random(shape)
        want = npjit.grad(f, backend="numpy")(a, n)
        np.testing.assert_allclose(compiled(a, n), want, rtol=1e-12)
    assert compiled.cache_info()["compiled"] == 1


def test_a_scan_of_elements_touches_no_whole_array() -> None:
    """A body's adjoint that reads and writes elements must not pass over arrays in every trip."""

    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        for i in range(1, len(x)):
            y[i] = y[i - 1] * x[i] + x[i - 1]
        return np.sum(y)

    text = str(npjit.grad(f).lower(np.ones(1000)).as_text("graph"))
    backwards = text[text.rindex("body graph") : text.rindex("write")]
    computed = [line for line in backwards.splitlines() if "update" not in line]
    assert not any(": f64[n0] =" in line for line in computed), backwards
