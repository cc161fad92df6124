"""Pulling an index through a node: where its arguments are needed when it is needed somewhere.

    arguments(node, index) -> one index per argument, or None where none is affine

A reduction needs inner axes first: `reduced_axes` picks them among those that its group has.
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.core.graph import Node
from npjit.core.op import Kind
from npjit.schedule.group import Group, Labels
from npjit.schedule.index import (
    ANYWHERE,
    ORIGIN,
    Index,
    Span,
    labels_of,
    through_pad,
    through_reshape,
    through_view,
)


def arguments(
    n: Node, index: Index, inner: Sequence[int | None] | None = None
) -> list[Index] | None:
    """The arguments' indices for one element of n; `inner` are a reduction's axes."""
    kind = n.op.kind
    if kind in (Kind.ELEMENTWISE, Kind.CELL):
        return [index] * len(n.args)
    if kind in (Kind.CONST, Kind.SIZE):
        return []
    if kind is Kind.VIEW:
        return _one(through_view(n.params, index))
    if kind is Kind.RESHAPE:
        return _one(through_reshape(n.args[0].shape, n.shape, index))
    if kind is Kind.PAD:
        padded = through_pad(n.params, n.args[0].shape, index)
        return None if padded is None else [padded[0]]
    if kind is Kind.IOTA:
        return [] if len(index[0].terms) <= 1 else None
    if kind is Kind.REDUCE:
        assert inner is not None
        return _one(_reduced(n, index, inner))
    if kind is Kind.GATHER:
        return _gathered(n, index)
    assert kind is Kind.UPDATE, kind
    target = through_view(n.params, index)
    return None if target is None else [target, index]


def _one(index: Index | None) -> list[Index] | None:
    return None if index is None else [index]


def _reduced(n: Node, index: Index, inner: Sequence[int | None]) -> Index | None:
    """None where a span runs over dimensions on both sides of a reduced one."""
    kept = iter(index)
    reduced = iter(inner)
    spans: list[Span] = []
    spanned = 0  # dimensions that the last span of the index still covers
    for d in range(len(n.args[0].shape)):
        if d not in n.params:
            if not spanned:
                spans.append(next(kept))
                spanned = spans[-1].dims
            spanned -= 1
            continue
        if spanned:
            return None
        axis = next(reduced)
        spans.append(ORIGIN if axis is None else Span(1, 0, ((axis, 1),)))
    return tuple(spans)


def _gathered(n: Node, index: Index) -> list[Index] | None:
    """The base read anywhere along the addressed dimensions; the index arrays at their own axes."""
    gather = n.params
    count = len(n.args[1].shape)
    if any(span.dims > 1 for span in index):
        return None
    kept = iter((*index[: gather.place], *index[gather.place + count :]))
    base = n.args[0].shape
    spans = tuple(ANYWHERE if d in gather.dims else next(kept) for d in range(len(base)))
    return [spans, *[index[gather.place : gather.place + count]] * (len(n.args) - 1)]


def is_distinct(index: Index) -> bool:
    """Whether every dimension follows an axis of its own (or none)."""
    seen: set[int] = set()
    for span in index:
        if span.dims > 1 or span.anywhere or len(span.terms) > 1:
            return False
        for axis, _ in span.terms:
            if axis in seen:
                return False
            seen.add(axis)
    return True


def reduced_axes(
    labels: Labels, n: Node, group: Group, index: Index, known: list[Index]
) -> tuple[int | None, ...]:
    """An axis for each reduced dimension: those at which the argument is needed anyway, else of
    equal extent."""
    base = n.args[0].shape
    sizes = [base[d] for d in n.params]
    for candidate in known:
        found = _as_known(labels, n, index, candidate)
        if found is not None:
            return found
    free = [a for a in group.axes if a not in labels_of(index)]
    axes: list[int | None] = []
    for size in sizes:
        if size == 1:
            axes.append(None)
            continue
        axis = next((a for a in free if labels.extents[a] == size), None)
        if axis is None:
            axis = labels.new(size)
        else:
            free.remove(axis)
        axes.append(axis)
    if all(a is None for a in axes):
        # a loop of one trip, so that the reduction has an axis
        axes = [labels.new(1), *axes[1:]]
    return tuple(axes)


def _as_known(
    labels: Labels, n: Node, index: Index, candidate: Index
) -> tuple[int | None, ...] | None:
    """The reduced dimensions' axes in an index of the argument that agrees with the result's."""
    base = n.args[0].shape
    if not is_distinct(candidate) or len(candidate) != len(base):
        return None
    kept = tuple(s for d, s in enumerate(candidate) if d not in n.params)
    if kept != index:
        return None
    axes: list[int | None] = []
    for d in n.params:
        span = candidate[d]
        if span == ORIGIN and base[d] == 1:
            axes.append(None)
        elif span.start == 0 and span.terms and span.terms[0][1] == 1:
            axis = span.terms[0][0]
            if labels.extents[axis] != base[d]:
                return None
            axes.append(axis)
        else:
            return None
    return tuple(axes) if any(a is not None for a in axes) else None
