"""Mode "max-autotune": which ways to run are tried, and that the fastest is remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.backends import cuda_tune
from npjit.codegen.cuda_launch import Tuning
from tests.cuda import fake_cupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("NPJIT_CACHE_DIR", str(tmp_path))
    return fake_cupy.install(monkeypatch)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[Tuning]:
    """What the tuner has measured and chosen."""
    found: list[Tuning] = []
    measured = cuda_tune._measured

    def noting(*args: Any) -> Tuning:
        found.append(measured(*args))
        return found[-1]

    monkeypatch.setattr(cuda_tune, "_measured", noting)
    return found


def shifted(x):
    return x * 2 + 1, x.sum()


def check(cupy: Any, n: int) -> None:
    f = npjit.jit(shifted, mode="max-autotune", fullgraph=True)
    x = np.arange(n, dtype="f4")
    for _ in range(2):
        for got, want in zip(f(cupy.asarray(x)), shifted(x), strict=True):
            np.testing.assert_allclose(got.get(), want, rtol=1e-5)
    assert f.cache_info()["whole"] == 2


def test_the_fastest_is_remembered(cupy: Any, chosen: list[Tuning]) -> None:
    check(cupy, 5000)
    assert len(chosen) == 1
    # another function of the same text, as in another process
    check(cupy, 5000)
    assert len(chosen) == 1
    check(cupy, 6000)
    assert len(chosen) == 2


@pytest.mark.skipif(fake_cupy.ON_GPU, reason="the emulator's clock counts threads")
def test_the_least_time_wins(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[float] = []
    seconds = cupy.device.seconds

    def noting(work: Any) -> float:
        # from the second on each is twice as fast as the one before
        seconds(work)
        tried.append(0.5 ** len(tried))
        return tried[-1]

    monkeypatch.setattr(cupy.device, "seconds", noting)
    program = None
    fastest = cuda_tune._measured

    def watched(given: Any, inputs: Any) -> Tuning:
        nonlocal program
        program = given
        last = list(cuda_tune._different(given, inputs))[-1][0]
        assert fastest(given, inputs) == last != Tuning()
        return last

    monkeypatch.setattr(cuda_tune, "_measured", watched)
    check(cupy, 5000)
    assert program is not None and len(tried) > 2


def test_written_arguments_are_not_run_for_trial(cupy: Any, chosen: list[Tuning]) -> None:
    def store(x):
        x += 1

    x = cupy.asarray(np.zeros(300))
    npjit.jit(store, mode="max-autotune", fullgraph=True)(x)
    np.testing.assert_array_equal(x.get(), np.ones(300))
    assert not chosen
