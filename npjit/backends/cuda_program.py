"""A plan on a device: memory, launches, matrix products, calls; loops and branches are walked by
the host.

In: a `Plan` and a `Device`. Out: a `Program`, called with device arrays and scalars, which gives
the fresh results. What sizes decide is kept by the inputs' shapes, strides and alignment; a call
then allocates and runs the tapes of its segments:

    program = Program(plan, CupyDevice(0))
    (y,) = program([x, 2.0])
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npjit.backends.cuda_device import Device
from npjit.backends.cuda_prepare import (
    LOCAL,
    Preparation,
    Prepared,
    Segment,
    Sizes,
    rounded,
    unknowns_of,
)
from npjit.backends.cuda_walk import Instance, Walk
from npjit.codegen.cuda import CudaModule, print_cuda
from npjit.codegen.cuda_launch import UNTUNED, Tuning
from npjit.core.size import Size, Var, atoms
from npjit.schedule.plan import (
    Bind,
    Call,
    Contract,
    If,
    Launch,
    Loop,
    Place,
    Plan,
    Step,
    While,
    bodies,
    every_step,
    places_in,
)

_HOLDS = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt}
# sets of sizes that are kept for the next call
_SIZES_KEPT = 512


# tells the tuning for inputs of sizes that a program meets for the first time
Choice = Callable[["Program", Sequence[Any]], Tuning]


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
        self.module: CudaModule = print_cuda(plan, fastmath)
        # the same with loops inside kernels; the kernels of both are the module's
        self.plan = self.module.plan
        self.unjoined = plan
        self.segments: dict[int, list[Segment | Step]] = {}
        self._numbers = itertools.count()
        self._cut(plan.steps)
        self._cut(self.plan.steps)
        self._instances: dict[Any, Instance] = {}
        self._fitting: dict[Any, bool] = {}
        self._arrays = [i for i, s in enumerate(plan.inputs) if not s.is_scalar]
        # the scalars that are sizes
        self.ints = sorted({s.input for s in plan.sources.values() if s.what == "value"})

    def _cut(self, steps: tuple[Step, ...]) -> None:
        """Join neighbouring plain steps of a body, and of the bodies inside."""
        found: list[Segment | Step] = []
        plain: list[Step] = []

        def close() -> None:
            if plain:
                unknown = unknowns_of(plain, self.plan.sources)
                found.append(Segment(next(self._numbers), tuple(plain), unknown))
                plain.clear()

        self.segments[id(steps)] = found
        for step in steps:
            if isinstance(step, Bind | Loop | While | If):
                close()
                found.append(step)
                for body in bodies(step):
                    self._cut(body)
            else:
                plain.append(step)
        close()

    def unknowns(self, size: Size) -> list[Var]:
        """The variables of a size that loops and branches find."""
        return [v for v in atoms(size) if v not in self.plan.sources]

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether the plan is made for such sizes."""
        known = (
            *[inputs[i] for i in self.ints],
            *[(inputs[i].shape, inputs[i].strides) for i in self._arrays],
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
        """The fresh results for inputs of the instance's sizes."""
        device, addresses = self.device, self.addresses(inputs)
        results = [device.empty(*spec) for spec in instance.outputs]
        held, arena = device.allocate(instance.arena)
        bases = [w for given, a in zip(inputs, addresses, strict=True) for w in _words(given, a)]
        bases += [device.address(r) for r in results]
        Walk(self, instance, inputs, addresses, [*bases, arena]).whole()
        del held
        return results

    def addresses(self, inputs: Sequence[Any]) -> list[int]:
        """Where the arrays among the inputs lie; 0 for scalars."""
        found = [0] * len(inputs)
        for i in self._arrays:
            found[i] = self.device.address(inputs[i])
        return found

    def known_instance(self, inputs: Sequence[Any]) -> Instance:
        """The plan for these inputs' sizes."""
        known = self.sizes_of(inputs)
        instance = self._instances.get(known)
        if instance is None:
            tuning = UNTUNED if self._choose is None else self._choose(self, inputs)
            instance = self.instance(inputs, tuning)
            keep(self._instances, known, instance)
        return instance

    def sizes_of(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """All of the inputs that launches depend on, but for the addresses themselves."""
        key: list[Any] = [inputs[i] for i in self.ints]
        for i in self._arrays:
            a = inputs[i]
            key += (a.shape, a.strides, self.device.address(a) % 16)
        return tuple(key)

    def instance(self, inputs: Sequence[Any], tuning: Tuning = UNTUNED) -> Instance:
        """The plan for these inputs' sizes, run as `tuning` says."""
        plan = self.plan
        sizes = Sizes(bind(plan, inputs))
        assert guards_hold(plan, sizes.values), "the caller asks `fits` first"
        outputs = [
            (sizes.shape(o.shape), o.dtype, o.perm) for o in plan.outputs if o.kind == "fresh"
        ]
        joined = tuning.joined and all(
            self.module.joined[s.kernel].fits(s, sizes.value)
            for s in every_step(plan.steps)
            if isinstance(s, Launch) and s.kernel in self.module.joined
        )
        steps = plan.steps if joined else self.unjoined.steps
        arena = rounded(sizes.value(plan.arena)) + LOCAL * len(plan.locals)
        # launches that were joined may need none of it
        if all(p.space in ("input", "output") for p in places_in((*steps, *plan.saves))):
            arena = 0
        return Instance(sizes, outputs, arena, steps, tuning)

    def prepared(
        self, segment: Segment, sizes: Sizes, addresses: Sequence[int], tuning: Tuning
    ) -> Prepared:
        """A segment, ready to run."""
        preparation = self.preparation(segment.steps, sizes, addresses, tuning)
        names, module = preparation.functions(), self.module
        found = self.device.functions(module.source, names, module.options) if names else []
        functions = dict(zip(names, found, strict=True))
        return preparation.prepared(self.device, functions)

    def preparation(
        self,
        steps: Sequence[Step],
        sizes: Sizes,
        addresses: Sequence[int],
        tuning: Tuning = UNTUNED,
    ) -> Preparation:
        """What makes steps ready for these sizes and input addresses."""
        return Preparation(self.plan, self.module, steps, sizes, addresses, tuning)


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
    kind = np.asarray(value).dtype.kind
    if kind == "c":
        return [int(np.float64(p).view(np.int64)) for p in (value.real, value.imag)]
    if kind == "f":
        return [int(np.float64(value).view(np.int64))]
    return [int(np.asarray(value).astype(np.int64))]
