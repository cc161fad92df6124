"""Launches that go over the same rows advance together, some rows at a time.

In: a plan. Out: the same plan, where launches that follow each other are a `Sweep`, and a loop that
does nothing else is one of many trips. What one launch stores is still in the cache when the next
one reads it, and threads wait for each other once in many trips:

    for t < 100: B[1:-1] = f(A); A[1:-1] = f(B)      sweep, 100 trips: rows r of B, then r - 1 of A

A launch *lags* so many rows behind the first one that all it reads is there, and nothing that it
overwrites is needed any more. Threads have rows of their own. A thread leaves out those at both
ends that need, or are needed by, what lies beyond, more from launch to launch and from trip to
trip (`below`, `above`); they are done when all threads are through. `tests/test_sweep.py` tries all
orders that this allows.

Which rows an access touches must be known: of each array that the launches write, the leading axis
of every launch runs through the rows one by one. Where an access of the last rows is one of the
first ones (`np.roll`), the rows are a ring: threads, or the one, then leave out rows at both of its
ends as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from npjit.core.assume import Assumptions
from npjit.core.size import Size, atoms, floordiv, product, substitute
from npjit.schedule.kernel import Access, Bound, Kernel, Load, Store
from npjit.schedule.plan import Launch, Loop, Pace, Place, Plan, Step, Sweep, inside

# an access that is more rows away than this is not followed
_FAR = 8
# more launches than this do not advance together
_MOST = 16


class _Known:
    """Answers about sizes, which each group of launches that is tried asks again."""

    def __init__(self, known: Assumptions) -> None:
        self.le, self.eq = cache(known.le), cache(known.eq)


def in_sweeps(plan: Plan) -> Plan:
    """The plan with sweeps wherever launches can advance together."""
    known = _Known(Assumptions.given(plan.guards))
    return replace(plan, steps=_swept(plan.steps, plan.kernels, known))


def _swept(steps: Sequence[Step], kernels: Sequence[Kernel], known: _Known) -> tuple[Step, ...]:
    found: list[Step] = []
    run: list[_Launched] = []
    for step in steps:
        launched = _Launched(step, kernels[step.kernel]) if isinstance(step, Launch) else None
        if launched is not None and launched.is_plain:
            run.append(launched)
            continue
        found += _cut(run, known)
        run = []
        found.append(_of_trips(inside(step, lambda s: _swept(s, kernels, known)), kernels, known))
    return (*found, *_cut(run, known))


def _cut(run: Sequence[_Launched], known: _Known) -> Iterator[Step]:
    """The launches of a run in as few sweeps as may be."""
    at = 0
    while at < len(run):
        best: Sweep | None = None
        for end in range(at + 2, min(len(run), at + _MOST) + 1):
            if _hands_on(run[at:end]):
                best = _sweep(run[at:end], known) or best
        yield best or run[at].launch
        at += len(best.launches) if best else 1


def _hands_on(run: Sequence[_Launched]) -> bool:
    """Whether a launch reads what an earlier one has written."""
    written: set[Place] = set()
    for r in run:
        if any(t.place in written and not t.writes for t in r.touches):
            return True
        written |= {t.place for t in r.touches if t.writes}
    return False


def _of_trips(step: Step, kernels: Sequence[Kernel], known: _Known) -> Step:
    """A loop over one sweep, or one launch, as a sweep of many trips."""
    if not isinstance(step, Loop) or step.stops or step.share or len(step.body) != 1:
        return step
    (body,) = step.body
    if not isinstance(body, Sweep | Launch) or (isinstance(body, Sweep) and body.index is not None):
        return step
    launches = body.launches if isinstance(body, Sweep) else (body,)
    run = [_Launched(s, kernels[s.kernel]) for s in launches]
    sweep = _sweep(run, known) if all(r.is_plain for r in run) else None
    sizes = [] if sweep is None else [s for p in sweep.paces for s in (p.rows, p.each)]
    if sweep is None or any(step.index in atoms(s) for s in (*sizes, sweep.bytes)):
        return step
    return replace(sweep, index=step.index, trips=step.trips)


@dataclass(frozen=True)
class _Touch:
    """An access of a launch: strides and offset in the plan's sizes, and the ranges of its axes."""

    place: Place
    itemsize: int
    writes: bool
    strides: dict[int, Size]
    offset: Size
    # first index and end of each axis, where the access is made
    ranges: dict[int, tuple[Size, Size]]
    is_known: bool


@dataclass
class _Launched:
    """A launch and its kernel."""

    launch: Launch
    kernel: Kernel

    @property
    def is_plain(self) -> bool:
        """Whether every outer index stands for itself, and nothing else is looped over."""
        k = self.kernel
        return bool(k.outer) and not k.in_order and not any(p.axes for p in k.phases)

    @property
    def lead(self) -> int:
        """The leading axis."""
        return self.kernel.outer[0]

    @cached_property
    def extents(self) -> dict[int, Size]:
        """The axes' extents in the plan's sizes."""
        return {a: self._size(self.kernel.axes[a].extent) for a in self.kernel.outer}

    @cached_property
    def touches(self) -> list[_Touch]:
        """All accesses."""
        found = []
        for _, i in self.kernel.instructions():
            if isinstance(i, Load):
                found.append(self._touch(i.access, False, i.within))
            elif isinstance(i, Store):
                found.append(self._touch(i.access, True, ()))
        return found

    def _touch(self, access: Access, writes: bool, within: tuple[Bound, ...]) -> _Touch:
        buffer = self.kernel.buffers[access.buffer]
        ranges: dict[int, tuple[Size, Size]] = {a: (0, n) for a, n in self.extents.items()}
        ranges |= {b.axis: (self._size(b.lo), self._size(b.hi)) for b in within}
        return _Touch(
            self.launch.buffers[access.buffer],
            buffer.dtype.itemsize,
            writes,
            {a: self._size(s) for a, s in access.strides},
            self._size(access.offset),
            ranges,
            not access.gathers and buffer.role != "row",
        )

    def _size(self, size: Size) -> Size:
        return substitute(size, {v: self.launch.sizes[int(v.name[1:])] for v in atoms(size)})

    @property
    def rest(self) -> Size:
        """Items of one leading index."""
        return product(n for a, n in self.extents.items() if a != self.lead)


def _sweep(run: Sequence[_Launched], known: _Known) -> Sweep | None:
    """The launches as a sweep of one trip, if they can be one."""
    shared = {t.place for r in run for t in r.touches if t.writes}
    pitches = _pitches(run, shared)
    if pitches is None:
        return None
    found: list[_Part] = []
    for r in run:
        part = _part(r, shared, pitches, known)
        if part is None:
            return None
        found.append(part)
    ahead = [
        [_most(later, early) for early in found]  # rows that the later one reaches beyond
        for later in found
    ]
    back = [[_most(early, later) for early in found] for later in found]
    is_round = any(p.is_round for p in found)
    if not _is_one(ahead) or (is_round and not _are_rings(found, known)):
        return None
    lag, below = _grown(ahead), _grown(back)
    paces = tuple(
        Pace(p.rows, p.each, p.first, a, b) for p, a, b in zip(found, lag, below, strict=True)
    )
    return Sweep(
        tuple(r.launch for r in run),
        paces,
        _per_trip(ahead, lag),
        _per_trip(back, below),
        _bytes(run, pitches),
        is_round,
    )


def _are_rings(parts: Sequence[_Part], known: _Known) -> bool:
    """Whether all launches go through the same rows, from the first one on."""
    rows = parts[0].rows
    return all(p.first == 0 and known.eq(p.rows, rows) is True for p in parts)


@dataclass(frozen=True)
class _Part:
    """A launch in rows: its first one, their number, the items of each, and the least and greatest
    row that it reads or writes of each array, from its own row; `is_round`: or of what comes so
    many rows in front of the first one, or behind the last one."""

    first: int
    rows: Size
    each: Size
    reach: dict[Place, list[tuple[bool, int, int]]]
    is_round: bool


def _pitches(run: Sequence[_Launched], shared: set[Place]) -> dict[Place, Size] | None:
    """Elements from row to row of each array that is written; None where launches disagree."""
    pitches: dict[Place, Size] = {}
    sizes: dict[Place, int] = {}
    flat = []
    for r in run:
        touches = [t for t in r.touches if t.place in shared]
        if not all(t.is_known and r.lead in t.strides for t in touches):
            return None
        # temporaries of two dtypes that take turns at one place have rows in other places
        if any(sizes.setdefault(t.place, t.itemsize) != t.itemsize for t in touches):
            return None
        if len(r.extents) == 1 and all(t.strides[r.lead] == 1 for t in touches):
            flat.append(touches)
        elif any(
            pitches.setdefault(t.place, t.strides[r.lead]) != t.strides[r.lead] for t in touches
        ):
            return None
    for touches in flat:
        # elements one behind the other, cut where others have rows
        found = {pitches[t.place] for t in touches if t.place in pitches} or {1}
        if len(found) > 1:
            return None
        pitches |= {t.place: next(iter(found)) for t in touches}
    return pitches


def _is_flat(r: _Launched, touches: Iterable[_Touch]) -> bool:
    """Whether a launch goes through arrays element by element."""
    return len(r.extents) == 1 and all(t.strides[r.lead] == 1 for t in touches)


def _part(
    r: _Launched, shared: set[Place], pitches: dict[Place, Size], known: _Known
) -> _Part | None:
    touches = [t for t in r.touches if t.place in shared]
    pitch = pitches[next(t.place for t in touches if t.writes)]
    is_flat = _is_flat(r, touches)
    each = pitch if is_flat else r.rest
    rows = r.extents[r.lead]
    if is_flat:
        rows = floordiv(rows, pitch)
        if known.eq(rows * pitch, r.extents[r.lead]) is not True:
            return None
    reach: dict[Place, list[tuple[bool, int, int]]] = {}
    is_round = False
    for t in touches:
        low = high = t.offset
        for axis, stride in t.strides.items():
            if axis != r.lead:
                start, end = t.ranges[axis]
                if known.le(0, stride) is not True:
                    return None
                low, high = low + stride * start, high + stride * (end - 1)
        if is_flat:
            high = high + each - 1
        own = pitches[t.place]
        around = rows * own
        for moved in (0, around, -around):
            first_row = _first_row(low + moved, own, known)
            last_row = _last_row(high + moved, own, known)
            if first_row is not None and last_row is not None:
                break
        else:
            return None
        is_round |= moved != 0
        reach.setdefault(t.place, []).append((t.writes, first_row, last_row))
    first = min(low for found in reach.values() for writes, low, _ in found if writes)
    if first < 0:
        return None
    by_first = {
        place: [(writes, low - first, high - first) for writes, low, high in found]
        for place, found in reach.items()
    }
    return _Part(first, rows, each, by_first, is_round)


def _first_row(low: Size, pitch: Size, known: _Known) -> int | None:
    """The greatest row that surely begins at or before this element."""
    if isinstance(low, int) and isinstance(pitch, int):
        return low // pitch if pitch > 0 else None
    return next((q for q in range(_FAR, -_FAR, -1) if known.le(q * pitch, low)), None)


def _last_row(high: Size, pitch: Size, known: _Known) -> int | None:
    """The least row that surely ends at or behind this element."""
    if isinstance(high, int) and isinstance(pitch, int):
        return high // pitch if pitch > 0 else None
    rows = range(-_FAR, _FAR)
    return next((q for q in rows if known.le(high + 1, (q + 1) * pitch)), None)


def _most(one: _Part, other: _Part) -> int | None:
    """How many rows further one reaches up than the other reaches down, in arrays that either of
    them writes; None where they touch none."""
    found = [
        high - low
        for place, touches in one.reach.items()
        for writes, _, high in touches
        for also_writes, low, _ in other.reach.get(place, ())
        if writes or also_writes
    ]
    return max(found, default=None)


def _is_one(apart: Sequence[Sequence[int | None]]) -> bool:
    """Whether all launches hang together by the arrays that they write: others may have other
    rows."""
    reached, waiting = {0}, [0]
    while waiting:
        needs = apart[waiting.pop()]
        found = {k for k, n in enumerate(needs) if n is not None} - reached
        reached |= found
        waiting += found
    return len(reached) == len(apart)


def _grown(apart: Sequence[Sequence[int | None]]) -> list[int]:
    """Rows for each launch, so that a later one has at least so many more than an earlier one."""
    rows: list[int] = []
    for m, needs in enumerate(apart):
        least = [rows[k] + n for k, n in enumerate(needs[:m]) if n is not None]
        rows.append(max([0, *least]))
    return rows


def _per_trip(apart: Sequence[Sequence[int | None]], rows: Sequence[int]) -> int:
    """Rows that are added from trip to trip for the same to hold between the launches of two."""
    found = [
        rows[k] + n - rows[m]
        for m, needs in enumerate(apart)
        for k, n in enumerate(needs)
        if n is not None
    ]
    return max([0, *found])


def _bytes(run: Iterable[_Launched], pitches: dict[Place, Size]) -> Size:
    """Bytes of one row of all arrays."""
    found: dict[Place, Size] = {}
    for r in run:
        for t in r.touches:
            pitch = pitches.get(t.place, t.strides.get(r.lead, 0))
            found.setdefault(t.place, pitch * t.itemsize)
    total: Size = 0
    for size in found.values():
        total = total + size
    return total
