"""Factorisations of matrices: cholesky, qr, svd, svdvals; condition numbers by singular values.

NumPy's own LAPACK computes them. Where eigenvalues or singular values are equal, gradients leave
out how their vectors would turn into each other, which has no derivative: what depends on the
values alone, or on vectors of different ones, is exact, and nothing is infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.graph import TensorType
from npjit.core.size import smin
from npjit.ops.errors import NotCaptured
from npjit.ops.extern import dense, extern
from npjit.ops.kinds import function
from npjit.ops.linear_systems import (
    adjoint,
    as_matrix,
    dtypes_of,
    named_results,
    of_matrix,
    types_like,
)
from npjit.ops.tracer import Tracer

# ---------------------------------------------------------------- parts of rules


def hermitian_part(x: Any) -> Any:
    """NumPy reads one triangle; the gradient is shared between both."""
    return (x + adjoint(x)) / 2


def _diagonal_mask(x: Any) -> Any:
    return np.tril(np.triu(np.ones_like(x, dtype=bool)))


def safe_inverse(x: Any) -> Any:
    """1 / x, and 0 where x is 0."""
    is_zero = x == 0
    return np.where(is_zero, 0, 1 / np.where(is_zero, 1, x))


def inverse_differences(w: Any) -> Any:
    """1 / (w[j] - w[i]) at i, j; 0 for equal values."""
    return safe_inverse(w[..., None, :] - w[..., :, None])


# ---------------------------------------------------------------- cholesky and qr


def _cholesky_vjp(params: Any, g: Any, y: Any, a: Any) -> list[Any]:
    (upper,) = params
    lower, g = (adjoint(y), adjoint(g)) if upper else (y, g)
    inner = np.tril(np.matmul(adjoint(lower), g))
    inner = inner - np.where(_diagonal_mask(inner), inner / 2, inner.dtype.type(0))
    left = np.linalg.solve(adjoint(lower), inner)
    made = adjoint(np.linalg.solve(adjoint(lower), adjoint(left)))
    return [hermitian_part(made)]


CHOLESKY = extern(
    "cholesky",
    # CuPy's has no such argument
    lambda node, a: np.linalg.cholesky(a, **({"upper": True} if node.params[0] else {})),
    types_like(np.linalg.cholesky),
    vjp=_cholesky_vjp,
    raises=True,
)


@function(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: Any = False) -> Tracer:
    """np.linalg.cholesky."""
    (made,) = of_matrix(CHOLESKY, a, (bool(upper),))
    return made


def _qr_types(params: Any, a: TensorType) -> list[TensorType]:
    m, n = a.shape[-2:]
    (mode,) = params
    inner = m if mode == "complete" else smin(m, n)
    q, r = dtypes_of(np.linalg.qr, a.dtype)
    batch = a.shape[:-2]
    wide = dense((*batch, inner, n), r)
    return [wide] if mode == "r" else [dense((*batch, m, inner), q), wide]


def _qr_vjp(params: Any, *rest: Any) -> list[Any]:
    (mode,) = params
    if mode == "r":
        g, r, a = rest
        q, r = np.linalg.qr(a)
        return [_qr_gradient(1, g, q, r, a)]
    k, g, (q, r), a = rest
    if mode == "complete" and not a.block.sizes.decide_le(a.raw_shape[-2], a.raw_shape[-1]):
        raise NotCaptured("the gradient of a complete QR of a tall matrix")
    return [_qr_gradient(k, g, q, r, a)]


def _qr_gradient(k: int, g: Any, q: Any, r: Any, a: Any) -> Any:
    """What the gradient of q (k = 0) or r (k = 1) contributes."""
    m, n = a.shape[-2:]
    if m >= n:
        return _tall_qr(g if k == 0 else None, g if k == 1 else None, q, r)
    # a wide matrix is [x, y] with x = q u square; y = q v
    u, y = r[..., :, :m], a[..., :, m:]
    if k == 0:
        return np.concatenate([_tall_qr(g, None, q, u), np.zeros_like(y)], axis=-1)
    g_u, g_v = g[..., :, :m], g[..., :, m:]
    for_x = _tall_qr(np.matmul(y, adjoint(g_v)), g_u, q, u)
    return np.concatenate([for_x, np.matmul(q, g_v)], axis=-1)


def _tall_qr(g_q: Any, g_r: Any, q: Any, r: Any) -> Any:
    """From the gradients of q and r, None standing for zeros."""
    inner = 0 if g_r is None else np.matmul(r, adjoint(g_r))
    inner = inner if g_q is None else inner - np.matmul(adjoint(g_q), q)
    lower = np.tril(inner, -1)
    diagonal = np.where(_diagonal_mask(inner), np.real(inner), inner.dtype.type(0))
    turned = np.matmul(q, lower + adjoint(lower) + diagonal)
    turned = turned if g_q is None else g_q + turned
    return adjoint(np.linalg.solve(r, adjoint(turned)))


def _qr_meaning(node: Any, a: Any) -> Any:
    made = np.linalg.qr(a, node.params[0])
    return made if node.params[0] == "r" else tuple(made)


QR = extern("qr", _qr_meaning, _qr_types, vjp=_qr_vjp, raises=True)


@function(np.linalg.qr)
def qr(a: Any, mode: Any = "reduced") -> Any:
    """np.linalg.qr in the modes reduced, complete and r."""
    if mode not in ("reduced", "complete", "r"):
        raise NotCaptured(f"np.linalg.qr with mode={mode!r}")
    made = of_matrix(QR, a, (mode,), square=False)
    return made[0] if mode == "r" else named_results("QRResult", made)


# ---------------------------------------------------------------- singular values


def _svd_types(params: Any, a: TensorType) -> list[TensorType]:
    (full,) = params
    m, n = a.shape[-2:]
    inner = smin(m, n)
    u, s, vh = dtypes_of(np.linalg.svd, a.dtype)
    batch = a.shape[:-2]
    rows, columns = (m, n) if full else (inner, inner)
    return [
        dense((*batch, m, rows), u),
        dense((*batch, inner), s),
        dense((*batch, columns, n), vh),
    ]


def _svd_vjp(params: Any, k: int, g: Any, ys: Any, a: Any) -> list[Any]:
    """Of the reduced form; the further vectors of the full one have no gradient."""
    u, s, vh = ys
    inner = s.shape[-1]
    u, v = u[..., :, :inner], adjoint(vh[..., :inner, :])
    if k == 1:
        return [np.matmul(u * g[..., None, :], adjoint(v))]
    g = g[..., :, :inner] if k == 0 else adjoint(g[..., :inner, :])
    if k == 2:
        return [adjoint(np.matmul(_turned(g, v, s), adjoint(u)))]
    made = _turned(g, u, s)
    if g.dtype.kind == "c":
        # the phases of u and v turn together; they are counted here
        turn = np.imag(np.diagonal(np.matmul(adjoint(u), g), 0, -2, -1)) * safe_inverse(s)
        made = made + u * (1j * turn)[..., None, :]
    return [np.matmul(made, adjoint(v))]


def _turned(g: Any, u: Any, s: Any) -> Any:
    """What the gradient of u contributes to that of u s, up to u's own phases."""
    inner = np.matmul(adjoint(u), g)
    # 1 / (s[j]^2 - s[i]^2), the factors apart so that none underflows
    sums = safe_inverse(s[..., None, :] + s[..., :, None])
    turned = inverse_differences(s) * sums * inner
    within = np.matmul(u, (turned + adjoint(turned)) * s[..., None, :])
    # u's columns may leave the space that they span
    outside = (g - np.matmul(u, inner)) * safe_inverse(s)[..., None, :]
    return within + outside


def _svdvals_vjp(params: Any, g: Any, y: Any, a: Any) -> list[Any]:
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return [np.matmul(u * g[..., None, :], vh)]


def _svdvals_types(params: Any, a: TensorType) -> list[TensorType]:
    shape = (*a.shape[:-2], smin(*a.shape[-2:]))
    return [dense(shape, *dtypes_of(np.linalg.svdvals, a.dtype))]


SVD = extern(
    "svd",
    lambda node, a: tuple(np.linalg.svd(a, node.params[0])),
    _svd_types,
    vjp=_svd_vjp,
    raises=True,
)
SVDVALS = extern(
    "svdvals",
    lambda node, a: np.linalg.svdvals(a),
    _svdvals_types,
    vjp=_svdvals_vjp,
    raises=True,
)


@function(np.linalg.svd)
def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    """np.linalg.svd."""
    if hermitian:
        raise NotCaptured("np.linalg.svd with hermitian=True")
    if not compute_uv:
        return svdvals(a)
    made = of_matrix(SVD, a, (bool(full_matrices),), square=False)
    return named_results("SVDResult", made)


@function(np.linalg.svdvals)
def svdvals(x: Any, /) -> Tracer:
    """np.linalg.svdvals."""
    (made,) = of_matrix(SVDVALS, as_matrix(x), square=False)
    return made


@function(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """np.linalg.cond by singular values."""
    if p not in (None, 2, -2):
        raise NotCaptured(f"np.linalg.cond with p={p!r}")
    array = as_matrix(x)
    s = svdvals(array)
    ratio = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    unknown = np.isnan(ratio) & ~np.any(np.isnan(array), axis=(-2, -1))
    return np.where(unknown, ratio.dtype.type(np.inf), ratio)[()]
