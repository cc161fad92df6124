"""Steps of a plan made ready for one set of sizes: what to start, and where addresses go.

In: steps, the values of size variables, the alignment of inputs. Out: a `Prepared`, whose tape the
runtime runs without Python, loops and branches included. Its addresses are relative to numbered
*bases*: the inputs (an array's address, a scalar's one or two words), the fresh outputs, the arena,
the scratch memory, the counters.

    prepare(context, plan.steps, Sizes({n0: 1000}))

Trips of a loop whose sizes depend on the trip are made ready one by one; what depends on numbers
that the GPU computes is made ready when they are known (`Late`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npjit.backends.cuda_blas import blas_product, in_batches
from npjit.backends.cuda_device import Device, Region
from npjit.backends.cuda_draft import Branch, Draft, Flag, Prepared
from npjit.backends.cuda_form import Form, functions, tape
from npjit.backends.cuda_host import Based, Compute, Copy, Multiply
from npjit.backends.cuda_late import Bound, Late, Trips
from npjit.backends.cuda_padded import bytes_of, copied, in_padded_rows
from npjit.backends.cuda_places import Bases, Places, Sizes, rounded, words_of
from npjit.codegen.cuda import CudaModule
from npjit.codegen.cuda_asked import asked_in
from npjit.codegen.cuda_attention import attention_for
from npjit.codegen.cuda_calls import Operand, Question, Routine, routine_for
from npjit.codegen.cuda_launch import Configured, Tuning
from npjit.core.op import Kind
from npjit.core.size import Size, Var, atoms
from npjit.core.weighing import Weighing
from npjit.schedule.plan import (
    Bind,
    Call,
    Check,
    Contract,
    If,
    Launch,
    Loop,
    Matrix,
    Place,
    Plan,
    Step,
    While,
    every_step,
    sizes_in,
)

_BOOL, _INDEX = np.dtype("?"), np.dtype("i8")
# steps of trips that are made ready ahead of a run
_AHEAD = 16384
# launches in a row that trips are joined to: the runtime makes one graph of them
_ROW = 128


@dataclass(frozen=True)
class Context:
    """What preparations of one plan share; `addresses` are those of the inputs."""

    plan: Plan
    module: CudaModule
    device: Device
    addresses: Sequence[int]
    tuning: Tuning
    bases: Bases


@dataclass
class Needs:
    """The bytes of scratch memory and the number of counters that steps need, and how many more
    steps may be made ready ahead."""

    scratch: int = 0
    counters: int = 0
    ahead: int = 0


def prepare(context: Context, steps: Sequence[Step], sizes: Sizes) -> Prepared:
    """See the module's docstring."""
    draft, needs = drafted(context, steps, sizes)
    return loaded(context, draft.form(), needs)


def loaded(context: Context, form: Form, needs: Needs) -> Prepared:
    """Steps with their functions."""
    names, module = functions(form), context.module
    device = context.device
    found = device.functions(module.source, names, module.options) if names else []
    made = tape(form, dict(zip(names, found, strict=True)))
    return Prepared(made, needs.scratch, needs.counters)


def drafted(context: Context, steps: Sequence[Step], sizes: Sizes) -> tuple[Draft, Needs]:
    """What `prepare` makes before functions are loaded."""
    draft, needs = Draft(), Needs(ahead=_AHEAD)
    Preparation(context, sizes, draft, needs).add(steps)
    return draft, needs


class Preparation:
    """Adds steps to a draft."""

    def __init__(self, context: Context, sizes: Sizes, draft: Draft, needs: Needs) -> None:
        self.context = context
        self.sizes = sizes
        self.draft = draft
        self.needs = needs
        self.bases = context.bases
        self.places = Places(context.plan, self.bases, sizes)

    def add(self, steps: Sequence[Step]) -> None:
        """All steps of one list."""
        questions, told = self._questions(steps)
        for number, step in enumerate(steps):
            if number in told:
                continue
            if number in questions:
                self._call(step, questions[number])
                continue
            if isinstance(step, Bind):
                place = self.places.element(step.place, _INDEX)
                late = self._late(step.var, steps[number + 1 :])
                self.draft.steps.append(Bound(late, place))
                return
            _ADDED[type(step)](self, step)

    def _inner(self, steps: Sequence[Step], known: dict[Var, int] | None = None) -> Draft:
        """Steps as a draft of their own, with sizes that are known inside."""
        draft = Draft()
        sizes = self.sizes.with_values(known or {})
        Preparation(self.context, sizes, draft, self.needs).add(steps)
        return draft

    def _late(self, variable: Var, steps: Sequence[Step]) -> Late:
        """Steps that wait for a variable's value."""

        def ready(value: int) -> Prepared:
            return prepare(self.context, steps, self.sizes.with_values({variable: value}))

        return Late(self.context.device, ready)

    def _flag(self, place: Place) -> Flag:
        based = self.places.element(place, _BOOL)
        return based.base, based.region.address

    # ------------------------------------------------------------ loops and branches

    def _loop(self, step: Loop) -> None:
        trips = self.sizes.value(step.trips)
        stops = tuple(map(self._flag, step.stops))
        if all(step.index not in atoms(s) for s in sizes_in(step.body)):
            self._equal_trips(self._inner(step.body), trips, stops)
            return
        count = trips * sum(1 for _ in every_step(step.body))
        if count > self.needs.ahead:
            places = [self.places.element(p, _BOOL) for p in step.stops]
            late = self._late(step.index, step.body)
            self.draft.steps.append(Trips(late, trips, tuple(places)))
            return
        self.needs.ahead -= count
        bodies = tuple(self._inner(step.body, {step.index: trip}) for trip in range(trips))
        if stops:
            self._repeat(bodies, trips, stops)
            return
        for body in bodies:
            self.draft.add(body, 1)

    def _equal_trips(self, body: Draft, trips: int, stops: tuple[Flag, ...]) -> None:
        """Trips that all start the same."""
        if not body.steps:
            return
        if stops or not body.is_plain():
            self._repeat((body,), trips, stops)
            return
        row = max(1, _ROW // len(body.steps))
        if trips > row:
            joined = Draft(body.words, body.patches, body.steps * row)
            self._repeat((joined,), trips // row, ())
            trips %= row
        self.draft.add(body, trips)

    def _repeat(self, bodies: tuple[Draft, ...], times: int, stops: tuple[Flag, ...]) -> None:
        if times:
            self.draft.steps.append(Branch("repeat", (0, 0), bodies, stops, times))

    def _while(self, step: While) -> None:
        bodies = (self._inner(step.test), self._inner(step.body))
        stops = tuple(map(self._flag, step.stops))
        self.draft.steps.append(Branch("loop", self._flag(step.condition), bodies, stops))

    def _if(self, step: If) -> None:
        bodies = (self._inner(step.then), self._inner(step.other))
        self.draft.steps.append(Branch("branch", self._flag(step.condition), bodies))

    def _check(self, step: Check) -> None:
        bodies = (self._inner(step.ahead),) if step.ahead else ()
        self.draft.steps.append(Branch("require", self._flag(step.place), bodies))

    def _questions(self, steps: Sequence[Step]) -> tuple[dict[int, Question], set[int]]:
        """Questions that calls ask themselves, by the calls' numbers; and the numbers of the steps
        that need not ask them. What is asked late must not be late for an input's memory."""
        context = self.context
        known = list(itertools.takewhile(lambda step: not isinstance(step, Bind), steps))
        questions: dict[int, Question] = {}
        told: set[int] = set()
        for asked in asked_in(context.plan.kernels, known):
            launch, call = known[asked.launch], known[asked.call]
            assert isinstance(launch, Launch) and isinstance(call, Call)
            if launch.kernel not in context.module.questions:
                continue
            question = Question(f"k{launch.kernel}", self.sizes.shape(launch.sizes))
            arrays = map(self.places.strided, (*call.arguments, *(r for _, r in call.results)))
            routine = self._routine(call, list(arrays), question)
            if routine and routine.answers and call.results[0][1].place.space != "input":
                questions[asked.call] = question
                told |= {asked.launch, asked.check}
        return questions, told

    # ------------------------------------------------------------ work

    def _launch(self, step: Launch) -> None:
        """The parameters of one launch, which all its functions share."""
        draft, bases = self.draft, self.bases
        configured = self._configured(step)
        first = len(draft.words)
        for place in step.buffers:
            draft.patch(bases.of(place), self.places.offset(place))
        draft.words += self.sizes.shape(step.sizes)
        for number in step.scalars:
            for i in range(words_of(self.context.plan.inputs[number])):
                draft.patch(bases.inputs[number] + i, 0)
        for offset in self._regions(configured.regions):
            draft.patch(bases.scratch, offset)
        draft.patch(bases.counters, 0)
        self.needs.counters = max(self.needs.counters, configured.counters)
        for start in configured.starts:
            label = " of ".join([start.function, *[", ".join(step.where)] * bool(step.where)])
            draft.work(start, first, label)

    def _configured(self, step: Launch) -> Configured:
        context = self.context
        kernel = context.plan.kernels[step.kernel]
        shared = [i for i, b in enumerate(kernel.buffers) if b.role != "row"]
        # all other memory begins on a boundary
        places = {
            i: self.places.offset(p) + (context.addresses[p.number] if p.space == "input" else 0)
            for i, p in zip(shared, step.buffers, strict=True)
        }
        sizes = self.sizes.shape(step.sizes)
        return context.module.configure(step.kernel, sizes, places, context.tuning)

    def _call(self, step: Call, question: Question | None = None) -> None:
        """A kernel's launch, or a step of the device's libraries."""
        draft, device = self.draft, self.context.device
        given = tuple(map(self.places.strided, step.arguments))
        made = tuple((k, self.places.strided(r)) for k, r in step.results)
        operands = [*given, *(m for _, m in made)]
        routine = self._routine(step, operands, question)
        if routine is None and step.op.kind is Kind.SCATTER:
            # kernels take values that lie side by side
            values, operands[1] = operands[1], dense(operands[1], self.bases.scratch, 0)
            routine = self._routine(step, operands)
            if routine is not None:
                size = math.prod(values.region.shape) * values.region.dtype.itemsize
                offset = self._regions((*routine.regions, size))[-1]
                operands[1] = dense(values, self.bases.scratch, offset)
                draft.steps.append(Copy(device, values, operands[1]))
        if routine is None:
            draft.steps.append(Compute(device, step.op, step.params, given, made))
            return
        if routine.copies and given[0] != made[0][1]:
            draft.steps.append(Copy(device, given[0], made[0][1]))
        regions = self._regions(routine.regions)
        for number, part in enumerate(routine.parts):
            if routine.answers and number == routine.answers:
                self._require_answer(regions)
            first = len(draft.words)
            for p in part.parameters:
                if isinstance(p, int):
                    draft.words.append(p)
                elif p.is_scratch:
                    draft.patch(self.bases.scratch, regions[p.number])
                else:
                    draft.patch(operands[p.number].base, operands[p.number].region.address)
            draft.work(part.start, first, part.start.function)
        if routine.answers == len(routine.parts):
            self._require_answer(regions)

    def _require_answer(self, regions: Sequence[int]) -> None:
        self.draft.steps.append(Branch("require", (self.bases.scratch, regions[-1])))

    def _regions(self, sizes: Sequence[int]) -> list[int]:
        """Where regions of scratch memory begin."""
        found, used = [], 0
        for size in sizes:
            found.append(used)
            used += rounded(size)
        self.needs.scratch = max(self.needs.scratch, used)
        return found

    def _routine(
        self, step: Call, arrays: Sequence[Based], question: Question | None = None
    ) -> Routine | None:
        """A kernel for a call, if there is one."""
        operands = []
        for array, found in zip(
            (*step.arguments, *(r for _, r in step.results)), arrays, strict=True
        ):
            address, r = found.region.address, found.region
            if array.place.space == "input":
                address += self.context.addresses[array.place.number]
            operands.append(Operand(r.dtype, r.shape, r.strides, math.gcd(address, 16)))
        if isinstance(step.params, Weighing):
            return attention_for(step.params, operands, [k for k, _ in step.results])
        return routine_for(step.op, step.params, operands, question)

    def _product(self, step: Contract) -> None:
        def matrix(m: Matrix, rows: Size, columns: Size, dtype: Any = step.factors) -> Based:
            shape, strides = (*step.batch, rows, columns), (*m.batch, m.row, m.column)
            return self.places.based(m.place, dtype, m.offset, shape, strides)

        m, n, k = step.m, step.n, step.k
        factors = matrix(step.a, m, k), matrix(step.b, k, n)
        roomy = *factors, matrix(step.c, m, n + step.spare, step.dtype)
        knows = self.context.device.knows_blas()
        padded = in_padded_rows(*map(self._placed, roomy)) if knows else None
        if padded is None:
            self._multiply((*factors, matrix(step.c, m, n, step.dtype)))
            return
        regions = self._regions([0 if r is None else bytes_of(r) for r in padded])
        there = [
            known if r is None else Based(self.bases.scratch, replace(r, address=offset))
            for known, r, offset in zip(roomy, padded, regions, strict=True)
        ]
        for number in (0, 1):
            self._copy_rows(roomy[number], there[number])
        self._multiply(there)
        self._copy_rows(there[2], roomy[2])

    def _placed(self, operand: Based) -> Region:
        """A region with its address, as far as boundaries matter."""
        region = operand.region
        known = zip(self.bases.inputs, self.context.addresses, strict=True)
        begin = dict(known).get(operand.base, 0)
        return replace(region, address=region.address + begin)

    def _copy_rows(self, source: Based, target: Based) -> None:
        if source == target:
            return
        draft, first = self.draft, len(self.draft.words)
        start, words = copied(source.region, target.region)
        for based in (source, target):
            draft.patch(based.base, based.region.address)
        draft.words += words
        draft.work(start, first, start.function)

    def _multiply(self, operands: Sequence[Based]) -> None:
        """A product by cuBLAS, or by the device's libraries."""
        a, b, c = (o.region for o in operands)
        parts = in_batches(a, b, c) if self.context.device.knows_blas() else []
        found = [f for f in (blas_product(*part) for part in parts) if f is not None]
        if not parts or len(found) < len(parts):
            self.draft.steps.append(Multiply(self.context.device, *operands))
            return
        for part, (product, order) in zip(parts, found, strict=True):
            first = len(self.draft.words)
            for number in order:
                self.draft.patch(operands[number].base, part[number].address)
            self.draft.work(product, first, f"the product of {a.shape} and {b.shape}")


def dense(array: Based, base: int, offset: int) -> Based:
    """An array like this, in C order and elsewhere."""
    shape = array.region.shape
    strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return Based(base, Region(offset, array.region.dtype, shape, strides))


_ADDED: dict[type, Callable[[Preparation, Any], None]] = {
    Launch: Preparation._launch,
    Contract: Preparation._product,
    Call: Preparation._call,
    Check: Preparation._check,
    Loop: Preparation._loop,
    While: Preparation._while,
    If: Preparation._if,
}
