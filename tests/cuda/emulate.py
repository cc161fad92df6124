"""Plans run on the CPU as if it were a CUDA device.

In: a `Plan` and arrays. Out: its outputs, computed by the CUDA backend's own program with the
printed source under the emulator (emulator.h), or a `Fault` that says what a thread did wrong:

    run(plan, x)                       every array on a 256-byte boundary
    run(plan, x, shift=4)              arguments 4 bytes behind one: no wide accesses there
    run_all(plan, [(x,), (y,)])        several calls, with one compilation

Each launch's functions are compiled by NVRTC too, where its wheel is installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import subprocess
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from npjit.backends.cuda_device import Region
from npjit.backends.cuda_form import functions
from npjit.backends.cuda_program import Program
from npjit.core.dtypes import accumulator_of
from npjit.core.op import Op
from npjit.schedule.plan import Plan
from tests.cuda import driver_double, nvrtc

HERE = Path(__file__).parent
ARCHITECTURES = ("sm_80", "sm_90a")
_COMMON = ["g++", "-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-fwrapv"]
_KERNEL = [
    *_COMMON,
    "-fno-strict-aliasing",
    # shared memory is a library's own
    "-fno-gnu-unique",
    "-fsanitize=thread,bounds",
    "--param=tsan-instrument-func-entry-exit=0",
    "-Wno-attributes",
]


class Fault(Exception):
    """What a thread of an emulated kernel did wrong."""


class Memory:
    """A block of memory with known bounds, filled with a byte that shows."""

    def __init__(self, size: int, shift: int = 0, fill: int = 0x77) -> None:
        self._block = np.full(size + 512, fill, np.uint8)
        start = -self._block.ctypes.data % 256 + shift
        self.bytes = self._block[start : start + size]
        self.ptr = self._block.ctypes.data + start


class EmulatedDevice:
    """The CPU as a `Device`: the driver's double starts kernels under the emulator."""

    number = 0
    name = "emulated"

    def __init__(self, shift: int = 0) -> None:
        driver_double.install()
        self.shift = shift
        self.room: weakref.WeakSet[Any] = weakref.WeakSet()
        self.memories: dict[int, Memory] = {}
        self.zeros: Memory | None = None
        self.threads = 0
        # (source, name) -> handle; the same by what stands for machine code's keys
        self.known: dict[tuple[str, str], int] = {}
        self.by_code: dict[tuple[str, str], int] = {}

    def add(self, memory: Memory) -> Memory:
        """Memory that kernels may touch."""
        self.memories[memory.ptr] = memory
        return memory

    def array(self, value: Any) -> Any:
        """An argument as this device has it: arrays in memory of known bounds."""
        if not isinstance(value, np.ndarray):
            return value
        start, end = np.lib.array_utils.byte_bounds(value) if value.size else (0, 0)
        memory = self.add(Memory(end - start, self.shift))
        origin = value.ctypes.data - start if value.size else 0
        made = np.ndarray(value.shape, value.dtype, memory.bytes.data, origin, value.strides)
        made[...] = value
        return made

    def forget(self) -> None:
        """Let go of the memory of earlier calls."""
        assert self.zeros is None or not self.zeros.bytes.any(), "counters are left as found"
        self.memories = {}

    def values(self, array: Any) -> Any:
        """An array for NumPy to read."""
        return array

    def active(self) -> Any:
        return contextlib.nullcontext()

    def address(self, array: Any) -> int:
        return int(array.ctypes.data)

    def uploaded(self, array: np.ndarray) -> Any:
        return self.array(array)

    def downloaded(self, array: Any) -> np.ndarray:
        return self.values(array).copy(order="K")

    def maker(self, *spec: Any) -> Any:
        return self.empty, spec

    def empty(self, shape: tuple[int, ...], dtype: Any, perm: tuple[int, ...] | None) -> Any:
        perm = perm or tuple(range(len(shape)))
        memory = self.add(Memory(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize))
        flat = memory.bytes.view(dtype).reshape(tuple(shape[p] for p in perm))
        return flat.transpose(np.argsort(perm)) if shape else flat

    def memory(self, size: int) -> Any:
        return self.add(Memory(size))

    def allocate(self, size: int) -> tuple[Any, int]:
        memory = self.memory(size)
        return memory, memory.ptr

    def counters(self, count: int) -> int:
        if not count:
            return 0
        self.zeros = self.add(Memory(4 * count, fill=0))
        return self.zeros.ptr

    def functions(self, source: str, names: Sequence[str], options: tuple[str, ...]) -> list[int]:
        """Build instances of a module's functions, for the emulator and by NVRTC."""
        missing = [n for n in names if (source, n) not in self.known]
        if missing:
            library = build(source, missing)
            for number, name in enumerate(missing):
                start = functools.partial(self.start, library, number, name)
                words = getattr(library, f"words_{number}")()
                self.known[source, name] = driver_double.function(start, words)
            if nvrtc.library() is not None:
                for architecture in ARCHITECTURES:
                    nvrtc.compile_functions(source, missing, architecture, options)
        return [self.known[source, n] for n in names]

    def codes(self, source: str, names: Sequence[str], options: tuple[str, ...]) -> dict[str, str]:
        key = hashlib.sha256(source.encode()).hexdigest()
        self.by_code.update({(key, n): self.known[source, n] for n in names})
        return dict.fromkeys(names, key)

    def recalled(self, codes: Mapping[str, str]) -> dict[str, int] | None:
        """What this device has built before; code of another process is not found."""
        found = {name: self.by_code.get((key, name)) for name, key in codes.items()}
        handles = {name: handle for name, handle in found.items() if handle is not None}
        return handles if len(handles) == len(found) else None

    def start(
        self,
        library: Any,
        number: int,
        name: str,
        grid: tuple[int, int],
        block: int,
        parameters: int,
    ) -> None:
        """Run a launch of function `number` of a library."""
        self.threads += grid[0] * grid[1] * block
        library.emulator_forget()
        for memory in self.memories.values():
            size = ctypes.c_longlong(memory.bytes.size)
            library.emulator_buffer(ctypes.c_void_p(memory.ptr), size)
        launch = getattr(library, f"start_{number}")
        launch.restype = ctypes.c_bool
        if not launch(*grid, block, ctypes.c_void_p(parameters)):
            library.emulator_fault.restype = ctypes.c_char_p
            raise Fault(f"{name}: {library.emulator_fault().decode()}")

    def knows_blas(self) -> bool:
        return True

    def has_tensor_tiles(self) -> bool:
        return True

    def multiply(self, a: Region, b: Region, c: Region) -> None:
        wide = accumulator_of(c.dtype)
        self.view(c)[...] = np.matmul(self.view(a), self.view(b), dtype=wide)

    def copy(self, source: Region, target: Region) -> None:
        self.view(target)[...] = self.view(source)

    def compute(
        self, op: Op, params: Any, given: Sequence[Region], made: Sequence[tuple[int, Region]]
    ) -> None:
        target = made[0][1]
        node = SimpleNamespace(params=params, dtype=target.dtype, shape=target.shape)
        found = op.evaluate(node, *map(self.view, given))
        parts = found if isinstance(found, (tuple, list)) else (found,)
        for k, region in made:
            self.view(region)[...] = parts[k]

    def view(self, region: Region) -> Any:
        if 0 in region.shape:
            return np.empty(region.shape, region.dtype)
        base = max(address for address in self.memories if address <= region.address)
        buffer = self.memories[base].bytes.data
        strides = [s * region.dtype.itemsize for s in region.strides]
        return np.ndarray(region.shape, region.dtype, buffer, region.address - base, strides)

    def rate(self) -> float:
        return 1e12

    def seconds(self, work: Callable[[], Any]) -> float:
        """A clock that repeats: so many threads were started."""
        self.threads = 0
        work()
        return float(self.threads)

    def read(self, region: Region) -> Any:
        return self.view(region)[()]


def run(plan: Plan, *inputs: Any, shift: int = 0) -> list[np.ndarray]:
    """The plan's fresh outputs for these inputs, which begin `shift` bytes behind a boundary."""
    return run_all(plan, [inputs], shift)[0]


def run_all(plan: Plan, calls: Iterable[Sequence[Any]], shift: int = 0) -> list[list[np.ndarray]]:
    """The fresh outputs of several calls, whose functions are compiled as one module. Written
    inputs are written."""
    device = make_device(shift)
    program = Program(plan, device)
    given = [[device.array(v) for v in inputs] for inputs in calls]
    names = [name for inputs in given for name in functions_of(program, inputs)]
    device.functions(program.module.source, list(dict.fromkeys(names)), program.module.options)
    found = []
    for inputs, originals in zip(given, calls, strict=True):
        device.forget()
        moved = [device.array(v) for v in inputs]
        found.append([device.values(r) for r in program(moved)])
        for position, original in enumerate(originals):
            if isinstance(original, np.ndarray) and original.flags.writeable:
                original[...] = device.values(moved[position])
    return found


def make_device(shift: int) -> Any:
    """The emulator, or the real GPU where the tests were asked to run there."""
    if "NPJIT_TEST_GPU" not in os.environ:
        return EmulatedDevice(shift)
    from tests.cuda.gpu import GpuDevice

    return GpuDevice(shift)


def functions_of(program: Program, inputs: Sequence[Any]) -> list[str]:
    """What a call starts, as far as sizes are known before it."""
    return functions(program.draft(program.instance(inputs), inputs).form())


def build(source: str, functions: Sequence[str]) -> ctypes.CDLL:
    """A module with these instances of its functions, compiled for the emulator."""
    parts = ['#include "emulator.h"', source]
    given = "unsigned x, unsigned y, unsigned threads, const long long* const* words"
    for number, name in enumerate(functions):
        parts.append(
            f'extern "C" bool start_{number}({given})'
            f" {{ return emulator::start({name}, x, y, threads, words); }}"
            f' extern "C" int words_{number}() {{ return emulator::words({name}); }}'
        )
    base = compile_once("emulator", (HERE / "emulator.cpp").read_text(), [*_COMMON, "-O2"], None)
    return ctypes.CDLL(str(compile_once("kernels", "\n".join(parts), _KERNEL, base)))


def compile_once(stem: str, text: str, command: Sequence[str], base: Path | None) -> Path:
    """What g++ makes of a text, kept for the next run: an object, or a library linked with the
    object `base`."""
    header = (HERE / "emulator.h").read_text()
    key = hashlib.sha256("\0".join([text, header, *command, str(base)]).encode()).hexdigest()[:20]
    built = nvrtc.BUILT / f"{stem}-{key}.{'o' if base is None else 'so'}"
    if not built.exists():
        nvrtc.BUILT.mkdir(parents=True, exist_ok=True)
        code, part = built.with_suffix(".cpp"), built.with_suffix(".part")
        code.write_text(text)
        subprocess.run([*command, "-c", f"-I{HERE}", str(code), "-o", str(part)], check=True)
        if base is not None:
            # without the sanitizers' libraries: the object has their hooks
            unlinked = part.rename(built.with_suffix(".o"))
            subprocess.run(
                ["g++", "-shared", str(unlinked), str(base), "-o", str(part)], check=True
            )
        part.rename(built)
    return built
