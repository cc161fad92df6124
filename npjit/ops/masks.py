"""`x[mask]` for a mask that is computed: how many elements there are is known only when the code
runs, so what is kept is the whole array with the mask beside it.

A `Selected` takes part in elementwise operations with numbers and with other selections by the same
mask, can be reduced, stored back through that mask, and returned. For anything else its elements
are packed, one after the other, into an array whose extent is a size variable; from then on it is
that array.

    z[m] = z[m] ** 2 + c[m]     ->  where(m, z ** 2 + c, z)
    x[m].sum()                  ->  sum(x, where=m)
    np.nonzero(m)[0]            ->  arange(n)[m]
    np.sort(x[m])               ->  np.sort(packed[:count])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from npjit.core import view as views
from npjit.core.graph import Block, Node, Weight
from npjit.core.op import Gather
from npjit.core.size import Shape, product
from npjit.ops import build, kinds
from npjit.ops.cell import Cell
from npjit.ops.errors import NotCaptured
from npjit.ops.gathering import gather, get_at, set_at
from npjit.ops.indexing import bind, is_basic, parse, storable
from npjit.ops.kinds import function
from npjit.ops.movement import ravel
from npjit.ops.operands import as_array, find_block
from npjit.ops.scatter import SCATTER_LAST
from npjit.ops.symint import wrap
from npjit.ops.tracer import Tracer, as_node, fresh

_REASON = "x[mask]: the size of the result depends on values"

# functions of arrays that work element by element, beside the ufuncs
_ELEMENTWISE = frozenset(
    [np.real, np.imag, np.angle, np.round, np.around, np.clip, np.nan_to_num, np.copy, np.astype]
)
_FOLDS = frozenset(
    [np.sum, np.prod, np.mean, np.std, np.var, np.any, np.all, np.max, np.min, np.amax, np.amin]
)
_FOLD_METHODS = frozenset(["sum", "prod", "mean", "std", "var", "any", "all", "max", "min"])
_ELEMENTWISE_METHODS = frozenset(["astype", "copy", "conj", "conjugate", "round", "clip"])
_EXTREMES = frozenset([np.max, np.min, np.amax, np.amin])


class Selected(NDArrayOperatorsMixin):
    """The elements of `whole` where `mask`, which covers its leading axes, holds."""

    # Tracers leave operations with selections to the selection
    takes_over = True
    __slots__ = ("array", "axis", "line", "mask", "whole")

    def __init__(
        self,
        whole: Node,
        mask: Node,
        block: Block,
        axis: int | None = None,
        line: Selected | None = None,
    ) -> None:
        self.whole = fresh(block, whole)
        self.mask = mask
        # the elements are their own positions along this axis of the mask
        self.axis = axis
        # the positions in C order of which these are the ones along an axis
        self.line = line
        # the elements, once they are packed
        self.array: Tracer | None = None

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return np.ndarray

    @property
    def block(self) -> Block:
        return self.whole.block

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.whole.dtype

    @property
    def lead(self) -> int:
        """How many axes of the whole array the mask covers."""
        return len(self.mask.shape)

    @property
    def ndim(self) -> int:
        return self.whole.ndim - self.lead + 1

    @property
    def size(self) -> Tracer:
        block = self.block
        rest = self.whole.raw_shape[self.lead :]
        count = np.sum(fresh(block, self.mask)) * fresh(
            block, build.size_node(block, build.element_count(rest))
        )
        return fresh(block, build.weigh(block, count.node, Weight.WEAK))

    def packed(self) -> Tracer:
        """The elements as an array, which this object is from now on."""
        if self.array is None and self.line is not None and self.axis is not None:
            block, shape = self.block, self.mask.shape
            inner, extent = (
                wrap(block, n) for n in (product(shape[self.axis + 1 :]), shape[self.axis])
            )
            places = self.line.packed() // inner
            self.array = places % extent if self.axis else places
        elif self.array is None:
            self.array = _pack(self.block, self.whole.node, self.mask)
        return self.array

    # ------------------------------------------------------------ operations

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        is_plain = method == "__call__" and ufunc.nout == 1 and ufunc.signature is None
        operands = (*inputs, *(out or ()))
        if not is_plain or kwargs.keys() - {"out"} or not self._go_together(operands):
            return getattr(ufunc, method)(*_packed(inputs), **_packed(kwargs))
        made = self._like(ufunc(*map(_whole_of, inputs)))
        if out is None:
            return made
        (target,) = out
        same = np.can_cast(made.dtype, target.dtype, "same_kind")
        if type(target) is not Selected or not same:
            raise NotCaptured("out= of an operation on x[mask]")
        target.whole, target.axis = made.whole.astype(target.dtype), None
        return target

    def __pow__(self, exponent: Any) -> Any:
        """An operator of its own: NumPy squares for `** 2`, which np.power does not."""
        if not self._go_together([self, exponent]):
            return self.packed() ** _packed(exponent)
        return self._like(self.whole ** _whole_of(exponent))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if self._go_together(args) and args[0] is self:
            if func in _ELEMENTWISE:
                return self._like(func(*map(_whole_of, args), **kwargs))
            if func in _FOLDS and _is_folded(self, *args[1:], **kwargs):
                return self._folded(func, *args[1:], **kwargs)
            if func is np.size and len(args) == 1:
                return self.size
        return func(*_packed(args), **_packed(kwargs))

    def __getattr__(self, name: str) -> Any:
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")
        if self.array is not None:
            return getattr(self.array, name)
        if name in _FOLD_METHODS:
            fold: Callable[..., Any] = getattr(np, name)
            return lambda *args, **kwargs: fold(self, *args, **kwargs)
        if name in _ELEMENTWISE_METHODS:
            method = getattr(self.whole, name)
            return lambda *args, **kwargs: self._like(method(*args, **kwargs))
        if name in ("real", "imag"):
            return self._like(getattr(self.whole, name))
        return getattr(self.packed(), name)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotCaptured(_REASON)

    def __len__(self) -> int:
        return len(self.packed())

    def __iter__(self) -> Any:
        return iter(self.packed())

    def __getitem__(self, key: Any) -> Any:
        return self.packed()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.packed()[key] = value

    def __contains__(self, item: Any) -> bool:
        return item in self.packed()

    def __bool__(self) -> bool:
        return bool(self.packed())

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'numpy.ndarray'")

    # ------------------------------------------------------------ parts

    def _like(self, whole: Any) -> Selected:
        return Selected(whole.node, self.mask, self.block)

    def _go_together(self, operands: Any) -> bool:
        """Whether an elementwise operation on these is one on the whole arrays."""
        for v in operands:
            if type(v) is Selected:
                if v.mask is not self.mask or v.ndim != self.ndim or v.array is not None:
                    return False
            elif isinstance(v, (list, tuple)) or np.ndim(v) >= self.ndim:
                return False
        return True

    def _folded(self, fold: Any, axis: Any = None, **kwargs: Any) -> Any:
        block = self.block
        if axis is not None:
            numbers = _axes(self, axis)
            axis = tuple(a + self.lead - 1 for a in numbers if a > 0)
            axis += tuple(range(self.lead)) if 0 in numbers else ()
        if fold in _EXTREMES:
            kwargs["initial"] = _start(fold, self.dtype)
            held = np.any(fresh(block, self.mask))
            block.add(kinds.CHECK, (held.node,), "ValueError: zero-size array", held.node.type)
        where = fresh(block, _spread(block, self.mask, self.whole.ndim))
        return fold(self.whole, axis=axis, where=where, **kwargs)


def _whole_of(operand: Any) -> Any:
    """An operand of an elementwise operation, for the whole array."""
    return operand.whole if type(operand) is Selected else operand


def _axes(array: Selected, axis: Any) -> list[int]:
    axes = axis if isinstance(axis, tuple) else (axis,)
    return [a + array.ndim if a < 0 else a for a in axes]


def _is_folded(array: Selected, axis: Any = None, **kwargs: Any) -> bool:
    """Whether a fold is one over the whole array: along the mask, at least."""
    along = axis is None or 0 in _axes(array, axis)
    return along and not kwargs.keys() - {"dtype", "ddof"}


def _packed(value: Any) -> Any:
    """Arguments with packed selections, those in lists and dicts included."""
    if type(value) is Selected:
        return value.packed()
    if type(value) in (list, tuple):
        return type(value)(map(_packed, value))
    return {k: _packed(v) for k, v in value.items()} if type(value) is dict else value


def _pack(block: Block, whole: Node, mask: Node) -> Tracer:
    """The elements under a mask, one after the other: each is stored at the number of those before
    it, and those that are not wanted behind all."""
    total = build.element_count(mask.shape)
    rest = whole.shape[len(mask.shape) :]
    flags = fresh(block, build.reshape(block, mask, (total,)))
    values = build.reshape(block, whole, (total, *rest))
    last = fresh(block, build.size_node(block, total))
    places = np.where(flags, np.cumsum(flags) - 1, last)
    room = build.constant(block, 0, whole.dtype, Weight.ARRAY)
    cell = Cell(block, build.broadcast(block, room, (total + 1, *rest)))
    cell.scatter(SCATTER_LAST, values, Gather((0,), 0), (places.node,))
    count = bind(block, np.sum(flags).node, 0, total)
    return Tracer(cell, None, Weight.ARRAY)[: wrap(block, count)]


def _start(fold: Any, dtype: np.dtype[Any]) -> Any:
    """What every element replaces as the maximum or minimum."""
    sign = -1 if fold in (np.max, np.amax) else 1
    if dtype.kind == "f":
        return dtype.type(sign * np.inf)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return dtype.type(info.min if sign < 0 else info.max)
    raise NotCaptured(_REASON)


def _spread(block: Block, mask: Node, rank: int) -> Node:
    """The mask with axes of extent 1 behind it."""
    return build.view(block, mask, views.expand(mask.shape, list(range(len(mask.shape), rank))))


# ---------------------------------------------------------------- keys


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
            found += _packed(nonzero(k))
            axis += k.ndim
            continue
        found.append(_packed(k))
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
        set_at(array, _by_positions(array, key), _packed(value))
        return
    target, mask = found
    lead = len(mask.shape)
    fits = type(value) is Selected and value.mask is mask and value.array is None
    if fits and value.ndim == target.ndim - lead + 1:
        new = value.whole.node
    else:
        value = _packed(value)
        new = storable(block, as_node(block, value), array.dtype)
        if len(new.shape) > target.ndim - lead:
            new = _dealt(block, new, mask, target.ndim - lead)
    new = build.cast(block, new, array.dtype)
    target.require_writable()
    chosen = build.select(block, _spread(block, mask, target.ndim), new, _whole(target, mask))
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
