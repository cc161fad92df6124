"""Intervals of integers, either end of which may be open.

In: pairs of bounds, None where a side is unbounded. Out: the bounds of what is computed from values
within them. `core.size` asks for the products, minima and maxima of which its terms are made; rows
of the table that work on ints name the function that bounds them (`Op.range`).

    >>> times((2, None), (-3, -1))
    (None, -2)
    >>> least([4, None], any), least([4, None], all)
    (4, None)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

Bound = int | None
Interval = tuple[Bound, Bound]


def least(values: list[Bound], need: Callable[[Iterable[bool]], bool]) -> Bound:
    """The smallest bound; None unless `need` (any or all) of them are known."""
    known = [v for v in values if v is not None]
    return min(known) if known and need(v is not None for v in values) else None


def most(values: list[Bound], need: Callable[[Iterable[bool]], bool]) -> Bound:
    """The largest bound; None unless `need` (any or all) of them are known."""
    known = [v for v in values if v is not None]
    return max(known) if known and need(v is not None for v in values) else None


def times(a: Interval, b: Interval) -> Interval:
    """The values that products of a value of each can take."""
    if None not in a and None not in b:
        ends = [x * y for x in a for y in b]  # type: ignore[operator]
        return min(ends), max(ends)
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    for (factor, other), r in ((a, b), (b, a)):
        if factor is not None and factor == other:
            low, high = (None if x is None else factor * x for x in r)
            return (low, high) if factor > 0 else (high, low)
    sign_a, sign_b = _sign(a), _sign(b)
    if not sign_a or not sign_b:
        return None, None
    small = _abs_range(a, sign_a)[0] * _abs_range(b, sign_b)[0]  # type: ignore[operator]
    big_a, big_b = _abs_range(a, sign_a)[1], _abs_range(b, sign_b)[1]
    big = None if big_a is None or big_b is None else big_a * big_b
    if sign_a * sign_b > 0:
        return small, big
    return None if big is None else -big, -small


def _sign(r: Interval) -> int:
    if r[0] is not None and r[0] >= 0:
        return 1
    return -1 if r[1] is not None and r[1] <= 0 else 0


def _abs_range(r: Interval, sign: int) -> Interval:
    if sign > 0:
        return r
    return -r[1], None if r[0] is None else -r[0]  # type: ignore[operator]


# ---------------------------------------------------------------- what rows compute


def plus(a: Interval, b: Interval) -> Interval:
    """Sums."""
    low, high = (None if x is None or y is None else x + y for x, y in zip(a, b, strict=True))
    return low, high


def minus(a: Interval, b: Interval) -> Interval:
    """Differences."""
    return plus(a, (None if b[1] is None else -b[1], None if b[0] is None else -b[0]))


def magnitude(a: Interval) -> Interval:
    """Absolute values."""
    ends = [None if e is None else abs(e) for e in a]
    sign = _sign(a)
    return (least(ends, all) if sign else 0), most(ends, all)


def root(a: Interval) -> Interval:
    """Square roots; open where there may be none."""
    if a[0] is None or a[0] < 0:
        return None, None
    return math.isqrt(a[0]), None if a[1] is None else math.isqrt(a[1]) + 1


def always(a: Interval) -> Interval:
    """Of a test that every number passes."""
    return 1, 1


def never(a: Interval) -> Interval:
    """Of a test that no number passes."""
    return 0, 0


def greater(a: Interval, b: Interval) -> Interval:
    """The greater one of two."""
    return most([a[0], b[0]], any), most([a[1], b[1]], all)


def lesser(a: Interval, b: Interval) -> Interval:
    """The lesser one of two."""
    return least([a[0], b[0]], all), least([a[1], b[1]], any)


def common_bits(a: Interval, b: Interval) -> Interval:
    """The bits that two have in common."""
    highs = [high for low, high in (a, b) if low is not None and low >= 0]
    return (0, least(highs, any)) if highs else (None, None)


def joined_bits(a: Interval, b: Interval) -> Interval:
    """The bits of one or the other."""
    ends = (*a, *b)
    if any(e is None or e < 0 for e in ends):
        return None, None
    return 0, (1 << max(e.bit_length() for e in ends if e is not None)) - 1


def without_bits(a: Interval, b: Interval) -> Interval:
    """A number moved right by some bits."""
    if None in a or None in b or b[0] < 0 or b[1] > 63:  # type: ignore[operator]
        return None, None
    ends = [x >> k for x in a for k in b]  # type: ignore[operator]
    return min(ends), max(ends)


def modulo(a: Interval, b: Interval) -> Interval:
    """Remainders with the divisor's sign, as Python's."""
    if b[0] is None or b[0] <= 0:
        return None, None
    if a[0] is not None and a[0] >= 0 and a[1] is not None and a[1] < b[0]:
        return a
    most_ = None if b[1] is None else b[1] - 1
    return 0, least([most_, a[1] if a[0] is not None and a[0] >= 0 else None], any)


def quotient(a: Interval, b: Interval) -> Interval:
    """Quotients rounded down."""
    if None in a or None in b or b[0] <= 0:  # type: ignore[operator]
        return None, None
    ends = [x // y for x in a for y in b]  # type: ignore[operator]
    return min(ends), max(ends)
