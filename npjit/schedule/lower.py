"""Lowering: a fused group becomes a `Kernel`.

In: a group, storage strides, and which outputs each stored node fills. Out: a `Lowered`: the
kernel, the memories it touches, scalar inputs and sizes of this launch.

Items (see `items`) are put into phases by their stage. Softmax over rows: the maximum is a
reduction of stage 0, the sum of exponentials of stage 1, the store belongs to stage 2. A value per
outer index goes to a phase without axes; one that several loops need is computed again in each, or
kept in memory when that is dear (see `keep`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from npjit.core.graph import Node
from npjit.core.size import Size
from npjit.schedule.cells import Program
from npjit.schedule.group import Group, Labels, Root
from npjit.schedule.index import labels_of, rename
from npjit.schedule.items import Item, Items, Memory
from npjit.schedule.keep import Keeper, Loop
from npjit.schedule.kernel import Access, Apply, Buffer, Inside, Instr, Kernel, Load, Reduce, Store
from npjit.schedule.nest import Body, Draft, finish, nested


@dataclass(frozen=True)
class Lowered:
    """A kernel and the operands of this launch; `where` are the user's lines that it computes."""

    kernel: Kernel
    memories: tuple[Memory, ...]
    scalars: tuple[Node, ...]
    sizes: tuple[Size, ...]
    where: tuple[str, ...]


def lower(
    group: Group,
    labels: Labels,
    program: Program,
    strides_of: Callable[[Node], Sequence[Size]],
) -> Lowered:
    """One group as a kernel."""
    return _Lowering(group, labels, program, strides_of).run()


class _Lowering:
    def __init__(
        self,
        group: Group,
        labels: Labels,
        program: Program,
        strides_of: Callable[[Node], Sequence[Size]],
    ) -> None:
        self.group = group
        self.labels = labels
        self.results: Mapping[Node, list[int]] = program.results
        self.maker = Items(group, labels, program.base, strides_of)
        self.items = self.maker.items
        self.outer = frozenset(group.outer_axes())
        self.stores: list[tuple[Access, int, frozenset[int]]] = []
        self.loops: list[Loop] = []
        self.plain: dict[int, Loop] = {}  # the phase without axes of each stage

    def run(self) -> Lowered:
        for node, root in self.group.roots.items():
            self._add_root(node, root)
        self.accesses = self._accesses()
        self.keeper = Keeper(self.maker, self.outer, self.accesses)
        self._choose_loops()
        for loop in sorted(self.loops, key=lambda p: p.stage):
            for number in (*loop.reductions, *(number for _, number in list(loop.ends))):
                self._emit(number, loop)
        for access, number, axes in self.stores:
            if not axes - self.outer:
                place = self._plain(self.items[number].stage)
                self._emit(number, place)
                place.ends.append((access, number))
        return self._finish()

    def _add_root(self, node: Node, root: Root) -> None:
        index = rename(root.index, self.labels.find)
        number = self.maker.value(root.value, root.value_index)
        axes = labels_of(rename(root.value_index, self.labels.find))
        for copy in range(max(1, len(self.results.get(node, ())))):
            self.stores.append((self.maker.access(node, index, copy), number, axes))

    # -- which loops there are

    def _choose_loops(self) -> None:
        """A loop for each stage and set of axes that has reductions; stores join the first that
        fits."""
        for number, item in enumerate(self.items):
            if isinstance(item.instr, Reduce):
                stage = self.items[item.args[0]].stage
                self._loop(stage, item.over, _is_ordered(item)).reductions.append(number)
        left: dict[frozenset[int], list[tuple[Access, int]]] = {}
        for access, number, axes in self.stores:
            inner = axes - self.outer
            if not inner:
                continue
            stage = self.items[number].stage
            fits = [p for p in self.loops if p.stage >= stage and frozenset(p.axes) == inner]
            if fits:
                min(fits, key=lambda p: p.stage).ends.append((access, number))
            else:
                left.setdefault(inner, []).append((access, number))
        for inner, waiting in left.items():
            stage = max(self.items[number].stage for _, number in waiting)
            loop = self._loop(stage, tuple(a for a in self.group.axes if a in inner))
            loop.ends.extend(waiting)

    def _loop(self, stage: int, axes: tuple[int, ...], ordered: bool = False) -> Loop:
        """The loop over these axes; `ordered`: in just this order."""
        for loop in self.loops:
            if loop.stage != stage:
                continue
            if loop.axes == axes if ordered else frozenset(loop.axes) == frozenset(axes):
                return loop
        loop = Loop(stage, axes)
        self.loops.append(loop)
        return loop

    def _plain(self, stage: int) -> Loop:
        return self.plain.setdefault(stage, Loop(stage, ()))

    # -- where each value is computed

    def _phase_of(self, item: Item, loop: Loop) -> Loop:
        """The loop itself; the phase without axes for a value per outer index. What depends on no
        axis and no reduction is computed wherever it is used: a printer keeps it out of the
        loops."""
        if item.axes - self.outer or (not item.axes and item.stage == 0):
            return loop
        return self._plain(item.stage)

    def _emit(self, number: int, loop: Loop) -> None:
        """Put an item and what it needs into the phases they belong to."""
        stack = [(number, loop, False)]
        while stack:
            k, place, ready = stack.pop()
            item = self.items[k]
            if not isinstance(item.instr, Reduce):
                place = self._phase_of(item, place)
            elif k not in place.reductions:
                continue  # the result of an earlier phase
            if k in place.values or k in place.kept:
                continue
            if ready:
                place.values[k] = None
                self.keeper.note(k, place)
                continue
            if place.axes and self.keeper.keeps(k, place):
                continue
            stack.append((k, place, True))
            stack.extend((a, place, False) for a in reversed(item.args))

    # -- the kernel

    def _accesses(self) -> list[Access]:
        loads = [i.instr.access for i in self.items if isinstance(i.instr, Load)]
        return [a for a, _, _ in self.stores] + loads

    def _nest(self, loop: Loop) -> list[int]:
        if any(_is_ordered(self.items[k]) for k in loop.reductions):
            return list(loop.axes)
        return nested(loop.axes, self.accesses)

    def _finish(self) -> Lowered:
        phases: list[tuple[list[int], Body]] = []
        count = 0
        numbers: dict[int, int] = {}
        order = self._ordered()
        places = self.keeper.place(order)
        for loop in order:
            body: Body = []
            local = dict(numbers)
            for k, row in loop.kept.items():
                body.append((count, Load(self._numbered(places[row], local), row.dtype)))
                local[k] = count
                count += 1
            for k in loop.values:
                body.append((count, self._renumber(self.items[k].instr, local)))
                local[k] = count
                if not loop.axes or isinstance(self.items[k].instr, Reduce):
                    numbers[k] = count
                count += 1
            ends = [*loop.ends, *((places[row], row.value) for row in loop.makes)]
            for access, k in ends:
                body.append((count, Store(self._numbered(access, local), local[k])))
                count += 1
            phases.append((self._nest(loop), body))
        draft = Draft(
            nested(self.group.outer_axes(), self.accesses),
            phases,
            self._buffers(phases),
            [n.dtype for n in self.maker.scalars],
            {a: self.labels.extents[a] for a in self.group.axes},
            self.group.in_order,
        )
        kernel, sizes = finish(draft)
        nodes = (*self.group.roots, *self.group.reduces)
        where = tuple(sorted({n.where for n in nodes if n.where}))
        scalars = tuple(self.maker.scalars)
        return Lowered(kernel, tuple(self.maker.memories), scalars, sizes, where)

    def _ordered(self) -> list[Loop]:
        return sorted((*self.plain.values(), *self.loops), key=lambda p: (p.stage, bool(p.axes)))

    def _numbered(self, access: Access, values: Mapping[int, int]) -> Access:
        """Row buffers stand behind the memories; gathered values get their numbers."""
        buffer = access.buffer
        if buffer < 0:
            buffer = len(self.maker.memories) - 1 - buffer
        gathers = tuple((values[v], s) for v, s in access.gathers)
        return Access(buffer, access.strides, access.offset, gathers)

    def _renumber(self, i: Instr, values: Mapping[int, int]) -> Instr:
        if isinstance(i, Apply):
            return Apply(i.op, tuple(values[a] for a in i.args), i.params, i.dtype)
        if isinstance(i, Reduce):
            return Reduce(i.op, values[i.arg], i.dtype)
        if isinstance(i, Load):
            return Load(self._numbered(i.access, values), i.dtype, i.within)
        if isinstance(i, Inside):
            return Inside(values[i.arg], i.within, i.dtype)
        return i

    def _buffers(self, phases: list[tuple[list[int], Body]]) -> list[Buffer]:
        read: set[int] = set()
        written: set[int] = set()
        for _, body in phases:
            for _, i in body:
                if isinstance(i, Load):
                    read.add(i.access.buffer)
                if isinstance(i, Store):
                    written.add(i.access.buffer)
        found = []
        for k, (node, _) in enumerate(self.maker.memories):
            role = "in" if k not in written else "inout" if k in read else "out"
            found.append(Buffer(node.dtype, role))
        return found + self.keeper.buffers


def _is_ordered(item: Item) -> bool:
    """Whether a reduction's result tells positions, counted in the order of its axes."""
    i = item.instr
    if not isinstance(i, Reduce) or i.op.reduction is None:
        return False
    return i.op.reduction.style.startswith("arg")
