"""Steps whose sizes are known while a plan runs.

In: a size variable, and what makes steps ready once its value is known. Out: callables for the
runtime's tape, which calls them with all bases; one that returns False stops the plan:

    Bound(late, place)([x, y, arena, ...])      the steps, with the int64 that lies at `place`
    Trips(late, 1000, ())([x, y, arena, ...])   the steps a thousand times, with 0, 1, ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from npjit.backends.cuda_device import Device
from npjit.backends.cuda_draft import Prepared
from npjit.backends.cuda_host import Based

# values whose steps are kept for the next call
_KEPT = 4096


@dataclass
class Late:
    """Runs steps for a value; `prepare` makes them ready for it."""

    device: Device
    prepare: Callable[[int], Prepared]
    known: dict[int, Prepared] = field(default_factory=dict)

    def run(self, value: int, bases: Sequence[int]) -> bool:
        """False when a step has stopped."""
        prepared = self.known.get(value)
        if prepared is None:
            prepared = self.prepare(value)
            if len(self.known) < _KEPT:
                self.known[value] = prepared
        held, scratch = self.device.allocate(prepared.scratch)
        counters = self.device.counters(prepared.counters)
        # memory of its own in place of the tape's around it
        done: bool = prepared.tape.run([*bases[:-2], scratch, counters])
        del held
        return done


@dataclass(frozen=True)
class Bound:
    """The steps behind a `Bind`."""

    late: Late
    place: Based

    def __call__(self, bases: Sequence[int]) -> bool:
        return self.late.run(int(self.late.device.read(self.place.at(bases))), bases)


@dataclass(frozen=True)
class Trips:
    """A loop, until one of the stops is true."""

    late: Late
    trips: int
    stops: tuple[Based, ...]

    def __call__(self, bases: Sequence[int]) -> bool:
        read = self.late.device.read
        for trip in range(self.trips):
            if any(read(stop.at(bases)) for stop in self.stops):
                break
            if not self.late.run(trip, bases):
                return False
        return True
