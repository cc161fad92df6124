"""The stencils as a JAX user writes them.

In: the arguments of the program of the same name. Out: its result and the arrays it updates, new:

    A, B = jacobi_1d(10, A, B)
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from benches.programs.jax_form import natural


def solved(a, b, c, right):
    """Tridiagonal systems along the first axis, between values of one."""
    edge = jnp.ones_like(right[0])

    def forward(state, row):
        p, q = state
        pivot = a * p + b
        state = -c / pivot, (row - a * q) / pivot
        return state, state

    def backward(value, row):
        value = row[0] * value + row[1]
        return value, value

    _, rows = lax.scan(forward, (jnp.zeros_like(edge), edge), right)
    return lax.scan(backward, edge, rows, reverse=True)[1]


@natural(updates="u")
def adi(steps, n, u):
    b1, b2 = 2.0 * n * n / steps, 1.0 * n * n / steps
    a, b, c = -b1 / 2.0, 1.0 + b1, -b1 / 2.0
    d, e, f = -b2 / 2.0, 1.0 + b2, -b2 / 2.0

    def step(_, u):
        mid = u[1:-1]
        inner = solved(a, b, c, -d * mid[:, :-2] + (1.0 + 2.0 * d) * mid[:, 1:-1] - f * mid[:, 2:])
        v = jnp.pad(inner, ((1, 1), (0, 0)), constant_values=1.0)
        inner = solved(d, e, f, (-a * v[:-2] + (1.0 + 2.0 * a) * v[1:-1] - c * v[2:]).T).T
        return u.at[1:-1].set(jnp.pad(inner, ((0, 0), (1, 1)), constant_values=1.0))

    return lax.fori_loop(0, steps, step, u)


@natural(updates="ex ey hz")
def fdtd_2d(steps, ex, ey, hz, source):
    def step(t, fields):
        ex, ey, hz = fields
        ey = ey.at[0].set(source[t]).at[1:].add(-0.5 * (hz[1:] - hz[:-1]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)

    return lax.fori_loop(0, steps, step, (ex, ey, hz))


@natural(updates="paths")
def floyd_warshall(paths):
    def through(k, paths):
        return jnp.minimum(paths, paths[:, k, None] + paths[k])

    return lax.fori_loop(0, len(paths), through, paths)


def heat_step(old, new):
    mid = old[1:-1, 1:-1, 1:-1]
    return new.at[1:-1, 1:-1, 1:-1].set(
        0.125 * (old[2:, 1:-1, 1:-1] - 2.0 * mid + old[:-2, 1:-1, 1:-1])
        + 0.125 * (old[1:-1, 2:, 1:-1] - 2.0 * mid + old[1:-1, :-2, 1:-1])
        + 0.125 * (old[1:-1, 1:-1, 2:] - 2.0 * mid + old[1:-1, 1:-1, :-2])
        + mid
    )


@natural(updates="A B")
def heat_3d(steps, A, B):
    def step(_, grids):
        A, B = grids
        B = heat_step(A, B)
        return heat_step(B, A), B

    return lax.fori_loop(0, steps, step, (A, B))


@natural(updates="A B")
def jacobi_1d(steps, A, B):
    def half(old, new):
        return new.at[1:-1].set(0.33333 * (old[:-2] + old[1:-1] + old[2:]))

    def step(_, grids):
        A, B = grids
        B = half(A, B)
        return half(B, A), B

    return lax.fori_loop(0, steps, step, (A, B))


@natural(updates="A B")
def jacobi_2d(steps, A, B):
    def half(old, new):
        around = old[1:-1, :-2] + old[1:-1, 2:] + old[2:, 1:-1] + old[:-2, 1:-1]
        return new.at[1:-1, 1:-1].set(0.2 * (old[1:-1, 1:-1] + around))

    def step(_, grids):
        A, B = grids
        B = half(A, B)
        return half(B, A), B

    return lax.fori_loop(0, steps, step, (A, B))


@natural(updates="A")
def seidel_2d(steps, A):
    def row(i, A):
        up, mid, down = A[i - 1], A[i], A[i + 1]
        rest = up[:-2] + up[1:-1] + up[2:] + mid[1:-1] + mid[2:]
        rest = rest + down[:-2] + down[1:-1] + down[2:]

        def point(left, others):
            value = (others + left) / 9.0
            return value, value

        return A.at[i, 1:-1].set(lax.scan(point, mid[0], rest)[1])

    return lax.fori_loop(0, steps, lambda _, A: lax.fori_loop(1, len(A) - 1, row, A), A)
