"""The form of a kernel's loops: which axis becomes vectors, and which loops stand around it.

In: a `Kernel`. Out: a `Form`, chosen by where the accesses have unit stride.

    POINT    no axes                   straight-line code, inlined
    MAP      no inner axes            last outer axis in vectors
    ROWS     sum over the last axis   each outer index in turn, last inner axis in vectors
    COLUMNS  sum over the first axis  last outer axis in vectors, inner loops around, a cell a lane
    LANES    a few literal taps       last outer axis in vectors, the taps unrolled inside
    WHOLE    no outer axes            every phase is shared out, the chunks' results are joined
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from npjit.codegen.cpp_values import operands
from npjit.core.size import Size, product
from npjit.schedule.kernel import Apply, Coordinate, Kernel, Load, Phase, Store, extents

# the most inner steps that are unrolled, and the most instructions that this may give
_UNROLLED = 16
_LONGEST = 400
# additions beside loads at computed places that are not worth vectors
_GATHERED = 4
# element operations that are worth waking another thread for
GRAIN = 32768


class Form(Enum):
    """See the module's docstring."""

    POINT = "point"
    MAP = "map"
    ROWS = "rows"
    COLUMNS = "columns"
    LANES = "lanes"
    WHOLE = "whole"


def choose(kernel: Kernel) -> Form:
    """The form for a kernel."""
    looping = [p for p in kernel.phases if p.axes]
    if is_point(kernel):
        return Form.POINT
    if not kernel.outer:
        return Form.WHOLE
    if not looping:
        return Form.MAP
    if _is_unrolled(kernel, looping):
        return Form.LANES
    inward = sum(_unit_strides([p], p.axes[-1]) for p in looping)
    outward = _unit_strides(looping, kernel.outer[-1])
    return Form.COLUMNS if outward > inward else Form.ROWS


def _is_unrolled(kernel: Kernel, looping: Iterable[Phase]) -> bool:
    """Whether the inner steps are few enough to stand one behind the other."""
    if any(b.role == "row" for b in kernel.buffers):
        return False
    length = 0
    for phase in looping:
        steps = product(extents(kernel, phase.axes))
        if not isinstance(steps, int) or steps > _UNROLLED:
            return False
        length += steps * len(phase.body)
    return length <= _LONGEST


def is_point(kernel: Kernel) -> bool:
    """Whether the kernel works on single elements."""
    return not kernel.outer and not any(p.axes for p in kernel.phases)


def _unit_strides(phases: Iterable[Phase], axis: int) -> int:
    """Accesses with unit stride along an axis, less those with another one."""
    score = 0
    for phase in phases:
        for _, instr in phase.body:
            if isinstance(instr, Load | Store):
                stride = dict(instr.access.strides).get(axis, 0)
                if stride != 0:
                    score += 1 if stride in (1, -1) else -1
    return score


def gathers_along(kernel: Kernel, axis: int) -> bool:
    """Whether a kernel does little more than load elements at places that differ along an axis."""
    varying: set[int] = set()
    gathers, work = False, 0
    for number, i in kernel.instructions():
        along = isinstance(i, Load) and any(a == axis for a, _ in i.access.strides)
        along |= isinstance(i, Coordinate) and i.axis == axis
        if along or not varying.isdisjoint(operands(i)):
            varying.add(number)
        gathers |= isinstance(i, Load) and any(v in varying for v, _ in i.access.gathers)
        work += i.op.cost if isinstance(i, Apply) else 0
    return gathers and work <= _GATHERED


def cost(phase: Phase) -> int:
    """Element operations of one step of a phase."""
    total = 1
    for _, instr in phase.body:
        if isinstance(instr, Apply):
            total += instr.op.cost
        elif isinstance(instr, Load | Store):
            total += 1
    return total


def per_item(kernel: Kernel, phases: Iterable[Phase]) -> Size:
    """Element operations of one outer index."""
    total: Size = 0
    for phase in phases:
        total = total + product(extents(kernel, phase.axes)) * cost(phase)
    return total
