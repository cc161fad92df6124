"""Calls that the runtime makes without Python, and replays as graphs, with the driver's double."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import npjit
from npjit import _runtime
from npjit.backends.cuda_native import NativePlan
from tests.cuda import driver_double, fake_cupy
from tests.cuda.fake_cupy import Array

pytestmark = pytest.mark.skipif(fake_cupy.ON_GPU, reason="watches the driver's double")


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    driver_double.log.clear()
    return fake_cupy.install(monkeypatch)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The keys that Python was asked to prepare."""
    found: list[Any] = []
    prepare = NativePlan._prepare

    def noting(self: NativePlan, inputs: list[Any], key: bytes) -> None:
        found.append(key)
        prepare(self, inputs, key)

    monkeypatch.setattr(NativePlan, "_prepare", noting)
    return found


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def centre(x, scale):
    return (x - x.mean(axis=0)) * scale, x.sum()


def check(cupy: Any, jitted: Any, function: Any, *args: Any) -> Any:
    given = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    got, want = jitted(*given), function(*args)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.get(), w, rtol=1e-12, atol=1e-12)
    return got


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_other_arrays_and_numbers_are_prepared_once(
    cupy: Any, prepared: list[Any], mode: str
) -> None:
    f = npjit.jit(centre, fullgraph=True, mode=mode)
    for k in range(4):
        check(cupy, f, centre, normal(30, 20) + k, 2.0 + k)
    assert len(prepared) == 1
    for n in (31, 30, 17, 31):
        check(cupy, f, centre, normal(n, 20), 3.0)
    assert len(prepared) == 3
    assert f.cache_info()["whole"] == 8 and f.cache_info()["compiled"] == 1


def test_numbers_of_all_kinds_reach_the_kernels(cupy: Any) -> None:
    def mixed(x, a, b, c, d):
        return (x * a + b * c + d,)

    f = npjit.jit(mixed, fullgraph=True)
    for k in (1, 2, 3):
        check(cupy, f, mixed, normal(40), 2 * k, 0.5 * k, 1j * k + 2, np.float32(k / 4))


def test_results_are_given_out_again_when_nobody_holds_them(cupy: Any) -> None:
    def double(x):
        return (x * 2,)

    f = npjit.jit(double, fullgraph=True, mode="reduce-overhead")
    x = cupy.asarray(normal(100))
    first = f(x)[0].data.ptr
    assert f(x)[0].data.ptr == first
    # the last but one is given out while the last is held
    held = f(x)[0]
    second = f(x)[0].data.ptr
    assert second != first and f(x)[0].data.ptr == second
    values = held.get()
    other = f(cupy.asarray(normal(100) + 5))[0]
    assert other.data.ptr != held.data.ptr
    np.testing.assert_array_equal(held.get(), values)
    memory = other.data
    address = memory.ptr
    del other
    # whoever holds the memory alone holds the result
    assert f(x)[0].data.ptr != address


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_launches_become_a_graph_on_the_third_call(cupy: Any, mode: str) -> None:
    def steps(x):
        return x / x.sum(), x - x.mean()

    f = npjit.jit(steps, fullgraph=True, mode=mode)
    log = driver_double.log
    for k in range(2):
        check(cupy, f, steps, normal(3000) + k)
        assert log.count("launch") > 1 and "graph" not in log
        log.clear()
    check(cupy, f, steps, normal(3000) + 4)
    assert log.count("graph") == log.count("run graph") == 1 and "launch" not in log
    for k in range(3):
        # other addresses
        log.clear()
        held = check(cupy, f, steps, normal(3000) + k)
        assert "change" in log and log.count("run graph") == 1 and "launch" not in log
        del held
    # other sizes, and then these again
    check(cupy, f, steps, normal(2000))
    check(cupy, f, steps, normal(3000))
    del f
    gc.collect()
    assert log.count("destroy") >= 2


def test_a_graph_that_cannot_be_changed_is_made_anew(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps(x):
        return x / x.sum(), x - x.mean()

    f = npjit.jit(steps, fullgraph=True)
    held = [check(cupy, f, steps, normal(3000) + k) for k in range(4)]
    monkeypatch.setitem(driver_double.state, "changes", 1)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_DOUBLE"):
        check(cupy, f, steps, normal(3000))
    monkeypatch.setitem(driver_double.state, "changes", 1 << 30)
    driver_double.log.clear()
    held.append(check(cupy, f, steps, normal(3000) + 7))
    assert driver_double.log.count("graph") == 1


def test_a_call_like_the_last_changes_nothing_in_the_graph(cupy: Any) -> None:
    f = npjit.jit(lambda x: (x / x.sum(), x - x.mean()), fullgraph=True, mode="reduce-overhead")
    x = cupy.asarray(normal(3000))
    for _ in range(4):
        f(x)
    driver_double.log.clear()
    f(x)
    assert driver_double.log == ["run graph"]


def test_memory_in_use_is_not_another_calls(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def product(x, y):
        return (np.tanh(x @ y) @ y + x,)

    x, y = normal(40, 40), normal(40, 40) / 7
    multiplier = cupy.device.multiplier
    inside: list[Any] = []

    def between(*given: Any) -> Any:
        multiply = multiplier(*given)

        def run(*addresses: int) -> None:
            multiply(*addresses)
            if not inside:
                # another call, as of a thread, while this one's values wait in memory
                inside.append(True)
                check(cupy, f, product, y, x)

        return run

    monkeypatch.setattr(cupy.device, "multiplier", between)
    f = npjit.jit(product, fullgraph=True, mode="reduce-overhead")
    for _ in range(3):
        check(cupy, f, product, x, y)
        assert inside
        inside.clear()


def smooth(x, n):
    for _ in range(n):
        x = 0.5 * (np.roll(x, 1) + x)
    return (x,)


def test_trips_of_kernels_become_graphs(cupy: Any) -> None:
    f = npjit.jit(smooth, fullgraph=True)
    check(cupy, f, smooth, normal(50), 10)
    assert "graph" not in driver_double.log
    for n in (300, 700, 90, 5):
        driver_double.log.clear()
        check(cupy, f, smooth, normal(50), n)
        assert ("run graph" in driver_double.log) == (n >= 90)


def test_a_launch_that_fails_names_the_kernel(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise ValueError("no such luck")

    monkeypatch.setattr(cupy.device, "start", fail)
    with pytest.raises(RuntimeError, match=r"did not start k0.* of .*test_native_calls.py:\d+: no"):
        npjit.jit(lambda x: x + 7)(cupy.asarray(normal(20)))


def test_on_another_current_device_python_answers(cupy: Any) -> None:
    f = npjit.jit(centre, fullgraph=True)
    driver_double.state["device"] = 1
    try:
        check(cupy, f, centre, normal(30, 20), 2.0)
        check(cupy, f, centre, normal(30, 20), 2.0)
    finally:
        driver_double.state["device"] = 0


def test_short_memory_is_made_room_for(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = npjit.jit(centre, fullgraph=True, mode="reduce-overhead")
    check(cupy, f, centre, normal(30, 20), 2.0)
    shortage = [MemoryError("first")]
    empty = cupy.device.empty

    def short(*spec: Any) -> Any:
        if shortage:
            raise shortage.pop()
        return empty(*spec)

    monkeypatch.setattr(cupy.device, "empty", short)
    # the runtime's allocation fails, then Python's succeeds
    check(cupy, f, centre, normal(31, 20), 2.0)
    assert not shortage
    shortage += [MemoryError("second"), MemoryError("first")]
    with pytest.raises(MemoryError, match="second"):
        check(cupy, f, centre, normal(32, 20), 2.0)


def test_a_tape_refuses_launches_beyond_its_words() -> None:
    with pytest.raises(ValueError, match="words 0 to 2"):
        _runtime.Tape([1], [], [("launch", 1, 1, 1, 32, 0, 2, "k")])


def test_host_steps_stop_a_tape_or_raise() -> None:
    seen: list[Any] = []
    tape = _runtime.Tape([], [], [seen.append, lambda bases: False, seen.append])
    assert tape.run([3, 4], 2) is False
    assert seen == [[3, 4]]
    with pytest.raises(ZeroDivisionError):
        _runtime.Tape([], [], [lambda bases: 1 / 0]).run([])


def test_headers_describe_device_arrays() -> None:
    x = normal(6, 8)[::-1, ::2]
    header, number = _runtime.device_header(Array(x))
    assert (header.shape, header.strides, number) == (x.shape, x.strides, 0)
    assert header.ctypes.data == x.ctypes.data and header.base is not None
    assert _runtime.device_header(x) is None
    assert _runtime.device_header(Array(np.zeros(3, "m8[s]"))) is None
