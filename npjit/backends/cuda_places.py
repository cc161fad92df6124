"""Where a plan's values lie, for one set of sizes.

In: a plan's `Place`s and the values of its size variables. Out: `Based` regions, whose addresses
are relative to numbered bases: the inputs (an array's address, a scalar's one or two words), the
fresh outputs, the arena, the scratch memory, the counters.

    places.element(Place("arena", 0, 512), bool)   ->  1 byte, 512 behind the arena's base
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npjit.backends.cuda_device import Region
from npjit.backends.cuda_host import Based
from npjit.core.size import Shape, Size, Var, substitute
from npjit.schedule.plan import InputSpec, Place, Plan, Strided

# regions of memory lie on boundaries of so many bytes
_BOUNDARY = 256
# room of a single element, whatever its type
LOCAL = 16


class Bases:
    """How a plan's addresses and scalars are numbered."""

    def __init__(self, plan: Plan) -> None:
        self.inputs: list[int] = []
        count = 0
        for given in plan.inputs:
            self.inputs.append(count)
            count += words_of(given)
        self.outputs = count
        self.arena = count + sum(o.kind == "fresh" for o in plan.outputs)
        self.scratch, self.counters = self.arena + 1, self.arena + 2

    def of(self, place: Place) -> int:
        """The number of the address that a place is relative to."""
        if place.space == "input":
            return self.inputs[place.number]
        return self.outputs + place.number if place.space == "output" else self.arena


class Sizes:
    """The values of a plan's size variables."""

    def __init__(self, values: Mapping[Var, Size]) -> None:
        self.values = dict(values)

    def with_values(self, more: Mapping[Var, Size]) -> Sizes:
        """These and some more."""
        return Sizes({**self.values, **more}) if more else self

    def value(self, size: Size) -> int:
        """A size as a number."""
        if isinstance(size, int):
            return size
        found = substitute(size, self.values)
        assert isinstance(found, int)
        return found

    def shape(self, sizes: Shape) -> tuple[int, ...]:
        """Several sizes."""
        return tuple(map(self.value, sizes))


class Places:
    """See the module's docstring."""

    def __init__(self, plan: Plan, bases: Bases, sizes: Sizes) -> None:
        self.bases = bases
        self.sizes = sizes
        self.locals = rounded(sizes.value(plan.arena))

    def offset(self, place: Place) -> int:
        """How many bytes a place lies behind its base."""
        if place.space == "local":
            return self.locals + LOCAL * place.number
        return self.sizes.value(place.offset)

    def based(self, place: Place, dtype: Any, offset: Size, shape: Shape, strides: Shape) -> Based:
        """An array at a place, its offset in elements."""
        start = self.offset(place) + self.sizes.value(offset) * dtype.itemsize
        region = Region(start, dtype, self.sizes.shape(shape), self.sizes.shape(strides))
        return Based(self.bases.of(place), region)

    def element(self, place: Place, dtype: Any) -> Based:
        """A single element."""
        return self.based(place, dtype, 0, (), ())

    def strided(self, array: Strided) -> Based:
        """An array of a call."""
        return self.based(array.place, array.dtype, array.offset, array.shape, array.strides)


def words_of(given: InputSpec) -> int:
    """How many bases an input is: complex scalars are two."""
    return 2 if given.is_scalar and given.dtype.kind == "c" else 1


def rounded(size: int) -> int:
    """A size in bytes, up to the next boundary."""
    return -(-size // _BOUNDARY) * _BOUNDARY
