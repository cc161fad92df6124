"""Movement that makes Views: reshape, transpose, new and dropped axes, broadcasts, diagonals.

A function that gives a view in NumPy gives a Tracer of the same cell here, so that writes through
either are seen by both.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.assume import Unknown
from npjit.core.graph import Block, Weight
from npjit.core.layout import contiguous_strides
from npjit.core.size import Shape, Size, floordiv, product
from npjit.core.view import Cut, View
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import attribute, function, setter
from npjit.ops.operands import array_result, as_array, find_block, is_scalar, listed_axes, one_axis
from npjit.ops.sharing import (
    has_gaps,
    is_c_ordered,
    reshape_copies,
    root_of,
    share_reshaped,
    share_unwritten,
)
from npjit.ops.symint import is_int, size_of
from npjit.ops.tracer import Tracer, fresh

# ---------------------------------------------------------------- reshape


def read_shape(shape: Any) -> tuple[Size, ...]:
    """A shape argument: an int or a sequence of ints, symbolic ones included."""
    if isinstance(shape, (tuple, list)):
        return tuple(_extent(n) for n in shape)
    if isinstance(shape, np.ndarray) and type(shape) is not Tracer:
        return tuple(int(n) for n in shape.tolist())
    return (_extent(shape),)


def _extent(n: Any) -> Size:
    # a traced number is asked for its value, which only other single numbers can decide
    number = n if isinstance(n, int) else operator.index(n)
    return size_of(number) if is_int(number) else int(number)


def complete_shape(block: Block, old: Shape, new: Shape) -> Shape:
    """`new` with its -1 worked out; ValueError when the counts differ."""
    total = product(old)
    new = tuple(_told_from_open(block, n) for n in new)
    open_axes = [i for i, n in enumerate(new) if n == -1]
    if len(open_axes) > 1:
        raise ValueError("can only specify one unknown dimension")
    sizes = block.sizes
    if open_axes:
        rest = product(n for n in new if n != -1)
        if sizes.decide_eq(rest, 0):
            raise ValueError(f"cannot reshape array of shape {old} into shape {new}")
        missing = floordiv(total, rest)
        new = tuple(missing if n == -1 else n for n in new)
    if not sizes.decide_eq(product(new), total):
        raise ValueError(f"cannot reshape array of shape {old} into shape {new}")
    return new


def _told_from_open(block: Block, n: Size) -> Size:
    """An extent; a symbolic one is guarded to be none of the negative ones, or to stay that."""
    try:
        return n if isinstance(n, int) or block.sizes.decide_le(0, n) else block.sizes.specialise(n)
    except Unknown:
        return n


def reshape_array(array: Tracer, shape: Shape) -> Tracer:
    """C-order reshape with NumPy's sharing of memory."""
    if array.weight is not Weight.ARRAY:
        return fresh(array.block, _reshaped(array, shape))
    old = array.raw_shape
    if [n for n in old if n != 1] == [n for n in shape if n != 1]:
        dropped = views.squeeze(old, [i for i, n in enumerate(old) if n == 1])
        units = [i for i, n in enumerate(shape) if n == 1]
        return array.through(dropped.then(views.expand(dropped.shape, units)))
    if array.window is None:
        return share_reshaped(array, shape)
    result = fresh(array.block, _reshaped(array, shape))
    return result if reshape_copies(array, shape) else share_unwritten(array, result)


def _reshaped(array: Tracer, shape: Shape) -> Any:
    node = build.weigh(array.block, array.node, Weight.ARRAY)
    return build.reshape(array.block, node, shape)


@function(np.reshape)
def reshape(a: Any, shape: Any = None, order: Any = "C", *, copy: Any = None) -> Tracer:
    """np.reshape; order "F" through transposes."""
    array = as_array(find_block(a, shape), a)
    new = complete_shape(array.block, array.raw_shape, read_shape(shape))
    if order == "F":
        turned = reshape_array(_turned(array), tuple(reversed(new)))
        return _turned(turned)
    if order != "C":
        raise NotCaptured(f"reshape with order={order!r}")
    if copy:
        return fresh(array.block, _reshaped(array, new))
    return reshape_array(array, new)


@function("reshape")
def reshape_method(a: Tracer, *shape: Any, order: Any = "C", copy: Any = None) -> Tracer:
    """ndarray.reshape: a shape, or its extents."""
    given = shape[0] if len(shape) == 1 else shape
    return reshape(a, given, order, copy=copy)


@setter("shape")
def set_shape(array: Tracer, shape: Any) -> None:
    """array.shape = shape, of an array that the traced code has made."""
    own = root_of(array.cell)
    if own.argument or own.is_outside:
        raise NotCaptured("a store into .shape of an array older than this")
    made = reshape(array, shape)
    if root_of(made.cell) is not own and not _is_packed(array):
        raise NotCaptured("a store into .shape of an array that is not contiguous")
    array.cell, array.window = made.cell, made.window


def _is_packed(array: Tracer) -> bool:
    """Whether a view surely is C-contiguous."""
    view = array.window
    if view is None or not is_c_ordered(array.block, root_of(array.cell).origin):
        return False
    return view.strides(contiguous_strides(view.base))[1] == contiguous_strides(view.shape)


@function(np.ravel, "ravel")
def ravel(a: Any, order: Any = "C") -> Tracer:
    """np.ravel; unlike reshape it copies whatever is not contiguous."""
    flat = reshape(a, (-1,), _letter(order))
    array = as_array(flat.block, a)
    if order != "C" or array.weight is not Weight.ARRAY:
        return flat
    copied = fresh(flat.block, flat.node)
    if is_c_ordered(flat.block, root_of(array.cell).origin):
        return copied if has_gaps(array) else flat
    strided = array.window is None and array.cell.argument
    return copied if strided else share_unwritten(array, copied)


@function("flatten")
def flatten(a: Tracer, order: Any = "C") -> Tracer:
    """ndarray.flatten: always a copy."""
    flat = reshape(a, (-1,), _letter(order))
    return fresh(flat.block, flat.node)


def _letter(order: Any) -> str:
    if order not in ("C", "F"):
        raise NotCaptured(f"order={order!r} depends on the memory order")
    return str(order)


# ---------------------------------------------------------------- order of axes


def _turned(array: Tracer) -> Tracer:
    return permute(array, tuple(reversed(range(array.ndim))))


def permute(array: Tracer, order: Sequence[int]) -> Tracer:
    """Result axis i is axis order[i]."""
    return array.through(views.transpose(array.raw_shape, order))


@function(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Tracer:
    """np.transpose."""
    array = as_array(find_block(a), a)
    if axes is None:
        return _turned(array)
    order = listed_axes(axes, array.ndim)
    if len(order) != array.ndim:
        raise ValueError("axes don't match array")
    return permute(array, order)


@function("transpose")
def transpose_method(a: Tracer, *axes: Any) -> Tracer:
    """ndarray.transpose: nothing, a tuple, or the axes."""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        return transpose(a, axes[0])
    return transpose(a, axes if axes else None)


attribute("T")(_turned)


@attribute("mT")
def _matrix_transpose(array: Tracer) -> Tracer:
    if array.ndim < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return swapaxes(array, -1, -2)


function(np.matrix_transpose, np.linalg.matrix_transpose)(
    lambda x: _matrix_transpose(as_array(find_block(x), x))
)


@function(np.swapaxes, "swapaxes")
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Tracer:
    """np.swapaxes."""
    array = as_array(find_block(a), a)
    order = list(range(array.ndim))
    i, j = one_axis(axis1, array.ndim), one_axis(axis2, array.ndim)
    order[i], order[j] = order[j], order[i]
    return permute(array, order)


@function(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Tracer:
    """np.moveaxis."""
    array = as_array(find_block(a), a)
    sources = listed_axes(source, array.ndim)
    targets = listed_axes(destination, array.ndim)
    if len(sources) != len(targets):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [n for n in range(array.ndim) if n not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return permute(array, order)


@function(np.rollaxis)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Tracer:
    """np.rollaxis."""
    array = as_array(find_block(a), a)
    n = array.ndim
    origin = one_axis(axis, n)
    place = operator.index(start)
    if place < 0:
        place += n
    if not 0 <= place <= n:
        raise np.exceptions.AxisError(f"'start' arg requires {-n} <= start <= {n}")
    order = [i for i in range(n) if i != origin]
    order.insert(place - 1 if origin < place else place, origin)
    return permute(array, order)


# ---------------------------------------------------------------- axes of extent 1


@function(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Tracer:
    """np.expand_dims."""
    array = as_array(find_block(a), a)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = listed_axes(axis, array.ndim + count)
    return array.through(views.expand(array.raw_shape, axes))


@function(np.squeeze, "squeeze")
def squeeze(a: Any, axis: Any = None) -> Tracer:
    """np.squeeze."""
    array = as_array(find_block(a), a)
    shape = array.raw_shape
    sizes = array.block.sizes
    if axis is None:
        axes: Sequence[int] = [i for i, n in enumerate(shape) if sizes.decide_eq(n, 1)]
    else:
        axes = listed_axes(axis, array.ndim)
        if not all(sizes.decide_eq(shape[i], 1) for i in axes):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    if array.weight is not Weight.ARRAY:
        # a NumPy scalar has this method, a Python number becomes an array
        return array if is_scalar(a) else array_result(array.block, array.node)
    return array.through(views.squeeze(shape, axes))


def _at_least(array: Tracer, places: Sequence[int]) -> Tracer:
    return array.through(views.expand(array.raw_shape, places))


def _atleast_1d(array: Tracer) -> Tracer:
    return array if array.ndim else _at_least(array, [0])


def _atleast_2d(array: Tracer) -> Tracer:
    places = {0: [0, 1], 1: [0]}.get(array.ndim)
    return array if places is None else _at_least(array, places)


def _atleast_3d(array: Tracer) -> Tracer:
    places = {0: [0, 1, 2], 1: [0, 2], 2: [2]}.get(array.ndim)
    return array if places is None else _at_least(array, places)


for _f, _one in {
    np.atleast_1d: _atleast_1d,
    np.atleast_2d: _atleast_2d,
    np.atleast_3d: _atleast_3d,
}.items():

    @function(_f)
    def _atleast(*arrays: Any, one: Any = _one) -> Any:
        block = find_block(*arrays)
        made = tuple(one(as_array(block, a)) for a in arrays)
        return made[0] if len(made) == 1 else made


# ---------------------------------------------------------------- slices, broadcasts, diagonals


def cut(array: Tracer, axis: int, piece: Cut) -> Tracer:
    """A slice of one axis, as a view."""
    shape = array.raw_shape
    entries = [piece if i == axis else Cut(0, 1, n) for i, n in enumerate(shape)]
    return array.through(views.index(shape, entries))


def part(array: Tracer, axis: int, start: Size, length: Size) -> Tracer:
    """`length` elements of an axis from `start` on."""
    return cut(array, axis, Cut(start, 1, length))


def _stretched(array: Tracer, shape: Shape) -> Tracer:
    """A broadcast view of the same cell, its extents spelled as in `shape`."""
    lead = len(shape) - array.ndim
    old = array.raw_shape
    spelled = tuple(n if n == 1 else shape[lead + i] for i, n in enumerate(old))
    respelled = View(old, views.identity(old).dims, spelled)
    return array.through(respelled.then(views.broadcast(spelled, shape)))


@function(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: Any = False) -> Tracer:
    """np.broadcast_to."""
    block = find_block(array, shape)
    a = as_array(block, array)
    target = read_shape(shape)
    joined = build.broadcast_shapes(block, [a.raw_shape, target])
    if len(joined) != len(target) or not all(
        block.sizes.decide_eq(m, n) for m, n in zip(joined, target, strict=True)
    ):
        raise ValueError("operands could not be broadcast together with remapped shapes")
    return _stretched(a, target)


@function(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: Any = False) -> tuple[Tracer, ...]:
    """np.broadcast_arrays."""
    block = find_block(*args)
    arrays = [as_array(block, a) for a in args]
    shape = build.broadcast_shapes(block, [a.raw_shape for a in arrays])
    return tuple(_stretched(a, shape) for a in arrays)


@function(np.diagonal, "diagonal")
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Tracer:
    """np.diagonal."""
    array = as_array(find_block(a), a)
    first, second = one_axis(axis1, array.ndim), one_axis(axis2, array.ndim)
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    k = operator.index(offset)
    rows, columns = array.raw_shape[first] - max(-k, 0), array.raw_shape[second] - max(k, 0)
    sizes = array.block.sizes
    length = rows if sizes.decide_le(rows, columns) else columns
    if not sizes.decide_le(0, length):
        length = 0
    start = {first: max(-k, 0), second: max(k, 0)} if length != 0 else {}
    for i in (first, second):
        array = part(array, i, start.get(i, 0), length)
    return array.through(views.diagonal(array.raw_shape, first, second))


@function(np.linalg.diagonal)
def linalg_diagonal(x: Any, *, offset: Any = 0) -> Tracer:
    """np.linalg.diagonal."""
    return diagonal(x, offset, -2, -1)
