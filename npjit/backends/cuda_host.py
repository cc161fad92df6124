"""Steps of a plan that the device's libraries do by Python: rows on whole arrays, copies, products
of strides or dtypes that cuBLAS does not take.

In: a `Device` and regions relative to numbered bases. Out: callables for the runtime's tape, which
calls them with all bases; one that returns False stops the plan:

    Copy(device, Based(0, region), Based(1, region))([x, y, arena, ...])    ->  y = x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npjit.backends.cuda_device import Device, Region
from npjit.core.op import Op


@dataclass(frozen=True)
class Based:
    """A region whose address is relative to a base."""

    base: int
    region: Region

    def at(self, bases: Sequence[int]) -> Region:
        """The region itself."""
        r = self.region
        return Region(bases[self.base] + r.address, r.dtype, r.shape, r.strides)


@dataclass(frozen=True)
class Host:
    """Called with the bases, it returns False to stop the plan."""

    device: Device


@dataclass(frozen=True)
class Multiply(Host):
    """c = a @ b, where cuBLAS does not take it."""

    a: Based
    b: Based
    c: Based

    def __call__(self, bases: Sequence[int]) -> None:
        self.device.multiply(self.a.at(bases), self.b.at(bases), self.c.at(bases))


@dataclass(frozen=True)
class Compute(Host):
    """A row on whole arrays."""

    op: Op
    params: Any
    given: tuple[Based, ...]
    made: tuple[tuple[int, Based], ...]

    def __call__(self, bases: Sequence[int]) -> bool:
        given = [g.at(bases) for g in self.given]
        made = [(k, m.at(bases)) for k, m in self.made]
        try:
            self.device.compute(self.op, self.params, given, made)
        except (ArithmeticError, ValueError, TypeError, IndexError):
            return False  # an error of the user's, which NumPy will raise
        return True


@dataclass(frozen=True)
class Copy(Host):
    """target = source."""

    source: Based
    target: Based

    def __call__(self, bases: Sequence[int]) -> None:
        self.device.copy(self.source.at(bases), self.target.at(bases))
