"""What fits into a group: whether a value can be computed, stored or reduced among its loops.

In: a node, a group, and the indices at which the group needs the node. Out: yes or no; nothing
changes here.

    can_compute(walk, exp, softmax, [(i, j)])   its arguments have indices there, and no work is
                                                repeated that is dear
    can_root(walk, exp, softmax, (i, j))        each element comes up once, at its own place
"""

from __future__ import annotations

from npjit.core.graph import Node
from npjit.core.op import CONTROL, Kind
from npjit.core.size import bounds
from npjit.schedule.cells import CALLS
from npjit.schedule.group import Group
from npjit.schedule.index import Index, labels_of
from npjit.schedule.merge import MOST_REDUCTIONS
from npjit.schedule.pull import arguments, is_distinct
from npjit.schedule.walk import Uses, Walk

# an op at least this dear is not computed again for every element of an axis it does not vary over
DEAR = 4
# one value read at more places than this is stored
MOST_PLACES = 12


def can_compute(walk: Walk, n: Node, group: Group, indices: list[Index]) -> bool:
    """Whether the group can evaluate n at these indices, and should."""
    if n in walk.apart or len(indices) > MOST_PLACES:
        return False
    if any(span.anywhere for index in indices for span in index):
        return False
    if group.first > walk.program.horizon[n] and n.op.kind is not Kind.CELL:
        return False
    if group.step is not None:
        if n.op.kind not in (Kind.VIEW, Kind.RESHAPE) or group.step.op.kind in CONTROL:
            return False
        if group.step.op.kind in CALLS:
            return all(arguments(n, index) is not None for index in indices)
        is_dot = not group.step.params[2]
        return all(_is_matrix_view(walk, n, index, is_dot) for index in indices)
    if n.op.kind is Kind.REDUCE:
        full = len(group.reduces) >= MOST_REDUCTIONS and n not in group.reduces
        return len(indices) == 1 and not full and _can_reduce(group, indices[0])
    if n.op.kind is Kind.ELEMENTWISE and n.op.cost >= DEAR and _is_spread(group, indices):
        return False
    return all(arguments(n, index) is not None for index in indices)


def _is_matrix_view(walk: Walk, n: Node, index: Index, is_dot: bool) -> bool:
    """Whether a library can read a view in place: rows or columns of neighbouring elements, or a
    vector (backwards only for a dot product of two)."""
    args = arguments(n, index)
    if args is None or labels_of(args[0]) != labels_of(index):
        return False
    steps = [k for span in args[0] for _, k in span.terms if span.dims == 1]
    if len(labels_of(index)) > 1:
        source = n.args[0]
        if source not in walk.program.base:
            return all(k == 1 for k in steps)
        up = all((bounds(k)[0] or 0) > 0 for k in steps)
        return up and walk.suits_library(source, args[0])
    return is_dot or all((bounds(k)[0] or 0) > 0 for k in steps)


def _can_reduce(group: Group, index: Index) -> bool:
    """Whether the result's axes are, or can become, the outer axes of the group."""
    if group.in_one or not is_distinct(index):
        return False
    axes = labels_of(index)
    return axes == group.outer if group.outer is not None else axes <= set(group.axes)


def _is_spread(group: Group, indices: list[Index]) -> bool:
    """Whether the value would be computed again along an outer loop, element by element."""
    for index in indices:
        axes = labels_of(index)
        if not axes or len(axes) == len(group.axes) or group.axes[-1] not in axes:
            continue
        if group.outer is None or not axes <= group.outer:
            return True
    return False


def can_root(walk: Walk, n: Node, group: Group, index: Index) -> bool:
    """Whether the group computes every element of n once, each at its own place in the loops."""
    if not is_distinct(index):
        return False
    for size, span in zip(n.shape, index, strict=True):
        if span.start != 0 or (not span.terms and size != 1):
            return False
        if any(k != 1 or walk.labels.extents[axis] != size for axis, k in span.terms):
            return False
    axes = labels_of(index)
    if n.op.kind is Kind.REDUCE or group.outer is not None:
        return axes <= set(group.axes) and (group.outer is None or group.outer <= axes)
    # values for the leading axes alone make those the outer ones
    return axes == set(group.axes[: len(axes)])


def suits_outer(walk: Walk, n: Node, index: Index, outer: frozenset[int] | None) -> bool:
    """Whether the reductions that n needs per row could be part of a group with these outer axes:
    `x - mean(x, 1)` is better stored by the rows' kernel than by one that sums columns."""
    along = walk.program.rows.get(n, frozenset())
    if not along or outer is None:
        return True
    kept = (span for d, span in enumerate(index) if d not in along)
    return labels_of(tuple(kept)) == outer


def can_leave(reduction: Node, group: Group) -> bool:
    """Whether a reduction can be done elsewhere; a group that does nothing else goes with it, so
    that nothing else may wait for it."""
    return not (group.roots.keys() <= {reduction} and (group.after or group.sealed))


def why_stored(walk: Walk, n: Node, uses: Uses) -> str:
    """The reason for `explain`."""
    if any(g.first > walk.program.horizon[n] for g in uses):
        return "what it reads is overwritten before its use"
    if any(g.step is not None for g in uses):
        return "a library call reads it"
    if n.op.kind is Kind.REDUCE:
        return "a user needs it along an axis that is not outer there"
    if len(uses) > 1 or any(len(i) > 1 for i in uses.values()):
        return "computing it again for each use costs more"
    return "its user reads it at places that are no affine index, or again and again"
