"""The CUDA backend: programs on NVIDIA GPUs through CuPy, which is imported when the first one is
made.

In: a `Plan`. Out: `program_for(plan)`, a callable from CuPy arrays and scalars to fresh CuPy
arrays, which runs on the current device and stream:

    program = program_for(plan)
    (y,) = program([cupy.ones(1000), 2.0])
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from npjit.backends.cuda_build import load_functions
from npjit.backends.cuda_device import Region
from npjit.backends.cuda_program import Program
from npjit.core.op import Op
from npjit.schedule.plan import Plan

# BLAS's letters for the dtypes it multiplies
_LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}


class MissingCupy(ImportError):
    """CuPy is not installed, or finds no GPU."""


@functools.cache
def cupy() -> Any:
    """The cupy module."""
    try:
        import cupy as found
    except ImportError as e:
        raise MissingCupy(
            "CUDA needs CuPy: pip install npjit[cuda12] or npjit[cuda13], as the driver wants"
        ) from e
    return found


class CupyDevice:
    """The current device and stream of CuPy, as a `Device`."""

    def __init__(self) -> None:
        from cupy_backends.cuda.api import driver

        self.cupy = cupy()
        self._launch = driver.launchKernel
        self._stream = self.cupy.cuda.get_current_stream
        self._functions: dict[tuple[int, str, str], int] = {}
        self._counters: dict[tuple[int, int], Any] = {}

    def address(self, array: Any) -> int:
        """Where an array's first element lies."""
        found: int = array.data.ptr
        return found

    def empty(self, shape: tuple[int, ...], dtype: Any, perm: tuple[int, ...] | None) -> Any:
        """A new array, its axes in memory in the order of `perm`."""
        if perm is None:
            return self.cupy.ndarray(shape, dtype)
        made = self.cupy.ndarray(tuple(shape[p] for p in perm), dtype)
        return made.transpose(np.argsort(perm).tolist())

    def allocate(self, size: int) -> tuple[Any, int]:
        """Memory from CuPy's pool; freed memory is used again in the stream's order."""
        memory = self.cupy.cuda.alloc(size)
        return memory, memory.ptr

    def counters(self, count: int) -> int:
        """Counters of the current device and stream."""
        place = (self.cupy.cuda.runtime.getDevice(), self._stream().ptr)
        found = self._counters.get(place)
        if found is None or found.size < count:
            found = self._counters[place] = self.cupy.zeros(max(count, 4096), np.uint32)
        address: int = found.data.ptr
        return address

    def functions(self, source: str, names: Sequence[str]) -> list[Any]:
        """Load the instances that are not known yet, as one module."""
        number = self.cupy.cuda.runtime.getDevice()
        missing = [n for n in names if (number, source, n) not in self._functions]
        if missing:
            found = load_functions(source, missing)
            for name, function in zip(missing, found, strict=True):
                self._functions[number, source, name] = function
        return [self._functions[number, source, n] for n in names]

    def start(self, function: Any, grid: tuple[int, int], block: int, parameters: int) -> None:
        """Start a function on the current stream."""
        x, y = grid
        self._launch(function, x, y, 1, block, 1, 1, 0, self._stream().ptr, parameters, 0)

    def multiply(self, a: Region, b: Region, c: Region) -> None:
        """c = a @ b by cuBLAS, or by CuPy for strides and dtypes that cuBLAS does not take."""
        if not blas_multiply(a, b, c):
            self.view(c)[...] = self.cupy.matmul(self.view(a), self.view(b))

    def copy(self, source: Region, target: Region) -> None:
        """target = source."""
        self.view(target)[...] = self.view(source)

    def compute(
        self, op: Op, params: Any, given: Sequence[Region], made: Sequence[tuple[int, Region]]
    ) -> None:
        """Results of a row by CuPy, or by NumPy where CuPy has no such function."""
        target = made[0][1]
        node = SimpleNamespace(params=params, dtype=target.dtype, shape=target.shape)
        arguments = [self.view(g) for g in given]
        try:
            found = op.evaluate(node, *arguments)
        except Exception:  # whatever CuPy lacks; an error of the row itself comes from NumPy too
            with np.errstate(all="ignore"):
                found = op.evaluate(node, *[a.get() for a in arguments])
        parts = found if isinstance(found, (tuple, list)) else (found,)
        for k, region in made:
            self.view(region)[...] = self.cupy.asarray(parts[k])

    def view(self, region: Region) -> Any:
        """A region as an array; whoever asks keeps the memory alive."""
        if 0 in region.shape:
            return self.cupy.empty(region.shape, region.dtype)
        item = region.dtype.itemsize
        reach = [(n - 1) * s for n, s in zip(region.shape, region.strides, strict=True)]
        first = sum(r for r in reach if r < 0) * item
        size = (sum(map(abs, reach)) + 1) * item
        memory = self.cupy.cuda.UnownedMemory(region.address + first, size, None)
        pointer = self.cupy.cuda.MemoryPointer(memory, -first)
        strides = tuple(s * item for s in region.strides)
        return self.cupy.ndarray(region.shape, region.dtype, pointer, strides)

    def read(self, region: Region) -> Any:
        """The single element of a region, when all work before is done."""
        value = np.empty((), region.dtype)
        stream = self._stream()
        runtime = self.cupy.cuda.runtime
        size, kind = region.dtype.itemsize, runtime.memcpyDeviceToHost
        runtime.memcpyAsync(value.ctypes.data, region.address, size, kind, stream.ptr)
        stream.synchronize()
        return value[()]


def blas_multiply(a: Region, b: Region, c: Region) -> bool:
    """Do the product by cuBLAS if it can; BLAS's matrices are columns behind each other, so the
    product is done as c.T = b.T @ a.T."""
    letter = _LETTERS.get(c.dtype.str[1:])
    if letter is None or 0 in (*a.shape, *b.shape) or len(c.shape) > 3:
        return False
    ours = [operand(b), operand(a), operand(c)]
    if None in ours or ours[2][0] != 0:  # type: ignore[index]
        return False
    from cupy_backends.cuda.libs import cublas

    handle = cupy().cuda.device.get_cublas_handle()
    one, zero = np.ones(1, c.dtype), np.zeros(1, c.dtype)
    (to_b, lead_b), (to_a, lead_a), (_, lead_c) = ours  # type: ignore[misc]
    m, n = c.shape[-2:]
    if len(c.shape) == 2 and n == 1:
        _multiply_vector(handle, letter, a, b, c)
        return True
    head = (handle, to_b, to_a, n, m, a.shape[-1], one.ctypes.data)
    if len(c.shape) == 2:
        call = getattr(cublas, f"{letter}gemm")
        call(*head, b.address, lead_b, a.address, lead_a, zero.ctypes.data, c.address, lead_c)
        return True
    call = getattr(cublas, f"{letter}gemmStridedBatched")
    first = (b.address, lead_b, b.strides[0], a.address, lead_a, a.strides[0])
    last = (zero.ctypes.data, c.address, lead_c, c.strides[0], c.shape[0])
    call(*head, *first, *last)
    return True


def _multiply_vector(handle: int, letter: str, a: Region, b: Region, c: Region) -> None:
    """c = a @ b where b and c are one column."""
    from cupy_backends.cuda.libs import cublas

    turned, lead = operand(a)  # type: ignore[misc]
    m, k = a.shape
    # the matrix that BLAS sees column by column is ours turned around, or ours
    sizes = (m, k) if turned else (k, m)
    one, zero = np.ones(1, c.dtype), np.zeros(1, c.dtype)
    steps = (b.strides[0], zero.ctypes.data, c.address, c.strides[0])
    call = getattr(cublas, f"{letter}gemv")
    call(handle, 1 - turned, *sizes, one.ctypes.data, a.address, lead, b.address, *steps)


def operand(region: Region) -> tuple[int, int] | None:
    """BLAS's transposition (0 or 1) and leading dimension of our matrix read column by column;
    None: it has none."""
    (rows, columns), (row, column) = region.shape[-2:], region.strides[-2:]
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return 0, max(row, columns, 1)
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return 1, max(column, rows, 1)
    return None


@functools.cache
def device() -> CupyDevice:
    """The one device object of this process."""
    return CupyDevice()


def program_for(plan: Plan) -> Program:
    """The plan as a callable on the GPU."""
    return Program(plan, device())
