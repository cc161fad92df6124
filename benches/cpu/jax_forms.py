"""The workloads as a JAX user writes them: jax.numpy inside jit, 64-bit numbers on.

In: NumPy arrays. Out: `FORMS`, name -> compiled function; `GRADIENTS`, name -> value and gradients;
`to_device` runs before the clock starts and `wait` before it stops.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp as jax_logsumexp

jax.config.update("jax_enable_x64", True)


def to_device(arguments):
    return tuple(jax.device_put(a) for a in arguments)


def wait(result):
    return jax.block_until_ready(result)


def sin2_cos2(x):
    return jnp.sin(x) ** 2 + jnp.cos(x) ** 2


def normal_cdf(d):
    k = 1.0 / (1.0 + 0.2316419 * jnp.abs(d))
    series = k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    upper = 0.3989422804014327 * jnp.exp(-0.5 * d * d) * series
    return jnp.where(d > 0, 1.0 - upper, upper)


def black_scholes(spot, strike, years, rate, volatility):
    spread = volatility * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    d2 = d1 - spread
    discounted = strike * jnp.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d2)
    put = discounted * normal_cdf(-d2) - spot * normal_cdf(-d1)
    return call, put


def gelu(x):
    return jax.nn.gelu(x, approximate=True)


def softmax(x):
    return jax.nn.softmax(x, axis=1)


def layer_norm(x, gain, bias):
    mean = jnp.mean(x, axis=1, keepdims=True)
    variance = jnp.var(x, axis=1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * gain + bias


def logsumexp(x):
    return jax_logsumexp(x, axis=1)


def cosine_similarity(a, b):
    dot = jnp.sum(a * b, axis=1)
    return dot / (jnp.sqrt(jnp.sum(a * a, axis=1)) * jnp.sqrt(jnp.sum(b * b, axis=1)))


def mean_var(x):
    return jnp.mean(x), jnp.var(x)


def masked_sum(x):
    return jnp.sum(jnp.where(x > 0, x * x, 0.0))


def standardise_columns(x):
    return (x - jnp.mean(x, axis=0)) / jnp.std(x, axis=0)


def pairwise_distances(a, b):
    return jnp.sqrt(jnp.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1))


def stencil(a):
    return 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def logistic_loss(weights, x, labels):
    return jnp.mean(jnp.log1p(jnp.exp(-labels * (x @ weights)))) + 1e-3 * jnp.sum(weights * weights)


def mlp_loss(w1, b1, w2, b2, x, targets):
    hidden = jnp.tanh(x @ w1 + b1)
    logits = hidden @ w2 + b2
    shifted = logits - jnp.max(logits, axis=1, keepdims=True)
    log_total = jnp.log(jnp.sum(jnp.exp(shifted), axis=1))
    return jnp.mean(log_total - jnp.sum(shifted * targets, axis=1))


def total_call_price(spot, strike, years, rate, volatility):
    return jnp.sum(black_scholes(spot, strike, years, rate, volatility)[0])


def total_variation_loss(image, noisy):
    right = image[:-1, 1:] - image[:-1, :-1]
    down = image[1:, :-1] - image[:-1, :-1]
    variation = jnp.sum(jnp.sqrt(right * right + down * down + 1e-6))
    return 0.5 * jnp.sum((image - noisy) ** 2) + 0.1 * variation


FORMS = {
    form.__name__: jax.jit(form)
    for form in (
        sin2_cos2,
        black_scholes,
        gelu,
        softmax,
        layer_norm,
        logsumexp,
        mean_var,
        masked_sum,
        pairwise_distances,
        stencil,
        standardise_columns,
        cosine_similarity,
    )
}

GRADIENTS = {
    "logistic_regression": jax.jit(jax.value_and_grad(logistic_loss)),
    "mlp": jax.jit(jax.value_and_grad(mlp_loss, argnums=(0, 1, 2, 3))),
    "greeks": jax.jit(jax.value_and_grad(total_call_price, argnums=(0, 1, 2, 3, 4))),
    "tv_denoising": jax.jit(jax.value_and_grad(total_variation_loss)),
}
