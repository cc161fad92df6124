"""Indexing by integer arrays, alone or beside slices: reading is a gather, writing a scatter.

Index arrays may be computed; they are counted from the front and checked before they are used.
Masks that are known now become index arrays; computed ones are `npjit.ops.masks`.

    x[:, idx]       Gather(dims=(1,), place=1) of x
    x[idx] = v      the next version of x's storage, by scatter_last
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.op import Gather, Kind, Op
from npjit.core.size import Shape, Size
from npjit.core.view import At, View, expand
from npjit.ops import build, kinds
from npjit.ops.cell import Cell
from npjit.ops.errors import NotCaptured
from npjit.ops.indexing import (
    is_basic,
    is_position,
    never_outside,
    normalise_index,
    parse,
    storable,
)
from npjit.ops.reduce import ALL
from npjit.ops.scatter import SCATTER_LAST
from npjit.ops.tracer import Tracer, as_node, fresh


@dataclass(frozen=True)
class Address:
    """What a key with index arrays names: `target` is the array after the key's basic part, its
    axes `dims` addressed by `indices`, whose own axes stand at `place` in `shape`. The indices are
    in range; negative ones count from the end."""

    target: Tracer
    dims: tuple[int, ...]
    indices: tuple[Node, ...]
    place: int
    shape: Shape

    def from_front(self) -> list[Node]:
        """The index arrays, all counted from the front."""
        target = self.target
        pairs = zip(self.indices, self.dims, strict=True)
        return [from_front(target.block, i, target.raw_shape[d]) for i, d in pairs]


def resolve(array: Tracer, key: Any) -> Address:
    """The address of a key that holds index arrays."""
    keys, extents = _spread(list(key) if isinstance(key, tuple) else [key])
    basic = [k if is_basic(k) else slice(None) for k in keys]
    view = parse(array.block, array.raw_shape, tuple(basic))
    assert view is not None
    target = array.through(view)
    dims, apart = _index_axes(keys, array.ndim)
    for d, n in zip(dims, extents, strict=True):
        if n is not None and not array.block.sizes.decide_eq(target.raw_shape[d], n):
            raise IndexError("boolean index did not match indexed array")
    arrays = [k for k in keys if not is_basic(k)]
    indices = _joined(array.block, arrays, [target.raw_shape[d] for d in dims])
    place = 0 if apart else dims[0]
    shape = [n for d, n in enumerate(target.raw_shape) if d not in dims]
    shape[place:place] = indices[0].shape
    return Address(target, dims, indices, place, tuple(shape))


def gather(block: Block, base: Node, dims: tuple[int, ...], place: int, *indices: Node) -> Tracer:
    """The elements of the base at index arrays of one shape, counted from the front."""
    shape = [n for d, n in enumerate(base.shape) if d not in dims]
    shape[place:place] = indices[0].shape
    weight = Weight.ARRAY if shape else Weight.SCALAR
    type_ = TensorType(tuple(shape), base.dtype, weight)
    return fresh(block, block.add(kinds.GATHER, (base, *indices), Gather(dims, place), type_))


def get_at(array: Tracer, key: Any) -> Tracer:
    """array[key] for a key that holds index arrays."""
    at = resolve(array, key)
    made = gather(array.block, at.target.node, at.dims, at.place, *at.from_front())
    if not at.shape and isinstance(key, tuple) and any(k is Ellipsis for k in key):
        # an ellipsis keeps a 0-d array an array
        return fresh(array.block, build.weigh(array.block, made.node, Weight.ARRAY))
    return made


def set_at(array: Tracer, key: Any, value: Any, op: Op = SCATTER_LAST) -> None:
    """array[key] = value, or another way for the values to join what is there."""
    put(array.cell, resolve(array, key), value, op)


def put(cell: Cell, at: Address, value: Any, op: Op) -> None:
    """Have a value join what is at an address of a cell."""
    block = cell.block
    at.target.require_writable()
    node = build.cast(
        block, storable(block, as_node(block, value), cell.type.dtype), cell.type.dtype
    )
    spare = len(node.shape) - len(at.shape)
    if spare > 0 and all(n == 1 for n in node.shape[:spare]):
        node = build.reshape(block, node, node.shape[spare:])
    shape = build.broadcast_shapes(block, [at.shape, node.shape])
    if len(shape) != len(at.shape) or not all(map(block.sizes.decide_eq, shape, at.shape)):
        raise ValueError("shape mismatch: value array could not be broadcast to indexing result")
    node = build.stretch(block, node, at.shape)
    params, indices = Gather(at.dims, at.place), at.indices
    window = at.target.window
    if window is not None and not window.is_identity:
        params, indices = _in_cell(block, window, at)
    store(cell, op, node, params, indices)


def store(cell: Cell, op: Op, value: Node, params: Gather, indices: tuple[Node, ...]) -> None:
    """The next version of a cell, with a value scattered into it."""
    if type(cell) is Cell:
        cell.scatter(op, value, params, indices)
        return
    # storage that is part of other storage
    version = cell.node
    block, type_ = cell.block, TensorType(version.shape, version.dtype)
    copy = block.add(kinds.CELL, (version,), len(block.nodes), type_)
    cell.write(None, block.add(op, (copy, value, *indices), params, type_))


# ---------------------------------------------------------------- keys


def _spread(keys: list[Any]) -> tuple[list[Any], list[int | None]]:
    """The keys with known masks as index arrays, one for each of the mask's axes; and for each
    index array the extent that its axis must have, None for any.
    """
    found: list[Any] = []
    extents: list[int | None] = []
    for k in keys:
        if is_basic(k):
            found.append(k)
            continue
        value = k if type(k) is Tracer else _listed(k)
        if type(value) is not Tracer and value.dtype == np.bool_:
            found += list(np.nonzero(value))
            extents += value.shape
            continue
        extents.append(None)
        if type(value) is Tracer or value.dtype.kind in "iu":
            found.append(value)
        else:
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return found, extents


def _listed(key: Any) -> Any:
    """A list or an array as an array, traced when it holds traced numbers."""
    from npjit.ops.convert import array
    from npjit.ops.operands import find_block, has_traced

    if isinstance(key, bool):
        raise NotCaptured("a bool as an index")
    if isinstance(key, (list, tuple)) and has_traced(key):
        return array(find_block(key), key)
    return np.asarray(key, np.int64 if isinstance(key, list) and not key else None)


def _index_axes(keys: list[Any], rank: int) -> tuple[tuple[int, ...], bool]:
    """Axes (of the result of the basic part) that index arrays address, and whether they stand
    apart."""
    taken = sum(k is not None and k is not Ellipsis for k in keys)
    axis = 0
    dims: list[int] = []
    places: list[int] = []
    for position, k in enumerate(keys):
        if k is Ellipsis:
            axis += rank - taken
        elif not is_basic(k):
            dims.append(axis)
            places.append(position)
            axis += 1
        elif not is_position(k):
            axis += 1
        else:
            places.append(position)
    apart = places != list(range(places[0], places[0] + len(places)))
    return tuple(dims), apart


# ---------------------------------------------------------------- index arrays


def _joined(block: Block, arrays: list[Any], extents: list[Size]) -> tuple[Node, ...]:
    """Index arrays of one shape, checked."""
    nodes = [_checked(block, a, n) for a, n in zip(arrays, extents, strict=True)]
    shape = build.broadcast_shapes(block, [n.shape for n in nodes])
    return tuple(build.stretch(block, n, shape) for n in nodes)


def _checked(block: Block, index: Any, n: Size) -> Node:
    if type(index) is not Tracer:
        return as_node(block, _of_constants(block, index, n))
    if index.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return in_range(block, index.node, n)


def _of_constants(block: Block, index: np.ndarray, n: Size) -> np.ndarray:
    """Constant indices counted from the front, in range by a guard."""
    if index.size:
        normalise_index(block, int(index.min()), n)
        normalise_index(block, int(index.max()), n)
        if index.min() < 0:
            index = np.where(index < 0, index + block.sizes.specialise(n), index)
    return index.astype(np.int64)


def in_range(block: Block, index: Node, n: Size) -> Node:
    """Computed indices as int64; the call fails when one is out of range of n."""
    counting = _source(index)
    if counting.op.kind is Kind.IOTA and block.sizes.decide_le(counting.shape[0], n):
        return index
    is_signed = index.dtype.kind == "i"
    always = never_outside(block, index.dtype, n)
    index = build.cast(block, index, build.INT64)
    if always:
        return index
    moved = fresh(block, index)
    end = fresh(block, build.weigh(block, build.size_node(block, n), Weight.SCALAR))
    if is_signed:
        moved, end = moved + end, end + end
    # what is negative then is huge without a sign
    natural = np.dtype(np.uint64)
    both = [build.cast(block, v.node, natural) for v in (moved, end)]
    fits = build.ufunc(block, kinds.UFUNCS[np.less], np.less, both)
    every = build.reduce(block, ALL, fits, tuple(range(len(fits.shape))), build.BOOL)
    block.add(kinds.CHECK, (every,), "IndexError: index out of bounds", every.type)
    return index


def from_front(block: Block, index: Node, n: Size) -> Node:
    """Indices in range of n, the negative ones counted from the front too."""
    never = index.op.conversion and index.args[0].dtype.kind == "u"
    if never or _source(index).op.kind is Kind.IOTA:
        return index
    at = fresh(block, index)
    return np.where(at < 0, at + fresh(block, build.size_node(block, n)), at).node


def _source(n: Node) -> Node:
    while n.op.kind is Kind.VIEW:
        n = n.args[0]
    return n


# ---------------------------------------------------------------- windows


def _in_cell(block: Block, window: View, at: Address) -> tuple[Gather, tuple[Node, ...]]:
    """The address by an index array for every dimension of the cell that the window looks at; the
    value's axes are those of `at.shape`."""
    rank = len(at.shape)
    count = len(at.indices[0].shape)
    kept = [d for d in range(len(window.shape)) if d not in at.dims]
    places = [*range(at.place), *range(at.place + count, rank)]
    indices: dict[int, Node] = {}
    for d, axis in zip(kept, places, strict=True):
        line = build.iota(block, window.shape[d])
        others = [i for i in range(rank) if i != axis]
        indices[d] = build.view(block, line, expand(line.shape, others))
    around = [i for i in range(rank) if not at.place <= i < at.place + count]
    for d, index in zip(at.dims, at.from_front(), strict=True):
        indices[d] = build.view(block, index, expand(index.shape, around))
    found: list[Node] = []
    for entry in window.dims:
        if isinstance(entry, At):
            place = build.weigh(block, build.size_node(block, entry.index), Weight.SCALAR)
        else:
            place = _affine(block, indices[entry.axis], entry.start, entry.step)
        found.append(build.stretch(block, place, at.shape))
    return Gather(tuple(range(len(window.dims))), 0), tuple(found)


def _affine(block: Block, index: Node, start: Size, step: Size) -> Node:
    """start + step * index."""
    made = fresh(block, index)
    for ufunc, size, neutral in ((np.multiply, step, 1), (np.add, start, 0)):
        if size != neutral:
            made = ufunc(made, fresh(block, build.size_node(block, size)))
    return made.node
