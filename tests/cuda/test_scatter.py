"""Additions and stores at indices as CUDA, under the emulator: in shared memory, sorted, one by
one; and the check of all indices in the same kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from npjit.codegen import cuda_calls
from tests.cuda import driver_double, fake_cupy

# rows that a block adds up in shared memory here, float32
ROWS = 256


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    # small kernels, and few values are many
    monkeypatch.setattr(cuda_calls, "_SHARED", 4 * ROWS)
    monkeypatch.setattr(cuda_calls, "_MANY", 2000)
    monkeypatch.setattr(cuda_calls, "_BUSY", 3)
    return fake_cupy.install(monkeypatch)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step may be left to the device's libraries."""

    def refuse(self: Any, op: Any, *rest: Any) -> None:
        raise AssertionError(f"{op.name} is no kernel")

    monkeypatch.setattr(fake_cupy.ArrayDevice, "compute", refuse)


def added(bins, index, values):
    found = np.zeros_like(bins)
    np.add.at(found, index, values)
    return found


def counted(bins, index):
    np.add.at(bins, index, 1)
    return bins * 1


def data(dtype: str, rows: int, count: int) -> Any:
    rng = np.random.default_rng(rows + count)
    # whole numbers, whose sums are the same in any order
    bins, values = rng.integers(0, 9, rows), rng.integers(-50, 100, count)
    return bins.astype(dtype), rng.integers(-rows, rows, count), values.astype(dtype)


def check(cupy: Any, function: Any, *args: Any) -> Any:
    jitted = npjit.jit(function, fullgraph=True)
    given = [cupy.asarray(a) for a in args]
    np.testing.assert_array_equal(jitted(*given).get(), function(*args))
    np.testing.assert_array_equal(given[0].get(), args[0])
    return jitted


def starts(cupy: Any, function: Any, *args: Any) -> list[str]:
    """The functions that a call starts, without their constants."""
    operands = [
        cuda_calls.Operand(a.dtype, a.shape, (1,), 16) for a in (args[0], args[2], args[1], args[0])
    ]
    call = npjit.jit(function).lower(*map(cupy.asarray, args)).compiled.plan.steps[-1]
    routine = cuda_calls.routine_for(call.op, call.params, operands)
    return [p.start.function.partition("<")[0] for p in routine.parts]


@pytest.mark.parametrize("dtype", ["f4", "i8"])
@pytest.mark.parametrize(
    ("rows", "count", "way"),
    [
        (3, 900, ["nj_scatter_private"]),
        (120, 9000, ["nj_scatter_private"]),
        (700, 9000, ["nj_scatter_sort", "nj_scatter_buckets"]),
        (700, 1500, ["nj_scatter_each"]),
    ],
)
def test_ways_to_add(cupy: Any, dtype: str, rows: int, count: int, way: list[str]) -> None:
    bins, index, values = data(dtype, rows, count)
    assert starts(cupy, added, bins, index, values) == way
    check(cupy, added, bins, index, values)
    check(cupy, added, bins, np.full_like(index, -1), values)
    check(cupy, counted, bins, index)


def stored(x, i, v):
    y = x * 1
    y[i] = v
    return y


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u1", "?", "c8", "c16", "f2"])
def test_the_last_of_several_values_stays(cupy: Any, kernels: None, dtype: str) -> None:
    rng = np.random.default_rng(3)
    index, values = rng.integers(-50, 50, 1000), (rng.standard_normal(1000) * 90).astype(dtype)
    check(cupy, stored, np.zeros(50, dtype), index, values)
    if dtype == "f4":
        rows = rng.standard_normal((1000, 3)).astype(dtype)
        check(cupy, stored, np.zeros((50, 3), dtype), index, rows)


@pytest.mark.parametrize("join", [np.add, np.multiply, np.maximum, np.minimum])
@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_ways_to_join(cupy: Any, kernels: None, join: np.ufunc, dtype: str) -> None:
    def joined(x, i, j, v):
        y = x * 1
        join.at(y, (i, j), v)
        return y

    rng = np.random.default_rng(4)
    i, j = rng.integers(-9, 9, (2, 300))
    values = rng.integers(-2, 3, (300, 4)).astype(dtype)
    if dtype == "f4" and join is np.maximum:
        values[5, 1] = np.nan
    with np.errstate(invalid="ignore"):
        check(cupy, joined, np.ones((9, 9, 4), dtype), i, j, values)


def test_axes_behind_others_and_values_apart(cupy: Any, kernels: None) -> None:
    def behind(x, m, v):
        y = x * 1.0
        y[:, m] = x[:, m] * 2
        np.add.at(y, (slice(None), 2, np.arange(30)), v[:, 1])
        y[2, 3] = v[3, 0]
        return y

    rng = np.random.default_rng(5)
    mask, values = rng.random((20, 30)) > 0.7, rng.integers(0, 9, (30, 2)) * 1.0
    check(cupy, behind, rng.integers(0, 9, (3, 20, 30)) * 1.0, mask, values)


def test_values_in_another_order(cupy: Any, kernels: None) -> None:
    """They are copied first."""

    def turned(x, i, v):
        y = x * 1
        np.add.at(y, i, v.transpose(1, 0, 2))
        return y

    rng = np.random.default_rng(7)
    index, values = rng.integers(-9, 9, (10, 30)), rng.integers(0, 9, (30, 10, 4)) * 1.0
    check(cupy, turned, np.ones((9, 4)), index, values)


@pytest.mark.parametrize("count", [1, 7, 500])
def test_what_a_mask_selects(cupy: Any, kernels: None, count: int) -> None:
    def selected(x, y):
        mask = x > 0.3
        return np.cumsum(x[mask])[-1] + np.max(y[mask]) + np.sum(np.flatnonzero(mask)) + 0 * x

    x, y = np.random.default_rng(8).integers(-9, 9, (2, count)) * 1.0
    x[0] = 1.0
    check(cupy, selected, x, y)


def test_axes_apart_are_numpys(cupy: Any) -> None:
    def apart(x, i, j, v):
        y = x * 1
        y[i, :, j] = v
        return y

    rng = np.random.default_rng(6)
    i, j = rng.integers(0, 9, (2, 200))
    check(cupy, apart, np.zeros((9, 4, 9)), i, j, rng.standard_normal((200, 4)))


def test_zeros_keep_their_signs(cupy: Any) -> None:
    """Bins that nothing is added to are what they were."""

    def onto(bins, index, values):
        found = bins * 1
        np.add.at(found, index, values)
        return found

    for rows, count in ((100, 9000), (700, 9000)):
        bins, index, values = np.full(rows, -0.0), np.full(count, 2), np.ones(count)
        got = npjit.jit(onto, fullgraph=True)(*map(cupy.asarray, (bins, index, values))).get()
        assert got[2] == count and np.signbit(np.delete(got, 2)).all()


@pytest.mark.parametrize("rows", [120, 700])
def test_indices_are_checked_where_they_are_read(cupy: Any, rows: int) -> None:
    bins, index, values = data("f4", rows, 9000)
    jitted = check(cupy, added, bins, index, values)
    if not fake_cupy.ON_GPU:
        driver_double.log.clear()
        jitted(*map(cupy.asarray, (bins, index, values)))
        # zeros, the flag, what reads the indices; then the flag is known
        assert list(driver_double.log)[:4] == ["launch", "launch", "launch", "read"]
    for wrong in (rows, -rows - 1):
        index[8_888] = wrong
        with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
            jitted(*map(cupy.asarray, (bins, index, values)))


def test_arguments_are_untouched_when_an_index_is_wrong(cupy: Any) -> None:
    """What is added to the caller's own memory waits for the check."""
    bins, index, _ = data("f4", 700, 9000)
    given = cupy.asarray(bins.copy())
    jitted = npjit.jit(counted)
    jitted(given, cupy.asarray(index))
    counted(bins, index)
    index[5] = 700
    with pytest.raises(IndexError):
        jitted(given, cupy.asarray(index))
    assert jitted.cache_info()["whole"] >= 1
    # NumPy itself adds what comes before the wrong index
    with pytest.raises(IndexError):
        counted(bins, index)
    np.testing.assert_array_equal(given.get(), bins)


def test_who_reads_the_indices_too_is_safe(cupy: Any) -> None:
    """A gather in front of the additions needs the answer first."""

    def gathered(bins, index, values):
        found = np.zeros_like(bins)
        np.add.at(found, index, bins[index] * values)
        return found

    bins, index, values = data("f4", 700, 9000)
    jitted = check(cupy, gathered, bins, index, values)
    index[4000] = 700
    with pytest.raises(IndexError):
        jitted(*map(cupy.asarray, (bins, index, values)))
