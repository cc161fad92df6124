"""Long plans as several C++ units, which are compiled at the same time and linked to one object.

A compiler takes time for every kernel and none for pairs of them. In: a plan, its compiler, and how
many units may be built at once. Out: the units' texts; the first one exports npjit_prepare and
npjit_run as that of `print_cpp` does, and calls the kernels of the others:

    print_parts(plan, compiler, 2)
        ... void k0(const npjit_api* api, f64* mem0); ... npjit_run(...) { k0(api, ...); k1(...); }
        ... void k0(const npjit_api* api, f64* mem0) { ... }
"""

from __future__ import annotations

from npjit.codegen.cpp import is_scalar, printers, with_prelude
from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_steps import StepsPrinter
from npjit.codegen.toolchain import Compiler
from npjit.schedule.plan import Plan, every_step

# another process and the linker take as long as this much of a unit (see _weight)
WORTH = 120


def print_parts(plan: Plan, compiler: Compiler, most: int) -> tuple[str, ...]:
    """See the module's docstring."""
    plan, made = printers(plan)
    steps = sum(1 for _ in every_step(plan.steps))
    count = min(most, (steps + sum(map(_weight, made))) // WORTH)
    parts: list[list[str]] = [[] for _ in range(max(1, count))]
    loads = [steps, *[0] * (len(parts) - 1)]
    for p in sorted(made, key=_weight, reverse=True):
        home = 0 if p.is_inlined() else loads.index(min(loads))
        loads[home] += _weight(p)
        p.is_apart = home > 0
        if p.is_apart:
            parts[0].append(p.declaration())
        parts[home].append(p.print())
    parts[0].append(StepsPrinter(plan).print())
    scalar = is_scalar(made)
    return tuple(
        with_prelude("\n".join(texts), compiler.vector, scalar) for texts in parts if texts
    )


def _weight(p: KernelPrinter) -> int:
    """About how long a kernel's functions are."""
    return 10 + sum(1 for _ in p.kernel.instructions())
