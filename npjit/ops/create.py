"""Arrays made from nothing: zeros, arange, linspace, eye and their kin, and np.array of traced parts.

NumPy's protocols do not reach these, so traced code calls `traced_namespace()[name](block, ...)` in their place.
Results live in the block, so that they can be written to later, even when no argument is traced.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block, Node, Weight
from npjit.core.size import Shape, Size, floordiv
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import function
from npjit.ops.movement import moveaxis, read_shape
from npjit.ops.operands import as_array, as_tracer, dtype_of, find_block, has_traced
from npjit.ops.symint import SymInt, is_int, size_of, wrap
from npjit.ops.tracer import Tracer, as_node, fresh, is_traced

_NAMESPACE: dict[str, Callable[..., Any]] = {}


def traced_namespace() -> dict[str, Callable[..., Any]]:
    """Name in NumPy's namespace -> what traced code calls in its place, with the block as first argument."""
    return dict(_NAMESPACE)


def _creation(made: Callable[..., Any]) -> Callable[..., Any]:
    _NAMESPACE[made.__name__.rstrip("_")] = made
    return made


def _require_plain(order: Any, like: Any) -> None:
    if order not in (None, "C", "K", "A") or like is not None:
        raise NotCaptured("an array is made with order= or like=")


# ---------------------------------------------------------------- filled arrays


def filled(block: Block, value: Any, shape: Shape, dtype: Any) -> Tracer:
    """A new array of one number."""
    wanted = build.require_known(np.dtype(dtype))
    for n in shape:
        if not block.sizes.decide_le(0, n):
            raise ValueError("negative dimensions are not allowed")
    node = build.constant(block, value, wanted, Weight.ARRAY)
    return fresh(block, build.broadcast(block, node, shape))


@_creation
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
    _require_plain(order, like)
    return filled(block, 0, read_shape(shape), dtype or float)


@_creation
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
    _require_plain(order, like)
    return filled(block, 0, read_shape(shape), dtype or float)


@_creation
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
    _require_plain(order, like)
    return filled(block, 1, read_shape(shape), dtype or float)


@_creation
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
    _require_plain(order, like)
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
        _require_plain(order, None)
        model = as_array(block, a)
        extents = model.raw_shape if shape is None else read_shape(shape)
        return _in_order_of(model, filled(block, fill, extents, dtype or model.dtype))

    made.__name__ = name
    _creation(made)
    function(getattr(np, name))(lambda a, *args, **kw: made(find_block(a), a, *args, **kw))


def _in_order_of(model: Tracer, made: Tracer) -> Tracer:
    """`made` has the memory order of `model`, as far as anybody asks (see npjit.ops.sharing)."""
    made.cell.origin = model.cell.origin if model.view is None else model.node
    return made


_like("zeros_like", 0)
_like("ones_like", 1)
_like("empty_like", 0)


@_creation
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
    _require_plain(order, None)
    model = as_array(block, a)
    extents = model.raw_shape if shape is None else read_shape(shape)
    made = _in_order_of(model, filled(block, 0, extents, dtype or model.dtype))
    made.write(as_node(block, fill_value))
    return made


@function(np.full_like)
def _full_like(a: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Tracer:
    return full_like(find_block(a, fill_value), a, fill_value, *args, **kwargs)


# ---------------------------------------------------------------- numbers in a row


def counting(block: Block, length: Size, dtype: Any = np.int64) -> Tracer:
    """0, 1, ..., length - 1."""
    return fresh(block, build.cast(block, build.iota(block, length), np.dtype(dtype)))


@_creation
def arange(block: Block, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
    """np.arange: symbolic for ints; other numbers must be known."""
    start, stop, step = _bounds(args, kwargs)
    if any(type(v) is Tracer for v in (start, stop, step)):
        raise NotCaptured("np.arange of traced numbers")
    wanted = dtype_of(dtype)
    if all(is_int(v) for v in (start, stop, step)) and (wanted is None or wanted.kind in "iuf"):
        return _int_range(block, size_of(start), size_of(stop), step, wanted or build.INT64)
    known = [v.concrete() if type(v) is SymInt else v for v in (start, stop, step)]
    values = np.arange(*known, dtype=wanted)
    if values.dtype != np.float64 or len(values) < 3:
        return lifted(block, values)
    first, delta = float(values[0]), float(values[1]) - float(values[0])
    return counting(block, len(values), np.float64) * delta + first


def _bounds(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    given = dict(zip(("start", "stop", "step"), args, strict=False))
    if kwargs.pop("like", None) is not None or len(args) > 4:
        raise NotCaptured("np.arange with these arguments")
    given.update(kwargs)
    if "stop" not in given or given["stop"] is None:
        return 0, given["start"], given.get("step", 1)
    start, step = given.get("start", 0), given.get("step", 1)
    return 0 if start is None else start, given["stop"], 1 if step is None else step


def _int_range(block: Block, start: Size, stop: Size, step: Any, dtype: Any) -> Tracer:
    by = step.concrete() if type(step) is SymInt else step
    if by == 0:
        raise ZeroDivisionError("division by zero")
    span = stop - start if by > 0 else start - stop
    length: Size = 0
    if block.sizes.decide_le(1, span):
        length = floordiv(span + (abs(by) - 1), abs(by))
    count = counting(block, length)
    shifted = count * by if by != 1 else count
    if start != 0:
        shifted = shifted + wrap(block, start)
    return fresh(block, build.cast(block, shifted.node, dtype))


def _inexact(*values: Tracer) -> np.dtype[Any]:
    entries = [build.rule_entry(v.node) for v in values]
    kinds_ = [{int: 0, float: 0.0, complex: 0j}.get(e, e) for e in entries]
    found = np.result_type(*kinds_)
    return found if found.kind in "fc" else np.result_type(found, np.float64)


@_creation
def linspace(
    block: Block,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    """np.linspace, bit for bit; the ends may be traced numbers or arrays."""
    first, last = as_tracer(block, start), as_tracer(block, stop)
    if not is_int(num):
        num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    dt = _inexact(first, last)
    first, last = (fresh(block, build.cast(block, v.node, dt)) for v in (first, last))
    delta = as_array(block, last - first)
    div = num - 1 if endpoint else num
    row = counting(block, size_of(num))
    row = row[(slice(None), *[None] * delta.ndim)]
    y = row.astype(dt)
    if div > 0:
        step = delta / div
        y = np.where(np.any(step == 0), y / div * delta, y * step)
    else:
        step = as_array(block, float("nan"))
        y = y * delta
    y = y + first
    if endpoint and num > 1:
        y = np.where(row == num - 1, last, y)
    if axis != 0:
        y = moveaxis(y, 0, axis)
    wanted = dtype_of(dtype) or dt
    if wanted.kind in "iu":
        y = np.floor(y)
    y = y.astype(wanted)
    return (y, step) if retstep else y


@_creation
def logspace(
    block: Block,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> Tracer:
    """np.logspace with a number as base."""
    y = linspace(block, start, stop, num, endpoint, axis=axis)
    if not isinstance(base, (int, float)):
        raise NotCaptured("np.logspace with an array as base")
    powers = np.power(base, y)
    return powers if dtype is None else powers.astype(dtype)


@_creation
def geomspace(block: Block, *args: Any, **kwargs: Any) -> Tracer:
    """np.geomspace of known numbers."""
    return lifted(block, np.geomspace(*_known(args), **kwargs))


def _known(args: Any) -> list[Any]:
    if any(type(a) is Tracer for a in args):
        raise NotCaptured("an array is made from traced numbers")
    return [a.concrete() if type(a) is SymInt else a for a in args]


# ---------------------------------------------------------------- matrices and grids


@_creation
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
    _require_plain(order, like)
    rows = counting(block, size_of(N))
    columns = counting(block, size_of(N if M is None else M))
    return (rows[:, None] + k == columns).astype(dtype or float)


@_creation
def identity(block: Block, n: Any, dtype: Any = None, *, like: Any = None) -> Tracer:
    """np.identity."""
    return eye(block, n, dtype=dtype, like=like)


@_creation
def tri(
    block: Block, N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None
) -> Tracer:
    """np.tri."""
    _require_plain("C", like)
    rows = counting(block, size_of(N))
    columns = counting(block, size_of(N if M is None else M))
    return (rows[:, None] + k >= columns).astype(dtype or float)


@_creation
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
    return stacked(block, [np.broadcast_to(r, _user_shape(block, shape)) for r in rows])


def _user_shape(block: Block, shape: Shape) -> tuple[Any, ...]:
    return tuple(wrap(block, n) for n in shape)


@_creation
def fromfunction(
    block: Block, function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kw: Any
) -> Any:
    """np.fromfunction."""
    grid = indices(block, shape, dtype=dtype)
    return function(*[grid[i] for i in range(len(shape))], **kw)


@_creation
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

# ---------------------------------------------------------------- np.array and its kin


def lifted(block: Block, value: np.ndarray) -> Tracer:
    """A known array as a new traced one, which may be written to."""
    return fresh(block, as_node(block, value))


@_creation
def array(
    block: Block,
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: Any = False,
    ndmin: Any = 0,
    like: Any = None,
) -> Tracer:
    """np.array: nested lists of traced parts are stacked."""
    _require_plain(order, like)
    wanted = dtype_of(dtype)
    if not copy and type(object) is Tracer and object.weight is Weight.ARRAY:
        made = object if wanted is None else object.astype(wanted, copy=False)
    else:
        node = build.weigh(block, _nested(block, object), Weight.ARRAY)
        made = fresh(block, node if wanted is None else build.cast(block, node, wanted))
    missing = ndmin - made.ndim
    return made.through(views.expand(made.raw_shape, range(missing))) if missing > 0 else made


def _nested(block: Block, value: Any) -> Node:
    """The node of an array-like."""
    if not isinstance(value, (list, tuple)) or is_traced(value):
        if is_traced(value) or isinstance(value, (np.ndarray, np.generic, int, float, complex)):
            return as_node(block, value)
        raise NotCaptured(f"np.array of a {type(value).__name__}")
    if not has_traced(value):
        return as_node(block, np.array(value))
    parts = [_nested(block, v) for v in value]
    if any(n.type.weight is Weight.WEAK for n in parts):
        # beside other numbers Python's own become int64, float64, complex128
        parts = [build.weigh(block, n, Weight.SCALAR) for n in parts]
    tracers = [fresh(block, n) for n in parts]
    return stacked(block, tracers).node


def stacked(block: Block, parts: list[Tracer]) -> Tracer:
    """Arrays of one shape along a new first axis."""
    from npjit.ops.join import stack

    return stack(parts)


def _as(name: str, least: int) -> None:
    def made(
        block: Block,
        a: Any,
        dtype: Any = None,
        order: Any = None,
        *,
        device: Any = None,
        copy: Any = None,
        like: Any = None,
    ) -> Tracer:
        converted = array(block, a, dtype, copy=bool(copy), order=order, like=like)
        return np.atleast_1d(converted) if least else converted

    made.__name__ = name
    _creation(made)


_as("asarray", 0)
_as("asanyarray", 0)
_as("ascontiguousarray", 1)


@_creation
def copy(block: Block, a: Any, order: Any = "K", subok: Any = False) -> Tracer:
    """np.copy."""
    return array(block, a)


@_creation
def asfarray(block: Block, a: Any, dtype: Any = float) -> Tracer:
    """np.asfarray of older NumPy."""
    return array(block, a, dtype, copy=False)
