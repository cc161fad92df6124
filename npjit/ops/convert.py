"""Arrays from other things: np.array of nested lists of traced parts, copies, changes of dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block, Node, Weight
from npjit.ops import build
from npjit.ops.create import require_plain
from npjit.ops.errors import NotCaptured
from npjit.ops.indexing import storable
from npjit.ops.join import stack
from npjit.ops.kinds import function
from npjit.ops.movement import reshape
from npjit.ops.namespace import creation
from npjit.ops.operands import (
    as_array,
    dtype_of,
    find_block,
    has_traced,
)
from npjit.ops.symint import is_int
from npjit.ops.tracer import Tracer, as_node, fresh, is_traced


def lifted(block: Block, value: np.ndarray) -> Tracer:
    """A known array as a new traced one, which may be written to."""
    return fresh(block, as_node(block, value))


@creation
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
    require_plain(order, like)
    wanted = dtype_of(dtype)
    if not copy and type(object) is Tracer and object.weight is Weight.ARRAY:
        made = object if wanted is None else object.astype(wanted, copy=False)
        if copy is False and made is not object:
            raise NotCaptured("np.array that may not copy")
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
    return stack(tracers).node


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
    creation(made)


_as("asarray", 0)
_as("asanyarray", 0)
_as("ascontiguousarray", 1)


@creation
def copy(block: Block, a: Any, order: Any = "K", subok: Any = False) -> Tracer:
    """np.copy: always an array."""
    return array(block, a, order=order)


function(np.copy)(lambda a, *args, **kw: copy(find_block(a), a, *args, **kw))


# ---------------------------------------------------------------- methods


@function("copy")
def copy_method(a: Tracer, order: Any = "C") -> Tracer:
    """ndarray.copy."""
    require_plain(order, None)
    return fresh(a.block, build.weigh(a.block, a.node, a.weight))


@function("astype")
def astype(
    a: Tracer,
    dtype: Any,
    order: Any = "K",
    casting: Any = "unsafe",
    subok: Any = True,
    copy: Any = True,
) -> Tracer:
    """ndarray.astype."""
    require_plain(order, None)
    wanted = dtype_of(dtype) or build.FLOAT64
    if not np.can_cast(a.dtype, wanted, casting):
        raise TypeError(
            f"Cannot cast array data from {a.dtype!r} to {wanted!r} by the rule '{casting}'"
        )
    if not copy and wanted == a.dtype:
        return a
    return fresh(a.block, build.cast(a.block, a.node, wanted))


@function(np.astype)
def astype_function(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Tracer:
    """np.astype."""
    return astype(as_array(find_block(x), x), dtype, copy=copy)


@function("fill")
def fill(a: Tracer, value: Any) -> None:
    """ndarray.fill."""
    node = as_node(a.block, value)
    if node.shape:
        raise NotCaptured("fill with an array")
    a.write(storable(a.block, node, a.dtype))


@function(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """np.copyto."""
    if type(dst) is not Tracer:
        raise NotCaptured("np.copyto into an array that tracing cannot see")
    value = as_node(dst.block, src)
    if where is not True:
        mask = as_node(dst.block, where)
        if mask.dtype != build.BOOL:
            raise NotCaptured("np.copyto where something that is not bool")
        value = build.select(dst.block, mask, build.cast(dst.block, value, dst.dtype), dst.node)
    dst.write(value, casting)


@function("view")
def view_method(a: Tracer, *args: Any, **kwargs: Any) -> Tracer:
    """ndarray.view() without a dtype."""
    if args or kwargs:
        raise NotCaptured("ndarray.view with a dtype")
    return a.through(views.identity(a.raw_shape))


# elements of one array that may each become a Python number
MOST_NUMBERS = 256


def python_number(a: Tracer) -> Tracer:
    """The Python number that a 0-d value's `item` gives."""
    kind = a.dtype.kind
    if a.dtype == np.uint64:
        raise NotCaptured("a Python int made from uint64")
    wider = {"b": build.BOOL, "f": build.FLOAT64, "c": np.dtype(np.complex128)}
    wide = wider.get(kind, build.INT64)
    node = build.cast(a.block, a.node, wide)
    return fresh(a.block, build.weigh(a.block, node, Weight.WEAK))


@function("item")
def item(a: Tracer, *args: Any) -> Any:
    """ndarray.item: an element as a Python number."""
    places = args[0] if len(args) == 1 and type(args[0]) is tuple else args
    if not all(is_int(n) or isinstance(n, (np.integer, Tracer)) for n in places):
        raise TypeError("ndarray.item takes integers")
    if len(places) > 1 or places is not args:
        return python_number(a[tuple(places)])
    if args:
        return python_number(reshape(a, -1)[args[0]])
    if any(n != 1 for n in a.raw_shape):
        raise NotCaptured(".item() of an array of unknown length")
    return python_number(a[(0,) * a.ndim] if a.ndim else a)


@function("tolist")
def tolist(a: Tracer) -> Any:
    """ndarray.tolist, of arrays with few elements."""
    if not a.ndim:
        return python_number(a)
    count = build.element_count(a.raw_shape)
    if not isinstance(count, int) or count > MOST_NUMBERS:
        raise NotCaptured(".tolist() of a large array")
    return [tolist(row) for row in a]
