"""`SymInt`: a Python int whose value is a size expression while tracing.

Extents of traced arrays and int arguments are SymInts. Sums, differences, products, // and % stay
symbolic; comparisons are answered for the sizes at hand, with a guard; whatever else needs a plain
int specialises to it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.core import size as sizes
from npjit.core.assume import Unknown
from npjit.core.graph import Block
from npjit.core.size import Size
from npjit.ops.errors import NotCaptured


class SymInt:
    """An int that is known only as an expression over input sizes."""

    __slots__ = ("block", "size")

    def __init__(self, block: Block, size: Size) -> None:
        self.block = block
        self.size = size

    @property
    def __class__(self) -> type:  # type: ignore[override]
        # isinstance(n, int) holds, as for the int that this stands for
        return int

    def concrete(self) -> int:
        """The value in this call; the compiled code is guarded to it."""
        try:
            return self.block.sizes.specialise(self.size)
        except Unknown:
            raise NotCaptured("Python needs the value of a loop's index") from None

    __int__ = __index__ = concrete

    # NumPy's protocols: as the Python int that this stands for

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        numbers = [_number(x) for x in inputs]
        mine = next(n for n, x in zip(numbers, inputs, strict=True) if x is self)
        return mine.__array_ufunc__(ufunc, method, *numbers, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return weak_tracer(self).__array_function__(func, types, args, kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotCaptured("a traced int is needed as a real NumPy array here")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.concrete(), name)

    def __hash__(self) -> int:
        return hash(self.concrete())

    def __bool__(self) -> bool:
        return not self.block.sizes.decide_eq(self.size, 0)

    def __float__(self) -> float:
        return float(self.concrete())

    def __repr__(self) -> str:
        return repr(self.concrete())

    def __format__(self, spec: str) -> str:
        return format(self.concrete(), spec)

    def __neg__(self) -> Any:
        return wrap(self.block, -1 * self.size)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __invert__(self) -> Any:
        return wrap(self.block, -1 * self.size - 1)

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is None else round(self.concrete(), digits)

    def __trunc__(self) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__

    @property
    def is_given(self) -> bool:
        """Whether the sizes of the call decide the value, and no trip of a loop."""
        known = self.block.sizes.values
        return all(v.name in known for v in sizes.atoms(self.size))

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 <= other <= 4:
            return wrap(self.block, sizes.product([self.size] * other))
        if type(other) is float or not self.is_given:
            return weak_tracer(self) ** _number(other)
        return self.concrete() ** _plain(other)

    def __rpow__(self, other: Any) -> Any:
        if type(other) is int and other == 2 and self._is_exponent():
            return wrap(self.block, sizes.pow2(self.size))
        if type(other) is int and other == -1 and self.block.sizes.le(0, self.size):
            return wrap(self.block, 1 - 2 * sizes.mod(self.size, 2))
        if type(other) is float or not self.is_given:
            return other ** weak_tracer(self)
        return other ** self.concrete()

    def _is_exponent(self) -> bool:
        """Whether 2 to this is a size, guarded to stay so."""
        known = self.block.sizes
        try:
            low = known.decide_le(0, self.size)
            return low and known.decide_le(self.size, sizes.GREATEST_EXPONENT)
        except Unknown:
            return False

    @property
    def real(self) -> SymInt:
        return self

    @property
    def imag(self) -> int:
        return 0

    numerator = real
    denominator = 1


def wrap(block: Block, size: Size) -> Any:
    """A size as the user sees it: a plain int when it is one. One that grows beyond what stays
    symbolic is made one too, or a traced number where it changes from trip to trip.
    """
    if isinstance(size, int):
        return size
    made = SymInt(block, size)
    if not sizes.is_unwieldy(size):
        return made
    return block.sizes.specialise(size) if made.is_given else weak_tracer(made)


def weak_tracer(value: SymInt) -> Any:
    """A traced Python int as a traced number."""
    from npjit.ops.tracer import weak_number

    return weak_number(value)


def _number(value: Any) -> Any:
    return weak_tracer(value) if type(value) is SymInt else value


def is_int(value: Any) -> bool:
    """A Python int (not a bool) or a SymInt."""
    return type(value) is int or type(value) is SymInt


def size_of(value: Any) -> Size:
    """The size that a Python int or SymInt stands for."""
    return value.size if type(value) is SymInt else int(value)


def _plain(value: Any) -> Any:
    return value.concrete() if type(value) is SymInt else value


def _divide(block: Block, a: Size, b: Size, by: Any) -> Size:
    try:
        if block.sizes.decide_eq(b, 0):
            raise ZeroDivisionError("integer division or modulo by zero")
    except Unknown:
        raise NotCaptured("a division by a loop's index that may be 0") from None
    result: Size = by(a, b)
    return result


def _arithmetic(name: str, on_sizes: Any) -> None:
    def forward(self: SymInt, other: Any) -> Any:
        if not is_int(other) and type(other) is not bool:
            return _mixed(name, self, other, False)
        return wrap(self.block, on_sizes(self.block, self.size, size_of(other)))

    def backward(self: SymInt, other: Any) -> Any:
        if not is_int(other) and type(other) is not bool:
            return _mixed(name, self, other, True)
        return wrap(self.block, on_sizes(self.block, size_of(other), self.size))

    setattr(SymInt, f"__{name}__", forward)
    setattr(SymInt, f"__r{name}__", backward)


def _mixed(name: str, self: SymInt, other: Any, swapped: bool) -> Any:
    """An operation with something that is no int: arrays know what to do; a number takes a weak
    traced int.
    """
    if type(other) in (float, complex) or isinstance(other, np.generic):
        method = getattr(weak_tracer(self), f"__{'r' if swapped else ''}{name}__")
        return method(other)
    return NotImplemented


_arithmetic("add", lambda block, a, b: a + b)
_arithmetic("sub", lambda block, a, b: a - b)
_arithmetic("mul", lambda block, a, b: a * b)
_arithmetic("floordiv", lambda block, a, b: _divide(block, a, b, sizes.floordiv))
_arithmetic("mod", lambda block, a, b: _divide(block, a, b, sizes.mod))


def _divmod(self: SymInt, other: Any) -> Any:
    return self // other, self % other


def _reflected_divmod(self: SymInt, other: Any) -> Any:
    return other // self, other % self


def _traced_comparison(name: str, self: SymInt, other: Any) -> Any:
    from npjit.ops.tracer import weak_number

    right = weak_number(other) if type(other) is SymInt else other
    return getattr(weak_number(self), name)(right)


def _compared(name: str, decide: Any) -> None:
    def compare(self: SymInt, other: Any) -> Any:
        if type(other) is bool:
            other = int(other)
        if is_int(other):
            try:
                return decide(self.block.sizes, self.size, size_of(other))
            except Unknown:  # it differs from trip to trip of a loop
                return _traced_comparison(name, self, other)
        if type(other) is float:
            if not math.isfinite(other) or (name in ("__eq__", "__ne__") and other % 1):
                return getattr(operator, name)(0, other)  # no int changes the answer
            # between two ints: n < 2.5 and n <= 2.5 are n < 3, n > 2.5 and n >= 2.5 are n > 2
            upper = name in ("__lt__", "__ge__")
            return getattr(self, name)(math.ceil(other) if upper else math.floor(other))
        if type(other) is complex:
            return getattr(operator, name)(self.concrete(), other)
        if isinstance(other, np.generic):
            return getattr(weak_tracer(self), name)(other)
        return NotImplemented

    setattr(SymInt, name, compare)


_compared("__eq__", lambda s, a, b: s.decide_eq(a, b))
_compared("__ne__", lambda s, a, b: not s.decide_eq(a, b))
_compared("__le__", lambda s, a, b: s.decide_le(a, b))
_compared("__lt__", lambda s, a, b: s.decide_le(a + 1, b))
_compared("__ge__", lambda s, a, b: s.decide_le(b, a))
_compared("__gt__", lambda s, a, b: s.decide_le(b + 1, a))


def _true_divide(self: SymInt, other: Any) -> Any:
    if is_int(other) or type(other) is bool:
        return weak_tracer(self) / _number(other + 0)
    return _mixed("truediv", self, other, False)


def _reflected_true_divide(self: SymInt, other: Any) -> Any:
    if is_int(other) or type(other) is bool:
        return weak_tracer(self).__rtruediv__(_number(other + 0))
    return _mixed("truediv", self, other, True)


def _on_bits(name: str, on_size: Callable[[SymInt, int], Any]) -> None:
    """An operator on bits: `on_size` where it is arithmetic (NotImplemented where it is not)."""

    def forward(self: SymInt, other: Any) -> Any:
        made = on_size(self, other) if type(other) is int else NotImplemented
        if made is not NotImplemented:
            return made
        if not self.is_given or (type(other) is SymInt and not other.is_given):
            return getattr(weak_tracer(self), f"__{name}__")(_number(other))
        return getattr(self.concrete(), f"__{name}__")(_plain(other))

    def backward(self: SymInt, other: Any) -> Any:
        if type(other) is int and name == "lshift" and self._is_exponent():
            return other * 2**self
        if type(other) is int and name == "and":
            return self & other
        if not self.is_given:
            return getattr(weak_tracer(self), f"__r{name}__")(other)
        return getattr(self.concrete(), f"__r{name}__")(other)

    setattr(SymInt, f"__{name}__", forward)
    setattr(SymInt, f"__r{name}__", backward)


def _masked(self: SymInt, mask: int) -> Any:
    """The lowest bits, or all others."""
    lowest = mask if mask >= 0 else ~mask
    if lowest & (lowest + 1):
        return NotImplemented
    rest = self % (lowest + 1)
    return rest if mask >= 0 else self - rest


_on_bits("lshift", lambda n, k: n * 2**k if 0 <= k <= 62 else NotImplemented)
_on_bits("rshift", lambda n, k: n // 2**k if 0 <= k <= 62 else NotImplemented)
_on_bits("and", _masked)
_on_bits("or", lambda n, k: NotImplemented)
_on_bits("xor", lambda n, k: NotImplemented)
SymInt.__divmod__ = _divmod  # type: ignore[attr-defined]
SymInt.__rdivmod__ = _reflected_divmod  # type: ignore[attr-defined]
SymInt.__truediv__ = _true_divide  # type: ignore[attr-defined]
SymInt.__rtruediv__ = _reflected_true_divide  # type: ignore[attr-defined]
