"""Memory: where every stored value lives while a plan runs.

In: the steps in order, as the memories that each reads and writes. Out: a place in the arena for
each memory that is no input or output, and the arena's size. A place is given back after the last
use; a kernel's result takes the place of an operand that dies there when each element is read
before it is overwritten. Sizes are symbolic: a place is used again only where it is surely large
enough.

    plan_memory(uses, {}, sizes) -> ({m0: Place("arena", 0, 0), ...}, 64)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npjit.core.size import Size, bounds, floordiv
from npjit.schedule.items import Memory
from npjit.schedule.kernel import Access, Kernel, Load, Store
from npjit.schedule.plan import Place

ALIGNMENT = 64


@dataclass(frozen=True)
class Use:
    """What one step touches. `kernel` when it is a launch; its buffers are `memories`, in order."""

    memories: tuple[Memory, ...]
    written: frozenset[Memory]
    kernel: Kernel | None = None


@dataclass(frozen=True)
class _Slot:
    offset: Size
    size: Size


def plan_memory(
    uses: Sequence[Use], fixed: Mapping[Memory, Place], sizes: Mapping[Memory, Size]
) -> tuple[dict[Memory, Place], Size]:
    """Places for all memories (`fixed` ones as given; `sizes` are in bytes), and the arena's
    size."""
    last: dict[Memory, int] = {}
    for step, use in enumerate(uses):
        for m in use.memories:
            last[m] = step
    held: dict[Memory, _Slot] = {}
    places = dict(fixed)
    free: list[_Slot] = []
    arena: Size = 0
    for step, use in enumerate(uses):
        dying = [m for m in dict.fromkeys(use.memories) if last[m] == step and m in held]
        for m in dict.fromkeys(use.memories):
            if m in places:
                continue
            need = _aligned(sizes[m])
            heir = next((d for d in dying if _may_take(use, d, m, held[d].size, need)), None)
            if heir is not None:
                dying.remove(heir)
                slot = held.pop(heir)
            else:
                slot = _take(free, need) or _Slot(arena, need)
                if slot.offset == arena:
                    arena = arena + need
            held[m] = slot
            places[m] = Place("arena", 0, slot.offset)
        ended = [m for m in dict.fromkeys(use.memories) if last[m] == step and m in held]
        free.extend(held.pop(m) for m in ended)
    return places, arena


def _aligned(size: Size) -> Size:
    return ALIGNMENT * floordiv(size + (ALIGNMENT - 1), ALIGNMENT)


def _take(free: list[_Slot], need: Size) -> _Slot | None:
    """A free slot of this size, else one that is surely larger."""
    for slot in free:
        if slot.size == need:
            free.remove(slot)
            return slot
    for slot in free:
        room, _ = bounds(slot.size - need)
        if room is not None and room >= 0:
            free.remove(slot)
            return slot
    return None


def _may_take(use: Use, dying: Memory, new: Memory, size: Size, need: Size) -> bool:
    """Whether `new` can overwrite `dying` element by element while the kernel runs."""
    if use.kernel is None or size != need or dying in use.written or new not in use.written:
        return False
    if dying[0].dtype.itemsize != new[0].dtype.itemsize:
        return False
    buffers = list(use.memories)
    return overwrites_safely(use.kernel, buffers.index(dying), buffers.index(new))


def overwrites_safely(kernel: Kernel, read: int, written: int) -> bool:
    """Whether every load of one buffer is of the element that the store of the other replaces, in
    the same loop or an earlier one at the same outer index."""
    stores: list[tuple[int, Access]] = []
    loads: list[tuple[int, Access]] = []
    for number, phase in enumerate(kernel.phases):
        for _, i in phase.body:
            if isinstance(i, Load) and i.access.buffer == read:
                loads.append((number, i.access))
            elif isinstance(i, Load) and i.access.buffer == written:
                return False
            elif isinstance(i, Store) and i.access.buffer == written:
                stores.append((number, i.access))
    if len(stores) != 1:
        return False
    place, target = stores[0]
    for number, access in loads:
        same = access.strides == target.strides and access.offset == target.offset
        # a store names each element once, so that equal strides keep different outer indices apart
        if access.gathers or not same or number > place:
            return False
    return True
