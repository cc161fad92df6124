"""Products of 16 bit numbers and what is computed from them element by element, as one kernel.

In: a `Plan`. Out: the plan in which a product and the launch behind it are one, where nobody else
reads the product; other products are kernels of their own. The new kernel sums over the last axis
and then does what the launch did:

    contract c = a @ b                   for each (batch, row, column)
    launch out = relu(c + bias)    ->        for k: sum of a * b
                                             out = relu(sum + bias)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from npjit.codegen.cuda_terms import Terms, actual, are_known
from npjit.core.dtypes import kind_of
from npjit.core.op import Kind, Op, Reduction
from npjit.core.size import Size, product
from npjit.schedule.kernel import (
    Access,
    Apply,
    Axis,
    Bound,
    Buffer,
    Coordinate,
    Inside,
    Instr,
    Kernel,
    Load,
    Phase,
    Reduce,
    Store,
)
from npjit.schedule.plan import Contract, Launch, Matrix, Plan, Step, inside, places_in

# the new kernel's axes
BATCH, ROW, COLUMN, SUMMED = range(4)
# its factors' buffers, and the number of the sum
FACTORS, SUM = (0, 1), 3
# the launch's axes have numbers from here on until they are told as the product's
_THEIRS = 4
_PRODUCT = Op("product of two", Kind.ELEMENTWISE, np.multiply, c="{0} * {1}")
_TOTAL = Op("total", Kind.REDUCE, np.sum, reduction=Reduction("sum", 0))


class _Unfit(Exception):
    """A product and a launch are not of the kind."""


@dataclass(frozen=True)
class Multiplied:
    """A new kernel, and the steps it stands for: a product, perhaps with a launch."""

    kernel: Kernel
    apart: tuple[Step, ...]


def with_products(plan: Plan, others: Collection[int]) -> tuple[Plan, dict[int, Multiplied]]:
    """The plan with such steps joined, and the new kernels by their numbers; the kernels `others`
    are left alone."""
    kernels = list(plan.kernels)
    made: dict[int, Multiplied] = {}
    uses = [p for step in plan.steps for p in places_in(step)]

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        found: list[Step] = []
        for step in steps:
            before = found[-1] if found else None
            if isinstance(before, Contract) and isinstance(step, Launch):
                both = joined(before, step)
                if both is not None:
                    found[-1] = both
                    continue
            found.append(inside(step, changed))
        return tuple((isinstance(s, Contract) and joined(s)) or s for s in found)

    def joined(contract: Contract, launch: Launch | None = None) -> Launch | None:
        c = contract.c.place
        joiner = _Joiner(contract)
        try:
            if launch is None:
                kernel, found = joiner.alone()
            else:
                _require(launch.kernel not in others)
                _require(c.space == "arena" and uses.count(c) == 2)
                kernel, found = joiner.join(kernels[launch.kernel], launch)
            _require(are_known(plan, found.sizes))
        except _Unfit:
            return None
        made[len(kernels)] = Multiplied(kernel, (contract, launch) if launch else (contract,))
        kernels.append(kernel)
        return replace(found, kernel=len(kernels) - 1)

    steps = changed(plan.steps)
    return replace(plan, steps=steps, kernels=tuple(kernels)), made


def _require(holds: bool) -> None:
    if not holds:
        raise _Unfit


class _Joiner:
    """Makes the kernel."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.terms = Terms()
        # the product's axes from the outside in: their numbers, extents and steps in memory
        c, batch = contract.c, contract.batch
        every = [
            *((BATCH, n, step) for n, step in zip(batch, c.batch, strict=True)),
            (ROW, contract.m, c.row),
            (COLUMN, contract.n, c.column),
        ]
        self.axes = [(axis, n, step) for axis, n, step in every if n != 1]

    def alone(self) -> tuple[Kernel, Launch]:
        """The kernel that writes the product, and its launch."""
        c, loop = self.contract.c, self._loop()
        self.terms.places.append(c.place)
        self.terms.buffers.append(Buffer(self.contract.dtype, "out"))
        store = Store(self._access(len(FACTORS), c, {ROW: c.row, COLUMN: c.column}), SUM)
        return self._made([loop, Phase((), ((SUM + 1, store),))])

    def join(self, kernel: Kernel, launch: Launch) -> tuple[Kernel, Launch]:
        """The kernel that does both, and its launch."""
        contract, terms = self.contract, self.terms
        _require(not kernel.in_order and not any(p.axes for p in kernel.phases))
        _require(all(b.role != "row" for b in kernel.buffers))
        runs = self._runs(kernel, launch)
        loop = self._loop()
        numbers = terms.buffers_of(kernel, launch)
        _require(numbers is not None)
        assert numbers is not None
        product_at = terms.places.index(contract.c.place)
        theirs = {axis: _THEIRS + axis for axis in kernel.outer}

        def known(load: Load) -> int | None:
            return SUM if load.access.buffer == product_at else None

        phases = terms.phases(kernel, launch, numbers, theirs, known)
        body = [(n, self._told(i, runs)) for p in phases for n, i in p.body]
        phases = terms.only_used([loop, Phase((), tuple(body))])
        return self._made(phases)

    def _made(self, phases: Sequence[Phase]) -> tuple[Kernel, Launch]:
        contract, terms = self.contract, self.terms
        accesses = [i for p in phases for _, i in p.body if isinstance(i, Load | Store)]
        written = {i.access.buffer for i in accesses if isinstance(i, Store)}
        read = {i.access.buffer for i in accesses if isinstance(i, Load)}
        # factors are read while results are written
        places = {terms.places[b] for b in FACTORS}
        _require(not any(terms.places[b] in places for b in written))
        extents = (*(contract.batch or (1,)), contract.m, contract.n, contract.k)
        axes = [Axis(terms.named(n)) for n in extents]
        role = "inout" if written & read else "out"
        outer = (BATCH, ROW, COLUMN)
        return terms.kernel(axes, outer, phases, written, role), terms.launch(-1)

    def _loop(self) -> Phase:
        """The sum of products; it is of numbers in float32, whatever it is rounded to."""
        terms, contract = self.terms, self.contract
        narrow, a, b = contract.factors, contract.a, contract.b
        _require(narrow.itemsize == 2 and kind_of(narrow) == "f")
        _require(contract.dtype in (narrow, np.dtype("f4")))
        _require(len(contract.batch) < 2 and contract.c.column == 1)
        _require({ROW, COLUMN} <= {axis for axis, _, _ in self.axes})
        terms.places += [a.place, b.place]
        terms.buffers += [Buffer(narrow, "in")] * 2
        terms.count = SUM + 1
        one = self._access(0, a, {ROW: a.row, SUMMED: a.column})
        other = self._access(1, b, {SUMMED: b.row, COLUMN: b.column})
        body: list[tuple[int, Instr]] = [
            (0, Load(one, narrow)),
            (1, Load(other, narrow)),
            (2, Apply(_PRODUCT, (0, 1), None, contract.dtype)),
            (SUM, Reduce(_TOTAL, 2, contract.dtype)),
        ]
        return Phase((SUMMED,), tuple(body))

    def _access(self, buffer: int, matrix: Matrix, steps: Mapping[int, Size]) -> Access:
        every = {**({BATCH: matrix.batch[0]} if matrix.batch else {}), **steps}
        strides = tuple(sorted((axis, self.terms.named(s)) for axis, s in every.items()))
        return Access(buffer, strides, self.terms.named(matrix.offset))

    def _runs(self, kernel: Kernel, launch: Launch) -> dict[int, list[tuple[int, Size]]]:
        """The product's axes that each axis of the launch goes along, and the steps of each in
        terms of its own."""
        strides = dict(_loaded(self.contract.c, kernel, launch).strides)
        found: dict[int, list[tuple[int, Size]]] = {}
        left = list(self.axes)
        for axis in kernel.outer:
            extent = actual(kernel.axes[axis].extent, launch)
            run = _run_of(left, extent, actual(strides.get(axis, 0), launch))
            left = [one for one in left if one not in run]
            inner = [product(n for _, n, _ in run[i + 1 :]) for i in range(len(run))]
            found[_THEIRS + axis] = [
                (one[0], self.terms.named(step)) for one, step in zip(run, inner, strict=True)
            ]
        _require(not left)
        return found

    def _told(self, i: Instr, runs: Mapping[int, list[tuple[int, Size]]]) -> Instr:
        """An instruction along the product's axes."""

        def alone(axis: int) -> int:
            _require(len(runs[axis]) == 1)
            return runs[axis][0][0]

        def within(bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
            return tuple(replace(b, axis=alone(b.axis)) for b in bounds)

        if isinstance(i, Load | Store):
            told: dict[int, Size] = {}
            for axis, stride in i.access.strides:
                told |= {one: stride * step for one, step in runs[axis]}
            # neighbours of a row are written together
            _require(isinstance(i, Load) or told.get(COLUMN) == 1)
            i = replace(i, access=replace(i.access, strides=tuple(sorted(told.items()))))
        if isinstance(i, Load | Inside):
            return replace(i, within=within(i.within))
        return replace(i, axis=alone(i.axis)) if isinstance(i, Coordinate) else i


def _loaded(c: Matrix, kernel: Kernel, launch: Launch) -> Access:
    """How a launch reads the product: in one way, and writes it nowhere."""
    _require(c.place in launch.buffers)
    buffer = launch.buffers.index(c.place)
    every = [
        i
        for _, i in kernel.instructions()
        if isinstance(i, Load | Store) and i.access.buffer == buffer
    ]
    _require(bool(every) and len({i.access for i in every}) == 1)
    _require(all(isinstance(i, Load) and not i.within for i in every))
    access = every[0].access
    _require(not access.gathers and actual(access.offset, launch) == c.offset)
    return access


def _run_of(
    axes: Sequence[tuple[int, Size, Size]], extent: Size, stride: Size
) -> Sequence[tuple[int, Size, Size]]:
    """Neighbouring axes that lie in memory like one of that extent and stride."""
    for first in range(len(axes)):
        for last in range(first, len(axes)):
            run = axes[first : last + 1]
            dense = all(outer[2] == inner[2] * inner[1] for outer, inner in pairwise(run))
            if dense and run[-1][2] == stride and product(n for _, n, _ in run) == extent:
                return run
    raise _Unfit
