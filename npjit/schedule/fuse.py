"""Fusion: which values are stored, and which kernel computes what.

In: a `Program` (nodes in program order, storage). Out: a `Fusion`, the groups in an order in which they may run.

One walk, consumers before producers. When it reaches a node, all uses are known as (group, index). The node is
computed inside the groups that use it when its arguments' indices exist there and repeating it is cheap; otherwise
it becomes a *root*, stored once, in a group that computes it anyway or in one of its own. Groups that meet at a node
are merged when their axes agree (see `merge`). A reduction is computed inside a group when its result's axes are
the group's outer axes: `sqrt(sum(x*x, 1))` and softmax are one group each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from npjit.core.graph import Node, TensorType
from npjit.core.op import Kind
from npjit.core.size import Size
from npjit.core.view import transpose
from npjit.schedule.cells import COPY, FOREVER, Program
from npjit.schedule.group import Group, Labels, Root, depends
from npjit.schedule.index import Index, address, labels_of, plain, rename
from npjit.schedule.merge import merge
from npjit.schedule.overlap import reads_what_it_writes
from npjit.schedule.pull import arguments, is_distinct, reduced_axes

# the most repeated work, in additions per element, that is dearer to store than to do again
REPEAT_LIMIT = 16
# an op at least this dear is not computed again for every element of an axis it does not vary over
DEAR = 4
# one value read at more places than this is stored
MOST_PLACES = 12

Uses = dict[Group, list[Index]]
StridesOf = Callable[[Node], Sequence[Size]]

_FREE = (Kind.VIEW, Kind.RESHAPE, Kind.PAD, Kind.CELL, Kind.CONST, Kind.SIZE, Kind.IOTA, Kind.INPUT)
_SHARED = (Kind.ELEMENTWISE, Kind.REDUCE, Kind.GATHER, Kind.INPUT, Kind.CELL, Kind.UPDATE)


@dataclass
class Fusion:
    """The groups in running order; `home` is where a stored value is computed."""

    labels: Labels
    groups: list[Group]
    home: dict[Node, Group]
    refusals: list[str] = field(default_factory=list)


def fuse(program: Program, strides: StridesOf) -> Fusion:
    """Group the program's nodes; `strides` tells the memory layout that a node has when it is stored."""
    walk = _Walk(program, strides)
    for n in reversed(program.nodes):
        walk.visit(n)
        walk.visit_pending()
    walk.meet_at_inputs()
    walk.drop_unread_roots()
    return Fusion(walk.labels, walk.in_order(), walk.home, walk.refusals)


class _Walk:
    """The state of the reverse walk."""

    def __init__(self, program: Program, strides: StridesOf) -> None:
        self.program = program
        self.strides_of = strides
        self.labels = Labels()
        self.needs: dict[Node, list[tuple[Group, Index]]] = defaultdict(list)
        self.home: dict[Node, Group] = {}
        self.groups: list[Group] = []
        self.refusals: list[str] = []
        self.repeated: dict[Node, int] = defaultdict(int)
        # values that must not be computed in the group of the update that takes them
        self.apart: set[Node] = set()
        self.copies: dict[Node, Node] = {}
        self.checks: list[Group] = []
        self.gathering: list[Group] = []
        self.writing: list[Group] = []
        self.inputs: list[Node] = []
        self.pending: list[Node] = []

    # -- the walk

    def visit(self, n: Node) -> None:
        """Decide about one node, all of whose uses are known."""
        kind = n.op.kind
        uses = self._uses(n)
        if kind is Kind.INPUT:
            self._load_all(n, uses)
            self.inputs.append(n)
        elif kind is Kind.UPDATE:
            self._visit_update(n, uses)
        elif kind is Kind.CONTRACT:
            self._visit_contract(n, uses)
        elif kind is Kind.CHECK:
            self._visit_check(n)
        elif kind is Kind.CELL and not n.args:
            self._load_all(n, uses)
        elif uses or n in self.program.stored:
            self._visit_value(n, uses)

    def visit_pending(self) -> None:
        """Nodes that a decision has put in."""
        while self.pending:
            self.visit(self.pending.pop())

    def _uses(self, n: Node) -> Uses:
        found: Uses = {}
        for group, index in self.needs.pop(n, ()):
            known = found.setdefault(group.find(), [])
            index = rename(index, self.labels.find)
            if index not in known:
                known.append(index)
        return found

    def _visit_value(self, n: Node, uses: Uses) -> None:
        if len(uses) > 1 and n.op.kind in _SHARED:
            uses = self._meet(n, uses)
        able = {g: indices for g, indices in uses.items() if self._can_compute(n, g, indices)}
        repeats = max(0, sum(len(i) for i in able.values()) - 1)
        work = self._repeated_work(n, repeats)
        everywhere = len(able) == len(uses) and work <= REPEAT_LIMIT
        if n.op.kind is Kind.REDUCE and repeats:
            everywhere = False
        if n not in self.program.stored and everywhere:
            self.repeated[n] = work
            for g, indices in able.items():
                for index in indices:
                    self._compute(n, g, index)
            return
        self._store(n, uses, able)

    def _store(self, n: Node, uses: Uses, able: Uses) -> None:
        """Make n a root, of a group that computes it anyway or of its own; the other users read it."""
        home = self._host(n, uses, able)
        self.repeated[n] = 0
        if home is None:
            home = self._own_group(n)
            if uses:
                self.refusals.append(f"{_name(n)} is stored: {self._why(n, uses)}")
        else:
            for index in able[home]:
                self._compute(n, home, index)
        self.home[n] = home
        self._complete_first(n)
        for g, indices in uses.items():
            if g is not home:
                for index in indices:
                    self._load(g, n, index)

    def _host(self, n: Node, uses: Uses, able: Uses) -> Group | None:
        """A group among the users that can store n while it computes it."""
        if n in self.apart or n.op.kind is Kind.CELL:
            return None
        for g, indices in able.items():
            if g.sealed or g.step is not None or (n.op.kind is Kind.REDUCE and len(indices) > 1):
                continue
            index = next((i for i in indices if self._can_root(n, g, i)), None)
            if index is None or any(depends(g, other) for other in uses if other is not g):
                continue
            axes = labels_of(index)
            if n.op.kind is not Kind.REDUCE and g.outer is None and len(axes) < len(g.axes):
                if axes != set(g.axes[: len(axes)]):
                    continue
                g.outer = axes
            g.roots[n] = Root(index, n, index)
            g.first = min(g.first, self.program.position[n])
            return g
        return None

    def _own_group(self, n: Node) -> Group:
        group = self._new_group(n)
        group.axes = [a for a in self.labels.axes(n.shape) if a is not None]
        named = iter(group.axes)
        index = plain(n.shape, [None if size == 1 else next(named) for size in n.shape])
        group.roots[n] = Root(index, n, index)
        group.sealed = n in self.apart
        self._compute(n, group, index)
        return group

    def _new_group(self, n: Node) -> Group:
        group = Group(first=self.program.position[n])
        self.groups.append(group)
        return group

    # -- what can be computed where

    def _can_compute(self, n: Node, g: Group, indices: list[Index]) -> bool:
        if n in self.apart or len(indices) > MOST_PLACES:
            return False
        if g.first > self.program.horizon[n] and n.op.kind is not Kind.CELL:
            return False
        if g.step is not None:
            return n.op.kind in (Kind.VIEW, Kind.RESHAPE) and self._is_matrix_view(n, indices)
        if n.op.kind is Kind.REDUCE:
            return len(indices) == 1 and self._can_reduce(n, g, indices[0])
        if n.op.kind is Kind.ELEMENTWISE and n.op.cost >= DEAR and self._is_spread(g, indices):
            return False
        return all(arguments(n, index) is not None for index in indices)

    def _is_matrix_view(self, n: Node, indices: list[Index]) -> bool:
        """Whether a library can read a view in place: every axis runs by single elements, rows or more."""
        for index in indices:
            args = arguments(n, index)
            if args is None or labels_of(args[0]) != labels_of(index):
                return False
            if any(k != 1 for span in args[0] for _, k in span.terms if span.dims == 1):
                return False
        return True

    def _is_spread(self, g: Group, indices: list[Index]) -> bool:
        """Whether the value would be computed again along an outer loop, element by element."""
        if len(g.axes) < 2:
            return False
        for index in indices:
            axes = labels_of(index)
            varies = axes and len(axes) < len(g.axes)
            if varies and g.axes[-1] in axes and not (g.outer is not None and axes <= g.outer):
                return True
        return False

    def _can_reduce(self, n: Node, g: Group, index: Index) -> bool:
        """Whether the result's axes are, or can become, the outer axes of the group."""
        if not is_distinct(index):
            return False
        axes = labels_of(index)
        if g.outer is not None:
            return axes == g.outer
        return axes <= set(g.axes)

    def _can_root(self, n: Node, g: Group, index: Index) -> bool:
        """Whether the group computes every element of n once, each at its own place in the loops."""
        for size, span in zip(n.shape, index, strict=False):
            if span.dims > 1 or span.anywhere or span.start != 0:
                return False
            if size == 1 and not span.terms:
                continue
            if len(span.terms) != 1 or span.terms[0][1] != 1:
                return False
            if self.labels.extents[span.terms[0][0]] != size:
                return False
        if not is_distinct(index):
            return False
        axes = labels_of(index)
        return axes <= set(g.axes) and (g.outer is None or g.outer <= axes)

    def _repeated_work(self, n: Node, repeats: int) -> int:
        own = 0 if n.op.kind in _FREE else n.op.cost
        return self.repeated[n] + repeats * own

    def _why(self, n: Node, uses: Uses) -> str:
        if any(g.first > self.program.horizon[n] for g in uses):
            return "what it reads is overwritten before its use"
        if any(g.step is not None for g in uses):
            return "a library call reads it"
        if n.op.kind is Kind.REDUCE:
            return "a user needs it along an axis that is not outer there"
        if len(uses) > 1 or any(len(i) > 1 for i in uses.values()):
            return "computing it again for each use costs more"
        return "its user reads it at places that are no affine index"

    # -- effects of a decision

    def _compute(self, n: Node, g: Group, index: Index) -> None:
        """n is evaluated in g at index: its arguments are needed there."""
        kind = n.op.kind
        if kind is Kind.REDUCE:
            g.outer = labels_of(index)
            inner = reduced_axes(self.labels, n, g, index, self._known(n.args[0], g))
            g.reduces[n] = inner
            g.axes = list(dict.fromkeys([*g.axes, *(a for a in inner if a is not None)]))
            found = arguments(n, index, inner)
        else:
            found = arguments(n, index)
        assert found is not None
        if kind is Kind.GATHER:
            self.gathering.append(g)
            self.program.stored.add(n.args[0])
        for a, at in zip(n.args, found, strict=True):
            self._need(a, g, at, self.repeated[n])

    def _known(self, n: Node, g: Group) -> list[Index]:
        """Indices at which a group is known to need a node."""
        found = []
        for group, index in self.needs.get(n, ()):
            if group.find() is g:
                found.append(rename(index, self.labels.find))
        return found

    def _need(self, n: Node, g: Group, index: Index, repeated: int = 0) -> None:
        self.needs[n].append((g, index))
        self.repeated[n] = max(self.repeated[n], repeated)

    def _load_all(self, n: Node, uses: Uses) -> None:
        for g, indices in uses.items():
            for index in indices:
                self._load(g, n, index)

    def _load(self, g: Group, n: Node, index: Index) -> None:
        """g reads the stored value n from memory."""
        killer = self.program.killer.get(n)
        overwriter = self.home[killer].find() if killer is not None else None
        late = overwriter is not None and overwriter is not g and depends(g, overwriter)
        clash = killer is not None and overwriter is g and killer in self.apart
        if late and n.op.kind is Kind.CELL:
            self._compute(n, g, index)
            return
        if late or clash or not self._is_addressable(n, g, index):
            why = "it is overwritten before its last use" if late or clash else "its strides do not suit its user"
            source = self._copy(n, why)
            g.replaced[n] = source
            n = source
        elif overwriter is not None:
            overwriter.run_after(g)
        g.loads.setdefault(n, []).append(index)
        if n in self.home:
            g.run_after(self.home[n].find())

    def _is_addressable(self, n: Node, g: Group, index: Index) -> bool:
        found = address(index, n.shape, self.strides_of(n))
        if found is None or g.step is None:
            return found is not None
        # a library wants rows or columns of neighbouring elements
        return not found[1] or 1 in found[1].values()

    def _copy(self, n: Node, why: str) -> Node:
        """A stored copy of n, made before it is overwritten, in C order."""
        if n not in self.copies:
            copy = self.program.copy_of(n)
            self.copies[n] = copy
            self.program.position[copy] = self.program.position[n]
            self.program.horizon[copy] = FOREVER
            group = self._new_group(copy)
            group.axes = [a for a in self.labels.axes(n.shape) if a is not None]
            named = iter(group.axes)
            index = plain(n.shape, [None if size == 1 else next(named) for size in n.shape])
            group.roots[copy] = Root(index, copy, index)
            group.sealed = True
            self.home[copy] = group
            self._load(group, n, index)
            self.refusals.append(f"{_name(n)} is copied because {why}")
        return self.copies[n]

    # -- groups that meet

    def _meet(self, n: Node, uses: Uses) -> Uses:
        """Merge the groups that use n where their spaces agree."""
        leaders: list[tuple[Group, Index]] = []
        for g, indices in sorted(uses.items(), key=lambda u: u[0].first):
            if g.step is not None or g.sealed:
                continue
            reason = ""
            for leader, at in leaders[-4:]:
                # an earlier merge of this round may have renamed the axes
                at = rename(at, self.labels.find)
                mine = rename(indices[0], self.labels.find)
                reason = merge(self.labels, self.home, leader.find(), g.find(), at, mine)
                if not reason:
                    break
            else:
                leaders.append((g, indices[0]))
            if reason:
                self.refusals.append(f"kernels that share {_name(n)} stay apart: {reason}")
        found: Uses = {}
        for g, indices in uses.items():
            known = found.setdefault(g.find(), [])
            for index in (rename(i, self.labels.find) for i in indices):
                if index not in known:
                    known.append(index)
        return found

    def meet_at_inputs(self) -> None:
        """Merge groups that read the same input, large inputs first."""
        readers: dict[Node, Uses] = {n: {} for n in self.inputs}
        for g in self._alive():
            for n, indices in g.loads.items():
                if n in readers:
                    readers[n][g] = [rename(i, self.labels.find) for i in indices]
        for n in sorted(self.inputs, key=lambda n: (-len(n.shape), self.program.position[n])):
            uses: Uses = {}
            for g, indices in readers[n].items():
                uses.setdefault(g.find(), []).extend(rename(i, self.labels.find) for i in indices)
            if len(uses) > 1 and n.shape:
                self._meet(n, uses)

    # -- nodes that are no pure values

    def _visit_update(self, n: Node, uses: Uses) -> None:
        """The value goes straight into the cell; it is computed apart when it reads what it would overwrite."""
        group = self._new_group(n)
        group.sealed = True
        value = n.args[1]
        axes = self.labels.axes(value.shape)
        group.axes = [a for a in axes if a is not None]
        at = plain(value.shape, axes)
        target = arguments(n, at)
        assert target is not None
        group.roots[n] = Root(target[0], value, at)
        self.home[n] = group
        if reads_what_it_writes(self.program, self.labels, n, target[0], at):
            if value in self.program.base:
                self.apart.add(n)
            else:
                self.program.stored.add(value)
                self.apart.add(value)
        self._need(value, group, at)
        self._complete_first(n)
        self._load_all(n, self._meet(n, uses) if len(uses) > 1 else uses)
        if self.program.base[n].op.kind is Kind.INPUT:
            self.writing.append(group)
            for check in self.checks:
                # the caller's memory is left alone until all is known to be well
                if not depends(check, group):
                    group.run_after(check)

    def _complete_first(self, version: Node) -> None:
        """The update that overwrites part of this version waits for all of it."""
        killer = self.program.killer.get(version)
        if killer is not None:
            self.home[killer].run_after(self.home[version])

    def _visit_contract(self, n: Node, uses: Uses) -> None:
        """A step of its own: operands are read from memory through their views."""
        group = self._new_group(n)
        group.step = n
        self.home[n] = group
        self._load_all(n, uses)
        operands = self._operands(n)
        axes: dict[str, int | None] = {}
        found: list[Index] = []
        for a, letters in operands:
            for size, letter in zip(a.shape, letters, strict=True):
                if axes.get(letter) is None:
                    axes[letter] = None if size == 1 else self.labels.new(size)
            sizes = zip(a.shape, letters, strict=True)
            found.append(plain(a.shape, [None if s == 1 else axes[x] for s, x in sizes]))
            self._need(a, group, found[-1])
        group.operands = tuple(found)
        group.arguments = tuple(a for a, _ in operands)
        group.letters = axes

    def _operands(self, n: Node) -> list[tuple[Node, str]]:
        """The arguments with their letters; the second is copied when its summed axes lie in another order."""
        first, second, result = n.params
        summed = [x for x in first if x in second and x not in result]
        place = [second.index(x) for x in summed]
        if place == list(range(place[0], place[0] + len(place))) if place else True:
            return list(zip(n.args, (first, second), strict=True))
        kept = [x for x in second if x not in summed]
        letters = "".join([*kept, *summed])
        b = n.args[1]
        view = transpose(b.shape, [second.index(x) for x in letters])
        turned = Node(COPY, (b,), view, TensorType(view.shape, b.dtype), n.where)
        self.program.position[turned] = self.program.position[n]
        self.program.horizon[turned] = self.program.horizon[b]
        self.program.stored.add(turned)
        self.pending.append(turned)
        return [(n.args[0], first), (turned, letters)]

    def _visit_check(self, n: Node) -> None:
        """A step that everything behind it waits for."""
        group = self._new_group(n)
        group.step = n
        self.apart.add(n.args[0])
        self._need(n.args[0], group, ())
        for g in dict.fromkeys(g.find() for g in (*self.gathering, *self.writing)):
            g.run_after(group)
        self.checks.append(group)

    # -- the end

    def _alive(self) -> list[Group]:
        return [g for g in self.groups if g.find() is g]

    def drop_unread_roots(self) -> None:
        """A root that merging has made a mere intermediate value need not be stored."""
        read = {n for g in self._alive() for n in g.loads}
        for g in self._alive():
            for n in [n for n in g.roots if n not in self.program.stored and n not in read]:
                if n.op.kind is not Kind.UPDATE and len(g.roots) > 1:
                    del g.roots[n]
                    del self.home[n]

    def in_order(self) -> list[Group]:
        """A running order: every group after those it needs, else in program order."""
        order: list[Group] = []
        state: dict[Group, bool] = {}
        for root in sorted(self._alive(), key=lambda g: g.first):
            stack = [(root, False)]
            while stack:
                g, done = stack.pop()
                if done:
                    state[g] = True
                    order.append(g)
                elif g not in state:
                    state[g] = False
                    stack.append((g, True))
                    waiting = sorted(g.before(), key=lambda b: b.first, reverse=True)
                    stack.extend((b, False) for b in waiting if b not in state)
        return order


def _name(n: Node) -> str:
    where = f" at {n.where}" if n.where else ""
    return f"{n.op.name} {n.type}{where}"
