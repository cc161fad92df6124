"""What is known of an int while a graph runs: an interval, and how it rises in a loop.

In: nodes, and what is known of their arguments. Out: what is known of their values:

    n in 0..9, k rises by 1 in a trip      n + k      rises by 1, is 9 more than k at most
    x                                      x % n      0 <= it < n
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npjit.core import interval
from npjit.core.graph import Node, TensorType
from npjit.core.interval import Interval
from npjit.core.op import Kind
from npjit.core.size import Fn, Size

_OPEN: Interval = (None, None)


@dataclass(frozen=True)
class Held:
    """What is known of an int: low <= it <= high; it is no more than the greater one of `fixed` and
    the bound of what the innermost loop carries plus `rise` (None: it does not depend on that), and
    less than the size `below`."""

    low: int
    high: int
    rise: Size | None = None
    fixed: int | None = None
    below: Size | None = None

    @property
    def ends(self) -> tuple[int, int]:
        return self.low, self.high

    def settled(self) -> Held:
        """Seen from another loop's body."""
        return Held(self.low, self.high, None, self.high)


def limits_of(type_: TensorType) -> Held | None:
    """What its type says of a value; None when it is no int."""
    if type_.dtype.kind == "b":
        return Held(0, 1, None, 1)
    if type_.dtype.kind not in "iu":
        return None
    info = np.iinfo(type_.dtype)
    return Held(int(info.min), int(info.max), None, int(info.max))


def rounded(n: Node, args: list[Held | None]) -> Held | None:
    """Of a double that an int has become, of the absolute value or root of one and a product of
    two: by such products Python's ints are multiplied only where 64 bits hold the result. What is
    known is no NaN."""
    if n.op.kind is Kind.CONST:
        value = float(n.params.value)
        return exactly(int(value)) if value.is_integer() else None
    if n.op.kind in (Kind.VIEW, Kind.CHECK):
        return args[0]
    ends = [a.ends for a in args if a is not None]
    if n.op.kind is not Kind.ELEMENTWISE or len(ends) < len(args):
        return None
    low, high = _OPEN
    if n.op.conversion:
        low, high = ends[0]
    elif n.op.range in (interval.times, interval.magnitude, interval.root):
        low, high = n.op.range(*ends)
    if low is None or high is None:
        return None
    # doubles hold the ends themselves up to 2**53, so that no rounding passes them
    most = max(abs(low), abs(high))
    slack = 0 if most <= 2**53 else 1 + (most >> 50)
    return Held(low - slack, high + slack, None, high + slack)


def exactly(value: int) -> Held:
    return Held(value, value, None, value)


def within(ends: Interval, limits: Held) -> Held:
    low = limits.low if ends[0] is None else max(ends[0], limits.low)
    high = limits.high if ends[1] is None else min(ends[1], limits.high)
    return Held(low, high, None, high)


def larger_size(a: Size, b: Size) -> Size:
    """No less than either of two, or of one and 0."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if a == b:
        return a
    return (max(a, 0) if isinstance(a, int) else a) + (max(b, 0) if isinstance(b, int) else b)


def both(a: Held | None, b: Held | None) -> Held | None:
    """Of a value that is one or the other."""
    if a is None or b is None:
        return None
    rises = [h.rise for h in (a, b) if h.rise is not None]
    fixed = [h.fixed for h in (a, b) if h.fixed is not None]
    rise = None if not rises else rises[0] if len(rises) == 1 else larger_size(*rises)
    ends = min(a.low, b.low), max(a.high, b.high)
    return Held(*ends, rise, max(fixed, default=None))


def either(args: list[Held]) -> Held:
    found = both(args[1], args[2])
    assert found is not None
    return found


def risen(n: Node, args: list[Held], high: int) -> tuple[Size | None, int | None]:
    """`rise` and `fixed` of a value whose arguments may depend on what a loop carries."""
    if n.op.range in (interval.greater, interval.lesser):
        found = both(*args)
        assert found is not None
        return found.rise, found.fixed
    if n.op.range is interval.plus and args[0].rise is None:
        args = args[::-1]
    a, b = (*args, *args)[:2]
    if a.rise is None or b.rise is not None or n.op.range not in (interval.plus, interval.minus):
        return None, high
    more = b.high if n.op.range is interval.plus else -b.low
    # sizes among the rises are never negative
    rise = a.rise + (more if isinstance(a.rise, int) else max(more, 0))
    return rise, None if a.fixed is None else a.fixed + more


def compared(n: Node, a: Held, b: Held) -> bool | None:
    """How a comparison comes out, where that is known."""
    relation = n.op.relation
    is_below = a.below is not None and a.below == size_of(n.args[1])
    if relation == "in":
        return True if a.low >= 0 and (is_below or a.high < b.low) else None
    return True if relation == "<" and is_below else _compare(relation, a, b)


def size_of(n: Node) -> Size | None:
    """The size that a node gives."""
    size: Size | None = n.params if n.op.kind is Kind.SIZE else None
    return size


def divisor(size: Size) -> Size | None:
    """The size that a remainder is less than: sizes are divided by positive ones alone."""
    if isinstance(size, int) or len(size.terms) != 1:
        return None
    ((mono, factor),) = size.terms
    is_rest = factor == 1 and len(mono) == 1 and isinstance(mono[0], Fn) and mono[0].name == "mod"
    return mono[0].args[1] if is_rest else None  # type: ignore[union-attr]


def _compare(relation: str, a: Held, b: Held) -> bool | None:
    if relation in (">", ">="):
        return _compare("<" if relation == ">" else "<=", b, a)
    if relation == "<":
        return True if a.high < b.low else False if a.low >= b.high else None
    if relation == "<=":
        return True if a.high <= b.low else False if a.low > b.high else None
    if a.high < b.low or b.high < a.low:
        return relation == "!="
    same = a.low == a.high == b.low == b.high
    return (relation == "==") if same else None
