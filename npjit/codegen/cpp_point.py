"""Kernels without axes as C++: the form POINT (see `cpp_form`).

In: a `Kernel` on single elements. Out: one function that is inlined where the plan calls it, so
that a loop over such kernels is as a loop written by hand:

    NJ_INLINE void k0(const npjit_api* api, const f64* mem0, f64* mem1, i64 s0) {
      const f64 v0 = mem0[s0];
      const f64 v1 = mem1[0];
      mem1[0] = v0 + v1;
    }

What only one side of a choice needs is computed only there, if it is dear:

    v3: bool = select v1 v1 v2        b1 v3; if (v1) v3 = v1; else { ... exp ...; v3 = v2; }
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_phase import Levels, PhasePrinter
from npjit.codegen.cpp_types import is_complex
from npjit.codegen.cpp_values import operands
from npjit.core import interval
from npjit.core.op import Kind, Op
from npjit.schedule.kernel import Apply, Const, Extent, Instr, Kernel, Phase, Store

_PLACE = Op("place", Kind.ELEMENTWISE, lambda *_: None, c="nj_place({0}, {1})")
_EITHER = Op("either", Kind.ELEMENTWISE, lambda *_: None, c="nj_either({0}, {1}, {2})")
_NEAR = Op("near", Kind.ELEMENTWISE, lambda *_: None, c="nj_near_remainder({0}, {1})")
_INDEX = np.dtype("i8")
# additions that are worth a branch which may not be foreseen
_DEAR = 12


class PointPrinter(KernelPrinter):
    """Straight-line code."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        super().__init__(_with_fit_choices(kernel), name)

    def print(self) -> str:
        merged = Phase((), tuple(self.kernel.instructions()))
        printed = PhasePrinter(self.values, merged, Levels([], {})).print()
        given = ", ".join(f"{kind} {name}" for kind, name in self.arguments())
        with self.writer.block(f"NJ_INLINE void {self.name}({given})"):
            self._statements(merged, printed.definitions)
        return str(self.writer)

    def _statements(self, phase: Phase, definitions: dict[int, list[str]]) -> None:
        """The values in order, dear ones where they are needed."""
        sides = {n: s for n, i in phase.body if (s := self._dear_side(phase, n, i))}
        late = set().union(*(only for _, only in sides.values()))
        for n, i in phase.body:
            if n in late:
                continue
            if n not in sides or not isinstance(i, Apply):
                self.writer.lines(definitions.get(n, ()))
                continue
            side, only = sides[n]
            test, *values = map(self.values.whole, i.args)
            ((kind, name),) = self.values.names(n)
            self.writer.line(f"{kind} {name};")
            for k, head in enumerate((f"if ({test})", "else")):
                with self.writer.block(head):
                    if k == side:
                        for m in sorted(only):
                            self.writer.lines(definitions.get(m, ()))
                    self.writer.line(f"{name} = {values[k]};")

    def _dear_side(self, phase: Phase, number: int, i: Instr) -> tuple[int, set[int]] | None:
        """The side of a choice that is dear, and the values that nothing else needs."""
        if not isinstance(i, Apply) or not i.op.choice or is_complex(i.dtype):
            return None
        users: dict[int, set[int]] = {}
        for n, user in phase.body:
            for used in operands(user):
                users.setdefault(used, set()).add(n)
        known = dict(phase.body)
        for side in (0, 1):
            only, wanted = set[int](), [i.args[1 + side]]
            while wanted:
                n = wanted.pop()
                others = [a for k, a in enumerate(i.args) if k != 1 + side]
                if n not in only and n not in others and users[n] <= {number, *only}:
                    only.add(n)
                    wanted += operands(known[n])
            weights = [v.op.cost for n in only if isinstance(v := known[n], Apply)]
            stored = any(
                isinstance(known.get(n), Store) for n in range(min(only, default=0), number)
            )
            if sum(weights) >= _DEAR and not stored:
                return side, only
        return None


def _with_fit_choices(kernel: Kernel) -> Kernel:
    """The kernel with a branch where a negative index is wrapped: few are, and a branch that is
    foreseen costs less than both values and a choice. So does one around the division that a
    neighbour's index needs, (i + 1) % n. No branch where one condition decides about several ints:
    the compiler would make one for all of them, and data decide."""
    known = dict(kernel.instructions())
    tests = Counter(i.args[0] for i in known.values() if isinstance(i, Apply) and i.op.choice)

    def changed(i: Instr) -> Instr:
        if not isinstance(i, Apply):
            return i
        if _is_neighbour(known, i):
            return replace(i, op=_NEAR)
        if not i.op.choice:
            return i
        if (length := _length_if_wrap(known, i)) is not None:
            return replace(i, op=_PLACE, args=(i.args[2], length))
        return replace(i, op=_EITHER) if tests[i.args[0]] > 1 and i.dtype.kind in "iu" else i

    phases = tuple(Phase(p.axes, tuple((n, changed(i)) for n, i in p.body)) for p in kernel.phases)
    return replace(kernel, phases=phases)


def _length_if_wrap(known: dict[int, Instr], i: Apply) -> int | None:
    """The size, where a value is x, or x and a size where x < 0."""
    if not i.op.choice or i.dtype != _INDEX:
        return None
    test, other = known[i.args[0]], known[i.args[1]]
    if not isinstance(test, Apply) or test.op.relation != "<" or not isinstance(other, Apply):
        return None
    x, zero = test.args
    bound = known[zero]
    is_sum = other.op.range is interval.plus and x in other.args
    if x != i.args[2] or not is_sum or not isinstance(bound, Const) or bound.value.value != 0:
        return None
    return next((a for a in other.args if a != x and _is_size(known, known[a])), None)


def _is_neighbour(known: dict[int, Instr], i: Apply) -> bool:
    """Whether a value is the remainder by a size of x and a constant."""
    if i.op.range is not interval.modulo or i.dtype != _INDEX:
        return False
    x, size = known[i.args[0]], known[i.args[1]]
    is_moved = isinstance(x, Apply) and x.op.range in (interval.plus, interval.minus)
    return (
        is_moved and _is_size(known, size) and any(isinstance(known[a], Const) for a in operands(x))
    )


def _is_size(known: dict[int, Instr], i: Instr) -> bool:
    """Whether a value is a positive constant or a size, maybe in another type."""
    if isinstance(i, Apply) and i.op.conversion:
        return _is_size(known, known[i.args[0]])
    return isinstance(i, Extent) or (isinstance(i, Const) and i.value.value > 0)
