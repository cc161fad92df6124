"""Loops of elementwise kernels as one kernel with the loop inside.

In: a `Plan`. Out: the plan with such loops as launches of new kernels, and which buffers each of
these carries from trip to trip. A loop is fit when all kernels of its body go over the same items
and touch what the loop writes only at their own item; every thread then keeps its items in
registers through all trips:

    for i < 50: launch k2(z, c; n), launch k3(count, z; n)   ->   launch k5(z, c, count; n, 50)

    for (idx trip = 0; trip < s1; ++trip) { ... c0.at[lane] = v9; ... }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from npjit.codegen.cpp_phase import operands
from npjit.codegen.cuda_kernel import merged
from npjit.codegen.cuda_lanes import LanePrinter, levels_of
from npjit.codegen.cuda_map import MapPrinter, open_map
from npjit.core.size import Expr, Size, Var, atoms, substitute, var
from npjit.schedule.kernel import (
    Access,
    Apply,
    Axis,
    Bound,
    Buffer,
    Coordinate,
    Extent,
    Inside,
    Instr,
    Kernel,
    Load,
    Phase,
    Scalar,
    Store,
)
from npjit.schedule.plan import If, Launch, Loop, Place, Plan, Step, While


@dataclass(frozen=True)
class Trips:
    """A kernel made of a loop: the buffers that it carries, and the size that counts the trips."""

    kernel: Kernel
    carried: tuple[int, ...]
    trips: int


class TripsPrinter(MapPrinter):
    """Prints a `Trips` kernel."""

    def __init__(self, made: Trips, name: str) -> None:
        super().__init__(made.kernel, name)
        self.made = made

    def print(self) -> str:
        w = self.writer
        axes = self.kernel.outer
        phase = merged(self.kernel.phases)
        packs = {b: f"c{b}" for b in self.made.carried}
        printer = LanePrinter(self.values, phase, levels_of(axes, {}), self.slots, rows=packs)
        printed = printer.print()
        found = carried_accesses(phase, self.made.carried)
        dtypes = [self.kernel.buffers[b].dtype for b in packs]
        carried = [
            printer.move(pack, found[b], dtype)
            for (b, pack), dtype in zip(packs.items(), dtypes, strict=True)
        ]
        innermost = len(axes)
        with self.function("", block=str(self.block)), open_map(self, printed):
            for level in range(1, innermost):
                w.lines(printed.levels[level])
            w.lines(m.declare() for m in (*carried, *printer.moves.loads))
            self.at_start(axes[-1], [m.load() for m in (*carried, *printer.moves.loads)])
            with w.block(f"for (idx trip = 0; trip < s{self.made.trips}; ++trip)"):
                w.line("#pragma unroll")
                with w.block("for (i32 lane = 0; lane < V; ++lane)"):
                    w.line(f"const idx x{axes[-1]} = start{axes[-1]} + lane;")
                    w.lines(printed.levels[innermost])
            self.at_start(axes[-1], [m.store() for m in carried])
        return str(w)


def carried_accesses(phase: Phase, carried: Iterable[int]) -> dict[int, Access]:
    """How the kernel touches each of these buffers."""
    every = [i.access for _, i in phase.body if isinstance(i, Load | Store)]
    return {b: next(a for a in every if a.buffer == b) for b in carried}


def with_trips(plan: Plan) -> tuple[Plan, dict[int, Trips]]:
    """The plan with loops made kernels, and these by their numbers."""
    kernels = list(plan.kernels)
    made: dict[int, Trips] = {}

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(map(one, steps))

    def one(step: Step) -> Step:
        if isinstance(step, If):
            return replace(step, then=changed(step.then), other=changed(step.other))
        if isinstance(step, While):
            return replace(step, test=changed(step.test), body=changed(step.body))
        if not isinstance(step, Loop):
            return step
        step = replace(step, body=changed(step.body))
        found = join(plan, kernels, step)
        if found is None:
            return step
        launch, trips = found
        made[len(kernels)] = trips
        kernels.append(trips.kernel)
        return replace(launch, kernel=len(kernels) - 1)

    steps = changed(plan.steps)
    return replace(plan, steps=steps, kernels=tuple(kernels)), made


def join(plan: Plan, kernels: Sequence[Kernel], loop: Loop) -> tuple[Launch, Trips] | None:
    """The launch that does all trips, and its kernel; None when the loop is not fit."""
    launches = [s for s in loop.body if isinstance(s, Launch)]
    if len(launches) < len(loop.body) or not launches or loop.stops:
        return None
    if any(loop.index in atoms(s) for launch in launches for s in launch.sizes):
        return None
    joiner = _Joiner(kernels[launches[0].kernel], launches[0])
    for launch in launches:
        if not joiner.add(kernels[launch.kernel], launch):
            return None
    return joiner.finish(loop.trips)


class _Joiner:
    """Kernels of one body as one kernel."""

    def __init__(self, first: Kernel, launch: Launch) -> None:
        self.places: list[Place] = []
        self.buffers: list[Buffer] = []
        self.written: set[int] = set()
        self.sizes: list[Size] = []
        self.scalars: list[int] = []
        self.scalar_types: list[object] = []
        self.body: list[tuple[int, Instr]] = []
        self.count = 0
        self.extents = [actual(a.extent, launch) for a in first.axes]
        self.outer = first.outer

    def _named(self, size: Size) -> Size:
        """A size of the plan as one of the new kernel."""
        if isinstance(size, int):
            return size
        if size not in self.sizes:
            self.sizes.append(size)
        return var(f"s{self.sizes.index(size)}")

    def add(self, kernel: Kernel, launch: Launch) -> bool:
        """Append a kernel's instructions; whether it is over the same items and has no inner
        axes."""
        extents = [actual(a.extent, launch) for a in kernel.axes]
        if extents != self.extents or kernel.outer != self.outer or not kernel.outer:
            return False
        if any(p.axes for p in kernel.phases) or any(b.role == "row" for b in kernel.buffers):
            return False
        numbers: dict[int, int] = {}
        for i, (b, place) in enumerate(zip(kernel.buffers, launch.buffers, strict=True)):
            if place.space == "local":
                return False
            if place not in self.places:
                self.places.append(place)
                self.buffers.append(b)
            numbers[i] = self.places.index(place)
            if self.buffers[numbers[i]].dtype != b.dtype:
                return False
            if b.role != "in":
                self.written.add(numbers[i])
        taken = len(self.scalars)
        self.scalars += launch.scalars
        self.scalar_types += kernel.scalars
        values: dict[int, int] = {}
        for number, instr in kernel.instructions():
            values[number] = self.count
            self.count += 1
            changed = self._changed(instr, values, numbers, taken, launch)
            self.body.append((values[number], changed))
        return True

    def _changed(
        self,
        i: Instr,
        values: Mapping[int, int],
        numbers: Mapping[int, int],
        taken: int,
        launch: Launch,
    ) -> Instr:
        """An instruction with the new kernel's numbers."""

        def size(s: Size) -> Size:
            return self._named(actual(s, launch))

        def access(a: Access) -> Access:
            strides = tuple((axis, size(s)) for axis, s in a.strides)
            gathers = tuple((values[v], size(s)) for v, s in a.gathers)
            return Access(numbers[a.buffer], strides, size(a.offset), gathers)

        def within(bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
            return tuple(Bound(b.axis, size(b.lo), size(b.hi)) for b in bounds)

        if isinstance(i, Load):
            return replace(i, access=access(i.access), within=within(i.within))
        if isinstance(i, Store):
            return Store(access(i.access), values[i.value])
        if isinstance(i, Apply):
            return replace(i, args=tuple(values[a] for a in i.args))
        if isinstance(i, Inside):
            return replace(i, arg=values[i.arg], within=within(i.within))
        if isinstance(i, Coordinate):
            return replace(i, start=size(i.start), step=size(i.step))
        if isinstance(i, Extent):
            return replace(i, size=size(i.size))
        if isinstance(i, Scalar):
            return replace(i, number=i.number + taken)
        assert not operands(i)
        return i

    def finish(self, trips: Size) -> tuple[Launch, Trips] | None:
        """The launch and the kernel, if what is written is touched at the own item alone."""
        for b in self.written:
            every = {
                (i.access, getattr(i, "within", ()))
                for _, i in self.body
                if isinstance(i, Load | Store) and i.access.buffer == b
            }
            if len(every) != 1:
                return None
            ((only, bounds),) = every
            strides = dict(only.strides)
            if (
                bounds
                or only.gathers
                or set(self.outer) - {a for a, s in strides.items() if s != 0}
            ):
                return None
            if strides[self.outer[-1]] != 1:
                return None
        axes = tuple(Axis(self._named(e)) for e in self.extents)
        buffers = tuple(
            replace(b, role="inout" if i in self.written else "in")
            for i, b in enumerate(self.buffers)
        )
        # a size of its own, so that it is one however long the loop
        self.sizes.append(trips)
        kernel = Kernel(
            axes,
            self.outer,
            (Phase((), tuple(self.body)),),
            buffers,
            tuple(self.scalar_types),  # type: ignore[arg-type]
            len(self.sizes),
        )
        launch = Launch(-1, tuple(self.places), tuple(self.scalars), tuple(self.sizes))
        return launch, Trips(kernel, tuple(sorted(self.written)), len(self.sizes) - 1)


def are_apart(launch: Launch, trips: Trips, value: Callable[[Size], int]) -> bool:
    """Whether the places of the arena that a loop touches lie apart, for sizes that `value`
    tells."""
    spans = []
    items = 1
    for axis in trips.kernel.axes:
        extent = actual(axis.extent, launch)
        items *= value(extent)
    for place, b in zip(launch.buffers, trips.kernel.buffers, strict=True):
        if place.space == "arena":
            start = value(place.offset)
            spans.append((start, start + items * b.dtype.itemsize))
    spans.sort()
    return all(end <= start for (_, end), (start, _) in pairwise(spans))


def actual(size: Size, launch: Launch) -> Size:
    """A kernel's size in terms of the plan."""
    if not isinstance(size, Expr):
        return size
    found: dict[Var, Size] = {v: launch.sizes[int(v.name[1:])] for v in atoms(size)}
    return substitute(size, found)
