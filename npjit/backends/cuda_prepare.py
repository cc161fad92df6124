"""Steps of a plan made ready for one set of sizes: what to start, and where addresses go.

In: a `Segment` (steps without loops and branches), the values of size variables, the alignment of
inputs. Out: a `Prepared`, whose tape the runtime runs. Its addresses are relative to numbered
*bases*: the inputs (an array's address, a scalar's one or two words), the fresh outputs, the arena,
the scratch memory, the counters.

    words     [x's address, y's address, 1000, ...]       the parameters of all launches
    patches   word 0 is base 0 + 0, word 1 is base 1 + 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit import _runtime
from npjit.backends.cuda_device import Device, Region
from npjit.backends.cuda_host import Based, Compute, Copy, Multiply, Require
from npjit.codegen.cuda import CudaModule
from npjit.codegen.cuda_calls import Operand, Routine, routine_for
from npjit.codegen.cuda_launch import Configured, Start, Tuning
from npjit.core.size import Shape, Size, Var, atoms, substitute
from npjit.schedule.plan import (
    Call,
    Check,
    Contract,
    InputSpec,
    Launch,
    Matrix,
    Place,
    Plan,
    Step,
    Strided,
    sizes_in,
)

_BOOL = np.dtype("?")
# regions of memory lie on boundaries of so many bytes
_BOUNDARY = 256
# room of a single element, whatever its type
LOCAL = 16


@dataclass(frozen=True)
class Segment:
    """Steps that follow each other; `unknowns` are the variables of their sizes that inputs alone
    do not tell."""

    number: int
    steps: tuple[Step, ...]
    unknowns: tuple[Var, ...]


@dataclass(frozen=True)
class Prepared:
    """A segment's launches, the bytes of scratch memory and the number of counters they need."""

    tape: _runtime.Tape
    scratch: int
    counters: int


class Bases:
    """How a plan's addresses and scalars are numbered."""

    def __init__(self, plan: Plan) -> None:
        self.inputs: list[int] = []
        count = 0
        for given in plan.inputs:
            self.inputs.append(count)
            count += words_of(given)
        self.outputs = count
        self.arena = count + sum(o.kind == "fresh" for o in plan.outputs)
        self.scratch, self.counters = self.arena + 1, self.arena + 2

    def of(self, place: Place) -> int:
        """The number of the address that a place is relative to."""
        if place.space == "input":
            return self.inputs[place.number]
        return self.outputs + place.number if place.space == "output" else self.arena


def words_of(given: InputSpec) -> int:
    """How many bases an input is: complex scalars are two."""
    return 2 if given.is_scalar and given.dtype.kind == "c" else 1


class Sizes:
    """The values of a plan's size variables."""

    def __init__(self, values: Mapping[Var, Size]) -> None:
        self.values = dict(values)

    def value(self, size: Size) -> int:
        """A size as a number."""
        if isinstance(size, int):
            return size
        found = substitute(size, self.values)
        assert isinstance(found, int)
        return found

    def shape(self, sizes: Shape) -> tuple[int, ...]:
        """Several sizes."""
        return tuple(map(self.value, sizes))


class Preparation:
    """Makes the `Prepared` of a segment; `addresses` are those of the inputs."""

    def __init__(
        self,
        plan: Plan,
        module: CudaModule,
        steps: Sequence[Step],
        sizes: Sizes,
        addresses: Sequence[int],
        tuning: Tuning,
    ) -> None:
        self.plan = plan
        self.tuning = tuning
        self.sizes = sizes
        self.steps = steps
        self.bases = Bases(plan)
        self.locals = rounded(sizes.value(plan.arena))
        self.words: list[int] = []
        self.patches: list[tuple[int, int, int]] = []
        # launches and host steps, as the runtime's Tape takes them
        self.made: list[Any] = []
        self.scratch = self.counters = 0
        # number of the step -> what to start
        self.launches = {
            number: self._configure(module, step, addresses)
            for number, step in enumerate(steps)
            if isinstance(step, Launch)
        }
        self.routines = {
            number: self._routine(step, addresses)
            for number, step in enumerate(steps)
            if isinstance(step, Call)
        }

    def functions(self) -> list[str]:
        """The functions that the segment starts."""
        starts = [s for c in self.launches.values() for s in c.starts]
        starts += [r.start for r in self.routines.values() if r is not None]
        return list(dict.fromkeys(s.function for s in starts))

    def _routine(self, step: Call, addresses: Sequence[int]) -> Routine | None:
        """A kernel for a call, if there is one."""
        operands = []
        for array in (*step.arguments, *(r for _, r in step.results)):
            found = self._strided(array)
            address = found.region.address
            if array.place.space == "input":
                address += addresses[array.place.number]
            r = found.region
            operands.append(Operand(r.dtype, r.shape, r.strides, address & -address or 16))
        return routine_for(step.op, step.params, operands)

    def _configure(self, module: CudaModule, step: Launch, addresses: Sequence[int]) -> Configured:
        kernel = self.plan.kernels[step.kernel]
        shared = [i for i, b in enumerate(kernel.buffers) if b.role != "row"]
        # all other memory begins on a boundary
        places = {
            i: self._offset(p) + (addresses[p.number] if p.space == "input" else 0)
            for i, p in zip(shared, step.buffers, strict=True)
        }
        return module.configure(step.kernel, self.sizes.shape(step.sizes), places, self.tuning)

    # ------------------------------------------------------------ memory

    def _offset(self, place: Place) -> int:
        if place.space == "local":
            return self.locals + LOCAL * place.number
        return self.sizes.value(place.offset)

    def based(self, place: Place, dtype: Any, offset: Size, shape: Shape, strides: Shape) -> Based:
        """An array at a place, its offset in elements."""
        start = self._offset(place) + self.sizes.value(offset) * dtype.itemsize
        region = Region(start, dtype, self.sizes.shape(shape), self.sizes.shape(strides))
        return Based(self.bases.of(place), region)

    def element(self, place: Place, dtype: Any) -> Based:
        """A single element."""
        return self.based(place, dtype, 0, (), ())

    # ------------------------------------------------------------ steps

    def prepared(self, device: Device, functions: Mapping[str, Any]) -> Prepared:
        """Everything, with the functions by name that the device has loaded."""
        for number, step in enumerate(self.steps):
            if isinstance(step, Launch):
                self._launch(step, self.launches[number], functions)
            elif isinstance(step, Contract):
                self.made.append(self._product(step, device))
            elif isinstance(step, Call):
                self._call(step, self.routines[number], device, functions)
            else:
                assert isinstance(step, Check)
                self.made.append(Require(device, self.element(step.place, _BOOL)))
        tape = _runtime.Tape(self.words, self.patches, self.made)
        return Prepared(tape, self.scratch, self.counters)

    def _patch(self, base: int, offset: int) -> None:
        """One more word: what differs from call to call."""
        self.patches.append((len(self.words), base, offset))
        self.words.append(0)

    def _start(
        self, start: Start, first: int, functions: Mapping[str, Any], where: Sequence[str] = ()
    ) -> None:
        """Start a function, for the user's lines `where`, with the words from number `first` on."""
        function, words = functions[start.function], len(self.words) - first
        label = " of ".join([start.function, *[", ".join(where)] * bool(where)])
        self.made.append(("launch", function, *start.grid, start.block, first, words, label))

    def _launch(self, step: Launch, configured: Configured, functions: Mapping[str, Any]) -> None:
        """The parameters of one launch, which all its functions share."""
        first = len(self.words)
        for place in step.buffers:
            self._patch(self.bases.of(place), self._offset(place))
        self.words += self.sizes.shape(step.sizes)
        for number in step.scalars:
            for i in range(words_of(self.plan.inputs[number])):
                self._patch(self.bases.inputs[number] + i, 0)
        used = 0
        for size in configured.regions:
            self._patch(self.bases.scratch, used)
            used += rounded(size)
        self._patch(self.bases.counters, 0)
        self.scratch = max(self.scratch, used)
        self.counters = max(self.counters, configured.counters)
        for start in configured.starts:
            self._start(start, first, functions, step.where)

    def _call(
        self, step: Call, routine: Routine | None, device: Device, functions: Mapping[str, Any]
    ) -> None:
        """A kernel's launch, or a step of the device's libraries."""
        given = tuple(map(self._strided, step.arguments))
        made = tuple((k, self._strided(r)) for k, r in step.results)
        if routine is None:
            self.made.append(Compute(device, step.op, step.params, given, made))
            return
        operands = [*given, *(m for _, m in made)]
        if routine.copies and given[0] != made[0][1]:
            self.made.append(Copy(device, given[0], made[0][1]))
        first = len(self.words)
        for number in routine.arrays:
            self._patch(operands[number].base, operands[number].region.address)
        self.words += routine.sizes
        self._start(routine.start, first, functions)

    def _product(self, step: Contract, device: Device) -> Multiply:
        def matrix(m: Matrix, rows: Size, columns: Size) -> Based:
            shape, strides = (*step.batch, rows, columns), (*m.batch, m.row, m.column)
            return self.based(m.place, step.dtype, m.offset, shape, strides)

        m, n, k = step.m, step.n, step.k
        a, b, c = matrix(step.a, m, k), matrix(step.b, k, n), matrix(step.c, m, n)
        return Multiply(device.multiplier(a.region, b.region, c.region), (a, b, c))

    def _strided(self, array: Strided) -> Based:
        return self.based(array.place, array.dtype, array.offset, array.shape, array.strides)


def unknowns_of(steps: Sequence[Step], known: Mapping[Var, Any]) -> tuple[Var, ...]:
    """The variables of these steps' sizes beside the known ones."""
    found = {v for size in sizes_in(tuple(steps)) for v in atoms(size)}
    return tuple(sorted((v for v in found if v not in known), key=lambda v: v.name))


def rounded(size: int) -> int:
    """A size in bytes, up to the next boundary."""
    return -(-size // _BOUNDARY) * _BOUNDARY
