"""Reductions along rows and reductions across the same rows as one kernel: a matrix is read once.

In: a `Plan`. Out: the plan with neighbouring launches (and products of a matrix and a vector) that
go over the same rows as launches of new kernels. Each group of threads goes through many rows, and
keeps what it has found of every column, and of the whole, from row to row:

    z = x @ w              rows        z5 = sum of x[i, j] * w[j]
    g = derivative(z, y)   one a row   and the loss, summed over the rows
    x.T @ g                columns     sum over the rows of g5 * x[i, j], x still in registers

A value that one launch stores for each row and a later one loads is handed over in a register.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npjit.codegen.cpp_values import operands
from npjit.codegen.cuda_kernel import merged
from npjit.codegen.cuda_terms import Terms, actual, are_known
from npjit.core.op import Kind, Op, Reduction
from npjit.core.size import Size
from npjit.schedule.kernel import (
    Access,
    Apply,
    Axis,
    Buffer,
    Const,
    Instr,
    Kernel,
    Load,
    Phase,
    Reduce,
    Store,
)
from npjit.schedule.plan import (
    Contract,
    Launch,
    Place,
    Plan,
    Step,
    inside,
    places_in,
)

# what a matrix product does to two elements, and to the products
_PRODUCT = Op("product of two", Kind.ELEMENTWISE, np.multiply, c="{0} * {1}")
_TOTAL = Op("total", Kind.REDUCE, np.sum, reduction=Reduction("sum", 0))
_FOLDS = ("sum", "product", "min", "max", "any", "all")
_BLAS = ("f4", "f8")


@dataclass(frozen=True)
class Across:
    """A kernel over rows. The last two of its phases follow when all rows are done: one for every
    column, one for the whole. `folded` numbers the phases whose reductions go over the rows."""

    kernel: Kernel
    folded: frozenset[int]

    @property
    def column(self) -> int:
        """The axis along the rows."""
        return len(self.kernel.outer)


def with_across(plan: Plan, others: Collection[int]) -> tuple[Plan, dict[int, Across]]:
    """The plan with such launches joined, and the new kernels by their numbers; the kernels
    `others` are left alone."""
    kernels = list(plan.kernels)
    made: dict[int, Across] = {}
    uses = Counter(places_in(plan.steps))

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        found: list[Step] = []
        at = 0
        while at < len(steps):
            joined = _longest(kernels, others, steps[at:], plan)
            if joined is None:
                found.append(inside(steps[at], changed))
                at += 1
                continue
            count, rows = joined
            across = rows.finish(uses - Counter(places_in(steps[at : at + count])))
            made[len(kernels)] = across
            kernels.append(across.kernel)
            found.append(rows.terms.launch(len(kernels) - 1))
            at += count
        return tuple(found)

    steps = changed(plan.steps)
    return replace(plan, steps=steps, kernels=tuple(kernels)), made


def _longest(
    kernels: Sequence[Kernel], others: Collection[int], steps: Sequence[Step], plan: Plan
) -> tuple[int, _Rows] | None:
    """The most steps from the first one on that are worth one kernel; None: it starts none."""
    found = None
    members: list[tuple[Kernel, Launch]] = []
    for step in steps:
        member = None if _is_one_of(step, others) else _member(kernels, step)
        if member is None or not are_known(plan, member[1].sizes):
            break
        members.append(member)
        rows = _Rows()
        if not all(rows.add(*m) for m in members) or not rows.is_sound():
            break
        if rows.is_worth():
            found = len(members), rows
    return found


def _is_one_of(step: Step, others: Collection[int]) -> bool:
    return isinstance(step, Launch) and step.kernel in others


def _member(kernels: Sequence[Kernel], step: Step) -> tuple[Kernel, Launch] | None:
    """A step as a kernel and its launch."""
    if isinstance(step, Launch):
        return kernels[step.kernel], step
    if isinstance(step, Contract) and not step.batch and step.factors.str[1:] in _BLAS:
        return _vector_product(step)
    return None


def _vector_product(step: Contract) -> tuple[Kernel, Launch] | None:
    """The product of a matrix and a vector, from either side."""
    a, b, c = step.a, step.b, step.c
    if step.n == 1:
        extent = step.m
        strides = ({0: a.row, 1: a.column}, {1: b.row}, {0: c.row})
    elif step.m == 1:
        extent = step.n
        strides = ({1: a.column}, {0: b.column, 1: b.row}, {0: c.column})
    else:
        return None
    terms = Terms()
    places = [m.place for m in (a, b, c)]
    terms.places += places
    terms.buffers += [Buffer(step.dtype, role) for role in ("in", "in", "out")]
    one, other, result = (
        Access(i, tuple((axis, terms.named(s)) for axis, s in by.items()), terms.named(m.offset))
        for i, (by, m) in enumerate(zip(strides, (a, b, c), strict=True))
    )
    loop: list[tuple[int, Instr]] = [
        (0, Load(one, step.dtype)),
        (1, Load(other, step.dtype)),
        (2, Apply(_PRODUCT, (0, 1), None, step.dtype)),
        (3, Reduce(_TOTAL, 2, step.dtype)),
    ]
    phases = [Phase((1,), tuple(loop)), Phase((), ((4, Store(result, 3)),))]
    axes = [Axis(terms.named(extent)), Axis(terms.named(step.k))]
    return terms.kernel(axes, (0,), phases, {2}, "out"), terms.launch(-1)


class _Rows:
    """Launches over the same rows, as one kernel in the making."""

    def __init__(self) -> None:
        self.terms = Terms()
        self.rows: tuple[Size, ...] = ()
        self.length: Size = 0
        self.phases: list[Phase] = []
        self.folded: set[int] = set()
        self.column_ends: list[Phase] = []
        self.whole_ends: list[Phase] = []
        # what was stored for each row
        self.stored: dict[Access, int] = {}

    # ------------------------------------------------------------ members

    def add(self, kernel: Kernel, launch: Launch) -> bool:
        """Append a launch; whether it goes over the rows."""
        extents = [actual(a.extent, launch) for a in kernel.axes]
        outer = tuple(extents[a] for a in kernel.outer)
        loops = {p.axes for p in kernel.phases if p.axes}
        inner = next(iter(loops), ())
        if len(loops) > 1:
            return False
        reduced = tuple(extents[a] for a in inner)
        if not self.rows:
            if len(inner) != 1 or not outer:
                return False
            self.rows, (self.length,) = outer, reduced
        candidates = []
        if outer == self.rows and reduced in ((), (self.length,)):
            candidates.append((kernel.outer, inner, self._along))
        if outer == (self.length,) and reduced == self.rows:
            candidates.append((inner, kernel.outer, self._of_columns))
        if not outer and reduced == self.rows:
            candidates.append((inner, (), self._of_whole))
        for rows, columns, take in candidates:
            axes = {a: i for i, a in enumerate((*rows, *columns))}
            if runs_along(kernel, rows, columns):
                return self._renamed(kernel, launch, axes, take)
        return False

    def _renamed(
        self,
        kernel: Kernel,
        launch: Launch,
        axes: dict[int, int],
        take: Callable[[list[Phase]], bool],
    ) -> bool:
        numbers = self.terms.buffers_of(kernel, launch)
        if numbers is None:
            return False
        return take(self.terms.phases(kernel, launch, numbers, axes, self._known))

    def _known(self, load: Load) -> int | None:
        return None if load.within else self.stored.get(load.access)

    def _along(self, phases: list[Phase]) -> bool:
        """Reductions along the rows, and what is done once a row."""
        for phase in phases:
            self._append(phase)
        return True

    def _of_columns(self, phases: list[Phase]) -> bool:
        return self._folding(phases, (len(self.rows),), self.column_ends)

    def _of_whole(self, phases: list[Phase]) -> bool:
        return self._folding(phases, (), self.whole_ends)

    def _folding(self, phases: list[Phase], axes: tuple[int, ...], ends: list[Phase]) -> bool:
        """One loop over the rows with the phases around it; whether what follows needs nothing but
        its reductions."""
        loops = [i for i, p in enumerate(phases) if p.axes]
        if len(loops) != 1:
            return False
        at = loops[0]
        before, end = merged(phases[: at + 1]), merged(phases[at + 1 :])
        own = {n for n, _ in end.body} | {
            n for n, i in before.body if isinstance(i, Reduce | Const)
        }
        if any(isinstance(i, Store) for p in phases[:at] for _, i in p.body):
            return False
        if any(a not in own for _, i in end.body for a in operands(i)):
            return False
        self.folded.add(len(self.phases))
        self._append(Phase(axes, before.body))
        ends.append(end)
        return True

    def _append(self, phase: Phase) -> None:
        self.phases.append(phase)
        if not phase.axes:
            found = ((i.access, i.value) for _, i in phase.body if isinstance(i, Store))
            self.stored.update(found)

    # ------------------------------------------------------------ rules

    def is_sound(self) -> bool:
        """Whether rows do not touch what other rows, or the ends, write."""
        outer = set(range(len(self.rows)))
        ends = [*self.column_ends, *self.whole_ends]
        written = {i.access.buffer for p in self.phases for _, i in p.body if isinstance(i, Store)}
        late = {i.access.buffer for p in ends for _, i in p.body if isinstance(i, Store)}
        places: dict[int, Access] = {}
        for phase in (*self.phases, *ends):
            for _, i in phase.body:
                if isinstance(i, Load) and not self._is_row(i.access):
                    if i.access.buffer in written | late:
                        return False
                elif isinstance(i, Store) and phase not in ends and not self._is_row(i.access):
                    strides = {a for a, s in i.access.strides if s != 0}
                    if strides != outer | set(phase.axes) or i.access.gathers:
                        return False
                    if places.setdefault(i.access.buffer, i.access) != i.access:
                        return False
        if written & late or any(p.axes for p in ends):
            return False
        styles = [
            i.op.reduction
            for n in self.folded
            for _, i in self.phases[n].body
            if isinstance(i, Reduce)
        ]
        return all(r is not None and r.style in _FOLDS for r in styles)

    def _is_row(self, access: Access) -> bool:
        return self.terms.buffers[access.buffer].role == "row"

    def is_worth(self) -> bool:
        """Whether a loop over the columns reads what a loop along the rows reads."""
        along, across = (
            {
                i.access
                for n, p in enumerate(self.phases)
                if p.axes and (n in self.folded) is folded
                for _, i in p.body
                if isinstance(i, Load) and len({a for a, s in i.access.strides if s != 0}) > 1
            }
            for folded in (False, True)
        )
        return bool(along & across)

    def finish(self, elsewhere: Counter[Place]) -> Across:
        """The kernel; `elsewhere` has the places that other steps mention."""
        phases = [*self.phases, merged(self.column_ends), merged(self.whole_ends)]
        phases = self.terms.only_used([self._without_idle(p, elsewhere) for p in phases])
        written = {i.access.buffer for p in phases for _, i in p.body if isinstance(i, Store)}
        axes = [Axis(self.terms.named(e)) for e in (*self.rows, self.length)]
        outer = tuple(range(len(self.rows)))
        kernel = self.terms.kernel(axes, outer, phases, written, "out")
        return Across(kernel, frozenset(self.folded))

    def _without_idle(self, phase: Phase, elsewhere: Counter[Place]) -> Phase:
        """A phase without stores that nobody reads: what they store is handed over in registers."""
        places = self.terms.places
        idle = {n for n, p in enumerate(places) if p and p.space == "arena" and not elsewhere[p]}
        kept = (
            b for b in phase.body if not (isinstance(b[1], Store) and b[1].access.buffer in idle)
        )
        return Phase(phase.axes, tuple(kept))


def runs_along(kernel: Kernel, rows: Sequence[int], columns: Sequence[int]) -> bool:
    """Whether matrices lie in memory row by row."""
    for _, i in kernel.instructions():
        if isinstance(i, Load | Store) and kernel.buffers[i.access.buffer].role != "row":
            strides = {a: s for a, s in i.access.strides if s != 0}
            across = [a for a in columns if a in strides]
            if across and any(a in strides for a in rows) and strides[across[0]] != 1:
                return False
    return True
