"""Rows of a recurrence that run together, each one some elements behind the row before it.

A row whose elements need those before them goes no faster than one chain of operations; ROWS of
them are as many chains, which the processor works on at once. In: a `Plan`. Out: the plan with such
nests (see `cpp_nest`) in groups of ROWS rows; row r of a group is r * lag elements behind its
first, so that all it needs of the row above is there and nothing is overwritten too soon:

    for i: for j: a[i, j] = f(a[i, j - 1], a[i - 1, j + 1])

    for g: the first elements of the group's rows, row by row
           for t: row 0 at t + 14, row 1 at t + 12, ... row 7 at t
           the last elements, row by row
    the rows that are left

Each element is computed as before, from the same values. Where the rows do not fit, by sizes that
only the call tells, the loop runs as it was.
"""

from __future__ import annotations

from npjit.codegen.cpp_affine import Affine
from npjit.codegen.cpp_choice import Choices, with_choices
from npjit.codegen.cpp_nest import Nest, find_nest, moved
from npjit.codegen.cpp_question import Made, question
from npjit.codegen.cpp_straight import Unfit
from npjit.codegen.cpp_wave import LANES, Wave, wave_kernel
from npjit.core.size import Size, Var, as_size, floordiv, select
from npjit.schedule.plan import Loop, Plan, Step

ROWS = LANES
# elements that all rows of a group do together at least
_FEWEST = 8
# elements that a row is behind the one above it beyond what must be
_SLACK = 1


def skew_rows(plan: Plan) -> tuple[Plan, dict[int, Wave]]:
    """See the module's docstring; with what is known of the new kernels, by their numbers."""
    waves: dict[int, Wave] = {}

    def other(step: Step, choices: Choices) -> tuple[Made, tuple[Step, ...]]:
        nest = find_nest(step, choices.steps, choices.kernels)
        groups = _Groups(step, nest, lag_of(nest))
        asking = question(nest.straight.terms, [], groups.needs(), choices.answer)
        choices.kernels[:] = nest.kernels
        try:
            launch = choices.launch(groups.in_lanes())
        except Unfit:
            return asking, groups.steps(())
        waves[launch.kernel] = Wave(groups.lag, nest.distances)
        return asking, groups.steps((launch,))

    return with_choices(plan, other), waves


def lag_of(nest: Nest) -> int:
    """How many elements a row must be behind the one above it: one that is r rows away is stored
    before it is read, or read before it is stored."""
    least = 1
    for rows, columns in nest.distances.values():
        if rows < 0:
            least = max(least, columns // -rows + 1)
        elif rows > 0:
            least = max(least, -columns // rows + 1)
    return least + _SLACK


class _Groups:
    """The steps of a nest by groups of rows."""

    def __init__(self, loop: Step, nest: Nest, lag: int) -> None:
        assert isinstance(loop, Loop)
        self.loop = loop
        self.nest = nest
        self.lag = lag
        self.group, self.line, self.column = (Var(f"{nest.row.name}{x}", 0) for x in "gra")
        self.top = ROWS * as_size(self.group)
        # how long all rows of a group are under way, and in whole squares
        self.times = nest.columns - (ROWS - 1) * lag
        self.groups = floordiv(nest.rows, ROWS)

    def needs(self) -> list[Affine]:
        """What must not be negative."""
        sizes = [*self.nest.needs, self.nest.rows - ROWS, self.times - max(_FEWEST, self.lag)]
        if any(isinstance(n, int) and n < 0 for n in sizes):
            raise Unfit
        return [Affine(0, n) for n in dict.fromkeys(sizes)]

    def in_lanes(self) -> Made:
        """The kernel for a group, and for its rows' changing places with the next one's."""
        return wave_kernel(self.nest, self.lag, self.top, self.times + self._changes())

    def _changes(self) -> Size:
        """How long rows change places; never in the last group."""
        return select(self.groups - 2 - as_size(self.group), (ROWS - 1) * self.lag, 0)

    def steps(self, group: tuple[Step, ...]) -> tuple[Step, ...]:
        """The loop over groups, and the one over rows that are left; `group`: a step for one."""
        nest = self.nest
        left = moved(self.loop.body, {nest.row: as_size(nest.row) + ROWS * self.groups})
        return (
            self._ends(0, first=True),
            Loop(self.group, self.groups, group or (self._together(), self._changing())),
            self._ends(ROWS * (self.groups - 1), first=False),
            Loop(nest.row, nest.rows - ROWS * self.groups, left),
        )

    def _together(self) -> Step:
        """All rows of a group at the same time."""
        time = as_size(self.column)
        rows = [self.nest.at(self.top + r, time + (ROWS - 1 - r) * self.lag) for r in range(ROWS)]
        return Loop(self.column, self.times, tuple(step for row in rows for step in row))

    def _changing(self) -> Step:
        """The same while one row after the other is through, in whose place one of the next group
        begins."""
        time, body = as_size(self.column), list[Step]()
        for r in range(ROWS):
            since = time - r * self.lag
            column = select(since, since, since + self.nest.columns)
            body += self.nest.at(self.top + r + select(since, ROWS, 0), column)
        return Loop(self.column, self._changes(), tuple(body))

    def _ends(self, top: Size, first: bool) -> Step:
        """What the first group's rows do before all are under way, and the last one's when the
        first row is through: row by row."""
        line, at = as_size(self.line), as_size(self.column)
        row = line if first else line + 1
        count = self.lag * (ROWS - 1 - line if first else row)
        column = at if first else self.nest.columns - count + at
        return Loop(
            self.line, ROWS - 1, (Loop(self.column, count, self.nest.at(top + row, column)),)
        )
