"""The GPU workloads: plain NumPy functions, with the sizes of their data.

In: nothing. Out: `WORKLOADS`. npjit gets exactly these functions; `make` gives their arguments as
device arrays, at the size of the table or (scale 0.7) at one that nothing was tuned for:

    workload = WORKLOADS[0]
    workload.function(*workload.make(Maker(cupy), 1.0))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


class Maker:
    """Random device arrays, the same on every run."""

    def __init__(self, cupy: Any, scale: float = 1.0) -> None:
        self.cupy = cupy
        self.scale = scale
        self.random = cupy.random.default_rng(0)

    def size(self, n: int) -> int:
        """A dimension at this scale."""
        return int(n * self.scale)

    def normal(self, *shape: int) -> Any:
        """Standard normal float32 numbers; the shape is scaled."""
        return self.random.standard_normal(tuple(map(self.size, shape)), dtype=np.float32)

    def brain(self, *shape: int) -> Any:
        """Standard normal bfloat16 numbers."""
        import ml_dtypes

        return self.normal(*shape).astype(ml_dtypes.bfloat16)

    def uniform(self, low: float, high: float, *shape: int) -> Any:
        """Evenly spread float32 numbers."""
        made = self.random.random(tuple(map(self.size, shape)), dtype=np.float32)
        return made * np.float32(high - low) + np.float32(low)


@dataclass(frozen=True)
class Workload:
    """One function with its arguments. `least` gives the bytes that must move; `gradient` names the
    arguments to differentiate for, with the value."""

    number: str
    name: str
    function: Callable[..., Any]
    make: Callable[[Maker], tuple[Any, ...]]
    least: Callable[..., int]
    gradient: tuple[int, ...] = ()


def all_bytes(*arrays: Any) -> int:
    """Every argument read once."""
    return sum(a.nbytes for a in arrays if hasattr(a, "nbytes"))


# ---- elementwise


def saxpy(x, y):
    return np.float32(2.5) * x + y


def sin2_cos2(x):
    return np.sin(x) ** 2 + np.cos(x) ** 2


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def normal_cdf(d):
    """Abramowitz and Stegun 26.2.17, as NumPy has no erf."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
    series = k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    upper = 0.3989422804014327 * np.exp(-0.5 * d * d) * series
    return np.where(d > 0, 1.0 - upper, upper)


def black_scholes(spot, strike, years, rate, volatility):
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * np.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d2)
    return call, call - spot + discounted


def mandelbrot(cr, ci):
    zr, zi, count = cr, ci, np.zeros_like(cr)
    for _ in range(50):
        inside = zr * zr + zi * zi <= 4
        count = count + np.where(inside, np.float32(1), np.float32(0))
        zr, zi = (
            np.where(inside, zr * zr - zi * zi + cr, zr),
            np.where(inside, 2 * zr * zi + ci, zi),
        )
    return count


def transpose_add(x, y):
    return x.T + y


def jacobi(x):
    return 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


# ---- reductions


def total(x):
    return x.sum()


def mean_var(x):
    return x.mean(), x.var()


def positive_squares(x):
    return np.where(x > 0, x * x, 0).sum()


def column_sum(x):
    return x.sum(axis=0)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def logsumexp(x):
    m = x.max(axis=1, keepdims=True)
    return np.log(np.exp(x - m).sum(axis=1)) + m[:, 0]


def layer_norm(x, gain, bias):
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + np.float32(1e-5)) * gain + bias


def layer_norm_loss(x, gain, bias, weights):
    return (layer_norm(x, gain, bias) * weights).sum()


def cumsum_rows(x):
    return np.cumsum(x, axis=1)


# ---- products and pairs


def pairwise(a, b):
    return np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=-1))


def nbody(positions, mass):
    d = positions[None, :, :] - positions[:, None, :]
    r2 = (d * d).sum(axis=-1) + np.float32(1e-3)
    return (d * (mass / (r2 * np.sqrt(r2)))[:, :, None]).sum(axis=1)


def mlp_loss(w1, b1, w2, b2, x, y):
    hidden = np.tanh(x @ w1 + b1)
    return ((hidden @ w2 + b2 - y) ** 2).mean()


def logistic_loss(w, x, y):
    z = x @ w
    return (np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))).mean()


def matmul_bias_gelu(x, w, bias):
    return gelu(x @ w + bias[:, None, :]).astype(x.dtype)


def attention(q, k, v):
    s = q @ k.transpose(0, 1, 3, 2) * np.float32(0.125)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    weights = (e / e.sum(axis=-1, keepdims=True)).astype(v.dtype)
    return (weights @ v).astype(v.dtype)


# ---- indices


def scatter_add(bins, index, values):
    found = np.zeros_like(bins)
    np.add.at(found, index, values)
    return found


def gather_rows(table, index):
    return table[index]


def scale_shift(x):
    return x * 2 + 1


# ---- the table


def _black_scholes(m: Maker) -> tuple[Any, ...]:
    n = 2**26
    spans = ((10, 100), (10, 100), (0.1, 2), (0.0, 0.1), (0.1, 0.6))
    return tuple(m.uniform(low, high, n) for low, high in spans)


def _indices(m: Maker, high: int, n: int) -> Any:
    return m.random.integers(0, m.size(high), m.size(n))


def _softmax(columns: int) -> Callable[[Maker], tuple[Any, ...]]:
    return lambda m: (m.normal(2**27 // columns, columns),)


def _mlp(m: Maker) -> tuple[Any, ...]:
    shapes = ((1024, 4096), (4096,), (4096, 1024), (1024,), (8192, 1024), (8192, 1024))
    return tuple(m.normal(*s) * np.float32(0.05) for s in shapes)


WORKLOADS = (
    Workload(
        "1", "saxpy", saxpy, lambda m: (m.normal(2**27), m.normal(2**27)), lambda x, y: 3 * x.nbytes
    ),
    Workload("2", "sin2+cos2", sin2_cos2, lambda m: (m.normal(2**27),), lambda x: 2 * x.nbytes),
    Workload("3", "gelu", gelu, lambda m: (m.normal(2**27),), lambda x: 2 * x.nbytes),
    Workload("4", "black_scholes", black_scholes, _black_scholes, lambda *a: 7 * a[0].nbytes),
    Workload("5", "sum", total, lambda m: (m.normal(2**28),), all_bytes),
    Workload("6", "mean_var", mean_var, lambda m: (m.normal(2**28),), all_bytes),
    *(
        Workload("7", f"softmax_{c}", softmax, _softmax(c), lambda x: 2 * x.nbytes)
        for c in (128, 1024, 4096, 32768)
    ),
    Workload("8", "column_sum", column_sum, lambda m: (m.normal(16384, 16384),), all_bytes),
    Workload(
        "9",
        "layer_norm",
        layer_norm,
        lambda m: (m.normal(65536, 1024), m.normal(1024), m.normal(1024)),
        lambda x, *_: 2 * x.nbytes,
    ),
    Workload(
        "10",
        "layer_norm_backward",
        layer_norm_loss,
        lambda m: (m.normal(65536, 1024), m.normal(1024), m.normal(1024), m.normal(65536, 1024)),
        lambda x, *_: 3 * x.nbytes,
        (0, 1, 2),
    ),
    Workload("11", "logsumexp", logsumexp, lambda m: (m.normal(16384, 8192),), all_bytes),
    Workload(
        "12",
        "pairwise",
        pairwise,
        lambda m: (m.normal(4096, 64), m.normal(4096, 64)),
        lambda a, b: 4 * len(a) * len(b),
    ),
    Workload("13", "jacobi", jacobi, lambda m: (m.normal(8192, 8192),), lambda x: 2 * x.nbytes),
    Workload(
        "14",
        "transpose_add",
        transpose_add,
        lambda m: (m.normal(16384, 16384), m.normal(16384, 16384)),
        lambda x, y: 3 * x.nbytes,
    ),
    Workload(
        "15", "cumsum", cumsum_rows, lambda m: (m.normal(32768, 4096),), lambda x: 2 * x.nbytes
    ),
    Workload(
        "16",
        "mandelbrot",
        mandelbrot,
        lambda m: (m.uniform(-2, 0.5, 2**25), m.uniform(-1, 1, 2**25)),
        lambda a, b: 3 * a.nbytes,
    ),
    Workload("17", "mlp", mlp_loss, _mlp, all_bytes, (0, 1, 2, 3)),
    Workload(
        "18",
        "logistic",
        logistic_loss,
        lambda m: (m.normal(128), m.normal(2**20, 128), m.uniform(0, 1, 2**20)),
        all_bytes,
        (0,),
    ),
    Workload(
        "20",
        "matmul_bias_gelu",
        matmul_bias_gelu,
        lambda m: (m.normal(16, 2048, 2048), m.normal(16, 2048, 2048), m.normal(16, 2048)),
        all_bytes,
    ),
    Workload(
        "20",
        "matmul_bias_gelu_bf16",
        matmul_bias_gelu,
        lambda m: (m.brain(16, 2048, 2048), m.brain(16, 2048, 2048), m.brain(16, 2048)),
        all_bytes,
    ),
    Workload("19", "positive_squares", positive_squares, lambda m: (m.normal(2**28),), all_bytes),
    Workload(
        "21",
        "scatter_add",
        scatter_add,
        lambda m: (m.normal(2**20), _indices(m, 2**20, 2**26), m.normal(2**26)),
        all_bytes,
    ),
    Workload(
        "22",
        "gather",
        gather_rows,
        lambda m: (m.normal(2**20, 128), _indices(m, 2**20, 2**20)),
        lambda t, i: 2 * t.nbytes + i.nbytes,
    ),
    Workload(
        "24",
        "attention",
        attention,
        lambda m: tuple(m.brain(8, 16, 2048, 64) for _ in range(3)),
        lambda *a: 4 * a[0].nbytes,
    ),
    Workload(
        "25", "nbody", nbody, lambda m: (m.normal(16384, 3), m.uniform(0, 1, 16384)), all_bytes
    ),
)
