"""Mode "background": NumPy answers until the compiler is done."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.api import background


def scaled(x, n):
    return np.tanh(x) * n + x.shape[0]


def wait() -> None:
    """Until nothing is compiled any more."""
    for thread in threading.enumerate():
        if thread.name.startswith("npjit compiles"):
            thread.join()


def test_calls_switch_over_when_the_compiler_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    compile_captured = background.compile_captured

    def later(*args: Any) -> Any:
        go_on.wait()
        return compile_captured(*args)

    monkeypatch.setattr(background, "compile_captured", later)
    f = npjit.jit(scaled, mode="background")
    x = np.linspace(0, 1, 50)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, 2), scaled(x, 2))
    info = f.cache_info()
    assert (info["numpy"], info["whole"], info["compiled"]) == (3, 0, 0)
    go_on.set()
    wait()
    np.testing.assert_allclose(f(x, 3), scaled(x, 3), rtol=1e-14)
    np.testing.assert_allclose(f(x[:30], 3), scaled(x[:30], 3), rtol=1e-14)
    info = f.cache_info()
    assert (info["numpy"], info["whole"], info["compiled"]) == (3, 2, 1)


def test_other_kinds_of_arguments_are_compiled_in_turn() -> None:
    f = npjit.jit(scaled, mode="background")
    for x in (np.ones(40), np.ones(40, "f4"), np.ones((20, 30))):
        f(x, 2)
        wait()
        before = f.cache_info()["whole"]
        np.testing.assert_allclose(f(x, 2), scaled(x, 2), rtol=1e-6)
        assert f.cache_info()["whole"] == before + 1
    assert f.cache_info()["compiled"] == 3


def test_gradients_too() -> None:
    g = npjit.grad(lambda x: np.sum(x**3), mode="background")
    x = np.arange(30.0)
    np.testing.assert_allclose(g(x), 3 * x**2)
    wait()
    np.testing.assert_allclose(g(x), 3 * x**2)
    assert g.cache_info()["whole"] == 1


def test_what_cannot_be_compiled_stays_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(background, "compile_captured", fail)
    f = npjit.jit(scaled, mode="background")
    x = np.ones(20)
    with pytest.warns(npjit.NpjitWarning, match="out of order"):
        f(x, 2)
        wait()
    np.testing.assert_array_equal(f(x, 2), scaled(x, 2))
    assert (
        f.cache_info()["numpy"] == 2 and "RuntimeError: out of order" in f.cache_info()["refusals"]
    )


def test_modes_are_checked() -> None:
    for mode in ("default", "reduce-overhead", "max-autotune"):
        assert npjit.jit(scaled, mode=mode)(np.ones(20), 1).shape == (20,)
    with pytest.raises(ValueError, match="mode must be one of"):
        npjit.jit(scaled, mode="fastest")
