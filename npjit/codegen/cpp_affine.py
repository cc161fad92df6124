"""Integers of a loop's trips that go up or down by equal steps.

In: a trip as `Straight`, the loop's index. Out: for sizes, values and places of elements an
`Affine`: what the first trip has, and what each trip adds; else `Unfit`. An index that may be
negative counts from the end of its array; it is taken as one that is not, which becomes a
condition:

    v0 = k2 - i2, v2 = v0 - v1         -1 a trip, k2 - v1 in the first one
    v7 = v2 < 0 ? v2 + n : v2          the same, where v2 is never negative
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from npjit.codegen.cpp_straight import Straight, Unfit, touched
from npjit.codegen.cpp_values import operands
from npjit.core.size import Expr, Size, Var, atoms, linear, resolved
from npjit.schedule.kernel import (
    Access,
    Apply,
    Const,
    Coordinate,
    Extent,
    Instr,
    Load,
    Scalar,
    Store,
)

_INDEX = np.dtype("i8")


@dataclass(frozen=True)
class Affine:
    """`rest` + sum(factor * value) + `step` * trip; the values are the same in every trip."""

    step: Size = 0
    rest: Size = 0
    values: tuple[tuple[int, Size], ...] = ()

    def plus(self, other: Affine, factor: Size = 1) -> Affine:
        """The sum with another one times a factor."""
        values = dict(self.values)
        for v, s in other.values:
            values[v] = values.get(v, 0) + factor * s
        kept = tuple((v, s) for v, s in sorted(values.items()) if s != 0)
        return Affine(self.step + factor * other.step, self.rest + factor * other.rest, kept)


class Trips:
    """The numbers of one loop's trips; `assumed` must not be negative in any of them."""

    def __init__(self, trip: Straight, index: Var) -> None:
        self.trip = trip
        self.index = index
        self.instructions = dict(trip.body)
        self.stored = touched(i for _, i in trip.body if isinstance(i, Store))
        self.assumed: list[Affine] = []
        self._known: dict[int, Affine] = {}
        self._fixed: dict[int, bool] = {}

    def of_size(self, size: Size) -> Affine:
        """A size of the plan."""
        size = resolved(size, self._is_assumed)
        found = Affine()
        for v in sorted(self.trip.bound, key=lambda v: v.name):
            factor, size = linear(size, v)
            if factor is None or not self.is_fixed_size(factor):
                raise Unfit
            if factor != 0:
                found = found.plus(self.of_value(self.trip.bound[v]), factor)
        step, rest = linear(size, self.index)
        if step is None or not self.is_fixed_size(step) or not self.is_fixed_size(rest):
            raise Unfit
        return found.plus(Affine(step, rest))

    def _is_assumed(self, a: Size, b: Size) -> bool | None:
        """Whether a <= b: what decides about counting from the end is made a condition."""
        if isinstance(a, Expr) or a != 0:
            return None
        self.assumed.append(self.of_size(b))
        return True

    def is_fixed_size(self, size: Size) -> bool:
        """Whether a size is the same in every trip."""
        return not (atoms(size) & {self.index, *self.trip.bound})

    def of_place(self, access: Access) -> Affine:
        """Which element an access is at."""
        found = self.of_size(access.offset)
        for value, stride in access.gathers:
            if not self.is_fixed_size(stride):
                raise Unfit
            found = found.plus(self.of_value(value), stride)
        return found

    def of_value(self, number: int) -> Affine:
        """A value of type int64."""
        if number not in self._known:
            self._known[number] = self._of_value(number)
        return self._known[number]

    def _of_value(self, number: int) -> Affine:
        i = self.instructions[number]
        if isinstance(i, Store) or i.dtype != _INDEX:
            raise Unfit
        if isinstance(i, Extent):
            return self.of_size(i.size)
        if isinstance(i, Const):
            return Affine(0, int(i.value.value))
        if isinstance(i, Apply) and i.op.addends:
            found = Affine()
            for a, factor in zip(i.args, i.op.addends, strict=True):
                found = found.plus(self.of_value(a), factor)
            return found
        if self.is_fixed(number):
            return Affine(values=((number, 1),))
        if isinstance(i, Apply) and i.op.choice:
            test = self.instructions[i.args[0]]
            if isinstance(test, Apply) and test.op.relation == "<":
                least, most = map(self.of_value, test.args)
                self.assumed.append(least.plus(most, -1))
                return self.of_value(i.args[2])
        raise Unfit

    def is_fixed(self, number: int) -> bool:
        """Whether a value is the same in every trip."""
        if number not in self._fixed:
            i = self.instructions[number]
            self._fixed[number] = self._is_still(i) and all(map(self.is_fixed, operands(i)))
        return self._fixed[number]

    def _is_still(self, i: Instr) -> bool:
        """Whether no trip changes an instruction itself."""
        if isinstance(i, Extent):
            return self.is_fixed_size(i.size)
        if isinstance(i, Load):
            return i.access.buffer not in self.stored and self.is_fixed_size(i.access.offset)
        return isinstance(i, Apply | Const | Scalar)

    def by_trip(self, i: Instr) -> Instr:
        """An instruction of a kernel whose axis 0 counts the trips."""
        if isinstance(i, Load | Store):
            place = self.of_place(i.access)
            strides = ((0, place.step),) if place.step != 0 else ()
            access = Access(i.access.buffer, strides, place.rest, place.values)
            return replace(i, access=access)
        if not isinstance(i, Extent) or self.is_fixed_size(i.size):
            return i
        number = self.of_size(i.size)
        if number.values or i.dtype != _INDEX:
            raise Unfit
        return Coordinate(0, number.rest, number.step, _INDEX)
