"""What the CUDA backend needs of a device.

In: nothing. Out: the protocol `Device`, which CuPy fulfils on a GPU and an emulator in the tests,
and the `Region`s of memory that matrix products and calls work on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from npjit.core.op import Op


@dataclass(frozen=True)
class Region:
    """An array in device memory: the address of its first element, strides in elements."""

    address: int
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Device(Protocol):
    """All work is ordered as it is asked for."""

    def address(self, array: Any) -> int:
        """Where an array's first element lies."""

    def empty(self, shape: tuple[int, ...], dtype: Any, perm: tuple[int, ...] | None) -> Any:
        """A new array, its axes in memory in the order of `perm`."""

    def allocate(self, size: int) -> tuple[Any, int]:
        """Memory, as what keeps it alive and its address, a multiple of 256."""

    def counters(self, count: int) -> int:
        """The address of so many u32 that are zero between launches."""

    def functions(self, source: str, names: Sequence[str]) -> list[Any]:
        """The instances `names` of a module's functions."""

    def start(self, function: Any, grid: tuple[int, int], block: int, parameters: int) -> None:
        """Start a function; `parameters` is the address of its parameters' addresses."""

    def multiply(self, a: Region, b: Region, c: Region) -> None:
        """c = a @ b, the last two axes being matrices."""

    def copy(self, source: Region, target: Region) -> None:
        """target = source."""

    def compute(
        self, op: Op, params: Any, given: Sequence[Region], made: Sequence[tuple[int, Region]]
    ) -> None:
        """Results of a row, by number, from whole arrays."""

    def read(self, region: Region) -> Any:
        """The single element of a region, when all work before is done."""
