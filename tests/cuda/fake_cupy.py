"""As much of CuPy as npjit uses, over CPU memory, for the emulated device.

In: nothing. Out: `install(monkeypatch)`, after which npjit's CUDA backend finds this module and the
emulator:

    cupy = install(monkeypatch)
    npjit.jit(f)(cupy.asarray(x))
"""

from __future__ import annotations

import os
import types
from typing import Any

import numpy as np

from npjit import _runtime
from npjit.api.placement import know_cupy
from npjit.backends import cuda as backend
from tests.cuda.emulate import EmulatedDevice

ON_GPU = "NPJIT_TEST_GPU" in os.environ


class Pointer:
    """An address, with what keeps its memory alive."""

    def __init__(self, ptr: int, owner: Any) -> None:
        self.ptr = ptr
        self.owner = owner
        # an object of its own, as CuPy's: who holds it holds the memory
        self.mem = types.SimpleNamespace(owner=owner)
        self.device_id = 0


class Array:
    """A device array; only its own methods read it."""

    def __init__(self, values: np.ndarray, owner: Any = None) -> None:
        self._values = values
        self.data = Pointer(values.ctypes.data, values if owner is None else owner)
        self.shape, self.strides, self.dtype = values.shape, values.strides, values.dtype
        self.ndim, self.size, self.itemsize = values.ndim, values.size, values.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._values.__array_interface__

    @property
    def _c_contiguous(self) -> bool:
        return self._values.flags.c_contiguous

    def __getitem__(self, where: Any) -> Array:
        return Array(self._values[where], self.data.owner)

    def get(self) -> np.ndarray:
        return self._values.copy(order="K")

    def item(self) -> Any:
        return self._values.item()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [v._values if isinstance(v, Array) else v for v in inputs]
        return Array(np.asarray(getattr(ufunc, method)(*plain, **kwargs)))

    def __mul__(self, other: Any) -> Any:
        return np.multiply(self, other)


class ArrayDevice(EmulatedDevice):
    """The emulated device with `Array`s for arrays, each in memory of known bounds."""

    def address(self, array: Any) -> int:
        return array.data.ptr if isinstance(array, Array) else super().address(array)

    def empty(self, shape: Any, dtype: Any, perm: Any) -> Any:
        return Array(super().empty(shape, dtype, perm))

    def uploaded(self, array: np.ndarray) -> Array:
        return Array(super().array(array))

    def downloaded(self, array: Array) -> np.ndarray:
        return array.get()

    def write(self, array: Array, values: np.ndarray) -> None:
        array._values[...] = values

    def part_of(self, array: Array, shape: Any, offset: int, strides: Any) -> Array:
        owner, item = array.data.owner, array.itemsize
        if 0 in shape:
            return Array(np.empty(shape, array.dtype), owner)
        start = array.data.ptr - owner.ctypes.data + offset * item
        view = np.ndarray((1,), array.dtype, owner, start)
        steps = [s * item for s in strides]
        return Array(np.lib.stride_tricks.as_strided(view, shape, steps), owner)


def install(monkeypatch: Any, recalls: bool = False) -> Any:
    """Put the fake module and the emulated device in place of CuPy and its device; the real ones
    stay where the tests run on a GPU. Without `recalls` all is made anew: tests change what plans
    and launches depend on."""
    if not recalls:
        monkeypatch.setattr("npjit.api.device.recall_outline", lambda key: None)
        monkeypatch.setattr("npjit.backends.cuda_native.recall", lambda key: None)
    if ON_GPU:
        module = backend.cupy()
        know_cupy()
        return module
    device = ArrayDevice()

    def asarray(value: Any) -> Array:
        """From NumPy's arrays, and what tests/cuda has of other libraries'."""
        value = getattr(value, "values", value)
        return value if isinstance(value, Array) else device.uploaded(np.asarray(value))

    module = types.SimpleNamespace(
        asarray=asarray, from_dlpack=asarray, ndarray=Array, device=device
    )
    _runtime.set_device_interface(Array, lambda: 0)
    monkeypatch.setattr(backend, "cupy", lambda: module)
    monkeypatch.setattr(backend, "device", lambda number: device)
    return module
