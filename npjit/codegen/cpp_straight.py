"""What a trip of a loop does to single elements, as one list of instructions.

In: the steps of a trip: launches of kernels on single elements, checks, sizes that are computed.
Out: `Straight`: their instructions with common numbers, whose sizes are the plan's own. Values that
pass through local variables are used where they are made:

    launch k5(local4, local1), check 3 local1, v3 = local1, launch k7(output0; v3)
    v2 = v0 - v1;  checks (v2);  v3 is v2;  v4 = b0[v3]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from npjit.codegen.cpp_form import is_point
from npjit.codegen.cuda_terms import Terms
from npjit.core.size import Size, Var
from npjit.schedule.kernel import Apply, Inside, Instr, Kernel, Load, Store
from npjit.schedule.plan import Bind, Check, Launch, Place, Step, places_in


class OpenTerms(Terms):
    """Terms whose sizes are those of the plan."""

    def named(self, size: Size) -> Size:
        return size


@dataclass
class Straight:
    """See the module's docstring."""

    terms: OpenTerms = field(default_factory=OpenTerms)
    body: list[tuple[int, Instr]] = field(default_factory=list)
    # what must be true
    checks: list[int] = field(default_factory=list)
    # how long the body is behind each step
    lengths: list[int] = field(default_factory=list)
    # sizes that are values
    bound: dict[Var, int] = field(default_factory=dict)
    # the local variables that a trip writes, with what they hold now
    written: dict[Place, int] = field(default_factory=dict)
    # those that it reads as it finds them
    begun: set[Place] = field(default_factory=set)

    def place(self, buffer: int) -> Place:
        """Where a buffer is."""
        place = self.terms.places[buffer]
        assert place is not None, "kernels on single elements have no rows"
        return place


def straighten(
    steps: Sequence[Step], kernels: Sequence[Kernel], carries: bool = False
) -> Straight | None:
    """The steps as one list; None where there are others, or where a trip begins with what the one
    before has left in a local variable, if not `carries`."""
    made = Straight()
    for step in steps:
        if isinstance(step, Check | Bind):
            value = made.written.get(step.place)
            if value is None:
                return None
            if isinstance(step, Check):
                made.checks.append(value)
            else:
                made.bound[step.var] = value
        elif not isinstance(step, Launch) or not _add(made, kernels[step.kernel], step):
            return None
        made.lengths.append(len(made.body))
    return made if carries or not made.begun & made.written.keys() else None


def _add(made: Straight, kernel: Kernel, launch: Launch) -> bool:
    """One more kernel; whether it can be taken in."""
    numbers = made.terms.buffers_of(kernel, launch, locals_too=True)
    if numbers is None or not is_point(kernel):
        return False
    values: dict[int, int] = {}
    for phase in made.terms.phases(kernel, launch, numbers, {}):
        for number, instr in phase.body:
            values[number] = number
            place = made.place(instr.access.buffer) if isinstance(instr, Load | Store) else None
            if place is None or place.space != "local":
                made.body.append((number, with_values(instr, values)))
            elif isinstance(instr, Store):
                made.written[place] = values[instr.value]
            elif place in made.written:
                values[number] = made.written[place]
            else:
                made.begun.add(place)
                made.body.append((number, instr))
    return True


def is_closed(trip: Straight, own: Step, steps: tuple[Step, ...]) -> bool:
    """Whether no others of these steps touch the local variables that a trip of `own` writes."""
    inner, everywhere = ([p for p in places_in(s) if p in trip.written] for s in (own, steps))
    return len(inner) == len(everywhere)


def with_values(instr: Instr, values: dict[int, int]) -> Instr:
    """The instruction with other values in place of its own."""
    if isinstance(instr, Apply):
        return replace(instr, args=tuple(values[a] for a in instr.args))
    if isinstance(instr, Inside):
        return replace(instr, arg=values[instr.arg])
    if isinstance(instr, Load | Store):
        gathers = tuple((values[v], s) for v, s in instr.access.gathers)
        access = replace(instr.access, gathers=gathers)
        if isinstance(instr, Store):
            return Store(access, values[instr.value])
        return replace(instr, access=access)
    return instr


def touched(steps: Iterable[Instr]) -> set[int]:
    """The buffers that instructions touch."""
    return {i.access.buffer for i in steps if isinstance(i, Load | Store)}
