"""Loops of elementwise kernels as one kernel with the loop inside.

In: a `Plan`. Out: the plan with such loops as launches of new kernels, and what each of these
carries from trip to trip. A loop is fit when all kernels of its body go over the same items and
touch what the loop writes only at their own item; every thread then keeps its items in registers
through all trips. Launches in front of the loop that are of the same sort, such as copies of what
it starts from, join it; what nobody reads afterwards stays in registers:

    launch k1(z, c; n), for i < 50: launch k2(z, c; n), launch k3(count, z; n)
        ->   launch k5(z, c, count; n, 50)

    c0.at[lane] = v2; for (idx trip = 0; trip < s1; ++trip) { ... c0.at[lane] = v9; ... }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from npjit.codegen.cuda_choices import with_choices
from npjit.codegen.cuda_kernel import merged
from npjit.codegen.cuda_lanes import LanePrinter, Move, levels_of
from npjit.codegen.cuda_map import MapPrinter, open_map
from npjit.codegen.cuda_terms import JoinedPrinter, Terms, actual, are_known
from npjit.core.size import Size
from npjit.schedule.kernel import Access, Axis, Kernel, Load, Phase, Store
from npjit.schedule.plan import Launch, Loop, Place, Plan, Step, inside, places_in

# trips that are written out, and instructions of all of them for one lane, at most
_UNROLLED = 8
_LENGTH = 192


@dataclass(frozen=True)
class Trips:
    """A kernel made of a loop: its phases are the start and one trip. The buffers that it carries,
    those of them that it loads first and stores last, and the size that counts the trips."""

    kernel: Kernel
    carried: tuple[int, ...]
    loaded: frozenset[int]
    stored: frozenset[int]
    trips: int


class TripsPrinter(MapPrinter, JoinedPrinter):
    """Prints a `Trips` kernel."""

    def __init__(self, made: Trips, name: str) -> None:
        super().__init__(made.kernel, name)
        self.made = made

    def print(self) -> str:
        w = self.writer
        axes = self.kernel.outer
        start, trip = (self._printer(p) for p in self.kernel.phases)
        carried = self._carried(trip)
        loads = [m for b, m in carried.items() if b in self.made.loaded]
        loads += [*start.moves.loads, *trip.moves.loads]
        declared = {m.pack: m.declare() for m in (*carried.values(), *loads)}
        with self.function("", block=str(self.block)), open_map(self, trip.out):
            w.lines([*start.out.levels[-1], *start.out.levels[0]])
            for level in range(1, len(axes)):
                w.lines([*start.out.levels[level], *trip.out.levels[level]])
            w.lines(declared.values())
            self.at_start(axes[-1], [m.load() for m in loads])
            self._each_lane(start)
            w.line(f"#pragma unroll {unrolled(self.kernel.phases[1])}")
            with w.block(f"for (idx trip = 0; trip < s{self.made.trips}; ++trip)"):
                self._each_lane(trip)
            stored = [m.store() for b, m in carried.items() if b in self.made.stored]
            self.at_start(axes[-1], stored)
        return str(w)

    def _printer(self, phase: Phase) -> LanePrinter:
        packs = {b: f"c{b}" for b in self.made.carried}
        levels = levels_of(self.kernel.outer, {})
        printer = LanePrinter(self.values, phase, levels, self.slots, rows=packs)
        printer.print()
        return printer

    def _carried(self, printer: LanePrinter) -> dict[int, Move]:
        """The packs of what is carried."""
        every = [i.access for _, i in self.kernel.instructions() if isinstance(i, Load | Store)]
        accesses = {b: next(a for a in every if a.buffer == b) for b in self.made.carried}
        dtypes = {b: self.kernel.buffers[b].dtype for b in accesses}
        return {b: printer.move(f"c{b}", a, dtypes[b]) for b, a in accesses.items()}

    def _each_lane(self, printer: LanePrinter) -> None:
        w = self.writer
        last = self.kernel.outer[-1]
        w.line("#pragma unroll")
        with w.block("for (i32 lane = 0; lane < V; ++lane)"):
            w.line(f"const idx x{last} = start{last} + lane;")
            w.lines(printer.out.levels[len(self.kernel.outer)])


def unrolled(trip: Phase) -> int:
    """Trips that are written out, so that counting them costs little."""
    return max(1, min(_UNROLLED, _LENGTH // max(1, len(trip.body))))


def with_trips(plan: Plan) -> tuple[Plan, dict[int, Trips]]:
    """The plan with loops made kernels, and these by their numbers."""
    kernels = list(plan.kernels)
    made: dict[int, Trips] = {}
    uses = Counter(places_in(plan.steps))

    def changed(steps: tuple[Step, ...], nested: bool = True) -> tuple[Step, ...]:
        found: list[Step] = []
        for one in steps:
            step = inside(one, changed)
            if isinstance(step, Loop):
                joined = _with_start(plan, kernels[: len(plan.kernels)], found, step)
                if joined is not None:
                    joiner, mentions = joined
                    trips = joiner.finish(step.trips, uses - mentions, nested)
                    del found[len(found) - joiner.started :]
                    made[len(kernels)] = trips
                    kernels.append(trips.kernel)
                    step = joiner.terms.launch(len(kernels) - 1)
            found.append(step)
        return tuple(found)

    steps = changed(plan.steps, nested=False)
    return replace(plan, steps=steps, kernels=tuple(kernels)), made


def _with_start(
    plan: Plan, kernels: Sequence[Kernel], before: Sequence[Step], loop: Loop
) -> tuple[_Joiner, Counter[Place]] | None:
    """A loop's kernel in the making, with as many launches in front of it as are fit, and all
    mentions of places in both; None when the loop is not fit."""
    found = None
    for count in range(len(before) + 1):
        start = before[len(before) - count :]
        joiner = _joined(plan, kernels, start, loop)
        if joiner is None:
            return found
        found = joiner, Counter(places_in((*start, loop)))
    return found


def _joined(
    plan: Plan, kernels: Sequence[Kernel], start: Sequence[Step], loop: Loop
) -> _Joiner | None:
    launches = [s for s in (*start, *loop.body) if isinstance(s, Launch)]
    if len(launches) < len(start) + len(loop.body) or not loop.body or loop.stops:
        return None
    if any(launch.kernel >= len(kernels) for launch in launches):
        return None  # a loop's kernel is no part of another's
    if not are_known(plan, [loop.trips, *(s for launch in launches for s in launch.sizes)]):
        return None
    joiner = _Joiner(kernels[launches[0].kernel], launches[0], len(start))
    if not all(joiner.add(kernels[launch.kernel], launch) for launch in launches):
        return None
    return joiner if joiner.is_fit() else None


class _Joiner:
    """Kernels of one body, and `started` ones in front of it, as one kernel."""

    def __init__(self, first: Kernel, launch: Launch, started: int) -> None:
        self.terms = Terms()
        self.started = started
        self.written: set[int] = set()
        self.parts: list[Phase] = []
        # what is in memory at these places
        self.values: dict[Access, int] = {}
        self.extents = [actual(a.extent, launch) for a in first.axes]
        self.outer = first.outer

    def add(self, kernel: Kernel, launch: Launch) -> bool:
        """Append a kernel's instructions; whether it is over the same items and has no inner
        axes."""
        extents = [actual(a.extent, launch) for a in kernel.axes]
        if extents != self.extents or kernel.outer != self.outer or not kernel.outer:
            return False
        if any(p.axes for p in kernel.phases) or any(b.role == "row" for b in kernel.buffers):
            return False
        numbers = self.terms.buffers_of(kernel, launch)
        if numbers is None:
            return False
        self.written |= {numbers[i] for i, b in enumerate(kernel.buffers) if b.role != "in"}
        axes = {a: a for a in range(len(kernel.axes))}
        if len(self.parts) == self.started:
            self.values = {}  # a trip finds what the last one left
        part = merged(self.terms.phases(kernel, launch, numbers, axes, self._known))
        for number, i in part.body:
            if isinstance(i, Store):
                self.values[i.access] = i.value
            elif isinstance(i, Load) and not i.within:
                self.values[i.access] = number
        self.parts.append(part)
        return True

    def _known(self, load: Load) -> int | None:
        return None if load.within else self.values.get(load.access)

    def is_fit(self) -> bool:
        """Whether what is written is touched at the own item alone, and each part in front of the
        loop begins something for it."""
        for b in self.written:
            every = {(i.access, getattr(i, "within", ())) for i in self._touching(b)}
            if len(every) != 1:
                return False
            ((only, bounds),) = every
            strides = dict(only.strides)
            if (
                bounds
                or only.gathers
                or set(self.outer) - {a for a, s in strides.items() if s != 0}
            ):
                return False
            if strides[self.outer[-1]] != 1:
                return False
        inside = {i.access.buffer for p in self.parts[self.started :] for i in accessing(p)}
        return all(
            any(isinstance(i, Store) and i.access.buffer in inside for i in accessing(p))
            for p in self.parts[: self.started]
        )

    def _touching(self, buffer: int) -> list[Load | Store]:
        return [i for p in self.parts for i in accessing(p) if i.access.buffer == buffer]

    def finish(self, trips: Size, elsewhere: Counter[Place], nested: bool) -> Trips:
        """The kernel; `elsewhere` has the places that other steps mention."""
        terms = self.terms
        axes = [Axis(terms.named(e)) for e in self.extents]
        # a size of its own, so that it is one however long the loop
        terms.sizes.append(trips)
        start, trip = merged(self.parts[: self.started]), merged(self.parts[self.started :])
        first = {b: self._touching(b)[0] for b in self.written}
        loaded = {b for b, i in first.items() if isinstance(i, Load)}
        trip = with_choices(start, trip, terms.count)
        begun = {i.access.buffer for i in accessing(start) if isinstance(i, Store)}
        stored = {b for b in self.written if self._is_read(b, elsewhere, nested and b in loaded)}
        kernel = terms.kernel(axes, self.outer, [start, trip], self.written)
        # there may be no trip
        loaded |= stored - begun
        carried = tuple(sorted(self.written))
        return Trips(kernel, carried, frozenset(loaded), frozenset(stored), len(terms.sizes) - 1)

    def _is_read(self, buffer: int, elsewhere: Counter[Place], comes_back: bool) -> bool:
        """Whether what is carried is wanted after the loop, or when a loop around it comes back."""
        place = self.terms.places[buffer]
        assert place is not None
        return place.space != "arena" or elsewhere[place] > 0 or comes_back


def accessing(phase: Phase) -> list[Load | Store]:
    """The instructions of a phase that touch memory."""
    return [i for _, i in phase.body if isinstance(i, Load | Store)]
