"""`x[mask]` for a mask that is computed: how many elements there are is known only when the code
runs, so what is kept is the whole array with the mask beside it.

A `Selected` takes part in elementwise operations with numbers and with other selections by the same
mask, can be reduced, stored back through that mask, and returned. Anything else ends the trace.

    z[m] = z[m] ** 2 + c[m]     ->  where(m, z ** 2 + c, z)
    x[m].sum()                  ->  sum(x, where=m)
    np.nonzero(m)[0]            ->  arange(n)[m]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from npjit.core import view as views
from npjit.core.graph import Block, Node, Weight
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.gathering import gather
from npjit.ops.indexing import is_basic, parse, storable
from npjit.ops.kinds import function
from npjit.ops.movement import ravel
from npjit.ops.operands import as_array, find_block
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
    __slots__ = ("axis", "mask", "whole")

    def __init__(self, whole: Node, mask: Node, block: Block, axis: int | None = None) -> None:
        self.whole = fresh(block, whole)
        self.mask = mask
        # the elements are their own positions along this axis of the mask
        self.axis = axis

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return np.ndarray

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
        block = self.whole.block
        rest = self.whole.raw_shape[self.lead :]
        count = np.sum(fresh(block, self.mask)) * fresh(
            block, build.size_node(block, build.element_count(rest))
        )
        return fresh(block, build.weigh(block, count.node, Weight.WEAK))

    # ------------------------------------------------------------ operations

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if method != "__call__" or kwargs or ufunc.nout != 1 or ufunc.signature is not None:
            raise NotCaptured(_REASON)
        made = self._like(ufunc(*[self._whole_of(v) for v in inputs]))
        if out is None:
            return made
        (target,) = out
        same = np.can_cast(made.dtype, target.dtype, "same_kind")
        if type(target) is not Selected or target.mask is not self.mask or not same:
            raise NotCaptured("out= of an operation on x[mask]")
        target.whole, target.axis = made.whole.astype(target.dtype), None
        return target

    def __pow__(self, exponent: Any) -> Any:
        """An operator of its own: NumPy squares for `** 2`, which np.power does not."""
        return self._like(self.whole ** self._whole_of(exponent))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if not args or args[0] is not self:
            raise NotCaptured(_REASON)
        if func in _ELEMENTWISE:
            rest = [self._whole_of(v) for v in args[1:]]
            return self._like(func(self.whole, *rest, **kwargs))
        if func in _FOLDS:
            return self._folded(func, *args[1:], **kwargs)
        if func is np.size and len(args) == 1:
            return self.size
        raise NotCaptured(_REASON)

    def __getattr__(self, name: str) -> Any:
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")
        if name in _FOLD_METHODS:
            fold: Callable[..., Any] = getattr(np, name)
            return lambda *args, **kwargs: self._folded(fold, *args, **kwargs)
        if name in _ELEMENTWISE_METHODS:
            method = getattr(self.whole, name)
            return lambda *args, **kwargs: self._like(method(*args, **kwargs))
        if name in ("real", "imag"):
            return self._like(getattr(self.whole, name))
        raise NotCaptured(_REASON)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotCaptured(_REASON)

    def _unknown(self, *args: Any) -> Any:
        raise NotCaptured(_REASON)

    __len__ = __iter__ = __getitem__ = __setitem__ = __contains__ = __bool__ = _unknown

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'numpy.ndarray'")

    # ------------------------------------------------------------ parts

    def _like(self, whole: Any) -> Selected:
        return Selected(whole.node, self.mask, self.whole.block)

    def _whole_of(self, operand: Any) -> Any:
        """An operand of an elementwise operation, for the whole array."""
        if type(operand) is Selected:
            if operand.mask is not self.mask or operand.ndim != self.ndim:
                raise NotCaptured("an operation on selections by different masks")
            return operand.whole
        if np.ndim(operand) >= self.ndim:
            raise NotCaptured("an operation of x[mask] with an array")
        return operand

    def _folded(self, fold: Any, axis: Any = None, **kwargs: Any) -> Any:
        block = self.whole.block
        if axis is not None:
            axes = axis if isinstance(axis, tuple) else (axis,)
            numbers = [a + self.ndim if a < 0 else a for a in axes]
            axis = tuple(a + self.lead - 1 for a in numbers if a > 0)
            axis += tuple(range(self.lead)) if 0 in numbers else ()
        if 0 not in (numbers if axis is not None else [0]) or kwargs.keys() - {"dtype", "ddof"}:
            raise NotCaptured(_REASON)
        if fold in _EXTREMES:
            kwargs["initial"] = _start(fold, self.dtype)
            held = np.any(fresh(block, self.mask))
            block.add(kinds.CHECK, (held.node,), "ValueError: zero-size array", held.node.type)
        where = fresh(block, _spread(block, self.mask, self.whole.ndim))
        return fold(self.whole, axis=axis, where=where, **kwargs)


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


def _split(array: Tracer, key: Any) -> tuple[Tracer, Node]:
    """The array after the key's basic part, and the mask, which covers its leading axes."""
    block = array.block
    keys = _with_masks(block, list(key) if isinstance(key, tuple) else [key])
    places = [i for i, k in enumerate(keys) if type(k) is Tracer and k.dtype == np.bool_]
    place = places[0]
    mask = as_node(block, keys[place])
    if len(places) != 1 or not all(is_basic(k) for i, k in enumerate(keys) if i != place):
        raise NotCaptured("a mask beside index arrays")
    lead = len(mask.shape)
    taken = sum(k is not None and k is not Ellipsis for k in keys) - 1 + lead
    if keys[:place] == [Ellipsis] and taken == array.ndim:
        keys, place = keys[1:], 0
    if place != 0 or lead == 0 or None in keys:
        raise NotCaptured("a mask behind other keys")
    basic = (*[slice(None)] * lead, *keys[1:])
    view = parse(block, array.raw_shape, basic)
    assert view is not None
    extents = array.raw_shape[:lead]
    same = len(extents) == lead and all(
        block.sizes.decide_eq(a, b) for a, b in zip(mask.shape, extents, strict=True)
    )
    if not same:
        raise IndexError("boolean index did not match indexed array")
    return array.through(view), mask


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
        type(k) is Selected and k.mask is mask and k.axis == d for d, k in enumerate(run)
    )
    if not in_order or len(run) != len(mask.shape):
        raise NotCaptured(_REASON)
    return [*keys[: places[0]], fresh(block, mask), *keys[places[-1] + 1 :]]


def get_masked(array: Tracer, key: Any) -> Selected:
    """array[key] for a key with a computed mask."""
    target, mask = _split(array, key)
    return Selected(_whole(target, mask), mask, array.block)


def set_masked(array: Tracer, key: Any, value: Any) -> None:
    """array[key] = value for a key with a computed mask."""
    block = array.block
    target, mask = _split(array, key)
    lead = len(mask.shape)
    if type(value) is Selected:
        if value.mask is not mask or value.ndim != target.ndim - lead + 1:
            raise NotCaptured("a selection stored through another mask")
        new = value.whole.node
    else:
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
    found = []
    for d, n in enumerate(mask.shape):
        line = build.iota(block, n)
        others = [i for i in range(len(mask.shape)) if i != d]
        along = build.view(block, line, views.expand(line.shape, others))
        found.append(Selected(build.stretch(block, along, mask.shape), mask, block, d))
    return tuple(found)


@function(np.flatnonzero)
def flatnonzero(a: Any) -> Selected:
    """np.flatnonzero."""
    return nonzero(ravel(as_array(find_block(a), a)))[0]


@function(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """np.putmask with one value."""
    array = as_array(find_block(a, mask, values), a)
    if as_node(array.block, values).shape:
        raise NotCaptured("np.putmask with several values")
    array[as_array(array.block, mask).astype(bool)] = values


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
