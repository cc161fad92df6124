"""`SymInt`: a Python int whose value is a size expression while tracing.

Extents of traced arrays and int arguments are SymInts. Sums, differences, products, // and % stay
symbolic; comparisons are answered for the sizes at hand, with a guard; whatever else needs a plain
int specialises to it.
"""

from __future__ import annotations

import math
import operator
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

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 <= other <= 4:
            return wrap(self.block, sizes.product([self.size] * other))
        return self.concrete() ** _plain(other)

    def __rpow__(self, other: Any) -> Any:
        known = self.block.sizes.values
        if all(v.name in known for v in sizes.atoms(self.size)):
            return other ** self.concrete()
        if type(other) is int and other == -1 and self.block.sizes.le(0, self.size):
            return wrap(self.block, 1 - 2 * sizes.mod(self.size, 2))
        return other ** weak_tracer(self)

    @property
    def real(self) -> SymInt:
        return self

    @property
    def imag(self) -> int:
        return 0

    numerator = real
    denominator = 1


def wrap(block: Block, size: Size) -> Any:
    """A size as the user sees it: a plain int when it is one, or when it grows beyond what stays
    symbolic.
    """
    if isinstance(size, int):
        return size
    if sizes.is_unwieldy(size):
        return block.sizes.specialise(size)
    return SymInt(block, size)


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
            if not math.isfinite(other):
                return getattr(operator, name)(0, other)  # no int changes the answer
            if other.is_integer():
                return decide(self.block.sizes, self.size, int(other))
        if type(other) in (float, complex):
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


def _specialised(name: str) -> None:
    def forward(self: SymInt, other: Any) -> Any:
        return getattr(self.concrete(), f"__{name}__")(_plain(other))

    def backward(self: SymInt, other: Any) -> Any:
        return getattr(self.concrete(), f"__r{name}__")(other)

    setattr(SymInt, f"__{name}__", forward)
    setattr(SymInt, f"__r{name}__", backward)


for _name in ("lshift", "rshift", "and", "or", "xor"):
    _specialised(_name)
SymInt.__divmod__ = _divmod  # type: ignore[attr-defined]
SymInt.__rdivmod__ = _reflected_divmod  # type: ignore[attr-defined]
SymInt.__truediv__ = _true_divide  # type: ignore[attr-defined]
SymInt.__rtruediv__ = _reflected_true_divide  # type: ignore[attr-defined]
