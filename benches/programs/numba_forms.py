"""The programs written for Numba by hand: linear algebra and stencils, the best loops we know.

In: the arguments of the program of the same name. Out: what it returns. `FORMS` names them all:

    FORMS["cholesky"](A)

Sums may be reordered, as LLVM vectorises none otherwise; NaN and infinity keep their meaning.
Loops with enough work run on all threads by prange.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from benches.programs import numba_fields
from benches.programs.numba_fields import parallel, serial


@serial
def dot(a, b):
    s = 0.0
    for i in range(len(a)):
        s += a[i] * b[i]
    return s


@serial
def cholesky(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - dot(A[i, :j], A[j, :j])) / A[j, j]
        A[i, i] = math.sqrt(A[i, i] - dot(A[i, :i], A[i, :i]))


@serial
def correlation(data):
    n, m = data.shape
    mean = np.zeros(m)
    for i in range(n):
        for j in range(m):
            mean[j] += data[i, j]
    mean /= n
    deviation = np.zeros(m)
    for i in range(n):
        for j in range(m):
            data[i, j] -= mean[j]
            deviation[j] += data[i, j] ** 2
    deviation = np.sqrt(deviation / n)
    for j in range(m):
        if deviation[j] <= 0.1:
            deviation[j] = 1.0
    data /= math.sqrt(n) * deviation
    corr = data.T @ data
    for i in range(m):
        corr[i, i] = 1.0
    return corr


@serial
def covariance(data):
    n, m = data.shape
    mean = np.zeros(m)
    for i in range(n):
        for j in range(m):
            mean[j] += data[i, j]
    data -= mean / n
    return data.T @ data / (n - 1.0)


@parallel
def doitgen(A, C4):
    for r in prange(A.shape[0]):
        A[r] = A[r] @ C4


@serial
def durbin(r):
    n = len(r)
    y = np.zeros(n)
    z = np.empty(n)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        s = r[k]
        for i in range(k):
            s += r[k - i - 1] * y[i]
        alpha = -s / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        y[:k] = z[:k]
        y[k] = alpha
    return y


@parallel
def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    n = len(x)
    for i in prange(n):
        for j in range(n):
            A[i, j] += u1[i] * v1[j] + u2[i] * v2[j]
    x += beta * (y @ A) + z
    for i in prange(n):
        w[i] += alpha * dot(A[i], x)


@serial
def gramschmidt(A):
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    s = np.empty(n)
    for k in range(n):
        norm = 0.0
        for i in range(m):
            norm += A[i, k] ** 2
        R[k, k] = math.sqrt(norm)
        s[:] = 0.0
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
            for j in range(k + 1, n):
                s[j] += Q[i, k] * A[i, j]
        R[k, k + 1 :] = s[k + 1 :]
        for i in range(m):
            for j in range(k + 1, n):
                A[i, j] -= Q[i, k] * s[j]
    return Q, R


@serial
def lu(A):
    n = A.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]


@serial
def ludcmp(A, b):
    lu(A)
    n = A.shape[0]
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(n):
        y[i] = b[i] - dot(A[i, :i], y[:i])
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - dot(A[i, i + 1 :], x[i + 1 :])) / A[i, i]
    return x, y


@njit
def mvt(x1, x2, y1, y2, A):
    x1 += A @ y1
    x2 += y2 @ A


@serial
def symm(alpha, beta, C, A, B):
    m, n = C.shape
    row = np.empty(n)
    for i in range(m):
        row[:] = 0.0
        for k in range(i):
            for j in range(n):
                C[k, j] += alpha * B[i, j] * A[i, k]
                row[j] += B[k, j] * A[i, k]
        for j in range(n):
            C[i, j] = beta * C[i, j] + alpha * (B[i, j] * A[i, i] + row[j])


@parallel
def syr2k(alpha, beta, C, A, B):
    n = A.shape[0]
    for i in prange(n):
        for j in range(i + 1):
            C[i, j] = beta * C[i, j] + alpha * (dot(A[j], B[i]) + dot(B[j], A[i]))


@parallel
def syrk(alpha, beta, C, A):
    n = A.shape[0]
    for i in prange(n):
        for j in range(i + 1):
            C[i, j] = beta * C[i, j] + alpha * dot(A[i], A[j])


@serial
def trisolv(L, x, b):
    for i in range(len(b)):
        x[i] = (b[i] - dot(L[i, :i], x[:i])) / L[i, i]


@serial
def trmm(alpha, A, B):
    m, n = B.shape
    for i in range(m):
        for k in range(i + 1, m):
            for j in range(n):
                B[i, j] += A[k, i] * B[k, j]
        for j in range(n):
            B[i, j] *= alpha


@serial
def adi(steps, n, u):
    v = np.empty_like(u)
    p = np.empty_like(u)
    q = np.empty_like(u)
    b1, b2 = 2.0 * n * n / steps, 1.0 * n * n / steps
    a, b, c = -b1 / 2.0, 1.0 + b1, -b1 / 2.0
    d, e, f = -b2 / 2.0, 1.0 + b2, -b2 / 2.0
    for _ in range(steps):
        for i in range(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                p[i, j] = -c / (a * p[i, j - 1] + b)
                rest = -d * u[j, i - 1] + (1.0 + 2.0 * d) * u[j, i] - f * u[j, i + 1]
                q[i, j] = (rest - a * q[i, j - 1]) / (a * p[i, j - 1] + b)
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in range(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                p[i, j] = -f / (d * p[i, j - 1] + e)
                rest = -a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - c * v[i + 1, j]
                q[i, j] = (rest - d * q[i, j - 1]) / (d * p[i, j - 1] + e)
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


@parallel
def fdtd_2d(steps, ex, ey, hz, source):
    nx, ny = ex.shape
    for t in range(steps):
        for i in prange(nx):
            if i == 0:
                ey[0, :] = source[t]
            else:
                for j in range(ny):
                    ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
            for j in range(1, ny):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in prange(nx - 1):
            for j in range(ny - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@parallel
def floyd_warshall(paths):
    n = len(paths)
    for k in range(n):
        for i in prange(n):
            through = paths[i, k]
            for j in range(n):
                paths[i, j] = min(paths[i, j], through + paths[k, j])


@parallel
def heat_step(old, new):
    n = old.shape[0]
    for i in prange(1, n - 1):
        for j in range(1, n - 1):
            for k in range(1, n - 1):
                mid = old[i, j, k]
                new[i, j, k] = (
                    0.125 * (old[i + 1, j, k] - 2.0 * mid + old[i - 1, j, k])
                    + 0.125 * (old[i, j + 1, k] - 2.0 * mid + old[i, j - 1, k])
                    + 0.125 * (old[i, j, k + 1] - 2.0 * mid + old[i, j, k - 1])
                    + mid
                )


@njit
def heat_3d(steps, A, B):
    for _ in range(steps):
        heat_step(A, B)
        heat_step(B, A)


@parallel
def jacobi_1d(steps, A, B):
    n = len(A)
    for _ in range(steps):
        for i in prange(1, n - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in prange(1, n - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


@parallel
def jacobi_step(A, B):
    n = A.shape[0]
    for i in prange(1, n - 1):
        for j in range(1, n - 1):
            B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])


@njit
def jacobi_2d(steps, A, B):
    for _ in range(steps):
        jacobi_step(A, B)
        jacobi_step(B, A)


@serial
def seidel_2d(steps, A):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0


_HERE = [
    cholesky,
    correlation,
    covariance,
    doitgen,
    durbin,
    gemver,
    gramschmidt,
    lu,
    ludcmp,
    mvt,
    symm,
    syr2k,
    syrk,
    trisolv,
    trmm,
    adi,
    fdtd_2d,
    floyd_warshall,
    heat_3d,
    jacobi_1d,
    jacobi_2d,
    seidel_2d,
]
FORMS = {f.__name__: f for f in [*_HERE, *numba_fields.FORMS]}
