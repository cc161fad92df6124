"""The form of a kernel's loops: which axis becomes vectors, and which loops stand around it.

In: a `Kernel`. Out: a `Form`, chosen by where the accesses have unit stride.

    MAP      no inner axes            last outer axis in vectors
    ROWS     sum over the last axis   each outer index in turn, last inner axis in vectors
    COLUMNS  sum over the first axis  last outer axis in vectors, inner loops around, a cell a lane
    LANES    a few literal taps       last outer axis in vectors, the taps unrolled inside
    WHOLE    no outer axes            every phase is shared out, the chunks' results are joined
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from npjit.core.size import Size, product
from npjit.schedule.kernel import Apply, Kernel, Load, Phase, Store, extents

# the most inner steps that are unrolled
_UNROLLED = 16
# element operations that are worth waking another thread for
GRAIN = 32768


class Form(Enum):
    """See the module's docstring."""

    MAP = "map"
    ROWS = "rows"
    COLUMNS = "columns"
    LANES = "lanes"
    WHOLE = "whole"


def choose(kernel: Kernel) -> Form:
    """The form for a kernel."""
    looping = [p for p in kernel.phases if p.axes]
    if not kernel.outer:
        return Form.WHOLE
    if not looping:
        return Form.MAP
    steps = [product(extents(kernel, p.axes)) for p in looping]
    has_rows = any(b.role == "row" for b in kernel.buffers)
    if not has_rows and all(isinstance(n, int) and n <= _UNROLLED for n in steps):
        return Form.LANES
    inward = sum(_unit_strides([p], p.axes[-1]) for p in looping)
    outward = _unit_strides(looping, kernel.outer[-1])
    return Form.COLUMNS if outward > inward else Form.ROWS


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
