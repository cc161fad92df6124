"""Launches of CUDA kernels: what a kernel's host side decides from actual sizes and addresses.

In: a `Request`, the sizes and addresses of one launch of the plan. Out: a `Configured`, the
functions to start with grid, block and template arguments, and how much scratch memory they share:

    Launch k0 with s0 = 1000, all addresses multiples of 16
        -> start k0<i32, 4, 0x24> with 1 block of 256 threads
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from npjit.core.size import Size, atoms, substitute
from npjit.schedule.kernel import Access, Coordinate, DType, Kernel, Load, Store, extents

# 32-bit indices reach this far; a thread may step beyond its last item, so not the whole range is
# used
_REACH = 2**30
# the widest access of one thread, in bytes
_WIDEST = 16


@dataclass(frozen=True)
class Start:
    """One function to start: its name with template arguments, blocks along x and y, threads of a
    block, and bytes of a block's shared memory beside what the function declares."""

    function: str
    grid: tuple[int, int]
    block: int
    shared: int = 0


@dataclass(frozen=True)
class Configured:
    """The functions of one launch in order. Each gets the launch's own arguments, then one pointer
    for every region of scratch memory (sizes in bytes), then one to `counters` zeroed u32, which
    the functions leave zeroed."""

    starts: tuple[Start, ...]
    regions: tuple[int, ...] = ()
    counters: int = 0


@dataclass(frozen=True)
class Slot:
    """One access that a thread does for several lanes at once."""

    access: Access
    dtype: DType

    @property
    def planes(self) -> int:
        """Stored numbers of one element."""
        return 2 if self.dtype.kind == "c" else 1


@dataclass(frozen=True)
class Tuning:
    """What measuring may choose otherwise than the printers do: the most lanes of a thread, how
    many times as many blocks share a reduction, whether launches that can be one are."""

    lanes: int = 16
    blocks: int = 1
    joined: bool = True


UNTUNED = Tuning()


class Request:
    """Sizes and addresses of one launch."""

    def __init__(
        self,
        kernel: Kernel,
        sizes: Sequence[int],
        addresses: Mapping[int, int],
        tuning: Tuning = UNTUNED,
    ) -> None:
        self.kernel = kernel
        self.sizes = sizes
        self.addresses = addresses
        self.tuning = tuning

    def widest(self, slots: Sequence[Slot]) -> int:
        """Lanes of a thread, no more than tuned."""
        return min(widest(slots), self.tuning.lanes)

    def busy(self, blocks: int) -> int:
        """The number of blocks up to which a reduction is shared, `blocks` unless tuned."""
        return blocks * self.tuning.blocks

    def value(self, size: Size) -> int:
        """A size of the kernel as a number."""
        if isinstance(size, int):
            return size
        found = substitute(size, {v: self.sizes[int(v.name[1:])] for v in atoms(size)})
        assert isinstance(found, int)
        return found

    def extent(self, axis: int) -> int:
        """An axis's extent."""
        return self.value(self.kernel.axes[axis].extent)

    def items(self, axes: Iterable[int]) -> int:
        """Points of these axes' space."""
        total = 1
        for size in extents(self.kernel, tuple(axes)):
            total *= self.value(size)
        return total

    def index_type(self) -> str:
        """The narrowest type that holds every index of the launch."""
        largest = max(map(abs, (*self.sizes, self.items(self.kernel.outer))), default=0)
        for phase in self.kernel.phases:
            largest = max(largest, self.items(phase.axes))
            for _, instr in phase.body:
                if isinstance(instr, Load | Store):
                    largest = max(largest, self._reach(instr.access.offset, instr.access.strides))
                elif isinstance(instr, Coordinate):
                    steps = ((instr.axis, instr.step),)
                    largest = max(largest, self._reach(instr.start, steps))
        return "i32" if largest < _REACH else "i64"

    def _reach(self, offset: Size, strides: Iterable[tuple[int, Size]]) -> int:
        steps = (abs(self.value(s)) * max(self.extent(a), 1) for a, s in strides)
        return abs(self.value(offset)) + sum(steps)

    def alignment(self, slot: Slot, along: int, width: int) -> int:
        """log2 of the bytes that every access of this slot is aligned to, when `width` lanes along
        an axis are one access."""
        element = slot.dtype.itemsize
        size = element // slot.planes
        wanted = min(_WIDEST, width * element)
        place = self.addresses.get(slot.access.buffer, 0) + self.value(slot.access.offset) * element
        steps = [width * element, place]
        for axis, stride in slot.access.strides:
            if axis != along and self.extent(axis) > 1:
                steps.append(self.value(stride) * element)
        steps += [self.value(stride) * element for _, stride in slot.access.gathers]
        while wanted > size and any(step % wanted for step in steps):
            wanted //= 2
        return wanted.bit_length() - 1

    def lies_like(self, slot: Slot, other: Slot, along: int, width: int) -> int:
        """log2 of the bytes that packs of `width` lanes are aligned to in both slots when they
        begin as many elements before their rows as the other's rows lie behind a boundary; 0: the
        rows do not lie alike."""
        element = slot.dtype.itemsize
        wanted = min(_WIDEST, width * element)
        offset = self.value(slot.access.offset)
        place = self.addresses.get(slot.access.buffer, 0) + offset * element
        theirs = dict(other.access.strides)
        for axis, stride in (*slot.access.strides, *other.access.strides):
            step = self.value(dict(slot.access.strides).get(axis, 0))
            apart = step - self.value(theirs.get(axis, 0))
            if (
                axis != along
                and self.extent(axis) > 1
                and (apart % width or self.value(stride) < 0)
            ):
                return 0
        if place % wanted or offset % width or offset < 0 or slot.access.gathers:
            return 0
        return wanted.bit_length() - 1

    def packed(self, slots: Sequence[Slot], along: int, width: int) -> str:
        """The alignments of all slots as a template argument, three bits each."""
        bits = 0
        for number, slot in enumerate(slots):
            bits |= self.alignment(slot, along, width) << (3 * number)
        return f"{bits:#x}ull"

    def are_aligned(self, slots: Sequence[Slot], along: int, width: int) -> bool:
        """Whether each slot's lanes can be moved in as few accesses as there may be."""
        return all(
            2 ** self.alignment(s, along, width) == min(_WIDEST, width * s.dtype.itemsize)
            for s in slots
        )


def widest(slots: Sequence[Slot]) -> int:
    """Lanes of a thread: full accesses for the narrowest type, no more than two for the widest
    one."""
    if not slots:
        return 1
    sizes = [s.dtype.itemsize for s in slots]
    return max(1, min(_WIDEST // min(sizes), 2 * _WIDEST // max(sizes), 8))


def up(value: int, step: int) -> int:
    """value / step, rounded up."""
    return -(-value // step)


def power(value: int) -> int:
    """The smallest power of two that is at least `value`."""
    return 1 << max(0, value - 1).bit_length()
