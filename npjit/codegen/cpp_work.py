"""How much a loop's trip does, about, so that threads share out only what is worth waking them.

In: a loop and its plan. Out: additions of a trip, as a size in the plan's variables; the loop's own
index, and those of loops in it, stand half-way, and what else is not known before is a few.
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.codegen.cpp_form import is_point, per_item
from npjit.core.size import Size, Var, floordiv, product, substitute
from npjit.schedule.kernel import extents
from npjit.schedule.plan import Bind, If, Launch, Loop, Plan, Step, Sweep, While

# trips of a loop that ends by a condition
_FEW = 16
# an operation on a single element takes as long as this many of a vector's
_SINGLE = 4


def work_of(loop: Loop, plan: Plan) -> Size:
    """Additions of one trip."""
    return _half_way(_work(loop.body, plan), loop)


def _half_way(size: Size, loop: Loop) -> Size:
    return substitute(size, {loop.index: floordiv(loop.trips, 2)})


def _work(steps: Sequence[Step], plan: Plan) -> Size:
    total: Size = 0
    for step in steps:
        if isinstance(step, Loop):
            total = total + _half_way(step.trips * _work(step.body, plan), step)
        elif isinstance(step, While):
            total = total + _FEW * _work((*step.test, *step.body), plan)
        elif isinstance(step, If):
            total = total + _work((*step.then, *step.other), plan)
        elif isinstance(step, Sweep):
            total = total + step.trips * _work(step.launches, plan)
        elif isinstance(step, Launch):
            total = total + _launch(step, plan)
    unknown = {s.var: _FEW for s in steps if isinstance(s, Bind)}
    return substitute(total, dict(unknown))


def _launch(step: Launch, plan: Plan) -> Size:
    kernel = plan.kernels[step.kernel]
    each = per_item(kernel, kernel.phases)
    if is_point(kernel):
        return _SINGLE * each
    sizes: dict[Var, Size] = {Var(f"s{k}"): s for k, s in enumerate(step.sizes)}
    return substitute(each * product(extents(kernel, kernel.outer)), sizes)
