"""The state of the fusion walk, and what its decisions do to it.

`Walk` knows the groups so far, where each node is needed (`needs`: group and index), and where
stored nodes are computed (`home`). `fuse` decides; the methods here carry decisions out:

    walk.compute(n, group, index)   n is evaluated there: its arguments are needed there
    walk.load(group, n, index)      n is read from memory there
    walk.own_group(n)               n is stored by a new group
    walk.meet(n, uses)              the groups that use n are merged where they can be
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from npjit.core.graph import Node
from npjit.core.op import Kind
from npjit.core.size import Size
from npjit.schedule.cells import FOREVER, Program
from npjit.schedule.group import Group, Labels, Reduced, Root, depends
from npjit.schedule.index import Index, address, labels_of, plain, rename
from npjit.schedule.merge import Pairs, merge, renamed
from npjit.schedule.overlap import lie_apart, meets
from npjit.schedule.pull import arguments, reduced_axes

# the groups that use a node, and at which indices
Uses = dict[Group, list[Index]]
StridesOf = Callable[[Node], Sequence[Size]]

# how many of the groups that share a value a further one is tried with
MOST_LEADERS = 4


class Walk:
    """See the module's docstring."""

    def __init__(self, program: Program, strides_of: StridesOf) -> None:
        self.program = program
        self.strides_of = strides_of
        self.labels = Labels(program.known)
        self.groups: list[Group] = []
        self.needs: dict[Node, list[tuple[Group, Index]]] = defaultdict(list)
        self.home: dict[Node, Group] = {}
        # values that must not be computed in the group that takes them, and updates that clash
        # with what they store
        self.apart: set[Node] = set()
        # those of them that read what the update overwrites that takes them
        self.clashing: set[Node] = set()
        self.refusals: list[str] = []
        self._copies: dict[Node, Node] = {}

    # -- uses

    def take_uses(self, n: Node) -> Uses:
        """Where n is needed, by groups and axes as they are now."""
        found: Uses = {}
        for group, index in self.needs.pop(n, ()):
            known = found.setdefault(group.find(), [])
            index = rename(index, self.labels.find)
            if index not in known:
                known.append(index)
        return found

    def need(self, n: Node, group: Group, index: Index) -> None:
        """n is needed in the group at index."""
        self.needs[n].append((group, index))

    def _known(self, n: Node, group: Group) -> list[Index]:
        """Indices at which a group is known to need a node."""
        found = [index for g, index in self.needs.get(n, ()) if g.find() is group]
        return [rename(index, self.labels.find) for index in found]

    # -- groups

    def new_group(self, n: Node) -> Group:
        """An empty group for a node."""
        group = Group(first=self.program.position[n])
        self.groups.append(group)
        return group

    def alive(self) -> list[Group]:
        """The groups that have not been merged into another."""
        return [g for g in self.groups if g.find() is g]

    def own_group(self, n: Node) -> Group:
        """A group that stores n."""
        group = self.new_group(n)
        # where a pad begins and ends is asked of an axis, so that it has one even for extent 1
        every = n.op.kind is Kind.PAD
        axes = [self.labels.new(s) for s in n.shape] if every else self.labels.axes(n.shape)
        group.axes = [a for a in axes if a is not None]
        index = plain(n.shape, axes)
        group.roots[n] = Root(index, n, index)
        group.sealed = n in self.apart and n not in self.clashing
        self.compute(n, group, index)
        return group

    def move_home(self, n: Node, old: Group, new: Group) -> None:
        """The reduction n is done by the new group, and read from memory by its users; the old
        group vanishes when that was all it did."""
        index = rename(old.reduces.pop(n).index, self.labels.find)
        if old.roots.keys() <= {n}:
            old.become(new)
            self.home[n] = new
            return
        readers = [g for g in self.alive() if n in g.loads] if n in old.roots else []
        old.roots.pop(n, None)
        old.loads.setdefault(n, []).append(index)
        self.home[n] = new
        for g in (old, *readers):
            g.run_after(new)

    def meet(self, n: Node, uses: Uses) -> Uses:
        """Merge the groups that use n where their spaces agree; the uses as they are then."""
        leaders: list[tuple[Group, Index]] = []
        for g, indices in sorted(uses.items(), key=lambda u: u[0].first):
            if g.step is not None or (g.sealed and not g.updates):
                continue
            reason = self.follow(leaders[-MOST_LEADERS:], g, indices[0])
            if reason:
                self.refusals.append(f"kernels that share {show(n)} stay apart: {reason}")
            if reason or not leaders:
                leaders.append((g, indices[0]))
        found: Uses = {}
        for g, indices in uses.items():
            known = found.setdefault(g.find(), [])
            for index in (rename(i, self.labels.find) for i in indices):
                if index not in known:
                    known.append(index)
        return found

    def follow(self, leaders: Sequence[tuple[Group, Index]], g: Group, at: Index) -> str:
        """Merge g into one of the leaders; the last reason when none takes it."""
        reason = ""
        for leader, leaders_at in leaders:
            # an earlier merge of this round may have renamed the axes
            first, second = (rename(i, self.labels.find) for i in (leaders_at, at))
            reason = merge(self.labels, leader.find(), g.find(), first, second, self._updates_agree)
            if not reason:
                return ""
        return reason

    def _updates_agree(self, a: Group, b: Group, pairs: Pairs, in_one: bool) -> bool:
        """Whether no update of one group touches what the other reads elsewhere, or writes.
        `in_one` loop each may read the element that the other is updating."""
        program, labels = self.program, self.labels
        name = renamed(labels, pairs)
        for u, first in a.roots.items():
            for w, second in b.roots.items():
                here = (rename(first.index, labels.find), rename(first.value_index, labels.find))
                there = (rename(second.index, name), rename(second.value_index, name))
                same = program.base.get(u, u) is program.base.get(w, w)
                if same and not lie_apart(labels, here[0], there[0]):
                    return False
                for update, target, value, at in (
                    (u, here[0], second.value, there[1]),
                    (w, there[0], first.value, here[1]),
                ):
                    is_update = update.op.kind is Kind.UPDATE
                    if is_update and meets(program, labels, update, target, value, at, in_one):
                        return False
        return True

    # -- evaluating and reading

    def compute(self, n: Node, group: Group, index: Index) -> None:
        """n is evaluated in the group at index: its arguments are needed there."""
        kind = n.op.kind
        if kind is Kind.REDUCE:
            group.outer = labels_of(index)
            inner = reduced_axes(self.labels, n, group, index, self._known(n.args[0], group))
            group.reduces[n] = Reduced(index, inner)
            group.axes = list(dict.fromkeys([*group.axes, *(a for a in inner if a is not None)]))
            found = arguments(n, index, inner)
        else:
            found = arguments(n, index)
        assert found is not None
        if kind is Kind.GATHER:
            group.gathers = True
            self.program.stored.add(n.args[0])
        for a, at in zip(n.args, found, strict=False):
            self.need(a, group, at)
        for b in n.args[len(found) :]:  # BIND nodes
            self.need(b, group, ())

    def load_all(self, n: Node, uses: Uses, but: Group | None = None) -> None:
        """Every user (but one) reads n from memory."""
        for g, indices in uses.items():
            if g.find() is not but:
                for index in indices:
                    self.load(g, n, index)

    def load(self, group: Group, n: Node, index: Index) -> None:
        """The group reads the stored value n; a copy of it, where it would come too late or where
        its strides do not serve."""
        killer = self.program.killer.get(n)
        overwriter = self.home[killer].find() if killer is not None else None
        late = overwriter is not None and overwriter is not group and depends(group, overwriter)
        clash = overwriter is group and killer in self.apart
        if late and n.op.kind is Kind.CELL and group.step is None:
            self.compute(n, group, index)
            return
        if late or clash:
            n = self._read_copy(group, n, "it is overwritten before its last use")
        elif not self._is_addressable(group, n, index):
            n = self._read_copy(group, n, "its strides do not suit its user")
        elif overwriter is not None:
            overwriter.run_after(group)
        group.loads.setdefault(n, []).append(index)
        if n in self.home:
            group.run_after(self.home[n].find())

    def _is_addressable(self, group: Group, n: Node, index: Index) -> bool:
        found = address(index, n.shape, self.strides_of(n))
        if found is None or group.step is None or group.step.op.kind is not Kind.CONTRACT:
            return found is not None
        return self.suits_library(n, index)

    def suits_library(self, n: Node, index: Index) -> bool:
        """Whether a product can read n in memory: a vector, or rows or columns of neighbouring
        elements."""
        found = address(index, n.shape, self.strides_of(n))
        return found is not None and (len(found[1]) < 2 or 1 in found[1].values())

    def _read_copy(self, group: Group, n: Node, why: str) -> Node:
        """A stored copy of n, made before n is overwritten, in C order; the group reads that."""
        copy = self._copies.get(n)
        if copy is None:
            copy = self._copies[n] = self.program.copy_of(n)
            self.refusals.append(f"{show(n)} is copied: {why}")
            self.program.position[copy] = self.program.position[n]
            self.program.horizon[copy] = FOREVER
            maker = self.new_group(copy)
            axes = self.labels.axes(n.shape)
            maker.axes = [a for a in axes if a is not None]
            index = plain(n.shape, axes)
            maker.roots[copy] = Root(index, copy, index)
            maker.sealed = True
            self.home[copy] = maker
            self.load(maker, n, index)
        group.replaced[n] = copy
        return copy


def show(n: Node) -> str:
    """A node as refusals name it."""
    where = f" at {n.where}" if n.where else ""
    return f"{n.op.name} {n.type}{where}"
