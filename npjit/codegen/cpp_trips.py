"""Loops of elementwise kernels as one kernel with the trips inside, whose lanes stay in registers.

In: a `Plan`. Out: the plan with such loops as launches of new kernels, and what those carry from
trip to trip. A loop is fit when its kernels go over the same items and touch what they write at
their own item alone, and the loop's index moves nothing but where they read, step by step:

    for k < n: launch k2(c, a; m, k)          c[j] = c[j] + a[k, j]
    launch k2(c, a; m, n)                     for j: v0 = c[j], for k: v0 = v0 + a[k, j], c[j] = v0

Each element gets its additions in the same order as before. Long loops run in pieces, between which
Ctrl-C is looked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from npjit.codegen.cpp_columns import ColumnsPhase, lane_array
from npjit.codegen.cpp_near import NearPrinter
from npjit.codegen.cpp_straight import Unfit
from npjit.codegen.cpp_types import factor, is_complex
from npjit.codegen.cpp_types import size as size_text
from npjit.codegen.cuda_terms import Terms, actual
from npjit.core.size import Size, Var, as_size, atoms, floordiv, linear, smin, substitute, var
from npjit.schedule.kernel import (
    Access,
    Apply,
    Axis,
    Coordinate,
    Extent,
    Inside,
    Instr,
    Kernel,
    Load,
    Phase,
    Store,
)
from npjit.schedule.plan import Launch, Loop, Plan, Step, every_step, inside

# trips of a launch
PIECE = 1024
# elements that all trips of a strip read which stay in the cache for the next strip
_NEAR = 1 << 17
# lanes of a strip whose rows come from memory
_WIDEST = 1024
# bytes of a cache line
_LINE = 64
_TRIP = Var("trip")

# a value that a trip begins with -> the one that it ends with
Carried = Mapping[int, int]


class TripsPrinter(NearPrinter):
    """Prints a loop's kernel: phases that load, go through the trips, and store."""

    def __init__(self, kernel: Kernel, name: str, carried: Carried) -> None:
        self.carried = carried
        super().__init__(kernel, name)

    def when_near(self) -> str:
        if len(self.kernel.outer) > 1:
            return ""
        (trip,) = self.phases[1].phase.axes
        loads = [i.access for _, i in self.phases[1].phase.body if isinstance(i, Load)]
        moving = any({trip, self.axis} <= {a for a, _ in access.strides} for access in loads)
        return f"(end - begin) * ({self.steps(self.phases[1])}) <= {_NEAR}" if moving else "true"

    def is_seen(self, number: int, p: ColumnsPhase) -> bool:
        return super().is_seen(number, p) or (bool(p.phase.axes) and number in self.carried)

    def handed_on(self, p: ColumnsPhase) -> list[str]:
        if not p.phase.axes:
            return []
        found: list[str] = []
        for start, end in self.carried.items():
            pair = is_complex(self.values.dtype(end))
            parts = self.values.parts(end) if pair else (self.values.whole(end),)
            names = [lane_array(name) for _, name in self.values.names(start)]
            found += [f"{n}[lane] = {part};" for n, part in zip(names, parts, strict=True)]
        return found

    def before_lanes(self, p: ColumnsPhase) -> None:
        """Rows that trips go along, each lane in one of its own, are asked for a strip ahead: they
        begin anywhere in memory, where the processor expects none of them."""
        w = self.writer
        for load in self._along_rows(p):
            index = {self.axis: "(to + lane)"}
            parts = [f"{factor(s)} * {index.get(a, f'x{a}')}" for a, s in load.access.strides]
            place = " + ".join([*parts, size_text(load.access.offset)])
            place = f"2 * ({place})" if is_complex(load.dtype) else place
            is_time = f"t % {_LINE // load.dtype.itemsize} == 0"
            each_lane = "for (i64 lane = 0; lane < to - from; ++lane)"
            with w.block(f"if ({is_time})"), w.block(each_lane):
                w.line(f"__builtin_prefetch(&mem{load.access.buffer}[{place}]);")

    def _along_rows(self, p: ColumnsPhase) -> list[Load]:
        """A load for each array whose next element the next trip reads, but not the next lane."""
        found: dict[tuple[int, object], Load] = {}
        for _, i in p.phase.body:
            if not isinstance(i, Load) or i.access.gathers or i.within:
                continue
            strides = dict(i.access.strides)
            is_row = any(strides.get(trip) in (1, -1) for trip in p.phase.axes)
            if is_row and strides.get(self.axis, 0) not in (0, 1, -1):
                found.setdefault((i.access.buffer, i.access.strides), i)
        return list(found.values())

    def strip_width(self) -> str:
        return str(_WIDEST)


def with_trips(plan: Plan) -> tuple[Plan, dict[int, Carried]]:
    """The plan with loops made kernels, and what these carry by their numbers."""
    kernels = list(plan.kernels)
    made: dict[int, Carried] = {}
    launches = Counter(s.kernel for s in every_step(plan.steps) if isinstance(s, Launch))

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(map(one, steps))

    def one(step: Step) -> Step:
        step = inside(step, changed)
        body = [s for s in getattr(step, "body", ()) if isinstance(s, Launch)]
        if not isinstance(step, Loop) or step.stops or len(body) < max(1, len(step.body)):
            return step
        if any(s.kernel in made for s in body):
            return step
        try:
            joiner = _Joiner(step, body, kernels)
            kernel, carried = joiner.kernel()
        except Unfit:
            return step
        # a kernel that nothing else launches makes room for the new one
        number = next((s.kernel for s in body if launches[s.kernel] == 1), len(kernels))
        kernels[number:] = [kernel, *kernels[number + 1 :]]
        made[number] = carried
        return joiner.step(number)

    steps = changed(plan.steps)
    return replace(plan, steps=steps, kernels=tuple(kernels)), made


class _Joiner:
    """One loop and its kernel."""

    def __init__(self, loop: Loop, body: Sequence[Launch], kernels: Sequence[Kernel]) -> None:
        self.loop = loop
        self.terms = Terms()
        self.written: set[int] = set()
        self.body: list[tuple[int, Instr]] = []
        first = kernels[body[0].kernel]
        self.outer = first.outer
        self.extents = [actual(a.extent, body[0]) for a in first.axes]
        self.axes = [self.terms.named(extent) for extent in self.extents]
        for launch in body:
            self._add(kernels[launch.kernel], launch)
        # what the sizes are in each trip
        self.by_trip: dict[Var, Size] = {}
        for number, size in enumerate(list(self.terms.sizes)):
            step, _ = linear(size, loop.index)
            if step is None:
                raise Unfit
            if step != 0:
                named = step if isinstance(step, int) else self.terms.named(step)
                self.by_trip[Var(f"s{number}")] = var(f"s{number}") + var("trip") * named
        for extent in self.axes:
            self._fixed(extent)

    def _add(self, kernel: Kernel, launch: Launch) -> None:
        """One more kernel over the same items, without inner axes."""
        extents = [actual(a.extent, launch) for a in kernel.axes]
        if extents != self.extents or kernel.outer != self.outer or not kernel.outer:
            raise Unfit
        rows = any(b.role == "row" for b in kernel.buffers)
        if kernel.in_order or rows or any(p.axes for p in kernel.phases):
            raise Unfit
        numbers = self.terms.buffers_of(kernel, launch, locals_too=True)
        if numbers is None:
            raise Unfit
        self.written |= {numbers[i] for i, b in enumerate(kernel.buffers) if b.role != "in"}
        axes = {a: a for a in range(len(kernel.axes))}
        for phase in self.terms.phases(kernel, launch, numbers, axes):
            self.body += phase.body

    # -- the kernel

    def kernel(self) -> tuple[Kernel, Carried]:
        """The kernel with the trips inside."""
        terms, trip = self.terms, len(self.axes)
        targets = {b: self._target(b) for b in sorted(self.written)}
        first = {b: terms.count + k for k, b in enumerate(targets)}
        last = terms.count + len(targets)
        # what a place holds, and the values that others stand for
        now = dict(first)
        values: dict[int, int] = {}
        body: list[tuple[int, Instr]] = []
        for number, instr in self.body:
            values[number] = number
            if isinstance(instr, Store):
                now[instr.access.buffer] = values[instr.value]
            elif isinstance(instr, Load) and instr.access.buffer in targets:
                values[number] = now[instr.access.buffer]
            else:
                body.append((number, self._in_trip(instr, values, trip)))
        if any(now[b] in first.values() for b in targets):
            raise Unfit
        types = {b: terms.buffers[b].dtype for b in targets}
        loads = tuple((first[b], Load(access, types[b])) for b, access in targets.items())
        stores = tuple((last + k, Store(targets[b], first[b])) for k, b in enumerate(targets))
        phases = [Phase((), loads), Phase((trip,), tuple(body)), Phase((), stores)]
        axes = [*map(Axis, self.axes), Axis(self._trips())]
        made = terms.kernel(axes, self.outer, phases, self.written)
        return made, {first[b]: now[b] for b in targets}

    def _target(self, buffer: int) -> Access:
        """Where a written buffer is touched: at the own item, in every trip."""
        touched = [i for _, i in self.body if isinstance(i, Load | Store)]
        mine = {(i.access, getattr(i, "within", ())) for i in touched if i.access.buffer == buffer}
        if len(mine) != 1:
            raise Unfit
        ((access, within),) = mine
        strides = dict(access.strides)
        if within or access.gathers or any(strides.get(a, 0) == 0 for a in self.outer):
            raise Unfit
        if strides[self.outer[-1]] != 1:
            raise Unfit
        self._fixed(access.offset, *strides.values())
        return access

    def _fixed(self, *sizes: Size) -> None:
        """Sizes that no trip changes."""
        if any(atoms(s) & self.by_trip.keys() for s in sizes):
            raise Unfit

    def _by_trip(self, size: Size) -> tuple[Size, Size]:
        """What a trip adds to a size, and the rest."""
        step, rest = linear(substitute(size, self.by_trip), _TRIP)
        if step is None:
            raise Unfit
        return step, rest

    def _in_trip(self, i: Instr, values: Mapping[int, int], trip: int) -> Instr:
        """An instruction of a trip, whose number the axis `trip` counts."""
        if isinstance(i, Load):
            a = i.access
            step, rest = self._by_trip(a.offset)
            self._fixed(*(s for _, s in (*a.strides, *a.gathers)))
            self._fixed(*(s for b in i.within for s in (b.lo, b.hi)))
            gathers = tuple((values[v], s) for v, s in a.gathers)
            strides = (*a.strides, *([(trip, step)] if step != 0 else []))
            return replace(i, access=Access(a.buffer, strides, rest, gathers))
        if isinstance(i, Apply):
            return replace(i, args=tuple(values[a] for a in i.args))
        if isinstance(i, Inside):
            self._fixed(*(s for b in i.within for s in (b.lo, b.hi)))
            return replace(i, arg=values[i.arg])
        if isinstance(i, Coordinate):
            self._fixed(i.start, i.step)
        if isinstance(i, Extent):
            step, rest = self._by_trip(i.size)
            if step != 0 and i.dtype != np.dtype("i8"):
                raise Unfit
            return i if step == 0 else Coordinate(trip, rest, step, i.dtype)
        return i

    # -- the launch

    def _is_short(self) -> bool:
        return isinstance(self.loop.trips, int) and self.loop.trips <= PIECE

    def _trips(self) -> Size:
        """The new axis's extent: of a long loop a size of its own."""
        if self._is_short():
            return self.loop.trips
        self.terms.sizes.append(PIECE)
        return var(f"s{len(self.terms.sizes) - 1}")

    def step(self, number: int) -> Step:
        """The launch, or the loop over launches for PIECE trips each."""
        launch = self.terms.launch(number)
        if self._is_short():
            return replace(launch, sizes=self._sizes(launch, 0))
        index = Var(f"{self.loop.index.name}q", 0)
        first = PIECE * as_size(index)
        sizes = (*self._sizes(launch, first)[:-1], smin(PIECE, self.loop.trips - first))
        pieces = floordiv(self.loop.trips + PIECE - 1, PIECE)
        return Loop(index, pieces, (replace(launch, sizes=sizes),))

    def _sizes(self, launch: Launch, first: Size) -> tuple[Size, ...]:
        """A launch's sizes in the first trip that it does."""
        return tuple(substitute(s, {self.loop.index: first}) for s in launch.sizes)
