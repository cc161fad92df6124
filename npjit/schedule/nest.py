"""Loop order and kernel text: from phases over labels to a `Kernel` that does not depend on where
it stands.

In: a `Draft` (outer labels, phases of numbered instructions over labels). Out: the Kernel and the
sizes that a launch passes for s0, s1, ... Neighbouring loops become one where every access runs
through both as through one axis; a contiguous n-d elementwise kernel is one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from npjit.core.size import Expr, Size, var
from npjit.schedule.kernel import (
    Access,
    Apply,
    Axis,
    Bound,
    Buffer,
    Coordinate,
    DType,
    Extent,
    Inside,
    Instr,
    Kernel,
    Load,
    Phase,
    Reduce,
    Store,
)

Body = list[tuple[int, Instr]]


@dataclass
class Draft:
    """A kernel over labels; `extents` gives every label's extent."""

    outer: list[int]
    phases: list[tuple[list[int], Body]]
    buffers: list[Buffer]
    scalars: list[DType]
    extents: dict[int, Size]
    in_order: bool

    def instructions(self) -> Iterable[Instr]:
        """All instructions."""
        return (i for _, body in self.phases for _, i in body)


def finish(draft: Draft) -> tuple[Kernel, tuple[Size, ...]]:
    """The kernel, and what its sizes are in this launch."""
    join_axes(draft)
    numbers: dict[int, int] = {}
    for axis in (*draft.outer, *(a for axes, _ in draft.phases for a in axes)):
        numbers.setdefault(axis, len(numbers))
    sizes = _Sizes()
    axes = tuple(Axis(sizes.name(draft.extents[a])) for a in numbers)
    values: dict[int, int] = {}
    phases = []
    for labels, body in draft.phases:
        done = []
        for number, instr in body:
            changed = _rewrite(instr, numbers, values, sizes.name)
            values[number] = len(values)
            done.append((values[number], changed))
        phases.append(Phase(tuple(numbers[a] for a in labels), tuple(done)))
    buffers = tuple(replace(b, length=sizes.name(b.length)) for b in draft.buffers)
    outer = tuple(numbers[a] for a in draft.outer)
    scalars, count = tuple(draft.scalars), len(sizes.parameters)
    kernel = Kernel(axes, outer, tuple(phases), buffers, scalars, count, draft.in_order)
    return kernel, tuple(sizes.parameters)


class _Sizes:
    """Names s0, s1, ... for the sizes of a kernel, in the order they are met; integers stay."""

    def __init__(self) -> None:
        self.parameters: dict[Expr, Expr] = {}

    def name(self, size: Size) -> Size:
        if isinstance(size, int):
            return size
        if size not in self.parameters:
            self.parameters[size] = var(f"s{len(self.parameters)}")
        return self.parameters[size]


def _rewrite(
    i: Instr, axes: dict[int, int], values: dict[int, int], size: Callable[[Size], Size]
) -> Instr:
    """The instruction with numbered axes, renumbered values and named sizes."""

    def access(a: Access) -> Access:
        strides = tuple(sorted((axes[label], size(s)) for label, s in a.strides))
        gathers = tuple((values[v], size(s)) for v, s in a.gathers)
        return Access(a.buffer, strides, size(a.offset), gathers)

    def within(bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
        named = (Bound(axes[b.axis], size(b.lo), size(b.hi)) for b in bounds)
        return tuple(sorted(named, key=lambda b: b.axis))

    if isinstance(i, Load):
        return Load(access(i.access), i.dtype, within(i.within))
    if isinstance(i, Store):
        return Store(access(i.access), values[i.value])
    if isinstance(i, Apply):
        return replace(i, args=tuple(values[a] for a in i.args))
    if isinstance(i, Reduce):
        return replace(i, arg=values[i.arg])
    if isinstance(i, Inside):
        return Inside(values[i.arg], within(i.within), i.dtype)
    if isinstance(i, Coordinate):
        return Coordinate(axes[i.axis], size(i.start), size(i.step), i.dtype)
    if isinstance(i, Extent):
        return replace(i, size=size(i.size))
    return i


# -- the order of loops


def unit_votes(accesses: Sequence[Access]) -> dict[int, int]:
    """How many accesses run through memory element by element along each label."""
    votes: dict[int, int] = {}
    for a in accesses:
        for axis, stride in a.strides:
            if stride == 1 and not a.gathers:
                votes[axis] = votes.get(axis, 0) + 1
    return votes


def nested(labels: Sequence[int], accesses: Sequence[Access]) -> list[int]:
    """The labels outermost first: as the access that has most of them lies in memory, the axis with
    unit stride in most accesses last."""
    if len(labels) < 2:
        return list(labels)
    wanted = set(labels)
    main = max(accesses, key=lambda a: sum(x in wanted for x, _ in a.strides), default=None)
    strides = dict(main.strides) if main is not None else {}
    order = sorted(labels, key=lambda a: _reach(strides.get(a)), reverse=True)
    votes = unit_votes(accesses)
    best = max(order, key=lambda a: votes.get(a, 0))
    if votes.get(best, 0) > votes.get(order[-1], 0):
        order.remove(best)
        order.append(best)
    return order


def _reach(stride: Size | None) -> tuple[int, int]:
    """A stride's size as far as it can be told: degree, then coefficient; absent ones lie
    outermost."""
    if stride is None:
        return (1 << 30, 0)
    if isinstance(stride, int):
        return (0, abs(stride))
    return max((len(mono), abs(c)) for mono, c in stride.terms)


# -- joining neighbouring loops


def join_axes(draft: Draft) -> None:
    """Make one axis of two wherever every access allows."""
    fixed: set[int] = set()
    accesses: list[Access] = []
    for i in draft.instructions():
        if isinstance(i, Coordinate):
            fixed.add(i.axis)
        if isinstance(i, Load | Inside):
            fixed.update(b.axis for b in i.within)
        if isinstance(i, Load | Store):
            accesses.append(i.access)
    joined: dict[int, int] = {}  # outer label -> the inner label it has become part of
    nests = [draft.outer, *(axes for axes, _ in draft.phases)]
    strides = [dict(a.strides) for a in accesses]
    for nest in nests:
        k = len(nest) - 2
        while k >= 0:
            a, b = nest[k], nest[k + 1]
            if a not in fixed and b not in fixed and _neighbours(nests, a, b):
                extent = draft.extents[b]
                if all(s.get(a, 0) == s.get(b, 0) * extent for s in strides):
                    joined[a] = b
                    draft.extents[b] = extent * draft.extents[a]
                    for other in nests:
                        if a in other:
                            other.remove(a)
            k -= 1
    if joined:
        _drop(draft, joined)


def _neighbours(nests: Sequence[list[int]], a: int, b: int) -> bool:
    """Whether b directly follows a wherever one of them is looped over."""
    for nest in nests:
        if a not in nest and b not in nest:
            continue
        if a not in nest or b not in nest or nest.index(b) != nest.index(a) + 1:
            return False
    return True


def _drop(draft: Draft, gone: dict[int, int]) -> None:
    for _, body in draft.phases:
        for k, (number, i) in enumerate(body):
            if isinstance(i, Load | Store):
                kept = tuple((a, s) for a, s in i.access.strides if a not in gone)
                body[k] = (number, replace(i, access=replace(i.access, strides=kept)))
