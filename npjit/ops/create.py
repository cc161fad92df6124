"""Arrays made from nothing: zeros, ones, full and their `_like` forms, eye, tri, grids.

NumPy's protocols do not reach these; traced code finds them through `npjit.ops.namespace`. Results
live in the block, so that they can be written to later, even when no argument is traced.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.graph import Block, Weight
from npjit.core.size import Shape, Size
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.join import stack
from npjit.ops.kinds import function
from npjit.ops.memory_order import in_order_of
from npjit.ops.movement import read_shape
from npjit.ops.namespace import creation
from npjit.ops.operands import as_array, dtype_of, find_block
from npjit.ops.symint import size_of, wrap
from npjit.ops.tracer import Tracer, as_node, fresh


def require_plain(order: Any, like: Any) -> None:
    if order not in (None, "C", "K", "A") or like is not None:
        raise NotCaptured("an array is made with order= or like=")


# ---------------------------------------------------------------- filled arrays


def filled(block: Block, value: Any, shape: Shape, dtype: Any) -> Tracer:
    """A new array of one number."""
    wanted = dtype_of(dtype) or build.FLOAT64
    for n in shape:
        if not block.sizes.decide_le(0, n):
            raise ValueError("negative dimensions are not allowed")
    node = build.constant(block, value, wanted, Weight.ARRAY)
    return fresh(block, build.broadcast(block, node, shape))


@creation
def zeros(
    block: Block,
    shape: Any,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tracer:
    """np.zeros."""
    require_plain(order, like)
    return filled(block, 0, read_shape(shape), dtype or float)


@creation
def empty(
    block: Block,
    shape: Any,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tracer:
    """np.empty, its contents zero."""
    require_plain(order, like)
    return filled(block, 0, read_shape(shape), dtype or float)


def ndarray(
    block: Block,
    shape: Any,
    dtype: Any = float,
    buffer: Any = None,
    offset: Any = 0,
    strides: Any = None,
    order: Any = None,
) -> Tracer:
    """np.ndarray called without memory of the caller's, its contents zero."""
    require_plain(order, None)
    if buffer is not None or offset or strides is not None:
        raise NotCaptured("np.ndarray over given memory")
    return filled(block, 0, read_shape(shape), dtype or float)


@creation
def ones(
    block: Block,
    shape: Any,
    dtype: Any = None,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tracer:
    """np.ones."""
    require_plain(order, like)
    return filled(block, 1, read_shape(shape), dtype or float)


@creation
def full(
    block: Block,
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tracer:
    """np.full; the value may be traced, and an array."""
    require_plain(order, like)
    made = filled(block, 0, read_shape(shape), dtype or as_node(block, fill_value).dtype)
    made.write(as_node(block, fill_value))
    return made


def _like(name: str, fill: Any) -> None:
    def made(
        block: Block,
        a: Any,
        dtype: Any = None,
        order: Any = "K",
        subok: Any = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Tracer:
        require_plain(order, None)
        model = as_array(block, a)
        extents = model.raw_shape if shape is None else read_shape(shape)
        return _in_order_of(model, filled(block, fill, extents, dtype or model.dtype))

    made.__name__ = name
    creation(made)
    function(getattr(np, name))(lambda a, *args, **kw: made(find_block(a), a, *args, **kw))


def _in_order_of(model: Tracer, made: Tracer) -> Tracer:
    """`made` in the memory order of `model`."""
    if made.ndim != model.ndim:
        return made
    if made.raw_shape != model.raw_shape:
        made.cell.origin = model.node
        return made
    return fresh(made.block, in_order_of(made.block, made.node, model.node))


_like("zeros_like", 0)
_like("ones_like", 1)
_like("empty_like", 0)


@creation
def full_like(
    block: Block,
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tracer:
    """np.full_like."""
    require_plain(order, None)
    model = as_array(block, a)
    extents = model.raw_shape if shape is None else read_shape(shape)
    made = filled(block, 0, extents, dtype or model.dtype)
    made.write(as_node(block, fill_value))
    return _in_order_of(model, made)


@function(np.full_like)
def _full_like(a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Tracer:
    return full_like(find_block(a, fill_value), a, fill_value, *args, **kwargs)


# ---------------------------------------------------------------- matrices and grids


def counting(block: Block, length: Size, dtype: Any = np.int64) -> Tracer:
    """0, 1, ..., length - 1."""
    return fresh(block, build.cast(block, build.iota(block, length), np.dtype(dtype)))


@creation
def eye(
    block: Block,
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Tracer:
    """np.eye."""
    require_plain(order, like)
    rows = counting(block, size_of(N))
    columns = counting(block, size_of(N if M is None else M))
    return (rows[:, None] + k == columns).astype(dtype or float)


@creation
def identity(block: Block, n: Any, dtype: Any = None, *, like: Any = None) -> Tracer:
    """np.identity."""
    return eye(block, n, dtype=dtype, like=like)


@creation
def tri(
    block: Block, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None
) -> Tracer:
    """np.tri."""
    require_plain("C", like)
    rows = counting(block, size_of(N))
    columns = counting(block, size_of(N if M is None else M))
    return (rows[:, None] + k >= columns).astype(dtype or float)


@creation
def indices(block: Block, dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    """np.indices."""
    shape = read_shape(tuple(dimensions))
    rank = len(shape)
    rows = []
    for i, n in enumerate(shape):
        axes = tuple(slice(None) if j == i else None for j in range(rank))
        rows.append(counting(block, n, dtype)[axes])
    if sparse:
        return tuple(rows)
    return stack([np.broadcast_to(r, _user_shape(block, shape)) for r in rows])


def _user_shape(block: Block, shape: Shape) -> tuple[Any, ...]:
    return tuple(wrap(block, n) for n in shape)


@creation
def fromfunction(
    block: Block, function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kw: Any
) -> Any:
    """np.fromfunction."""
    grid = indices(block, shape, dtype=dtype)
    return function(*[grid[i] for i in range(len(shape))], **kw)


@creation
def meshgrid(
    block: Block, *xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy"
) -> tuple[Tracer, ...]:
    """np.meshgrid."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(xi)
    grids = []
    for i, x in enumerate(xi):
        a = as_array(block, x)
        place = 1 - i if indexing == "xy" and i < 2 and rank > 1 else i
        axes = tuple(slice(None) if j == place else None for j in range(rank))
        grids.append(np.reshape(a, (-1,))[axes])
    if not sparse:
        grids = list(np.broadcast_arrays(*grids)) if grids else []
    if copy:
        grids = [np.copy(g) for g in grids]
    return tuple(grids)


function(np.meshgrid)(lambda *xi, **kw: meshgrid(find_block(*xi), *xi, **kw))
