"""Kernels over few items, all extents known, as C++ that a loop of the plan has inside.

In: a `Kernel` with literal extents that a loop launches. Out: one inlined function of plain loops,
which the compiler writes out, so that what one launch stores the next one has in registers:

    NJ_INLINE void k5(const npjit_api* api, const f64* mem0, const f64* mem1, f64* mem2) {
      f64 acc3 = 0;
      for (i64 x0 = 0; x0 < 4; ++x0) { ... acc3 = acc3 + v2; }
      const f64 v3 = acc3;
      mem2[0] = v3;
    }
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack

from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_phase import Levels, PhasePrinter
from npjit.codegen.cpp_reduce import fold
from npjit.core.size import product
from npjit.schedule.kernel import Kernel, Phase, Reduce, extents
from npjit.schedule.plan import Contract

# steps of all loops, instructions of all steps, and values that are added one after the other
_STEPS = 64
_LONGEST = 256
_SUMMED = 8


def is_small(kernel: Kernel) -> bool:
    """Whether a kernel is written out where a loop launches it."""
    if any(b.role not in ("in", "out", "inout") for b in kernel.buffers):
        return False
    items = product(extents(kernel, kernel.outer))
    total = 0
    for phase in kernel.phases:
        inner = product(extents(kernel, phase.axes))
        if not isinstance(items, int) or not isinstance(inner, int):
            return False
        if items * inner > _STEPS or (phase.axes and _folds(phase) and inner > _SUMMED):
            return False
        total += items * inner * len(phase.body)
    return total <= _LONGEST


def _folds(phase: Phase) -> bool:
    return any(isinstance(i, Reduce) for _, i in phase.body)


def is_small_product(step: Contract) -> bool:
    """Whether a product of matrices is."""
    sizes = (step.m, step.n, step.k)
    return (
        step.dtype.kind == "f"
        and step.dtype.itemsize > 2
        and all(isinstance(n, int) and 0 < n <= _SUMMED for n in sizes)
        and product(sizes) <= _LONGEST  # type: ignore[operator]
    )


def small_product(kind: str, step: Contract, a: str, b: str, c: str) -> str:
    """The call for such a product, by rows of a power of two where that can be."""
    assert isinstance(step.m, int) and isinstance(step.n, int)
    if _is_even(step.n):
        return f"nj_small_matmul<{kind}, {step.m}, {step.n}, {step.k}>({a}, {b}, {c});"
    if _is_even(step.m):
        turned = (", ".join([p, s1, s0]) for p, s0, s1 in (x.rsplit(", ", 2) for x in (b, a, c)))
        return f"nj_small_matmul<{kind}, {step.n}, {step.m}, {step.k}>({', '.join(turned)});"
    return f"nj_small_columns<{kind}, {step.m}, {step.n}, {step.k}>({a}, {b}, {c});"


def _is_even(n: int) -> bool:
    """Whether a vector can hold so many."""
    return n in (2, 4, 8)


class SmallPrinter(KernelPrinter):
    """One phase after the other, for each outer index."""

    def is_inlined(self) -> bool:
        return True

    def print(self) -> str:
        w = self.writer
        level: dict[int, int] = {}
        with self.launcher(), ExitStack() as outer:
            for axis in self.kernel.outer:
                in_lanes = axis == self.kernel.outer[-1] and self._is_map()
                outer.enter_context(self._written_out(axis, in_lanes))
            for phase in self.kernel.phases:
                self._phase(phase, level)
                level |= {n: -1 for n, _ in phase.body}
        return str(w)

    def _is_map(self) -> bool:
        return not any(p.axes for p in self.kernel.phases) and not self.kernel.in_order

    def _phase(self, phase: Phase, level: dict[int, int]) -> None:
        w = self.writer
        levels = Levels([list(phase.axes)] if phase.axes else [], level)
        printed = PhasePrinter(self.values, phase, levels).print()
        folds = [fold(n, i, self.values) for n, i in printed.reduces]
        w.lines(printed.levels[-1])
        w.lines(printed.levels[0])
        for f in folds:
            starts = zip(f.cells, f.initial(), strict=True)
            w.lines(f"{kind} {name} = {start};" for (kind, name), start in starts)
        if phase.axes:
            with ExitStack() as inner:
                for axis in phase.axes:
                    in_lanes = axis == phase.axes[-1] and not folds
                    inner.enter_context(self._written_out(axis, in_lanes))
                w.lines(printed.levels[1])
                for f in folds:
                    cells = [name for _, name in f.cells]
                    w.lines(f.take(cells, f.items(self.position(phase.axes))))
        for f in folds:
            w.lines(f.finish([name for _, name in f.cells]))

    def _written_out(self, axis: int, in_lanes: bool) -> AbstractContextManager[None]:
        extent = self.kernel.axes[axis].extent
        assert isinstance(extent, int)
        even = in_lanes and _is_even(extent)
        self.writer.line("#pragma omp simd" if even else f"#pragma GCC unroll {_STEPS}")
        return self.loop(axis)
