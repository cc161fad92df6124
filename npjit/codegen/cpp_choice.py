"""Other forms of loops, which run where numbers that are asked for in front allow it.

In: a plan, and what finds the other form of a step, or raises `Unfit`. Out: the plan with a
question and an `If` in the place of each such step, the inner ones first:

    for i < n: ...                     launch k9(local7; n - 8)
                                       if local7: ... else: for i < n: ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from npjit.codegen.cpp_question import Made
from npjit.codegen.cpp_straight import Unfit
from npjit.schedule.plan import If, Launch, Place, Plan, Step, inside


class Choices:
    """A plan while its steps change."""

    def __init__(self, plan: Plan) -> None:
        self.steps = plan.steps
        self.kernels = list(plan.kernels)
        self.variables = list(plan.locals)

    @property
    def answer(self) -> Place:
        """Where the next question's answer will be."""
        return Place("local", len(self.variables))

    def launch(self, new: Made) -> Launch:
        """One more kernel's launch."""
        kernel, launch = new
        self.kernels.append(kernel)
        return launch(len(self.kernels) - 1)


# the question, and the steps that may run if its answer is yes
Other = Callable[[Step, Choices], tuple[Made, tuple[Step, ...]]]


def with_choices(plan: Plan, other: Other) -> Plan:
    """See the module's docstring; where `other` raises, it has taken no kernel in."""
    choices = Choices(plan)

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(s for step in steps for s in one(step))

    def one(step: Step) -> tuple[Step, ...]:
        step = inside(step, changed)
        try:
            asking, instead = other(step, choices)
        except Unfit:
            return (step,)
        answer = choices.answer
        choices.variables.append(np.dtype("?"))
        return (choices.launch(asking), If(answer, instead, (step,)))

    steps = changed(plan.steps)
    kernels, variables = tuple(choices.kernels), tuple(choices.variables)
    return replace(plan, steps=steps, kernels=kernels, locals=variables)
