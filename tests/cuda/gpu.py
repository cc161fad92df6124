"""The real GPU in the emulator's place: NPJIT_TEST_GPU=1 runs the same tests there.

In: arrays. Out: copies on the device, with the same strides, `shift` bytes behind a boundary.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.backends.cuda import CupyDevice


class GpuDevice(CupyDevice):
    """CuPy's device with what the tests need of the emulated one."""

    def __init__(self, shift: int = 0) -> None:
        super().__init__(0)
        self.shift = shift

    def array(self, value: Any) -> Any:
        """An argument on the device."""
        if isinstance(value, self.cupy.ndarray):
            value = self.downloaded(value)
        if not isinstance(value, np.ndarray):
            return value
        start, end = np.lib.array_utils.byte_bounds(value) if value.size else (0, 0)
        memory = self.cupy.cuda.alloc(end - start + self.shift + 1)
        origin = value.ctypes.data - start if value.size else 0
        if value.size:
            (memory + self.shift).copy_from_host(start, end - start)
        pointer = memory + (origin + self.shift)
        return self.cupy.ndarray(value.shape, value.dtype, pointer, value.strides)

    def forget(self) -> None:
        """Nothing is kept."""

    def values(self, array: Any) -> Any:
        """An array for NumPy to read."""
        return self.downloaded(array) if isinstance(array, self.cupy.ndarray) else array
