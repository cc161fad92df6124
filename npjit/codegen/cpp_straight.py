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
from npjit.codegen.cpp_values import operands
from npjit.codegen.cuda_terms import Terms
from npjit.core.op import Kind, Op
from npjit.core.size import Size, Var
from npjit.schedule.kernel import Access, Apply, Inside, Instr, Kernel, Load, Store
from npjit.schedule.plan import Bind, Check, If, Launch, Place, Step, places_in

_EITHER = Op("either", Kind.ELEMENTWISE, lambda *_: None, c="nj_select({0}, {1}, {2})", choice=True)


class Unfit(Exception):
    """The loop has no such form."""


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
    steps: Sequence[Step],
    kernels: Sequence[Kernel],
    carries: bool = False,
    branches: bool = False,
) -> Straight | None:
    """The steps as one list; None where there are others, or where a trip begins with what the one
    before has left in a local variable, if not `carries`. With `branches` both sides of an `If` are
    computed, and what they store is chosen."""
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
        elif isinstance(step, If) and branches:
            if not _Branch(made, kernels).add(step):
                return None
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


class _Branch:
    """Takes both sides of a branch into a body."""

    def __init__(self, made: Straight, kernels: Sequence[Kernel]) -> None:
        self.made = made
        self.kernels = kernels
        # the local variables behind each side
        self.written: list[dict[Place, int]] = []

    def add(self, step: If) -> bool:
        """The branch as choices; whether it can be taken in."""
        made, before = self.made, dict(self.made.written)
        asked = before.get(step.condition)
        if asked is None or not self._asks_elements(asked):
            return False
        sides = [self._side(steps, dict(before)) for steps in (step.then, step.other)]
        stores: dict[Access, list[int | None]] = {}
        for k, side in enumerate(sides):
            if side is None:
                return False
            for access, value in side.items():
                stores.setdefault(access, [None, None])[k] = value
        then, other = self.written
        if then.keys() != other.keys():
            return False
        made.written = {
            p: then[p] if then[p] == other[p] else self._choice(asked, then[p], other[p])
            for p in then
        }
        for access, values in stores.items():
            old = self._new(Load(access, made.terms.buffers[access.buffer].dtype))
            a, b = (old if v is None else v for v in values)
            self._new(Store(access, self._choice(asked, a, b)))
        return True

    def _asks_elements(self, number: int) -> bool:
        """Whether elements decide. Where sizes do, a side may read what is only there for them."""
        known, wanted = dict(self.made.body), [number]
        while wanted:
            i = known[wanted.pop()]
            if isinstance(i, Load) and self.made.place(i.access.buffer).space != "local":
                return True
            wanted += operands(i)
        return False

    def _side(self, steps: Sequence[Step], written: dict[Place, int]) -> dict[Access, int] | None:
        """What a side stores, which nothing in it reads then; None if it is no such side."""
        made, start = self.made, len(self.made.body)
        made.written = written
        for s in steps:
            if not isinstance(s, Launch) or not _add(made, self.kernels[s.kernel], s):
                return None
        self.written.append(made.written)
        part, stores = made.body[start:], dict[Access, int]()
        for _, i in part:
            if isinstance(i, Store):
                stores[i.access] = i.value
            elif isinstance(i, Load) and i.access.buffer in {a.buffer for a in stores}:
                return None
        made.body[start:] = [(n, i) for n, i in part if not isinstance(i, Store)]
        return stores

    def _choice(self, asked: int, a: int, b: int) -> int:
        first = dict(self.made.body)[a]
        assert not isinstance(first, Store)
        return self._new(Apply(_EITHER, (asked, a, b), None, first.dtype))

    def _new(self, instr: Instr) -> int:
        terms = self.made.terms
        self.made.body.append((terms.count, instr))
        terms.count += 1
        return terms.count - 1


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
