"""Plans run on the CPU as if it were a CUDA device.

In: a `Plan` and arrays. Out: its outputs, computed by the printed CUDA source under the emulator (emulator.h), or by a
`Fault` that says what a thread did wrong:

    run(plan, x)                       every buffer on a 256-byte boundary
    run(plan, x, shift=4)              4 bytes behind one, so that wide accesses are not allowed
"""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from npjit.codegen.cuda import CudaModule, print_cuda
from npjit.codegen.cuda_launch import Configured
from npjit.core.size import Size, substitute
from npjit.schedule.plan import Check, Contract, Launch, Matrix, Place, Plan

HERE = Path(__file__).parent
BUILT = HERE.parent.parent / "build" / "test-cache" / "cuda"
_COMMON = ["g++", "-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-fwrapv"]
_KERNEL = [
    *_COMMON,
    "-fno-strict-aliasing",
    "-fsanitize=thread,bounds",
    "--param=tsan-instrument-func-entry-exit=0",
    "-Wno-attributes",
]


class Fault(Exception):
    """What a thread of an emulated kernel did wrong."""


class CheckFailed(Exception):
    """The number of a plan's check that did not hold."""


class Memory:
    """A block of memory with known bounds."""

    def __init__(self, size: int, shift: int = 0, fill: int = 0x77) -> None:
        self._block = np.full(size + 512, fill, np.uint8)
        start = -self._block.ctypes.data % 256 + shift
        self.bytes = self._block[start : start + size]
        self.address = self._block.ctypes.data + start

    def array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """The memory as an array."""
        return self.bytes.view(dtype).reshape(shape)


class Emulation:
    """One call of a plan."""

    def __init__(self, plan: Plan, inputs: tuple[Any, ...], shift: int) -> None:
        self.plan = plan
        self.module: CudaModule = print_cuda(plan)
        self.inputs = inputs
        self.memories: dict[tuple[str, int], Memory] = {}
        for i, a in enumerate(inputs):
            if isinstance(a, np.ndarray):
                memory = Memory(a.nbytes, shift)
                memory.array(a.shape, a.dtype)[...] = a
                self.memories["input", i] = memory
        values: dict[Any, Size] = {}
        for v, s in plan.sources.items():
            given = inputs[s.input]
            if s.what == "value":
                values[v] = int(given)
            elif s.what == "extent":
                values[v] = given.shape[s.axis]
            else:
                values[v] = given.strides[s.axis] // given.itemsize
        self.values = values
        for i, spec in enumerate(plan.outputs):
            count = int(np.prod([self.value(n) for n in spec.shape], dtype=np.int64))
            self.memories["output", i] = Memory(count * spec.dtype.itemsize, shift)
        self.memories["arena", 0] = Memory(self.value(plan.arena))

    def value(self, size: Size) -> int:
        found = substitute(size, self.values)
        assert isinstance(found, int)
        return found

    def address(self, place: Place) -> int:
        return self.memories[place.space, place.number].address + self.value(place.offset)

    def run(self) -> list[np.ndarray]:
        """The fresh outputs."""
        for step in self.plan.steps:
            if isinstance(step, Launch):
                self._launch(step)
            elif isinstance(step, Contract):
                self._contract(step)
            else:
                self._check(step)
        found = []
        for i, spec in enumerate(self.plan.outputs):
            if spec.kind != "fresh":
                continue
            shape = tuple(self.value(n) for n in spec.shape)
            perm = spec.perm or tuple(range(len(shape)))
            flat = self.memories["output", i].array(tuple(shape[p] for p in perm), spec.dtype)
            found.append(flat.transpose(np.argsort(perm)) if shape else flat)
        return found

    def _launch(self, step: Launch) -> None:
        kernel = self.plan.kernels[step.kernel]
        sizes = [self.value(s) for s in step.sizes]
        shared = [i for i, b in enumerate(kernel.buffers) if b.role != "row"]
        addresses = dict(zip(shared, map(self.address, step.buffers), strict=True))
        found = self.module.configure(step.kernel, sizes, addresses)
        words = [*addresses.values(), *sizes]
        for number in step.scalars:
            words += scalar_words(self.inputs[number])
        execute(self.module.source, found, words, list(self.memories.values()))

    def _contract(self, step: Contract) -> None:
        batch = tuple(self.value(n) for n in step.batch)
        m, n, k = (self.value(s) for s in (step.m, step.n, step.k))
        a = self._matrix(step.a, (*batch, m, k), step.dtype)
        b = self._matrix(step.b, (*batch, k, n), step.dtype)
        self._matrix(step.c, (*batch, m, n), step.dtype)[...] = np.matmul(a, b)

    def _matrix(self, matrix: Matrix, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        memory = self.memories[matrix.place.space, matrix.place.number]
        start = self.value(matrix.place.offset) + self.value(matrix.offset) * dtype.itemsize
        strides = [self.value(s) * dtype.itemsize for s in (*matrix.batch, matrix.row, matrix.column)]
        return np.ndarray(shape, dtype, memory.bytes.data, start, strides)

    def _check(self, step: Check) -> None:
        memory = self.memories[step.place.space, step.place.number]
        if not memory.bytes[self.value(step.place.offset)]:
            raise CheckFailed(step.number)


def run(plan: Plan, *inputs: Any, shift: int = 0) -> list[np.ndarray]:
    """The plan's fresh outputs for these inputs; buffers start `shift` bytes behind a boundary."""
    return Emulation(plan, inputs, shift).run()


def scalar_words(value: Any) -> list[int]:
    """A scalar argument as words of 64 bits."""
    kind = np.asarray(value).dtype.kind
    if kind in "fc":
        parts = [value.real, value.imag] if kind == "c" else [value]
        return [int(np.float64(p).view(np.int64)) for p in parts]
    return [int(np.asarray(value).astype(np.int64))]


def execute(source: str, found: Configured, words: list[int], memories: list[Memory]) -> None:
    """Run the functions of a launch, with scratch memory of their own."""
    if not found.starts:
        return
    scratch = [Memory(n) for n in found.regions]
    counters = Memory(4 * found.counters, fill=0)
    if found.regions:
        words = [*words, *(m.address for m in scratch), counters.address]
    given = (ctypes.c_longlong * max(1, len(words)))(*words)
    library = build(source, [s.function for s in found.starts])
    library.emulator_forget()
    for memory in (*memories, *scratch, counters):
        library.emulator_buffer(ctypes.c_void_p(memory.address), ctypes.c_longlong(memory.bytes.size))
    for number, s in enumerate(found.starts):
        launch = getattr(library, f"start_{number}")
        launch.restype = ctypes.c_bool
        if not launch(*s.grid, s.block, given):
            library.emulator_fault.restype = ctypes.c_char_p
            raise Fault(f"{s.function}: {library.emulator_fault().decode()}")
    assert not counters.bytes.any(), "counters are left as they were found"


def build(source: str, functions: list[str]) -> ctypes.CDLL:
    """A module with these instances of its functions, compiled for the emulator."""
    parts = ['#include "emulator.h"', source]
    for number, name in enumerate(functions):
        parts.append(
            f'extern "C" bool start_{number}(unsigned x, unsigned y, unsigned threads, const long long* a)'
            f" {{ return emulator::start({name}, x, y, threads, a); }}"
        )
    text = "\n".join(parts)
    base = compile_once("emulator", (HERE / "emulator.cpp").read_text(), [*_COMMON, "-O2", "-c"], [], ".o")
    path = compile_once("kernels", text, [*_KERNEL, "-shared"], [str(base)], ".so")
    return ctypes.CDLL(str(path))


def compile_once(stem: str, text: str, command: list[str], more: list[str], suffix: str) -> Path:
    """The file that g++ makes of a text, kept for the next run."""
    header = (HERE / "emulator.h").read_text()
    key = hashlib.sha256("\0".join([text, header, *command, *more]).encode()).hexdigest()[:20]
    built = BUILT / f"{stem}-{key}{suffix}"
    if not built.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        code = built.with_suffix(".cpp")
        code.write_text(text)
        part = built.with_suffix(".part")
        # without the sanitizers' libraries: emulator.cpp has the hooks
        link = ["-Wl,--allow-shlib-undefined", "-fno-sanitize=all"] if suffix == ".so" else []
        objects = [str(code), *more]
        if suffix == ".so":
            middle = str(built.with_suffix(".o"))
            compiled = [c for c in command if c != "-shared"]
            subprocess.run([*compiled, "-c", f"-I{HERE}", str(code), "-o", middle], check=True)
            subprocess.run(["g++", "-shared", middle, *more, "-o", str(part)], check=True)
        else:
            subprocess.run([*command, f"-I{HERE}", *objects, *link, "-o", str(part)], check=True)
        part.rename(built)
    return built
