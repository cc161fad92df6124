"""Where a call's arrays live, and so where it runs.

In: the arguments of a call, or what it was captured to. Out: device arrays as CuPy's; the number of
the GPU, or ON_CPU:

    adopted((torch_tensor, 2.0), {})    ->  ((cupy_array, 2.0), {}); None: there is nothing to adopt
    place(captured, "cuda:1")           ->  1, when all its arrays live on the CPU
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from npjit import _runtime
from npjit.api.guards import Namer
from npjit.core.trees import tree_map
from npjit.frontend.capture import ON_CPU, Input
from npjit.frontend.trace import Captured

# what DLPack calls a GPU's memory
_DLPACK_CUDA = 2


class DeviceMismatch(TypeError):
    """A call's arrays live on different devices."""


def know_cupy() -> bool:
    """Have the runtime see CuPy's arrays as soon as CuPy is imported; whether it is."""
    cupy = sys.modules.get("cupy")
    return hasattr(cupy, "ndarray") and _register(cupy)


@functools.cache
def _register(cupy: Any) -> bool:
    from cupy.cuda import stream

    from npjit.backends.cupy_fields import array_fields

    # a C function where CuPy has one: the stream is asked for at every call
    known = getattr(stream, "__pyx_capi__", {}).get("get_current_stream_ptr")
    current = known or (lambda: stream.get_current_stream().ptr)
    _runtime.set_device_interface(cupy.ndarray, current, array_fields(cupy))
    return True


def adopted(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments with CuPy arrays over the memory of other libraries' device arrays; None when
    there are none.
    """
    know_cupy()
    if not any(map(_is_foreign, _leaves(args, kwargs))):
        return None
    from npjit.backends.cuda import cupy

    def adopt(value: Any) -> Any:
        if not _is_foreign(value):
            return value
        if hasattr(type(value), "__cuda_array_interface__"):
            found = cupy().asarray(value)
            # bfloat16 is just two bytes there, and has a name in DLPack
            if found.dtype.kind != "V" or not hasattr(value, "__dlpack__"):
                return found
        return cupy().from_dlpack(value)

    given, named = tree_map(adopt, [list(args), kwargs])
    know_cupy()
    return tuple(given), named


def holds_device_arrays(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether some of the arguments are CuPy arrays."""
    return any(map(_runtime.is_device_array, _leaves(args, kwargs)))


def _is_foreign(value: Any) -> bool:
    """Whether an object that is no CuPy array has its memory on a GPU."""
    cls = type(value)
    if cls is np.ndarray or _runtime.is_device_array(value):
        return False
    # a tensor on the CPU has the attribute's name in its class alone
    if hasattr(cls, "__cuda_array_interface__"):
        return hasattr(value, "__cuda_array_interface__")
    return hasattr(cls, "__dlpack_device__") and value.__dlpack_device__()[0] == _DLPACK_CUDA


def _leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """The arguments and what tuples, lists and dicts among them hold."""
    waiting: list[Any] = [args, kwargs]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (tuple, list)):
            waiting += reversed(value)
        elif isinstance(value, dict):
            waiting += reversed(value.values())
        else:
            yield value


def place(captured: Captured, device: str | None) -> int:
    """The GPU that runs a captured call: where its arrays live, or by the option `device`."""
    numbers = sorted({i.device for i in captured.inputs} - {ON_CPU})
    if not numbers:
        return ON_CPU if device is None else int(device.partition(":")[2] or 0)
    name = Namer(None, captured.steps).name
    if len(numbers) > 1:
        where = ", ".join(f"{name(i.step)} on GPU {i.device}" for i in _on(captured, numbers))
        raise DeviceMismatch(f"arrays live on several GPUs: {where}")
    ours = host_arrays(captured)
    if ours and not captured.may_mix:
        theirs = _on(captured, numbers)
        raise DeviceMismatch(
            f"arrays live on both CPU ({name(ours[0].step)}) and GPU ({name(theirs[0].step)}): "
            "move one side, by cupy.asarray or cupy.asnumpy"
        )
    return numbers[0]


def _on(captured: Captured, numbers: list[int]) -> list[Input]:
    return [i for i in captured.inputs if i.device in numbers]


def host_arrays(captured: Captured) -> list[Input]:
    """The inputs that are arrays of the caller's on the CPU, not ones that the trace keeps."""
    on_cpu = (i for i in captured.inputs if i.device == ON_CPU)
    arrays = (i for i in on_cpu if isinstance(i.value, np.ndarray))
    return [i for i in arrays if captured.steps[i.step][0][0] != "root"]
