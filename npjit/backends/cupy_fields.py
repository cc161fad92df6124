"""Where CuPy's objects have what their attributes say, so that the runtime reads it as C does.

In: the cupy module. Out: places in bytes from an object's beginning, as
`_runtime.set_device_interface` takes them; None where they are not found, and attributes are asked:

    array_fields(cupy)    ->  {"pointer": MemoryPointer, "shape": 40, "ptr": 24, ...}

CuPy tells no other extension how its arrays are laid out. The places are found by looking: some
arrays over memory that nobody touches have contents that nothing else has. What makes arrays inside
CuPy is there for extensions, without saying which; it is taken if its signature is the known one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

# (address, number of the GPU, offset, shape, strides, dtype) of arrays to look at
_SAMPLES = (
    (0x5A5A12340000, 77, 64, (3, 5, 7, 11, 13), (48048, 8008, 1001, 91, 7), "i1"),
    (0x6B6B56780000, 1234, 512, (2, 17, 4), (2048, 64, 8), "f8"),
)
# what makes an array of a type, shape and dtype in C order; a shape is a vector like the fields
_CREATE = "_ndarray_init"
_CREATES = (
    "struct __pyx_obj_4cupy_5_core_4core__ndarray_base *"
    "(PyObject *, __pyx_t_4cupy_5_core_7_carray_shape_t const &, PyObject *, PyObject *)"
)
_WORD = ctypes.sizeof(ctypes.c_void_p)
_INT = ctypes.sizeof(ctypes.c_int)
_PAGE = 4096


def array_fields(cupy: Any) -> dict[str, Any] | None:
    """See the module's docstring."""
    try:
        samples = [_sample(cupy, *sample) for sample in _SAMPLES]
    except (AttributeError, TypeError):
        return None
    seen = [_places(array) for array in samples]
    found: dict[str, Any] = {"pointer": type(samples[0].data)}
    for name in seen[0]:
        places = set.intersection(*(places[name] for places in seen))
        if len(places) != 1:
            return None
        (found[name],) = places
    return {**found, "create": _creator(cupy)}


def _creator(cupy: Any) -> Any:
    """The capsule of the C function that makes arrays; None if CuPy has none that is known."""
    core = getattr(getattr(cupy, "_core", None), "core", None)
    exported = getattr(core, "__pyx_capi__", {})
    capsule = exported.get(_CREATE)
    return capsule if f'"{_CREATES}"' in repr(capsule) else None


def _sample(
    cupy: Any, address: int, number: int, offset: int, shape: Any, strides: Any, dtype: str
) -> Any:
    memory = cupy.cuda.UnownedMemory(address, 1 << 20, None, number)
    pointer = cupy.cuda.MemoryPointer(memory, offset)
    return cupy.ndarray(shape, dtype, pointer, strides)


def _places(array: Any) -> dict[str, set[int]]:
    """Where an array, and its `data`, have something that is equal to their attributes."""
    pointer = array.data
    return {
        "shape": set(_vectors(array, array.shape)),
        "strides": set(_vectors(array, array.strides)),
        "dtype": set(_words(array, id(array.dtype))),
        "data": set(_words(array, id(pointer))),
        "ptr": set(_words(pointer, pointer.ptr)),
        "device_id": set(_ints(pointer, pointer.device_id)),
    }


def _contents(value: Any) -> bytes:
    return ctypes.string_at(id(value), type(value).__basicsize__)


def _words(value: Any, wanted: int) -> Iterator[int]:
    contents = memoryview(_contents(value)).cast("N")
    return (i * _WORD for i, found in enumerate(contents) if found == wanted)


def _ints(value: Any, wanted: int) -> Iterator[int]:
    contents = memoryview(_contents(value)).cast("i")
    return (i * _INT for i, found in enumerate(contents) if found == wanted)


def _vectors(value: Any, wanted: tuple[int, ...]) -> Iterator[int]:
    """Where a C++ vector of these numbers is: its beginning, its end, the end of its memory."""
    contents = memoryview(_contents(value)).cast("N")
    size = len(wanted) * _WORD
    for i, (begin, end, last) in enumerate(zip(contents, contents[1:], contents[2:], strict=False)):
        # what is no address is not followed
        if begin >= _PAGE and begin % _WORD == 0 and end - begin == size and last >= end:
            numbers = memoryview(ctypes.string_at(begin, size)).cast("n")
            if tuple(numbers) == wanted:
                yield i * _WORD
