"""Loops over rows whose elements need those before them in the row: which element needs which.

In: a loop over rows, with launches over whole rows and a loop along the row inside. Out: a `Nest`:
the steps of one element, and for each load from an array that the nest writes how many rows and
elements away that element is stored:

    for i: launch k0(a; row i), for j: launch k1(a; i, j)
        a[i, j] = (a[i, j - 1] + a[i - 1, j + 1]) / 2      stored at (0, -1) and (-1, 1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from npjit.codegen.cpp_straight import Straight, Unfit, is_closed, straighten
from npjit.core.size import Size, Var, as_size, atoms, bounds, linear, substitute, var
from npjit.schedule.kernel import (
    Access,
    Coordinate,
    Extent,
    Inside,
    Instr,
    Kernel,
    Load,
    Phase,
    Store,
)
from npjit.schedule.plan import Launch, Loop, Step, inside

# the most rows from a load to the store of the same element
_FAR = 4

# rows and elements along the row
Distance = tuple[int, int]


@dataclass
class Nest:
    """See the module's docstring. `kernels` are new ones, behind the plan's."""

    row: Var
    column: Var
    rows: Size
    columns: Size
    steps: tuple[Step, ...]
    kernels: list[Kernel]
    straight: Straight = field(default_factory=Straight)
    # by the number of a load
    distances: dict[int, Distance] = field(default_factory=dict)
    # sizes that must not be negative
    needs: list[Size] = field(default_factory=list)

    def at(self, row: Size, column: Size) -> tuple[Step, ...]:
        """The steps of another element."""
        return moved(self.steps, {self.row: row, self.column: column})


def find_nest(loop: Step, steps: tuple[Step, ...], kernels: Sequence[Kernel]) -> Nest:
    """The nest that a loop of these steps is; else `Unfit`."""
    if not isinstance(loop, Loop) or loop.stops or loop.share is not None or not loop.body:
        raise Unfit
    *before, inner = loop.body
    if not isinstance(inner, Loop) or inner.stops or inner.share is not None:
        raise Unfit
    if loop.index in atoms(inner.trips):
        raise Unfit
    nest = Nest(loop.index, inner.index, loop.trips, inner.trips, (), list(kernels))
    parts = [*(_along(nest, s) for s in before), *inner.body]
    nest.steps = tuple(parts)
    made = straighten(parts, nest.kernels, branches=True)
    if made is None or made.checks or made.bound or not is_closed(made, loop, steps):
        raise Unfit
    nest.straight = made
    _measure(nest, len(before))
    return nest


def moved(steps: Sequence[Step], where: Mapping[Var, Size]) -> tuple[Step, ...]:
    """Launches, and those in loops and branches, for other indices."""

    def one(step: Step) -> Step:
        if isinstance(step, Launch):
            return replace(step, sizes=tuple(substitute(n, where) for n in step.sizes))
        return inside(step, lambda body: moved(body, where))

    return tuple(map(one, steps))


def _along(nest: Nest, step: Step) -> Launch:
    """A launch over a row as one of a kernel on the element of the column."""
    if not isinstance(step, Launch):
        raise Unfit
    kernel = nest.kernels[step.kernel]
    if len(kernel.outer) != 1 or any(p.axes for p in kernel.phases):
        raise Unfit
    if any(b.role == "row" for b in kernel.buffers):
        raise Unfit
    (axis,) = kernel.outer
    at = var(f"s{kernel.sizes}")
    body = tuple((n, _at_item(i, axis, at)) for n, i in kernel.instructions())
    nest.kernels.append(
        replace(kernel, axes=(), outer=(), phases=(Phase((), body),), sizes=kernel.sizes + 1)
    )
    extent = kernel.axes[axis].extent
    given = {Var(f"s{k}"): s for k, s in enumerate(step.sizes)}
    items = substitute(extent, given)
    nest.needs += [items - nest.columns, nest.columns - items]
    sizes = (*step.sizes, as_size(nest.column))
    return replace(step, kernel=len(nest.kernels) - 1, sizes=sizes)


def _at_item(i: Instr, axis: int, at: Size) -> Instr:
    """An instruction of a kernel over `axis` at one item."""
    if isinstance(i, Inside) or (isinstance(i, Load) and i.within):
        raise Unfit
    if isinstance(i, Load | Store):
        a = i.access
        strides = dict(a.strides)
        offset = a.offset + at * strides.pop(axis, 0)
        return replace(i, access=Access(a.buffer, tuple(strides.items()), offset, a.gathers))
    if isinstance(i, Coordinate):
        return Extent(i.start + i.step * at, i.dtype)
    return i


# ------------------------------------------------------------ distances


@dataclass(frozen=True)
class _Place:
    """What an access moves by for a row and for an element, and where it is at the first."""

    row: Size
    column: int
    first: Size


def _place(nest: Nest, access: Access) -> _Place:
    column, rest = linear(access.offset, nest.column)
    row, first = linear(rest, nest.row)
    if access.gathers or row is None or not isinstance(column, int):
        raise Unfit
    if (atoms(row) | atoms(first)) & {nest.row, nest.column}:
        raise Unfit
    return _Place(row, column, first)


def _measure(nest: Nest, before: int) -> None:
    """Find the distances; `before` steps go along whole rows before those behind them begin."""
    body = nest.straight.body
    targets: dict[int, _Place] = {}
    for _, i in body:
        if isinstance(i, Store):
            place = _place(nest, i.access)
            if targets.setdefault(i.access.buffer, place) != place or place.column == 0:
                raise Unfit
    for n, i in body:
        if isinstance(i, Load) and i.access.buffer in targets:
            nest.distances[n] = _distance(targets[i.access.buffer], _place(nest, i.access))
    for buffer, target in targets.items():
        columns = [c for b, (_, c), _ in _accesses(nest, 0, len(body)) if b == buffer]
        width = nest.columns + max(columns) - min(columns)
        ahead = bounds(target.row)[0]
        stride = target.row if ahead is not None and ahead >= 0 else -target.row
        nest.needs.append(stride - width * abs(target.column))
    _ask_order(nest, before)
    if not any(r == 0 and c < 0 for r, c in nest.distances.values()):
        raise Unfit  # nothing is gained


def _distance(target: _Place, place: _Place) -> Distance:
    """The rows and columns from an access to the store of the same element."""
    if (place.row, place.column) != (target.row, target.column):
        raise Unfit
    found = []
    for rows in range(-_FAR, _FAR + 1):
        rest = place.first - target.first - rows * target.row
        if isinstance(rest, int) and rest % target.column == 0:
            found.append((abs(rest), (rows, rest // target.column)))
    if not found:
        raise Unfit
    return min(found)[1]


def _ask_order(nest: Nest, before: int) -> None:
    """Whether launches over whole rows may go along with what comes behind them: nothing that was
    behind all of a launch comes in front of a part of it now."""
    ends = nest.straight.lengths
    for k in range(before):
        start = ends[k - 1] if k else 0
        earlier = _accesses(nest, start, ends[k])
        later = _accesses(nest, ends[k], ends[-1])
        for (a, (rows, column), first), (b, (same, other), second) in product(earlier, later):
            if a == b and rows == same and (first or second) and column < other:
                raise Unfit


def _accesses(nest: Nest, start: int, end: int) -> list[tuple[int, Distance, bool]]:
    """The buffers that a part of the body touches, where, and whether it stores there."""
    return [
        (i.access.buffer, nest.distances.get(n, (0, 0)), isinstance(i, Store))
        for n, i in nest.straight.body[start:end]
        if isinstance(i, Load | Store)
    ]
