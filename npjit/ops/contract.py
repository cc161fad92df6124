"""Products of matrices and their kin, all in terms of `contract`: a product of two operands by axis
labels.

    contract(block, a, b, "ij", "jk", "ik", dtype)      # the matrix product

What has nothing to sum, or no label of its own on either side, is an elementwise product and a sum,
which fuse; the rest is one CONTRACT node. Types of 16 bits are computed in float32.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.dtypes import accumulator_of, kind_of
from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.size import Size
from npjit.ops import build
from npjit.ops.create import eye
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import ROWS, UFUNCS, function
from npjit.ops.movement import ravel
from npjit.ops.operands import (
    array_result,
    as_array,
    common_dtype,
    deliver,
    find_block,
    listed_axes,
    result,
)
from npjit.ops.reduce import ANY, SUM
from npjit.ops.tracer import Tracer, fresh

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
DType = np.dtype[Any]


# ---------------------------------------------------------------- by labels


def sum_out(block: Block, node: Node, axes: Sequence[int]) -> Node:
    """A sum in the node's own dtype; of bools, whether any holds."""
    op = ANY if node.dtype == build.BOOL else SUM
    return build.reduce(block, op, node, tuple(sorted(axes)), node.dtype)


def arrange(block: Block, node: Node, labels: str, wanted: str) -> Node:
    """Axes in the order `wanted`; labels that the node lacks become broadcast axes of extent 1."""
    order = [labels.index(x) for x in wanted if x in labels]
    turned = build.view(block, node, views.transpose(node.shape, order))
    missing = [i for i, x in enumerate(wanted) if x not in labels]
    return build.view(block, turned, views.expand(turned.shape, missing)) if missing else turned


def _agree(block: Block, a: Node, b: Node, la: str, lb: str) -> tuple[Node, Node, str, str]:
    """Operands whose common labels have equal extents, an extent of 1 against another dropped."""
    for x in la:
        if x not in lb:
            continue
        m, n = a.shape[la.index(x)], b.shape[lb.index(x)]
        if m == n:
            continue
        if m == 1:
            a, la = _dropped(block, a, la, x)
        elif n == 1:
            b, lb = _dropped(block, b, lb, x)
        elif not build.are_equal(block, m, n):
            raise ValueError(f"operands could not be broadcast together: axes of {m} and {n}")
    return a, b, la, lb


def _dropped(block: Block, node: Node, labels: str, label: str) -> tuple[Node, str]:
    squeezed = views.squeeze(node.shape, [labels.index(label)])
    return build.view(block, node, squeezed), labels.replace(label, "")


def _reduce_alone(block: Block, node: Node, labels: str, others: str, out: str) -> tuple[Node, str]:
    """Labels that neither the other operand nor the result has are summed first."""
    alone = [i for i, x in enumerate(labels) if x not in others and x not in out]
    if not alone:
        return node, labels
    kept = "".join(x for x in labels if x in others or x in out)
    return sum_out(block, node, alone), kept


def contract(block: Block, a: Node, b: Node, la: str, lb: str, out: str, dtype: DType) -> Node:
    """sum over the labels that `out` lacks of a * b; no label repeats within an operand."""
    wide = accumulator_of(dtype)
    a, b = (build.cast(block, build.cast(block, n, dtype), wide) for n in (a, b))
    a, b, la, lb = _agree(block, a, b, la, lb)
    a, la = _reduce_alone(block, a, la, lb, out)
    b, lb = _reduce_alone(block, b, lb, la, out)
    summed = [x for x in la if x in lb and x not in out]
    if not summed or set(la) == set(lb):
        made = _product_and_sum(block, a, b, la, lb, out, wide)
    else:
        made = _contraction(block, a, b, la, lb, out, wide)
    return build.cast(block, made, dtype)


def _product_and_sum(
    block: Block, a: Node, b: Node, la: str, lb: str, out: str, dtype: DType
) -> Node:
    labels = out + "".join(x for x in la if x not in out)
    factors = [arrange(block, a, la, labels), arrange(block, b, lb, labels)]
    made = build.apply(block, UFUNCS[np.multiply], factors, dtype)
    if len(labels) > len(out):
        made = sum_out(block, made, range(len(out), len(labels)))
    return _from_zero(block, made)


def _from_zero(block: Block, node: Node) -> Node:
    """NumPy's products accumulate from 0.0, so that none is -0.0."""
    if kind_of(node.dtype) not in "fc":
        return node
    return build.ufunc(block, UFUNCS[np.add], np.add, [node, build.constant(block, 0, node.dtype)])


def _contraction(block: Block, a: Node, b: Node, la: str, lb: str, out: str, dtype: DType) -> Node:
    extents: dict[str, Size] = {}
    for labels, node in ((lb, b), (la, a)):
        extents.update(zip(labels, node.shape, strict=True))
    b = build.same_shape(block, b, tuple(extents[x] for x in lb))
    shape = tuple(extents[x] for x in out)
    weight = Weight.ARRAY if shape else Weight.SCALAR
    return block.add(ROWS["contract"], (a, b), (la, lb, out), TensorType(shape, dtype, weight))


# ---------------------------------------------------------------- matmul and its kin


def _pair(*values: Any) -> tuple[Block, list[Tracer]]:
    block = find_block(*values)
    return block, [as_array(block, v) for v in values]


def _batched(
    ufunc: np.ufunc, x1: Any, x2: Any, cores: tuple[str, str, str], conjugate: bool = False
) -> Tracer:
    """A generalised ufunc, by the labels of its core axes; batch axes stand in front."""
    block, (a, b) = _pair(x1, x2)
    ca, cb, co = cores
    if a.ndim < len(ca) or b.ndim < len(cb):
        raise ValueError(f"{ufunc.__name__}: an operand does not have enough dimensions")
    if conjugate:
        a = a.conj()
    dtype = build.loop_of(a.block, ufunc, (a.node, b.node))[-1]
    free = [x for x in LETTERS if x not in ca + cb]
    rank = max(a.ndim - len(ca), b.ndim - len(cb))
    batch = "".join(free[:rank])
    la = batch[rank - (a.ndim - len(ca)) :] + ca
    lb = batch[rank - (b.ndim - len(cb)) :] + cb
    shared = set(ca) & set(cb)
    for x in shared:
        m, n = a.raw_shape[la.index(x)], b.raw_shape[lb.index(x)]
        if not build.are_equal(block, m, n):
            raise ValueError(
                f"{ufunc.__name__}: Input operand 1 has a mismatch in its core dimension"
            )
    return result(block, contract(block, a.node, b.node, la, lb, batch + co, dtype))


@function(np.matmul, np.linalg.matmul)
def matmul(x1: Any, x2: Any) -> Tracer:
    """np.matmul."""
    _, (a, b) = _pair(x1, x2)
    if not a.ndim or not b.ndim:
        raise ValueError("matmul: Input operand does not have enough dimensions")
    rows = "m" if a.ndim > 1 else ""
    columns = "n" if b.ndim > 1 else ""
    return _batched(np.matmul, a, b, (rows + "k", "k" + columns, rows + columns))


@function(np.vecdot)
def vecdot(x1: Any, x2: Any) -> Tracer:
    """np.vecdot."""
    return _batched(np.vecdot, x1, x2, ("k", "k", ""), conjugate=True)


@function(np.linalg.vecdot)
def linalg_vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Tracer:
    """np.linalg.vecdot."""
    _, (a, b) = _pair(x1, x2)
    return vecdot(np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1))


if hasattr(np, "matvec"):
    function(np.matvec)(lambda x1, x2: _batched(np.matvec, x1, x2, ("mk", "k", "m")))
    function(np.vecmat)(
        lambda x1, x2: _batched(np.vecmat, x1, x2, ("k", "kn", "n"), conjugate=True)
    )


def _labelled(
    block: Block, a: Tracer, b: Tracer, la: str, lb: str, out: str, target: Any = None
) -> Any:
    dtype = common_dtype(a.block, [a.node, b.node])
    return deliver(target, result(block, contract(block, a.node, b.node, la, lb, out, dtype)))


def _require_aligned(block: Block, m: Size, n: Size) -> None:
    if not build.are_equal(block, m, n):
        raise ValueError(f"shapes not aligned: {m} and {n}")


@function(np.dot, "dot")
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """np.dot: the last axis of a with the last but one of b."""
    block, (x, y) = _pair(a, b)
    if not x.ndim or not y.ndim:
        product = np.multiply(x, y)
        return deliver(out, fresh(block, _from_zero(block, product.node)))
    la = LETTERS[: x.ndim]
    lb = list(LETTERS[x.ndim : x.ndim + y.ndim])
    lb[max(y.ndim - 2, 0)] = la[-1]
    free = [s for s in lb if s != la[-1]]
    _require_aligned(block, x.raw_shape[-1], y.raw_shape[max(y.ndim - 2, 0)])
    if out is not None and out.dtype != common_dtype(x.block, [x.node, y.node]):
        raise ValueError("output array is not acceptable")
    return _labelled(block, x, y, la, "".join(lb), la[:-1] + "".join(free), out)


@function(np.inner)
def inner(a: Any, b: Any, /) -> Any:
    """np.inner: the last axes of both."""
    block, (x, y) = _pair(a, b)
    if not x.ndim or not y.ndim:
        return np.multiply(x, y)
    la = LETTERS[: x.ndim]
    lb = LETTERS[x.ndim : x.ndim + y.ndim - 1] + la[-1]
    _require_aligned(block, x.raw_shape[-1], y.raw_shape[-1])
    return _labelled(block, x, y, la, lb, la[:-1] + lb[:-1])


@function(np.vdot)
def vdot(a: Any, b: Any, /) -> Any:
    """np.vdot."""
    _, (x, y) = _pair(a, b)
    return dot(ravel(x).conj(), ravel(y))


@function(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """np.outer."""
    _, (x, y) = _pair(a, b)
    return deliver(out, np.multiply(ravel(x)[:, None], ravel(y)[None, :]))


@function(np.linalg.outer)
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    """np.linalg.outer of two vectors."""
    _, (x, y) = _pair(x1, x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError("Input arrays must be one-dimensional")
    return outer(x, y)


def _outer_form(ufunc: np.ufunc) -> Any:
    """`ufunc.outer`: every element of a with every element of b."""

    def outer_of(a: Any, b: Any) -> Any:
        _, (x, y) = _pair(a, b)
        return ufunc(x[(..., *[None] * y.ndim)], y)

    return outer_of


for _ufunc in UFUNCS:
    if _ufunc.nin == 2:
        function((_ufunc, "outer"))(_outer_form(_ufunc))


@function(np.tensordot, np.linalg.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """np.tensordot."""
    block, (x, y) = _pair(a, b)
    if isinstance(axes, (tuple, list)):
        first, second = (listed_axes(g, t.ndim) for g, t in zip(axes, (x, y), strict=True))
    else:
        count = operator.index(axes)
        first = tuple(range(x.ndim - count, x.ndim))
        second = tuple(range(count))
    if len(first) != len(second):
        raise ValueError("shape-mismatch for sum")
    la = LETTERS[: x.ndim]
    lb = list(LETTERS[x.ndim : x.ndim + y.ndim])
    for i, j in zip(first, second, strict=True):
        if not build.are_equal(block, x.raw_shape[i], y.raw_shape[j]):
            raise ValueError("shape-mismatch for sum")
        lb[j] = la[i]
    out = [s for i, s in enumerate(la) if i not in first]
    out += [s for j, s in enumerate(lb) if j not in second]
    made = _labelled(block, x, y, la, "".join(lb), "".join(out))
    return array_result(block, made.node)


@function(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """np.linalg.multi_dot, from the left."""
    if any(a.ndim != 2 for a in arrays[1:-1]):
        raise NotCaptured("np.linalg.multi_dot of other than matrices")
    made = arrays[0]
    for nxt in arrays[1:]:
        made = dot(made, nxt)
    return deliver(out, made)


@function(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """np.linalg.matrix_power with a known exponent."""
    _, (x,) = _pair(a)
    power = operator.index(n)
    if power == 0:
        return np.zeros_like(x) + eye(x.block, x.shape[-1], dtype=x.dtype)
    if power < 0:
        x, power = np.linalg.inv(x), -power
    made: Any = None
    square = x
    while power:
        if power & 1:
            made = square if made is None else np.matmul(made, square)
        power >>= 1
        if power:
            square = np.matmul(square, square)
    return fresh(made.block, made.node)
