"""Linear algebra with loops over rows and columns, after PolyBench's public definitions.

In: matrices and vectors, some of which a program overwrites. Out: what each returns, or None:

    A = spd(40, np.random.default_rng(0))
    cholesky(A)  # the lower triangle of A is now its factor
"""

from __future__ import annotations

import numpy as np


def cholesky(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[j, :j]) / A[j, j]
        A[i, i] = np.sqrt(A[i, i] - A[i, :i] @ A[i, :i])


def correlation(data):
    n, m = data.shape
    mean = np.mean(data, axis=0)
    deviation = np.std(data, axis=0)
    deviation[deviation <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(n) * deviation
    corr = np.eye(m)
    for i in range(m - 1):
        corr[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
        corr[i + 1 :, i] = corr[i, i + 1 :]
    return corr


def covariance(data):
    n, m = data.shape
    data -= data.mean(axis=0)
    cov = np.zeros((m, m))
    for i in range(m):
        cov[i, i:] = data[:, i] @ data[:, i:] / (n - 1.0)
        cov[i:, i] = cov[i, i:]
    return cov


def doitgen(A, C4):
    nr, nq, _ = A.shape
    for r in range(nr):
        for q in range(nq):
            A[r, q, :] = A[r, q, :] @ C4


def durbin(r):
    n = len(r)
    y = np.zeros(n)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * (y @ A) + z
    w += alpha * (A @ x)


def gramschmidt(A):
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(np.sum(A[:, k] * A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]


def ludcmp(A, b):
    n = A.shape[0]
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


def mvt(x1, x2, y1, y2, A):
    x1 += A @ y1
    x2 += y2 @ A


def symm(alpha, beta, C, A, B):
    m, n = C.shape
    C *= beta
    for i in range(m):
        for j in range(n):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            C[i, j] += alpha * (B[i, j] * A[i, i] + B[:i, j] @ A[i, :i])


def syr2k(alpha, beta, C, A, B):
    n, m = A.shape
    for i in range(n):
        C[i, : i + 1] *= beta
        for k in range(m):
            C[i, : i + 1] += A[: i + 1, k] * (alpha * B[i, k]) + B[: i + 1, k] * (alpha * A[i, k])


def syrk(alpha, beta, C, A):
    n, m = A.shape
    for i in range(n):
        C[i, : i + 1] *= beta
        for k in range(m):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


def trisolv(L, x, b):
    for i in range(len(b)):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


def trmm(alpha, A, B):
    m, n = B.shape
    for i in range(m):
        for j in range(n):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha


def spd(n, rng):
    """A symmetric positive definite matrix with condition near 3."""
    half = rng.random((n, n)) - 0.5
    return half @ half.T / n + np.eye(n)


def dominant(n, rng):
    """A matrix that needs no pivoting."""
    return rng.random((n, n)) / n + np.eye(n)


def reflections(n, rng):
    """An autocorrelation whose Toeplitz system is well conditioned."""
    return 0.5 ** np.arange(1, n + 1) * (0.5 + rng.random())
