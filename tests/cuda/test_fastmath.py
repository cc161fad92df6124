"""`fastmath`: what it changes in CUDA code, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from benches.gpu import workloads
from npjit.codegen.cuda import print_cuda
from tests.cuda import fake_cupy
from tests.plan_runner import ADD, KernelBuilder, N, S, single


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cupy.install(monkeypatch)


def test_what_the_compiler_may_do() -> None:
    k = KernelBuilder([S[0]], (0,), [("f4", "in"), ("f4", "out")])
    x = k.load(0, {0: 1})
    k.store(1, {0: 1}, k.apply(ADD, "f4", x, x))
    plan = single(k, [np.ones(3, "f4")], [("f4", (N[0],))], (N[0],))
    exact, contract, approx = (print_cuda(plan, m).options for m in (None, "contract", "approx"))
    assert "--fmad=false" in exact and "--prec-div=false" not in exact
    assert "--fmad=true" in contract and "--fmad=false" not in contract
    assert set(contract) < set(approx) and "--prec-div=false" in approx


def test_other_values_are_refused() -> None:
    with pytest.raises(ValueError, match="fastmath"):
        npjit.jit(np.sin, fastmath="fast")


def text(cupy: Any, function: Any, fastmath: str | None, *args: Any) -> str:
    jitted = npjit.jit(function, fastmath=fastmath)
    return jitted.lower(*map(cupy.asarray, args)).as_text("cuda")


def over_norm(x, y):
    return x / np.sqrt(y), 1 / (y * np.sqrt(y)), np.square(x) * x / np.sqrt(x * y + 1)


def no_root(x, y):
    z = np.square(np.square(np.square(x)))
    return x / y, x * np.sqrt(y), z / np.sqrt(y), x / np.sqrt(np.sqrt(y))


def test_quotients_by_roots(cupy: Any) -> None:
    x = np.linspace(0.5, 3, 200, dtype="f4")
    assert "nj_rsqrt(" not in text(cupy, over_norm, "contract", x, x)
    assert text(cupy, over_norm, "approx", x, x).count("= nj_rsqrt(") == 3
    assert "= nj_rsqrt(" not in text(cupy, no_root, "approx", x, x)
    assert "= nj_rsqrt(" not in text(cupy, over_norm, "approx", x.astype("f8"), x.astype("f8"))
    got = npjit.jit(over_norm, fastmath="approx", fullgraph=True)(cupy.asarray(x), cupy.asarray(x))
    for g, w in zip(got, over_norm(x.astype("f8"), x.astype("f8")), strict=True):
        np.testing.assert_allclose(g.get(), w, rtol=2e-6)


def test_forces_with_reciprocal_roots(cupy: Any) -> None:
    rng = np.random.default_rng(0)
    args = rng.standard_normal((70, 3)).astype("f4"), rng.random(70).astype("f4")
    assert "= nj_rsqrt(" in text(cupy, workloads.nbody, "approx", *args)
    got = npjit.jit(workloads.nbody, fastmath="approx")(*map(cupy.asarray, args))
    want = workloads.nbody(*(a.astype("f8") for a in args))
    np.testing.assert_allclose(got.get(), want, rtol=0, atol=1e-5 * np.abs(want).max())
