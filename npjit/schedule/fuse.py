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

from npjit.core.graph import Node
from npjit.core.op import CONTROL, Kind
from npjit.schedule.cells import CALLS, Program
from npjit.schedule.fit import can_compute, can_leave, can_root, suits_outer, why_stored
from npjit.schedule.group import Group, Labels, Reduced, Root, depends
from npjit.schedule.index import labels_of, plain, rename
from npjit.schedule.steps import StepWalk
from npjit.schedule.walk import StridesOf, Uses, Walk, show
from npjit.schedule.work import REPEAT_LIMIT, work_of

_FREE = (Kind.VIEW, Kind.RESHAPE, Kind.PAD, Kind.CELL, Kind.CONST, Kind.SIZE, Kind.IOTA, Kind.INPUT)
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
        self.steps = StepWalk(walk, self.visit)
        self.inputs: list[Node] = []

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
            self.steps.visit_update(n, uses)
        elif kind is Kind.CONTRACT:
            self.steps.visit_contract(n, uses)
        elif kind is Kind.RESULT and n in self.program.base:
            self.steps.visit_version(n, uses)
        elif kind in CONTROL:
            self.steps.visit_control(n)
        elif kind is Kind.BIND:
            self.steps.visit_bind(n, uses)
        elif kind is Kind.RESULT:
            self.steps.visit_result(n, uses)
        elif kind in CALLS:
            self.steps.visit_call(n, uses)
        elif kind is Kind.CHECK:
            self.steps.visit_check(n)
        elif uses or n in self.program.stored:
            self._visit_value(n, uses)

    # -- pure values

    def _visit_value(self, n: Node, uses: Uses) -> None:
        walk = self.walk
        if len(uses) > 1 and n.op.kind in _SHARED:
            uses = walk.meet(n, uses)
        able = {g: at for g, at in uses.items() if can_compute(walk, n, g, at)}
        fits = len(able) == len(uses) and self._is_cheap(n, sum(len(at) for at in able.values()))
        if n in self.program.stored or not fits:
            self._store(n, uses, able)
            return
        for g, indices in able.items():
            for index in indices:
                walk.compute(n, g, index)

    def _is_cheap(self, n: Node, times: int) -> bool:
        """Whether computing n so often costs little more than storing it."""
        if times <= 1 or n.op.kind in _FREE:
            return True
        return n.op.kind is not Kind.REDUCE and (times - 1) * self.work[n] <= REPEAT_LIMIT

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
        self.steps.complete_first(n)
        walk.load_all(n, uses, but=home)

    def _host(self, n: Node, uses: Uses, able: Uses) -> Group | None:
        """A group among the users that can store n while it computes it."""
        if n in self.walk.apart or n.op.kind is Kind.CELL:
            return None
        for g, indices in able.items():
            if g.sealed or g.step is not None or not self._is_cheap(n, len(indices)):
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
