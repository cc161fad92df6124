"""A value of a loop's body for all trips at once.

In: a node of the body, what its inputs are outside, and how often the loops around it run. Out: an
array outside the loop with an axis for each index that the value depends on, and one for each axis
of its own that it really has; an axis that ends or begins at the index is taken whole.

    body of loop i < n:  alpha * a[i, :i]     ->     alpha * a[:, :n - 1],  axes (i, 0: below i)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from npjit.core.graph import Block, Node, TensorType
from npjit.core.op import Kind
from npjit.core.size import Size, Var, atoms, bounds, linear, smax
from npjit.core.view import Along, At, Entry, View
from npjit.ops import build
from npjit.ops.cut_product import ALL, BELOW, FROM, Part

# an index of a loop, or an axis of the value in one trip, by number or by another name
Axis = Var | int | str
WHOLE: Part = (ALL, 0)


@dataclass(frozen=True)
class Spanned:
    """The array, its axes, and which of an axis' indices a trip of the outermost loop sees."""

    node: Node
    axes: tuple[Axis, ...]
    parts: Mapping[Axis, Part]

    def turned(self, block: Block, axes: Sequence[Axis], extents: Mapping[Axis, Size]) -> Node:
        """The array with these axes in this order; it is the same along those that it lacks."""
        dims = tuple(Along(0, 1, axes.index(axis)) for axis in self.axes)
        shape = tuple(extents[axis] for axis in axes)
        return build.view(block, self.node, View(self.node.shape, dims, shape))

    def named(self, names: Sequence[Axis]) -> Spanned:
        """The array with other names for the value's own axes."""
        new = {axis: names[axis] if isinstance(axis, int) else axis for axis in self.axes}
        parts = {new[axis]: part for axis, part in self.parts.items()}
        return Spanned(self.node, tuple(new.values()), parts)

    def extents(self) -> dict[Axis, Size]:
        """How long each axis is."""
        return dict(zip(self.axes, self.node.shape, strict=True))


class Span:
    """Values for all trips of loops: `trips` says of each index how many, the outermost first, and
    `outside` what a node stands for outside the loops (None: nothing that stays the same)."""

    def __init__(
        self,
        block: Block,
        trips: Mapping[Var, Size],
        outside: Callable[[Node, View | None], Node | None],
    ) -> None:
        self.block = block
        self.trips = trips
        self.outer = next(iter(trips))
        self.outside = outside

    def of(self, n: Node) -> Spanned | None:
        """See the module's docstring; None where there is no such array."""
        if n.op.kind is Kind.CONST:
            return Spanned(self.block.add(n.op, (), n.params, n.type), (), {})
        if n.op.kind is Kind.INPUT:
            return self._given(n)
        if n.op.kind is Kind.VIEW and len(n.args) == 1:
            is_leaf = n.args[0].op.kind is Kind.INPUT
            return self._read(n) if is_leaf else self._moved(n)
        if n.op.kind is Kind.ELEMENTWISE and not n.op.raises:
            return self._computed(n)
        return None

    def _given(self, n: Node) -> Spanned | None:
        source = self.outside(n, None)
        axes = tuple(range(len(n.shape)))
        return None if source is None else Spanned(source, axes, dict.fromkeys(axes, WHOLE))

    def _computed(self, n: Node) -> Spanned | None:
        found = [s for s in map(self.of, n.args) if s is not None]
        parts: dict[Axis, Part] = {}
        extents: dict[Axis, Size] = {}
        for s in found:
            parts |= s.parts
            extents |= s.extents()
        alike = all(
            (s.parts[x], n) == (parts[x], extents[x]) for s in found for x, n in s.extents().items()
        )
        if len(found) < len(n.args) or not alike:
            return None
        own = sorted(axis for axis in extents if isinstance(axis, int))
        axes: list[Axis] = [*(v for v in self.trips if v in extents), *own]
        args = [s.turned(self.block, axes, extents) for s in found]
        type_ = TensorType(tuple(extents[a] for a in axes), n.dtype)
        return Spanned(self.block.add(n.op, args, n.params, type_), tuple(axes), parts)

    def _moved(self, n: Node) -> Spanned | None:
        """A view that only gives the axes other places, or new ones."""
        v: View = n.params
        inner = n.args[0].shape
        for d, extent in zip(v.dims, inner, strict=True):
            if not isinstance(d, Along) or (d.start, d.step) != (0, 1):
                return None
            if v.shape[d.axis] != extent:
                return None
        found = self.of(n.args[0])
        if found is None:
            return None
        place = [d.axis for d in v.dims if isinstance(d, Along)]
        if len(set(place)) < len(place):
            return None

        def renamed(axis: Axis) -> Axis:
            return place[axis] if isinstance(axis, int) else axis

        parts = {renamed(axis): part for axis, part in found.parts.items()}
        return Spanned(found.node, tuple(map(renamed, found.axes)), parts)

    def _read(self, n: Node) -> Spanned | None:
        """What all trips see of an array."""
        v: View = n.params
        source = self.outside(n.args[0], v)
        if source is None:
            return None
        dims: list[Entry] = []
        axes: list[Axis] = []
        shape: list[Size] = []
        parts: dict[Axis, Part] = {}
        for d in v.dims:
            found = self.index(d) if isinstance(d, At) else self.run(d, v.shape[d.axis])
            if found is None or found[0] in parts:
                return None
            axis, entry, extent, part = found
            dims.append(entry)
            if axis is not None and isinstance(entry, Along):
                dims[-1] = Along(entry.start, entry.step, len(axes))
                axes.append(axis)
                shape.append(extent)
                parts[axis] = part
        view = View(v.base, tuple(dims), tuple(shape))
        return Spanned(build.view(self.block, source, view), tuple(axes), parts)

    def index(self, d: At) -> tuple[Axis | None, Entry, Size, Part] | None:
        named = [v for v in self.trips if v in atoms(d.index)]
        if not named:
            return None, d, 1, WHOLE
        (v, *more) = named
        step, start = linear(d.index, v)
        if more or step is None:
            return None
        return v, Along(start, step, 0), self.count(v), self.part(v)

    def run(self, d: Along, extent: Size) -> tuple[Axis | None, Entry, Size, Part] | None:
        """An axis of the value: all of it, or what lies on one side of the outermost index."""
        moved, start = linear(d.start, self.outer)
        inner = {v for v in self.trips if v is not self.outer}
        if (atoms(d.start) | atoms(extent)) & inner or atoms(d.step) & self.trips.keys():
            return None
        if moved == 0:
            found = self.reach(extent)
            return found and (d.axis, d, *found)
        shorter, length = linear(extent, self.outer)
        if moved != d.step or shorter != -1:
            return None
        return d.axis, Along(start, d.step, d.axis), not_negative(length), (FROM, 0)

    def count(self, v: Var) -> Size:
        """How many indices a loop has in all trips of the outermost one together."""
        found = self.reach(self.trips[v])
        assert found is not None
        return found[0]

    def part(self, v: Var) -> Part:
        """Which of them it has in one trip."""
        found = self.reach(self.trips[v])
        assert found is not None
        return found[1]

    def reach(self, extent: Size) -> tuple[Size, Part] | None:
        """The greatest value of an extent, and what a trip has of it."""
        growth, first = linear(extent, self.outer)
        if growth == 0:
            return not_negative(extent), WHOLE
        if growth != 1 or not isinstance(first, int):
            return None
        return not_negative(first + self.trips[self.outer] - 1), (BELOW, first)


def not_negative(size: Size) -> Size:
    """An extent; a range may be empty by being negative."""
    low = bounds(size)[0]
    return size if low is not None and low >= 0 else smax(size, 0)
