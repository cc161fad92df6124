"""Steps of a plan made ready for one set of sizes: what to start, and where addresses go.

In: a `Segment` (steps without loops and branches), the values of size variables, the alignment of
inputs. Out: a `Prepared`. Its addresses are relative to numbered bases: the inputs, the fresh
outputs, the arena, the scratch memory, the counters.

    words     [x's address, y's address, 1000, ...]       the parameters of all launches
    patches   word 0 is base 0 + 0, word 1 is base 1 + 0
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npjit.backends.cuda_device import Region
from npjit.codegen.cuda import CudaModule
from npjit.codegen.cuda_calls import Operand, Routine, routine_for
from npjit.codegen.cuda_launch import Configured
from npjit.core.op import Op
from npjit.core.size import Shape, Size, Var, atoms, substitute
from npjit.schedule.plan import Call, Check, Contract, Launch, Matrix, Place, Plan, Step, Strided

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
class Patch:
    """Word `word` of the parameters is address number `base` plus `offset`."""

    word: int
    base: int
    offset: int


@dataclass(frozen=True)
class StartStep:
    """Start a function with the parameters from word `first` on."""

    function: Any
    grid: tuple[int, int]
    block: int
    first: int


@dataclass(frozen=True)
class Based:
    """A region whose address is relative to a base."""

    base: int
    region: Region

    def at(self, bases: Sequence[int]) -> Region:
        """The region itself."""
        r = self.region
        return Region(bases[self.base] + r.address, r.dtype, r.shape, r.strides)


@dataclass(frozen=True)
class MultiplyStep:
    """c = a @ b."""

    a: Based
    b: Based
    c: Based


@dataclass(frozen=True)
class ComputeStep:
    """A row on whole arrays."""

    op: Op
    params: Any
    given: tuple[Based, ...]
    made: tuple[tuple[int, Based], ...]


@dataclass(frozen=True)
class CopyStep:
    """target = source."""

    source: Based
    target: Based


@dataclass(frozen=True)
class CheckStep:
    """Stop unless the bool is true."""

    flag: Based
    message: str


@dataclass
class Prepared:
    """See the module's docstring. `scalars` are (first word, input) pairs; the words' addresses
    stand at `pointers`."""

    scratch: int = 0
    counters: int = 0
    steps: list[StartStep | MultiplyStep | ComputeStep | CopyStep | CheckStep] = field(
        default_factory=list
    )
    patches: list[Patch] = field(default_factory=list)
    scalars: list[tuple[int, int]] = field(default_factory=list)
    words: Any = None
    table: Any = None
    pointers: int = 0

    def settle(self, words: Sequence[int]) -> None:
        """Put the words and the table of their addresses in memory."""
        count = max(1, len(words))
        self.words = (ctypes.c_longlong * count)(*words)
        start = ctypes.addressof(self.words)
        self.table = (ctypes.c_longlong * count)(*range(start, start + 8 * len(words), 8))
        self.pointers = ctypes.addressof(self.table)


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
    """Makes the `Prepared` of a segment."""

    def __init__(
        self,
        plan: Plan,
        module: CudaModule,
        steps: Sequence[Step],
        sizes: Sizes,
        addresses: Sequence[int],
    ) -> None:
        self.plan = plan
        self.sizes = sizes
        self.steps = steps
        self.arena = len(plan.inputs) + sum(o.kind == "fresh" for o in plan.outputs)
        self.locals = rounded(sizes.value(plan.arena))
        self.made = Prepared()
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
        return module.configure(step.kernel, self.sizes.shape(step.sizes), places)

    # ------------------------------------------------------------ memory

    def _base(self, place: Place) -> int:
        """The number of the address that a place is relative to."""
        if place.space == "input":
            return place.number
        return len(self.plan.inputs) + place.number if place.space == "output" else self.arena

    def _offset(self, place: Place) -> int:
        if place.space == "local":
            return self.locals + LOCAL * place.number
        return self.sizes.value(place.offset)

    def based(self, place: Place, dtype: Any, offset: Size, shape: Shape, strides: Shape) -> Based:
        """An array at a place, its offset in elements."""
        start = self._offset(place) + self.sizes.value(offset) * dtype.itemsize
        region = Region(start, dtype, self.sizes.shape(shape), self.sizes.shape(strides))
        return Based(self._base(place), region)

    def element(self, place: Place, dtype: Any) -> Based:
        """A single element."""
        return self.based(place, dtype, 0, (), ())

    # ------------------------------------------------------------ steps

    def prepared(self, find: Callable[[Sequence[str]], Sequence[Any]]) -> Prepared:
        """Everything, with functions found by their names."""
        names = self.functions()
        functions = dict(zip(names, find(names), strict=True)) if names else {}
        words: list[int] = []
        for number, step in enumerate(self.steps):
            if isinstance(step, Launch):
                self._launch(step, self.launches[number], words, functions)
            elif isinstance(step, Contract):
                self.made.steps.append(self._product(step))
            elif isinstance(step, Call):
                self._call(step, self.routines[number], words, functions)
            else:
                assert isinstance(step, Check)
                flag = self.element(step.place, _BOOL)
                self.made.steps.append(CheckStep(flag, step.message))
        self.made.settle(words)
        return self.made

    def _launch(
        self,
        step: Launch,
        configured: Configured,
        words: list[int],
        functions: Mapping[str, Any],
    ) -> None:
        """The parameters of one launch, which all its functions share."""
        made = self.made
        first = len(words)

        def patch(base: int, offset: int) -> None:
            made.patches.append(Patch(len(words), base, offset))
            words.append(0)

        for place in step.buffers:
            patch(self._base(place), self._offset(place))
        words += self.sizes.shape(step.sizes)
        for number in step.scalars:
            made.scalars.append((len(words), number))
            words += [0] * (2 if self.plan.inputs[number].dtype.kind == "c" else 1)
        used = 0
        for size in configured.regions:
            patch(self.arena + 1, used)
            used += rounded(size)
        patch(self.arena + 2, 0)
        made.scratch = max(made.scratch, used)
        made.counters = max(made.counters, configured.counters)
        made.steps += [
            StartStep(functions[s.function], s.grid, s.block, first) for s in configured.starts
        ]

    def _call(
        self,
        step: Call,
        routine: Routine | None,
        words: list[int],
        functions: Mapping[str, Any],
    ) -> None:
        """A kernel's launch, or a step of the device's libraries."""
        given = tuple(map(self._strided, step.arguments))
        made = tuple((k, self._strided(r)) for k, r in step.results)
        if routine is None:
            self.made.steps.append(ComputeStep(step.op, step.params, given, made))
            return
        operands = [*given, *(m for _, m in made)]
        if routine.copies and given[0] != made[0][1]:
            self.made.steps.append(CopyStep(given[0], made[0][1]))
        first = len(words)
        for number in routine.arrays:
            found = operands[number]
            self.made.patches.append(Patch(len(words), found.base, found.region.address))
            words.append(0)
        words += routine.sizes
        start = routine.start
        function = functions[start.function]
        self.made.steps.append(StartStep(function, start.grid, start.block, first))

    def _product(self, step: Contract) -> MultiplyStep:
        def matrix(m: Matrix, rows: Size, columns: Size) -> Based:
            shape, strides = (*step.batch, rows, columns), (*m.batch, m.row, m.column)
            return self.based(m.place, step.dtype, m.offset, shape, strides)

        m, n, k = step.m, step.n, step.k
        return MultiplyStep(matrix(step.a, m, k), matrix(step.b, k, n), matrix(step.c, m, n))

    def _strided(self, array: Strided) -> Based:
        return self.based(array.place, array.dtype, array.offset, array.shape, array.strides)


def unknowns_of(steps: Sequence[Step], known: Mapping[Var, Any]) -> tuple[Var, ...]:
    """The variables of these steps' sizes beside the known ones."""
    from npjit.codegen.cpp_steps import sizes_in

    found = {v for size in sizes_in(tuple(steps)) for v in atoms(size)}
    return tuple(sorted((v for v in found if v not in known), key=lambda v: v.name))


def rounded(size: int) -> int:
    """A size in bytes, up to the next boundary."""
    return -(-size // _BOUNDARY) * _BOUNDARY
