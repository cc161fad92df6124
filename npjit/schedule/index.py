"""Indices: which element of a value a loop nest is looking at, and how that changes through views.

An `Index` says, for every dimension of a value, an affine function of loop axes (plain numbers, the
*labels*). A `Span` may cover several neighbouring dimensions at once: then its function counts
their elements in C order, which is what a reshape of computed values gives.

    >>> from npjit.core.view import transpose
    >>> i, j = 0, 1
    >>> at = plain((4, 3), (i, j))
    >>> [str(s) for s in through_view(transpose((3, 4), (1, 0)), at)]
    ['i1', 'i0']
    >>> [str(s) for s in through_reshape((12,), (4, 3), at)]
    ['3*i0 + i1']

The functions return None where no affine index exists; the value is then stored and read from
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from npjit.core.size import Shape, Size, bounds, floordiv, product, text
from npjit.core.view import Along, At, View


class Span(NamedTuple):
    """`dims` dimensions addressed by start + sum(step * axis); terms are sorted by label, steps are
    not 0.

    `anywhere`: the position depends on data (a gather); only memory can be read so.
    """

    dims: int
    start: Size
    terms: tuple[tuple[int, Size], ...]
    anywhere: bool = False

    def __str__(self) -> str:
        parts = [f"{'' if s == 1 else text(s) + '*'}i{axis}" for axis, s in self.terms]
        if self.start != 0 or not parts:
            parts.append(text(self.start))
        return " + ".join(parts)


Index = tuple[Span, ...]

ORIGIN = Span(1, 0, ())
ANYWHERE = Span(1, 0, (), True)


class Limit(NamedTuple):
    """lo <= the axis `label` < hi."""

    label: int
    lo: Size
    hi: Size


def plain(shape: Shape, labels: Sequence[int | None]) -> Index:
    """Dimension d is the axis labels[d]; None is index 0."""
    return tuple(
        ORIGIN if axis is None else Span(1, 0, ((axis, 1),))
        for _, axis in zip(shape, labels, strict=True)
    )


def labels_of(index: Index) -> frozenset[int]:
    """The axes that an index varies over."""
    return frozenset(axis for span in index for axis, _ in span.terms)


def rename(index: Index, name: Callable[[int], int]) -> Index:
    """The index with other labels."""
    if all(name(axis) == axis for span in index for axis, _ in span.terms):
        return index
    return tuple(
        Span(s.dims, s.start, tuple(sorted((name(a), k) for a, k in s.terms)), s.anywhere)
        for s in index
    )


def affine(span: Span, start: Size, step: Size, dims: int = 1) -> Span:
    """start + step * span."""
    if start == 0 and step == 1 and dims == span.dims:
        return span
    terms = () if step == 0 else tuple((axis, k * step) for axis, k in span.terms)
    return Span(dims, start + step * span.start, terms, span.anywhere)


def total(spans: Sequence[Span], steps: Sequence[Size], dims: int) -> Span:
    """sum(step * span) as one span over `dims` dimensions."""
    start: Size = 0
    terms: dict[int, Size] = {}
    for span, step in zip(spans, steps, strict=True):
        start = start + step * span.start
        for axis, k in span.terms:
            terms[axis] = terms.get(axis, 0) + k * step
    kept = tuple((a, terms[a]) for a in sorted(terms) if terms[a] != 0)
    return Span(dims, start, kept, any(s.anywhere for s in spans))


def through_view(view: View, index: Index) -> Index | None:
    """The base's index, given the view's."""
    spans: dict[int, tuple[Span, int]] = {}
    axis = 0
    for span in index:
        for d in range(axis, axis + span.dims):
            spans[d] = (span, axis)
        axis += span.dims
    found: list[Span] = []
    d = 0
    while d < len(view.dims):
        entry = view.dims[d]
        if isinstance(entry, At):
            found.append(Span(1, entry.index, ()))
            d += 1
            continue
        span, first = spans[entry.axis]
        if span.dims == 1:
            found.append(affine(span, entry.start, entry.step))
        elif first == entry.axis and _kept_whole(view, d, span.dims):
            found.append(span)
        else:
            return None
        d += span.dims
    return tuple(found)


def _kept_whole(view: View, first: int, dims: int) -> bool:
    """Whether base dimensions first.. are the view's neighbouring axes, unchanged."""
    entry = view.dims[first]
    assert isinstance(entry, Along)
    for k in range(dims):
        d = first + k
        if d >= len(view.dims) or view.dims[d] != Along(0, 1, entry.axis + k):
            return False
        if view.base[d] != view.shape[entry.axis + k]:
            return False
    return True


def through_reshape(old: Shape, new: Shape, index: Index) -> Index | None:
    """The index into the value of shape `old` that was reshaped to `new`."""
    spans = _without_ones(new, index)
    if spans is None:
        return None
    blocks = _blocks([n for n in old if n != 1], [n for n in new if n != 1], spans)
    if blocks is None:
        return None
    found: list[Span] = []
    for olds, news, inside in blocks:
        if olds == news:
            found.extend(inside)
        else:
            steps = _steps(news, inside)
            found.append(total(inside, steps, len(olds)))
    return _with_ones(old, found)


def _without_ones(shape: Shape, index: Index) -> list[Span] | None:
    """The spans of the dimensions that are not literally 1."""
    found: list[Span] = []
    axis = 0
    for span in index:
        sizes = shape[axis : axis + span.dims]
        axis += span.dims
        count = sum(n != 1 for n in sizes)
        if count:
            found.append(span._replace(dims=count))
    return found


def _with_ones(shape: Shape, spans: Sequence[Span]) -> Index | None:
    """Index 0 put back for the literal 1s; None when one stands inside a span."""
    found: list[Span] = []
    axis = 0
    for span in spans:
        while shape[axis] == 1:
            found.append(ORIGIN)
            axis += 1
        # a literal 1 between the dimensions of a span belongs to it: it changes no position
        end, left = axis, span.dims
        while left:
            left -= shape[end] != 1
            end += 1
        found.append(span._replace(dims=end - axis))
        axis = end
    found.extend([ORIGIN] * (len(shape) - axis))
    return tuple(found)


def _steps(sizes: Sequence[Size], spans: Sequence[Span]) -> list[Size]:
    """C-order step of each span over the dimensions `sizes`."""
    steps: list[Size] = []
    end = len(sizes)
    for span in reversed(spans):
        steps.append(product(sizes[end:]))
        end -= span.dims
    return steps[::-1]


def _blocks(
    old: list[Size], new: list[Size], spans: list[Span]
) -> list[tuple[list[Size], list[Size], list[Span]]] | None:
    """Cut both shapes where their products agree and no span is cut."""
    ends: set[int] = set()
    place = 0
    for span in spans:
        place += span.dims
        ends.add(place)
    prefix: list[Size] = [1]
    for n in old:
        prefix.append(prefix[-1] * n)
    blocks: list[tuple[list[Size], list[Size], list[Span]]] = []
    o = n = s = 0
    done: Size = 1
    for end in range(1, len(new) + 1):
        done = done * new[end - 1]
        last = end == len(new)
        cut = next((k for k in range(o + 1, len(prefix)) if prefix[k] == done), None)
        if last:
            cut = len(old)
        if end not in ends or cut is None:
            continue
        inside: list[Span] = []
        dims = 0
        while dims < end - n:
            inside.append(spans[s])
            dims += spans[s].dims
            s += 1
        blocks.append((old[o:cut], new[n:end], inside))
        o, n = cut, end
    return blocks if all(olds for olds, _, _ in blocks) and o == len(old) else None


def through_pad(
    pads: Sequence[tuple[Size, Size]], shape: Shape, index: Index
) -> tuple[Index, tuple[Limit, ...]] | None:
    """The index into the unpadded value of shape `shape`, and where it is inside."""
    spans: list[Span] = []
    limits: list[Limit] = []
    d = 0
    for span in index:
        around = pads[d : d + span.dims]
        if all(p == (0, 0) for p in around):
            spans.append(span)
        elif span.dims > 1 or span.anywhere:
            return None
        else:
            moved = span._replace(start=span.start - around[0][0])
            limit = _limit(moved, shape[d])
            if limit is None:
                limit = _nowhere(moved, shape[d], index)
            if limit is None:
                return None
            spans.append(moved)
            limits.extend(limit)
        d += span.dims
    return tuple(spans), tuple(limits)


def _limit(span: Span, n: Size) -> tuple[Limit, ...] | None:
    """Where 0 <= span < n, as limits of its one axis; None when that is no such limit."""
    if not span.terms:
        low, _ = bounds(span.start)
        room, _ = bounds(n - 1 - span.start)
        inside = low is not None and low >= 0 and room is not None and room >= 0
        return () if inside else None
    if len(span.terms) > 1:
        return None
    axis, step = span.terms[0]
    if not isinstance(step, int):
        return None
    if step > 0:
        lo, hi = -floordiv(span.start, step), -floordiv(span.start - n, step)
    else:
        lo, hi = floordiv(span.start - n, -step) + 1, floordiv(span.start, -step) + 1
    return (Limit(axis, lo, hi),)


def _nowhere(span: Span, n: Size, index: Index) -> tuple[Limit, ...] | None:
    """A limit that never holds, where a fixed place is outside 0 <= span < n."""
    _, high = bounds(span.start)
    _, room = bounds(n - 1 - span.start)
    outside = (high is not None and high < 0) or (room is not None and room < 0)
    axis = next((axis for s in index for axis, _ in s.terms), None)
    if span.terms or not outside or axis is None:
        return None
    return (Limit(axis, 0, 0),)


def address(
    index: Index, shape: Shape, strides: Sequence[Size]
) -> tuple[Size, dict[int, Size]] | None:
    """Offset and stride per label in memory of these strides; None when a span's dimensions do not
    merge."""
    offset: Size = 0
    found: dict[int, Size] = {}
    d = 0
    for span in index:
        last = _merged_stride(shape[d : d + span.dims], strides[d : d + span.dims])
        if last is None:
            return None
        offset = offset + last * span.start
        for axis, k in span.terms:
            found[axis] = found.get(axis, 0) + k * last
        d += span.dims
    return offset, {axis: k for axis, k in found.items() if k != 0}


def _merged_stride(sizes: Shape, strides: Sequence[Size]) -> Size | None:
    """Stride of these dimensions counted as one."""
    kept = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
    if len(sizes) == 1:
        return strides[0]
    if not kept:
        return 0
    for (_, outer), (n, inner) in pairwise(kept):
        if outer != inner * n:
            return None
    return kept[-1][1]


def row_major(shape: Shape, order: Sequence[int] | None = None) -> tuple[Size, ...]:
    """Strides of fresh memory whose axes are nested in `order` (outermost first; None: as they
    come)."""
    strides: list[Size] = [0] * len(shape)
    step: Size = 1
    for axis in reversed(order if order is not None else range(len(shape))):
        strides[axis] = step
        step = step * shape[axis]
    return tuple(strides)
