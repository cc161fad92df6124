"""Divisions and roots of float32 numbers without branches, where a thread does many of them.

In: a kernel's instructions. Out: the calls of `cuda_usual.h` in their place. The lanes of a thread
are computed for usual numbers first; if one of the operands was none, all lanes are computed again:

    v3 = v1 / v2     ->   const auto each = [&](auto& usual) {
                            for (i32 lane = 0; ...) { ... v3 = nj_quotient(usual, v1, v2); ... }
                          };
                          nj_usual usual; each(usual);
                          if (!usual.holds()) { nj_unusual other; each(other); }
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from npjit.codegen.cpp_text import Writer
from npjit.codegen.cpp_values import Values
from npjit.schedule.kernel import Apply, Const, Instr, Kernel, Load, Store

_SINGLE = np.dtype("f4")
# as many as this are worth computing lanes twice in the worst case
_MANY = 4
# the accesses of a kernel that are surely packs
_SLOTS = 20


def suits_usual(kernel: Kernel, values: Values) -> bool:
    """Whether a kernel without inner axes has so many divisions and roots that branches are a good
    part of it, and stores nothing before all lanes are computed."""
    found = [instr for _, instr in kernel.instructions()]
    accesses = [i.access for i in found if isinstance(i, Load | Store)]
    stores = [i.access for i in found if isinstance(i, Store)]
    packed = all(dict(a.strides).get(kernel.outer[-1]) == 1 and not a.gathers for a in stores)
    many = sum(usual_call(values, instr) is not None for instr in found) >= _MANY
    return many and packed and len(accesses) <= _SLOTS


def usual_call(values: Values, instr: Instr) -> str | None:
    """The call that stands for an instruction, if there is one."""
    if not isinstance(instr, Apply) or instr.dtype != _SINGLE:
        return None
    places = [values.whole(a) for a in instr.args]
    if instr.op.powers == (0.5,):
        return f"nj_root(usual, {places[0]})"
    if instr.op.powers == (1, -1) and _is_one(values.instructions[instr.args[0]]):
        return f"nj_inverse(usual, {places[1]})"
    return f"nj_quotient(usual, {', '.join(places)})" if instr.op.powers == (1, -1) else None


def _is_one(instr: Instr) -> bool:
    return isinstance(instr, Const) and instr.value.value == 1


@contextmanager
def computed_twice(writer: Writer) -> Iterator[None]:
    """Around the loop over a thread's lanes: once for usual numbers, and again if need be."""
    with writer.block("const auto each = [&](auto& usual)", "};"):
        yield
    writer.line("nj_usual usual;")
    writer.line("each(usual);")
    with writer.block("if (!usual.holds())"):
        writer.line("nj_unusual other;")
        writer.line("each(other);")
