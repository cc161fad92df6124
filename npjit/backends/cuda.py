"""The CUDA backend: programs on NVIDIA GPUs through CuPy, which is imported when the first one is
made.

In: a GPU's number. Out: its `Device`, for programs on CuPy's arrays and current stream:

    program = Program(plan, device(0))
    (y,) = program([cupy.ones(1000), 2.0])
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from npjit.backends.cuda_blas import know_cublas
from npjit.backends.cuda_build import load_code, load_functions
from npjit.backends.cuda_device import DeviceUnavailable, Keeper, Region
from npjit.core.dtypes import accumulator_of
from npjit.core.op import Op

T = TypeVar("T")

# the bytes of the largest element
_ELEMENT = 16
# the driver's numbers of a GPU's attributes
_MEMORY_CLOCK, _MEMORY_WIDTH = 36, 37
# runs before work is timed, how often, and how many runs at a time
_WARM, _BATCHES, _BATCH = 4, 5, 8


class MissingCupy(DeviceUnavailable, ImportError):
    """CuPy is not installed."""


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


class Landing(threading.local):
    """A thread's page-locked memory for one element: copies to it need no further one."""

    def __init__(self) -> None:
        self.memory = cupy().cuda.alloc_pinned_memory(_ELEMENT)
        self.array = np.frombuffer(self.memory, np.uint8, _ELEMENT)


class CupyDevice:
    """A GPU, by CuPy, as a `Device`. It must be the current one where memory or streams matter."""

    def __init__(self, number: int) -> None:
        self.cupy = cupy()
        self.number = number
        self.name: str = self.cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()
        self.room: weakref.WeakSet[Keeper] = weakref.WeakSet()
        self.memory: Callable[[int], Any] = self.cupy.cuda.alloc
        self._stream = self.cupy.cuda.get_current_stream
        # the key of the machine code of what was asked for; handles by keys and names
        self._codes: dict[tuple[str, str, tuple[str, ...]], str] = {}
        self._functions: dict[tuple[str, str], int] = {}
        self._counters: dict[int, Any] = {}
        self._landing = Landing()

    def active(self) -> Any:
        """A context in which this is the current GPU."""
        return self.cupy.cuda.Device(self.number)

    # ------------------------------------------------------------ memory

    def address(self, array: Any) -> int:
        """Where an array's first element lies."""
        found: int = array.data.ptr
        return found

    def maker(
        self, shape: tuple[int, ...], dtype: Any, perm: tuple[int, ...] | None
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What makes a new array, its axes in memory in the order of `perm`; and its arguments."""
        if perm is None:
            return self.cupy.ndarray, (shape, dtype)
        return self.permuted, (shape, dtype, perm)

    def permuted(self, shape: tuple[int, ...], dtype: Any, perm: tuple[int, ...]) -> Any:
        """A new array, its axes in memory in the order of `perm`."""
        made = self.cupy.ndarray(tuple(shape[p] for p in perm), dtype)
        return made.transpose(np.argsort(perm).tolist())

    def empty(self, shape: tuple[int, ...], dtype: Any, perm: tuple[int, ...] | None) -> Any:
        """A new array, as `maker` says."""
        make, given = self.maker(shape, dtype, perm)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return self._with_room(lambda: make(*given), f"{size:,} bytes for a result")

    def allocate(self, size: int) -> tuple[Any, int]:
        """Memory from CuPy's pool; freed memory is used again in the stream's order."""
        if not size:
            return None, 0
        what = f"{size:,} bytes for intermediate values"
        memory = self._with_room(lambda: self.memory(size), what)
        return memory, memory.ptr

    def _with_room(self, work: Callable[[], T], what: str) -> T:
        """What `work` gives. When memory is short, all that is only kept is freed, once."""
        missing = self.cupy.cuda.memory.OutOfMemoryError
        try:
            return work()
        except missing:
            for keeper in list(self.room):
                keeper.release()
            self.cupy.get_default_memory_pool().free_all_blocks()
        try:
            return work()
        except missing:
            free, total = self.cupy.cuda.runtime.memGetInfo()
            used = self.cupy.get_default_memory_pool().used_bytes()
            raise MemoryError(
                f"GPU {self.number} has no {what}: {free:,} of {total:,} bytes are free, "
                f"arrays of CuPy hold {used:,}"
            ) from None

    def counters(self, count: int) -> int:
        """Counters of the current stream."""
        if not count:
            return 0
        stream = self._stream().ptr
        found = self._counters.get(stream)
        if found is None or found.size < count:
            found = self._counters[stream] = self.cupy.zeros(max(count, 4096), np.uint32)
        address: int = found.data.ptr
        return address

    def uploaded(self, array: np.ndarray) -> Any:
        """A copy of a NumPy array with the same strides."""
        if array.flags.forc:
            return self.cupy.asarray(_as_bits(array), order="A").view(array.dtype)
        # with the bytes between its elements
        start, end = np.lib.array_utils.byte_bounds(array)
        origin = array.ctypes.data - start
        memory = self.cupy.cuda.alloc(end - start)
        memory.copy_from_host(start, end - start)
        return self.cupy.ndarray(array.shape, array.dtype, memory + origin, array.strides)

    def downloaded(self, array: Any) -> np.ndarray:
        """A NumPy copy, when all work before is done."""
        found: np.ndarray = self.cupy.asnumpy(_as_bits(array), order="A")
        return found.view(array.dtype)

    def write(self, array: Any, values: np.ndarray) -> None:
        """array[...] = values."""
        array[...] = self.cupy.asarray(values)

    def part_of(
        self, array: Any, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
    ) -> Any:
        """A view of an array's memory; offset and strides in elements."""
        item = array.dtype.itemsize
        steps = tuple(s * item for s in strides)
        return self.cupy.ndarray(shape, array.dtype, array.data + offset * item, steps)

    # ------------------------------------------------------------ work

    def functions(self, source: str, names: Sequence[str], options: tuple[str, ...]) -> list[int]:
        """Load the instances that are not known yet, as one module."""
        missing = [n for n in names if (source, n, options) not in self._codes]
        if missing:
            key, found = load_functions(source, missing, options)
            self._enter(key, found)
            self._codes.update({(source, n, options): key for n in missing})
        codes = self.codes(source, names, options)
        return [self._functions[codes[n], n] for n in names]

    def _enter(self, key: str, found: Mapping[str, int]) -> None:
        self._functions.update({(key, name): handle for name, handle in found.items()})

    def codes(self, source: str, names: Sequence[str], options: tuple[str, ...]) -> dict[str, str]:
        """The keys of the machine code of functions that were loaded before."""
        return {n: self._codes[source, n, options] for n in names}

    def recalled(self, codes: Mapping[str, str]) -> dict[str, int] | None:
        """Load what is not known yet from the disk cache."""
        for name, key in codes.items():
            if (key, name) not in self._functions:
                found = load_code(key)
                if found is None:
                    return None
                self._enter(key, found)
        return {name: self._functions[key, name] for name, key in codes.items()}

    def knows_blas(self) -> bool:
        """Whether the runtime has cuBLAS's functions, so that it may be asked for products."""
        return know_cublas()

    def has_tensor_tiles(self) -> bool:
        """Whether this is Hopper."""
        return bool(self.cupy.cuda.Device(self.number).compute_capability == "90")

    def multiply(self, a: Region, b: Region, c: Region) -> None:
        """c = a @ b, the last two axes being matrices, whatever the strides and dtypes."""
        wide = accumulator_of(c.dtype)
        factors = (self.view(r).astype(wide, copy=False) for r in (a, b))
        product = functools.partial(self.cupy.matmul, *factors)
        self.view(c)[...] = self._with_room(product, "memory for a product")

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
            evaluate = functools.partial(op.evaluate, node, *arguments)
            with self._told(op):
                found = self._with_room(evaluate, f"memory for {op.name}")
        except MemoryError:
            raise
        except Exception:  # whatever CuPy lacks; an error of the row itself comes from NumPy too
            with np.errstate(all="ignore"):
                found = op.evaluate(node, *[a.get() for a in arguments])
        parts = found if isinstance(found, (tuple, list)) else (found,)
        for k, region in made:
            self.view(region)[...] = self.cupy.asarray(parts[k])

    def _told(self, op: Op) -> contextlib.AbstractContextManager[Any]:
        """A context in which CuPy raises what NumPy does: singular matrices are NaN for it else."""
        if not op.raises:
            return contextlib.nullcontext()
        from cupyx import errstate

        found: contextlib.AbstractContextManager[Any] = errstate(linalg="raise")
        return found

    def rate(self) -> float:
        """Bytes that its memory moves in a second, at most: two transfers a cycle of its clock."""
        runtime = self.cupy.cuda.runtime
        kilohertz = runtime.deviceGetAttribute(_MEMORY_CLOCK, self.number)
        bits = runtime.deviceGetAttribute(_MEMORY_WIDTH, self.number)
        return 2e3 * float(kilohertz) * bits / 8

    def seconds(self, work: Callable[[], Any]) -> float:
        """How long the GPU takes for work that is asked for again and again: the least of some
        batches, behind runs that load and record what there is to."""
        for _ in range(_WARM):
            work()
        found = []
        for _ in range(_BATCHES):
            begin, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            begin.record()
            for _ in range(_BATCH):
                work()
            end.record()
            end.synchronize()
            found.append(self.cupy.cuda.get_elapsed_time(begin, end))
        return float(min(found)) / 1e3 / _BATCH

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
        found = self._landing.array
        runtime, stream = self.cupy.cuda.runtime, self._stream()
        size, kind = region.dtype.itemsize, runtime.memcpyDeviceToHost
        runtime.memcpyAsync(found.ctypes.data, region.address, size, kind, stream.ptr)
        stream.synchronize()
        return found[:size].view(region.dtype)[0]


def _as_bits(array: Any) -> Any:
    """An array of a dtype that NumPy does not have itself as one of ints: libraries move those by
    rules of their own."""
    is_foreign = array.dtype.isbuiltin == 2
    return array.view(f"u{array.dtype.itemsize}") if is_foreign else array


@functools.cache
def device(number: int) -> CupyDevice:
    """The one object for this GPU."""
    runtime = cupy().cuda.runtime
    try:
        return CupyDevice(number)
    except runtime.CUDARuntimeError as e:
        raise DeviceUnavailable(f"CuPy finds no GPU {number}: {e}") from None


def current_device() -> CupyDevice:
    """The object for CuPy's current GPU."""
    return device(cupy().cuda.Device().id)
