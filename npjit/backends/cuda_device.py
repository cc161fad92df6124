"""What the CUDA backend needs of a device.

In: nothing. Out: the protocol `Device`, which CuPy fulfils on a GPU and an emulator in the tests,
and the `Region`s of memory that matrix products and calls work on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np

from npjit.core.op import Op


class DeviceUnavailable(Exception):
    """The GPU that a call needs cannot be had; the message says what is missing."""


class CheckFailed(Exception):
    """A check of a plan did not hold."""


@dataclass(frozen=True)
class Region:
    """An array in device memory: the address of its first element, strides in elements."""

    address: int
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Keeper(Protocol):
    """Something that keeps memory for later calls."""

    def release(self) -> None:
        """Let go of it."""


class Device(Protocol):
    """One GPU, of the make `name`. All work is ordered as it is asked for. `memory` gives so many
    bytes from the pool, as an object with its address as `ptr`; where they run short, `room` is
    asked to release."""

    number: int
    name: str
    memory: Callable[[int], Any]
    room: WeakSet[Keeper]

    def active(self) -> AbstractContextManager[Any]:
        """A context in which this is the current GPU."""

    def address(self, array: Any) -> int:
        """Where an array's first element lies."""

    def maker(
        self, shape: tuple[int, ...], dtype: Any, perm: tuple[int, ...] | None
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What makes a new array, its axes in memory in the order of `perm`; and its arguments, the
        shape first."""

    def empty(self, shape: tuple[int, ...], dtype: Any, perm: tuple[int, ...] | None) -> Any:
        """A new array, as `maker` says."""

    def allocate(self, size: int) -> tuple[Any, int]:
        """Memory, as what keeps it alive and its address, a multiple of 256 (0 for no bytes)."""

    def counters(self, count: int) -> int:
        """The address of so many u32 that are zero between launches."""

    def uploaded(self, array: np.ndarray) -> Any:
        """A copy of a NumPy array with the same strides."""

    def downloaded(self, array: Any) -> np.ndarray:
        """A NumPy copy of an array, when all work before is done."""

    def write(self, array: Any, values: np.ndarray) -> None:
        """array[...] = values."""

    def part_of(
        self, array: Any, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
    ) -> Any:
        """A view of an array's memory; offset and strides in elements."""

    def functions(self, source: str, names: Sequence[str], options: tuple[str, ...]) -> list[int]:
        """The driver's handles of the instances `names` of a module's functions, compiled with
        these options."""

    def codes(self, source: str, names: Sequence[str], options: tuple[str, ...]) -> dict[str, str]:
        """Under which keys the disk cache has the machine code of such functions."""

    def recalled(self, codes: Mapping[str, str]) -> dict[str, int] | None:
        """The driver's handles of functions by their machine code's keys; None if some is gone."""

    def knows_blas(self) -> bool:
        """Whether the runtime has cuBLAS's functions, so that it may be asked for products."""

    def has_tensor_tiles(self) -> bool:
        """Whether its tensor cores take tiles of 16 bit numbers from shared memory, as Hopper's."""

    def multiply(self, a: Region, b: Region, c: Region) -> None:
        """c = a @ b, the last two axes being matrices, whatever the strides and dtypes."""

    def copy(self, source: Region, target: Region) -> None:
        """target = source."""

    def compute(
        self, op: Op, params: Any, given: Sequence[Region], made: Sequence[tuple[int, Region]]
    ) -> None:
        """Results of a row, by number, from whole arrays."""

    def rate(self) -> float:
        """Bytes that its memory moves in a second, at most."""

    def seconds(self, work: Callable[[], Any]) -> float:
        """How long the GPU takes for work that is asked for again and again."""

    def read(self, region: Region) -> Any:
        """The single element of a region, when all work before is done."""
