"""Eigenvalues and eigenvectors: eigh, eigvalsh, eig, eigvals.

NumPy's own LAPACK computes them. Before 2.5, NumPy gives real results for a real matrix whose
eigenvalues are all real: which it is in the call being traced decides, and is checked when the code
runs. Where eigenvalues are equal, gradients are as in `npjit.ops.factorisations`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from npjit.core.graph import TensorType
from npjit.ops import kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.extern import dense, extern
from npjit.ops.factorisations import hermitian_part, inverse_differences
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

# ---------------------------------------------------------------- of Hermitian matrices


def _eigh_types(params: Any, a: TensorType) -> list[TensorType]:
    w, v = dtypes_of(np.linalg.eigh, a.dtype)
    return [dense(a.shape[:-1], w), dense(a.shape, v)]


def _eigh_vjp(params: Any, k: int, g: Any, ys: Any, a: Any) -> list[Any]:
    w, v = ys
    if k == 0:
        return [np.matmul(v * g[..., None, :], adjoint(v))]
    inner = inverse_differences(w) * np.matmul(adjoint(v), g)
    return [hermitian_part(np.matmul(v, np.matmul(inner, adjoint(v))))]


def _eigvalsh_vjp(params: Any, g: Any, y: Any, a: Any) -> list[Any]:
    _, v = np.linalg.eigh(a, params[0])
    return [np.matmul(v * g[..., None, :], adjoint(v))]


EIGH = extern(
    "eigh",
    lambda node, a: tuple(np.linalg.eigh(a, node.params[0])),
    _eigh_types,
    vjp=_eigh_vjp,
    raises=True,
)
EIGVALSH = extern(
    "eigvalsh",
    lambda node, a: np.linalg.eigvalsh(a, node.params[0]),
    types_like(np.linalg.eigvalsh, 1),
    vjp=_eigvalsh_vjp,
    raises=True,
)


def _triangle(name: Any) -> tuple[str]:
    if not isinstance(name, str) or name.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return (name.upper(),)


@function(np.linalg.eigh)
def eigh(a: Any, UPLO: Any = "L") -> Any:
    """np.linalg.eigh."""
    return named_results("EighResult", of_matrix(EIGH, a, _triangle(UPLO)))


@function(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: Any = "L") -> Tracer:
    """np.linalg.eigvalsh."""
    (made,) = of_matrix(EIGVALSH, a, _triangle(UPLO))
    return made


# ---------------------------------------------------------------- of any square matrix


def _wide(dtype: Any) -> np.dtype[Any]:
    """The complex dtype of a matrix's eigenvalues."""
    (real,) = dtypes_of(np.linalg.inv, np.dtype(dtype))
    return np.result_type(real, np.complex64)


def _eig_types(params: Any, a: TensorType) -> list[TensorType]:
    return [dense(a.shape[:-1], _wide(a.dtype)), dense(a.shape, _wide(a.dtype))]


def _eigvals_types(params: Any, a: TensorType) -> list[TensorType]:
    return [dense(a.shape[:-1], _wide(a.dtype))]


def _eig_vjp(params: Any, k: int, g: Any, ys: Any, a: Any) -> list[Any]:
    w, v = ys
    if k == 0:
        inner = _on_diagonal(g)
    else:
        inner = np.matmul(adjoint(v), g)
        # the vectors keep their length
        lengths = np.real(np.diagonal(inner, 0, -2, -1))[..., None, :]
        inner = inner - np.matmul(adjoint(v), v) * lengths
        inner = inner * np.conj(inverse_differences(w))
    return [np.linalg.solve(adjoint(v), np.matmul(inner, adjoint(v)))]


def _eigvals_vjp(params: Any, g: Any, y: Any, a: Any) -> list[Any]:
    _, v = of_matrix(EIG, a)
    return [np.linalg.solve(adjoint(v), g[..., :, None] * adjoint(v))]


def _on_diagonal(values: Any) -> Any:
    square = values[..., None, :] + np.zeros_like(values)[..., :, None]
    return np.tril(np.triu(square))


EIG = extern("eig", lambda node, a: tuple(np.linalg.eig(a)), _eig_types, vjp=_eig_vjp, raises=True)
EIGVALS = extern(
    "eigvals", lambda node, a: np.linalg.eigvals(a), _eigvals_types, vjp=_eigvals_vjp, raises=True
)


@functools.cache
def _always_complex() -> bool:
    """Whether this NumPy gives complex eigenvalues also where all are real (from 2.5 on)."""
    return np.linalg.eigvals(np.eye(1)).dtype.kind == "c"


def _as_numpy_types(a: Any, values: list[Tracer]) -> list[Tracer]:
    """The results, real ones when those of a real matrix are all real."""
    if a.dtype.kind == "c" or _always_complex():
        return values
    block = values[0].block
    is_real = np.all(np.imag(values[0]) == 0)
    actual = getattr(block, "actual", None)
    found = actual(is_real.node) if actual is not None else None
    if found is None:
        raise NotCaptured("eigenvalues whose dtype depends on values")
    expected = is_real if found else ~is_real
    message = "whether all eigenvalues are real"
    block.add(kinds.CHECK, (expected.node,), message, expected.node.type)
    return [np.real(v) for v in values] if found else values


@function(np.linalg.eig)
def eig(a: Any) -> Any:
    """np.linalg.eig."""
    matrix = as_matrix(a, square=True)
    return named_results("EigResult", _as_numpy_types(matrix, of_matrix(EIG, matrix)))


@function(np.linalg.eigvals)
def eigvals(a: Any) -> Tracer:
    """np.linalg.eigvals."""
    matrix = as_matrix(a, square=True)
    (made,) = _as_numpy_types(matrix, of_matrix(EIGVALS, matrix))
    return made
