"""Checks of all indices in the kernels that read them anyway.

In: neighbouring steps of a plan. Out: for a `Call` that adds at indices, the launch and the check
in front of it that ask something of every index: whether all are in range. `AskedPrinter` prints
the functions that add (`cuda_scatter.h`) with the question in them:

    launch k0(index, flag; n, m), check flag, call scatter_add(bins, values, index)
        ->   __global__ void k0_sort(..., u32* flag, i64 size0, i64 size1) {
               nj_scatter_tile<...>(..., [&](i64 v0) { ... return v6; }, flag); }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npjit.codegen.cuda_kernel import CudaPrinter
from npjit.codegen.cuda_lanes import LanePrinter, levels_of
from npjit.codegen.cuda_terms import actual
from npjit.core.op import Kind
from npjit.core.size import Size
from npjit.schedule.kernel import Kernel, Load, Reduce, Store
from npjit.schedule.plan import Call, Check, Launch, Place, Plan, Step, bodies, places_in

_INDEX = np.dtype("i8")


@dataclass(frozen=True)
class Asked:
    """Numbers of steps: a launch, the check of what it finds, and the call that can ask itself."""

    launch: int
    check: int
    call: int


def asked_in(kernels: Sequence[Kernel], steps: Sequence[Step]) -> Iterator[Asked]:
    """Every such call of a list of steps."""
    for call, step in enumerate(steps):
        if not isinstance(step, Call) or step.op.kind is not Kind.SCATTER:
            continue
        index = step.arguments[-1]
        if len(step.params.dims) != 1 or index.offset != 0 or index.strides != (1,):
            continue
        found = _question(kernels, steps, call, index.place, index.shape[0])
        if found is not None:
            yield found


def _question(
    kernels: Sequence[Kernel], steps: Sequence[Step], call: int, index: Place, count: Size
) -> Asked | None:
    """The question that stands in front of a call, with nothing between that needs the answer."""
    for number in range(call - 1, 0, -1):
        step, before = steps[number], steps[number - 1]
        if isinstance(step, Check):
            if not isinstance(before, Launch) or before.buffers != (index, step.place):
                return None
            # nobody else may want to know
            uses = sum(place == step.place for place in places_in(tuple(steps)))
            asks = asks_each(kernels[before.kernel], before, count)
            return Asked(number - 1, number, call) if asks and uses == 2 else None
        if not isinstance(step, Launch) or index in step.buffers:
            return None
        shared = [b for b in kernels[step.kernel].buffers if b.role != "row"]
        pairs = zip(shared, step.buffers, strict=True)
        if any(b.role != "in" and p.space == "input" for b, p in pairs):
            return None
    return None


def asks_each(kernel: Kernel, launch: Launch, count: Size) -> bool:
    """Whether a kernel finds out if something holds for each of so many elements, and no more."""
    loops = [p for p in kernel.phases if p.axes]
    if kernel.outer or len(loops) != 1 or len(loops[0].axes) != 1 or launch.scalars:
        return False
    (axis,) = loops[0].axes
    loads = [i for _, i in loops[0].body if isinstance(i, Load)]
    reduces = [i for _, i in kernel.instructions() if isinstance(i, Reduce)]
    stores = [i for _, i in kernel.instructions() if isinstance(i, Store)]
    if len(loads) != 1 or len(reduces) != 1 or len(stores) != 1:
        return False
    (load,), (reduce,), (store,) = loads, reduces, stores
    plain = load.access.strides == ((axis, 1),) and not (load.within or load.access.gathers)
    whole = load.access.offset == 0 and load.dtype == _INDEX
    every = actual(kernel.axes[axis].extent, launch) == count
    style = reduce.op.reduction.style if reduce.op.reduction else ""
    told = any(n == store.value and i is reduce for n, i in kernel.instructions())
    return plain and whole and every and style == "all" and told


class AskedPrinter(CudaPrinter):
    """Prints the functions for one question, a kernel for which `asks_each` holds."""

    def print(self) -> str:
        read = "const T* values, const i64* index, i64 apart, i64 count, i64 rows"
        self._print(
            "_private",
            "i32 BINS",
            "1024",
            f"T* to, {read}, i64 copies",
            "nj_scatter_block<T, BINS>"
            "(to, values, index, apart, count, rows, copies, holds, flag);",
        )
        self._print(
            "_sort",
            "i32 ITEMS, i32 BITS, i32 BUCKETS",
            "512, 2",
            f"{read}, T* sorted, u16* within, u16* starts",
            "nj_scatter_tile<T, ITEMS, BITS, BUCKETS>"
            "(values, index, apart, count, rows, sorted, within, starts, holds, flag);",
        )
        return str(self.writer)

    def _print(self, way: str, constants: str, block: str, given: str, call: str) -> None:
        w = self.writer
        phase = next(p for p in self.kernel.phases if p.axes)
        (number,) = (n for n, i in phase.body if isinstance(i, Load))
        (answer,) = (i.arg for _, i in phase.body if isinstance(i, Reduce))
        printer = LanePrinter(self.values, phase, levels_of((), {}), self.slots)
        printer.ready = {number: "found"}
        printed = printer.print()
        sizes = "".join(f", i64 size{i}" for i in range(self.kernel.sizes))
        w.line(f"template <class T, {constants}>")
        head = f"static __global__ void __launch_bounds__({block}) {self.name}{way}"
        with w.block(f"{head}({given}, u32* flag{sizes})"):
            w.line("typedef i64 idx;")
            self.unpack()
            with w.block("const auto holds = [&](i64 found)", "};"):
                w.lines([*printed.levels[-1], *printed.levels[0]])
                w.line(f"return {self.values.whole(answer)};")
            w.line(call)


def with_questions(plan: Plan) -> dict[int, AskedPrinter]:
    """The printers of all kernels whose question a call can ask."""
    found: set[int] = set()
    for steps in _lists(plan.steps):
        for asked in asked_in(plan.kernels, steps):
            launch = steps[asked.launch]
            assert isinstance(launch, Launch)
            found.add(launch.kernel)
    return {k: AskedPrinter(plan.kernels[k], f"k{k}") for k in sorted(found)}


def _lists(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """The steps, and those of all loops and branches."""
    yield steps
    for step in steps:
        for body in bodies(step):
            yield from _lists(body)
