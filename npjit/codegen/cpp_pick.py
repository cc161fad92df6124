"""Elements read at one place or another, as the position decides: one load instead of two masked.

In: a kernel where a choice among padded loads stands for a roll, a periodic border or a
concatenation. Out: the same kernel, where each such choice is a `Pick`, whose place is all that
varies, and what nothing uses any more is gone:

    v1: bool = v0 if 1 <= i1 < s1                      v4: float64 = b0[i1 + -1 if 1 <= i1 < s1
    v2: float64 = b0[i1 + -1] if 1 <= i1 < s1                           else i1 + s2]
    v3: float64 = b0[i1 + s2] if 0 <= i1 < 1
    v4: float64 = select v1 v2 v3

A printer cuts its vector loop where places change, so that each part reads neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from npjit.codegen.cpp_values import operands
from npjit.core.size import Size
from npjit.schedule.kernel import (
    Access,
    Apply,
    Bound,
    Const,
    DType,
    Inside,
    Instr,
    Kernel,
    Load,
    Phase,
    Reduce,
    Store,
)


@dataclass(frozen=True)
class Pick:
    """The element at `access` where the bound holds, else the one with offset `beyond`."""

    access: Access
    beyond: Size
    within: Bound
    dtype: DType


def pick(kernel: Kernel) -> Kernel:
    """The kernel with picks for choices."""
    known = dict(kernel.instructions())
    found = {n: p for n, i in known.items() if (p := _picked(kernel, known, i)) is not None}
    if not found:
        return kernel
    wanted = [n for n, i in known.items() if isinstance(i, Store | Reduce)]
    used: set[int] = set()
    while wanted:
        number = wanted.pop()
        if number not in used:
            used.add(number)
            wanted += () if number in found else operands(known[number])
    phases = tuple(
        Phase(p.axes, tuple((n, found.get(n, i)) for n, i in p.body if n in used))  # type: ignore[misc]
        for p in kernel.phases
    )
    return replace(kernel, phases=phases)


def _picked(kernel: Kernel, known: Mapping[int, Instr], i: Instr) -> Pick | None:
    """What a choice between two loads of one buffer is."""
    if not isinstance(i, Apply) or not i.op.choice:
        return None
    test, first, second = (known[a] for a in i.args)
    if not isinstance(first, Load) or not isinstance(second, Load):
        return None
    is_true = isinstance(test, Inside) and _is_true(known[test.arg]) and test.within == first.within
    same = replace(first.access, offset=0) == replace(second.access, offset=0)
    if not is_true or not same or first.access.gathers or len(first.within) != 1:
        return None
    (bound,) = first.within
    if not _covers(kernel, bound, second.within):
        return None
    return Pick(first.access, second.access.offset, bound, first.dtype)


def _is_true(i: Instr) -> bool:
    return isinstance(i, Const) and i.dtype.kind == "b" and bool(i.value.value)


def _covers(kernel: Kernel, bound: Bound, others: tuple[Bound, ...]) -> bool:
    """Whether every index of the axis that the bound leaves out is within the others."""
    extent = kernel.axes[bound.axis].extent
    rest = [Bound(bound.axis, 0, bound.lo)] if bound.hi == extent else []
    rest += [Bound(bound.axis, bound.hi, extent)] if bound.lo == 0 else []
    return len(others) == 1 and others[0] in rest
