"""Launches that a GPU starts before the host knows a check's answer.

In: a `Plan`. Out: the plan whose checks hold the launches behind them, `Check.ahead`, as launches
of new kernels that get the answer and do nothing if it is no. The GPU goes on with them while the
answer is on its way, where it would wait for the host twice as long as a short kernel takes:

    launch k0(input1, arena+0; n)              launch k0(input1, arena+0; n)
    check 1 arena+0                       ->   check 1 arena+0
    launch k1(input1, input0, output0; n)        launch k2(input1, input0, output0, arena+0; n)

A call whose check fails gives no results, so that nothing is lost by launches that do not run. They
write no input, and nothing where the answer lies.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from npjit.codegen.cuda_asked import asked_in
from npjit.schedule.kernel import Buffer, Kernel
from npjit.schedule.plan import Check, Launch, Place, Plan, Step, inside

_ANSWER = Buffer(np.dtype("?"), "answer")
# a place that lies so many bytes behind another one is another region
_APART = 16


def with_ahead(plan: Plan, others: Collection[int]) -> Plan:
    """See the module's docstring; the kernels `others` are left where they are."""
    kernels = list(plan.kernels)
    made: dict[int, int] = {}

    def asking(launch: Launch, check: Check) -> Launch:
        if launch.kernel not in made:
            made[launch.kernel] = len(kernels)
            kernel = kernels[launch.kernel]
            kernels.append(replace(kernel, buffers=(*kernel.buffers, _ANSWER)))
        buffers = (*launch.buffers, check.place)
        return replace(launch, kernel=made[launch.kernel], buffers=buffers)

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        # these are asked by a kernel behind them
        late = {a.check for a in asked_in(plan.kernels, steps)}
        found: list[Step] = []
        check: Check | None = None
        for number, step in enumerate(steps):
            if isinstance(step, Check):
                check = None if number in late else step
            elif check is not None and _may_go_ahead(plan.kernels, step, check, others):
                assert isinstance(step, Launch)
                check = replace(check, ahead=(*check.ahead, asking(step, check)))
                found[-1] = check
                continue
            else:
                check = None
            found.append(inside(step, changed))
        return tuple(found)

    steps = changed(plan.steps)
    return replace(plan, kernels=tuple(kernels), steps=steps)


def _may_go_ahead(
    kernels: Sequence[Kernel], step: Step, check: Check, others: Collection[int]
) -> bool:
    """Whether a step is a launch that nobody misses when the answer is no."""
    if not isinstance(step, Launch) or step.kernel in others:
        return False
    shared = [b for b in kernels[step.kernel].buffers if b.role != "row"]
    written = [p for b, p in zip(shared, step.buffers, strict=True) if b.role != "in"]
    return all(_is_apart(place, check.place) for place in written)


def _is_apart(written: Place, answer: Place) -> bool:
    """Whether memory is no input's and surely lies behind or beside the answer."""
    if written.space == "arena" and answer.space == "arena":
        distance = written.offset - answer.offset
        return isinstance(distance, int) and distance >= _APART
    same = (written.space, written.number) == (answer.space, answer.number)
    return written.space != "input" and not same
