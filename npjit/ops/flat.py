"""`a.flat`, and what NumPy stores by its positions: put, place, putmask, fill_diagonal.

Storage that is one contiguous array is written through its flat form; of other arrays the positions
become an index for each axis. Values that are too few are taken again from the front.

    a.flat[::3] = [1, 2]    ->    flat = reshape(a, -1);  flat[::3] = 1, 2, 1, 2, ...
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.graph import Node
from npjit.ops import build
from npjit.ops.create import counting
from npjit.ops.errors import NotCaptured
from npjit.ops.gathering import from_front, in_range, set_at
from npjit.ops.indexing import is_position
from npjit.ops.kinds import attribute, function, setter
from npjit.ops.memory_order import is_c_ordered
from npjit.ops.operands import as_array, find_block
from npjit.ops.sharing import root_of, share_reshaped
from npjit.ops.symint import size_of
from npjit.ops.tracer import Tracer, as_node, fresh


class Flat:
    """a.flat: reads give copies."""

    def __init__(self, array: Tracer) -> None:
        self.array = array

    def copy(self) -> Tracer:
        """All elements, as an array of their own."""
        return fresh(self.array.block, _elements(self.array))

    def __len__(self) -> int:
        return len(self.copy())

    def __iter__(self) -> Any:
        return iter(self.copy())

    def __getitem__(self, key: Any) -> Any:
        return self.copy()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        store_flat(self.array, key, value)


def _elements(array: Tracer) -> Node:
    node = array.node
    return build.reshape(array.block, node, (build.element_count(node.shape),))


@attribute("flat")
def flat(array: Tracer) -> Flat:
    """ndarray.flat."""
    return Flat(array)


@setter("flat")
def set_flat(array: Tracer, value: Any) -> None:
    """array.flat = value"""
    store_flat(array, slice(None), value)


def store_flat(array: Tracer, key: Any, value: Any) -> None:
    """array.flat[key] = value"""
    block = array.block
    count = build.element_count(array.raw_shape)
    whole = array.window is None or array.window.is_identity
    if array.ndim == 1 or (whole and is_c_ordered(block, root_of(array.cell).origin)):
        line = array if array.ndim == 1 else share_reshaped(array, (count,))
        if is_position(key):
            line[key] = _values(line, value, 1)[0] if np.ndim(value) else value
        else:
            line[key] = _values(line, value, line[key].size)
        return
    positions = counting(block, count)[key]
    if is_position(key):
        positions = as_array(block, positions)[None]
    _store_at(array, positions, value)


def _store_at(array: Tracer, positions: Tracer, value: Any) -> None:
    """Values at positions in C order, which are in range of the array's size."""
    keys: dict[int, Any] = {}
    rest = positions
    for d in reversed(range(array.ndim)):
        keys[d] = rest % array.shape[d] if d else rest
        rest = rest // array.shape[d]
    set_at(array, tuple(keys[d] for d in sorted(keys)), _values(array, value, positions.size))


def _line(array: Tracer, values: Any) -> Tracer:
    """The values to be stored, in a row."""
    values = as_array(array.block, values)
    if values.dtype.kind == "c" and array.dtype.kind != "c":
        raise TypeError("complex numbers are stored as real ones")  # NumPy decides
    return fresh(array.block, _elements(values))


def _values(array: Tracer, value: Any, count: Any) -> Any:
    """So many values; a single one stays as it is."""
    block = array.block
    line = _line(array, value)
    if line.raw_shape[0] == 1:
        return line[0]
    if block.sizes.decide_eq(line.raw_shape[0], size_of(count)):
        return line
    if block.sizes.decide_eq(line.raw_shape[0], 0):
        raise NotCaptured("no values are stored")
    return line[counting(block, size_of(count)) % line.shape[0]]


@function(np.put, "put")
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    """np.put with mode="raise"."""
    block = find_block(a, ind, v)
    if mode != "raise" or type(a) is not Tracer:
        raise NotCaptured("np.put with mode=, or into what is no array")
    count = build.element_count(a.raw_shape)
    index = as_array(block, ind)
    if index.dtype.kind not in "iub":
        raise TypeError("Cannot cast array data to an integer dtype")
    line = build.cast(block, _elements(index), build.INT64)
    places = from_front(block, in_range(block, line, count), count)
    store_flat(a, fresh(block, places), v)


@function(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """np.place: the values one after the other."""
    if type(arr) is not Tracer:
        raise TypeError("argument 1 must be numpy.ndarray")
    flags, line = _mask_of(arr, mask), _line(arr, vals)
    number = np.cumsum(np.ravel(flags)) - 1
    _choose(arr, flags, line if line.raw_shape[0] == 1 else _taken(line, number))


@function(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """np.putmask: each value goes with its position."""
    block = find_block(a, mask, values)
    if type(a) is not Tracer:
        raise TypeError("argument 1 must be numpy.ndarray")
    line = _line(a, values)
    if line.raw_shape[0] != 1:
        line = _taken(line, counting(block, build.element_count(a.raw_shape)))
    _choose(a, _mask_of(a, mask), line)


def _mask_of(array: Tracer, mask: Any) -> Tracer:
    """A mask as bools of the array's shape."""
    block = array.block
    flags = build.cast(block, as_node(block, mask), build.BOOL)
    sizes = [build.element_count(s) for s in (flags.shape, array.raw_shape)]
    if not block.sizes.decide_eq(*sizes):
        raise ValueError("mask and data must be the same size")
    return fresh(block, build.reshape(block, flags, array.raw_shape))


def _taken(values: Tracer, number: Tracer) -> Tracer:
    """The values of these numbers, counted round and round."""
    if values.block.sizes.decide_eq(values.raw_shape[0], 0):
        raise NotCaptured("no values are stored")
    return values[np.maximum(number, 0) % values.shape[0]]


def _choose(array: Tracer, flags: Tracer, values: Tracer) -> None:
    """Values (one, or one for each position) where a flag holds."""
    block = array.block
    node = build.cast(block, values.node, array.dtype)
    if values.raw_shape[0] != 1:
        node = build.reshape(block, node, array.raw_shape)
    array.require_writable()
    array.write(build.select(block, flags.node, node, array.node))


@function(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: Any = False) -> None:
    """np.fill_diagonal."""
    block = find_block(a, val)
    if type(a) is not Tracer or a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and not all(block.sizes.decide_eq(a.raw_shape[0], n) for n in a.raw_shape[1:]):
        raise ValueError("All dimensions of input must be of equal length")
    rows, columns = a.shape[:2]
    if a.ndim == 2 and rows > columns:
        long = wrap and rows > columns + 1
        count = (rows * columns + columns) // (columns + 1) if long else columns
    else:
        count = rows
    line = counting(block, size_of(count))
    if a.ndim == 2 and wrap:
        _store_at(a, line * (columns + 1), val)
    else:
        set_at(a, (line,) * a.ndim, _values(a, val, count))
