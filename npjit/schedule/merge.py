"""Merging two groups into one kernel.

In: two groups and an index of one value in each, which says how their axes correspond. Out: the
first group holding both, or the reason why not, as text. Axes that the shared value does not name
are paired by extent.

    merge(labels, softmax, loss, (i0, j0), (i1, j1)) -> ""          merged
    merge(labels, rows, columns, (i0, j0), (i1, j1)) -> "their outer axes differ"
"""

from __future__ import annotations

from collections.abc import Callable

from npjit.schedule.group import Group, Labels, depends
from npjit.schedule.index import Index, rename

# a kernel that touches more arrays than this runs out of address registers and prefetch streams
MOST_BUFFERS = 24
# every reduction may need a loop of its own: text that is compiled anew for each long kernel, where
# shorter ones are often equal
MOST_REDUCTIONS = 16

Pairs = dict[int, int]  # label of the absorbed group -> label of the kept one


def merge(
    labels: Labels,
    a: Group,
    b: Group,
    at_a: Index,
    at_b: Index,
    agree: Callable[[Group, Group, Pairs, bool], bool],
) -> str:
    """Merge b into a; the reason when that cannot be. `agree` says whether two groups leave the
    cells alone that the other one updates, but, if all is done in one loop, for the element that is
    being updated."""
    if any(g.step is not None or (g.sealed and not g.updates) for g in (a, b)):
        return "one of them runs as a step of its own"
    touched = {*a.loads, *a.roots, *b.loads, *b.roots}
    if len(touched) > MOST_BUFFERS:
        return f"together they touch more than {MOST_BUFFERS} arrays"
    if len({*a.reduces, *b.reduces}) > MOST_REDUCTIONS:
        return f"together they have more than {MOST_REDUCTIONS} reductions"
    pairs = _match(labels, at_a, at_b)
    if pairs is None:
        return "they read the shared value at different places"
    if a.outer is None and b.outer is not None:
        # the group whose outer axes are decided leads; pairs read from b to a
        a, b, pairs = b, a, {kept: gone for gone, kept in pairs.items()}
    reason = _complete(labels, a, b, pairs)
    if reason:
        return reason
    if not _reads_own_elements(labels, a, b, pairs) or not _reads_own_elements(labels, b, a, pairs):
        return "one reads other elements of what the other computes"
    updates = a.updates or b.updates
    in_one = a.in_one or b.in_one or (updates and not agree(a, b, pairs, False))
    if in_one and (a.outer is not None or b.outer is not None):
        return "one reads what the other overwrites, and they have several loops"
    if in_one and not agree(a, b, pairs, True):
        return "one reads what the other overwrites"
    if _through_a_third(a, b) or _through_a_third(b, a):
        return "a third kernel must run between them"
    _join(labels, a, b, pairs)
    a.in_one = in_one
    return ""


def _match(labels: Labels, at_a: Index, at_b: Index) -> Pairs | None:
    """How the axes of two indices of one value correspond."""
    pairs: Pairs = {}
    if len(at_a) != len(at_b):
        return None
    for s, t in zip(at_a, at_b, strict=True):
        if s.dims != t.dims or s.start != t.start or s.anywhere or t.anywhere:
            return None
        steps = {k: axis for axis, k in s.terms}
        if len(steps) != len(s.terms) or {k for _, k in t.terms} != set(steps):
            return None
        for axis, k in t.terms:
            if pairs.setdefault(axis, steps[k]) != steps[k]:
                return None
            if labels.extents[axis] != labels.extents[steps[k]]:
                return None
    return pairs if len(set(pairs.values())) == len(pairs) else None


def _complete(labels: Labels, a: Group, b: Group, pairs: Pairs) -> str:
    """Pair the axes that are left; the reason when the groups' spaces do not agree."""
    taken = set(pairs.values())

    def pair(gone: int, choice: list[int]) -> bool:
        if gone in pairs:
            return pairs[gone] in choice
        for kept in choice:
            if kept not in taken and labels.extents[kept] == labels.extents[gone]:
                pairs[gone] = kept
                taken.add(kept)
                return True
        return False

    if b.outer is None:
        choice = a.outer_axes() + a.inner()
        if not all(pair(axis, choice) for axis in b.axes):
            return "their index spaces differ"
        if not set(a.outer_axes()) <= {pairs[axis] for axis in b.axes}:
            return "their outer axes differ"
        return "" if a.outer is not None or len(a.axes) == len(b.axes) else "their axes differ"
    outer = b.outer_axes()
    if len(outer) != len(a.outer_axes()) or not all(pair(x, a.outer_axes()) for x in outer):
        return "their outer axes differ"
    for axis in b.inner():
        if not pair(axis, a.inner()) and axis in pairs:
            return "an outer axis of one is reduced in the other"
    return ""


def renamed(labels: Labels, pairs: Pairs) -> Callable[[int], int]:
    """The names that axes have when those of one group have become their partners."""

    def name(axis: int) -> int:
        axis = labels.find(axis)
        return pairs.get(axis, axis)

    return name


def _reads_own_elements(labels: Labels, reader: Group, writer: Group, pairs: Pairs) -> bool:
    """Whether the reader takes from the writer's roots just the element computed at the same
    place."""
    name = renamed(labels, pairs)
    for node, indices in reader.loads.items():
        root = writer.roots.get(node)
        if root is None:
            continue
        own = rename(root.index, name)
        if any(rename(index, name) != own for index in indices):
            return False
    return True


def _through_a_third(a: Group, b: Group) -> bool:
    return any(g is not b and depends(g, b) for g in a.before())


def _join(labels: Labels, a: Group, b: Group, pairs: Pairs) -> None:
    for gone, kept in pairs.items():
        labels.unify(kept, gone)
    a.absorb(b)
    a.axes = list(dict.fromkeys(labels.find(axis) for axis in a.axes))
    for node in [n for n in a.loads if n in a.roots]:
        del a.loads[node]
