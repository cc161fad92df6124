"""Quotients by roots as products with reciprocal roots, for `fastmath="approx"`.

In: a `Kernel`. Out: the same with such quotients of float32 numbers rewritten. The device has an
instruction for the reciprocal root, where a root and a division are several:

    v19 = v0 / (v16 * sqrt(v16))   ->   v30 = nj_rsqrt(v16); v19 = v0 * v30 * v30 * v30
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from npjit.core.op import Kind, Op
from npjit.schedule.kernel import Apply, Instr, Kernel, Phase

_SINGLE = np.dtype("f4")
_ROOT = Op("reciprocal root", Kind.ELEMENTWISE, np.sqrt, c="nj_rsqrt({0})")
_PRODUCT = Op("product of two", Kind.ELEMENTWISE, np.multiply, c="{0} * {1}")
# more factors than this are no gain
_FACTORS = 6

Powers = dict[int, float]


def with_roots(kernel: Kernel) -> Kernel:
    """See the module's docstring."""
    count = max((n for n, _ in kernel.instructions()), default=0)
    phases = []
    for phase in kernel.phases:
        body: list[tuple[int, Instr]] = []
        known: dict[int, Powers] = {}
        for number, instr in phase.body:
            found = known[number] = powers(known, number, instr)
            if not _is_fit(found):
                body.append((number, instr))
                continue
            made = _product(found, number, count)
            body += made
            count = max(count, *(n for n, _ in made))
        phases.append(Phase(phase.axes, tuple(body)))
    return replace(kernel, phases=tuple(phases))


def powers(known: Mapping[int, Powers], number: int, instr: Instr) -> Powers:
    """A value as a product of powers of others, through the instructions that are products."""
    if not isinstance(instr, Apply) or not instr.op.powers or instr.dtype != _SINGLE:
        return {number: 1}
    found: Powers = {}
    for arg, power in zip(instr.args, instr.op.powers, strict=True):
        for base, inner in known.get(arg, {arg: 1}).items():
            found[base] = found.get(base, 0) + inner * power
    return found if len(found) <= _FACTORS else {number: 1}


def _is_fit(found: Powers) -> bool:
    """Whether there are reciprocal roots among a few whole powers."""
    negative = [p for p in found.values() if p < 0]
    positive = [p for p in found.values() if p > 0]
    odd = all(p * 2 % 2 == 1 for p in negative)
    return (
        bool(negative)
        and odd
        and all(p == int(p) for p in positive)
        and len(negative) + len(positive) == len(found)
        and sum(positive) - 2 * sum(negative) <= _FACTORS
    )


def _product(found: Powers, number: int, count: int) -> list[tuple[int, Instr]]:
    """Instructions for the product of these powers; `count` is the last number in use."""
    made: list[tuple[int, Instr]] = []
    factors: list[int] = []
    for base, power in found.items():
        if power > 0:
            factors += [base] * int(power)
            continue
        count += 1
        made.append((count, Apply(_ROOT, (base,), None, _SINGLE)))
        factors += [count] * int(-2 * power)
    total, *rest = factors
    for factor in rest:
        count += 1
        made.append((count, Apply(_PRODUCT, (total, factor), None, _SINGLE)))
        total = count
    # the last one is the value itself
    return [*made[:-1], (number, made[-1][1])]
