"""A contraction as batched matrix products in memory.

In: the group of a CONTRACT node (its operands are stored, read through views) and storage strides.
Out: `Product`, the sizes and strides of one `Contract` step; places are filled in when memory is
planned.

    "ik,kj->ij" of C-ordered operands: m = i, k = k, n = j, strides (k, 1) (n, 1) (n, 1)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npjit.core.graph import Node
from npjit.core.size import Shape, Size
from npjit.schedule.cells import NotScheduled
from npjit.schedule.group import Group, Labels
from npjit.schedule.index import address
from npjit.schedule.plan import Contract, Matrix, Place
from npjit.schedule.pull import arguments

NOWHERE = Place("arena", 0)
# of which rows may be multiplied where they lie
_REPLACED = {np.dtype(np.float32), np.dtype(np.float64)}

Strides = dict[str, Size]


@dataclass(frozen=True)
class Product:
    """A step without places, and the stored nodes that its a, b and c are."""

    step: Contract
    nodes: tuple[Node, Node, Node]

    @property
    def replaces_rows(self) -> bool:
        """Whether the result lies as the first operand does, which may be overwritten then."""
        a, c = (replace(m, place=NOWHERE) for m in (self.step.a, self.step.c))
        dtypes = {self.step.dtype, self.step.factors}
        return a == c and not self.step.batch and len(dtypes) == 1 and dtypes <= _REPLACED

    def placed(self, a: Place, b: Place, c: Place) -> Contract:
        """The step with its memory."""
        s = self.step
        return replace(s, a=replace(s.a, place=a), b=replace(s.b, place=b), c=replace(s.c, place=c))


@dataclass(frozen=True)
class _Operand:
    node: Node
    offset: Size
    strides: Strides

    def matrix(self, batch: Sequence[str], row: str | None, column: str | None) -> Matrix:
        rows, columns = self.strides.get(row or "", 0), self.strides.get(column or "", 0)
        # an axis of extent 1 may have any stride: one that makes rows or columns contiguous
        if row is None and columns != 1:
            rows = 1
        if column is None and rows != 1:
            columns = 1
        steps = tuple(self.strides.get(x, 0) for x in batch)
        return Matrix(NOWHERE, self.offset, steps, rows, columns)


def lower_contract(
    group: Group,
    labels: Labels,
    strides_of: Callable[[Node], Sequence[Size]],
    spare: Size = 0,
) -> Product:
    """The batched matrix product of a CONTRACT group; `spare` elements follow each of its rows."""
    n = group.step
    assert n is not None
    a, b = (_read(group, labels, k, strides_of) for k in range(2))
    first, second, result = n.params
    own = strides_of(n)
    c = _Operand(n, 0, {x: s for x, s, size in zip(result, own, n.shape, strict=True) if size != 1})
    extents = {x: labels.extents[labels.find(v)] for x, v in group.letters.items() if v is not None}
    rows = [x for x in extents if x not in second]
    columns = [x for x in extents if x not in first]
    both = [x for x in extents if x in first and x in second]
    if any(x not in result for x in rows + columns):
        raise NotScheduled("a contraction of an axis that one operand has alone", n.where)
    if _turned(c, rows, columns):
        a, b, rows, columns = b, a, columns, rows
    summed = [x for x in both if x not in result]
    batch = [x for x in both if x in result]
    extents, k = one_axis(extents, summed, [a.strides, b.strides])
    if len(k) > 1:
        raise NotScheduled("a contraction over axes that are not neighbours in memory", n.where)
    extents, m = one_axis(extents, rows, [a.strides, c.strides])
    extents, cols = one_axis(extents, columns, [b.strides, c.strides])
    batch += m[:-1] + cols[:-1]
    row, column, inner = (x[-1] if x else None for x in (m, cols, k))

    def size(letter: str | None) -> Size:
        return 1 if letter is None else extents[letter]

    shape: Shape = tuple(extents[x] for x in batch)
    step = Contract(
        n.dtype,
        n.args[0].dtype,
        shape,
        size(row),
        size(column),
        size(inner),
        a.matrix(batch, row, inner),
        b.matrix(batch, inner, column),
        c.matrix(batch, row, column),
        spare,
    )
    return Product(step, (a.node, b.node, c.node))


def _read(
    group: Group, labels: Labels, number: int, strides_of: Callable[[Node], Sequence[Size]]
) -> _Operand:
    """Follow an operand's views to stored memory."""
    n, index = group.arguments[number], group.operands[number]
    while group.replaced.get(n, n) not in group.loads:
        found = arguments(n, index)
        assert found is not None, f"{n} is neither stored nor a view"
        n, index = n.args[0], found[0]
    source = group.replaced.get(n, n)
    place = address(index, source.shape, strides_of(source))
    assert place is not None
    offset, strides = place
    named = {labels.find(v): x for x, v in group.letters.items() if v is not None}
    found_strides: Strides = {x: strides.get(v, 0) for v, x in named.items() if v in strides}
    return _Operand(source, offset, found_strides)


def _turned(c: _Operand, rows: list[str], columns: list[str]) -> bool:
    """Whether the result is contiguous along the first operand's axis: then c.T = b.T @ a.T."""
    return bool(rows) and c.strides.get(rows[-1]) == 1 and bool(columns)


def in_turn(extents: Strides, letters: Sequence[str], strides: Strides) -> bool:
    """Whether letters follow each other in memory."""
    pairs = itertools.pairwise(letters)
    return all(strides.get(x, 0) == strides.get(y, 0) * extents[y] for x, y in pairs)


def one_axis(
    extents: Strides, letters: list[str], operands: list[Strides]
) -> tuple[Strides, list[str]]:
    """Letters that lie next to each other in all operands counted as one (the last)."""
    letters = sorted(letters, key=lambda x: _depth(operands[0].get(x, 0)), reverse=True)
    kept: list[str] = []
    extents = dict(extents)
    for x in letters:
        if kept and all(in_turn(extents, (kept[-1], x), o) for o in operands):
            extents[x] = extents[x] * extents[kept[-1]]
            kept[-1] = x
        else:
            kept.append(x)
    return extents, kept


def _depth(stride: Size) -> tuple[int, int]:
    if isinstance(stride, int):
        return (0, abs(stride))
    return max((len(mono), abs(c)) for mono, c in stride.terms)
