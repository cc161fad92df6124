"""A plan on a device: its memory, and what is ready for sizes that were met before.

In: a `Plan` and a `Device`. Out: a `Program`, called with device arrays and scalars, which gives
the fresh results. What sizes decide is kept by the inputs' shapes, strides and alignment; a call
then allocates and runs one tape:

    program = Program(plan, CupyDevice(0))
    (y,) = program([x, 2.0])
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.backends.cuda_device import CheckFailed, Device, Region
from npjit.backends.cuda_draft import Draft, Prepared
from npjit.backends.cuda_form import Form, functions
from npjit.backends.cuda_places import LOCAL, Bases, Places, Sizes, rounded, words_of
from npjit.backends.cuda_prepare import Context, drafted, loaded
from npjit.backends.cuda_recall import Outline, Stored
from npjit.codegen.cuda import CudaModule, print_cuda
from npjit.codegen.cuda_launch import UNTUNED, Tuning
from npjit.codegen.cuda_terms import taken_apart
from npjit.core.dtypes import kind_of
from npjit.core.layout import contiguous_strides
from npjit.core.size import Size, Var
from npjit.schedule.plan import (
    Call,
    Contract,
    InputSpec,
    Launch,
    Place,
    Plan,
    Save,
    Step,
    every_step,
    places_in,
)

_HOLDS = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt}
# sets of sizes that are kept for the next call
_SIZES_KEPT = 512


# tells the tuning for inputs of sizes that a program meets for the first time
Choice = Callable[["Program", Sequence[Any]], Tuning]


@dataclass
class Instance:
    """A plan for given input sizes: its results, its memory, and its steps when they are ready."""

    sizes: Sizes
    outputs: list[tuple[tuple[int, ...], Any, tuple[int, ...] | None]]
    arena: int
    steps: tuple[Step, ...]
    tuning: Tuning
    prepared: Prepared | None = None


class Program:
    """See the module's docstring. `fastmath` as in codegen.cuda; `choose` finds the tuning for
    inputs of new sizes."""

    def __init__(
        self,
        plan: Plan,
        device: Device,
        fastmath: str | None = None,
        choose: Choice | None = None,
    ) -> None:
        self.device = device
        self._choose = choose
        self.module: CudaModule = print_cuda(plan, fastmath, device.has_tensor_tiles())
        # the same with loops inside kernels; the kernels of both are the module's
        self.plan = self.module.plan
        self.unjoined = plan
        self._bases = Bases(self.plan)
        self._instances: dict[Any, Instance] = {}
        self._fitting: dict[Any, bool] = {}
        self.outline = outline_of(self.plan)

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether the plan is made for such sizes."""
        known = (
            *[inputs[i] for i in self.outline.ints],
            *[(inputs[i].shape, inputs[i].strides) for i in self.outline.arrays],
        )
        found = self._fitting.get(known)
        if found is None:
            found = guards_hold(self.plan, bind(self.plan, inputs))
            keep(self._fitting, known, found)
        return found

    def written_inputs(self) -> list[int]:
        """Numbers of inputs whose memory a call changes."""
        places: list[Place] = []
        for step in every_step(self.plan.steps):
            if isinstance(step, Launch):
                shared = [b for b in self.plan.kernels[step.kernel].buffers if b.role != "row"]
                pairs = zip(shared, step.buffers, strict=True)
                places += [place for b, place in pairs if b.role != "in"]
            elif isinstance(step, Contract):
                places.append(step.c.place)
            elif isinstance(step, Call):
                places += [r.place for _, r in step.results]
        return sorted({p.number for p in places if p.space == "input"})

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        return self.run(self.known_instance(inputs), inputs)

    def run(self, instance: Instance, inputs: Sequence[Any]) -> list[Any]:
        """The fresh results for inputs of the instance's sizes. When a check fails, inputs that
        were written before are what they were."""
        device, addresses = self.device, self.addresses(inputs)
        prepared = self.prepared(instance, addresses)
        results = [device.empty(*spec) for spec in instance.outputs]
        held, arena = device.allocate(instance.arena)
        also_held, scratch = device.allocate(prepared.scratch)
        bases = [w for given, a in zip(inputs, addresses, strict=True) for w in _words(given, a)]
        bases += [device.address(r) for r in results]
        bases += [arena, scratch, device.counters(prepared.counters)]
        saved = [self._saved(s, instance.sizes, inputs, bases) for s in self.plan.saves]
        for given, place in saved:
            device.copy(given, place)
        if not prepared.tape.run(bases):
            for given, place in saved:
                device.copy(place, given)
            raise CheckFailed
        del held, also_held
        return results

    def _saved(
        self, save: Save, sizes: Sizes, inputs: Sequence[Any], bases: Sequence[int]
    ) -> tuple[Region, Region]:
        """An input's memory, and the place that keeps its contents."""
        array = inputs[save.input]
        dtype = self.plan.inputs[save.input].dtype
        strides = tuple(s // dtype.itemsize for s in array.strides)
        given = Region(self.device.address(array), dtype, array.shape, strides)
        places = Places(self.plan, self._bases, sizes)
        rows = contiguous_strides(array.shape)
        return given, places.based(save.place, dtype, 0, array.shape, rows).at(bases)

    def prepared(self, instance: Instance, addresses: Sequence[int]) -> Prepared:
        """The instance's steps, ready to run."""
        return instance.prepared or self._prepare(instance, addresses)[0]

    def _prepare(self, instance: Instance, addresses: Sequence[int]) -> tuple[Prepared, Form]:
        context = self._context(instance, addresses)
        draft, needs = drafted(context, instance.steps, instance.sizes)
        form = draft.form()
        instance.prepared = loaded(context, form, needs)
        return instance.prepared, form

    def stored(self, instance: Instance, addresses: Sequence[int]) -> Stored:
        """The instance as data, made ready to run."""
        prepared, form = self._prepare(instance, addresses)
        module, names = self.module, functions(form)
        codes = self.device.codes(module.source, names, module.options)
        results = [(shape, perm) for shape, _, perm in instance.outputs]
        arena = rounded(instance.arena)
        memory = arena + prepared.scratch
        return Stored(results, arena, memory, prepared.counters, form, codes)

    def draft(self, instance: Instance, inputs: Sequence[Any]) -> Draft:
        """What an instance starts."""
        context = self._context(instance, self.addresses(inputs))
        return drafted(context, instance.steps, instance.sizes)[0]

    def _context(self, instance: Instance, addresses: Sequence[int]) -> Context:
        tuning = instance.tuning
        return Context(self.plan, self.module, self.device, addresses, tuning, self._bases)

    def addresses(self, inputs: Sequence[Any]) -> list[int]:
        """Where the arrays among the inputs lie; 0 for scalars."""
        found = [0] * len(inputs)
        for i in self.outline.arrays:
            found[i] = self.device.address(inputs[i])
        return found

    def known_instance(self, inputs: Sequence[Any]) -> Instance:
        """The plan for these inputs' sizes."""
        known = self.outline.sizes_of(self.device, inputs)
        instance = self._instances.get(known)
        if instance is None:
            tuning = UNTUNED if self._choose is None else self._choose(self, inputs)
            instance = self.instance(inputs, tuning)
            keep(self._instances, known, instance)
        return instance

    def instance(self, inputs: Sequence[Any], tuning: Tuning = UNTUNED) -> Instance:
        """The plan for these inputs' sizes, run as `tuning` says."""
        plan = self.plan
        sizes = Sizes(bind(plan, inputs))
        assert guards_hold(plan, sizes.values), "the caller asks `fits` first"
        outputs = [
            (sizes.shape(o.shape), o.dtype, o.perm) for o in plan.outputs if o.kind == "fresh"
        ]
        steps = self._steps(sizes, tuning)
        arena = rounded(sizes.value(plan.arena)) + LOCAL * len(plan.locals)
        # launches that were joined may need none of it
        if all(p.space in ("input", "output") for p in places_in((*steps, *plan.saves))):
            arena = 0
        return Instance(sizes, outputs, arena, steps, tuning)

    def _steps(self, sizes: Sizes, tuning: Tuning) -> tuple[Step, ...]:
        """The steps with kernels that do the work of several where they fit the sizes."""
        joined = self.module.joined
        unfit = {
            s.kernel: joined[s.kernel]
            for s in every_step(self.plan.steps)
            if isinstance(s, Launch)
            and s.kernel in joined
            and not (tuning.joined and joined[s.kernel].fits(s, sizes.value))
        }
        if all(printer.apart for printer in unfit.values()):
            return taken_apart(self.plan.steps, unfit)
        return self.unjoined.steps


def outline_of(plan: Plan) -> Outline:
    """What the runtime knows of a plan whatever the sizes."""
    # the scalars that are sizes
    ints = sorted({s.input for s in plan.sources.values() if s.what == "value"})
    arrays = [i for i, s in enumerate(plan.inputs) if not s.is_scalar]
    words = ""
    bases: list[int] = []
    for number, given in enumerate(plan.inputs):
        bases += range(len(words), len(words) + words_of(given))
        words += _letters(given, number in ints)
    return Outline(words, bases, ints, arrays, bool(plan.guards))


def _letters(given: InputSpec, is_size: bool) -> str:
    """What an input's words are to the runtime."""
    if given.is_scalar:
        return "s" if is_size else "n" * words_of(given)
    return "a" + "s" * 2 * len(given.shape)


def bind(plan: Plan, inputs: Sequence[Any]) -> dict[Var, Size]:
    """The values of the plan's size variables."""
    values: dict[Var, Size] = {}
    for variable, source in plan.sources.items():
        given = inputs[source.input]
        if source.what == "value":
            values[variable] = int(given)
        elif source.what == "extent":
            values[variable] = given.shape[source.axis]
        else:
            values[variable] = given.strides[source.axis] // given.itemsize
    return values


def guards_hold(plan: Plan, values: dict[Var, Size]) -> bool:
    """Whether sizes are those that a plan is made for."""
    sizes = Sizes(values)
    return all(_HOLDS[g.relation](sizes.value(g.a), sizes.value(g.b)) for g in plan.guards)


def keep(table: dict[Any, Any], key: Any, value: Any) -> None:
    """Enter a value, in place of all others when there are too many."""
    if len(table) >= _SIZES_KEPT:
        table.clear()
    table[key] = value


def _words(value: Any, address: int) -> list[int]:
    """An argument as bases: an array's address, or a scalar as words of 64 bits."""
    if address or not isinstance(value, (bool, int, float, complex, np.generic)):
        return [address]
    kind = kind_of(np.asarray(value).dtype)
    if kind == "c":
        return [int(np.float64(p).view(np.int64)) for p in (value.real, value.imag)]
    if kind == "f":
        return [int(np.float64(value).view(np.int64))]
    return [int(np.asarray(value).astype(np.int64))]
