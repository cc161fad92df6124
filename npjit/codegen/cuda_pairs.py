"""Values of all pairs that are computed and then reduced, without the array of pairs.

In: a `Plan`. Out: the plan in which such launches are one. The first computes something for every
pair of a row and a partner, the second one combines it over the partners, perhaps for a few
components. Short axes of known extent become straight-line code, so that one loop is left:

    w = mass[j] / norm(x[j] - x[i])**3      for all i, j, with a sum over 3 components
    sum over j of (x[j, c] - x[i, c]) * w   for all i, c < 3
        ->  for each i one loop over j, with three sums
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeGuard

import numpy as np

from npjit.codegen.cpp_values import operands
from npjit.codegen.cuda_partners import is_partnered
from npjit.codegen.cuda_terms import Terms, actual, are_known
from npjit.core.op import Kind, Op
from npjit.core.size import Size
from npjit.schedule.kernel import (
    Access,
    Apply,
    Axis,
    Const,
    Coordinate,
    DType,
    Extent,
    Inside,
    Instr,
    Kernel,
    Load,
    Phase,
    Reduce,
    Store,
)
from npjit.schedule.plan import Launch, Place, Plan, Step, inside, places_in

# steps of short axes that are written out
_UNROLLED = 16
# the axes of the new kernel; those that are written out have numbers from _SHORT on
_ROW, _PARTNER, _SHORT = 0, 1, 2
_JOINS = {"sum": "{0} + {1}", "product": "{0} * {1}"}
_JOINS |= {"max": "nj_maximum({0}, {1})", "min": "nj_minimum({0}, {1})"}
# how two values of a reduction are joined, by its style
_STEPS = {
    style: Op(f"join of {style}", Kind.ELEMENTWISE, np.add, c=text)
    for style, text in _JOINS.items()
}


class _Unfit(Exception):
    """Two launches are not a producer of pairs and its only reader."""


def with_pairs(plan: Plan, others: Collection[int]) -> tuple[Plan, list[int]]:
    """The plan without such arrays of pairs, and the numbers of the new kernels; the kernels
    `others` are left alone."""
    kernels = list(plan.kernels)
    made: list[int] = []
    uses = [p for step in plan.steps for p in places_in(step)]

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        found: list[Step] = []
        for step in steps:
            before = found[-1] if found else None
            if is_plain(step) and is_plain(before):
                launch = _joined(kernels, before, step, uses)
                if launch is not None:
                    made.append(len(kernels) - 1)
                    found[-1] = launch
                    continue
            found.append(inside(step, changed))
        return tuple(found)

    def is_plain(step: Step | None) -> TypeGuard[Launch]:
        if not isinstance(step, Launch) or step.kernel in (*others, *made):
            return False
        return are_known(plan, step.sizes)

    steps = changed(plan.steps)
    return replace(plan, steps=steps, kernels=tuple(kernels)), made


def _joined(
    kernels: list[Kernel], first: Launch, second: Launch, uses: Sequence[Place]
) -> Launch | None:
    """The launch of a new kernel that does both."""
    for place in first.buffers:
        if place.space == "arena" and uses.count(place) == 2 and place in second.buffers:
            try:
                kernel, launch = _Joiner(kernels, first, second, place).join()
            except _Unfit:
                return None
            kernels.append(kernel)
            return replace(launch, kernel=len(kernels) - 1)
    return None


@dataclass(frozen=True)
class _Side:
    """One of the two launches."""

    kernel: Kernel
    launch: Launch

    def extent(self, axis: int) -> Size:
        return actual(self.kernel.axes[axis].extent, self.launch)

    def only(self, kind: type[Load] | type[Store], place: Place) -> Access:
        """How it touches the array of pairs."""
        buffer = self.launch.buffers.index(place)
        every = [
            i
            for _, i in self.kernel.instructions()
            if isinstance(i, Load | Store) and i.access.buffer == buffer
        ]
        require({type(i) for i in every} == {kind} and len({i.access for i in every}) == 1)
        require(not every[0].access.gathers)
        return every[0].access

    def strides(self, access: Access) -> dict[int, Size]:
        return {a: actual(s, self.launch) for a, s in access.strides if s != 0}


def require(holds: bool) -> None:
    """Stop joining two launches that are not of the kind."""
    if not holds:
        raise _Unfit


class _Joiner:
    """Makes the kernel."""

    def __init__(
        self, kernels: Sequence[Kernel], first: Launch, second: Launch, pairs: Place
    ) -> None:
        self.first = _Side(kernels[first.kernel], first)
        self.second = _Side(kernels[second.kernel], second)
        self.pairs = pairs
        self.terms = Terms()
        self.short: list[int] = []
        self.count = 0
        self.loop = _Body(self)
        self.end = _Body(self)
        self.pair = -1

    def join(self) -> tuple[Kernel, Launch]:
        """The kernel that does both, and its launch."""
        axes = self._axes()
        first = self._renamed(self.first, axes[0])
        second = self._renamed(self.second, axes[1])
        self._write_out_first(first)
        loops = [i for i, p in enumerate(second) if p.axes]
        require(len(loops) == 1 and second[loops[0]].axes == (_PARTNER,))
        components = [a for a in self.second.kernel.outer if axes[1][a] >= _SHORT]
        for steps in self._steps([axes[1][a] for a in components]):
            self._write_out_second(second, loops[0], steps)
        phases = [Phase((_PARTNER,), tuple(self.loop.body)), Phase((), tuple(self.end.body))]
        row, partner = (a for a in self.first.kernel.outer)
        if axes[0][row] == _PARTNER:
            row, partner = partner, row
        extents = [Axis(self.terms.named(self.first.extent(a))) for a in (row, partner)]
        phases = self.terms.only_used(phases)
        written = {i.access.buffer for p in phases for _, i in p.body if isinstance(i, Store)}
        # rows are written while others are still read
        require(
            not any(
                isinstance(i, Load) and i.access.buffer in written
                for p in phases
                for _, i in p.body
            )
        )
        kernel = self.terms.kernel(extents, (_ROW,), phases, written, "out")
        require(is_partnered(kernel))
        return kernel, self.terms.launch(-1)

    def _axes(self) -> tuple[dict[int, int], dict[int, int]]:
        """The new axes of both kernels."""
        first, second = self.first, self.second
        stored = first.only(Store, self.pairs)
        loaded = second.only(Load, self.pairs)
        require(len(first.kernel.outer) == 2)
        strides, theirs = first.strides(stored), second.strides(loaded)
        require(set(strides) == set(first.kernel.outer) and len(theirs) == 2)
        require(actual(stored.offset, first.launch) == actual(loaded.offset, second.launch))
        ours: dict[int, int] = {}
        other: dict[int, int] = {}
        for axis, stride in theirs.items():
            role = _ROW if axis in second.kernel.outer else _PARTNER
            matching = [
                a
                for a, s in strides.items()
                if s == stride and first.extent(a) == second.extent(axis)
            ]
            require(len(matching) == 1)
            ours[matching[0]] = other[axis] = role
        require(sorted(other.values()) == [_ROW, _PARTNER] == sorted(ours.values()))
        for side, axes in ((first, ours), (second, other)):
            for axis in range(len(side.kernel.axes)):
                if axis not in axes:
                    extent = side.extent(axis)
                    require(isinstance(extent, int) and 0 < extent <= _UNROLLED)
                    axes[axis] = _SHORT + len(self.short)
                    self.short.append(int(extent))  # type: ignore[arg-type]
        return ours, other

    def _renamed(self, side: _Side, axes: Mapping[int, int]) -> list[Phase]:
        require(all(b.role != "row" for b in side.kernel.buffers))
        numbers = self.terms.buffers_of(side.kernel, side.launch)
        require(numbers is not None)
        assert numbers is not None
        return self.terms.phases(side.kernel, side.launch, numbers, axes)

    def _steps(self, axes: Sequence[int]) -> Iterator[dict[int, int]]:
        """All places on short axes."""
        extents = [range(self.short[a - _SHORT]) for a in axes]
        require(np.prod([len(e) for e in extents], dtype=int) <= _UNROLLED)
        for at in product(*extents):
            yield dict(zip(axes, at, strict=True))

    def _write_out_first(self, phases: Sequence[Phase]) -> None:
        """The value of a pair, in the loop's body."""
        known: dict[int, int] = {}
        for phase in phases:
            totals: dict[int, int] = {}
            for steps in self._steps(phase.axes):
                for number, i in phase.body:
                    if isinstance(i, Reduce):
                        value = known[i.arg]
                        require(self.loop.dtype(value) == i.dtype)
                        before = totals.get(number)
                        totals[number] = value if before is None else self._joined(i, before, value)
                    elif isinstance(i, Store):
                        require(not phase.axes and self.pair < 0)
                        self.pair = known[i.value]
                    else:
                        known[number] = self.loop.add(i, known, steps)
            known |= totals
        require(self.pair >= 0)

    def _joined(self, i: Reduce, before: int, value: int) -> int:
        assert i.op.reduction is not None
        op = _STEPS.get(i.op.reduction.style)
        require(op is not None and i.dtype.kind in "fiu")
        assert op is not None
        return self.loop.put(Apply(op, (before, value), None, i.dtype))

    def _write_out_second(self, phases: Sequence[Phase], at: int, steps: Mapping[int, int]) -> None:
        """One component: its part of the loop's body, and what follows."""
        buffer = self.terms.places.index(self.pairs)
        known: dict[int, int] = {}
        for number, i in (pair for p in phases[: at + 1] for pair in p.body):
            require(not isinstance(i, Store))
            if isinstance(i, Load) and i.access.buffer == buffer:
                known[number] = self.pair
            elif isinstance(i, Reduce):
                known[number] = self.loop.put(replace(i, arg=known[i.arg]), fresh=True)
            else:
                known[number] = self.loop.add(i, known, steps)
        reductions = {n for n, i in phases[at].body if isinstance(i, Reduce | Const)}
        for number, i in (pair for p in phases[at + 1 :] for pair in p.body):
            require(set(operands(i)) <= reductions)
            known[number] = self.end.add(i, known, steps)
            reductions.add(number)


class _Body:
    """Instructions of one phase, equal ones once."""

    def __init__(self, joiner: _Joiner) -> None:
        self.joiner = joiner
        self.body: list[tuple[int, Instr]] = []
        self._known: dict[Instr, int] = {}
        self._types: dict[int, DType] = {}

    def dtype(self, number: int) -> DType:
        """The element type of a value."""
        return self._types[number]

    def put(self, i: Instr, fresh: bool = False) -> int:
        """The number of an instruction."""
        number = None if fresh or isinstance(i, Store) else self._known.get(i)
        if number is None:
            number = self.joiner.count
            self.joiner.count += 1
            self._known[i] = number
            self.body.append((number, i))
            if not isinstance(i, Store):
                self._types[number] = i.dtype
        return number

    def add(self, i: Instr, known: Mapping[int, int], steps: Mapping[int, int]) -> int:
        """An instruction at a place of the short axes."""
        if isinstance(i, Load):
            require(not i.within and not i.access.gathers)
            return self.put(replace(i, access=_at(i.access, steps)))
        if isinstance(i, Store):
            require(not i.access.gathers)
            return self.put(Store(_at(i.access, steps), known[i.value]))
        if isinstance(i, Apply):
            return self.put(replace(i, args=tuple(known[a] for a in i.args)))
        if isinstance(i, Coordinate) and i.axis in steps:
            return self.put(Extent(i.start + i.step * steps[i.axis], i.dtype))
        require(not isinstance(i, Inside | Reduce))
        return self.put(i)


def _at(access: Access, steps: Mapping[int, int]) -> Access:
    """An access at a place of the short axes."""
    strides = tuple((a, s) for a, s in access.strides if a not in steps)
    offset = access.offset
    for axis, stride in access.strides:
        offset = offset + stride * steps.get(axis, 0)
    return Access(access.buffer, strides, offset)
