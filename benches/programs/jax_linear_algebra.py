"""The linear algebra as a JAX user writes it.

In: the arguments of the program of the same name. Out: its result and the arrays it updates, new:

    A = cholesky(A)

Loops over rows are `fori_loop` or `scan` over whole rows, with masks where NumPy's slices shrink.
Sums of products are matrix products; the routines that do a program's whole work are left alone.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from benches.programs.jax_form import natural


@natural(updates="A")
def cholesky(A):
    index = jnp.arange(len(A))

    def column(j, A):
        rest = A[:, j] - A @ jnp.where(index < j, A[j], 0.0)
        pivot = jnp.sqrt(rest[j])
        return A.at[:, j].set(jnp.where(index > j, rest / pivot, A[:, j])).at[j, j].set(pivot)

    return lax.fori_loop(0, len(A), column, A)


@natural()
def correlation(data):
    n, _ = data.shape
    deviation = jnp.std(data, axis=0)
    deviation = jnp.where(deviation <= 0.1, 1.0, deviation)
    scaled = (data - jnp.mean(data, axis=0)) / (jnp.sqrt(n) * deviation)
    return jnp.fill_diagonal(scaled.T @ scaled, 1.0, inplace=False)


@natural()
def covariance(data):
    centred = data - jnp.mean(data, axis=0)
    return centred.T @ centred / (len(data) - 1.0)


@natural(updates="A")
def doitgen(A, C4):
    return A @ C4


@natural()
def durbin(r):
    n = len(r)
    zeros = jnp.zeros(n)
    flipped = jnp.concatenate((jnp.flip(r), zeros))

    def order(k, state):
        y, alpha, beta = state
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + lax.dynamic_slice(flipped, (n - k,), (n,)) @ y) / beta
        turned = lax.dynamic_slice(jnp.concatenate((jnp.flip(y), zeros)), (n - k,), (n,))
        return (y + alpha * turned).at[k].set(alpha), alpha, beta

    return lax.fori_loop(1, n, order, (zeros.at[0].set(-r[0]), -r[0], 1.0))[0]


@natural(updates="A x w")
def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A = A + jnp.outer(u1, v1) + jnp.outer(u2, v2)
    x = x + beta * (y @ A) + z
    return A, x, w + alpha * (A @ x)


@natural(updates="A")
def gramschmidt(A):
    m, n = A.shape
    index = jnp.arange(n)

    def column(k, state):
        A, Q, R = state
        norm = jnp.sqrt(jnp.sum(A[:, k] * A[:, k]))
        q = A[:, k] / norm
        row = jnp.where(index > k, q @ A, 0.0)
        return A - jnp.outer(q, row), Q.at[:, k].set(q), R.at[k].set(row.at[k].set(norm))

    A, Q, R = lax.fori_loop(0, n, column, (A, jnp.zeros((m, n)), jnp.zeros((n, n))))
    return (Q, R), A


def factorised(A):
    index = jnp.arange(len(A))

    def step(k, A):
        below = jnp.where(index > k, A[:, k] / A[k, k], 0.0)
        A = A.at[:, k].set(jnp.where(index > k, below, A[:, k]))
        return A - jnp.outer(below, jnp.where(index > k, A[k], 0.0))

    return lax.fori_loop(0, len(A), step, A)


@natural(updates="A")
def lu(A):
    return factorised(A)


@natural(updates="A")
def ludcmp(A, b):
    n = len(b)
    A = factorised(A)
    zeros = jnp.zeros_like(b)
    y = lax.fori_loop(0, n, lambda i, y: y.at[i].set(b[i] - A[i] @ y), zeros)

    def backward(k, x):
        i = n - 1 - k
        return x.at[i].set((y[i] - A[i] @ x) / A[i, i])

    return (lax.fori_loop(0, n, backward, zeros), y), A


@natural(updates="x1 x2")
def mvt(x1, x2, y1, y2, A):
    return x1 + A @ y1, x2 + y2 @ A


@natural(updates="C")
def symm(alpha, beta, C, A, B):
    return beta * C + alpha * ((jnp.tril(A) + jnp.tril(A, -1).T) @ B)


@natural(updates="C")
def syr2k(alpha, beta, C, A, B):
    full = beta * C + alpha * (A @ B.T + B @ A.T)
    return jnp.where(jnp.tri(*C.shape, dtype=bool), full, C)


@natural(updates="C")
def syrk(alpha, beta, C, A):
    return jnp.where(jnp.tri(*C.shape, dtype=bool), beta * C + alpha * (A @ A.T), C)


@natural(updates="x")
def trisolv(L, x, b):
    def row(i, x):
        return x.at[i].set((b[i] - L[i] @ x) / L[i, i])

    return lax.fori_loop(0, len(b), row, jnp.zeros_like(x))


@natural(updates="B")
def trmm(alpha, A, B):
    return alpha * (B + jnp.tril(A, -1).T @ B)
