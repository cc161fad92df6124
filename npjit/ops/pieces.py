"""Parts of arrays as views: flips, splits, elements by index."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block
from npjit.core.size import Size, floordiv
from npjit.core.view import Cut
from npjit.ops import build
from npjit.ops.create import filled
from npjit.ops.errors import NotCaptured
from npjit.ops.indexing import is_position, normalise_index
from npjit.ops.kinds import function
from npjit.ops.movement import cut, part, ravel, swapaxes
from npjit.ops.operands import (
    as_array,
    find_block,
    listed_axes,
    one_axis,
)
from npjit.ops.symint import is_int, size_of, wrap
from npjit.ops.tracer import Tracer

# ---------------------------------------------------------------- flips


@function(np.flip)
def flip(m: Any, axis: Any = None) -> Tracer:
    """np.flip."""
    array = as_array(find_block(m), m)
    axes = range(array.ndim) if axis is None else listed_axes(axis, array.ndim)
    for i in axes:
        n = array.raw_shape[i]
        array = cut(array, i, Cut(n - 1, -1, n))
    return array


@function(np.fliplr)
def fliplr(m: Any) -> Tracer:
    """np.fliplr."""
    array = as_array(find_block(m), m)
    if array.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(array, 1)


@function(np.flipud)
def flipud(m: Any) -> Tracer:
    """np.flipud."""
    array = as_array(find_block(m), m)
    if array.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(array, 0)


@function(np.rot90)
def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Tracer:
    """np.rot90."""
    array = as_array(find_block(m), m)
    first, second = listed_axes(axes, array.ndim)
    turns = operator.index(k) % 4
    if turns == 0:
        return array.through(views.identity(array.raw_shape))
    if turns == 2:
        return flip(array, (first, second))
    if turns == 1:
        return swapaxes(flip(array, second), first, second)
    return flip(swapaxes(array, first, second), second)


# ---------------------------------------------------------------- splits


def _boundaries(array: Tracer, sections: Any, axis: int) -> list[Size]:
    """Where array_split cuts: every section's start, and the end."""
    n = array.raw_shape[axis]
    if not is_int(sections) and not isinstance(sections, np.integer):
        return [0, *[size_of(s) for s in sections], n]
    count = operator.index(sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    total = array.block.sizes.specialise(n) if not _divides(array, n, count) else n
    if not isinstance(total, int):
        each = floordiv(total, count)
        return [each * i for i in range(count + 1)]
    each, extra = divmod(total, count)
    cuts: list[Size] = [0]
    for i in range(count):
        cuts.append(cuts[-1] + each + (1 if i < extra else 0))
    return cuts


def _divides(array: Tracer, n: Size, count: int) -> bool:
    return array.block.sizes.decide_eq(floordiv(n, count) * count, n)


@function(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """np.array_split."""
    array = as_array(find_block(ary), ary)
    place = one_axis(axis, array.ndim)
    cuts = _boundaries(array, indices_or_sections, place)
    pieces = []
    for start, stop in pairwise(cuts):
        bounds = slice(wrap(array.block, start), wrap(array.block, stop))
        pieces.append(array[(*[slice(None)] * place, bounds)])
    return pieces


@function(np.split)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """np.split."""
    array = as_array(find_block(ary), ary)
    if is_int(indices_or_sections):
        n = array.raw_shape[one_axis(axis, array.ndim)]
        if not _divides(array, n, operator.index(indices_or_sections)):
            raise ValueError("array split does not result in an equal division")
    return array_split(array, indices_or_sections, axis)


@function(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """np.hsplit."""
    array = as_array(find_block(ary), ary)
    return split(array, indices_or_sections, 1 if array.ndim > 1 else 0)


@function(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """np.vsplit."""
    return split(ary, indices_or_sections, 0)


@function(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """np.dsplit."""
    return split(ary, indices_or_sections, 2)


if hasattr(np, "unstack"):

    @function(np.unstack)
    def unstack(x: Any, /, *, axis: Any = 0) -> tuple[Any, ...]:
        """np.unstack."""
        array = as_array(find_block(x), x)
        moved = np.moveaxis(array, axis, 0)
        return tuple(moved[i, ...] for i in range(len(moved)))


# ---------------------------------------------------------------- by index


@function(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Tracer:
    """np.delete of one element, of a slice, or of those that an array names."""
    array, place = _along(find_block(arr, obj), arr, axis)
    n = array.raw_shape[place]
    if not _is_place(obj):
        kept = filled(array.block, True, (n,), build.BOOL)
        kept[obj] = False
        return array[(*[slice(None)] * place, kept)]  # type: ignore[no-any-return]
    at = normalise_index(array.block, obj, n)
    kept = [part(array, place, 0, at), part(array, place, at + 1, n - at - 1)]
    return np.concatenate(kept, axis=place)


@function(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tracer:
    """np.insert at one place."""
    block = find_block(arr, obj, values)
    array, place = _along(block, arr, axis)
    n = array.raw_shape[place]
    if not _is_place(obj):
        raise NotCaptured("np.insert at more than one place")
    new = as_array(block, values)
    if new.ndim > array.ndim:
        raise NotCaptured("np.insert of more axes than there are")
    new = new[(*[None] * (array.ndim - new.ndim), ...)].astype(array.dtype)
    new = np.moveaxis(new, 0, place)
    shape = list(array.raw_shape)
    shape[place] = new.raw_shape[place]
    if is_int(obj):
        behind = obj if obj >= 0 else obj + wrap(block, n)
    else:
        behind = np.where(obj < 0, obj + wrap(block, n), obj)[()]
    at = normalise_index(block, behind, n + 1)
    pieces = [
        part(array, place, 0, at),
        np.broadcast_to(new, tuple(wrap(block, s) for s in shape)),
        part(array, place, at, n - at),
    ]
    return np.concatenate(pieces, axis=place)


def _along(block: Block, values: Any, axis: Any) -> tuple[Tracer, int]:
    """An array and one of its axes; without an axis, all elements in a row."""
    array = as_array(block, values)
    if axis is None:
        return ravel(array), 0
    return array, one_axis(axis, array.ndim)


def _is_place(value: Any) -> bool:
    return is_int(value) or (type(value) is Tracer and is_position(value))
