"""Loops over single elements as vector loops, where what their trips ask is asked in front.

In: a `Plan`. Out: the plan with a choice in place of such loops: a kernel on single elements finds
out whether all indices of all trips are in range, and whether each trip reads only what no earlier
one has written; then a kernel over all trips runs, else the loop as it was:

    for i < capacity - w:                      if all (0 <= capacity - i - w, ..., 0 <= w):
        check 2, check 3                           launch k9 over (i) in order: best[...] = ...
        best[...] = max(best[...], ...)        else: for i < capacity - w: ...

Indices go up or down by equal steps, so that the first and the last trip answer for all.
"""

from __future__ import annotations

from npjit.codegen.cpp_affine import Affine, Trips
from npjit.codegen.cpp_choice import Choices, with_choices
from npjit.codegen.cpp_question import Body, Made, made, question
from npjit.codegen.cpp_straight import Straight, Unfit, is_closed, straighten
from npjit.codegen.cpp_values import operands
from npjit.core.size import Size
from npjit.schedule.kernel import Access, Apply, Axis, Load, Store
from npjit.schedule.plan import Loop, Place, Plan, Step

# fewer trips gain nothing
_FEWEST = 8


def ask_ahead(plan: Plan) -> Plan:
    """See the module's docstring."""
    return with_choices(plan, _over_trips)


def _over_trips(step: Step, choices: Choices) -> tuple[Made, tuple[Step, ...]]:
    if not isinstance(step, Loop) or step.stops or step.share is not None:
        raise Unfit
    trip = straighten(step.body, choices.kernels)
    # it leaves nothing in local variables that others read
    if trip is None or not trip.checks or not is_closed(trip, step, choices.steps):
        raise Unfit
    found = _Kernels(step, trip)
    asking, kernel = found.question(choices.answer), found.kernel()
    return asking, (choices.launch(kernel),)


class _Kernels:
    """What takes a loop's place: the question, and the kernel over all trips."""

    def __init__(self, loop: Loop, trip: Straight) -> None:
        self.loop = loop
        self.trip = trip
        self.trips = Trips(trip, loop.index)
        self.body = self._by_trips()
        self._ask_checks()
        self._ask_order()

    # -- what must hold

    def _ask_checks(self) -> None:
        for number in self.trip.checks:
            i = self.trips.instructions[number]
            if not isinstance(i, Apply) or i.op.relation != "in":
                raise Unfit
            index, extent = map(self.trips.of_value, i.args)
            self.trips.assumed += [index, extent.plus(index, -1).plus(Affine(0, -1))]

    def _ask_order(self) -> None:
        """No trip reads what an earlier one has written; all loads come before the stores."""
        stores = [(n, i.access) for n, i in self.body if isinstance(i, Store)]
        if len({a.buffer for _, a in stores}) < len(stores):
            raise Unfit
        targets = {a.buffer: self.trips.of_place(self._access(n)) for n, a in stores}
        first = min(n for n, _ in stores)
        for n, i in self.body:
            if isinstance(i, Load) and i.access.buffer in targets:
                target = targets[i.access.buffer]
                ahead = self.trips.of_place(self._access(n)).plus(target, -1)
                if n > first or ahead.step != 0:
                    raise Unfit
                self.trips.assumed.append(Affine().plus(ahead, _sign(target.step)))
        for target in targets.values():
            _sign(target.step)

    def _access(self, number: int) -> Access:
        i = self.trips.instructions[number]
        assert isinstance(i, Load | Store)
        return i.access

    def _ends(self) -> dict[Affine, None]:
        """What must not be negative: the numbers of the first and of the last trip."""
        last = self.loop.trips - 1
        found: dict[Affine, None] = {Affine(0, self.loop.trips - _FEWEST): None}
        for number in self.trips.assumed:
            for trip in (0, last):
                end = Affine(0, number.rest + number.step * trip, number.values)
                if end.values or not isinstance(end.rest, int):
                    found[end] = None
                elif end.rest < 0:
                    raise Unfit
        return found

    # -- the kernels

    def _by_trips(self) -> Body:
        """What the stores need, by the number of the trip."""
        wanted = {n for n, i in self.trip.body if isinstance(i, Store)}
        if not wanted:
            raise Unfit
        found: Body = []
        for n, i in reversed(self.trip.body):
            if n in wanted:
                made = self.trips.by_trip(i)
                wanted.update(operands(made))
                found.append((n, made))
        return found[::-1]

    def kernel(self) -> Made:
        """The one over all trips."""
        return made(self.trip.terms, [Axis(self.loop.trips)], self.body)

    def question(self, answer: Place) -> Made:
        """The one that finds out whether all holds."""
        ends = self._ends()
        fixed = self._fixed({v for end in ends for v, _ in end.values})
        return question(self.trip.terms, fixed, ends, answer)

    def _fixed(self, wanted: set[int]) -> Body:
        """What values need that no trip changes; nothing else is read than local variables."""
        found: Body = []
        for n, i in reversed(self.trip.body):
            if n in wanted:
                if isinstance(i, Load) and self.trip.place(i.access.buffer).space != "local":
                    raise Unfit
                wanted.update(operands(i))
                found.append((n, i))
        return found[::-1]


def _sign(step: Size) -> int:
    if not isinstance(step, int) or step == 0:
        raise Unfit
    return 1 if step > 0 else -1
