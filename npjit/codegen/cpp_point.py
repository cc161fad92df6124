"""Kernels without axes as C++: the form POINT (see `cpp_form`).

In: a `Kernel` on single elements. Out: one function that is inlined where the plan calls it, so
that a loop over such kernels is as a loop written by hand:

    NJ_INLINE void k0(const npjit_api* api, const f64* mem0, f64* mem1, i64 s0) {
      const f64 v0 = mem0[s0];
      const f64 v1 = mem1[0];
      mem1[0] = v0 + v1;
    }
"""

from __future__ import annotations

from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_phase import Levels, PhasePrinter
from npjit.schedule.kernel import Phase


class PointPrinter(KernelPrinter):
    """Straight-line code."""

    def print(self) -> str:
        merged = Phase((), tuple(self.kernel.instructions()))
        printed = PhasePrinter(self.values, merged, Levels([], {})).print()
        given = ", ".join(f"{kind} {name}" for kind, name in self.arguments())
        with self.writer.block(f"NJ_INLINE void {self.name}({given})"):
            self.writer.lines(printed.levels[-1])
            self.writer.lines(printed.levels[0])
        return str(self.writer)
