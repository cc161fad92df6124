"""Whole NumPy programs through the pipeline, as CUDA under the emulator, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from benches.gpu import workloads
from npjit.codegen import cuda_launch, cuda_map
from tests.cuda import fake_cupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_cupy.install(monkeypatch)


def check(cupy: Any, function: Callable[..., Any], *args: Any, compiled: int = 1) -> None:
    """A function of float64 arrays gives what NumPy gives, and every call is compiled."""
    jitted = npjit.jit(function, fullgraph=True)
    given = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
    got = jitted(*given)
    assert_close(got, function(*args))
    assert jitted.cache_info()["whole"] == 1


def assert_close(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        for g, w in zip(got, want, strict=True):
            assert_close(g, w)
        return
    got = got.get() if hasattr(got, "get") else got
    assert np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


@pytest.mark.parametrize("columns", [1, 2, 31, 32, 33, 64, 130, 1024, 2050, 5000])
def test_softmax(cupy: Any, columns: int) -> None:
    check(cupy, workloads.softmax, normal(3, columns))
    check(cupy, workloads.logsumexp, normal(3, columns))


@pytest.mark.parametrize("columns", [89, 130, 1021, 1026, 1533, 2867])
def test_rows_that_begin_between_boundaries(cupy: Any, columns: int) -> None:
    x = normal(5, columns).astype("f4")
    got = npjit.jit(workloads.softmax, fullgraph=True)(cupy.asarray(x))
    np.testing.assert_allclose(got.get(), workloads.softmax(x), rtol=1e-5)


def gathered(table, index):
    return table[index] * 2


@pytest.mark.parametrize(("columns", "by_warps"), [(20, False), (89, True), (128, False)])
def test_rows_that_are_gathered(
    cupy: Any, monkeypatch: pytest.MonkeyPatch, columns: int, by_warps: bool
) -> None:
    monkeypatch.setattr(cuda_map, "_MANY_ROWS", 5)
    index = np.random.default_rng(0).integers(-9, 9, 41)
    check(cupy, gathered, normal(9, columns).astype("f4"), index)
    if not fake_cupy.ON_GPU:
        assert any("_rows<" in name for _, name in cupy.device.known) == by_warps


def test_rows_that_no_block_holds(cupy: Any) -> None:
    check(cupy, workloads.softmax, normal(2, 40_000))


@pytest.mark.parametrize("columns", [5, 64, 300])
def test_layer_norm_and_its_gradients(cupy: Any, columns: int) -> None:
    args = (normal(40, columns), normal(columns), normal(columns) + 1, normal(40, columns) * 2)
    check(cupy, workloads.layer_norm, *args[:3])
    gradient = npjit.grad(workloads.layer_norm_loss, argnums=(0, 1, 2))
    assert_close(gradient(*map(cupy.asarray, args)), gradient(*args))


@pytest.mark.parametrize("shape", [(60, 70, 5), (50, 50, 64), (130, 49, 300), (3, 200, 8)])
def test_pairs(cupy: Any, shape: tuple[int, int, int]) -> None:
    n, m, depth = shape
    check(cupy, workloads.pairwise, normal(n, depth), normal(m, depth))


def test_nbody(cupy: Any) -> None:
    check(cupy, workloads.nbody, normal(70, 3), np.abs(normal(70)))


def standardise(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def test_columns_with_several_steps(cupy: Any) -> None:
    check(cupy, standardise, normal(300, 7))
    check(cupy, standardise, normal(50, 260))


def whole(x):
    return x / x.sum(), x.mean(), x.var(), x.argmax()


@pytest.mark.parametrize("n", [1, 50, 3000, 70_001])
def test_whole_arrays_in_steps(cupy: Any, n: int) -> None:
    check(cupy, whole, np.abs(normal(n)))


def test_stencil_and_transposes(cupy: Any) -> None:
    check(cupy, workloads.jacobi, normal(40, 51))
    check(cupy, workloads.transpose_add, normal(70, 70), normal(70, 70))


def escape(cr, ci):
    zr, zi, count = cr, ci, np.zeros_like(cr)
    for _ in range(40):
        inside = zr * zr + zi * zi <= 4
        count = count + np.where(inside, 1.0, 0.0)
        zr, zi = (
            np.where(inside, zr * zr - zi * zi + cr, zr),
            np.where(inside, 2 * zr * zi + ci, zi),
        )
    return count


def test_a_loop_of_elementwise_kernels_is_one_kernel(cupy: Any) -> None:
    args = (normal(301), normal(301))
    check(cupy, escape, *args)
    low = npjit.jit(escape).lower(*map(cupy.asarray, args))
    assert "for (idx trip = 0;" in low.as_text("cuda")


def overlapping(u):
    u = u.copy()
    u[1:] += u[:-1]
    v = u.copy()
    v[:-1] = v[1:]
    v[:] = v[::-1]
    return u, v


def test_updates_of_a_copy_and_of_what_it_was_made_of(cupy: Any) -> None:
    check(cupy, overlapping, normal(50))


def nested(x):
    for _ in range(20):
        x = x * 0.5
        for _ in range(40):
            x = x * 0.75 + 1
    return x


def warm_up(x, n):
    scaled = x * 3
    total = np.zeros_like(x)
    for _ in range(n):
        step = np.cos(scaled)
        total = total + step
        scaled = scaled * 0.5 + step
    return total, scaled


def test_loops_of_elementwise_kernels_around_and_in_front(cupy: Any) -> None:
    check(cupy, nested, normal(301))
    for n in (0, 1, 30):
        check(cupy, warm_up, normal(301), n)
    source = npjit.jit(warm_up).lower(cupy.asarray(normal(301)), 30).as_text("cuda")
    assert "for (idx trip = 0;" in source


def smooth(x, n):
    for _ in range(n):
        x = 0.5 * (np.roll(x, 1) + x)
    return x


def test_a_loop_over_neighbours_is_walked(cupy: Any) -> None:
    check(cupy, smooth, normal(50), 30)


def converge(x):
    n = 0
    while np.abs(x).max() > 0.1:
        x = x * 0.5
        n = n + 1
    return x, n


def test_conditions_are_read_from_the_device(cupy: Any) -> None:
    check(cupy, converge, normal(50))


def test_wide_indices_give_the_same(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_launch, "_REACH", 1)
    check(cupy, workloads.softmax, normal(5, 65))
    check(cupy, standardise, normal(30, 66))
    check(cupy, whole, np.abs(normal(3000)))
    check(cupy, workloads.transpose_add, normal(40, 40), normal(40, 40))
    check(cupy, workloads.pairwise, normal(50, 9), normal(60, 9))


def mlp(w, x, y):
    return ((np.tanh(x @ w) - y) ** 2).mean()


def summed_logarithms(x: Any) -> Any:
    total = np.logaddexp.reduce(np.arctan2(x, 1 / (x**2 + 1)), axis=-1)
    return np.sum(np.sin(total)) + np.sum(np.cos(x))


@pytest.mark.parametrize("shape", [(2, 1), (7, 40)])
def test_what_columns_need_before_and_after_their_sums(cupy: Any, shape: Any) -> None:
    x = np.random.default_rng(5).standard_normal(shape)
    gradient = npjit.grad(summed_logarithms)
    assert_close(gradient(cupy.asarray(x)), gradient(x))
    assert gradient.cache_info()["whole"] == 2


def test_products_and_their_gradients(cupy: Any) -> None:
    args = (normal(20, 30), normal(40, 20), normal(40, 30))
    check(cupy, mlp, *args)
    gradient = npjit.grad(mlp, argnums=(0, 1))
    assert_close(gradient(*map(cupy.asarray, args)), gradient(*args))


def indexed(table, index):
    return table[index], np.cumsum(table, axis=1), np.sort(table, axis=0)


def test_rows_on_whole_arrays(cupy: Any) -> None:
    check(cupy, indexed, normal(20, 30), np.random.default_rng(0).integers(-20, 20, 50))


def test_an_index_out_of_bounds_raises_numpys_error(cupy: Any) -> None:
    with pytest.raises(IndexError):
        npjit.jit(lambda t, i: t[i], device="cuda")(normal(20, 3), np.array([3, 20]))


def store(x):
    x[1:] = x[:-1] * 2
    x += 1
    return x.sum()


@pytest.mark.parametrize("dtype", ["f2", "f4", "i4", "c16"])
def test_dtypes_in_place(cupy: Any, dtype: str) -> None:
    x = np.arange(300).astype(dtype) / 64 if dtype[0] != "i" else np.arange(300, dtype=dtype)
    want = x.copy()
    total = store(want)
    given = cupy.asarray(x.copy())
    got = npjit.jit(store, fullgraph=True)(given)
    np.testing.assert_array_equal(given.get(), want)
    np.testing.assert_allclose(got.get(), total, rtol=2e-3 if dtype == "f2" else 1e-6)


def scans(x):
    return (
        np.cumsum(x, axis=1),
        np.cumprod(1 + x / 100, axis=1),
        np.maximum.accumulate(x, axis=1),
        np.cumsum(x, axis=0),
    )


@pytest.mark.parametrize("columns", [1, 31, 1024, 1025, 5000])
def test_scans_along_rows(cupy: Any, columns: int) -> None:
    check(cupy, scans, normal(3, columns))


def count(bins, index, values):
    found = np.zeros_like(bins)
    np.add.at(found, index, values)
    bins[index] += 1
    return found


def test_additions_at_indices(cupy: Any) -> None:
    index = np.random.default_rng(1).integers(-50, 50, 700)
    check(
        cupy,
        lambda b, i, v: (np.zeros_like(b), np.add.at(b, i, v))[0],
        normal(50),
        index,
        normal(700),
    )
    bins, values = np.zeros((50, 3)), normal(700, 3)
    given = cupy.asarray(bins.copy())
    npjit.jit(lambda b, i, v: np.add.at(b, i, v), fullgraph=True)(
        given, *map(cupy.asarray, (index, values))
    )
    np.add.at(bins, index, values)
    np.testing.assert_allclose(given.get(), bins, rtol=1e-12, atol=1e-12)


def spread(x):
    return x.mean(), x.var(), x.std()


@pytest.mark.parametrize("n", [1, 2, 1025, 70_001])
def test_variances_of_numbers_far_from_zero(cupy: Any, n: int) -> None:
    x = (normal(n) + 1000).astype("f4")
    got = npjit.jit(spread, fullgraph=True)(cupy.asarray(x))
    want = x.astype("f8")
    np.testing.assert_allclose(got[1].get(), want.var(), rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(got[2].get(), want.std(), rtol=1e-5, atol=1e-12)


def triangular(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]


def test_a_loop_and_nothing_else(cupy: Any) -> None:
    a = normal(12, 12) + 9 * np.eye(12)
    want, given = a.copy(), cupy.asarray(a.copy())
    triangular(want)
    npjit.jit(triangular, fullgraph=True)(given)
    np.testing.assert_allclose(given.get(), want, rtol=1e-10, atol=1e-12)


def checksum(data):
    crc = 0xFFFF
    for b in data:
        current = int(b)
        for _ in range(12):
            if (crc ^ current) & 1:
                crc = (crc >> 1) ^ 0x8408
            else:
                crc >>= 1
            current >>= 1
        crc = crc ^ 1
    return crc & 0xFFFF


def test_steps_behind_loops_and_branches(cupy: Any) -> None:
    data = np.random.default_rng(0).integers(0, 256, 20).astype("u1")
    assert npjit.jit(checksum, fullgraph=True)(cupy.asarray(data)) == checksum(data)
