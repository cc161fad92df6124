"""Arrays, versions and results on a second GPU; only where the tests run on two of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.backends import cuda as backend
from tests.cuda import fake_cupy


def has_two() -> bool:
    return fake_cupy.ON_GPU and backend.cupy().cuda.runtime.getDeviceCount() > 1


pytestmark = pytest.mark.skipif(not has_two(), reason="wants two GPUs")

MODES = ["default", "reduce-overhead", "max-autotune"]


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def on(number: int, array: Any) -> Any:
    cupy = backend.cupy()
    with cupy.cuda.Device(number):
        return cupy.asarray(array)


def work(x, y):
    return np.tanh(x @ y) @ y + x.sum(axis=0), (x @ y[0]) * 2


def check(got: Any, want: Any, number: int) -> None:
    for g, w in zip(got, want, strict=True):
        assert g.device.id == number
        np.testing.assert_allclose(g.get(), w, rtol=1e-10)


@pytest.mark.parametrize("mode", MODES)
def test_calls_go_where_the_arrays_are(mode: str) -> None:
    cupy = backend.cupy()
    f = npjit.jit(work, fullgraph=True, mode=mode)
    x, y = normal(40, 30), normal(30, 30) / 5
    for current in (0, 1, 1, 1, 0):
        for number in (1, 0, 1):
            with cupy.cuda.Device(current):
                check(f(on(number, x), on(number, y)), work(x, y), number)
                assert cupy.cuda.Device().id == current
    assert f.cache_info()["whole"] == 15 and f.cache_info()["compiled"] == 2


def shrink(a, n):
    for i in range(n):
        a[i, :i] = a[i, :i] * 2 + a[:i, i]
    while np.abs(a).max() > 1:
        a *= 0.5
    return a.sum(axis=1), a.max()


def test_loops_on_the_second_one() -> None:
    cupy = backend.cupy()
    f = npjit.jit(shrink, fullgraph=True)
    with cupy.cuda.Device(1):
        for k in range(4):
            a = normal(30, 30) + k
            check(f(on(1, a), 30), shrink(a.copy(), 30), 1)


def test_the_option_names_the_second_one() -> None:
    cupy = backend.cupy()
    x, y = normal(40, 30), normal(30, 30) / 5
    f = npjit.jit(work, device="cuda:1")
    for _ in range(3):
        got = f(x, y)
        for g, w in zip(got, work(x, y), strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-10)
    assert cupy.cuda.Device().id == 0
    # arrays that live on a GPU decide
    check(f(on(0, x), on(0, y)), work(x, y), 0)


def test_arrays_on_two_are_refused() -> None:
    x = normal(30, 30)
    with pytest.raises(TypeError, match=r"several GPUs.*on GPU 0.*on GPU 1"):
        npjit.jit(work)(on(0, x), on(1, x))


def test_gradients_on_the_second_one() -> None:
    x, y = normal(20, 10), normal(10, 10) / 5

    def loss(x, y):
        return np.tanh(x @ y).sum()

    gradient = npjit.grad(loss)
    got = gradient(on(1, x), on(1, y))
    assert got.device.id == 1
    np.testing.assert_allclose(got.get(), gradient(x, y), rtol=1e-10)


def test_threads_on_two_at_once() -> None:
    cupy = backend.cupy()
    f = npjit.jit(work, fullgraph=True, mode="reduce-overhead")
    x, y = normal(40, 30), normal(30, 30) / 5
    errors: list[BaseException] = []

    def run(number: int) -> Callable[[], None]:
        def calls() -> None:
            try:
                with cupy.cuda.Device(number), cupy.cuda.Stream():
                    given = on(number, x), on(number, y)
                    for _ in range(50):
                        check(f(*given), work(x, y), number)
            except BaseException as e:
                errors.append(e)

        return calls

    threads = [threading.Thread(target=run(k % 2)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
