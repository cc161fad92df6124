"""A plan on a device: memory, launches, matrix products and checks, prepared once for each set of sizes.

In: a `Plan` and a `Device`. Out: a `Program`, called with device arrays and scalars, which gives the fresh results.
What sizes decide is kept by the inputs' shapes, strides and alignment; a call then allocates, fills addresses in and starts
the kernels:

    program = Program(plan, CupyDevice())
    (y,) = program([x, 2.0])
"""

from __future__ import annotations

import ctypes
import operator
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from npjit.codegen.cuda import CudaModule, print_cuda
from npjit.codegen.cuda_launch import Configured
from npjit.core.size import Size, Var, substitute
from npjit.schedule.plan import Check, Contract, Launch, Matrix, Place, Plan

# scratch memory of kernels lies on boundaries of so many bytes
_BOUNDARY = 256
_HOLDS = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt}


class CheckFailed(Exception):
    """A check of the plan did not hold; the message says which."""


@dataclass(frozen=True)
class MatrixView:
    """A batch of matrices: address of the first element, then strides in elements."""

    address: int
    batch: tuple[int, ...]
    row: int
    column: int


class Device(Protocol):
    """What a program needs of a device. All work is ordered as it is asked for."""

    def address(self, array: Any) -> int:
        """Where an array's first element lies."""

    def empty(self, shape: tuple[int, ...], dtype: Any, perm: tuple[int, ...] | None) -> Any:
        """A new array, its axes in memory in the order of `perm`."""

    def allocate(self, size: int) -> tuple[Any, int]:
        """Memory, as what keeps it alive and its address."""

    def counters(self, count: int) -> int:
        """The address of so many u32 that are zero between launches."""

    def functions(self, source: str, names: Sequence[str]) -> list[Any]:
        """The instances `names` of a module's functions."""

    def start(self, function: Any, grid: tuple[int, int], block: int, words: int) -> None:
        """Start a function; `words` is the address of its parameters' addresses."""

    def multiply(
        self,
        dtype: Any,
        batch: tuple[int, ...],
        sizes: tuple[int, int, int],
        a: MatrixView,
        b: MatrixView,
        c: MatrixView,
    ) -> None:
        """c = a @ b."""

    def read_flag(self, address: int) -> bool:
        """The bool at an address, when all work before is done."""


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
class MultiplyStep:
    """A matrix product; the addresses of its matrices are relative to numbered bases."""

    dtype: Any
    batch: tuple[int, ...]
    sizes: tuple[int, int, int]
    bases: tuple[int, int, int]
    matrices: tuple[MatrixView, MatrixView, MatrixView]


@dataclass(frozen=True)
class FlagStep:
    """Stop unless the bool at an address is true."""

    base: int
    offset: int
    message: str


@dataclass
class Prepared:
    """A plan for given sizes. `words` are all parameters, `table` their addresses, from address `pointers` on."""

    outputs: list[tuple[tuple[int, ...], Any, tuple[int, ...] | None]]
    arena: int
    counters: int
    steps: list[StartStep | MultiplyStep | FlagStep]
    patches: list[Patch]
    scalars: list[tuple[int, int]]
    words: Any = None
    table: Any = None
    pointers: int = 0


class Program:
    """See the module's docstring."""

    def __init__(self, plan: Plan, device: Device) -> None:
        self.plan = plan
        self.device = device
        self.module: CudaModule = print_cuda(plan)
        self._lock = threading.Lock()
        self._prepared: dict[Any, Prepared] = {}
        self._fitting: dict[Any, bool] = {}
        self._arrays = [i for i, s in enumerate(plan.inputs) if not s.is_scalar]
        self._ints = sorted({s.input for s in plan.sources.values() if s.what == "value"})

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether the plan is made for such sizes."""
        known = tuple(v.shape if hasattr(v, "shape") else v for v in inputs)
        found = self._fitting.get(known)
        if found is None:
            found = self._fitting[known] = guards_hold(self.plan, bind(self.plan, inputs))
        return found

    def written_inputs(self) -> list[int]:
        """Numbers of inputs whose memory a call changes."""
        found: set[int] = set()
        for step in self.plan.steps:
            if isinstance(step, Launch):
                shared = [b for b in self.plan.kernels[step.kernel].buffers if b.role != "row"]
                for b, place in zip(shared, step.buffers, strict=True):
                    if b.role != "in" and place.space == "input":
                        found.add(place.number)
            elif isinstance(step, Contract) and step.c.place.space == "input":
                found.add(step.c.place.number)
        return sorted(found)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        device = self.device
        addresses = [0] * len(inputs)
        key: list[Any] = [inputs[i] for i in self._ints]
        for i in self._arrays:
            a = inputs[i]
            addresses[i] = device.address(a)
            key.append((a.shape, a.strides, addresses[i] % 16))
        known = tuple(key)
        prepared = self._prepared.get(known)
        if prepared is None:
            prepared = self._prepared[known] = self.prepare(inputs, addresses)
        results = [device.empty(*spec) for spec in prepared.outputs]
        bases = addresses + [device.address(r) for r in results]
        held, arena = device.allocate(prepared.arena) if prepared.arena else (None, 0)
        bases += (arena, device.counters(prepared.counters) if prepared.counters else 0)
        with self._lock:
            self._run(prepared, inputs, bases)
        del held
        return results

    def _run(self, prepared: Prepared, inputs: Sequence[Any], bases: Sequence[int]) -> None:
        device = self.device
        words = prepared.words
        for p in prepared.patches:
            words[p.word] = bases[p.base] + p.offset
        for first, number in prepared.scalars:
            for i, word in enumerate(scalar_words(inputs[number])):
                words[first + i] = word
        for step in prepared.steps:
            if isinstance(step, StartStep):
                device.start(
                    step.function, step.grid, step.block, prepared.pointers + 8 * step.first
                )
            elif isinstance(step, MultiplyStep):
                views = [
                    MatrixView(bases[b] + m.address, m.batch, m.row, m.column)
                    for b, m in zip(step.bases, step.matrices, strict=True)
                ]
                device.multiply(step.dtype, step.batch, step.sizes, *views)
            elif not device.read_flag(bases[step.base] + step.offset):
                raise CheckFailed(step.message)

    def prepare(self, inputs: Sequence[Any], addresses: Sequence[int]) -> Prepared:
        """The plan for these inputs' sizes."""
        maker = Preparation(self.plan, self.module, inputs, addresses)
        names = list(dict.fromkeys(s.function for c in maker.launches.values() for s in c.starts))
        found = self.device.functions(self.module.source, names) if names else []
        return maker.prepared(dict(zip(names, found, strict=True)))


class Preparation:
    """Makes a `Prepared`. Addresses are numbered: inputs, fresh outputs, the arena, the counters."""

    def __init__(
        self, plan: Plan, module: CudaModule, inputs: Sequence[Any], addresses: Sequence[int]
    ) -> None:
        self.plan = plan
        self.values = bind(plan, inputs)
        assert guards_hold(plan, self.values), "the caller asks `fits` first"
        self.addresses = addresses
        self.fresh = [i for i, spec in enumerate(plan.outputs) if spec.kind == "fresh"]
        # number of the step -> what to start
        self.launches: dict[int, Configured] = {}
        for number, step in enumerate(plan.steps):
            if isinstance(step, Launch):
                self.launches[number] = self._configure(module, step)

    def value(self, size: Size) -> int:
        """A size of the plan as a number."""
        if isinstance(size, int):
            return size
        found = substitute(size, self.values)
        assert isinstance(found, int)
        return found

    def _configure(self, module: CudaModule, step: Launch) -> Configured:
        kernel = self.plan.kernels[step.kernel]
        shared = [i for i, b in enumerate(kernel.buffers) if b.role != "row"]
        # outputs and the arena begin on a boundary; only their offsets matter
        places = {
            i: self.value(p.offset) + (self.addresses[p.number] if p.space == "input" else 0)
            for i, p in zip(shared, step.buffers, strict=True)
        }
        return module.configure(step.kernel, [self.value(s) for s in step.sizes], places)

    def base(self, place: Place) -> int:
        """The number of the address that a place is relative to."""
        count = len(self.plan.inputs)
        if place.space == "input":
            return place.number
        return count + (place.number if place.space == "output" else len(self.fresh))

    def prepared(self, functions: dict[str, Any]) -> Prepared:
        """Everything, with these functions."""
        plan = self.plan
        outputs = [
            (tuple(self.value(n) for n in spec.shape), spec.dtype, spec.perm)
            for spec in (plan.outputs[i] for i in self.fresh)
        ]
        arena = rounded(self.value(plan.arena))
        made = Prepared(outputs, arena, 0, [], [], [])
        words: list[int] = []
        most = 0
        for number, step in enumerate(plan.steps):
            if isinstance(step, Launch):
                configured = self.launches[number]
                self._add_launch(made, words, step, configured, functions, arena)
                most = max(most, sum(map(rounded, configured.regions)))
                made.counters = max(made.counters, configured.counters)
            elif isinstance(step, Contract):
                made.steps.append(self._product(step))
            else:
                assert isinstance(step, Check)
                offset = self.value(step.place.offset)
                made.steps.append(FlagStep(self.base(step.place), offset, step.message))
        made.arena = arena + most
        made.words = (ctypes.c_longlong * max(1, len(words)))(*words)
        start = ctypes.addressof(made.words)
        addresses = range(start, start + 8 * len(words), 8)
        made.table = (ctypes.c_longlong * max(1, len(words)))(*addresses)
        made.pointers = ctypes.addressof(made.table)
        return made

    def _add_launch(
        self,
        made: Prepared,
        words: list[int],
        step: Launch,
        configured: Configured,
        functions: dict[str, Any],
        arena: int,
    ) -> None:
        """The parameters of one launch, which all its functions share."""
        if not configured.starts:
            return
        first = len(words)
        for place in step.buffers:
            made.patches.append(Patch(len(words), self.base(place), self.value(place.offset)))
            words.append(0)
        words += [self.value(s) for s in step.sizes]
        for number in step.scalars:
            made.scalars.append((len(words), number))
            words += [0] * (2 if self.plan.inputs[number].dtype.kind == "c" else 1)
        last = len(self.plan.inputs) + len(self.fresh)
        offset = arena
        for size in configured.regions:
            made.patches.append(Patch(len(words), last, offset))
            words.append(0)
            offset += rounded(size)
        made.patches.append(Patch(len(words), last + 1, 0))
        words.append(0)
        made.steps += [
            StartStep(functions[s.function], s.grid, s.block, first) for s in configured.starts
        ]

    def _product(self, step: Contract) -> MultiplyStep:
        batch = tuple(self.value(n) for n in step.batch)
        sizes = (self.value(step.m), self.value(step.n), self.value(step.k))
        three = (step.a, step.b, step.c)
        bases = tuple(self.base(m.place) for m in three)
        views = tuple(self._matrix(m, step.dtype.itemsize) for m in three)
        return MultiplyStep(step.dtype, batch, sizes, bases, views)  # type: ignore[arg-type]

    def _matrix(self, matrix: Matrix, item: int) -> MatrixView:
        offset = self.value(matrix.place.offset) + self.value(matrix.offset) * item
        batch = tuple(self.value(s) for s in matrix.batch)
        return MatrixView(offset, batch, self.value(matrix.row), self.value(matrix.column))


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
    return all(
        _HOLDS[g.relation](substitute(g.a, values), substitute(g.b, values)) for g in plan.guards
    )


def rounded(size: int) -> int:
    """A size in bytes, up to the next boundary."""
    return -(-size // _BOUNDARY) * _BOUNDARY


def scalar_words(value: Any) -> list[int]:
    """A scalar argument as words of 64 bits."""
    kind = np.asarray(value).dtype.kind
    if kind == "c":
        return [int(np.float64(p).view(np.int64)) for p in (value.real, value.imag)]
    if kind == "f":
        return [int(np.float64(value).view(np.int64))]
    return [int(np.asarray(value).astype(np.int64))]
