"""Views: how the elements of a result are found in the array that it looks at.

A `View` has one entry per dimension of the *base* array: `At(index)` fixes it, `Along(start, step,
axis)` lets it run along an axis of the result. An axis that no entry names is a broadcast (or new)
axis; two entries naming one axis are a diagonal. Slices of any step, flips, transposes, newaxis,
broadcasts and diagonals compose exactly.

    >>> v = transpose((3, 4), (1, 0)).then(index((4, 3), [slice_of(1, 2, 2), At(0)]))
    >>> v.dims, v.shape
    ((At(index=0), Along(start=1, step=2, axis=0)), (2,))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npjit.core.size import Shape, Size, text


@dataclass(frozen=True)
class At:
    """The base dimension is fixed at `index` (already normalised: not negative)."""

    index: Size


@dataclass(frozen=True)
class Along:
    """Base index = start + step * (index along the result's `axis`)."""

    start: Size
    step: Size
    axis: int


Entry = At | Along


@dataclass(frozen=True)
class Cut:
    """A slice of one dimension: start and step normalised, `length` elements."""

    start: Size
    step: Size
    length: Size


def slice_of(start: Size, step: Size, length: Size) -> Cut:
    """The elements start, start + step, ... (length of them)."""
    return Cut(start, step, length)


@dataclass(frozen=True)
class View:
    """A map from result indices to base indices; see the module's docstring."""

    base: Shape
    dims: tuple[Entry, ...]
    shape: Shape

    def then(self, outer: View) -> View:
        """The view `outer` of this view's result, as one view of this view's base."""
        dims: list[Entry] = []
        for d in self.dims:
            if isinstance(d, At):
                dims.append(d)
                continue
            inner = outer.dims[d.axis]
            if isinstance(inner, At):
                dims.append(At(d.start + d.step * inner.index))
            else:
                start = d.start + d.step * inner.start
                dims.append(Along(start, d.step * inner.step, inner.axis))
        return View(self.base, tuple(dims), outer.shape)

    @property
    def is_identity(self) -> bool:
        """Whether the result is the base, element for element."""
        return self.shape == self.base and all(
            d == Along(0, 1, axis) for axis, d in enumerate(self.dims)
        )

    @property
    def is_writable(self) -> bool:
        """Whether NumPy lets one write through it: no broadcast axis, no diagonal."""
        axes = [d.axis for d in self.dims if isinstance(d, Along)]
        still = set(range(len(self.shape))) - set(axes)
        return len(axes) == len(set(axes)) and all(self.shape[a] in (0, 1) for a in still)

    def axes_used(self) -> frozenset[int]:
        """Result axes that some base dimension runs along; the others are broadcast."""
        return frozenset(d.axis for d in self.dims if isinstance(d, Along))

    def strides(self, base_strides: Sequence[Size]) -> tuple[Size, tuple[Size, ...]]:
        """Offset and strides of the result, given the base's strides."""
        offset: Size = 0
        steps: list[Size] = [0] * len(self.shape)
        for d, stride in zip(self.dims, base_strides, strict=True):
            if isinstance(d, At):
                offset = offset + stride * d.index
            else:
                offset = offset + stride * d.start
                steps[d.axis] = steps[d.axis] + stride * d.step
        return offset, tuple(steps)

    def __str__(self) -> str:
        shown = []
        for d in self.dims:
            if isinstance(d, At):
                shown.append(text(d.index))
            elif d.start == 0 and d.step == 1:
                shown.append(f"@{d.axis}")
            else:
                shown.append(f"{text(d.start)}+{text(d.step)}*@{d.axis}")
        return f"[{', '.join(shown)}]"


def identity(shape: Shape) -> View:
    """The view that changes nothing."""
    return View(shape, tuple(Along(0, 1, i) for i in range(len(shape))), shape)


def transpose(shape: Shape, order: Sequence[int]) -> View:
    """Result axis i is base axis order[i]."""
    place = {axis: i for i, axis in enumerate(order)}
    dims = tuple(Along(0, 1, place[axis]) for axis in range(len(shape)))
    return View(shape, dims, tuple(shape[a] for a in order))


def broadcast(shape: Shape, target: Shape) -> View:
    """`shape` stretched to `target` by NumPy's rule; a literal extent 1 that meets another extent
    is fixed at 0.
    """
    lead = len(target) - len(shape)
    dims = tuple(
        At(0) if n == 1 and target[lead + i] != 1 else Along(0, 1, lead + i)
        for i, n in enumerate(shape)
    )
    return View(shape, dims, target)


def expand(shape: Shape, axes: Sequence[int]) -> View:
    """New axes of extent 1 at the result positions `axes`."""
    rank = len(shape) + len(axes)
    kept = [i for i in range(rank) if i not in set(axes)]
    dims = tuple(Along(0, 1, i) for i in kept)
    sizes: list[Size] = [1] * rank
    for i, n in zip(kept, shape, strict=True):
        sizes[i] = n
    return View(shape, dims, tuple(sizes))


def squeeze(shape: Shape, axes: Sequence[int]) -> View:
    """The axes `axes`, of extent 1, removed."""
    return index(shape, [At(0) if i in set(axes) else Cut(0, 1, n) for i, n in enumerate(shape)])


def index(shape: Shape, entries: Sequence[At | Cut | None]) -> View:
    """Basic indexing: per base dimension an index or a slice; None inserts an axis of extent 1."""
    dims: list[Entry] = []
    sizes: list[Size] = []
    for e in entries:
        if e is None:
            sizes.append(1)
        elif isinstance(e, At):
            dims.append(e)
        else:
            dims.append(Along(e.start, e.step, len(sizes)))
            sizes.append(e.length)
    return View(shape, tuple(dims), tuple(sizes))


def diagonal(shape: Shape, first: int, second: int) -> View:
    """Axes `first` and `second` (equal extents) merged into one, placed last."""
    rest = [i for i in range(len(shape)) if i not in (first, second)]
    place = {axis: i for i, axis in enumerate(rest)}
    last = len(rest)
    dims = tuple(Along(0, 1, place.get(i, last)) for i in range(len(shape)))
    return View(shape, dims, (*(shape[i] for i in rest), shape[first]))
