"""Arrays made of other arrays: concatenate and its kin, splits, repeats, rolls, pads, triangles.

A joined array is an empty cell into which each part is stored, so that each part is computed straight into its
place.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.size import Shape, Size, floordiv
from npjit.core.view import Cut
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import function
from npjit.ops.movement import part, ravel
from npjit.ops.operands import as_array, common_dtype, deliver, find_block, one_axis
from npjit.ops.operands import listed_axes
from npjit.ops.sharing import is_c_ordered
from npjit.ops.symint import is_int, size_of, wrap
from npjit.ops.tracer import Tracer, as_node, fresh

# ---------------------------------------------------------------- joins


def join(block: Block, parts: Sequence[Node], axis: int) -> Tracer:
    """Nodes of one dtype and one shape but for `axis`, end to end."""
    first = parts[0]
    total: Size = 0
    for p in parts:
        total = total + p.shape[axis]
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    blank = build.constant(block, 0, first.dtype, Weight.ARRAY)
    made = fresh(block, build.broadcast(block, blank, shape))
    made.cell.origin = next((p for p in parts if not is_c_ordered(block, p)), first)
    place: Size = 0
    for p in parts:
        extent = p.shape[axis]
        if extent != 0:
            target = part(made, axis, place, extent)
            made.cell.write(target.view, build.stretch(block, p, target.raw_shape))
        place = place + extent
    return made


def _same_but(block: Block, nodes: Sequence[Node], axis: int) -> None:
    """All extents but that of `axis` agree, or ValueError."""
    for n in nodes[1:]:
        if len(n.shape) != len(nodes[0].shape):
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match exactly"
            )
        for i, (a, b) in enumerate(zip(nodes[0].shape, n.shape, strict=True)):
            if i != axis and not block.sizes.decide_eq(a, b):
                raise ValueError(
                    "all the input array dimensions except for the concatenation axis "
                    "must match exactly"
                )


@function(np.concatenate)
def concatenate(
    arrays: Any,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    """np.concatenate."""
    block = find_block(arrays, out)
    items = list(arrays) if type(arrays) is not Tracer else [arrays[i] for i in range(len(arrays))]
    made = [as_array(block, a) for a in items]
    if axis is None:
        made, axis = [ravel(a) for a in made], 0
    nodes = [a.node for a in made]
    if not nodes:
        raise ValueError("need at least one array to concatenate")
    if not nodes[0].shape:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    place = one_axis(axis, len(nodes[0].shape))
    _same_but(block, nodes, place)
    wanted = build.require_known(np.dtype(dtype)) if dtype is not None else common_dtype(nodes)
    if not all(np.can_cast(n.dtype, wanted, casting) for n in nodes):
        raise TypeError("Cannot cast array data")
    return deliver(out, join(block, [build.cast(block, n, wanted) for n in nodes], place))


@function(np.stack)
def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    """np.stack."""
    block = find_block(arrays, out)
    made = [as_array(block, a) for a in arrays]
    if not made:
        raise ValueError("need at least one array to stack")
    if any(
        a.ndim != made[0].ndim
        or not all(
            block.sizes.decide_eq(m, n) for m, n in zip(a.raw_shape, made[0].raw_shape, strict=True)
        )
        for a in made
    ):
        raise ValueError("all input arrays must have the same shape")
    place = one_axis(axis, made[0].ndim + 1)
    raised = [a.through(views.expand(a.raw_shape, [place])) for a in made]
    return concatenate(raised, place, out, dtype=dtype, casting=casting)


@function(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """np.vstack."""
    block = find_block(tup)
    rows = [np.atleast_2d(as_array(block, a)) for a in tup]
    return concatenate(rows, 0, dtype=dtype, casting=casting)


if hasattr(np, "row_stack"):
    function(np.row_stack)(vstack)


@function(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """np.hstack."""
    block = find_block(tup)
    made = [np.atleast_1d(as_array(block, a)) for a in tup]
    axis = 0 if made and made[0].ndim == 1 else 1
    return concatenate(made, axis, dtype=dtype, casting=casting)


@function(np.dstack)
def dstack(tup: Any) -> Any:
    """np.dstack."""
    block = find_block(tup)
    return concatenate([np.atleast_3d(as_array(block, a)) for a in tup], 2)


@function(np.column_stack)
def column_stack(tup: Any) -> Any:
    """np.column_stack."""
    block = find_block(tup)
    columns = []
    for value in tup:
        a = as_array(block, value)
        columns.append(np.transpose(np.atleast_2d(a)) if a.ndim < 2 else a)
    return concatenate(columns, 1)


@function(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """np.append."""
    block = find_block(arr, values)
    first, second = as_array(block, arr), as_array(block, values)
    if axis is None:
        return concatenate((ravel(first), ravel(second)), 0)
    return concatenate((first, second), axis)


@function(np.block)
def block_(arrays: Any) -> Any:
    """np.block of nested lists."""
    block = find_block(arrays)
    depth = _depth(arrays)
    return _joined_block(block, arrays, depth, max(depth, _rank(block, arrays)))


def _depth(arrays: Any) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _rank(block: Block, arrays: Any) -> int:
    if isinstance(arrays, list):
        return max(_rank(block, a) for a in arrays)
    return as_array(block, arrays).ndim


def _joined_block(block: Block, arrays: Any, depth: int, rank: int) -> Any:
    if depth == 0:
        a = as_array(block, arrays)
        return a.through(views.expand(a.raw_shape, range(rank - a.ndim)))
    parts = [_joined_block(block, a, depth - 1, rank) for a in arrays]
    return concatenate(parts, -depth)


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
    for start, stop in zip(cuts[:-1], cuts[1:], strict=True):
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


# ---------------------------------------------------------------- repeats and rolls


@function(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Tracer:
    """np.roll by a known number of places."""
    array = as_array(find_block(a), a)
    if axis is None:
        return np.reshape(roll(ravel(array), shift, 0), array.shape)
    axes = listed_axes(axis, array.ndim)
    shifts = shift if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if len(shifts) != len(axes):
        if len(axes) != 1:
            raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
        axes = axes * len(shifts)
    for places, i in zip(shifts, axes, strict=True):
        array = _rolled(array, size_of(places), i)
    return fresh(array.block, array.node)


def _rolled(array: Tracer, places: Size, axis: int) -> Tracer:
    n = array.raw_shape[axis]
    sizes = array.block.sizes
    if sizes.decide_eq(n, 0):
        return array
    if not (sizes.decide_le(0, places) and sizes.decide_le(places + 1, n)):
        places = sizes.specialise(places) % sizes.specialise(n)
    if places == 0:
        return array
    tail = part(array, axis, n - places, places)
    head = part(array, axis, 0, n - places)
    return join(array.block, [tail.node, head.node], axis)


@function(np.tile)
def tile(A: Any, reps: Any) -> Tracer:
    """np.tile."""
    block = find_block(A, reps)
    array = as_array(block, A)
    counts = list(reps) if isinstance(reps, (tuple, list)) else [reps]
    rank = max(array.ndim, len(counts))
    counts = [1] * (rank - len(counts)) + counts
    old = [1] * (rank - array.ndim) + list(array.shape)
    spread = np.reshape(array, tuple(n for pair in old for n in (1, pair)))
    shape = tuple(n for c, m in zip(counts, old, strict=True) for n in (c, m))
    tiled = np.broadcast_to(spread, shape)
    final = tuple(c * m for c, m in zip(counts, old, strict=True))
    return np.copy(np.reshape(tiled, final))


@function(np.repeat, "repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tracer:
    """np.repeat, every element the same known number of times."""
    array = as_array(find_block(a, repeats), a)
    if axis is None:
        array, axis = ravel(array), 0
    if not is_int(repeats) and not isinstance(repeats, np.integer):
        raise NotCaptured("np.repeat with an array of counts")
    place = one_axis(axis, array.ndim)
    spread = array.through(views.expand(array.raw_shape, [place + 1]))
    shape = list(array.shape)
    wide = np.broadcast_to(spread, (*shape[: place + 1], repeats, *shape[place + 1 :]))
    shape[place] = shape[place] * repeats
    return np.copy(np.reshape(wide, tuple(shape)))


# ---------------------------------------------------------------- pads


def _widths(pad_width: Any, rank: int) -> list[tuple[Size, Size]]:
    """Pairs (before, after) per axis, by NumPy's broadcasting of pad_width."""
    if isinstance(pad_width, dict):
        raise NotCaptured("np.pad with a dict of widths")
    items = pad_width if isinstance(pad_width, (tuple, list)) else [pad_width]
    if not any(isinstance(i, (tuple, list)) for i in items):
        pair = list(items) * 2 if len(items) == 1 else list(items)
        items = [pair] * rank
    pairs = [list(i) * 2 if len(i) == 1 else list(i) for i in items]
    pairs = pairs * rank if len(pairs) == 1 else pairs
    if len(pairs) != rank or any(len(p) != 2 for p in pairs):
        raise ValueError("operands could not be broadcast together")
    return [(size_of(a), size_of(b)) for a, b in pairs]


@function(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Tracer:
    """np.pad with constant, edge, wrap, reflect and symmetric modes."""
    a = as_array(find_block(array, pad_width), array)
    widths = _widths(pad_width, a.ndim)
    if any(not a.block.sizes.decide_le(0, n) for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        return _pad_constant(a, widths, kwargs.pop("constant_values", 0), kwargs)
    if kwargs or mode not in _BORDERS:
        raise NotCaptured(f"np.pad with mode={mode!r}")
    for axis, (before, after) in enumerate(widths):
        a = _BORDERS[mode](a, axis, before, after)
    return fresh(a.block, a.node)


def _pad_constant(a: Tracer, widths: list[tuple[Size, Size]], value: Any, rest: Any) -> Tracer:
    if rest or isinstance(value, (tuple, list, np.ndarray)) and np.ndim(value):
        raise NotCaptured("np.pad with several constants")
    block = a.block
    padded = zero_padded(block, a.node, widths)
    if type(value) in (int, float) and value == 0:
        return fresh(block, padded)
    fill = build.cast(block, as_node(block, value), a.dtype)
    inside = zero_padded(block, build.broadcast(block, _true(block), a.raw_shape), widths)
    return fresh(block, build.select(block, inside, padded, fill))


def _true(block: Block) -> Node:
    return build.constant(block, True, build.BOOL, Weight.ARRAY)


def zero_padded(block: Block, node: Node, widths: Sequence[tuple[Size, Size]]) -> Node:
    """The node with zeros around it."""
    if all(pair == (0, 0) for pair in widths):
        return node
    shape: Shape = tuple(n + a + b for n, (a, b) in zip(node.shape, widths, strict=True))
    return block.add(kinds.PAD, (node,), tuple(widths), TensorType(shape, node.dtype))


def _with_borders(a: Tracer, axis: int, before: list[Tracer], after: list[Tracer]) -> Tracer:
    pieces = [p for p in (*before, a, *after) if p.raw_shape[axis] != 0]
    return join(a.block, [p.node for p in pieces], axis) if len(pieces) > 1 else a


def _pad_edge(a: Tracer, axis: int, before: Size, after: Size) -> Tracer:
    n = a.raw_shape[axis]

    def spread(start: Size, length: Size) -> Tracer:
        shape = list(a.shape)
        shape[axis] = wrap(a.block, length)
        return np.broadcast_to(part(a, axis, start, 1), tuple(shape))

    return _with_borders(a, axis, [spread(0, before)], [spread(n - 1, after)])


def _pad_wrap(a: Tracer, axis: int, before: Size, after: Size) -> Tracer:
    n = a.raw_shape[axis]
    _require_within(a, n, before, after)
    left, right = part(a, axis, n - before, before), part(a, axis, 0, after)
    return _with_borders(a, axis, [left], [right])


def _mirrored(edge: int) -> Any:
    """reflect skips the edge element (1), symmetric repeats it (0)."""

    def bordered(a: Tracer, axis: int, before: Size, after: Size) -> Tracer:
        n = a.raw_shape[axis]
        _require_within(a, n - edge, before, after)
        left = _backwards(a, axis, before - 1 + edge, before)
        right = _backwards(a, axis, n - 1 - edge, after)
        return _with_borders(a, axis, [left], [right])

    return bordered


def _backwards(a: Tracer, axis: int, start: Size, length: Size) -> Tracer:
    entries = [Cut(0, 1, n) for n in a.raw_shape]
    entries[axis] = Cut(start, -1, length)
    return a.through(views.index(a.raw_shape, entries))


def _require_within(a: Tracer, n: Size, before: Size, after: Size) -> None:
    sizes = a.block.sizes
    if not (sizes.decide_le(before, n) and sizes.decide_le(after, n)):
        raise NotCaptured("np.pad by more than the array's own extent")


_BORDERS = {
    "edge": _pad_edge,
    "wrap": _pad_wrap,
    "reflect": _mirrored(1),
    "symmetric": _mirrored(0),
}
