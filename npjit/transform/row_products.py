"""The products of a loop's trips as products of matrices.

In: a loop, the block around it and the loop's arguments there. Out: for sums of products in the
body, or in loops in it, what all trips make together, as nodes of the block:

    sum over k < i of a[i, k] * b[k, j]  in trip i     ->     row i of a cut product of a and b
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npjit.core.assume import Assumptions
from npjit.core.control import Loop
from npjit.core.graph import Block, Node, TensorType
from npjit.core.op import Kind
from npjit.core.size import Expr, Fn, Size, Var, as_size, substitute
from npjit.core.view import Along, At, Entry, View
from npjit.ops import build
from npjit.ops.cut_product import BELOW, CUT_PRODUCT, FROM, Part
from npjit.transform.accumulated import Accumulation
from npjit.transform.locate import APART, locate
from npjit.transform.spanned import WHOLE, Axis, Span
from npjit.transform.touches import stores_of

_TYPES = (np.float32, np.float64)


@dataclass(frozen=True)
class _Made:
    """A product of matrices: its axes by name, which of its columns a row has."""

    node: Node
    rows: Axis
    columns: Axis
    results: Part


class RowProducts:
    """What the module's docstring names; `made` has the arrays by the products of the body."""

    def __init__(
        self, loop: Loop, known: Assumptions, block: Block, args: tuple[Node, ...]
    ) -> None:
        self.loop = loop
        self.known = known
        self.block = block
        self.args = args
        self.index = loop.index
        self.made: dict[Node, _Made] = {}

    # -- which sums there are

    def sum_in_trip(self, n: Node) -> bool:
        """A sum along one of the two axes of a product, or a row times a matrix."""
        span = Span(self.block, {self.index: self.loop.trips}, self._outside)
        if n.op.kind is Kind.CONTRACT:
            (first, second, result) = n.params
            summed = [x for x in first if x in second and x not in result]
            if len(result) != 1 or len(summed) != 1:
                return False
            found = self._product(n, (first, second), span, self.index, summed[0], result)
            return self._take({n: found})
        sums = n.op.reduction is not None and n.op.reduction.style == "sum"
        if not sums or len(n.shape) != 1 or len(n.params) != 1 or n.args[0].dtype != n.dtype:
            return False
        (summed,) = n.params
        return self._take({n: self._factors(n.args[0], span, self.index, summed, 1 - summed)})

    def sums_of_loop(self, n: Node, a: Accumulation) -> bool:
        """What a loop in the body adds up."""
        inner: Loop = n.params
        if len(a.view.shape) != 1:
            return False

        def outside(i: Node, v: View | None) -> Node | None:
            given = n.args[i.params]
            fixed = i is not a.storage and given.op.kind is Kind.INPUT
            return self._outside(given, v) if fixed else None

        span = Span(self.block, {self.index: self.loop.trips, inner.index: inner.trips}, outside)
        if span.reach(inner.trips) is None:
            return False
        products = {t: self._factors(t, span, self.index, inner.index, 0) for t in a.terms}
        return self._take(products)

    def sums_of_trips(self, a: Accumulation) -> bool:
        """What all trips add to a part of an array."""
        if len(a.view.shape) != 2:
            return False
        span = Span(self.block, {self.index: self.loop.trips}, self._outside)
        wide = self._whole(span, a.view)
        if wide is None:
            return False
        rows = 1 if wide[1][1] != WHOLE else 0
        products = {t: self._factors(t, span, rows, self.index, 1 - rows) for t in a.terms}
        return self._take(products)

    # -- what they are made of

    def _outside(self, i: Node, v: View | None) -> Node | None:
        """The argument that an input of the body is, if a trip reads nothing of it through the view
        that a trip before has written."""
        p: int = i.params
        if p < self.loop.carried:
            return None
        if p not in self.loop.written:
            return self.args[p]
        before = Var(f"{self.index.name}b", 0)
        known = self.known.copy()
        known.ranges[before] = (0, as_size(self.index) - 1)
        stores = stores_of(self.loop.body, i)
        if v is None or stores is None:
            return None
        earlier = [_at(s, self.index, as_size(before)) for s in stores]
        is_free = all(locate(v, s, known) is APART for s in earlier)
        return self.args[p] if is_free else None

    # -- the products

    def _take(self, found: Mapping[Node, _Made | None]) -> bool:
        """Use these products, if all can be made."""
        made = {n: m for n, m in found.items() if m is not None}
        if len(made) == len(found):
            self.made |= made
        return bool(made) and len(made) == len(found)

    def _factors(
        self, n: Node, span: Span, rows: Axis, summed: Axis, columns: Axis
    ) -> _Made | None:
        """The sums of a product of elements."""
        axes = (tuple(range(len(n.shape))),) * 2
        is_product = n.op.powers == (1, 1)
        return self._product(n, axes, span, rows, summed, columns) if is_product else None

    def _product(
        self,
        n: Node,
        axes: Sequence[Sequence[Axis]],
        span: Span,
        rows: Axis,
        summed: Axis,
        columns: Axis,
    ) -> _Made | None:
        """The sums of products of a node's two arguments, whose axes have these names."""
        if n.dtype not in _TYPES:
            return None
        found = [span.of(a) for a in n.args]
        sides = [s and s.named(names) for s, names in zip(found, axes, strict=True)]
        left = next((s for s in sides if s and set(s.axes) == {rows, summed}), None)
        right = next((s for s in sides if s and set(s.axes) == {summed, columns}), None)
        if left is None or right is None:
            return None
        if {left.node.dtype, right.node.dtype} != {n.dtype}:
            return None
        extents = left.extents() | right.extents()
        parts = {**left.parts, **right.parts}
        if left.parts[summed] != right.parts[summed] or left.extents()[summed] != extents[summed]:
            return None
        shape = (extents[rows], extents[columns])
        if not self._is_small(shape):
            return None
        sums, results = parts[summed], parts[columns]
        if summed == self.index:
            sums, results = _turned(parts[rows]), WHOLE
            if parts[columns] != WHOLE:
                return None
        self.block.where = n.where
        a = left.turned(self.block, (rows, summed), extents)
        b = right.turned(self.block, (summed, columns), extents)
        made = self.block.add(CUT_PRODUCT, (a, b), (sums, results), TensorType(shape, n.dtype))
        return _Made(made, rows, columns, results)

    def _is_small(self, shape: tuple[Size, Size]) -> bool:
        """Whether the loop writes an array that is not smaller."""
        rows, columns = shape
        for p in self.loop.written:
            base = self.loop.body.inputs[p].shape
            for k, n in enumerate(base):
                others = [m for j, m in enumerate(base) if j != k]
                if self._fits(rows, n) and any(self._fits(columns, m) for m in others):
                    return True
        return False

    def _fits(self, size: Size, room: Size) -> bool:
        parts = _alternatives(size)
        return all(self.known.le(part, room) for part in parts)

    # -- what trips read of them

    def row(self, block: Block, n: Node, given: Node) -> Node:
        """A trip's row of the array that has been made for a product."""
        made = self.made[n]
        i = as_size(self.index)
        start = i if made.results[0] == FROM else 0
        return build.view(block, given, View(given.shape, (At(i), Along(start, 1, 0)), n.shape))

    def all_rows(self, a: Accumulation) -> tuple[View, Callable[[Node], Node]]:
        """What all trips add to, and how what they add is seen then."""
        span = Span(self.block, {self.index: self.loop.trips}, self._outside)
        found = self._whole(span, a.view)
        assert found is not None
        view, _ = found

        def terms(n: Node) -> Node:
            made = self.made[n]
            order = (made.rows, made.columns)
            dims = tuple(Along(0, 1, int(axis)) for axis in order if isinstance(axis, int))
            return build.view(self.block, made.node, View(made.node.shape, dims, view.shape))

        return view, terms

    def _whole(self, span: Span, v: View) -> tuple[View, list[Part]] | None:
        """A view with all that any trip sees, and what one trip sees of each axis."""
        dims: list[Entry] = []
        shape = list(v.shape)
        parts = [WHOLE for _ in v.shape]
        for d in v.dims:
            found = span.run(d, v.shape[d.axis]) if isinstance(d, Along) else span.index(d)
            if found is None or isinstance(found[0], Var):
                return None
            axis, entry, extent, part = found
            dims.append(entry)
            if isinstance(axis, int):
                shape[axis], parts[axis] = extent, part
        return View(v.base, tuple(dims), tuple(shape)), parts


def _turned(part: Part) -> Part:
    """Which trips count for a row, by which rows count for a trip."""
    kind, shift = part
    return {BELOW: (FROM, 1 - shift), FROM: (BELOW, 1 - shift)}.get(kind, WHOLE)


def _alternatives(size: Size) -> list[Size]:
    """Sizes of which a size is the greatest."""
    if isinstance(size, Expr) and len(size.terms) == 1:
        ((mono, factor),) = size.terms
        if factor == 1 and len(mono) == 1 and isinstance(mono[0], Fn) and mono[0].name == "max":
            return list(mono[0].args)
    return [size]


def _at(v: View, index: Var, trip: Size) -> View:
    """A view of the body in another trip."""

    def moved(size: Size) -> Size:
        return substitute(size, {index: trip})

    dims = tuple(
        Along(moved(d.start), moved(d.step), d.axis) if isinstance(d, Along) else At(moved(d.index))
        for d in v.dims
    )
    return View(v.base, dims, tuple(map(moved, v.shape)))
