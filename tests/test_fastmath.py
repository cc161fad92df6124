"""`fastmath="contract"` in C++ code: what it changes, and that nothing else gets the same code."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import npjit
from npjit.codegen.toolchain import cpu_features, find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")

# its square is no double: rounded once, the difference shows the last part
X = np.full(40, 1 + 2.0**-30)
ROUNDED, EXACT = 0.0, 2.0**-60


def rest(x, y):
    return x * x - y


@pytest.mark.parametrize("fastmath", ["contract", "approx"])
def test_products_and_sums_are_rounded_once(fastmath: str) -> None:
    y = np.full(40, 1 + 2.0**-29)
    assert set(rest(X, y)) == {ROUNDED}
    fast = npjit.jit(rest, fastmath=fastmath, backend="cpp", fullgraph=True)
    has_fma = platform.machine() != "x86_64" or " fma " in cpu_features()
    wanted = EXACT if has_fma else ROUNDED
    assert set(fast(X, y)) == {wanted}
    # the same graph without the option, and with it once more
    assert set(npjit.jit(rest, backend="cpp", fullgraph=True)(X, y)) == {ROUNDED}
    assert set(npjit.jit(rest, fastmath=fastmath, backend="cpp")(X, y)) == {wanted}


def test_functions_keep_their_accuracy() -> None:
    x = np.linspace(-30, 30, 4001)
    for function in (np.sin, np.exp, np.tanh, np.log1p, np.cbrt):
        given = np.abs(x) if function is np.log1p else x
        got = npjit.jit(function, fastmath="contract", fullgraph=True)(given)
        np.testing.assert_allclose(got, function(given), rtol=1e-15, atol=1e-300)
