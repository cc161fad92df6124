"""What a staged `for` runs over: how many trips, and the item of a trip as a function of its
number."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from npjit.core.assume import Unknown
from npjit.core.graph import Block
from npjit.core.size import Size, floordiv, product, smin
from npjit.frontend.lists import is_stacked
from npjit.ops.errors import NotCaptured
from npjit.ops.indexing import is_position, traced_int
from npjit.ops.selection import Selected
from npjit.ops.symint import SymInt, size_of, wrap
from npjit.ops.tracer import Tracer


@dataclass(frozen=True)
class Items:
    """`get(k)` is the item of trip k, a Python int or a traced one."""

    trips: Any
    get: Callable[[Any], Any]
    block: Block

    def every(self, period: int) -> Items:
        """Tuples of `period` functions that give an item each, for the body may write to what they
        come from; what is left over at the end is left out."""
        return Items(
            floordiv(self.trips, period),
            lambda k: tuple(partial(self.get, k * period + r) for r in range(period)),
            self.block,
        )

    def __iter__(self) -> Iterator[Any]:
        trips = max(0, self.block.sizes.specialise(self.trips))
        return iter([self.get(k) for k in range(trips)])

    def rest(self) -> Items:
        """All but the first."""
        return Items(self.trips - 1, lambda k: self.get(k + 1), self.block)

    def last(self) -> Any:
        """The number of the last trip."""
        return wrap(self.block, self.trips - 1)


class TracedRange:
    """range(...) over traced ints; as a plain iterable it is specialised."""

    def __init__(self, block: Block, start: Any, stop: Any, step: int) -> None:
        self.block = block
        self.start = start
        self.step = step
        span = size_of(stop) - size_of(start) if step > 0 else size_of(start) - size_of(stop)
        self.trips: Size = floordiv(span + (abs(step) - 1), abs(step))

    def item(self, k: Any) -> Any:
        """start + k * step"""
        return self.start + k * self.step

    def __iter__(self) -> Iterator[Any]:
        trips = max(0, self.block.sizes.specialise(self.trips))
        return iter([self.item(k) for k in range(trips)])

    def __len__(self) -> int:
        return max(0, self.block.sizes.specialise(self.trips))

    def __getitem__(self, k: Any) -> Any:
        return list(self)[k]


class TracedZip:
    """zip(...) and enumerate(...) over things of which one is traced."""

    def __init__(self, block: Block, parts: list[Items], raw: list[Any]) -> None:
        self.block = block
        self.parts = parts
        self.raw = raw

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.raw, strict=False)


@dataclass(frozen=True)
class Values:
    """element(item) for item in iterable if test(item); without a test all of them."""

    iterable: Any
    element: Callable[[Any], Any] = lambda item: item
    test: Callable[[Any], Any] | None = None

    def then(self, element: Callable[[Any], Any], test: Callable[[Any], Any] | None) -> Values:
        """element(value) for value in self if test(value)"""
        if self.test is not None and test is not None:
            return Values(self, element, test)

        def both(item: Any) -> Any:
            return element(self.element(item))

        def tested(item: Any) -> Any:
            assert test is not None
            return test(self.element(item))

        return Values(self.iterable, both, self.test if test is None else tested)

    def __iter__(self) -> Iterator[Any]:
        wanted = (v for v in self.iterable if self.test is None or self.test(v))
        return (self.element(item) for item in wanted)


class Generated:
    """An iterator over values that a loop can be staged over: like any, it is used up once."""

    def __init__(self, values: Values) -> None:
        self._values: Values | None = values

    def take(self) -> Values:
        """The values, for the one who uses them."""
        if self._values is None:
            raise NotCaptured("an iterator is used twice")
        values, self._values = self._values, None
        return values

    def __iter__(self) -> Iterator[Any]:
        return iter(self.take())

    def __next__(self) -> Any:
        raise NotCaptured("one item of an iterator is asked for")


def _taken(values: Any) -> Any:
    """What an iterator goes over, for the one who uses it."""
    return values.take() if type(values) is Generated else values


def make_reversed(block: Block, values: Any) -> Any:
    """reversed() of traced code."""
    if type(values) is TracedRange:
        step = values.step
        last = values.start + (wrap(block, values.trips) - 1) * step
        return make_range(block, last, values.start - (1 if step > 0 else -1), -step)
    if type(values) is range:
        return values[::-1]
    if type(values) is Tracer and values.ndim:
        return Generated(Values(values[::-1]))
    if is_stacked(values):
        last = wrap(block, values.extent - 1)
        # an item is looked at in its trip: the list may change before
        return Generated(Values(Items(values.extent, lambda k: values[last - k], block)))
    return reversed(values)


def make_range(block: Block, *args: Any) -> Any:
    """range() of traced code."""
    args = tuple(_end(block, a) for a in args)
    if not any(type(a) is SymInt for a in args):
        return range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    step = step.concrete() if type(step) is SymInt else step
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    return TracedRange(block, start, stop, step)


def _end(block: Block, value: Any) -> Any:
    """An argument of range(): computed ints stay in the compiled code."""
    is_computed = type(value) is Tracer and is_position(value)
    return wrap(block, traced_int(block, value.node)) if is_computed else value


def make_zip(block: Block, *args: Any, strict: Any = False) -> Any:
    """zip() of traced code."""
    args = tuple(map(_taken, args))
    if not any(_is_lazy(a) for a in args):
        return zip(*args, strict=strict)
    parts = [items_of(block, a) for a in args]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts):
        return zip(*args, strict=strict)
    if strict:
        _require_equal(block, [p.trips for p in known])
    return TracedZip(block, known, list(args))


def _require_equal(block: Block, lengths: Sequence[Size]) -> None:
    try:
        equal = all(block.sizes.decide_eq(lengths[0], n) for n in lengths)
    except Unknown:
        raise NotCaptured("zip(strict=True) of lengths that depend on values") from None
    if not equal:
        raise ValueError("zip() arguments of different lengths")


def make_enumerate(block: Block, iterable: Any, start: Any = 0) -> Any:
    """enumerate() of traced code."""
    iterable = _taken(iterable)
    if not _is_lazy(iterable):
        return enumerate(iterable, start)
    inner = items_of(block, iterable)
    if inner is None:
        return enumerate(iterable, start)
    counter = Items(inner.trips, lambda k: k + start, block)
    return TracedZip(block, [counter, inner], [_Count(start), iterable])


class _Count:
    """start, start + 1, ... (a plain iterable)."""

    def __init__(self, start: Any) -> None:
        self.start = start

    def __iter__(self) -> Iterator[Any]:
        n = self.start
        while True:
            yield n
            n = n + 1


def make_product(block: Block, *args: Any, repeat: Any = 1) -> Any:
    """itertools.product() of traced code."""
    parts = [items_of(block, a) for a in args] * repeat
    known = [p for p in parts if p is not None]
    if not known or len(known) < len(parts):
        return itertools.product(*args, repeat=repeat)
    return _grid(block, known)


def make_ndindex(block: Block, *shape: Any) -> Any:
    """np.ndindex() of traced code."""
    extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    return make_product(block, *(make_range(block, n) for n in extents))


def make_ndenumerate(block: Block, array: Any) -> Any:
    """np.ndenumerate() of traced code."""
    if type(array) is not Tracer or not array.ndim:
        return np.ndenumerate(array)
    places = _grid(block, [Items(n, lambda k: k, block) for n in array.raw_shape])
    return Items(places.trips, lambda k: (at := places.get(k), array[at]), block)


def _grid(block: Block, axes: Sequence[Items]) -> Items:
    """All combinations of the items of some axes, those of the last one running fastest."""
    counts = [a.trips for a in axes]

    def get(k: Any) -> tuple[Any, ...]:
        found = []
        for axis, inner in zip(axes, range(1, len(axes) + 1), strict=True):
            place = k // wrap(block, product(counts[inner:]))
            found.append(axis.get(place % wrap(block, axis.trips) if found else place))
        return tuple(found)

    return Items(product(counts), get, block)


def _is_lazy(value: Any) -> bool:
    if is_stacked(value) or type(value) is Selected:
        return True
    return type(value) in (TracedRange, TracedZip, Items, Values) or (
        type(value) is Tracer and value.ndim > 0
    )


def lists_in(iterable: Any) -> list[Any]:
    """The lists held as rows that a loop goes over."""
    if is_stacked(iterable):
        return [iterable]
    if type(iterable) is Values:
        return lists_in(iterable.iterable)
    if type(iterable) is TracedZip:
        return [x for part in iterable.raw for x in lists_in(part)]
    return []


def items_of(block: Block, iterable: Any) -> Items | None:
    """The items of something that a loop can be staged over; None for any other iterable."""
    if type(iterable) is Items:
        return iterable
    if type(iterable) is Values and iterable.test is None:
        inner = items_of(block, iterable.iterable)
        return inner and Items(inner.trips, lambda k: iterable.element(inner.get(k)), block)
    if type(iterable) is Selected:
        iterable = iterable.packed()
    if type(iterable) is range:
        return Items(len(iterable), lambda k: iterable.start + k * iterable.step, block)
    if type(iterable) is TracedRange:
        return Items(iterable.trips, iterable.item, block)
    if type(iterable) is TracedZip:
        trips = iterable.parts[0].trips
        for p in iterable.parts[1:]:
            try:
                trips = trips if block.sizes.decide_le(trips, p.trips) else p.trips
            except Unknown:
                trips = smin(trips, p.trips)
        parts = iterable.parts
        return Items(trips, lambda k: tuple(p.get(k) for p in parts), block)
    if is_stacked(iterable):
        return Items(iterable.extent, iterable.read, block)
    if type(iterable) is Tracer and iterable.ndim:
        return Items(iterable.raw_shape[0], lambda k: iterable[k], block)
    return None
