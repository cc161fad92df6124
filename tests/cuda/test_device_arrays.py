"""Calls with device arrays and with `device="cuda"`, on the emulated device."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.api.on_host import OnHost
from npjit.backends import cuda as backend
from tests.cuda import fake_cupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cupy.install(monkeypatch)


def curve(x, scale):
    return np.sin(x) * scale + x.sum()


def test_device_arrays_give_device_arrays(cupy: Any) -> None:
    x = np.linspace(0, 1, 100)
    f = npjit.jit(curve)
    got = f(cupy.asarray(x), 2.0)
    assert isinstance(got, cupy.ndarray)
    np.testing.assert_allclose(got.get(), curve(x, 2.0), rtol=1e-14)
    f(cupy.asarray(x[:50]), 3.0)
    assert f.cache_info()["whole"] == 2 and f.cache_info()["compiled"] == 1


def test_device_option_takes_and_gives_numpy_arrays(cupy: Any) -> None:
    x = np.linspace(0, 1, 100)
    f = npjit.jit(curve, device="cuda")
    np.testing.assert_allclose(f(x, 2.0), curve(x, 2.0), rtol=1e-14)
    assert type(f(x, 2.0)) is np.ndarray
    assert f.cache_info()["whole"] == 2


def test_cpu_arrays_still_run_on_the_cpu(cupy: Any) -> None:
    f = npjit.jit(curve)
    x = np.linspace(0, 1, 100)
    f(cupy.asarray(x), 2.0)
    assert type(f(x, 2.0)) is np.ndarray


def test_mixed_arguments_are_refused(cupy: Any) -> None:
    x = np.ones(20)
    with pytest.raises(TypeError, match=r"both CPU .* and GPU"):
        npjit.jit(np.add)(cupy.asarray(x), x)


def in_parts(x, n):
    weights = np.cos(np.arange(x.shape[0]) * 0.5)
    print("between")
    n += x * weights
    return n * 2


def test_parts_take_what_python_makes_on_the_cpu(
    cupy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.linspace(0, 1, 100)
    f = npjit.jit(in_parts)
    with pytest.warns(npjit.NpjitWarning):
        for _ in range(2):
            mine, theirs = np.ones(100), np.ones(100)
            got = f(cupy.asarray(x), mine)
            np.testing.assert_allclose(got.get(), in_parts(x, theirs), rtol=1e-14)
            np.testing.assert_allclose(mine, theirs, rtol=1e-14)
    assert f.cache_info()["broken"] == 2


def test_what_only_device_arrays_have(cupy: Any) -> None:
    x = np.linspace(0, 1, 100)
    f = npjit.jit(lambda x: x.get() + 1)
    with pytest.warns(npjit.NpjitWarning):
        np.testing.assert_array_equal(f(cupy.asarray(x)), x + 1)


@pytest.mark.parametrize(
    "function",
    [np.linalg.inv, lambda a: np.linalg.solve(a, a), lambda a: np.linalg.cholesky(a - 1)],
)
def test_singular_matrices(cupy: Any, function: Any) -> None:
    """CuPy itself gives NaN."""
    for shape in ((4, 4), (3, 4, 4)):
        with pytest.raises(np.linalg.LinAlgError):
            npjit.jit(function)(cupy.asarray(np.zeros(shape)))


def scalars(x):
    return x.sum(), x.shape[0] * 2, x[::2], x


def test_scalars_views_and_arguments_come_back(cupy: Any) -> None:
    x = np.arange(40.0)
    given = cupy.asarray(x)
    total, size, view, same = npjit.jit(scalars)(given)
    assert total.shape == () and float(total.get()) == x.sum()
    assert size == 80 and type(size) is int
    np.testing.assert_array_equal(view.get(), x[::2])
    assert view.data.ptr == given.data.ptr and same is given


def test_numpy_scalars_views_and_arguments_come_back(cupy: Any) -> None:
    x = np.arange(40.0)
    total, size, view, same = npjit.jit(scalars, device="cuda")(x)
    assert type(total) is np.float64 and total == x.sum()
    assert size == 80 and same is x
    assert np.shares_memory(view, x)


def store(x):
    x[1:] = x[:-1] * 2
    x += 1


def test_arguments_are_written(cupy: Any) -> None:
    x = np.arange(40.0)
    want = x.copy()
    store(want)
    given = cupy.asarray(x.copy())
    npjit.jit(store)(given)
    np.testing.assert_array_equal(given.get(), want)
    npjit.jit(store, device="cuda")(x)
    np.testing.assert_array_equal(x, want)


def loss(w, x):
    return np.tanh(x @ w).sum()


def test_gradients_of_device_arrays(cupy: Any) -> None:
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((20, 30)), rng.standard_normal((40, 20))
    want = npjit.grad(loss)(w, x)
    got = npjit.grad(loss)(cupy.asarray(w), cupy.asarray(x))
    np.testing.assert_allclose(got.get(), want, rtol=1e-12, atol=1e-12)


def test_sizes_that_fail_a_guard_compile_again(cupy: Any) -> None:
    f = npjit.jit(lambda x, y: x + y)
    a, b = np.ones((30, 20)), np.ones((30, 20))
    np.testing.assert_array_equal(f(cupy.asarray(a), cupy.asarray(b)).get(), a + b)
    c = np.ones((1, 20))
    np.testing.assert_array_equal(f(cupy.asarray(a), cupy.asarray(c)).get(), a + c)
    assert f.cache_info()["compiled"] == 2


def normalised(x, n):
    y = (x - x.mean(axis=1, keepdims=True)) @ x.T
    for i in range(n):
        y[i] = y[i] * 2 + np.roll(y[i], 1)
    return y, np.linalg.inv(y)


def test_bytes_and_times_are_told(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(backend.device(0)), "rate", lambda self: 1e12)
    x = np.random.default_rng(0).standard_normal((100, 50))
    text = str(npjit.jit(normalised).explain(cupy.asarray(x), 7))
    # x read, both results written
    assert "200,008 bytes moved by a call (inputs read, results written): 0.2 us" in text
    assert "k0: 80,000 bytes, 0.1 us" in text
    # 100 x 50 by 50 x 100
    assert "product: 160,000 bytes, 0.2 us" in text
    assert "7 times k" in text and "inv: 160,000 bytes, 0.2 us" in text
    assert "test_device_arrays.py:" in text


def test_code_is_shown(cupy: Any) -> None:
    low = npjit.jit(curve).lower(cupy.asarray(np.ones(50)), 2.0)
    assert "__global__" in low.as_text("cuda")


def chosen(x):
    power = {0: 2, 1: 3}[int(x[0] > 0)]
    return np.sum(x**power)


def test_gradients_along_a_path_that_values_choose(cupy: Any) -> None:
    gradient = npjit.grad(chosen)
    with pytest.warns(npjit.NpjitWarning, match="hash of a traced value"):
        gradient(cupy.asarray(np.ones(3)))
    for x in (np.arange(1.0, 30), -np.arange(1.0, 30)):
        got = gradient(cupy.asarray(x))
        np.testing.assert_allclose(got.get(), gradient(x), rtol=1e-14)


WEIGHTS: list[Any] = []


def weighted(x):
    return x * WEIGHTS[0] + np.array([1.0, 2.0, 3.0])


def test_device_arrays_of_the_world_around(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(60.0).reshape(20, 3)
    f = npjit.jit(weighted, fullgraph=True)
    for scale in (1.0, 2.0):
        monkeypatch.setattr(f"{__name__}.WEIGHTS", [cupy.asarray(np.full(3, scale))])
        np.testing.assert_array_equal(f(cupy.asarray(x)).get(), x * scale + [1, 2, 3])
    monkeypatch.setattr(f"{__name__}.WEIGHTS", [np.ones(3)])
    with pytest.raises(TypeError, match=r"both CPU .* and GPU"):
        f(cupy.asarray(x))
    assert f.cache_info()["whole"] == 2


def test_numpy_arrays_around_are_as_they_are_at_each_call(cupy: Any) -> None:
    table = np.ones(50)
    f = npjit.jit(lambda x: x + table, device="cuda", fullgraph=True)
    for value in (1.0, 5.0):
        table[:] = value
        np.testing.assert_array_equal(f(np.zeros(50)), table)


def test_arguments_between_which_memory_lies(cupy: Any) -> None:
    x = np.arange(240.0).reshape(12, 20)
    f = npjit.jit(lambda a: a * 2, device="cuda", fullgraph=True)
    for view in (x[::2, ::-3], x.T, x[:, 3], np.broadcast_to(x[0], (4, 20))):
        np.testing.assert_array_equal(f(view), view * 2)


class Foreign:
    """Another library's array, seen through one protocol."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values


class WithInterface(Foreign):
    @property
    def __cuda_array_interface__(self) -> Any:
        return self.values.__array_interface__


class WithDLPack(Foreign):
    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


class OnTheCPU(Foreign):
    """As a tensor whose class has what only its arrays on a GPU have."""

    @property
    def __cuda_array_interface__(self) -> Any:
        raise AttributeError("on the CPU")


@pytest.mark.parametrize("protocol", [WithInterface, WithDLPack])
@pytest.mark.skipif(fake_cupy.ON_GPU, reason="the fake adopts these")
def test_arrays_of_other_libraries(cupy: Any, protocol: Any) -> None:
    x = np.arange(30.0)
    f = npjit.jit(lambda pair: pair["x"] * 2, fullgraph=True)
    got = f({"x": protocol(x)})
    assert isinstance(got, cupy.ndarray)
    np.testing.assert_array_equal(got.get(), x * 2)
    assert f.cache_info()["whole"] == 1


def test_tensors_on_the_cpu_are_none_of_ours(cupy: Any) -> None:
    f = npjit.jit(lambda tensor: tensor.values * 2)
    np.testing.assert_array_equal(f(OnTheCPU(np.arange(30.0))), np.arange(30.0) * 2)


@pytest.mark.skipif(fake_cupy.ON_GPU, reason="needs two GPUs")
def test_several_devices(cupy: Any) -> None:
    x, y = cupy.asarray(np.ones(20)), cupy.asarray(np.ones(20))
    y.data.device_id = 1
    f = npjit.jit(lambda a, b: a + b)
    with pytest.raises(TypeError, match=r"several GPUs: argument 0 on GPU 0, argument 1 on GPU 1"):
        f(x, y)
    np.testing.assert_array_equal(f(x, x).get(), 2 * np.ones(20))
    np.testing.assert_array_equal(f(y, y).get(), 2 * np.ones(20))
    # each device has its own version
    assert f.cache_info()["compiled"] == 2
    assert "on GPU 1" in str(f.explain(y, y))


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is there")
def test_without_cupy_the_error_says_what_to_install() -> None:
    f = npjit.jit(curve, device="cuda")
    with pytest.raises(ImportError, match=r"npjit\[cuda12\] or npjit\[cuda13\]"):
        f(np.ones(20), 2.0)


class Short(Exception):
    """In the place of CuPy's OutOfMemoryError."""


def test_short_memory_is_freed_once_and_then_reported() -> None:
    device: Any = object.__new__(backend.CupyDevice)
    freed: list[str] = []
    pool = SimpleNamespace(
        free_all_blocks=lambda: freed.append("pool"), used_bytes=lambda: 6_000_000
    )
    cuda = SimpleNamespace(
        memory=SimpleNamespace(OutOfMemoryError=Short),
        runtime=SimpleNamespace(memGetInfo=lambda: (1_000, 9_000_000)),
    )
    device.number = 3
    device.cupy = SimpleNamespace(cuda=cuda, get_default_memory_pool=lambda: pool)
    device.room = [SimpleNamespace(release=lambda: freed.append("kept"))]
    answers: list[Any] = [Short(), SimpleNamespace(ptr=64)]

    def memory(size: int) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Short):
            raise answer
        return answer

    device.memory = memory
    assert device.allocate(0) == (None, 0)
    assert device.allocate(5000)[1] == 64 and freed == ["kept", "pool"]
    answers += [Short(), Short()]
    message = r"GPU 3 has no 5,000 bytes for inter.*: 1,000 of 9,000,000 .* free.* 6,000,000"
    with pytest.raises(MemoryError, match=message):
        device.allocate(5000)
    assert not answers


def test_views_and_other_kinds_have_versions_of_their_own(cupy: Any) -> None:
    x = np.arange(480.0).reshape(12, 40)
    f = npjit.jit(lambda a: a * 2 + a.sum(axis=0), fullgraph=True)
    on_gpu = cupy.asarray(x)
    views = [np.s_[:], np.s_[::2], np.s_[:, ::-1], np.s_[3:9, 5:30:4], np.s_[2]]
    for where in views:
        for _ in range(2):
            want = x[where] * 2 + x[where].sum(axis=0)
            np.testing.assert_array_equal(f(on_gpu[where]).get(), want)
    single = cupy.asarray(x.astype("f4"))
    assert f(single).dtype == "f4"
    info = f.cache_info()
    assert info["whole"] == 2 * len(views) + 1 and 4 <= info["compiled"] <= len(views) + 1


def shift(a, b):
    a[1:] = b[:-1] + 1


def test_arguments_that_overlap_are_found(cupy: Any) -> None:
    x = np.arange(40.0)
    f = npjit.jit(shift)
    a, b = cupy.asarray(x), cupy.asarray(x)
    f(a, b)
    np.testing.assert_array_equal(a.get()[1:], x[:-1] + 1)
    assert f.cache_info()["whole"] == 1
    # the fake's arrays cannot be written by the function itself
    warns = pytest.warns(npjit.NpjitWarning, match="overlap in memory")
    with warns, contextlib.suppress(TypeError):
        f(a[1:], a[:-1])
    assert f.cache_info()["whole"] == 1


def pick(x, places):
    x[0] = 5.0
    return x[places], x[1:]


def test_a_failed_check_raises_numpys_error(cupy: Any) -> None:
    f = npjit.jit(pick, fullgraph=True)
    x = np.arange(4.0)
    given = cupy.asarray(x)
    f(given, cupy.asarray(np.array([1, 2])))
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        f(given, cupy.asarray(np.array([1, 9])))
    # what the function had written by then
    np.testing.assert_array_equal(given.get(), [5, 1, 2, 3])
    assert f.cache_info()["numpy"] == 1


def test_calls_on_the_host_give_device_arrays(cupy: Any) -> None:
    def answers(x, y):
        y += 1
        return x, x[1:], x * 2, x.sum(), [len(x)]

    run = OnHost(answers)
    x, y = cupy.asarray(np.arange(4.0)), cupy.asarray(np.zeros(2))
    same, view, twice, total, (size,) = run(x, y)
    assert same is x and size == 4 and view.data.ptr == x.data.ptr + 8
    np.testing.assert_array_equal(view.get(), [1, 2, 3])
    np.testing.assert_array_equal(twice.get(), [0, 2, 4, 6])
    assert float(total.get()) == 6
    np.testing.assert_array_equal(y.get(), [1, 1])
    # arguments in the same memory are the function's own business
    seen: list[Any] = []
    OnHost(lambda *given: seen.extend(given))(x, view)
    assert seen == [x, view]


def test_arrays_elsewhere_leave_a_call_to_the_function_itself(cupy: Any) -> None:
    seen: list[Any] = []

    def mixing(x):
        seen.append(x)
        if isinstance(x, np.ndarray):
            x[0] = 7
            raise TypeError("no NumPy array, please")
        return 5

    x = cupy.asarray(np.arange(4.0))
    assert OnHost(mixing)(x) == 5 and seen[1] is x
    np.testing.assert_array_equal(x.get(), np.arange(4.0))


def test_what_is_wrong_from_the_start_is_numpys_to_raise(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pick_outside(self: Any, where: Any) -> None:
        raise AssertionError("CuPy would wrap around")

    f = npjit.jit(lambda x: x[[1, 9]])
    x = cupy.asarray(np.arange(4.0))
    monkeypatch.setattr(cupy.ndarray, "__getitem__", pick_outside)
    for _ in range(3):
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            f(x)
    assert f.cache_info()["numpy"] == 3
