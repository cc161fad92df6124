"""Keys with computed masks: reading and storing through them, and the positions that they name.

In: an array, and a key in which there is a mask that only running code knows. Out: a `Selected`
(`ops.selection`) where the mask covers the leading axes of what the rest of the key gives, else an
array read at the mask's positions. A store through such a mask is a choice between two values of
the whole array.

    z[m] = z[m] ** 2 + c[m]     ->  where(m, z ** 2 + c, z)
    np.nonzero(m)[0]            ->  arange(n)[m]
    x[m, [0, 1]]                ->  x[nonzero(m)[0], [0, 1]]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block, Node
from npjit.core.size import Shape
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.gathering import gather, get_at, set_at
from npjit.ops.indexing import is_basic, parse, storable
from npjit.ops.kinds import function
from npjit.ops.movement import ravel
from npjit.ops.operands import as_array, find_block
from npjit.ops.selection import Selected, packed, spread
from npjit.ops.tracer import Tracer, as_node, fresh


def _split(array: Tracer, key: Any) -> tuple[Tracer, Node] | None:
    """The array after the key's basic part, and the mask, which covers its leading axes; None for
    other keys."""
    block = array.block
    keys = _with_masks(block, _listed(key))
    places = [i for i, k in enumerate(keys) if _is_mask(k)]
    if len(places) != 1 or not all(is_basic(k) for k in keys if not _is_mask(k)):
        return None
    (place,) = places
    mask = as_node(block, keys[place])
    lead = len(mask.shape)
    taken = sum(k is not None and k is not Ellipsis for k in keys) - 1 + lead
    if keys[:place] == [Ellipsis] and taken == array.ndim:
        keys, place = keys[1:], 0
    if place != 0 or lead == 0 or None in keys:
        return None
    basic = (*[slice(None)] * lead, *keys[1:])
    view = parse(block, array.raw_shape, basic)
    assert view is not None
    _require_fit(block, mask, array.raw_shape[:lead])
    return array.through(view), mask


def _listed(key: Any) -> list[Any]:
    """The parts of a key; a selection of bools is a mask as any array of them."""
    keys = key if isinstance(key, tuple) else (key,)
    return [k.packed() if type(k) is Selected and k.dtype == np.bool_ else k for k in keys]


def _is_mask(key: Any) -> bool:
    return type(key) is Tracer and key.dtype == np.bool_


def _require_fit(block: Block, mask: Node, extents: Shape) -> None:
    """IndexError when a mask has not the extents of the axes that it covers."""
    same = len(extents) == len(mask.shape) and all(
        block.sizes.decide_eq(a, b) for a, b in zip(mask.shape, extents, strict=True)
    )
    if not same:
        raise IndexError("boolean index did not match indexed array")


def _by_positions(array: Tracer, key: Any) -> Any:
    """A key with the positions that its masks and selections name, as index arrays."""
    keys = _listed(key)
    taken = sum(np.ndim(k) if _is_mask(k) else k is not None for k in keys if k is not Ellipsis)
    found: list[Any] = []
    axis = 0
    for k in keys:
        if _is_mask(k):
            if not k.ndim:
                raise NotCaptured("a bool as an index")
            _require_fit(array.block, k.node, array.raw_shape[axis : axis + k.ndim])
            found += packed(nonzero(k))
            axis += k.ndim
            continue
        found.append(packed(k))
        axis += array.ndim - taken if k is Ellipsis else k is not None
    return tuple(found) if isinstance(key, tuple) or len(found) > 1 else found[0]


def _whole(target: Tracer, mask: Node) -> Node:
    """The array's value, its extents spelled as the mask's are."""
    shape = (*mask.shape, *target.raw_shape[len(mask.shape) :])
    return build.same_shape(target.block, target.node, shape)


def _with_masks(block: Block, keys: list[Any]) -> list[Any]:
    """The keys, the positions that `nonzero` gives as the mask itself."""
    places = [i for i, k in enumerate(keys) if type(k) is Selected]
    if not places:
        return keys
    run = keys[places[0] : places[-1] + 1]
    mask = run[0].mask
    in_order = all(
        type(k) is Selected and k.mask is mask and k.axis == d and k.array is None
        for d, k in enumerate(run)
    )
    if not in_order or len(run) != len(mask.shape):
        return keys
    return [*keys[: places[0]], fresh(block, mask), *keys[places[-1] + 1 :]]


def get_masked(array: Tracer, key: Any) -> Any:
    """array[key] for a key with a computed mask."""
    found = _split(array, key)
    if found is None:
        return get_at(array, _by_positions(array, key))
    target, mask = found
    return Selected(_whole(target, mask), mask, array.block)


def set_masked(array: Tracer, key: Any, value: Any) -> None:
    """array[key] = value for a key with a computed mask."""
    block = array.block
    found = _split(array, key)
    if found is None:
        set_at(array, _by_positions(array, key), packed(value))
        return
    target, mask = found
    lead = len(mask.shape)
    fits = type(value) is Selected and value.mask is mask and value.array is None
    if fits and value.ndim == target.ndim - lead + 1:
        new = value.whole.node
    else:
        value = packed(value)
        new = storable(block, as_node(block, value), array.dtype)
        if len(new.shape) > target.ndim - lead:
            new = _dealt(block, new, mask, target.ndim - lead)
    new = build.cast(block, new, array.dtype)
    target.require_writable()
    chosen = build.select(block, spread(block, mask, target.ndim), new, _whole(target, mask))
    target.write(chosen)


@function(np.nonzero, "nonzero")
def nonzero(a: Any) -> tuple[Selected, ...]:
    """np.nonzero."""
    array = as_array(find_block(a), a)
    if not array.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed.")
    block = array.block
    mask = build.cast(block, array.node, build.BOOL)
    total = build.element_count(mask.shape)
    every = Selected(build.iota(block, total), build.reshape(block, mask, (total,)), block)
    found = []
    for d, n in enumerate(mask.shape):
        line = build.iota(block, n)
        others = [i for i in range(len(mask.shape)) if i != d]
        along = build.view(block, line, views.expand(line.shape, others))
        places = build.stretch(block, along, mask.shape)
        found.append(Selected(places, mask, block, d, every))
    return tuple(found)


@function(np.flatnonzero)
def flatnonzero(a: Any) -> Selected:
    """np.flatnonzero."""
    return nonzero(ravel(as_array(find_block(a), a)))[0]


@function(np.extract)
def extract(condition: Any, arr: Any) -> Selected:
    """np.extract."""
    array = as_array(find_block(condition, arr), arr)
    return ravel(array)[ravel(as_array(array.block, condition)).astype(bool)]


def _dealt(block: Block, values: Node, mask: Node, rest: int) -> Node:
    """The whole array in which the elements under the mask are `values`, one after the other."""
    if len(values.shape) != rest + 1:
        raise NotCaptured("a mask that receives an array of more dimensions")
    n = values.shape[0]
    if n == 1:
        return build.reshape(block, values, values.shape[1:])
    flags = np.ravel(fresh(block, mask))
    count = np.cumsum(flags)
    enough = np.sum(flags) == fresh(block, build.size_node(block, n))
    block.add(kinds.CHECK, (enough.node,), "ValueError: values for a mask", enough.node.type)
    last = fresh(block, build.size_node(block, n)) - 1
    places = np.minimum(np.maximum(count - 1, 0), last)
    picked = gather(block, values, (0,), 0, places.node)
    return build.reshape(block, picked.node, (*mask.shape, *values.shape[1:]))
