"""Basic and integer-array indexing of traced arrays: keys become Views, gathers and updates.

Every index and slice bound is normalised as Python does it: negative ones add the length, slices
clamp to 0..n. What the sizes at hand decide is guarded.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.assume import Unknown
from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.op import Bind
from npjit.core.size import (
    Shape,
    Size,
    Var,
    as_size,
    depth,
    floordiv,
    select,
    smax,
    smin,
    text,
)
from npjit.core.view import At, Cut, View, identity
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import ROWS
from npjit.ops.symint import is_int, size_of

__all__ = ["get_item", "identity", "parse", "set_item"]

# sums of a few sizes up to here stay within int64
FARTHEST = 2**60
# bounds of sizes that are made of more ranges of others are not worth looking for
FURTHEST = 300
# and sizes with function terms nested deeper are not worth computing with
DEEPEST = 10


def normalise_index(block: Block, key: Any, n: Size) -> Size:
    """The index of an axis of extent n, counted from the front; IndexError when it is surely out of
    range.

    What neither bounds nor the sizes at hand prove becomes a run-time check.
    """
    sizes = block.sizes
    if _is_tracer(key):
        return traced_index(block, key.node, n)
    i = size_of(_integer(key))
    try:
        wrapped = i if sizes.decide_le(0, i) else i + n
    except Unknown:
        wrapped = select(i, i, i + n)
    try:
        fits = sizes.decide_le(0, wrapped) and sizes.decide_le(wrapped + 1, n)
    except Unknown:
        _check_index(block, build.size_node(block, wrapped), n)
        return wrapped
    if not fits:
        raise IndexError(f"index {text(i)} is out of bounds for an axis of size {text(n)}")
    return wrapped


def traced_index(block: Block, node: Node, n: Size) -> Size:
    """A size variable for an index that is computed: wrapped as Python does, checked against the
    extent n.
    """
    if node.dtype.kind not in "iu" or node.shape:
        raise NotCaptured("an index that is no integer scalar")
    always = never_outside(block, node.dtype, n)
    is_signed = node.dtype.kind == "i"
    node = build.cast(block, build.weigh(block, node, Weight.SCALAR), build.INT64)
    if is_signed:
        extent = build.weigh(block, build.size_node(block, n), Weight.SCALAR)
        zero = build.constant(block, 0, build.INT64)
        negative = build.ufunc(block, kinds.UFUNCS[np.less], np.less, [node, zero])
        wrapped = build.ufunc(block, kinds.UFUNCS[np.add], np.add, [node, extent])
        node = build.select(block, negative, wrapped, node)
    if not always:
        _check_index(block, node, n)
    return bind(block, node, 0, n - 1)


def never_outside(block: Block, dtype: np.dtype[Any], n: Size) -> bool:
    """Whether every number of an unsigned type is an index of an axis of extent n; an extent that
    is large enough has to stay so."""
    if dtype.kind != "u":
        return False
    sizes, count = block.sizes, int(np.iinfo(dtype).max) + 1
    try:
        return bool(sizes.le(count, n)) or (sizes.actual(n) >= count and sizes.decide_le(count, n))
    except Unknown:
        return False


def traced_int(block: Block, node: Node) -> Size:
    """A size variable for a computed integer scalar; near the ends of int64 its check fails."""
    node = build.cast(block, build.weigh(block, node, Weight.SCALAR), build.INT64)
    least, greatest = (build.constant(block, end, build.INT64) for end in (-FARTHEST, FARTHEST))
    low = build.ufunc(block, kinds.UFUNCS[np.less_equal], np.less_equal, [least, node])
    high = build.ufunc(block, kinds.UFUNCS[np.less_equal], np.less_equal, [node, greatest])
    ok = build.ufunc(block, kinds.UFUNCS[np.logical_and], np.logical_and, [low, high])
    block.add(kinds.CHECK, (ok,), "an int that is too large for a size", ok.type)
    return bind(block, node, -FARTHEST, FARTHEST)


def bind(block: Block, node: Node, least: Size, greatest: Size) -> Size:
    """A size variable that stands for an int64 scalar node."""
    for v, known in block.binds.items():
        if known.args[0] is node:
            return as_size(v)
    low = least if isinstance(least, int) else None
    _require_wieldy(greatest)
    unknown = Var(f"v{len(block.sizes.ranges)}", low)
    reach = block.sizes.reach[unknown] = 1 + _reach(block, greatest)
    if reach > FURTHEST:
        raise NotCaptured("an extent that depends on too many others")
    type_ = TensorType((), build.INT64, Weight.SCALAR)
    block.add(ROWS["bind"], (node,), Bind(unknown, least, greatest), type_)
    block.sizes.ranges[unknown] = (least, greatest)
    return as_size(unknown)


def _check_index(block: Block, node: Node, n: Size) -> None:
    """0 <= node < n, or the call fails with NumPy's IndexError."""
    node = build.weigh(block, node, Weight.SCALAR)
    extent = build.weigh(block, build.size_node(block, n), Weight.SCALAR)
    ok = build.apply(block, kinds.ROWS["is_index"], [node, extent], build.BOOL)
    block.add(kinds.CHECK, (ok,), "IndexError: index out of bounds", ok.type)


def normalise_slice(block: Block, s: slice, n: Size) -> Cut:
    """A slice of an axis of extent n as start, step and length."""
    sizes = block.sizes
    step = 1 if s.step is None else _step(block, size_of(_integer(s.step)))
    if step == 0:
        raise ValueError("slice step cannot be zero")
    forward = not isinstance(step, int) or step > 0
    low, high = (0, n) if forward else (-1, n - 1)
    start = (low if forward else high) if s.start is None else _bound(block, s.start, n, low, high)
    stop = (high if forward else low) if s.stop is None else _bound(block, s.stop, n, low, high)
    span, stride = (stop - start, step) if forward else (start - stop, -step)
    length = floordiv(span + (stride - 1), stride)
    _require_wieldy(length)
    try:
        return Cut(start, step, length) if sizes.decide_le(1, span) else Cut(0, 1, 0)
    except Unknown:
        return Cut(start, step, length if sizes.le(0, span) else smax(length, 0))


def _reach(block: Block, size: Size) -> int:
    """How many ranges of variables a bound of a size is made of."""
    if isinstance(size, int):
        return 0
    found = 0
    for mono, _ in size.terms:
        for atom in mono:
            if isinstance(atom, Var):
                found += block.sizes.reach.get(atom, 0)
            else:
                found += sum(_reach(block, a) for a in atom.args)
    return found


def _require_wieldy(size: Size) -> None:
    """NotCaptured for an extent made of extents made of extents, as in a loop that is unrolled."""
    if depth(size) > DEEPEST:
        raise NotCaptured("an extent that depends on too many others")


def _step(block: Block, step: Size) -> Size:
    """A slice's step; one that differs from trip to trip of a loop has to be positive."""
    try:
        return block.sizes.specialise(step)
    except Unknown:
        if not block.sizes.decide_le(1, step):
            raise
        return step


def _bound(block: Block, value: Any, n: Size, low: Size, high: Size) -> Size:
    sizes = block.sizes
    if _is_tracer(value):
        return _traced_bound(block, value.node, n, low, high)
    v = size_of(_integer(value))
    try:
        v = v if sizes.decide_le(0, v) else v + n
    except Unknown:
        v = select(v, v, v + n)
    try:
        v = v if sizes.decide_le(low, v) else low
    except Unknown:
        v = smax(v, low)
    try:
        return v if sizes.decide_le(v, high) else high
    except Unknown:
        return smin(v, high)


def _traced_bound(block: Block, node: Node, n: Size, low: Size, high: Size) -> Size:
    """A slice bound that is computed: wrapped and clamped, as a size variable."""
    if node.dtype.kind not in "iu" or node.shape:
        raise NotCaptured("a slice bound that is no integer scalar")

    def size(value: Size) -> Node:
        return build.weigh(block, build.size_node(block, value), Weight.SCALAR)

    node = build.cast(block, build.weigh(block, node, Weight.SCALAR), build.INT64)
    negative = build.ufunc(block, kinds.UFUNCS[np.less], np.less, [node, size(0)])
    wrapped = build.ufunc(block, kinds.UFUNCS[np.add], np.add, [node, size(n)])
    node = build.select(block, negative, wrapped, node)
    node = build.ufunc(block, kinds.UFUNCS[np.maximum], np.maximum, [node, size(low)])
    node = build.ufunc(block, kinds.UFUNCS[np.minimum], np.minimum, [node, size(high)])
    return bind(block, node, low, high)


def _integer(value: Any) -> Any:
    return value if is_int(value) else operator.index(value)


def is_position(key: Any) -> bool:
    """An integer: a Python one, a NumPy scalar, or a traced one (not a 0-d array)."""
    if _is_tracer(key):
        return key.weight is not Weight.ARRAY and key.dtype.kind in "iu"
    return is_int(key) or isinstance(key, np.integer)


def _is_tracer(value: Any) -> bool:
    from npjit.ops.tracer import Tracer

    return type(value) is Tracer


def parse(block: Block, shape: Shape, key: Any) -> View | None:
    """The View of a basic key; None when index arrays or masks are in it."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if not all(is_basic(k) for k in keys):
        return None
    taken = sum(k is not None and k is not Ellipsis for k in keys)
    if taken > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, "
            f"but {taken} were indexed"
        )
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    entries: list[At | Cut | None] = []
    axis = 0
    for k in keys:
        if k is None:
            entries.append(None)
        elif k is Ellipsis:
            rest = len(shape) - taken
            entries += [Cut(0, 1, n) for n in shape[axis : axis + rest]]
            axis += rest
        else:
            entries.append(_entry(block, k, shape[axis]))
            axis += 1
    return views.index(shape, entries)


def is_basic(key: Any) -> bool:
    return key is None or key is Ellipsis or isinstance(key, slice) or is_position(key)


def _entry(block: Block, key: Any, n: Size) -> At | Cut:
    if isinstance(key, slice):
        return normalise_slice(block, key, n)
    return At(normalise_index(block, key, n))


def _takes_all(key: Any, rank: int) -> bool:
    """Whether a basic key fixes every axis by an integer, so that NumPy gives a scalar."""
    keys = key if isinstance(key, tuple) else (key,)
    return len(keys) == rank and all(is_position(k) for k in keys)


def get_item(array: Any, key: Any) -> Any:
    """array[key]."""
    from npjit.ops.tracer import fresh

    if array.weight is Weight.WEAK:
        raise TypeError(f"'{array.__class__.__name__}' object is not subscriptable")
    block = array.block
    v = parse(block, array.raw_shape, key)
    if v is None:
        from npjit.ops.advanced import get_advanced

        return get_advanced(array, key)
    if _takes_all(key, array.ndim):
        node = build.view(block, array.node, v)
        return fresh(block, build.weigh(block, node, Weight.SCALAR))
    return array.through(v)


def set_item(array: Any, key: Any, value: Any) -> None:
    """array[key] = value."""
    from npjit.ops.tracer import Tracer, as_node

    if array.weight is not Weight.ARRAY:
        raise TypeError(f"'{array.__class__.__name__}' object does not support item assignment")
    array.require_writable()
    block = array.block
    v = parse(block, array.raw_shape, key)
    if v is None:
        from npjit.ops.advanced import set_advanced

        set_advanced(array, key, value)
        return
    target = array.through(v)
    if type(value) is Tracer and value.cell is array.cell and value.window == target.window:
        return  # the second half of A[i] += x: the in-place operator has written already
    target.write(storable(block, as_node(block, value), array.dtype))


def storable(block: Block, node: Node, dtype: np.dtype[Any]) -> Node:
    """A value that is about to be stored as `dtype`: numbers go through Python's int() and float(),
    which may raise.
    """
    if node.type.weight is Weight.ARRAY or node.shape:
        return node
    if node.type.weight is Weight.WEAK and node.dtype.kind == "c" and dtype.kind != "c":
        raise NotCaptured("a Python complex number stored as a real one")
    if node.dtype.kind == "f" and dtype.kind in "iu":
        wide = build.cast(block, build.weigh(block, node, Weight.SCALAR), build.FLOAT64)
        size = build.ufunc(block, kinds.UFUNCS[np.absolute], np.absolute, [wide])
        bits = min(8 * dtype.itemsize - (dtype.kind == "i"), 63)
        limit = build.constant(block, 2.0**bits, build.FLOAT64)
        ok = build.ufunc(block, kinds.UFUNCS[np.less], np.less, [size, limit])
        block.add(kinds.CHECK, (ok,), f"a float that is no {dtype} is stored as one", ok.type)
    return node
