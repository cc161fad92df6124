"""Signals, images and number loops as a JAX user writes them.

In: the arguments of the program of the same name. Out: its result and the arrays it updates, new:

    y = iir_filter(b, a, x)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from benches.programs.jax_form import natural


def filtered(rows, a1, a2, a3, a4, b1, b2):
    """Deriche's filter down the rows and up again, summed."""

    def down(state, row):
        before, y1, y2 = state
        y = a1 * row + a2 * before + b1 * y1 + b2 * y2
        return (row, y, y1), y

    def up(state, row):
        after, further, y1, y2 = state
        y = a3 * after + a4 * further + b1 * y1 + b2 * y2
        return (row, after, y, y1), y

    zeros = jnp.zeros_like(rows[0])
    _, downward = lax.scan(down, (zeros,) * 3, rows)
    return downward + lax.scan(up, (zeros,) * 4, rows, reverse=True)[1]


@natural()
def deriche(alpha, image):
    k = (1.0 - jnp.exp(-alpha)) ** 2
    k /= 1.0 + alpha * jnp.exp(-alpha) * 2.0 - jnp.exp(2.0 * alpha)
    taps = (
        k,
        k * jnp.exp(-alpha) * (alpha - 1.0),
        k * jnp.exp(-alpha) * (alpha + 1.0),
        -k * jnp.exp(-2.0 * alpha),
        2.0 ** (-alpha),
        -jnp.exp(-2.0 * alpha),
    )
    return filtered(filtered(image.T, *taps).T, *taps)


@natural()
def mandelbrot_masks(xs, ys, rounds, horizon):
    C = xs + ys[:, None] * 1j

    def step(n, state):
        Z, N = state
        inside = jnp.abs(Z) < horizon
        return jnp.where(inside, Z * Z + C, Z), jnp.where(inside, n, N)

    Z, N = lax.fori_loop(0, rounds, step, (jnp.zeros_like(C), jnp.zeros(C.shape, jnp.int64)))
    return Z, jnp.where(rounds - 1 == N, 0, N)


@natural()
def mandelbrot_points(xs, ys, rounds):
    def escape(cx, cy):
        def inside(state):
            x, y, n = state
            return (n < rounds) & (x * x + y * y < 4.0)

        def step(state):
            x, y, n = state
            return x * x - y * y + cx, 2.0 * x * y + cy, n + 1

        return lax.while_loop(inside, step, (0.0, 0.0, jnp.int32(0)))[2]

    along = jax.vmap(escape, in_axes=(0, None))
    return jax.vmap(along, in_axes=(None, 0))(xs, ys)


@natural()
def conv2d(images, weights):
    k = weights.shape[0]
    _, h, w, _ = images.shape
    out_h = h - k + 1
    out_w = w - k + 1
    return sum(
        images[:, i : i + out_h, j : j + out_w, :] @ weights[i, j]
        for i in range(k)
        for j in range(k)
    )


@natural(static="K")
def stockham_fft(x, K):
    y = x.reshape(1, -1)
    for _ in range(K):
        rows, columns = y.shape
        twiddle = jnp.exp(-1j * jnp.pi * jnp.arange(rows) / rows)[:, None]
        even = y[:, : columns // 2]
        odd = twiddle * y[:, columns // 2 :]
        y = jnp.concatenate((even + odd, even - odd), axis=0)
    return y.reshape(-1)


@natural()
def histogram_equalisation(image):
    h, w = image.shape
    cdf = jnp.cumsum(jnp.zeros(256, jnp.int64).at[image].add(1))
    low = cdf[jnp.argmax(cdf > 0)]
    return jnp.round((cdf - low) * 255.0 / (h * w - low))[image]


@natural()
def iir_filter(b, a, x):
    def sample(state, x):
        z1, z2 = state
        y = b[0] * x + z1
        return (b[1] * x - a[1] * y + z2, b[2] * x - a[2] * y), y

    return lax.scan(sample, (0.0, 0.0), x)[1]


@natural()
def kalman_filter(observations, F, H, Q, R):
    def step(state, observation):
        x, P = state
        x = F @ x
        P = F @ P @ F.T + Q
        gain = P @ H / (H @ P @ H + R)
        x = x + gain * (observation - H @ x)
        return (x, P - jnp.outer(gain, H @ P)), x

    n = len(F)
    return lax.scan(step, (jnp.zeros(n), jnp.eye(n)), observations)[1]


@natural()
def run_lengths(flags):
    """Each flag's distance from the last False before it is the length of its run so far."""
    index = jnp.arange(len(flags))
    longest = jnp.max(index - lax.cummax(jnp.where(flags, -1, index)))
    runs = flags[0] + jnp.sum(flags[1:] & ~flags[:-1])
    return runs, longest, jnp.sum(flags) / jnp.maximum(runs, 1)
