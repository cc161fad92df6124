"""Steps over the rows of a matrix that advance together, so that the matrix is read once.

In: a plan. Out: the same plan, where products of a matrix and a vector, from either side, and
launches over the same rows are a `RowPass`: some rows of each in turn. What is summed across the
rows is there when all of them are done:

    A += outer(u, v)      row i of A
    y = A @ x             y[i], from row i of A
    z = y @ A             all of z, from y[i] and row i of A

All but these sums is a matter of one row: of what the others write, a step reads that row alone.
Steps between them that have no part in it come in front or behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from npjit.core.assume import Assumptions
from npjit.core.size import Size, atoms, substitute
from npjit.schedule.kernel import Access, Kernel, Load, Store
from npjit.schedule.plan import (
    Contract,
    Launch,
    Matrix,
    Place,
    Plan,
    RowPass,
    Step,
    Strided,
    VectorProduct,
    inside,
)

# no more steps than these are looked through
_MOST = 16
# a matrix of fewer elements is at hand anyway
_FEWEST = 1024
_TYPES = ("f4", "f8")


def in_row_passes(plan: Plan) -> Plan:
    """The plan with row passes wherever two steps read the same matrix."""
    known = Assumptions.given(plan.guards)

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        found: list[Step] = []
        at = 0
        while at < len(steps):
            count, joined = _longest(steps[at : at + _MOST], plan.kernels, known)
            found += joined or [inside(steps[at], changed)]
            at += count
        return tuple(found)

    return replace(plan, steps=changed(plan.steps))


@dataclass(frozen=True)
class _Touch:
    """An access: elements from row to row (0: it is no matter of rows), and (stride, extent) along
    a row."""

    place: Place
    itemsize: int
    writes: bool
    pitch: Size
    offset: Size
    along: tuple[tuple[Size, Size], ...] = ()


@dataclass(frozen=True)
class _Member:
    """A step over rows. `total` is where it puts what it sums across them."""

    step: Launch | VectorProduct
    rows: Size
    touches: tuple[_Touch, ...]
    total: Place | None = None

    @property
    def matrices(self) -> set[tuple[Place, Size, Size]]:
        """What it reads or writes row by row."""
        return {(t.place, t.offset, t.pitch) for t in self.touches if t.along and t.pitch != 0}

    @property
    def places(self) -> tuple[set[Place], set[Place]]:
        """All memory that it touches, and what it writes of that."""
        total = set() if self.total is None else {self.total}
        written = {t.place for t in self.touches if t.writes} | total
        return {t.place for t in self.touches} | total, written


def _longest(
    steps: Sequence[Step], kernels: Sequence[Kernel], known: Assumptions
) -> tuple[int, list[Step]]:
    """How many steps from the first one on become a pass, and what takes their place; no pass:
    (1, [])."""
    best: tuple[int, list[Step]] = 1, []
    members: list[_Member] = []
    taken: list[Launch | Contract] = []
    # others, in front of the pass and behind it
    ahead: list[Step] = []
    later: list[Launch | Contract] = []
    for count, step in enumerate(steps, 1):
        if not isinstance(step, Launch | Contract):
            break
        member = _member(step, kernels)
        own = _places(step, kernels)
        free = not any(_clash(own, _places(s, kernels)) for s in later)
        if member is not None and free and _is_sound([*members, member], known):
            members.append(member)
            taken.append(step)
            if _is_worth(members):
                best = count, [*ahead, _pass(members, taken), *later]
        elif not members:
            break
        elif free and not any(_clash(own, m.places) for m in members):
            ahead.append(step)
        else:
            later.append(step)
    return best


def _is_worth(members: Sequence[_Member]) -> bool:
    """Whether the first and the last one read a matrix that another one reads."""
    readers = Counter(key for m in members for key in m.matrices)
    shared = {key for key, count in readers.items() if count > 1}
    return bool(members[0].matrices & shared and members[-1].matrices & shared) and any(
        isinstance(m.step, VectorProduct) for m in members
    )


def _is_sound(members: Sequence[_Member], known: Assumptions) -> bool:
    """Whether rows do not touch what other rows, or the sums across them, write."""
    totals = [m.total for m in members if m.total is not None]
    written = {t.place for m in members for t in m.touches if t.writes}
    types = {m.step.matrix.dtype for m in members if isinstance(m.step, VectorProduct)}
    rows: dict[Place, tuple[Size, Size, int]] = {}
    for t in (t for m in members for t in m.touches):
        if t.place in totals:
            return False
        if t.place in written:
            row = (t.pitch, t.offset, t.itemsize)
            if rows.setdefault(t.place, row) != row or not _is_within(t, known):
                return False
    same = all(known.eq(m.rows, members[0].rows) is True for m in members)
    return same and len(types) <= 1 and len(set(totals)) == len(totals)


def _is_within(t: _Touch, known: Assumptions) -> bool:
    """Whether an access stays in its row, and rows lie apart."""
    if not t.along:
        return known.le(1, t.pitch) is True
    ((stride, extent), *more) = t.along
    return not more and stride == 1 and known.le(extent, t.pitch) is True


def _pass(members: Sequence[_Member], steps: Sequence[Launch | Contract]) -> RowPass:
    """The pass that does these steps. Products from both sides of a matrix stand next to each other
    where they can."""
    found: list[_Member] = []
    for m in members:
        at = place = len(found)
        while isinstance(m.step, VectorProduct) and at > 0:
            before = found[at - 1]
            if _clash(before.places, m.places):
                break
            if isinstance(before.step, VectorProduct) and before.matrices & m.matrices:
                place = at
                break
            at -= 1
        found.insert(place, m)
    return RowPass(tuple(m.step for m in found), members[0].rows, tuple(steps))


# ------------------------------------------------------------ steps as members


def _places(step: Launch | Contract, kernels: Sequence[Kernel]) -> tuple[set[Place], set[Place]]:
    """All memory that a step touches, and what it writes of that."""
    if isinstance(step, Contract):
        return {step.a.place, step.b.place, step.c.place}, {step.c.place}
    pairs = list(zip(kernels[step.kernel].buffers, step.buffers, strict=False))
    return {p for _, p in pairs}, {p for b, p in pairs if b.role != "in"}


def _clash(one: tuple[set[Place], set[Place]], other: tuple[set[Place], set[Place]]) -> bool:
    """Whether either writes what the other touches."""
    return bool(one[0] & other[1] or one[1] & other[0])


def _member(step: Launch | Contract, kernels: Sequence[Kernel]) -> _Member | None:
    if isinstance(step, Launch):
        return _launch(step, kernels[step.kernel])
    found = _product(step)
    if found is None:
        return None
    matrix, vector, result = found.matrix, found.vector, found.result
    rows, columns = matrix.shape
    size = step.dtype.itemsize
    read = _Touch(matrix.place, size, False, matrix.strides[0], matrix.offset, ((1, columns),))
    if found.across:
        given = _Touch(vector.place, size, False, vector.strides[0], vector.offset)
        return _Member(found, rows, (read, given), result.place)
    given = _Touch(vector.place, size, False, 0, vector.offset, ((1, columns),))
    made = _Touch(result.place, size, True, result.strides[0], result.offset)
    return _Member(found, rows, (read, given, made))


def _product(step: Contract) -> VectorProduct | None:
    """A product of a matrix and a vector, if the rows of the matrix are contiguous."""
    if step.batch or step.dtype != step.factors or step.dtype.str[1:] not in _TYPES:
        return None
    if step.n == 1 and step.m != 1:
        a, b, c = _array(step, step.a, step.m, step.k), step.b, step.c
        extent, x, y = step.m, b.row, c.row
    elif step.m == 1 and step.n != 1:
        a, b, c = _array(step, step.b, step.n, step.k, turned=True), step.a, step.c
        extent, x, y = step.n, b.column, c.column
    else:
        return None
    elements = extent * step.k
    if isinstance(elements, int) and elements < _FEWEST:
        return None
    vector = Strided(b.place, step.dtype, (step.k,), b.offset, (x,))
    result = Strided(c.place, step.dtype, (extent,), c.offset, (y,))
    if a.strides[1] == 1 and x == 1:
        return VectorProduct(a, vector, result, across=False)
    if a.strides[0] == 1:
        turned = replace(a, shape=a.shape[::-1], strides=a.strides[::-1])
        return VectorProduct(turned, vector, result, across=True)
    return None


def _array(step: Contract, m: Matrix, rows: Size, columns: Size, turned: bool = False) -> Strided:
    strides = (m.column, m.row) if turned else (m.row, m.column)
    return Strided(m.place, step.dtype, (rows, columns), m.offset, strides)


def _launch(step: Launch, kernel: Kernel) -> _Member | None:
    """An elementwise launch whose outermost axis is that of the rows."""
    if not kernel.outer or kernel.in_order or any(p.axes for p in kernel.phases):
        return None
    lead, *rest = kernel.outer
    extents = {a: _actual(kernel.axes[a].extent, step) for a in kernel.outer}
    touches = []
    for _, i in kernel.instructions():
        if not isinstance(i, Load | Store):
            continue
        access: Access = i.access
        buffer = kernel.buffers[access.buffer]
        if buffer.role == "row" or (access.gathers and isinstance(i, Store)):
            return None
        strides = {a: _actual(s, step) for a, s in access.strides}
        along = tuple((strides[a], extents[a]) for a in rest if strides.get(a, 0) != 0)
        pitch = 0 if access.gathers else strides.get(lead, 0)
        offset = _actual(access.offset, step)
        place = step.buffers[access.buffer]
        size = buffer.dtype.itemsize
        touches.append(_Touch(place, size, isinstance(i, Store), pitch, offset, along))
    return _Member(step, extents[lead], tuple(touches))


def _actual(size: Size, step: Launch) -> Size:
    """A size of a kernel in the plan's variables."""
    return substitute(size, {v: step.sizes[int(v.name[1:])] for v in atoms(size)})
