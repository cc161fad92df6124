"""Folds over the elements of a row that are there, handed on by each of these elements instead.

In: a `Plan`. Out: the plan with loops in which an element of a row takes in something of each one
before it, such that an element that is through is handed on to all behind it; what was a loop down
a column is one along rows, in vectors:

    for j: t[j] = max(t[j], ...)                for j: t[j] = max(t[j], ...)
           for k < j:                                  for l > j: (one launch)
               t[j] = max(t[j], t[k] + b[k, j])            t[l] = max(t[l], t[j] + b[j, l])

The elements must be ints, and all that is taken in joined by one operation: a maximum, a minimum or
a sum, whose order does not matter then. That other rows are apart is asked in front.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from npjit.codegen.cpp_affine import Affine
from npjit.codegen.cpp_choice import Choices, with_choices
from npjit.codegen.cpp_question import Made, made, question
from npjit.codegen.cpp_straight import Straight, Unfit, is_closed, straighten
from npjit.codegen.cpp_values import operands
from npjit.core.size import Size, Var, as_size, linear, substitute
from npjit.schedule.kernel import (
    Access,
    Apply,
    Axis,
    Const,
    Extent,
    Instr,
    Kernel,
    Load,
    Scalar,
    Store,
)
from npjit.schedule.plan import Launch, Loop, Place, Plan, Step

# rows of fewer elements gain nothing
_FEWEST = 8
_BEHIND = Var("behind", 0)
# which operand of a choice between the operands of a comparison is the greater one
_GREATER = {">": 0, ">=": 0, "<": 1, "<=": 1}


def push_folds(plan: Plan) -> Plan:
    """See the module's docstring."""

    def other(step: Step, choices: Choices) -> tuple[Made, tuple[Step, ...]]:
        row = _Row(step, choices.steps, choices.kernels)
        asking, kernel = row.question(choices.answer), row.handed_on()
        return asking, row.pushed(choices.launch(kernel))

    return with_choices(plan, other)


class _Row:
    """A loop along a row, with a loop over the elements before each one at the end of its body."""

    def __init__(self, step: Step, steps: tuple[Step, ...], kernels: Sequence[Kernel]) -> None:
        if not isinstance(step, Loop) or step.stops or step.share is not None or not step.body:
            raise Unfit
        fold = step.body[-1]
        if not isinstance(fold, Loop) or fold.stops or fold.share is not None:
            raise Unfit
        self.loop = step
        self.earlier = fold.index
        self.begun, self.fold = (
            _trip(body, step, steps, kernels) for body in (step.body[:-1], fold.body)
        )
        self.target, self.place = self._target()
        # sizes that must not be negative
        self.needs: list[Size] = [step.trips - _FEWEST]
        self._ask_begun()
        # element k of a fold is there when the loop has done its trip k - lead; of those that are
        # not begun then the first one that takes it in is `gap` trips further
        self.lead = self._ask_fold()
        more = fold.trips - as_size(step.index)
        if not isinstance(more, int) or not more <= min(1, self.lead):
            raise Unfit
        self.gap = self.lead - more + 1

    def _target(self) -> tuple[Access, Place]:
        """The element of the row that all is joined to."""
        stores = [i.access for _, i in self.fold.body if isinstance(i, Store)]
        if len(stores) != 1:
            raise Unfit
        step, rest = linear(stores[0].offset, self.loop.index)
        if step != 1 or linear(rest, self.earlier)[0] != 0:
            raise Unfit
        return stores[0], self.fold.place(stores[0].buffer)

    def _ask_begun(self) -> None:
        """Whether what an element begins with is joined to what it has, and what it reads of the
        row is through."""
        stores = [i.access.buffer for _, i in self.begun.body if isinstance(i, Store)]
        if [self.begun.place(b) for b in stores] != [self.place]:
            raise Unfit
        for _, i in self._of_row(self.begun):
            apart = i.access.offset - self.target.offset
            if isinstance(i, Store) and apart != 0:
                raise Unfit
            if not isinstance(apart, int):
                self._ask_apart(apart)
            elif apart > 0:
                raise Unfit
        if _join(self.begun, self._own(self.begun)) != _join(self.fold, self._own(self.fold)):
            raise Unfit

    def _ask_fold(self) -> int:
        """How many trips before trip k the last one is that makes what a fold reads of the row for
        its element k; all else must lie apart."""
        own, leads = self._own(self.fold), list[int]()
        for number, i in self._of_row(self.fold):
            if number == own or isinstance(i, Store):
                continue
            step, rest = linear(i.access.offset, self.loop.index)
            if step == 0:
                there = substitute(self.target.offset, {self.loop.index: as_size(self.earlier)})
                ahead = rest - there
                if not isinstance(ahead, int) or ahead > 0:
                    raise Unfit
                leads.append(-ahead)
            elif step == 1:
                self._ask_apart(i.access.offset - self.target.offset)
            else:
                raise Unfit
        if not leads:
            raise Unfit
        return min(leads)

    def _of_row(self, part: Straight) -> Iterator[tuple[int, Load | Store]]:
        """What touches the array that the row is in."""
        for number, i in part.body:
            if isinstance(i, Load | Store):
                if i.access.gathers:
                    raise Unfit
                if part.place(i.access.buffer) == self.place:
                    yield number, i

    def _own(self, part: Straight) -> int:
        """The load of what the element has."""
        found = [
            n
            for n, i in self._of_row(part)
            if isinstance(i, Load) and i.access.offset == self.target.offset
        ]
        if len(found) != 1:
            raise Unfit
        return found[0]

    def _ask_apart(self, apart: Size) -> None:
        """An element so far from the row's is in no trip an element of the row."""
        step, rest = linear(apart, self.earlier)
        if step is None or linear(apart, self.loop.index)[0] != 0:
            raise Unfit
        for trip in (0, self.loop.trips - 1):
            self.needs.append(rest + step * trip - self.loop.trips)

    # -- what comes in their places

    def handed_on(self) -> Made:
        """The kernel by which an element is handed on to all behind it, when a trip is done."""
        trip = as_size(self.loop.index)
        at = {self.earlier: trip + self.lead, self.loop.index: trip + self.gap + as_size(_BEHIND)}
        body = [(n, _along(i, at)) for n, i in self.fold.body]
        return made(self.fold.terms, [Axis(self.loop.trips - trip - self.gap)], body)

    def pushed(self, handed_on: Launch) -> tuple[Step, ...]:
        """The loop that hands on, and in front of it what is there before the first trip."""
        found: list[Step] = []
        for trip in range(-self.lead, 0):
            sizes = (substitute(s, {self.loop.index: trip}) for s in handed_on.sizes)
            found.append(replace(handed_on, sizes=tuple(sizes)))
        return (*found, replace(self.loop, body=(*self.loop.body[:-1], handed_on)))

    def question(self, answer: Place) -> Made:
        """The kernel that asks whether all other rows are apart."""
        if any(isinstance(n, int) and n < 0 for n in self.needs):
            raise Unfit
        numbers = [Affine(0, n) for n in dict.fromkeys(self.needs)]
        return question(self.fold.terms, [], numbers, answer)


def _trip(
    body: Sequence[Step], loop: Loop, steps: tuple[Step, ...], kernels: Sequence[Kernel]
) -> Straight:
    found = straighten(body, kernels)
    if found is None or found.checks or found.bound or not is_closed(found, loop, steps):
        raise Unfit
    return found


def _along(i: Instr, at: dict[Var, Size]) -> Instr:
    """An instruction of a kernel over the elements behind."""
    if isinstance(i, Load | Store):
        step, first = linear(substitute(i.access.offset, at), _BEHIND)
        if step not in (0, 1):
            raise Unfit
        strides = ((0, step),) if step else ()
        return replace(i, access=Access(i.access.buffer, strides, first))
    is_still = isinstance(i, Extent) and substitute(i.size, at) == i.size
    if not is_still and not isinstance(i, Apply | Const | Scalar):
        raise Unfit
    return i


def _join(part: Straight, own: int) -> str:
    """The operation that joins what an element has, and nothing else, with the rest."""
    known = dict(part.body)
    (store,) = (i for i in known.values() if isinstance(i, Store))
    number, joins = store.value, set[str]()
    while number != own:
        i = known[number]
        if not isinstance(i, Apply) or i.dtype.kind not in "iu":
            raise Unfit
        kind, sides = _operation(known, i)
        joins.add(kind)
        through = [s for s in sides if own in _behind(known, s)]
        if len(through) != 1 or len(joins) != 1:
            raise Unfit
        (number,) = through
    if not joins:
        raise Unfit
    return joins.pop()


def _operation(known: dict[int, Instr], i: Apply) -> tuple[str, tuple[int, ...]]:
    """What an instruction does with which two values."""
    if i.op.addends == (1, 1):
        return "sum", i.args
    test = known[i.args[0]]
    if not i.op.choice or not isinstance(test, Apply) or test.op.relation not in _GREATER:
        raise Unfit
    sides = i.args[1:]
    if set(sides) != set(test.args) or len(set(sides)) != 2:
        raise Unfit
    greater = test.args[_GREATER[test.op.relation]]
    return ("max" if sides[0] == greater else "min"), sides


def _behind(known: dict[int, Instr], number: int) -> set[int]:
    """A value and all that it is made of."""
    found, wanted = set[int](), [number]
    while wanted:
        n = wanted.pop()
        if n not in found:
            found.add(n)
            wanted += operands(known[n])
    return found
