"""Products of 16 bit numbers that are one kernel with what is computed from them, under the
emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.backends.cuda_places import Sizes
from npjit.codegen import cuda_tensor_tiles
from npjit.codegen.cuda import print_cuda
from npjit.schedule.plan import Contract, Plan, every_step
from tests.cuda import emulate
from tests.cuda.test_attention import BRAIN, HALF, normal, planned


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every size is worth it, and every layout."""
    monkeypatch.setattr(cuda_tensor_tiles, "_TURNED_FIRST", True)
    monkeypatch.setattr(cuda_tensor_tiles, "_MULTIPLICATIONS", 1)
    monkeypatch.setattr(cuda_tensor_tiles, "_WASTE", np.inf)


def has_products(plan: Plan, *inputs: Any) -> bool:
    """Whether a call starts products that are no part of kernels."""
    device = emulate.make_device(0)
    program = emulate.Program(plan, device)
    instance = program.instance([device.array(v) for v in inputs])
    return any(isinstance(s, Contract) for s in every_step(instance.steps))


def check(function: Callable[..., Any], *calls: Sequence[Any], shift: int = 0) -> None:
    """A function is one kernel with NumPy's results."""
    plan, inputs = planned(function, *calls[0])
    assert not has_products(plan, *inputs)
    for args, found in zip(calls, emulate.run_all(plan, calls, shift), strict=True):
        for got, want in zip(found, several(function(*args)), strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            error = 2e-5 if got.itemsize == 4 and args[0].dtype == BRAIN else 0.02
            np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=error, atol=error)


def several(values: Any) -> tuple[Any, ...]:
    return values if isinstance(values, tuple) else (values,)


def with_bias(x: Any, w: Any, bias: Any) -> Any:
    return np.maximum(x @ w + bias, 0).astype(x.dtype)


def of_sizes(m: int, k: int, n: int, dtype: Any = BRAIN) -> tuple[Any, ...]:
    shapes = ((m, k), (k, n), (n,))
    return tuple(normal(*s, dtype=dtype, seed=i) for i, s in enumerate(shapes))


SIZES = [(63, 64, 65), (129, 65, 300), (64, 128, 40), (5, 9, 7), (2, 3, 8)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype, shift, sizes", [(BRAIN, 0, SIZES), (HALF, 2, SIZES[:2])])
def test_sizes(dtype: Any, shift: int, sizes: Any) -> None:
    check(with_bias, *(of_sizes(*s, dtype=dtype) for s in sizes), shift=shift)


def shifted(x: Any, w: Any) -> Any:
    return x @ w + np.float32(1)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "function, x, w",
    [
        (lambda x, w: x.T @ w + np.float32(1), normal(40, 70), normal(40, 48)),
        (lambda x, w: x @ w.T + np.float32(1), normal(70, 40), normal(48, 40)),
        (lambda x, w: x.T @ w[:48].T + np.float32(1), normal(40, 70), normal(72, 40)),
        (lambda x, w: x @ x.T + w, normal(70, 40), np.ones(70, "f4")),
        (shifted, normal(70, 40)[::-1], normal(3, 40, 24)[1]),
        (shifted, np.broadcast_to(normal(40), (70, 40)), normal(40, 49)[:, 1:]),
        (shifted, normal(3, 20, 40), normal(3, 40, 24)),
        (shifted, normal(3, 20, 40), np.broadcast_to(normal(40, 24), (3, 40, 24))),
        (
            lambda x, w: x @ w.swapaxes(1, 2)[:, 1:] + np.float32(1),
            np.broadcast_to(normal(20, 41)[:, :40], (3, 20, 40)),
            normal(3, 24, 41),
        ),
    ],
)
def test_layouts(function: Any, x: Any, w: Any) -> None:
    check(function, (x, w))


def masked(x: Any, w: Any, other: Any) -> Any:
    c = x @ w
    return np.where(other.T > 0, c * np.tanh(c), np.arange(c.shape[1], dtype="f4"))


def halved(x: Any, w: Any, other: Any) -> Any:
    return ((x @ w) * x.dtype.type(0.5) + other.T).astype("f4")


def residual(x: Any, w: Any, other: Any) -> Any:
    return x + (x @ w).astype(x.dtype) / (1 + np.abs(other.T.astype("f4"))).astype(x.dtype)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "function, dtype", [(masked, BRAIN), (halved, HALF), (residual, BRAIN), (residual, HALF)]
)
def test_what_is_computed_from_them(function: Any, dtype: Any) -> None:
    x, w, other = (normal(48, 48, dtype=dtype, seed=i) for i in range(3))
    check(function, (x, w, other))


def in_batches(x: Any, w: Any, bias: Any) -> Any:
    return np.maximum(x @ w + bias[:, None, :], 0).astype(x.dtype)


@pytest.mark.usefixtures("small")
def test_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    # a block has several tiles
    monkeypatch.setattr(cuda_tensor_tiles, "_BLOCKS", 2)
    check(
        in_batches,
        *((normal(5, 20, k), normal(5, k, n), normal(5, n)) for k, n in ((300, 40), (30, 9))),
    )


def layers(x: Any, w: Any, bias: Any) -> Any:
    return with_bias(with_bias(x, w, bias), w.T, bias[:1])


@pytest.mark.usefixtures("small")
def test_layers_behind_each_other() -> None:
    check(layers, of_sizes(24, 40, 56), of_sizes(9, 16, 16))


@pytest.mark.usefixtures("small")
def test_gradients() -> None:
    def loss(x: Any, w: Any) -> Any:
        return np.tanh(x @ w).sum()

    both = npjit.grad(loss, argnums=(0, 1))
    x, w = normal(24, 40), normal(40, 56)
    plan, inputs = planned(both, x, w)
    assert print_cuda(plan, None, True).joined
    for got, want in zip(emulate.run(plan, *inputs), both(x, w), strict=True):
        np.testing.assert_allclose(got.astype("f4"), want.astype("f4"), rtol=0.02, atol=0.02)


def plain(x: Any, w: Any) -> Any:
    return x @ w


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("columns, is_kernel", [(40, False), (41, True)])
def test_a_product_alone_is_a_kernel_between_boundaries(columns: int, is_kernel: bool) -> None:
    x, w = normal(24, 40), normal(40, columns)
    plan, inputs = planned(plain, x, w)
    assert has_products(plan, *inputs) is not is_kernel
    (got,) = emulate.run(plan, *inputs)
    np.testing.assert_allclose(got, x @ w, rtol=2e-5, atol=2e-5)


def kept(x: Any, w: Any) -> Any:
    c = x @ w
    return np.maximum(c, 0), c.sum(axis=1)


def across(x: Any, w: Any) -> Any:
    return np.stack([np.tanh(x @ w).T, w])


def with_one(x: Any, w: Any) -> Any:
    return x @ w + x.dtype.type(1)


def in_place(x: Any, w: Any) -> None:
    x[...] = np.maximum(x @ w, 0).astype(x.dtype)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "function, dtype", [(kept, BRAIN), (in_place, BRAIN), (across, BRAIN), (with_one, np.int16)]
)
def test_what_stays_apart(function: Any, dtype: Any) -> None:
    plan, inputs = planned(function, normal(24, 24, dtype=dtype), normal(24, 24, dtype=dtype))
    assert has_products(plan, *inputs)


def test_small_products_stay_apart() -> None:
    args = of_sizes(128, 64, 256)
    plan, inputs = planned(with_bias, *args)
    assert not any(isinstance(s, Contract) for s in print_cuda(plan, None, True).plan.steps)
    assert has_products(plan, *inputs)
    (got,) = emulate.run(plan, *inputs)
    np.testing.assert_allclose(
        got.astype("f4"), with_bias(*args).astype("f4"), rtol=0.02, atol=0.02
    )


@pytest.mark.parametrize(
    "m, n, k, fits",
    [
        (2048, 2048, 2048, True),
        (1024, 1024, 1024, False),
        (3072, 3072, 3072, False),
        (8192, 128, 4096, False),
        (4096, 4096, 1024, True),
    ],
)
def test_tiles_must_fill_the_multiprocessors(m: int, n: int, k: int, fits: bool) -> None:
    plan, _ = planned(with_bias, *of_sizes(40, 48, 56))
    module = print_cuda(plan, None, True)
    (launch,) = module.plan.steps
    shapes = ((m, k), (k, n), (n,))
    sizes = Sizes({v: shapes[s.input][s.axis] for v, s in plan.sources.items()})
    assert module.joined[launch.kernel].fits(launch, sizes.value) is fits
