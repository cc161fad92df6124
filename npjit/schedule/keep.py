"""Values kept between the loops of one kernel: computed once, stored, and loaded by later loops.

In: the loops of a kernel, as they are filled with values. Out: per value whether a later loop loads
it, and the memory where it waits. With outer axes that is a "row" buffer, small and near; without,
an array in memory, so that only dearer values are kept. A row whose last reader computes the next
kept value hands its memory on: a loop loads each element before it stores the new one.

    sum(exp(x - max(x, 1)), 1)   exp is computed in the sum's loop and kept for the loop behind it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from npjit.core.graph import Node, TensorType
from npjit.core.op import Kind, Op
from npjit.core.size import Size
from npjit.schedule.items import Items
from npjit.schedule.kernel import Access, Apply, Buffer, DType, Load, Reduce
from npjit.schedule.nest import nested, unit_votes

# work (in additions) from which a value is kept instead of computed again: in a row buffer, and in
# an array of the outer memory
ROW_LIMIT = 8
ARRAY_LIMIT = 24

ARRAY = Op("kept", Kind.CELL, lambda n: None)


@dataclass(eq=False)
class Row:
    """A kept value, one element per index of its loop's axes."""

    value: int
    dtype: DType
    strides: tuple[tuple[int, Size], ...]
    length: Size
    maker: Loop
    readers: list[Loop] = field(default_factory=list)


@dataclass(eq=False)
class Loop:
    """A phase in the making: `values` are the items emitted in it, `ends` the stores behind them,
    `kept` the rows it reads, `makes` those it fills."""

    stage: int
    axes: tuple[int, ...]
    values: dict[int, None] = field(default_factory=dict)
    reductions: list[int] = field(default_factory=list)
    ends: list[tuple[Access, int]] = field(default_factory=list)
    kept: dict[int, Row] = field(default_factory=dict)
    makes: list[Row] = field(default_factory=list)


class Keeper:
    """Decides what is kept, and where."""

    def __init__(self, maker: Items, outer: frozenset[int], accesses: Sequence[Access]) -> None:
        self.maker = maker
        self.outer = outer
        self.accesses = accesses
        self.votes = unit_votes(accesses)
        self.limit = ROW_LIMIT if outer else ARRAY_LIMIT
        self.rows: dict[int, list[Row]] = {}
        self.buffers: list[Buffer] = []
        self._computed: dict[int, list[Loop]] = {}

    def note(self, number: int, loop: Loop) -> None:
        """The loop computes this value."""
        if loop.axes:
            self._computed.setdefault(number, []).append(loop)

    def keeps(self, number: int, loop: Loop) -> bool:
        """Whether the loop loads this value, which an earlier one over the same axes computes."""
        item = self.maker.items[number]
        if isinstance(item.instr, Load | Reduce) or not item.axes - self.outer:
            return False
        makers = [
            m
            for m in self._computed.get(number, ())
            if m.stage < loop.stage and frozenset(m.axes) == frozenset(loop.axes)
        ]
        if not makers or not self._is_dear(number) or not self._runs_inside(loop):
            return False
        row = next((r for r in self.rows.get(number, ()) if r.maker in makers), None)
        if row is None:
            row = self._new_row(number, makers[-1])
        row.readers.append(loop)
        loop.kept[number] = row
        return True

    def _is_dear(self, number: int) -> bool:
        """Whether computing a value from what is in memory is more work than keeping it."""
        items = self.maker.items
        left = self.limit
        stack = [number]
        while stack and left > 0:
            k = stack.pop()
            item = items[k]
            if not item.axes - self.outer:
                continue  # one value per outer index
            if isinstance(item.instr, Apply) and (k == number or k not in self.rows):
                left -= item.instr.op.cost
                stack.extend(item.args)
            else:
                left -= 1
        return left <= 0

    def _runs_inside(self, loop: Loop) -> bool:
        """Whether memory runs along the loop rather than along an outer axis (there a row would be
        a strip)."""
        if not self.votes or not self.outer:
            return True
        along = max(self.votes.values())
        return any(self.votes.get(a, 0) == along for a in loop.axes)

    def _new_row(self, number: int, maker: Loop) -> Row:
        strides: list[tuple[int, Size]] = []
        length: Size = 1
        for axis in reversed(nested(maker.axes, self.accesses)):
            strides.append((axis, length))
            length = length * self.maker.labels.extents[axis]
        dtype = self.maker.items[number].dtype
        row = Row(number, dtype, tuple(sorted(strides)), length, maker)
        self.rows.setdefault(number, []).append(row)
        maker.makes.append(row)
        return row

    # -- memory

    def place(self, order: Sequence[Loop]) -> dict[Row, Access]:
        """Where each row lies, when the loops run in this order. "row" buffers have negative
        numbers here: they stand behind all memories, and the last of those is not known yet."""
        position = {loop: k for k, loop in enumerate(order)}
        places: dict[Row, Access] = {}
        held: list[tuple[int, Row]] = []  # rows and the position of their last reader
        for loop in order:
            for row in loop.makes:
                now = position[loop]
                heir = next((h for h in held if h[0] <= now and _fits(h[1], row)), None)
                if heir is None:
                    places[row] = Access(self._new_buffer(row), row.strides)
                else:
                    held.remove(heir)
                    places[row] = places[heir[1]]
                held.append((max(position[r] for r in row.readers), row))
        return places

    def _new_buffer(self, row: Row) -> int:
        if self.outer:
            self.buffers.append(Buffer(row.dtype, "row", row.length))
            return -len(self.buffers)
        return self.maker.memory(Node(ARRAY, (), None, TensorType((row.length,), row.dtype), ""))


def _fits(old: Row, new: Row) -> bool:
    return old.dtype == new.dtype and old.strides == new.strides and old.length == new.length
