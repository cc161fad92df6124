"""CuPy's arrays read where they have what their attributes say; no GPU is needed for that."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from npjit import _runtime
from npjit.api import placement
from npjit.backends.cupy_fields import array_fields
from tests.cuda.fake_cupy import Array


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    """CuPy's arrays are known again at the end, where it is there."""
    yield
    placement._register.cache_clear()
    placement.know_cupy()


def array(cupy: Any, *given: Any, number: int = 3) -> Any:
    memory = cupy.cuda.UnownedMemory(0x10000000, 1 << 20, None, number)
    return cupy.ndarray(*given[:2], cupy.cuda.MemoryPointer(memory, 256), *given[2:])


def test_fields_say_what_attributes_say() -> None:
    cupy = pytest.importorskip("cupy")
    fields = array_fields(cupy)
    assert fields is not None and fields["create"] is not None
    _runtime.set_device_interface(cupy.ndarray, lambda: 0, fields)
    for given in (
        ((), "f4"),
        ((7,), "f8"),
        ((0, 3), "i4"),
        ((3, 4, 5), "c16"),
        ((3, 4), "f4", (4, 12)),
        ((3, 4), "f4", (-32, 8)),
    ):
        x = array(cupy, *given)
        header, number = _runtime.device_header(x)
        assert (header.shape, header.dtype, number) == (x.shape, x.dtype, 3)
        assert header.strides == x.strides
        assert not x.size or header.ctypes.data == x.data.ptr
        x.shape = (*x.shape, 1)
        assert _runtime.device_header(x)[0].shape == x.shape
    assert _runtime.device_header(array(cupy, (4,), "f8").view("V8")) is None


@pytest.mark.parametrize("lacking", ["fields", "classes"])
def test_other_arrays_are_asked(lacking: str) -> None:
    def pointer(memory: Any, offset: int) -> Any:
        return SimpleNamespace(ptr=memory.ptr + offset, device_id=memory.number)

    class Likewise:
        def __init__(self, shape: Any, dtype: Any, data: Any, strides: Any) -> None:
            self.shape, self.strides, self.data = shape, strides, data
            self.dtype = np.dtype(dtype)

    def unowned(address: int, size: int, owner: Any, number: int) -> Any:
        return SimpleNamespace(ptr=address, number=number)

    cuda = SimpleNamespace(UnownedMemory=unowned, MemoryPointer=pointer)
    found = array_fields(
        SimpleNamespace(ndarray=Likewise, cuda=cuda if lacking == "fields" else None)
    )
    assert found is None
    _runtime.set_device_interface(Array, lambda: 0, found)
    x = Array(np.arange(6.0).reshape(2, 3))
    assert _runtime.device_header(x)[0].strides == (24, 8)
