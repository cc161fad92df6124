"""Linear systems and what goes with them: solve, inv, det, slogdet, pinv, lstsq, matrix_rank.

NumPy's own LAPACK computes them. Gradients of complex matrices are dL/dx + i dL/dy; stacked
matrices are differentiated one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from npjit.core.graph import Block, Node, TensorType
from npjit.core.op import Op
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.extern import call, dense, extern
from npjit.ops.kinds import function
from npjit.ops.operands import as_array, find_block
from npjit.ops.tracer import Tracer, fresh

DType = np.dtype[Any]


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return np.conj(np.swapaxes(x, -1, -2))


def stacked(x: Any) -> Any:
    """Numbers as 1 x 1 matrices."""
    return x[..., None, None]


# ---------------------------------------------------------------- types and shapes


@lru_cache(maxsize=1024)
def dtypes_of(function: Callable[..., Any], *dtypes: DType) -> tuple[DType, ...]:
    """The dtypes of a function's results for 1 x 1 matrices; NumPy's TypeError for others."""
    made = function(*[np.ones((1, 1), d) for d in dtypes])
    return tuple(np.asarray(m).dtype for m in (made if isinstance(made, tuple) else (made,)))


def types_like(function: Callable[..., Any], cut: int = 0) -> Callable[..., list[TensorType]]:
    """A rule for types: the function's dtypes, and the first argument's shape without its last
    `cut` axes."""

    def types(params: Any, *args: TensorType) -> list[TensorType]:
        shape = args[0].shape[: len(args[0].shape) - cut]
        return [dense(shape, d) for d in dtypes_of(function, *(a.dtype for a in args))]

    return types


def as_matrix(a: Any, square: bool = False) -> Tracer:
    """The operand, which is a matrix or a stack of them; NumPy's LinAlgError otherwise."""
    array = as_array(find_block(a), a)
    if array.ndim < 2:
        raise np.linalg.LinAlgError(
            f"{array.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    if square and not array.block.sizes.decide_eq(*array.raw_shape[-2:]):
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    if square:
        n = array.raw_shape[-2]
        node = build.same_shape(array.block, array.node, (*array.raw_shape[:-1], n))
        return fresh(array.block, node)
    return array


# ---------------------------------------------------------------- rows


def _solve_types(params: Any, a: TensorType, b: TensorType) -> list[TensorType]:
    return [dense(b.shape, *dtypes_of(np.linalg.solve, a.dtype, b.dtype))]


def _solve_vjp(params: Any, g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    for_b = np.linalg.solve(adjoint(a), g)
    return [-np.matmul(for_b, adjoint(y)), for_b]


def _inv_vjp(params: Any, g: Any, y: Any, a: Any) -> list[Any]:
    return [-np.matmul(adjoint(y), np.matmul(g, adjoint(y)))]


def _det_vjp(params: Any, g: Any, y: Any, a: Any) -> list[Any]:
    """By the cofactors, which a singular matrix has too."""
    return [stacked(g) * np.conj(cofactors(a))]


def _slogdet_vjp(params: Any, k: int, g: Any, ys: Any, a: Any) -> list[Any]:
    inverse = adjoint(np.linalg.inv(a))
    if k == 1:
        return [stacked(g) * inverse]
    if a.dtype.kind != "c":
        return [None]
    # the sign of a complex determinant turns with its phase
    return [stacked(np.imag(np.conj(g) * ys[0]) * -1j) * inverse]


def _cofactor_matrix(node: Any, a: Any) -> Any:
    """d det(a) / da, from singular values."""
    u, s, vh = np.linalg.svd(a)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :])
    phase = np.linalg.det(u) * np.linalg.det(vh)
    scaled = np.conj(u) * np.prod(others, axis=-1)[..., None, :]
    return stacked(phase) * np.matmul(scaled, np.conj(vh))


def _cofactor_vjp(params: Any, g: Any, y: Any, a: Any) -> list[Any]:
    det = stacked(np.linalg.det(a))
    turned = np.matmul(y, np.matmul(np.swapaxes(np.conj(g), -1, -2), y))
    straight = y * np.sum(np.conj(g) * y, axis=(-2, -1), keepdims=True)
    return [np.conj((straight - turned) / det)]


def _pinv_vjp(params: Any, g: Any, y: Any, a: Any) -> list[Any]:
    return [pinv_gradient(g, y, a)]


def pinv_gradient(g: Any, y: Any, a: Any) -> Any:
    """The gradient of a matrix, given that of its pseudo-inverse y."""
    gh, yh = adjoint(g), adjoint(y)
    first = -np.matmul(yh, np.matmul(g, yh))
    # what the null spaces of a matrix that is not square add
    left = np.matmul(gh, np.matmul(y, yh))
    right = np.matmul(np.matmul(yh, y), gh)
    left = left - np.matmul(a, np.matmul(y, left))
    right = right - np.matmul(np.matmul(right, y), a)
    return first + left + right


def _transposed(params: Any, a: TensorType) -> list[TensorType]:
    return [dense((*a.shape[:-2], a.shape[-1], a.shape[-2]), *dtypes_of(np.linalg.pinv, a.dtype))]


def _rank_types(params: Any, a: TensorType) -> list[TensorType]:
    return [dense(a.shape[:-2], np.intp)]


SOLVE = extern(
    "solve", lambda node, a, b: np.linalg.solve(a, b), _solve_types, vjp=_solve_vjp, raises=True
)
INV = extern(
    "inv",
    lambda node, a: np.linalg.inv(a),
    types_like(np.linalg.inv),
    vjp=_inv_vjp,
    raises=True,
)
DET = extern("det", lambda node, a: np.linalg.det(a), types_like(np.linalg.det, 2), vjp=_det_vjp)
SLOGDET = extern(
    "slogdet",
    lambda node, a: np.linalg.slogdet(a),
    types_like(np.linalg.slogdet, 2),
    vjp=_slogdet_vjp,
)
COFACTORS = extern(
    "cofactors", _cofactor_matrix, types_like(np.linalg.inv), vjp=_cofactor_vjp, raises=True
)
PINV = extern(
    "pinv",
    lambda node, a: np.linalg.pinv(a, node.params[0], node.params[1]),
    _transposed,
    vjp=_pinv_vjp,
    raises=True,
)
MATRIX_RANK = extern(
    "matrix_rank",
    lambda node, a: np.linalg.matrix_rank(a, node.params[0], node.params[1]),
    _rank_types,
    flat=True,
    raises=True,
)


# ---------------------------------------------------------------- functions


def of_matrix(op: Op, a: Any, params: Any = None, square: bool = True) -> list[Tracer]:
    """The results of a row of one matrix argument."""
    array = as_matrix(a, square)
    return call(array.block, op, [array.node], params)


def _alike(block: Block, a: Node, b: Node) -> tuple[Node, Node]:
    """Two stacks of matrices with as many matrices in each."""
    batch = build.broadcast_shapes(block, [a.shape[:-2], b.shape[:-2]])
    wide = [build.stretch(block, n, (*batch, *n.shape[-2:])) for n in (a, b)]
    return wide[0], wide[1]


@function(np.linalg.solve)
def solve(a: Any, b: Any) -> Tracer:
    """np.linalg.solve."""
    block = find_block(a, b)
    matrix, right = as_matrix(as_array(block, a), square=True), as_array(block, b)
    is_vector = right.ndim == 1
    if is_vector:
        right = right[:, None]
    n = matrix.raw_shape[-1]
    if right.ndim < 2 or not block.sizes.decide_eq(n, right.raw_shape[-2]):
        raise ValueError("solve: Input operand 1 has a mismatch in its core dimension")
    shape = (*right.raw_shape[:-2], n, right.raw_shape[-1])
    node = build.same_shape(block, right.node, shape)
    (made,) = call(block, SOLVE, _alike(block, matrix.node, node))
    return made[..., 0] if is_vector else made


@function(np.linalg.inv)
def inv(a: Any) -> Tracer:
    """np.linalg.inv."""
    (made,) = of_matrix(INV, a)
    return made


@function(np.linalg.det)
def det(a: Any) -> Tracer:
    """np.linalg.det."""
    (made,) = of_matrix(DET, a)
    return made


@function(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """np.linalg.slogdet."""
    return named_results("SlogdetResult", of_matrix(SLOGDET, a))


def cofactors(a: Any) -> Tracer:
    """The derivative of det(a) for each element of a."""
    (made,) = of_matrix(COFACTORS, a)
    return made


def named_results(name: str, values: list[Tracer]) -> Any:
    """NumPy's own named tuple of results."""
    return getattr(np.linalg._linalg, name)(*values)


def _tolerance(value: Any) -> Any:
    if value is not None and not isinstance(value, (int, float)):
        raise NotCaptured("a tolerance that is no Python number")
    return value


@function(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = np._NoValue) -> Tracer:
    """np.linalg.pinv."""
    array = as_matrix(a)
    if rtol is not np._NoValue:
        raise NotCaptured("np.linalg.pinv with rtol=")
    (made,) = of_matrix(PINV, array, (_tolerance(rcond), bool(hermitian)), square=False)
    return made


@function(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: Any = False, *, rtol: Any = None) -> Tracer:
    """np.linalg.matrix_rank of matrices."""
    if rtol is not None:
        raise NotCaptured("np.linalg.matrix_rank with rtol=")
    params = (_tolerance(tol), bool(hermitian))
    (made,) = of_matrix(MATRIX_RANK, A, params, square=False)
    return made
