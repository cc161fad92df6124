"""Intervals of integers, either end of which may be open.

In: pairs of bounds, None where a side is unbounded. Out: the bounds of what is computed from values
within them. `core.size` asks for the products, minima and maxima of which its terms are made.

    >>> times((2, None), (-3, -1))
    (None, -2)
    >>> least([4, None], any), least([4, None], all)
    (4, None)
"""

from __future__ import annotations

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
