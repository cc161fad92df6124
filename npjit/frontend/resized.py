"""Arrays that change their shape from trip to trip of a staged loop.

Such an array lies in a buffer with room for what it may become. How much of it is in use is a
length, an int that the loop carries; arrays whose extents change alike share one:

    while len(x) > 1:                     buffer = x.copy(); n = len(x)
        x = x[x > x.mean()]        ->     while n > 1:
                                              new = buffer[:n][mask]
                                              n = len(new); buffer[:n] = new
    x                                     buffer[:n]

In: the leaves of a loop's state, and which of them change their shape. Out: the leaves with buffers
in their place and the lengths behind them (`entry`), what the body sees of those (`shown`), and
what it leaves (`stored`). Where the room turns out to be too small a check fails, and the call runs
as NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core.assume import Unknown
from npjit.core.graph import Block, TensorType, Weight
from npjit.core.size import Size, Var, atoms, depth, smax, smin
from npjit.core.view import Along, View
from npjit.frontend.values import NotStaged, as_type, is_array
from npjit.ops import build, kinds
from npjit.ops.cell import Cell, room_for
from npjit.ops.indexing import DEEPEST, bind
from npjit.ops.kinds import CHECK, UFUNCS
from npjit.ops.sharing import ancestors_of, family_of, share_unwritten
from npjit.ops.symint import is_int, size_of, wrap
from npjit.ops.tracer import Tracer, as_node, fresh

# what a `while` fills has room for so many items more than the arguments have elements
LEAST_ROOM = 1024


class Resizing(NotStaged):
    """These leaves (with what they end a trip with) change their shape."""

    def __init__(self, ends: Mapping[int, Tracer]) -> None:
        super().__init__("an array changes its shape or dtype from trip to trip")
        self.ends = ends

    def is_given(self, block: Block) -> bool:
        """Whether sizes of the call decide all these extents."""
        known = block.sizes.values
        sizes = [n for end in self.ends.values() for n in end.raw_shape]
        return all(v.name in known for n in sizes for v in atoms(n))


class Written(NotStaged):
    """The body writes to an array that it binds anew: its first one may have other names."""

    def __init__(self) -> None:
        super().__init__("an array is both written and bound anew in a loop")


class Roomier(Exception):
    """A length needs this much room."""

    def __init__(self, number: int, room: Size) -> None:
        super().__init__()
        self.number = number
        self.room = room


@dataclass
class Resized:
    """One such array: the leaf, the number of the length along each axis (None: an extent that
    stays), and its storage."""

    leaf: int
    lengths: tuple[int | None, ...]
    initial: Tracer
    buffer: Tracer
    # whether what a trip ends with may be a part of what it began with
    is_part: bool = False


class ResizedArrays:
    """See the module's docstring."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.arrays: list[Resized] = []
        # by number: the extent before the loop, and how much there is room for
        self.lengths: list[Size] = []
        self.room: list[Size] = []
        self._widened: set[int] = set()
        self._trips: Size | None = None
        self._outer: set[Var] = set(block.sizes.ranges)

    def add(self, leaves: Sequence[Any], ends: Mapping[int, Tracer], trips: Size | None) -> None:
        """Have leaves lie in buffers from now on; `trips` is None for a `while`."""
        self._trips = trips
        sizes = self.block.sizes
        known: dict[tuple[Size, Size], int] = {}
        for leaf, end in ends.items():
            initial = leaves[leaf]
            numbers: list[int | None] = []
            for before, after in zip(initial.raw_shape, end.raw_shape, strict=True):
                if sizes.eq(before, after) is True:
                    numbers.append(None)
                    continue
                ends_as = sizes.normal(before), sizes.normal(after)
                if ends_as not in known:
                    known[ends_as] = len(self.lengths)
                    self.lengths.append(before)
                    self.room.append(sizes.greatest(before))
                numbers.append(known[ends_as])
            made = self._buffer(initial, numbers)
            self.arrays.append(Resized(leaf, tuple(numbers), initial, made))

    def widen(self, wanted: Roomier) -> None:
        """Buffers with more room."""
        self.room[wanted.number] = wanted.room
        self._widened.add(wanted.number)
        for array in self.arrays:
            if wanted.number in array.lengths:
                array.buffer = self._buffer(array.initial, array.lengths)

    def _buffer(self, initial: Tracer, lengths: Sequence[int | None]) -> Tracer:
        """A copy of an array, with room along the axes that have lengths."""
        block, shape = self.block, initial.raw_shape
        room = tuple(n if k is None else self.room[k] for n, k in zip(shape, lengths, strict=True))
        if room == shape:
            made = fresh(block, build.weigh(block, initial.node, Weight.ARRAY))
            made.cell._own()
            return made
        made = Tracer(room_for(block, room, initial.dtype), None, Weight.ARRAY)
        made.cell.write(_corner(made, shape).window, initial.node)
        return made

    # ------------------------------------------------------------ around the body

    def entry(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves before the loop."""
        found = list(leaves)
        for array in self.arrays:
            found[array.leaf] = array.buffer
        return found + [wrap(self.block, n) for n in self.lengths]

    def shown(self, entry: Sequence[Any]) -> list[Any]:
        """The leaves as the body, or the code behind the loop, sees them."""
        count = len(entry) - len(self.lengths)
        extents = [self._extent(k, value) for k, value in enumerate(entry[count:])]
        found = list(entry[:count])
        for array in self.arrays:
            shape = array.buffer.raw_shape
            shape = [
                n if k is None else extents[k] for n, k in zip(shape, array.lengths, strict=True)
            ]
            found[array.leaf] = _corner(array.buffer, shape)
        return found

    def _extent(self, number: int, value: Any) -> Size:
        """A length as a size."""
        if is_int(value):
            return size_of(value)
        return bind(self.block, as_node(self.block, value), 0, self.room[number])

    def stored(self, leaves: Sequence[Any], entry: Sequence[Any], is_own: Any) -> list[Any]:
        """The leaves that a trip gives to the next, of those that the body ends with. `is_own` says
        of an array before the loop whether it has no other name."""
        if not self.arrays:
            return list(leaves)
        now = [self._extent(k, v) for k, v in enumerate(entry[len(leaves) :])]
        lengths: dict[int, Size] = {}
        for array in self.arrays:
            end = leaves[array.leaf]
            others = [v for k, v in enumerate(leaves) if k != array.leaf and is_array(v)]
            self._require_apart(array, end, others, is_own)
            self._note_extents(array, end, lengths)
        for k, length in lengths.items():
            lengths[k] = self._with_room(k, length, now[k])
        found = list(leaves)
        ends = [found[array.leaf].node for array in self.arrays]
        for array, end in zip(self.arrays, ends, strict=True):
            found[array.leaf] = array.buffer
            shape = [
                n if k is None else lengths[k]
                for n, k in zip(end.shape, array.lengths, strict=True)
            ]
            # whatever reads the buffer's last version has been made: its parts have been read
            if 0 in shape:
                continue
            cell, value = array.buffer.cell, _corner_of(self.block, end, shape)
            target = _corner(array.buffer, shape).window
            cell.node = self.block.add(kinds.UPDATE, (cell.node, value), target, cell.node.type)
        return found + [wrap(self.block, lengths[k]) for k in range(len(self.lengths))]

    def _require_apart(self, array: Resized, end: Any, others: list[Any], is_own: Any) -> None:
        """NotStaged where others could tell that the array is copied in every trip."""
        if not is_array(end) or end.dtype != array.buffer.dtype:
            raise NotStaged("an array changes its dtype from trip to trip")
        cell = array.buffer.cell
        family = ancestors_of(end.cell)
        outside = {c for c in family if c.is_outside}
        if outside - {cell}:
            raise NotStaged("a name is bound to a view of another array in a loop")
        array.is_part = cell in family
        if any(map(self._is_written, family_of(array.initial.cell))):
            raise NotStaged("an array that is bound anew is written under another name")
        if any(family & ancestors_of(v.cell) for v in others):
            raise NotStaged("two names hold one array at the end of a trip")
        if self._is_written(cell) and not is_own(array.initial):
            raise Written

    def _is_written(self, cell: Cell) -> bool:
        """Whether the body has written to storage from outside it."""
        entered = self.block.regions[-1].entered.get(cell)
        return entered is not None and cell._node is not entered[0]

    def _note_extents(self, array: Resized, end: Any, lengths: dict[int, Size]) -> None:
        sizes = self.block.sizes
        kept = array.buffer.raw_shape
        if end.ndim != len(kept):
            raise NotStaged("an array changes its number of axes from trip to trip")
        for n, whole, k in zip(end.raw_shape, kept, array.lengths, strict=True):
            known = whole if k is None else lengths.setdefault(k, n)
            if sizes.eq(n, known) is not True:
                raise NotStaged("extents that change alike in one trip do not in another")

    def _with_room(self, number: int, length: Size, now: Size) -> Size:
        """A new length, which there is room for."""
        block, sizes = self.block, self.block.sizes
        room = self.room[number]
        if sizes.le(sizes.greatest(length), room) is True:
            return length
        if number not in self._widened:
            raise Roomier(number, self._wanted(number, length - now))
        nodes = [build.size_node(block, n) for n in (length, room)]
        fits = build.ufunc(block, UFUNCS[np.less_equal], np.less_equal, nodes)
        block.add(CHECK, (fits,), "an array that grows beyond its room", fits.type)
        return smin(length, room)

    def _wanted(self, number: int, growth: Size) -> Size:
        """How much room all trips need; of a `while` that is a guess."""
        growth = self.block.sizes.greatest(growth)
        inner = self.block.sizes.ranges.keys() - self._outer
        if self._trips is not None and not atoms(growth) & inner:
            return self.lengths[number] + smax(growth, 0) * self._trips
        return self.lengths[number] + LEAST_ROOM + self.block.extents()  # type: ignore[attr-defined]

    # ------------------------------------------------------------ behind the loop

    def left(self, leaves: Sequence[Any], certain: bool) -> list[Any]:
        """The leaves behind the loop; `certain`: there was a trip."""
        found = self.shown(leaves)
        for array in self.arrays:
            if array.is_part or not certain:
                share_unwritten(array.initial, found[array.leaf])
        return found


def _corner(array: Tracer, shape: Sequence[Size]) -> Tracer:
    """The first elements along each axis."""
    dims = tuple(Along(0, 1, axis) for axis in range(len(shape)))
    return Tracer(array.cell, View(array.raw_shape, dims, tuple(shape)), Weight.ARRAY)


def _corner_of(block: Block, value: Any, shape: Sequence[Size]) -> Any:
    dims = tuple(Along(0, 1, axis) for axis in range(len(shape)))
    return build.view(block, value, View(value.shape, dims, tuple(shape)))


# ---------------------------------------------------------------- branches


class Ragged:
    """Arrays of different shapes that the sides of a branch bind to one name: each becomes the
    corner of one with room for either. `pairs` are the leaves that the sides end with.
    """

    def __init__(self, block: Block, pairs: Sequence[tuple[Any, Any]]) -> None:
        self.block = block
        self.pairs = pairs
        # leaf -> the type with room for both
        self.rooms: dict[int, TensorType] = {}
        # extents that differ, each pair once
        self.extents: dict[tuple[Size, Size], Size] = {}
        for k, (x, y) in enumerate(pairs):
            if is_array(x) and is_array(y) and x.dtype == y.dtype and x.ndim == y.ndim:
                differing = self._differing(x, y)
                if differing:
                    self.extents.update(dict.fromkeys(differing, 0))
                    room = tuple(map(self._room, x.raw_shape, y.raw_shape))
                    self.rooms[k] = TensorType(room, x.dtype)

    def _differing(self, x: Tracer, y: Tracer) -> list[tuple[Size, Size]]:
        """The extents in which the two differ."""
        pairs = zip(x.raw_shape, y.raw_shape, strict=True)
        return [(m, n) for m, n in pairs if not self._are_equal(m, n)]

    def _are_equal(self, m: Size, n: Size) -> bool:
        try:
            return self.block.sizes.decide_eq(m, n)
        except Unknown:
            return False

    def _room(self, m: Size, n: Size) -> Size:
        sizes, binds = self.block.sizes, self.block.binds
        room = sizes.greatest(smax(sizes.greatest(m), sizes.greatest(n)))
        if depth(room) > DEEPEST:
            raise NotStaged("an extent that depends on too many others")
        if any(
            v in sizes.ranges and v.name.startswith("v") and v not in binds for v in atoms(room)
        ):
            raise NotStaged("the branches bind arrays of different shapes to one name")
        return room

    def padded(self, side: int, nodes: Sequence[Any]) -> list[Any]:
        """The nodes that a side ends with, with that room."""
        found = list(nodes)
        for k, type_ in self.rooms.items():
            made = Tracer(room_for(self.block, type_.shape, type_.dtype), None, Weight.ARRAY)
            made.cell.write(_corner(made, nodes[k].shape).window, nodes[k])
            found[k] = made.node
        return found

    def lengths(self, side: int) -> list[Any]:
        """The extents that differ, as nodes of one side."""
        block, kind = self.block, TensorType((), build.INT64, Weight.WEAK)
        return [as_type(block, build.size_node(block, both[side]), kind) for both in self.extents]

    def merged(self, lengths: Sequence[Any]) -> None:
        """What became of these extents behind the branch."""
        for both, length in zip(list(self.extents), lengths, strict=True):
            room = self._room(*both)
            self.extents[both] = bind(self.block, length, 0, room)

    def cut(self, leaf: int, whole: Tracer) -> Tracer:
        """The part of a merged array that is in use."""
        x, y = self.pairs[leaf]
        both = zip(x.raw_shape, y.raw_shape, strict=True)
        return _corner(whole, [self.extents.get((m, n), m) for m, n in both])
