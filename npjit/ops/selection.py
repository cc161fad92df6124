"""`Selected`: what `x[mask]` is for a mask that is computed.

In: an array, and the mask over its leading axes. How many elements there are is known only when the
code runs, so what is kept is the whole array with the mask beside it. Out: more of the same from
elementwise operations with numbers and with other selections by the same mask, and reductions. For
anything else its elements are packed, one after the other, into an array whose extent is a size
variable; from then on it is that array.

    x[m] ** 2          ->  (x ** 2)[m]
    x[m].sum()         ->  sum(x, where=m)
    np.sort(x[m])      ->  np.sort(packed[:count])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from npjit.core import view as views
from npjit.core.graph import Block, Node, Weight
from npjit.core.size import product
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.gathering import gather
from npjit.ops.places import places
from npjit.ops.symint import wrap
from npjit.ops.tracer import Tracer, fresh

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
    __slots__ = ("__weakref__", "array", "axis", "line", "mask", "place", "spare", "whole")

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
        # where this was made, and the packed elements made there for the regions inside
        self.place = _innermost(block)
        self.spare: Tracer | None = None
        block.unmade.append(ref(self))

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
        if self.array is None:
            self.array = self.spare if self.spare is not None else self._packed()
        return self.array

    def _packed(self) -> Tracer:
        if self.line is None or self.axis is None:
            return _pack(self.block, self.whole.node, self.mask)
        block, shape = self.block, self.mask.shape
        inner, extent = (
            wrap(block, n) for n in (product(shape[self.axis + 1 :]), shape[self.axis])
        )
        found = fresh(block, places(block, self.mask)) // inner
        return found % extent if self.axis else found

    def prepare(self) -> None:
        """Pack the elements where this was made: a region inside may ask for them, whose nodes do
        not outlive it."""
        if self.array is None and self.is_here:
            self.spare = self._packed()

    @property
    def is_here(self) -> bool:
        """Whether this was made in the innermost region."""
        return self.place is _innermost(self.block)

    # ------------------------------------------------------------ operations

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        is_plain = method == "__call__" and ufunc.nout == 1 and ufunc.signature is None
        operands = (*inputs, *(out or ()))
        inner = any(type(o) is Selected and not o.is_here for o in out or ())
        if not is_plain or kwargs.keys() - {"out"} or inner or not self._go_together(operands):
            return getattr(ufunc, method)(*packed(inputs), **packed(kwargs))
        made = self._like(ufunc(*map(_whole_of, inputs)))
        if out is None:
            return made
        (target,) = out
        same = np.can_cast(made.dtype, target.dtype, "same_kind")
        if type(target) is not Selected or not same:
            raise NotCaptured("out= of an operation on x[mask]")
        target.whole, target.axis = made.whole.astype(target.dtype), None
        target.spare = None
        self.block.unmade.append(ref(target))
        return target

    def __pow__(self, exponent: Any) -> Any:
        """An operator of its own: NumPy squares for `** 2`, which np.power does not."""
        if not self._go_together([self, exponent]):
            return self.packed() ** packed(exponent)
        return self._like(self.whole ** _whole_of(exponent))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if self._go_together(args) and args[0] is self:
            if func in _ELEMENTWISE:
                return self._like(func(*map(_whole_of, args), **kwargs))
            if func in _FOLDS and _is_folded(self, *args[1:], **kwargs):
                return self._folded(func, *args[1:], **kwargs)
            if func is np.size and len(args) == 1:
                return self.size
        return func(*packed(args), **packed(kwargs))

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
        where = fresh(block, spread(block, self.mask, self.whole.ndim))
        return fold(self.whole, axis=axis, where=where, **kwargs)


def _innermost(block: Block) -> Any:
    return block.regions[-1] if block.regions else None


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


def packed(value: Any) -> Any:
    """Arguments with packed selections, those in lists and dicts included."""
    if type(value) is Selected:
        return value.packed()
    if type(value) in (list, tuple):
        return type(value)(map(packed, value))
    return {k: packed(v) for k, v in value.items()} if type(value) is dict else value


def _pack(block: Block, whole: Node, mask: Node) -> Tracer:
    """The elements under a mask, one after the other."""
    lead = len(mask.shape)
    flat = (build.element_count(mask.shape), *whole.shape[lead:])
    return gather(block, build.reshape(block, whole, flat), (0,), 0, places(block, mask))


def _start(fold: Any, dtype: np.dtype[Any]) -> Any:
    """What every element replaces as the maximum or minimum."""
    sign = -1 if fold in (np.max, np.amax) else 1
    if dtype.kind == "f":
        return dtype.type(sign * np.inf)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return dtype.type(info.min if sign < 0 else info.max)
    raise NotCaptured(_REASON)


def spread(block: Block, mask: Node, rank: int) -> Node:
    """The mask with axes of extent 1 behind it."""
    return build.view(block, mask, views.expand(mask.shape, list(range(len(mask.shape), rank))))
