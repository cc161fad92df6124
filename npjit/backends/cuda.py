"""The CUDA backend: programs on NVIDIA GPUs through CuPy, which is imported when the first one is made.

In: a `Plan`. Out: `program_for(plan)`, a callable from CuPy arrays and scalars to fresh CuPy arrays, which runs on the
current device and stream:

    program = program_for(plan)
    (y,) = program([cupy.ones(1000), 2.0])
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from npjit.backends.cuda_program import MatrixView, Program
from npjit.codegen.cuda import OPTIONS
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
            "CUDA needs CuPy: pip install npjit[cuda12] or npjit[cuda13], after the driver's version"
        ) from e
    return found


class CupyDevice:
    """The current device and stream of CuPy, as a `Device`."""

    def __init__(self) -> None:
        from cupy_backends.cuda.api import driver

        self.cupy = cupy()
        self._launch = driver.launchKernel
        self._stream = self.cupy.cuda.get_current_stream
        self._functions: dict[tuple[str, str], Any] = {}
        self._kept: list[Any] = []
        self._counters: dict[int, Any] = {}

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
        """Counters of the current stream."""
        stream = self._stream().ptr
        found = self._counters.get(stream)
        if found is None or found.size < count:
            found = self._counters[stream] = self.cupy.zeros(max(count, 4096), np.uint32)
        address: int = found.data.ptr
        return address

    def functions(self, source: str, names: Sequence[str]) -> list[Any]:
        """Compile the instances that are not known yet, as one module."""
        missing = [n for n in names if (source, n) not in self._functions]
        if missing:
            module = self.cupy.RawModule(code=source, options=OPTIONS, name_expressions=missing)
            for name in missing:
                kernel = module.get_function(name)
                self._kept.append(kernel)
                self._functions[source, name] = kernel.kernel.ptr
        return [self._functions[source, n] for n in names]

    def start(self, function: Any, grid: tuple[int, int], block: int, words: int) -> None:
        """Start a function on the current stream."""
        x, y = grid
        self._launch(function, x, y, 1, block, 1, 1, 0, self._stream().ptr, words, 0)

    def multiply(
        self,
        dtype: Any,
        batch: tuple[int, ...],
        sizes: tuple[int, int, int],
        a: MatrixView,
        b: MatrixView,
        c: MatrixView,
    ) -> None:
        """c = a @ b by cuBLAS, or by CuPy for strides and dtypes that cuBLAS does not take."""
        m, n, k = sizes
        if not blas_multiply(dtype, batch, sizes, a, b, c):
            left = self._view(a, (*batch, m, k), dtype)
            right = self._view(b, (*batch, k, n), dtype)
            self._view(c, (*batch, m, n), dtype)[...] = self.cupy.matmul(left, right)

    def _view(self, view: MatrixView, shape: tuple[int, ...], dtype: Any) -> Any:
        """The matrices as an array; whoever asks keeps the memory alive."""
        reach = sum(
            (extent - 1) * abs(stride)
            for extent, stride in zip(shape, (*view.batch, view.row, view.column), strict=True)
        )
        strides = tuple(s * dtype.itemsize for s in (*view.batch, view.row, view.column))
        size = (reach + 1) * dtype.itemsize
        memory = self.cupy.cuda.UnownedMemory(view.address, size, None)
        pointer = self.cupy.cuda.MemoryPointer(memory, 0)
        return self.cupy.ndarray(shape, dtype, pointer, strides)

    def read_flag(self, address: int) -> bool:
        """The bool at an address, when all work before is done."""
        flag = np.empty(1, np.bool_)
        stream = self._stream()
        self.cupy.cuda.runtime.memcpyAsync(
            flag.ctypes.data, address, 1, self.cupy.cuda.runtime.memcpyDeviceToHost, stream.ptr
        )
        stream.synchronize()
        return bool(flag[0])


def blas_multiply(
    dtype: Any,
    batch: tuple[int, ...],
    sizes: tuple[int, int, int],
    a: MatrixView,
    b: MatrixView,
    c: MatrixView,
) -> bool:
    """Do the product by cuBLAS if it can; BLAS's matrices are columns behind each other, so the product is done as
    c.T = b.T @ a.T."""
    m, n, k = sizes
    letter = _LETTERS.get(np.dtype(dtype).str[1:])
    if letter is None or 0 in (*sizes, *batch):
        return False
    ours = [operand(b, k, n), operand(a, m, k), operand(c, m, n)]
    if len(batch) > 1 or None in ours or ours[2][0] != 0:  # type: ignore[index]
        return False
    from cupy_backends.cuda.libs import cublas

    handle = cupy().cuda.device.get_cublas_handle()
    one = np.ones(1, dtype)
    zero = np.zeros(1, dtype)
    (to_b, lead_b), (to_a, lead_a), (_, lead_c) = ours  # type: ignore[misc]
    head = (handle, to_b, to_a, n, m, k, one.ctypes.data)
    if not batch:
        call = getattr(cublas, f"{letter}gemm")
        call(*head, b.address, lead_b, a.address, lead_a, zero.ctypes.data, c.address, lead_c)
        return True
    call = getattr(cublas, f"{letter}gemmStridedBatched")
    first = (b.address, lead_b, b.batch[0], a.address, lead_a, a.batch[0])
    call(*head, *first, zero.ctypes.data, c.address, lead_c, c.batch[0], batch[0])
    return True


def operand(view: MatrixView, rows: int, columns: int) -> tuple[int, int] | None:
    """BLAS's transposition (0 or 1) and leading dimension of our matrix read column by column; None: it has none."""
    if (view.column == 1 or columns == 1) and (view.row >= columns or rows == 1):
        return 0, max(view.row, columns, 1)
    if (view.row == 1 or rows == 1) and (view.column >= rows or columns == 1):
        return 1, max(view.column, rows, 1)
    return None


@functools.cache
def device() -> CupyDevice:
    """The one device object of this process."""
    return CupyDevice()


def program_for(plan: Plan) -> Program:
    """The plan as a callable on the GPU."""
    return Program(plan, device())
