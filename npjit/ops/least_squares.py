"""np.linalg.lstsq and fits of polynomials by it; tensor equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.graph import TensorType
from npjit.core.size import smin
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.extern import call, dense, extern
from npjit.ops.kinds import function
from npjit.ops.linear_systems import adjoint, as_matrix, dtypes_of, pinv_gradient
from npjit.ops.operands import as_array, find_block
from npjit.ops.tracer import Tracer, fresh


def _types(params: Any, a: TensorType, b: TensorType) -> list[TensorType]:
    x, residuals, rank, s = dtypes_of(np.linalg.lstsq, a.dtype, b.dtype)
    _, tall = params
    columns = b.shape[-1]
    return [
        dense((a.shape[-1], columns), x),
        dense((columns if tall else 0,), residuals),
        dense((), rank),
        dense((smin(*a.shape),), s),
    ]


def _meaning(node: Any, a: Any, b: Any) -> Any:
    rcond, tall = node.params
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond)
    if tall and not residuals.size:
        # a matrix without full rank: the call will run as NumPy
        residuals = np.zeros(b.shape[-1], residuals.dtype)
    return x, residuals, rank, s


def _vjp(params: Any, k: int, g: Any, ys: Any, a: Any, b: Any) -> list[Any]:
    x = ys[0]
    if k == 0:
        inverse = np.linalg.pinv(a)
        return [
            pinv_gradient(np.matmul(g, adjoint(b)), inverse, a),
            np.matmul(adjoint(inverse), g),
        ]
    if k == 1:
        for_b = 2 * (b - np.matmul(a, x)) * g
        return [-np.matmul(for_b, adjoint(x)), for_b]
    u, _, vh = np.linalg.svd(a, full_matrices=False)
    return [np.matmul(u * g, vh), None]


LSTSQ = extern("lstsq", _meaning, _types, vjp=_vjp, raises=True)


@function(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """np.linalg.lstsq; a tall matrix must have full rank, on which the residuals' shape depends."""
    block = find_block(a, b)
    matrix, right = as_matrix(as_array(block, a)), as_array(block, b)
    if rcond is not None and not isinstance(rcond, (int, float)):
        raise NotCaptured("a tolerance that is no Python number")
    is_vector = right.ndim == 1
    right = right[:, None] if is_vector else right
    m, n = matrix.raw_shape[-2:]
    if matrix.ndim != 2 or right.ndim != 2 or not build.are_equal(block, m, right.raw_shape[0]):
        raise np.linalg.LinAlgError("Incompatible dimensions")
    tall = not block.sizes.decide_le(m, n)
    node = build.same_shape(block, right.node, (m, right.raw_shape[1]))
    x, residuals, rank, s = call(block, LSTSQ, [matrix.node, node], (rcond, tall))
    if tall:
        full = rank == fresh(block, build.size_node(block, n))
        block.add(kinds.CHECK, (full.node,), "a matrix without full rank", full.node.type)
    return (x[:, 0] if is_vector else x), residuals, rank, s


@function(np.linalg.tensorinv)
def tensorinv(a: Any, ind: Any = 2) -> Tracer:
    """np.linalg.tensorinv."""
    array = as_array(find_block(a), a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = array.shape
    rows = int(np.prod(shape[ind:]))
    made = np.linalg.inv(np.reshape(array, (rows, -1)))
    return np.reshape(made, (*shape[ind:], *shape[:ind]))


@function(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tracer:
    """np.linalg.tensorsolve."""
    block = find_block(a, b)
    array, right = as_array(block, a), as_array(block, b)
    if axes is not None:
        raise NotCaptured("np.linalg.tensorsolve with axes=")
    rest = array.shape[right.ndim :]
    made = np.linalg.solve(np.reshape(array, (right.size, -1)), np.ravel(right))
    return np.reshape(made, rest)


@function(np.vander)
def vander(x: Any, N: Any = None, increasing: Any = False) -> Tracer:
    """np.vander."""
    array = as_array(find_block(x), x)
    if array.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = array.shape[0] if N is None else N
    dtype = np.promote_types(array.dtype, int)
    wide = np.broadcast_to(array.astype(dtype)[:, None], (array.shape[0], count))
    first = np.arange(int(count)) == 0
    powers = np.cumprod(np.where(first, dtype.type(1), wide), axis=1)
    return powers if increasing else powers[:, ::-1]


@function(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False
) -> Tracer:
    """np.polyfit: the coefficients alone."""
    block = find_block(x, y, w)
    if full or cov or rcond is not None or not isinstance(deg, (int, np.integer)):
        raise NotCaptured("np.polyfit with rcond=, full=, cov= or several degrees")
    powers = vander(as_array(block, x) + 0.0, int(deg) + 1)
    values = as_array(block, y) + 0.0
    if w is not None:
        weights = as_array(block, w) + 0.0
        powers = powers * weights[:, None]
        values = values * (weights[:, None] if values.ndim == 2 else weights)
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    made = lstsq(powers / scale, values)[0]
    return (made.T / scale).T
