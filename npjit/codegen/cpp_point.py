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

from dataclasses import replace

import numpy as np

from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_phase import Levels, PhasePrinter
from npjit.core.op import Kind, Op
from npjit.schedule.kernel import Apply, Const, Extent, Instr, Kernel, Phase

_SELDOM = Op("seldom", Kind.ELEMENTWISE, lambda *_: None, c="nj_seldom({0}, {1}, {2})")
_INDEX = np.dtype("i8")


class PointPrinter(KernelPrinter):
    """Straight-line code."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        super().__init__(_with_branches(kernel), name)

    def print(self) -> str:
        merged = Phase((), tuple(self.kernel.instructions()))
        printed = PhasePrinter(self.values, merged, Levels([], {})).print()
        given = ", ".join(f"{kind} {name}" for kind, name in self.arguments())
        with self.writer.block(f"NJ_INLINE void {self.name}({given})"):
            self.writer.lines(printed.levels[-1])
            self.writer.lines(printed.levels[0])
        return str(self.writer)


def _with_branches(kernel: Kernel) -> Kernel:
    """The kernel with a branch where a negative index is wrapped: few are, and a branch that is
    foreseen costs less than both values and a choice."""
    known = dict(kernel.instructions())
    if not any(_is_wrap(known, i) for i in known.values()):
        return kernel
    phases = tuple(
        Phase(
            p.axes,
            tuple((n, replace(i, op=_SELDOM) if _is_wrap(known, i) else i) for n, i in p.body),
        )
        for p in kernel.phases
    )
    return replace(kernel, phases=phases)


def _is_wrap(known: dict[int, Instr], i: Instr) -> bool:
    """Whether a value is x, or x and a size where x < 0."""
    if not isinstance(i, Apply) or not i.op.choice or i.dtype != _INDEX:
        return False
    test, other = known[i.args[0]], known[i.args[1]]
    if not isinstance(test, Apply) or test.op.relation != "<" or not isinstance(other, Apply):
        return False
    x, zero = test.args
    bound = known[zero]
    if x != i.args[2] or not isinstance(bound, Const) or bound.value.value != 0:
        return False
    return x in other.args and any(isinstance(known[a], Extent) for a in other.args)
