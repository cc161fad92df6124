"""Fusion: which values are stored, and which kernel computes what.

In: a `Program` (nodes in program order, storage). Out: a `Fusion`, the groups in an order in which
they may run.

One walk, consumers before producers. When it reaches a node, all uses are known as (group, index).
The node is computed inside the groups that use it when its arguments' indices exist there and
repeating it is cheap; otherwise it becomes a *root*, stored once, in a group that computes it
anyway or in one of its own. Groups that meet at a node are merged when their axes agree (see
`merge`). A reduction is computed inside a group when its result's axes are the group's outer axes:
`sqrt(sum(x*x, 1))` and softmax are one group each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from npjit.core.graph import Node, TensorType, Weight
from npjit.core.op import CONTROL, Kind
from npjit.core.view import transpose
from npjit.schedule.cells import CALLS, COPY, Program, written_arguments
from npjit.schedule.fit import can_compute, can_leave, can_root, suits_outer, why_stored
from npjit.schedule.group import Group, Labels, Reduced, Root, depends
from npjit.schedule.index import Index, labels_of, plain, rename
from npjit.schedule.overlap import reads_what_it_writes
from npjit.schedule.pull import arguments
from npjit.schedule.walk import StridesOf, Uses, Walk, show
from npjit.schedule.work import work_of

# the most repeated work, in additions per element, before storing a value is thought cheaper
REPEAT_LIMIT = 16

_FREE = (Kind.VIEW, Kind.RESHAPE, Kind.PAD, Kind.CELL, Kind.CONST, Kind.SIZE, Kind.IOTA, Kind.INPUT)
# steps that may go wrong where an earlier check fails
_CHECKED = CONTROL | {Kind.BIND}
_SHARED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.GATHER, Kind.CELL)


@dataclass
class Fusion:
    """The groups in running order, over axes of one table."""

    labels: Labels
    groups: list[Group]
    refusals: list[str] = field(default_factory=list)


def fuse(program: Program, strides_of: StridesOf) -> Fusion:
    """Group the program's nodes; `strides_of` is how a node lies in memory when it is stored."""
    fuser = _Fuser(Walk(program, strides_of))
    for n in reversed(program.nodes):
        fuser.visit(n)
    fuser.meet_at_inputs()
    walk = fuser.walk
    _drop_unread_roots(walk)
    return Fusion(walk.labels, _in_order(walk.alive()), walk.refusals)


class _Fuser:
    """The decisions of the walk."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.program = walk.program
        self.work = work_of(walk.program)
        self.checks: list[Group] = []
        self.writers: list[Group] = []  # groups that update an input
        self.inputs: list[Node] = []
        # groups of calls with several results, some of which have been visited
        self.calls: dict[Node, Group] = {}

    def visit(self, n: Node) -> None:
        """Decide about one node, all of whose uses are known."""
        kind = n.op.kind
        uses = self.walk.take_uses(n)
        if kind is Kind.INPUT:
            self.inputs.append(n)
            self.walk.load_all(n, uses)
        elif kind is Kind.CELL and not n.args:
            self.walk.load_all(n, uses)
        elif kind is Kind.UPDATE:
            self._visit_update(n, uses)
        elif kind is Kind.CONTRACT:
            self._visit_contract(n, uses)
        elif kind is Kind.RESULT and n in self.program.base:
            self._visit_version(n, uses)
        elif kind in CONTROL:
            self._visit_control(n)
        elif kind is Kind.BIND:
            self._visit_bind(n, uses)
        elif kind is Kind.RESULT:
            self._visit_result(n, uses)
        elif kind in CALLS:
            self._visit_call(n, uses)
        elif kind is Kind.CHECK:
            self._visit_check(n)
        elif uses or n in self.program.stored:
            self._visit_value(n, uses)

    # -- pure values

    def _visit_value(self, n: Node, uses: Uses) -> None:
        walk = self.walk
        if len(uses) > 1 and n.op.kind in _SHARED:
            uses = walk.meet(n, uses)
        able = {g: at for g, at in uses.items() if can_compute(walk, n, g, at)}
        repeats = max(0, sum(len(at) for at in able.values()) - 1)
        work = 0 if n.op.kind in _FREE else repeats * self.work[n]
        once = n.op.kind is not Kind.REDUCE or not repeats
        fits = len(able) == len(uses) and work <= REPEAT_LIMIT and once
        if n in self.program.stored or not fits:
            self._store(n, uses, able)
            return
        for g, indices in able.items():
            for index in indices:
                walk.compute(n, g, index)

    def _store(self, n: Node, uses: Uses, able: Uses) -> None:
        """Make n a root, of a group that computes it anyway or of its own; other users read it."""
        walk = self.walk
        home = self._host(n, uses, able)
        if home is None:
            home = walk.own_group(n)
            self._fetch_reductions(n, home, uses)
            if uses:
                walk.refusals.append(f"{show(n)} is stored: {why_stored(walk, n, uses)}")
        else:
            for index in able[home]:
                walk.compute(n, home, index)
        walk.home[n] = home
        self._complete_first(n)
        walk.load_all(n, uses, but=home)

    def _host(self, n: Node, uses: Uses, able: Uses) -> Group | None:
        """A group among the users that can store n while it computes it."""
        if n in self.walk.apart or n.op.kind is Kind.CELL:
            return None
        for g, indices in able.items():
            if g.sealed or g.step is not None or (n.op.kind is Kind.REDUCE and len(indices) > 1):
                continue
            index = next((i for i in indices if can_root(self.walk, n, g, i)), None)
            if index is None or not suits_outer(self.walk, n, index, g.outer):
                continue
            if any(depends(g, other) for other in uses if other is not g):
                continue
            if g.outer is None and len(labels_of(index)) < len(g.axes):
                g.outer = labels_of(index)
            g.roots[n] = Root(index, n, index)
            g.first = min(g.first, self.program.position[n])
            return g
        return None

    def _fetch_reductions(self, n: Node, home: Group, uses: Uses) -> None:
        """A user's reduction of n itself is done where n is computed, not by reading n again."""
        if home.sealed or n.op.kind is not Kind.ELEMENTWISE:
            return
        place = iter(home.axes)
        axes = [None if size == 1 else next(place) for size in n.shape]
        for g in uses:
            for r in [r for r in g.reduces if r.args[0] is n]:
                kept = [a for d, a in enumerate(axes) if d not in r.params]
                inner = tuple(axes[d] for d in r.params)
                outer = frozenset(a for a in kept if a is not None)
                if home.outer not in (None, outer) or all(a is None for a in inner):
                    continue
                if not can_leave(r, g) or not suits_outer(
                    self.walk, n, plain(n.shape, axes), outer
                ):
                    continue
                index = plain(r.shape, kept)
                home.outer = outer
                home.reduces[r] = Reduced(index, inner)
                home.roots[r] = Root(index, r, index)
                self.walk.move_home(r, g, home)

    # -- storage cells

    def _visit_update(self, n: Node, uses: Uses) -> None:
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
        if reads_what_it_writes(self.program, walk.labels, n, target[0], at):
            if value in self.program.base:
                walk.apart.add(n)
            else:
                self.program.stored.add(value)
                walk.apart.add(value)
        walk.need(value, group, at)
        for b in n.args[2:]:
            walk.need(b, group, ())
        self._complete_first(n)
        walk.load_all(n, walk.meet(n, uses) if len(uses) > 1 else uses)
        if self.program.base[n].op.kind is Kind.INPUT:
            self._write_late(group)

    def _complete_first(self, version: Node) -> None:
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

    def _visit_version(self, n: Node, uses: Uses) -> None:
        """What a loop or branch has made of a storage cell."""
        self.walk.home[n] = self._control_group(n.args[0])
        self._complete_first(n)
        self.walk.load_all(n, uses)

    def _control_group(self, n: Node) -> Group:
        group = self.walk.home.get(n)
        if group is None:
            group = self.walk.home[n] = self.walk.new_group(n)
            group.step = n
        return group

    def _visit_control(self, n: Node) -> None:
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

    def _visit_bind(self, n: Node, uses: Uses) -> None:
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

    def _visit_contract(self, n: Node, uses: Uses) -> None:
        """Operands are read from memory through their views."""
        walk = self.walk
        group = walk.new_group(n)
        group.step = n
        walk.home[n] = group
        walk.load_all(n, uses)
        operands = self._operands(n)
        axes: dict[str, int | None] = {}
        found: list[Index] = []
        for a, letters in operands:
            for size, x in zip(a.shape, letters, strict=True):
                if axes.get(x) is None:
                    axes[x] = None if size == 1 else walk.labels.new(size)
            sizes = zip(a.shape, letters, strict=True)
            found.append(plain(a.shape, [None if size == 1 else axes[x] for size, x in sizes]))
            walk.need(a, group, found[-1])
        group.arguments = tuple(a for a, _ in operands)
        group.operands = tuple(found)
        group.letters = axes
        for a, _ in operands:
            if a not in n.args:
                self.visit(a)

    def _operands(self, n: Node) -> list[tuple[Node, str]]:
        """The arguments with their letters; the second one turned, as a copy, when its summed axes
        do not follow each other as the first one's do."""
        first, second, result = n.params
        summed = [x for x in first if x in second and x not in result]
        if "".join(summed) in second:
            return list(zip(n.args, (first, second), strict=True))
        letters = "".join([*(x for x in second if x not in summed), *summed])
        b = n.args[1]
        view = transpose(b.shape, [second.index(x) for x in letters])
        turned = Node(COPY, (b,), view, TensorType(view.shape, b.dtype), n.where)
        self.program.position[turned] = self.program.position[n]
        self.program.horizon[turned] = self.program.horizon[b]
        self.program.stored.add(turned)
        return [(n.args[0], first), (turned, letters)]

    def _visit_result(self, n: Node, uses: Uses) -> None:
        """One of several results: the call stores it."""
        call = n.args[0]
        group = self.calls.get(call)
        if group is None:
            group = self.calls[call] = self.walk.new_group(call)
            group.step = call
        group.results = (n, *group.results)
        self.walk.home[n] = group
        self.walk.load_all(n, uses)

    def _visit_call(self, n: Node, uses: Uses) -> None:
        """A row that reads whole arrays, through their views. A scatter changes its first argument
        in place, as an update does."""
        walk = self.walk
        group = self.calls.pop(n, None) or walk.new_group(n)
        if group.step is None:
            group.step = n
            # of several results none is wanted: the call is made because it may raise
            group.results = () if _has_several(n) else (n,)
            walk.home[n] = group
            self._complete_first(n)
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
        self.program.position[copy] = self.program.position[call]
        self.program.horizon[copy] = self.program.horizon[n]
        self.program.stored.add(copy)
        return copy

    def _visit_check(self, n: Node) -> None:
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

    # -- the end

    def meet_at_inputs(self) -> None:
        """Merge groups that read the same input, inputs of most dimensions first."""
        readers: dict[Node, Uses] = {n: {} for n in self.inputs if n.shape}
        for g in self.walk.alive():
            for n, indices in g.loads.items():
                if n in readers:
                    readers[n][g] = indices
        find = self.walk.labels.find
        for n in sorted(readers, key=lambda n: (-len(n.shape), self.program.position[n])):
            uses: Uses = {}
            for g, indices in readers[n].items():
                uses.setdefault(g.find(), []).extend(rename(i, find) for i in indices)
            if len(uses) > 1:
                self.walk.meet(n, uses)


def _has_several(call: Node) -> bool:
    """Whether a row's results come through RESULT nodes."""
    types = call.op.types
    return types is not None and len(types(call.params, *(a.type for a in call.args))) > 1


def _drop_unread_roots(walk: Walk) -> None:
    """A root that merging has made a mere intermediate value need not be stored."""
    read = {n for g in walk.alive() for n in g.loads}
    for g in walk.alive():
        for n in list(g.roots):
            kept = n in walk.program.stored or n in read or n.op.kind is Kind.UPDATE
            if not kept and len(g.roots) > 1:
                del g.roots[n]


def _in_order(groups: list[Group]) -> list[Group]:
    """A running order: every group after those it needs, else in program order."""
    order: list[Group] = []
    seen: set[Group] = set()
    for root in sorted(groups, key=lambda g: g.first):
        stack = [(root, False)]
        while stack:
            g, ready = stack.pop()
            if ready:
                order.append(g)
            elif g not in seen:
                seen.add(g)
                stack.append((g, True))
                waiting = sorted(g.before(), key=lambda b: b.first, reverse=True)
                stack.extend((b, False) for b in waiting if b not in seen)
    return order
