"""Groups: the values that one kernel computes, over labelled axes.

A `Group` has *roots* (values it stores), *reductions* it carries out on the way, and *loads*
(stored values it reads). `outer` is the set of axes that are independent of each other; None as
long as every axis is. Groups form a graph by `after` (which groups must have run before); `depends`
answers whether one is needed by another, so that every step of fusion keeps that graph free of
cycles.

Axes are numbers from one `Labels` table; merging two groups makes labels equal, so that indices
written with the old ones stay valid through `Labels.find`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from npjit.core.assume import Assumptions
from npjit.core.graph import Node
from npjit.core.size import Shape, Size
from npjit.schedule.index import Index


class Labels:
    """Extents of all axes, which labels have become equal, and what is known of sizes."""

    def __init__(self, known: Assumptions) -> None:
        self.known = known
        self.extents: list[Size] = []
        self._parents: list[int] = []

    def new(self, extent: Size) -> int:
        """A fresh axis."""
        self.extents.append(extent)
        self._parents.append(len(self._parents))
        return len(self._parents) - 1

    def axes(self, shape: Shape) -> list[int | None]:
        """Fresh axes for a shape; none where the extent is literally 1."""
        return [None if n == 1 else self.new(n) for n in shape]

    def find(self, label: int) -> int:
        """The label that now stands for this one."""
        while self._parents[label] != label:
            self._parents[label] = self._parents[self._parents[label]]
            label = self._parents[label]
        return label

    def unify(self, kept: int, gone: int) -> None:
        """From now on `gone` is `kept`."""
        self._parents[self.find(gone)] = self.find(kept)


@dataclass(frozen=True)
class Root:
    """A stored value: `value` at `value_index` goes to the element `index` of the storage of the
    root's node."""

    index: Index
    value: Node
    value_index: Index


@dataclass(frozen=True)
class Reduced:
    """A reduction: where its result is needed, and its inner axes in the order of the reduced
    dimensions (None: a literal 1)."""

    index: Index
    inner: tuple[int | None, ...]


@dataclass(eq=False)
class Group:
    """See the module's docstring. A group with a `step` is no kernel: that node runs as a step of
    its own."""

    axes: list[int] = field(default_factory=list)
    outer: frozenset[int] | None = None
    roots: dict[Node, Root] = field(default_factory=dict)
    reduces: dict[Node, Reduced] = field(default_factory=dict)
    loads: dict[Node, list[Index]] = field(default_factory=dict)
    # read instead of a value that is overwritten before this group can run
    replaced: dict[Node, Node] = field(default_factory=dict)
    step: Node | None = None
    # of a step: its arguments, where they are read, and the axes that a contraction's letters name
    arguments: tuple[Node, ...] = ()
    operands: tuple[Index, ...] = ()
    # of a call: the nodes that it stores
    results: tuple[Node, ...] = ()
    letters: dict[str, int | None] = field(default_factory=dict)
    # reads memory at computed places, so that checks must have been made before
    gathers: bool = False
    # some of its roots are updates, in place
    updates: bool = False
    # reads elements that it overwrites later: its indices go up, in one thread
    in_order: bool = False
    # an element is read beside its update, so that there must not be several loops
    in_one: bool = False
    # takes no further roots, and is never merged if it is no update
    sealed: bool = False
    first: int = 0
    after: dict[Group, None] = field(default_factory=dict)
    height: int = 0
    _into: Group | None = None

    def find(self) -> Group:
        """The group that this one has been merged into."""
        group = self
        while group._into is not None:
            group = group._into
        return group

    def before(self) -> list[Group]:
        """The groups that must have run."""
        return list(dict.fromkeys(g.find() for g in self.after))

    def inner(self) -> list[int]:
        """The axes that are not outer."""
        return [] if self.outer is None else [a for a in self.axes if a not in self.outer]

    def outer_axes(self) -> list[int]:
        """The outer axes, in order."""
        return self.axes if self.outer is None else [a for a in self.axes if a in self.outer]

    def run_after(self, other: Group) -> None:
        """This group needs `other` to have run; the caller made sure that no cycle comes of it."""
        if other is not self and other not in self.after:
            self.after[other] = None
            other.raise_to(self.height + 1)

    def raise_to(self, height: int) -> None:
        """Keep every group higher than those that need it."""
        stack = [(self, height)]
        while stack:
            group, least = stack.pop()
            if group.height < least:
                group.height = least
                stack.extend((g, least + 1) for g in group.before())

    def become(self, other: Group) -> None:
        """Stand for `other` from now on, having nothing left to do."""
        self._into = other
        other.raise_to(self.height)

    def absorb(self, other: Group) -> None:
        """Take over what `other` does."""
        other._into = self
        self.axes = list(dict.fromkeys([*self.axes, *other.axes]))
        self.roots.update(other.roots)
        self.reduces.update(other.reduces)
        for node, indices in other.loads.items():
            self.loads.setdefault(node, []).extend(indices)
        self.replaced.update(other.replaced)
        self.gathers = self.gathers or other.gathers
        self.updates = self.updates or other.updates
        self.sealed = self.sealed or other.sealed
        self.in_order = self.in_order or other.in_order
        self.first = min(self.first, other.first)
        for g in (*self.before(), *other.before()):
            if g is not self:
                self.after[g] = None
        self.after.pop(other, None)
        height = max(self.height, other.height)
        self.height = height
        for g in self.before():
            if g is not self:
                g.raise_to(height + 1)


def depends(group: Group, on: Group) -> bool:
    """Whether `group` can run only after `on`."""
    if group is on:
        return True
    seen: set[Group] = set()
    stack = [group]
    while stack:
        for g in stack.pop().before():
            if g is on:
                return True
            if g.height < on.height and g not in seen:
                seen.add(g)
                stack.append(g)
    return False
