"""Steps of a plan that no kernel does: products, rows on whole arrays, copies, checks.

In: a `Device` and regions relative to numbered bases. Out: callables for the runtime's tape, which
calls them with all bases; one that returns False stops the plan:

    Require(device, Based(arena, flag))([x, y, arena, ...])    ->  whether the flag is set
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npjit.backends.cuda_device import Device, Multiplier, Region
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
    """A step of the device's libraries; called with the bases, it returns False to stop the
    plan."""

    device: Device


@dataclass(frozen=True)
class Multiply:
    """c = a @ b."""

    run: Multiplier
    operands: tuple[Based, Based, Based]

    def __call__(self, bases: Sequence[int]) -> None:
        a, b, c = (bases[o.base] + o.region.address for o in self.operands)
        self.run(a, b, c)


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


@dataclass(frozen=True)
class Require(Host):
    """Stop unless the bool is true."""

    flag: Based

    def __call__(self, bases: Sequence[int]) -> bool:
        return bool(self.device.read(self.flag.at(bases)))
