"""Calls that the runtime makes without Python, and replays as graphs, with the driver's double."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import npjit
from npjit import _runtime
from npjit.backends import cuda_late, cuda_prepare
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


def test_results_of_one_stream_are_not_anothers(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, inside = [1], [True]
    _runtime.set_device_interface(Array, lambda: stream[0])
    x = cupy.asarray(normal(100))
    empty = cupy.device.empty

    def switching(*spec: Any) -> Any:
        made = empty(*spec)
        if not inside:
            # another thread's call on its stream, while this one waits for memory
            inside.append(True)
            stream[0] = 2
            f(x)
            stream[0] = 1
        return made

    monkeypatch.setattr(cupy.device, "empty", switching)
    f = npjit.jit(lambda x: x * 2, fullgraph=True, mode="reduce-overhead")
    held = f(x)
    inside.clear()
    first = f(x).data.ptr
    assert inside and first != held.data.ptr
    stream[0] = 2
    assert first not in [f(x).data.ptr for _ in range(3)]


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
    for k in range(4):
        # other addresses: there are two graphs, then the older one is changed
        log.clear()
        held = check(cupy, f, steps, normal(3000) + k)
        assert ("graph" if k == 0 else "change") in log
        assert log.count("run graph") == 1 and "launch" not in log
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
    held = [check(cupy, f, steps, normal(3000) + k) for k in range(5)]
    log = driver_double.log
    monkeypatch.setitem(driver_double.state, "changes", 1)
    log.clear()
    held.append(check(cupy, f, steps, normal(3000)))
    assert "destroy" in log and "launch" in log and "run graph" not in log
    monkeypatch.setitem(driver_double.state, "changes", 1 << 30)
    log.clear()
    held += [check(cupy, f, steps, normal(3000) + k) for k in (7, 8)]
    assert log.count("graph") == 1 and log.count("run graph") == 2


def test_results_that_take_turns_change_no_graph(cupy: Any) -> None:
    f = npjit.jit(lambda x: (x / x.sum(), x - x.mean()), fullgraph=True, mode="reduce-overhead")
    x = cupy.asarray(normal(3000))
    for _ in range(6):
        held = f(x)
    driver_double.log.clear()
    for _ in range(3):
        held = f(x)
    del held
    assert driver_double.log == ["run graph"] * 3


def test_a_call_like_the_last_changes_nothing_in_the_graph(cupy: Any) -> None:
    f = npjit.jit(lambda x: (x / x.sum(), x - x.mean()), fullgraph=True, mode="reduce-overhead")
    x = cupy.asarray(normal(3000))
    for _ in range(4):
        f(x)
    driver_double.log.clear()
    f(x)
    assert driver_double.log == ["run graph"]


def test_memory_in_use_is_not_another_calls(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def solved(x, y):
        return (np.linalg.solve(np.tanh(x) + 9, y) @ y + x,)

    x, y = normal(20, 20), normal(20, 20) / 7
    compute = cupy.device.compute
    inside: list[Any] = []

    def between(*given: Any) -> None:
        compute(*given)
        if not inside:
            # another call, as of a thread, while this one's values wait in memory
            inside.append(True)
            check(cupy, f, solved, y, x)

    monkeypatch.setattr(cupy.device, "compute", between)
    f = npjit.jit(solved, fullgraph=True, mode="reduce-overhead")
    for _ in range(3):
        check(cupy, f, solved, x, y)
        assert inside
        inside.clear()


def products(x, y, v):
    return np.tanh(x @ y) @ y.T + 1, (x @ v) * 2


@pytest.mark.parametrize("code", ["f4", "f8", "c16"])
def test_products_are_in_the_graph(cupy: Any, code: str) -> None:
    f = npjit.jit(products, fullgraph=True)
    x, y, v = normal(6, 5).astype(code), normal(5, 5).astype(code), normal(5).astype(code)
    log = driver_double.log
    for k in range(5):
        log.clear()
        given = [cupy.asarray(a) for a in (x + k, y, v)]
        for got, want in zip(f(*given), products(x + k, y, v), strict=True):
            np.testing.assert_allclose(got.get(), want, rtol=1e-5)
        if k >= 2:
            assert log.count("run graph") == 1 and "launch" not in log
    # as often as there are products in what is recorded
    assert log.count("product") == 3


def test_memory_for_products_is_found_before_addresses_are_filled_in(cupy: Any) -> None:
    f = npjit.jit(products, fullgraph=True)
    x, y, v = normal(6, 5), normal(5, 5), normal(5)
    inside: list[bool] = []

    def workspace() -> tuple[int, int]:
        if not inside:
            # another thread's call, while this one waits for memory
            inside.append(True)
            check(cupy, f, products, x + 1, y, v)
        return 1, 1

    driver_double.install(workspace)
    check(cupy, f, products, x, y, v)
    assert inside


def test_batches_of_products_are_in_the_graph(cupy: Any) -> None:
    def batches(x, y):
        return (np.tanh(x @ y) @ y.swapaxes(1, 2),)

    f = npjit.jit(batches, fullgraph=True)
    for k in range(4):
        check(cupy, f, batches, normal(3, 6, 5) + k, normal(3, 5, 5))
    assert driver_double.log.count("run graph") == 2


def smooth(x, n):
    for _ in range(n):
        x = 0.5 * (np.roll(x, 1) + x)
    return (x,)


def test_trips_of_kernels_become_graphs(cupy: Any) -> None:
    f = npjit.jit(smooth, fullgraph=True)
    log = driver_double.log
    check(cupy, f, smooth, normal(50), 10)
    assert "graph" not in log
    for n, graphs in ((300, 2), (700, 8), (90, 0), (0, 0)):
        # rows of 64 trips, from the third one on as a graph
        log.clear()
        check(cupy, f, smooth, normal(50), n)
        assert log.count("run graph") == graphs
        assert n == 0 or log.count("launch") == 2 * (n - 64 * graphs) + 1


def triangle(a):
    for i in range(a.shape[0]):
        a[i, :i] = a[i, :i] * 2 + a[:i, i]
        a[i:, i] -= a[i:, :i].sum(axis=1)
    return (a * 1,)


def test_trips_of_other_sizes_are_one_graph(cupy: Any, prepared: list[Any]) -> None:
    f = npjit.jit(triangle, fullgraph=True)
    log = driver_double.log
    for k in range(4):
        log.clear()
        check(cupy, f, triangle, normal(9, 9) + k)
        assert log.count("run graph") == (1 if k >= 2 else 0)
        assert ("launch" in log) == (k < 2)
    assert len(prepared) == 1


def test_trips_beyond_those_made_ready_ahead(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    run = cuda_late.Late.run

    def noting(self: cuda_late.Late, value: int, bases: Any) -> bool:
        ran.append(value)
        return run(self, value, bases)

    monkeypatch.setattr(cuda_late.Late, "run", noting)
    monkeypatch.setattr(cuda_prepare, "_AHEAD", 4)
    f = npjit.jit(triangle, fullgraph=True)
    for k in range(3):
        check(cupy, f, triangle, normal(9, 9) + k)
    assert ran == [*range(9)] * 3 and f.cache_info()["whole"] == 3


def converge(x, tol):
    n = 0
    while np.abs(x).max() > tol:
        x = x * 0.5 if x[0] > 0 else x * 0.25
        n += 1
    return x, x * n


def test_while_loops_and_branches_run_without_python(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*given: Any) -> None:
        raise AssertionError("conditions are the runtime's to read")

    monkeypatch.setattr(cupy.device, "read", read)
    f = npjit.jit(converge, fullgraph=True)
    for k in range(3):
        driver_double.log.clear()
        check(cupy, f, converge, normal(40) + k, 1e-3)
        assert driver_double.log.count("read") >= 20
    assert "run graph" in driver_double.log


def sized_by_values(x, counts):
    total = 0.0
    for i in range(counts.shape[0]):
        n = int(counts[i])
        total = total + x[:n].sum()
    return (x * total,)


def test_sizes_that_the_gpu_computes(cupy: Any) -> None:
    f = npjit.jit(sized_by_values)
    for k in range(3):
        check(cupy, f, sized_by_values, normal(40), np.array([3, 0, 17, 40 - k]))


def capped(x, n):
    total = np.zeros_like(x)
    for i in range(n):
        total[i:] += x[: x.shape[0] - i]
        if total.max() > 4:
            break
    return (total,)


def test_loops_that_stop(cupy: Any) -> None:
    f = npjit.jit(capped, fullgraph=True)
    for k in range(3):
        check(cupy, f, capped, np.abs(normal(20)) + k / 3, 15)


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
        _runtime.Tape([1], [], [("launch", 1, 1, 1, 32, 0, 0, 2, "k")])


def test_host_steps_stop_a_tape_or_raise() -> None:
    seen: list[Any] = []
    tape = _runtime.Tape([], [], [seen.append, lambda bases: False, seen.append])
    assert tape.run([3, 4]) is False
    assert seen == [[3, 4]]
    with pytest.raises(ZeroDivisionError):
        _runtime.Tape([], [], [lambda bases: 1 / 0]).run([])


def test_tapes_in_tapes() -> None:
    driver_double.install()
    flags = np.array([False, True])
    base = flags.ctypes.data
    seen: list[str] = []

    def noting(name: str, *more: Any) -> _runtime.Tape:
        def note(bases: list[int]) -> None:
            seen.append(name)
            for place, value in more:
                flags[place] = value

        return _runtime.Tape([], [], [note])

    def run(*steps: Any) -> tuple[bool, str]:
        seen.clear()
        done = _runtime.Tape([], [], steps).run([base])
        return done, "".join(seen)

    no, yes = (0, 0), (0, 1)
    a, b = noting("a"), noting("b")
    assert run(("repeat", no, [a, b], [], 5)) == (True, "ababa")
    assert run(("repeat", no, [a], [no, yes], 5)) == (True, "")
    assert run(("branch", no, [a, b]), ("branch", yes, [a, b])) == (True, "ba")
    assert run(("require", yes), lambda bases: seen.append("c")) == (True, "c")
    assert run(("repeat", no, [_runtime.Tape([], [], [("require", no)])], [], 2), a.run) == (
        False,
        "",
    )
    off = noting("x", (1, False))
    assert run(("loop", yes, [a, off], [])) == (True, "axa")
    flags[1] = True
    assert run(("loop", yes, [a, noting("y", (0, True))], [no])) == (True, "ay")


def test_headers_describe_device_arrays() -> None:
    x = normal(6, 8)[::-1, ::2]
    header, number = _runtime.device_header(Array(x))
    assert (header.shape, header.strides, number) == (x.shape, x.strides, 0)
    assert header.ctypes.data == x.ctypes.data and header.base is not None
    assert _runtime.device_header(x) is None
    assert _runtime.device_header(Array(np.zeros(3, "m8[s]"))) is None
