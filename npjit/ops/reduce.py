"""Reductions: the rows, and NumPy's functions, methods and `ufunc.reduce` forms on top of them.

A REDUCE node's argument has the accumulator's dtype already; whatever a NumPy call can ask for
besides (dtype=, where=, initial=, keepdims=, out=) is made of other nodes around it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.dtypes import accumulator_of
from npjit.core.graph import Block, Node
from npjit.core.op import Op
from npjit.core.size import Shape, product
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.gating import gate
from npjit.ops.kinds import UFUNCS, function, reduction
from npjit.ops.operands import as_array, deliver, dtype_of, find_block, is_set, many_axes, result
from npjit.ops.symint import wrap
from npjit.ops.tracer import Tracer, as_node

SINGLE = np.dtype(np.float32)

# ---------------------------------------------------------------- rows


def _prod_vjp(g: Any, y: Any, x: Any, axes: tuple[int, ...]) -> list[Any]:
    """The product of the other factors, for up to two zero factors among them."""
    is_zero = x == 0
    zeros = np.sum(is_zero, axis=axes, keepdims=True)
    factors = np.where(is_zero, 1, x)
    rest = np.prod(factors, axis=axes, keepdims=True)
    # zero in value, but its derivative is that of the zero factors
    vanishing = np.sum(np.where(is_zero, x, 0), axis=axes, keepdims=True)
    at_zero = np.where(zeros == 1, rest, np.where(zeros == 2, (vanishing - x) * rest, 0))
    others = rest / factors
    elsewhere = np.where(zeros == 0, others, np.where(zeros == 1, vanishing * others, 0))
    return [gate(g, g * np.conj(np.where(is_zero, at_zero, elsewhere)))]


def _extreme_vjp(g: Any, y: Any, x: Any, axes: tuple[int, ...]) -> list[Any]:
    """Ties share evenly."""
    chosen = x == y
    count = np.sum(chosen, axis=axes, keepdims=True, dtype=g.dtype)
    return [np.where(chosen, g / count, 0)]


SUM = reduction(np.sum, "sum", name="reduce_sum", identity=0, vjp=lambda g, y, x, axes: [g])
PROD = reduction(np.prod, "product", name="reduce_prod", identity=1, vjp=_prod_vjp)
MIN = reduction(np.min, "min", name="reduce_min", vjp=_extreme_vjp)
MAX = reduction(np.max, "max", name="reduce_max", vjp=_extreme_vjp)


def _deviation(a: Any, axis: tuple[int, ...], dtype: Any) -> Any:
    """The sum of squared distances from the mean."""
    mean = np.mean(a, axis=axis, dtype=dtype, keepdims=True)
    return np.sum(np.square(a - mean), axis=axis, dtype=dtype)


def _deviation_vjp(g: Any, y: Any, x: Any, axes: tuple[int, ...]) -> list[Any]:
    """The mean moves too, but the distances from it add up to nothing."""
    return [gate(g, g * (2 * (x - np.mean(x, axis=axes, keepdims=True))))]


DEVIATION = reduction(
    _deviation, "deviation", name="reduce_deviation", identity=0, vjp=_deviation_vjp
)
ANY = reduction(np.any, "any", name="reduce_any", identity=False, flat=True)
ALL = reduction(np.all, "all", name="reduce_all", identity=True, flat=True)
ARGMIN = reduction(np.argmin, "argmin", name="reduce_argmin", flat=True)
ARGMAX = reduction(np.argmax, "argmax", name="reduce_argmax", flat=True)

# ---------------------------------------------------------------- shared parts


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """As many_axes; a reduction takes axis 0 and -1 of a 0-d array too."""
    return () if ndim == 0 and axis in (0, -1) else many_axes(axis, ndim)


def _keep(block: Block, node: Node, axes: tuple[int, ...], keepdims: Any) -> Node:
    return (
        build.view(block, node, views.expand(node.shape, axes))
        if is_set(keepdims) and axes
        else node
    )


def _mask(block: Block, where: Any, shape: Shape) -> Node:
    mask = build.cast(block, as_node(block, where), build.BOOL)
    joined = build.broadcast_shapes(block, [shape, mask.shape])
    if len(joined) != len(shape) or not all(map(block.sizes.decide_eq, joined, shape)):
        raise ValueError("where= has more elements than the array")
    return build.stretch(block, mask, shape)


def _masked(block: Block, node: Node, where: Any, neutral: Any) -> Node:
    """Elements outside `where` replaced by what does not count."""
    if where is True or where is np._NoValue:
        return node
    filler = build.constant(block, neutral, node.dtype)
    return build.select(block, _mask(block, where, node.shape), node, filler)


def _start(block: Block, initial: Any, dtype: Any) -> Node:
    """`initial` as a scalar of this dtype."""
    node = build.cast(block, as_node(block, initial), dtype)
    if node.shape:
        raise ValueError("initial= is an array")
    return node


def _given(value: Any) -> bool:
    return value is not None and value is not np._NoValue


def _accumulate(
    op: Op,
    ufunc: np.ufunc,
    a: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
) -> Any:
    """sum and prod: NumPy's accumulator dtype; 16 bits accumulate in float32."""
    block = find_block(a, out, where, initial)
    node = as_array(block, a).node
    axes = _axes(axis, len(node.shape))
    wanted = dtype_of(dtype) or ufunc.resolve_dtypes((None, node.dtype, None), reduction=True)[0]
    accumulator = accumulator_of(wanted)
    value = build.cast(block, build.cast(block, node, wanted), accumulator)
    assert op.reduction is not None
    value = _masked(block, value, where, op.reduction.identity)
    value = build.reduce(block, op, value, axes, accumulator)
    value = _keep(block, build.cast(block, value, wanted), axes, keepdims)
    if not axes and not _given(initial):
        initial = op.reduction.identity  # which tells 0.0 from -0.0
    return _finish(block, value, ufunc, initial, out)


def _finish(block: Block, value: Node, ufunc: np.ufunc, initial: Any, out: Any) -> Any:
    """`initial` combined, `out` filled."""
    if _given(initial):
        start = _start(block, initial, value.dtype)
        value = build.apply(block, UFUNCS[ufunc], [start, value], value.dtype)
    return deliver(out, result(block, value))


def _require_elements(block: Block, node: Node, axes: tuple[int, ...], message: str) -> None:
    if build.is_empty(block, product(node.shape[a] for a in axes)):
        raise ValueError(message)


def _extreme(
    op: Op,
    ufunc: np.ufunc,
    a: Any,
    axis: Any,
    out: Any,
    keepdims: Any,
    initial: Any,
    where: Any,
) -> Any:
    """min and max: `initial` stands in for masked elements and for an empty axis."""
    block = find_block(a, out, where, initial)
    node = as_array(block, a).node
    axes = _axes(axis, len(node.shape))
    if _given(where) and where is not True:
        if not _given(initial):
            raise ValueError(
                f"reduction operation '{ufunc.__name__}' does not have an identity, "
                "so to use a where mask one has to specify 'initial'"
            )
        start = _start(block, initial, node.dtype)
        node = build.select(block, _mask(block, where, node.shape), node, start)
    if _given(initial) and block.sizes.decide_eq(product(node.shape[i] for i in axes), 0):
        kept = tuple(n for i, n in enumerate(node.shape) if i not in axes)
        start = _start(block, initial, node.dtype)
        value = _keep(block, build.stretch(block, start, kept), axes, keepdims)
        return deliver(out, result(block, value))
    message = f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
    if axes:
        _require_elements(block, node, axes, message)
    value = _keep(block, build.reduce(block, op, node, axes, node.dtype), axes, keepdims)
    return _finish(block, value, ufunc, initial, out)


def squared_deviations(a: Tracer, keepdims: bool) -> Tracer:
    """The sum over all elements of their squared distances from the mean, in one pass."""
    axes = tuple(range(a.ndim))
    value = build.reduce(a.block, DEVIATION, a.node, axes, a.dtype)
    return result(a.block, _keep(a.block, value, axes, keepdims))


def _truth(op: Op, a: Any, axis: Any, out: Any, keepdims: Any, where: Any) -> Any:
    block = find_block(a, out, where)
    node = build.cast(block, as_array(block, a).node, build.BOOL)
    axes = _axes(axis, len(node.shape))
    assert op.reduction is not None
    node = _masked(block, node, where, op.reduction.identity)
    value = _keep(block, build.reduce(block, op, node, axes, build.BOOL), axes, keepdims)
    return deliver(out, result(block, value))


def _position(op: Op, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    if axis is not None:
        axis = operator.index(axis)
    block = find_block(a, out)
    node = as_array(block, a).node
    if not node.shape:
        node = build.reshape(block, node, (1,))
        axes, kept = many_axes(axis, 1), ()
    else:
        axes = kept = _axes(axis, len(node.shape))
    name = "argmax" if op is ARGMAX else "argmin"
    _require_elements(block, node, axes, f"attempt to get {name} of an empty sequence")
    value = build.reduce(block, op, node, axes, build.INT64)
    if is_set(keepdims):
        value = _keep(block, value, kept, True)
    return deliver(out, result(block, value))


# ---------------------------------------------------------------- NumPy's functions


@function(np.sum, "sum")
def sum_(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """np.sum."""
    return _accumulate(SUM, np.add, a, axis, dtype, out, keepdims, initial, where)


@function(np.prod, "prod")
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """np.prod."""
    return _accumulate(PROD, np.multiply, a, axis, dtype, out, keepdims, initial, where)


@function(np.max, np.amax, "max")
def max_(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """np.max."""
    return _extreme(MAX, np.maximum, a, axis, out, keepdims, initial, where)


@function(np.min, np.amin, "min")
def min_(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """np.min."""
    return _extreme(MIN, np.minimum, a, axis, out, keepdims, initial, where)


@function(np.any, "any")
def any_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """np.any."""
    return _truth(ANY, a, axis, out, keepdims, where)


@function(np.all, "all")
def all_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """np.all."""
    return _truth(ALL, a, axis, out, keepdims, where)


@function(np.argmax, "argmax")
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """np.argmax."""
    return _position(ARGMAX, a, axis, out, keepdims)


@function(np.argmin, "argmin")
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """np.argmin."""
    return _position(ARGMIN, a, axis, out, keepdims)


def _reduce_form(of: Callable[..., Any], takes_dtype: bool) -> Callable[..., Any]:
    """`ufunc.reduce`: as the function, but the first axis by default."""

    def reduce(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        named = {"axis": axis, "out": out, "keepdims": keepdims, "where": where}
        if takes_dtype:
            named["dtype"] = dtype
        elif dtype is not None:
            raise NotCaptured("ufunc.reduce with dtype=")
        if of not in (any_, all_):
            named["initial"] = initial
        elif _given(initial):
            raise NotCaptured("a logical reduction with initial=")
        return of(array, **named)

    return reduce


function((np.add, "reduce"))(_reduce_form(sum_, True))
function((np.multiply, "reduce"))(_reduce_form(prod, True))
function((np.maximum, "reduce"))(_reduce_form(max_, False))
function((np.minimum, "reduce"))(_reduce_form(min_, False))
function((np.logical_or, "reduce"))(_reduce_form(any_, False))
function((np.logical_and, "reduce"))(_reduce_form(all_, False))


def count_along(a: Tracer, axes: tuple[int, ...]) -> Any:
    """How many elements these axes have, as an int."""
    return wrap(a.block, product(a.raw_shape[i] for i in axes))


@function((np.logaddexp, "reduce"))
def logaddexp_reduce(array: Any, axis: Any = 0, keepdims: Any = False) -> Any:
    """np.logaddexp.reduce, shifted by the largest element."""
    a = as_array(find_block(array), array)
    kind = np.logaddexp.resolve_dtypes((None, a.dtype, None), reduction=True)[0]
    a = a.astype(kind, copy=False)
    top = np.max(a, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(a - top), axis=axis, keepdims=True)) + top
    return total if is_set(keepdims) else np.squeeze(total, axis=axis)[()]
