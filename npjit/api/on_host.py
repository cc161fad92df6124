"""The function itself on the CPU, for calls with device arrays in which something is wrong.

In: the function; a call's arguments. Out: what NumPy gives or raises, where CuPy would go on (an
index out of bounds wraps around there); results and what was written are the GPU's again:

    OnHost(f)(cupy.ones(3), [7])        ->  IndexError: index 7 is out of bounds ...
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from npjit import _runtime
from npjit.backends.cuda_device import Device
from npjit.core.trees import tree_map


class OnHost:
    """See the module's docstring. Arguments that share memory are left to the function itself, and
    so are calls that meet other device arrays (attributes, say), which NumPy does not take, or ask
    for what only these have (`x.get()`)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        moved = Moved()
        given, named = tree_map(moved.down, [list(args), kwargs])
        if moved.device is None or moved.share_memory():
            return self.function(*args, **kwargs)
        with moved.device.active():
            try:
                return tree_map(moved.up, self.function(*given, **named))
            except (TypeError, AttributeError):
                moved.known.clear()
            finally:
                moved.write()
        return self.function(*args, **kwargs)


class Moved:
    """Device arrays and their copies on the CPU."""

    def __init__(self) -> None:
        self.device: Device | None = None
        # by identity: the array, its copy, and its values before the call
        self.known: dict[int, tuple[Any, np.ndarray, np.ndarray]] = {}

    def down(self, value: Any) -> Any:
        """An argument on the CPU."""
        if not _runtime.is_device_array(value):
            return value
        if id(value) not in self.known:
            copy = _device_of(value).downloaded(value)
            self.known[id(value)] = value, copy, copy.copy()
            self.device = _device_of(value)
        return self.known[id(value)][1]

    def up(self, value: Any) -> Any:
        """A result on the GPU; views of arguments are that."""
        if self.device is None or not isinstance(value, (np.ndarray, np.generic)):
            return value
        for array, copy, _ in self.known.values():
            if value is copy:
                return array
            is_view = isinstance(value, np.ndarray) and np.may_share_memory(value, copy)
            if is_view and copy.strides == array.strides:
                item = copy.itemsize
                offset = (value.ctypes.data - copy.ctypes.data) // item
                strides = tuple(s // item for s in value.strides)
                return self.device.part_of(array, value.shape, offset, strides)
        return self.device.uploaded(np.asarray(value))

    def share_memory(self) -> bool:
        """Whether some of the arrays do."""
        headers = [_runtime.device_header(array) for array, _, _ in self.known.values()]
        pairs = itertools.combinations(headers, 2)
        return any(a is None or b is None or np.may_share_memory(a[0], b[0]) for a, b in pairs)

    def write(self) -> None:
        """What the call has written."""
        for array, copy, before in self.known.values():
            if copy.tobytes() != before.tobytes():
                _device_of(array).write(array, copy)


def _device_of(array: Any) -> Device:
    from npjit.backends import cuda

    return cuda.device(array.data.device_id)
