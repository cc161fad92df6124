"""Time-stepped stencils and shortest paths by slices, after PolyBench's public definitions.

In: grids and a number of steps. Out: None, the grids are advanced in place:

    jacobi_1d(10, A, B)
"""

from __future__ import annotations

import numpy as np


def adi(steps, n, u):
    v = np.empty_like(u)
    p = np.empty_like(u)
    q = np.empty_like(u)
    b1, b2 = 2.0 * n * n / steps, 1.0 * n * n / steps
    a, b, c = -b1 / 2.0, 1.0 + b1, -b1 / 2.0
    d, e, f = -b2 / 2.0, 1.0 + b2, -b2 / 2.0
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = -c / (a * p[1:-1, j - 1] + b)
            rest = -d * u[j, :-2] + (1.0 + 2.0 * d) * u[j, 1:-1] - f * u[j, 2:]
            q[1:-1, j] = (rest - a * q[1:-1, j - 1]) / (a * p[1:-1, j - 1] + b)
        v[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = u[1:-1, 0]
        for j in range(1, n - 1):
            p[1:-1, j] = -f / (d * p[1:-1, j - 1] + e)
            rest = -a * v[:-2, j] + (1.0 + 2.0 * a) * v[1:-1, j] - c * v[2:, j]
            q[1:-1, j] = (rest - d * q[1:-1, j - 1]) / (d * p[1:-1, j - 1] + e)
        u[1:-1, -1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]


def fdtd_2d(steps, ex, ey, hz, source):
    for t in range(steps):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def floyd_warshall(paths):
    for k in range(len(paths)):
        paths[:] = np.minimum(paths, paths[:, k, None] + paths[k, :])


def heat_3d(steps, A, B):
    for _ in range(steps):
        heat_step(A, B)
        heat_step(B, A)


def heat_step(old, new):
    mid = old[1:-1, 1:-1, 1:-1]
    new[1:-1, 1:-1, 1:-1] = (
        0.125 * (old[2:, 1:-1, 1:-1] - 2.0 * mid + old[:-2, 1:-1, 1:-1])
        + 0.125 * (old[1:-1, 2:, 1:-1] - 2.0 * mid + old[1:-1, :-2, 1:-1])
        + 0.125 * (old[1:-1, 1:-1, 2:] - 2.0 * mid + old[1:-1, 1:-1, :-2])
        + mid
    )


def jacobi_1d(steps, A, B):
    for _ in range(steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


def jacobi_2d(steps, A, B):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (
            A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]
        )
        A[1:-1, 1:-1] = 0.2 * (
            B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1]
        )


def seidel_2d(steps, A):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2]
                + A[i - 1, 1:-1]
                + A[i - 1, 2:]
                + A[i, 2:]
                + A[i + 1, :-2]
                + A[i + 1, 1:-1]
                + A[i + 1, 2:]
            )
            for j in range(1, n - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0
