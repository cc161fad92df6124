"""Loops of elementwise kernels as one kernel with the loop inside.

In: a `Plan`. Out: the plan with such loops as launches of new kernels, and which buffers each of
these carries from trip to trip. A loop is fit when all kernels of its body go over the same items
and touch what the loop writes only at their own item; every thread then keeps its items in
registers through all trips:

    for i < 50: launch k2(z, c; n), launch k3(count, z; n)   ->   launch k5(z, c, count; n, 50)

    for (idx trip = 0; trip < s1; ++trip) { ... c0.at[lane] = v9; ... }
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from npjit.codegen.cuda_kernel import merged
from npjit.codegen.cuda_lanes import LanePrinter, levels_of
from npjit.codegen.cuda_map import MapPrinter, open_map
from npjit.codegen.cuda_terms import JoinedPrinter, Terms, actual
from npjit.core.size import Expr, Size, atoms
from npjit.schedule.kernel import Access, Axis, Instr, Kernel, Load, Phase, Store
from npjit.schedule.plan import If, Launch, Loop, Plan, Step, While


@dataclass(frozen=True)
class Trips:
    """A kernel made of a loop: the buffers that it carries, and the size that counts the trips."""

    kernel: Kernel
    carried: tuple[int, ...]
    trips: int


class TripsPrinter(MapPrinter, JoinedPrinter):
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
    # sizes that inputs tell, so that whether the kernel fits is known before the plan runs
    sizes = [s for launch in launches for s in launch.sizes]
    if any(v not in plan.sources for s in sizes if isinstance(s, Expr) for v in atoms(s)):
        return None
    joiner = _Joiner(kernels[launches[0].kernel], launches[0])
    for launch in launches:
        if not joiner.add(kernels[launch.kernel], launch):
            return None
    return joiner.finish(loop.trips)


class _Joiner:
    """Kernels of one body as one kernel."""

    def __init__(self, first: Kernel, launch: Launch) -> None:
        self.terms = Terms()
        self.written: set[int] = set()
        self.body: list[tuple[int, Instr]] = []
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
        self.body += merged(self.terms.phases(kernel, launch, numbers, axes)).body
        return True

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
        terms = self.terms
        axes = [Axis(terms.named(e)) for e in self.extents]
        # a size of its own, so that it is one however long the loop
        terms.sizes.append(trips)
        kernel = terms.kernel(axes, self.outer, [Phase((), tuple(self.body))], self.written)
        return terms.launch(-1), Trips(kernel, tuple(sorted(self.written)), len(terms.sizes) - 1)
