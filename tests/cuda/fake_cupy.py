"""As much of CuPy as npjit uses, over CPU memory, for the emulated device.

In: nothing. Out: `install(monkeypatch)`, after which npjit's CUDA backend finds this module and the
emulator:

    cupy = install(monkeypatch)
    npjit.jit(f)(cupy.asarray(x))
"""

from __future__ import annotations

import contextlib
import os
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from npjit.backends import cuda as backend
from tests.cuda.emulate import EmulatedDevice


class Pointer:
    """An address, with what keeps its memory alive."""

    def __init__(self, ptr: int, owner: Any) -> None:
        self.ptr = ptr
        self.owner = owner
        self.device_id = 0

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.ptr + offset, self.owner)


class Array:
    """A device array; only its own methods read it."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        self.data = Pointer(values.ctypes.data, values)
        self.shape, self.strides, self.dtype = values.shape, values.strides, values.dtype
        self.ndim, self.size, self.itemsize = values.ndim, values.size, values.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._values.__array_interface__

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


def install(monkeypatch: Any) -> Any:
    """Put the fake module and the emulated device in place of CuPy and its device; the real ones
    stay where the tests run on a GPU."""
    if "NPJIT_TEST_GPU" in os.environ:
        return backend.cupy()
    device = ArrayDevice()

    def asarray(value: Any, order: str = "K") -> Array:
        return value if isinstance(value, Array) else Array(device.array(np.asarray(value)))

    def ndarray(shape: Any, dtype: Any, pointer: Pointer, strides: Any) -> Array:
        address = {"shape": shape, "typestr": np.dtype(dtype).str, "strides": strides, "version": 3}
        view = types.SimpleNamespace(
            __array_interface__=address | {"data": (pointer.ptr, False)}, owner=pointer.owner
        )
        return Array(np.asarray(view))

    @contextlib.contextmanager
    def on_device(number: int) -> Iterator[None]:
        yield

    module = types.SimpleNamespace(
        asarray=asarray,
        asnumpy=lambda a, order="A": a.get(),
        ndarray=ndarray,
        cuda=types.SimpleNamespace(
            Device=on_device, runtime=types.SimpleNamespace(getDevice=lambda: 0)
        ),
    )
    monkeypatch.setattr(backend, "cupy", lambda: module)
    monkeypatch.setattr(backend, "device", lambda: device)
    return module
