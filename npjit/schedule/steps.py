"""Fusion's walk over what is no pure value: updates of storage, and steps that are no kernels.

In: a node and its uses, when the walk of `fuse` reaches it. Out: a group for it, whose arguments
are needed in memory, and the order in which groups must run:

    what may stop the plan         before all that writes to the caller's memory
    what reads a version           before the update that overwrites it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from npjit.core.graph import Node, TensorType, Weight
from npjit.core.op import CONTROL, Kind
from npjit.core.view import transpose
from npjit.schedule.cells import COPY, written_arguments
from npjit.schedule.contract import Strides, in_turn, one_axis
from npjit.schedule.group import Group, Root, depends
from npjit.schedule.index import Index, address, plain
from npjit.schedule.overlap import Clash, find_clash
from npjit.schedule.pull import arguments
from npjit.schedule.walk import Uses, Walk

# the labels of a contraction's letters
Letters = dict[str, int | None]
# steps that may go wrong where an earlier check fails
_CHECKED = CONTROL | {Kind.BIND}


class StepWalk:
    """The part of the walk that the module's docstring names; `visit` decides about a copy that is
    made on the way."""

    def __init__(self, walk: Walk, visit: Callable[[Node], None]) -> None:
        self.walk = walk
        self.program = walk.program
        self.visit = visit
        self.checks: list[Group] = []
        self.writers: list[Group] = []  # groups that update an input
        # groups of calls with several results, some of which have been visited
        self.calls: dict[Node, Group] = {}

    # -- storage cells

    def visit_update(self, n: Node, uses: Uses) -> None:
        """The value goes straight into the cell; it is computed apart when it reads what it would
        overwrite."""
        walk, value = self.walk, n.args[1]
        group = walk.new_group(n)
        group.sealed = group.updates = True
        axes = walk.labels.axes(value.shape)
        group.axes = [a for a in axes if a is not None]
        at = plain(value.shape, axes)
        target = arguments(n, at)
        assert target is not None
        group.roots[n] = Root(target[0], value, at)
        walk.home[n] = group
        clash, slices = find_clash(self.program, walk.labels, n, target[0], at)
        self.program.stored.update(slices)
        walk.apart.update(slices)
        if clash is Clash.AHEAD and self.program.in_order:
            group.in_order = True
        elif clash is not Clash.NONE:
            if value in self.program.base:
                walk.apart.add(n)
            else:
                self.program.stored.add(value)
                walk.apart.add(value)
                walk.clashing.add(value)
        walk.need(value, group, at)
        for b in n.args[2:]:
            walk.need(b, group, ())
        self.complete_first(n)
        uses = walk.meet(n, uses) if len(uses) > 1 else uses
        walk.load_all(n, uses, but=self._join_reader(n, group, target[0], uses))
        if self.program.base[n].op.kind is Kind.INPUT:
            self._write_late(group)

    def _join_reader(self, n: Node, group: Group, target: Index, uses: Uses) -> Group | None:
        """The update's group, when a group that reads just the elements that it stores is one with
        it now: one that waits for no other reader, which waits for the update."""
        for reader, indices in uses.items() if n not in self.walk.apart else ():
            others = (g.find() for g in uses if g.find() is not reader.find())
            alone = len(indices) == 1 and not any(depends(reader.find(), g) for g in others)
            if alone and not self.walk.follow([(reader, indices[0])], group, target):
                return reader.find()
        return None

    def complete_first(self, version: Node) -> None:
        """The update that overwrites part of this version waits for all of it."""
        killer = self.program.killer.get(version)
        if killer is not None and version in self.walk.home:
            self.walk.home[killer].find().run_after(self.walk.home[version].find())

    def _write_late(self, group: Group) -> None:
        """The caller's memory is left alone until all is known to be well."""
        self.writers.append(group)
        for check in self.checks:
            if not depends(check, group):
                group.run_after(check)

    # -- loops and branches

    def visit_version(self, n: Node, uses: Uses) -> None:
        """What a loop or branch has made of a storage cell."""
        self.walk.home[n] = self._control_group(n.args[0])
        self.complete_first(n)
        self.walk.load_all(n, uses)

    def _control_group(self, n: Node) -> Group:
        group = self.walk.home.get(n)
        if group is None:
            group = self.walk.home[n] = self.walk.new_group(n)
            group.step = n
        return group

    def visit_control(self, n: Node) -> None:
        """A step of its own: the bodies read their inputs from memory, and write cells in place."""
        walk = self.walk
        group = self._control_group(n)
        # reading a version that the bodies overwrite takes a copy
        walk.apart.add(n)
        written = written_arguments(n)
        for a in n.args:
            if a in written and n.args.count(a) == 1:
                continue
            axes = walk.labels.axes(a.shape)
            walk.need(a, group, () if a.op.kind is Kind.BIND else plain(a.shape, axes))
        if any(self.program.base[a].op.kind is Kind.INPUT for a in written):
            self._write_late(group)

    def visit_bind(self, n: Node, uses: Uses) -> None:
        """The variable has its value before all that is sized by it."""
        walk = self.walk
        group = walk.new_group(n)
        group.step = n
        walk.home[n] = group
        walk.apart.add(n.args[0])
        walk.need(n.args[0], group, ())
        for g in uses:
            g.run_after(group)

    # -- steps that are no kernels

    def visit_contract(self, n: Node, uses: Uses) -> None:
        """Operands are read from memory through their views."""
        walk = self.walk
        group = walk.new_group(n)
        group.step = n
        walk.home[n] = group
        walk.load_all(n, uses)
        axes: dict[str, int | None] = {}
        for a, letters in zip(n.args, n.params[:2], strict=True):
            for size, x in zip(a.shape, letters, strict=True):
                if axes.get(x) is None:
                    axes[x] = None if size == 1 else walk.labels.new(size)
        operands = self._operands(n, axes)
        found = [_at(a, letters, axes) for a, letters in operands]
        for (a, _), index in zip(operands, found, strict=True):
            walk.need(a, group, index)
        group.arguments = tuple(a for a, _ in operands)
        group.operands = tuple(found)
        group.letters = axes
        for a, _ in operands:
            if a not in n.args:
                self.visit(a)

    def _operands(self, n: Node, axes: Letters) -> list[tuple[Node, str]]:
        """The arguments with their letters; turned, as a copy, the second one when its summed axes
        do not follow each other as the first one's do, and those where they do not in memory."""
        first, second, result = n.params
        operands = list(zip(n.args, (first, second), strict=True))
        summed = [x for x in first if x in second and x not in result]
        if "".join(summed) not in second:
            operands[1] = self._turned(n, *operands[1], summed)
        sums = {x: axes[x] for x in summed}
        extents = {x: self.walk.labels.extents[v] for x, v in sums.items() if v is not None}
        strides = [self._strides(a, _at(a, letters, axes), axes) for a, letters in operands]
        if len(one_axis(extents, list(extents), strides)[1]) < 2:
            return operands
        return [
            known if in_turn(extents, list(extents), s) else self._turned(n, *known, summed)
            for known, s in zip(operands, strides, strict=True)
        ]

    def _turned(self, n: Node, a: Node, letters: str, summed: Sequence[str]) -> tuple[Node, str]:
        """A copy of an operand whose summed axes are its last ones."""
        order = "".join([*(x for x in letters if x not in summed), *summed])
        view = transpose(a.shape, [letters.index(x) for x in order])
        turned = Node(COPY, (a,), view, TensorType(view.shape, a.dtype), n.where)
        self._store_for(n, a, turned)
        return turned, order

    def _strides(self, n: Node, index: Index, axes: Letters) -> Strides:
        """Those of letters in the memory behind a node's views."""
        while n.op.kind in (Kind.VIEW, Kind.RESHAPE) and n not in self.program.stored:
            at = arguments(n, index)
            if at is None:
                break
            n, index = n.args[0], at[0]
        place = address(index, n.shape, self.walk.strides_of(n))
        known = {} if place is None else place[1]
        return {x: known.get(v, 0) for x, v in axes.items() if v is not None}

    def _store_for(self, step: Node, n: Node, copy: Node) -> None:
        """A copy of a step's argument is stored in front of the step."""
        self.program.position[copy] = self.program.position[step]
        self.program.horizon[copy] = self.program.horizon[n]
        self.program.stored.add(copy)

    def visit_result(self, n: Node, uses: Uses) -> None:
        """One of several results: the call stores it."""
        call = n.args[0]
        group = self.calls.get(call)
        if group is None:
            group = self.calls[call] = self.walk.new_group(call)
            group.step = call
        group.results = (n, *group.results)
        self.walk.home[n] = group
        self.walk.load_all(n, uses)

    def visit_call(self, n: Node, uses: Uses) -> None:
        """A row that reads whole arrays, through their views. A scatter changes its first argument
        in place, as an update does."""
        walk = self.walk
        group = self.calls.pop(n, None) or walk.new_group(n)
        if group.step is None:
            group.step = n
            # of several results none is wanted: the call is made because it may raise
            group.results = () if _has_several(n) else (n,)
            walk.home[n] = group
            self.complete_first(n)
            walk.load_all(n, uses)
        in_place = n.op.kind is Kind.SCATTER
        given = [self._in_memory(n, a) for a in (n.args[1:] if in_place else n.args)]
        found = [plain(a.shape, walk.labels.axes(a.shape)) for a in given]
        group.arguments, group.operands = tuple(given), tuple(found)
        for a, index in zip(given, found, strict=True):
            walk.need(a, group, index)
        if in_place and self.program.base[n].op.kind is Kind.INPUT:
            self._write_late(group)
        if n.op.raises:
            self._go_first(group)
        for a in given:
            if a not in n.args:
                self.visit(a)

    def _in_memory(self, call: Node, n: Node) -> Node:
        """An argument of a call; a copy of it when it is a number, or a view of what the call
        changes."""
        source = n
        while source.op.kind in (Kind.VIEW, Kind.RESHAPE):
            source = source.args[0]
        own = self.program.base.get(call)
        changed = own is not None and self.program.base.get(source) is own
        if not changed and (n.op.kind is not Kind.INPUT or n.type.weight is Weight.ARRAY):
            return n
        copy = self.program.copy_of(n)
        self._store_for(call, n, copy)
        return copy

    def visit_check(self, n: Node) -> None:
        """A step that gathers behind it and writes to the caller's memory wait for."""
        walk = self.walk
        group = walk.new_group(n)
        group.step = n
        walk.apart.add(n.args[0])
        walk.need(n.args[0], group, ())
        for g in walk.alive():
            if g.gathers or (g.step is not None and g.step.op.kind in _CHECKED):
                g.run_after(group)
        self._go_first(group)

    def _go_first(self, check: Group) -> None:
        """A step that may stop the plan comes before all that writes to the caller's memory."""
        for g in dict.fromkeys(g.find() for g in self.writers):
            if not depends(check, g):
                g.run_after(check)
        self.checks.append(check)


def _at(n: Node, letters: str, axes: Letters) -> Index:
    """The index of an operand's element at its letters."""
    sizes = zip(n.shape, letters, strict=True)
    return plain(n.shape, [None if size == 1 else axes[x] for size, x in sizes])


def _has_several(call: Node) -> bool:
    """Whether a row's results come through RESULT nodes."""
    types = call.op.types
    return types is not None and len(types(call.params, *(a.type for a in call.args))) > 1
