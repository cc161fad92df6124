"""One call of a program: its segments as tapes; loops and branches are walked by the host.

In: an `Instance`, which is a plan for one set of sizes, and the addresses of a call. Out: what the
plan writes; `CheckFailed` when the function itself has to answer:

    Walk(program, instance, inputs, addresses, bases).whole()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.backends.cuda_device import Region
from npjit.backends.cuda_host import Based
from npjit.backends.cuda_prepare import Prepared, Segment, Sizes
from npjit.codegen.cuda_launch import Tuning
from npjit.core.layout import contiguous_strides
from npjit.core.size import Var
from npjit.schedule.plan import Bind, If, Loop, Place, Save, Step, While

if TYPE_CHECKING:
    from npjit.backends.cuda_program import Program

_BOOL, _INDEX = np.dtype("?"), np.dtype("i8")
# prepared trips of loops that are kept for the next call
_KEPT = 4096


class CheckFailed(Exception):
    """A check of the plan did not hold."""


@dataclass
class Instance:
    """A plan for given input sizes: its results, its memory, and its segments as far as they were
    run."""

    sizes: Sizes
    outputs: list[tuple[tuple[int, ...], Any, tuple[int, ...] | None]]
    arena: int
    steps: tuple[Step, ...]
    tuning: Tuning
    segments: dict[Any, Prepared] = field(default_factory=dict)
    # single elements that are read between steps, by the identity of their places
    elements: dict[int, Based] = field(default_factory=dict)


class Walk:
    """One call of a program. `addresses` are those of the inputs, `bases` those that tapes know: of
    inputs, fresh outputs and the arena."""

    def __init__(
        self,
        program: Program,
        instance: Instance,
        inputs: Sequence[Any],
        addresses: Sequence[int],
        bases: list[int],
    ) -> None:
        self.program = program
        self.device = program.device
        self.instance = instance
        self.inputs = inputs
        self.addresses = addresses
        self.bases = bases
        # values that loops and branches find, beside the instance's
        self.found: dict[Var, int] = {}

    def whole(self) -> None:
        """All steps; when a check fails, inputs that were written before are what they were."""
        plan = self.program.plan
        if not plan.saves:
            self.run(self.instance.steps)
            return
        kept = [self._kept(save) for save in plan.saves]
        for given, place in kept:
            self.device.copy(given, place)
        try:
            self.run(self.instance.steps)
        except CheckFailed:
            for given, place in kept:
                self.device.copy(place, given)
            raise

    def _kept(self, save: Save) -> tuple[Region, Region]:
        """An input's memory, and the place that keeps its contents."""
        array = self.inputs[save.input]
        dtype = self.program.plan.inputs[save.input].dtype
        strides = tuple(s // dtype.itemsize for s in array.strides)
        given = Region(self.addresses[save.input], dtype, array.shape, strides)
        rows = contiguous_strides(array.shape)
        preparation = self.program.preparation((), self.instance.sizes, self.addresses)
        place = preparation.based(save.place, dtype, 0, array.shape, rows)
        return given, place.at(self.bases)

    def run(self, steps: tuple[Step, ...]) -> None:
        """A list of the plan's steps."""
        for step in self.program.segments[id(steps)]:
            if isinstance(step, Segment):
                self._segment(step)
            elif isinstance(step, Bind):
                self.found[step.var] = int(self._read(step.place, _INDEX))
            elif isinstance(step, If):
                self.run(step.then if self._read(step.condition, _BOOL) else step.other)
            elif isinstance(step, Loop):
                self._loop(step)
            else:
                assert isinstance(step, While)
                self._while(step)

    def _loop(self, step: Loop) -> None:
        trips = self._sizes().value(step.trips)
        body = self.program.segments[id(step.body)]
        only = body[0] if len(body) == 1 and not step.stops else None
        if isinstance(only, Segment) and step.index not in only.unknowns:
            self._segment(only, trips)
            return
        for trip in range(trips):
            if any(self._read(p, _BOOL) for p in step.stops):
                break
            self.found[step.index] = trip
            self.run(step.body)

    def _while(self, step: While) -> None:
        while not any(self._read(p, _BOOL) for p in step.stops):
            self.run(step.test)
            if not self._read(step.condition, _BOOL):
                return
            self.run(step.body)

    def _sizes(self) -> Sizes:
        if not self.found:
            return self.instance.sizes
        return Sizes({**self.instance.sizes.values, **self.found})

    def _read(self, place: Place, dtype: Any) -> Any:
        """The single element at a place, when all work before is done."""
        known = self.instance.elements.get(id(place))
        if known is None:
            preparation = self.program.preparation((), self._sizes(), self.addresses)
            known = preparation.element(place, dtype)
            if not self.program.unknowns(place.offset):
                self.instance.elements[id(place)] = known
        return self.device.read(known.at(self.bases))

    def _segment(self, segment: Segment, times: int = 1) -> None:
        """Steps that follow each other, so many times."""
        key = (segment.number, *[self.found[v] for v in segment.unknowns])
        known = self.instance.segments
        prepared = known.get(key)
        if prepared is None:
            prepared = self.program.prepared(
                segment, self._sizes(), self.addresses, self.instance.tuning
            )
            if len(known) < _KEPT:
                known[key] = prepared
        held, scratch = self.device.allocate(prepared.scratch)
        counters = self.device.counters(prepared.counters)
        if not prepared.tape.run([*self.bases, scratch, counters], times):
            raise CheckFailed
        del held
