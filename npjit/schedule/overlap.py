"""Whether the value of an update reads elements of the cell that the update has overwritten by
then.

In: an update and where it stores. Out: a `Clash`, and the slices that clash (a row or an element
for a matrix). A read that may meet another element's write needs a temporary: the slice, if it is
one, else the value. Reading exactly the element that is written (`x += 1`) is safe, and so is
reading elements that lie apart in some dimension (`a[1:] = a[0]`). Elements ahead
(`a[:-1] = a[1:]`) are safe for one thread that goes up.
"""

from __future__ import annotations

from enum import Enum

from npjit.core.graph import Node
from npjit.core.op import Kind
from npjit.core.size import Size, bounds
from npjit.schedule.cells import STEPS, Program
from npjit.schedule.group import Labels
from npjit.schedule.index import Index, Span, labels_of
from npjit.schedule.pull import arguments

# expressions of more reads than this are not looked through
MOST_READS = 256


class Clash(Enum):
    """How an update's value reads what it overwrites: not at all, nothing but elements that are
    written later when indices go up, or others too."""

    NONE = "none"
    AHEAD = "ahead"
    BEHIND = "behind"


def find_clash(
    program: Program, labels: Labels, update: Node, target: Index, at: Index
) -> tuple[Clash, list[Node]]:
    """How reads of the overwritten version meet the elements `target`, their own ones aside, once
    these slices of it are stored."""
    found = Clash.NONE
    slices: dict[Node, None] = {}
    old = update.args[0]
    deadline = program.position[update]
    seen: set[tuple[Node, Index]] = set()
    stack = [(update, update.args[1], at)]
    while stack:
        user, n, index = stack.pop()
        if program.horizon[n] > deadline:
            continue
        if n is old:
            if index == target or lie_apart(labels, index, target):
                continue
            if _is_slice(user, target):
                slices[user] = None
                continue
            if not _is_ahead(labels, index, target):
                return Clash.BEHIND, []
            found = Clash.AHEAD
            continue
        if (n, index) in seen or (n in program.base and n.op.kind is not Kind.CELL):
            continue
        seen.add((n, index))
        arguments_at = _arguments(labels, n, index)
        if arguments_at is None:
            return Clash.BEHIND, []
        stack.extend((n, a, i) for a, i in zip(n.args, arguments_at, strict=False))
    return found, list(slices)


def _is_slice(n: Node, whole: Index) -> bool:
    """Whether a node is a view with fewer axes than an index."""
    axes = sum(size != 1 for size in n.shape)
    return n.op.kind is Kind.VIEW and axes < len(labels_of(whole))


def _is_ahead(labels: Labels, read: Index, written: Index) -> bool:
    """Whether, for going up each axis, the element that is read is written later or just now."""
    if len(read) != len(written):
        return False
    for s, t in zip(read, written, strict=True):
        rises = all((bounds(step)[0] or 0) > 0 for _, step in s.terms)
        if s.dims != 1 or s.anywhere or s.terms != t.terms or not rises:
            return False
        if not labels.known.le(t.start, s.start):
            return False
    return True


def meets(
    program: Program,
    labels: Labels,
    update: Node,
    target: Index,
    value: Node,
    at: Index,
    in_one: bool,
) -> bool:
    """Whether a value that is computed along with an update reads what the update overwrites. When
    both are `in_one` loop it may read the element that is being overwritten, as it was and as it
    will be."""
    cell, old = program.base[update], update.args[0]
    seen: set[tuple[Node, Index]] = set()
    stack = [(value, at)]
    while stack:
        n, index = stack.pop()
        if (n, index) in seen:
            continue
        seen.add((n, index))
        if program.base.get(n) is cell:
            is_own = in_one and index == target and n in (old, update)
            if not is_own and (n is not old or not lie_apart(labels, index, target)):
                return True
            continue
        if n in program.base and n.op.kind is not Kind.CELL:
            continue
        found = _arguments(labels, n, index)
        if found is None or len(seen) > MOST_READS:
            return True
        stack.extend(zip(n.args, found, strict=False))
    return False


def _arguments(labels: Labels, n: Node, index: Index) -> list[Index] | None:
    if n.op.kind is Kind.REDUCE:
        base = n.args[0].shape
        return arguments(n, index, [labels.new(base[d]) for d in n.params])
    if n.op.kind in STEPS:
        return []
    return arguments(n, index)


def lie_apart(labels: Labels, a: Index, b: Index) -> bool:
    """Whether the two never name one element, because their ranges in one dimension are
    disjoint."""
    if len(a) != len(b) or any(s.dims > 1 for s in (*a, *b)):
        return False
    for s, t in zip(a, b, strict=True):
        if s.anywhere or t.anywhere:
            continue
        first, second = _range(labels, s), _range(labels, t)
        if first is None or second is None:
            continue
        lt = labels.known.lt
        if lt(first[1], second[0]) or lt(second[1], first[0]):
            return True
    return False


def _range(labels: Labels, span: Span) -> tuple[Size, Size] | None:
    """Least and greatest position; None when a step's sign is not known."""
    low = high = span.start
    for axis, step in span.terms:
        reach = step * (labels.extents[axis] - 1)
        least, most = bounds(step)
        if least is not None and least >= 0:
            high = high + reach
        elif most is not None and most <= 0:
            low = low + reach
        else:
            return None
    return low, high
