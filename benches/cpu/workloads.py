"""The CPU workloads: plain NumPy functions with the data they run on.

In: nothing. Out: `FORWARD` and `GRADIENTS`, tuples of `Workload`. npjit gets exactly these
functions; the peers' own forms are in numba_forms.py, jax_forms.py and torch_forms.py, by name.

    workload = FORWARD[0]
    workload.function(*workload.arguments(np.float32))
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Workload:
    """One function, its arguments for a dtype, and which arguments a gradient is taken for."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[Any], tuple[Any, ...]]
    argnums: tuple[int, ...] = ()


def normal(dtype: Any, *shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal numbers, the same on every run."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def uniform(dtype: Any, low: float, high: float, size: int, seed: int = 0) -> np.ndarray:
    """Evenly spread numbers from low to high, the same on every run."""
    return np.random.default_rng(seed).uniform(low, high, size).astype(dtype)


# ---- elementwise


def sin2_cos2(x):
    return np.sin(x) ** 2 + np.cos(x) ** 2


def normal_cdf(d):
    """Abramowitz and Stegun 26.2.17, as NumPy has no erf."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
    series = k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    upper = 0.3989422804014327 * np.exp(-0.5 * d * d) * series
    return np.where(d > 0, 1.0 - upper, upper)


def black_scholes(spot, strike, years, rate, volatility):
    """Prices of European calls and puts."""
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * np.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d2)
    put = discounted * normal_cdf(-d2) - spot * normal_cdf(-d1)
    return call, put


def gelu(x):
    return 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


# ---- rows


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def layer_norm(x, gain, bias):
    mean = np.mean(x, axis=1, keepdims=True)
    variance = np.var(x, axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * gain + bias


def logsumexp(x):
    top = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=1)) + top[:, 0]


def cosine_similarity(a, b):
    dot = np.sum(a * b, axis=1)
    return dot / (np.sqrt(np.sum(a * a, axis=1)) * np.sqrt(np.sum(b * b, axis=1)))


# ---- whole arrays and columns


def mean_var(x):
    return np.mean(x), np.var(x)


def masked_sum(x):
    return np.sum(np.where(x > 0, x * x, 0.0))


def standardise_columns(x):
    return (x - np.mean(x, axis=0)) / np.std(x, axis=0)


# ---- two dimensions


def pairwise_distances(a, b):
    return np.sqrt(np.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1))


def stencil(a):
    return 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


# ---- scalar losses


def logistic_loss(weights, x, labels):
    return np.mean(np.log1p(np.exp(-labels * (x @ weights)))) + 1e-3 * np.sum(weights * weights)


def mlp_loss(w1, b1, w2, b2, x, targets):
    hidden = np.tanh(x @ w1 + b1)
    logits = hidden @ w2 + b2
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    log_total = np.log(np.sum(np.exp(shifted), axis=1))
    return np.mean(log_total - np.sum(shifted * targets, axis=1))


def total_call_price(spot, strike, years, rate, volatility):
    return np.sum(black_scholes(spot, strike, years, rate, volatility)[0])


def total_variation_loss(image, noisy):
    right = image[:-1, 1:] - image[:-1, :-1]
    down = image[1:, :-1] - image[:-1, :-1]
    variation = np.sum(np.sqrt(right * right + down * down + 1e-6))
    return 0.5 * np.sum((image - noisy) ** 2) + 0.1 * variation


# ---- data


def options(dtype):
    n = 1_000_000
    return (
        uniform(dtype, 20.0, 120.0, n, seed=1),
        uniform(dtype, 20.0, 120.0, n, seed=2),
        uniform(dtype, 0.1, 3.0, n, seed=3),
        uniform(dtype, 0.01, 0.06, n, seed=4),
        uniform(dtype, 0.1, 0.6, n, seed=5),
    )


def labelled_points(dtype):
    x = normal(dtype, 65_536, 64)
    weights = normal(dtype, 64, seed=1) * dtype(0.1)
    return weights, x, np.sign(x @ weights + normal(dtype, 65_536, seed=2)).astype(dtype)


def network(dtype):
    x = normal(dtype, 4096, 128)
    targets = np.eye(10, dtype=dtype)[np.arange(4096) % 10]
    w1 = normal(dtype, 128, 256, seed=1) * dtype(0.1)
    w2 = normal(dtype, 256, 10, seed=2) * dtype(0.1)
    return w1, np.zeros(256, dtype), w2, np.zeros(10, dtype), x, targets


def images(dtype):
    noisy = normal(dtype, 1024, 1024) * dtype(0.2) + dtype(0.5)
    return noisy * dtype(0.9), noisy


# ---- the lists. The sizes stay as they are: figures of different days are compared.

FORWARD = (
    Workload("sin2_cos2", sin2_cos2, lambda t: (normal(t, 4_000_000),)),
    Workload("black_scholes", black_scholes, options),
    Workload("gelu", gelu, lambda t: (normal(t, 4_000_000),)),
    Workload("softmax", softmax, lambda t: (normal(t, 4096, 1024),)),
    Workload(
        "layer_norm",
        layer_norm,
        lambda t: (normal(t, 4096, 1024), normal(t, 1024, seed=1), normal(t, 1024, seed=2)),
    ),
    Workload("logsumexp", logsumexp, lambda t: (normal(t, 4096, 1024),)),
    Workload("mean_var", mean_var, lambda t: (normal(t, 10_000_000),)),
    Workload("masked_sum", masked_sum, lambda t: (normal(t, 10_000_000),)),
    Workload(
        "pairwise_distances",
        pairwise_distances,
        lambda t: (normal(t, 1024, 16), normal(t, 1024, 16, seed=1)),
    ),
    Workload("stencil", stencil, lambda t: (normal(t, 2048, 2048),)),
    Workload("standardise_columns", standardise_columns, lambda t: (normal(t, 100_000, 64),)),
    Workload(
        "cosine_similarity",
        cosine_similarity,
        lambda t: (normal(t, 16_384, 256), normal(t, 16_384, 256, seed=1)),
    ),
)

GRADIENTS = (
    Workload("logistic_regression", logistic_loss, labelled_points, argnums=(0,)),
    Workload("mlp", mlp_loss, network, argnums=(0, 1, 2, 3)),
    Workload("greeks", total_call_price, options, argnums=(0, 1, 2, 3, 4)),
    Workload("tv_denoising", total_variation_loss, images, argnums=(0,)),
)
