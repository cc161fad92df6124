"""Kernels of several launches in the terms of one: its buffers, sizes, scalars and value numbers.

In: launches of a plan with their kernels, one after the other. Out: the phases of each with the
numbers of the kernel that they become parts of; `launch` starts that kernel.

    launch k2(z, c; n), launch k3(count, z; n)   ->   buffers z, c, count; sizes n
    v3 = b1[s0*i0 + i1] of k3                    ->   v17 = b0[s0*i0 + i1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from npjit.codegen.cuda_kernel import CudaPrinter
from npjit.core.size import Expr, Size, Var, atoms, substitute, var
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
    Scalar,
    Store,
)
from npjit.schedule.plan import Launch, Place, Plan, Step, inside

# what a load is replaced by: the number of a value that is known to be in its place, or None
Known = Callable[[Load], int | None]


def unknown(load: Load) -> None:
    """Every load reads memory."""


class JoinedPrinter(CudaPrinter):
    """Prints a kernel made of several steps; `apart` are those steps, where they can run in its
    place whatever else is joined."""

    apart: tuple[Step, ...] = ()

    def fits(self, launch: Launch, value: Callable[[Size], int]) -> bool:
        """Whether the kernel does for sizes that `value` tells; else the launches it is made of."""
        return are_apart(launch, self.kernel, value)


class Terms:
    """See the module's docstring. `places` has None for buffers of role "row"."""

    def __init__(self) -> None:
        self.places: list[Place | None] = []
        self.buffers: list[Buffer] = []
        self.sizes: list[Size] = []
        self.scalars: list[int] = []
        self.scalar_types: list[DType] = []
        self.where: set[str] = set()
        self.count = 0

    def size(self, size: Size, launch: Launch) -> Size:
        """A size of a launch's kernel as one of the new kernel."""
        return self.named(actual(size, launch))

    def named(self, size: Size) -> Size:
        """A size of the plan as one of the new kernel."""
        if isinstance(size, int):
            return size
        if size not in self.sizes:
            self.sizes.append(size)
        return var(f"s{self.sizes.index(size)}")

    def buffers_of(
        self, kernel: Kernel, launch: Launch, locals_too: bool = False
    ) -> dict[int, int] | None:
        """The new numbers of a kernel's buffers; None when a place holds two types, or single
        elements (those may be `locals_too`)."""
        numbers: dict[int, int] = {}
        places = iter(launch.buffers)
        for i, b in enumerate(kernel.buffers):
            if b.role == "row":
                numbers[i] = len(self.buffers)
                self.places.append(None)
                self.buffers.append(replace(b, length=self.size(b.length, launch)))
                continue
            place = next(places)
            if place.space == "local" and not locals_too:
                return None
            if place not in self.places:
                self.places.append(place)
                self.buffers.append(b)
            numbers[i] = self.places.index(place)
            if self.buffers[numbers[i]].dtype != b.dtype:
                return None
        return numbers

    def phases(
        self,
        kernel: Kernel,
        launch: Launch,
        buffers: Mapping[int, int],
        axes: Mapping[int, int],
        known: Known = unknown,
    ) -> list[Phase]:
        """A kernel's phases; `known` is asked about each load, in order."""
        change = _Change(self, launch, buffers, axes, len(self.scalars))
        self.where.update(launch.where)
        self.scalars += launch.scalars
        self.scalar_types += kernel.scalars
        found = []
        for phase in kernel.phases:
            body = []
            for number, instr in phase.body:
                made = change.instr(instr)
                value = known(made) if isinstance(made, Load) else None
                change.values[number] = self.count if value is None else value
                if value is None:
                    body.append((self.count, made))
                    self.count += 1
            found.append(Phase(tuple(axes[a] for a in phase.axes), tuple(body)))
        return found

    def only_used(self, phases: Sequence[Phase]) -> list[Phase]:
        """Phases of the new kernel, whose other buffers are forgotten."""
        accesses = [i.access for p in phases for _, i in p.body if isinstance(i, Load | Store)]
        used = sorted({a.buffer for a in accesses})
        new = {old: number for number, old in enumerate(used)}
        self.places = [self.places[b] for b in used]
        self.buffers = [self.buffers[b] for b in used]

        def changed(i: Instr) -> Instr:
            if not isinstance(i, Load | Store):
                return i
            return replace(i, access=replace(i.access, buffer=new[i.access.buffer]))

        return [Phase(p.axes, tuple((n, changed(i)) for n, i in p.body)) for p in phases]

    def kernel(
        self,
        axes: Sequence[Axis],
        outer: tuple[int, ...],
        phases: Sequence[Phase],
        written: set[int],
        role: str = "inout",
    ) -> Kernel:
        """The new kernel; `written` buffers get the role."""
        roles = enumerate(self.buffers)
        buffers = tuple(
            b if b.role == "row" else replace(b, role=role if i in written else "in")
            for i, b in roles
        )
        scalars, sizes = tuple(self.scalar_types), len(self.sizes)
        return Kernel(tuple(axes), outer, tuple(phases), buffers, scalars, sizes)

    def launch(self, number: int) -> Launch:
        """A launch of kernel `number`."""
        places = tuple(p for p in self.places if p is not None)
        where = tuple(sorted(self.where))
        return Launch(number, places, tuple(self.scalars), tuple(self.sizes), where)


class _Change:
    """Instructions of one kernel with the new numbers."""

    def __init__(
        self,
        terms: Terms,
        launch: Launch,
        buffers: Mapping[int, int],
        axes: Mapping[int, int],
        taken: int,
    ) -> None:
        self.terms = terms
        self.launch = launch
        self.buffers = buffers
        self.axes = axes
        self.taken = taken
        self.values: dict[int, int] = {}

    def instr(self, i: Instr) -> Instr:
        """One instruction."""
        if isinstance(i, Load):
            return replace(i, access=self._access(i.access), within=self._within(i.within))
        if isinstance(i, Store):
            return Store(self._access(i.access), self.values[i.value])
        if isinstance(i, Apply):
            return replace(i, args=tuple(self.values[a] for a in i.args))
        if isinstance(i, Inside):
            return replace(i, arg=self.values[i.arg], within=self._within(i.within))
        if isinstance(i, Reduce):
            return replace(i, arg=self.values[i.arg])
        if isinstance(i, Coordinate):
            axis, start, step = self.axes[i.axis], self._size(i.start), self._size(i.step)
            return replace(i, axis=axis, start=start, step=step)
        if isinstance(i, Extent):
            return replace(i, size=self._size(i.size))
        if isinstance(i, Scalar):
            return replace(i, number=i.number + self.taken)
        return i

    def _size(self, size: Size) -> Size:
        return self.terms.size(size, self.launch)

    def _access(self, a: Access) -> Access:
        strides = tuple(sorted((self.axes[axis], self._size(s)) for axis, s in a.strides))
        gathers = tuple((self.values[v], self._size(s)) for v, s in a.gathers)
        return Access(self.buffers[a.buffer], strides, self._size(a.offset), gathers)

    def _within(self, bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
        return tuple(Bound(self.axes[b.axis], self._size(b.lo), self._size(b.hi)) for b in bounds)


def are_known(plan: Plan, sizes: Iterable[Size]) -> bool:
    """Whether inputs tell these sizes, so that it is known before the plan runs what fits them."""
    return all(v in plan.sources for s in sizes if isinstance(s, Expr) for v in atoms(s))


def actual(size: Size, launch: Launch) -> Size:
    """A kernel's size in terms of the plan."""
    if not isinstance(size, Expr):
        return size
    found: dict[Var, Size] = {v: launch.sizes[int(v.name[1:])] for v in atoms(size)}
    return substitute(size, found)


def taken_apart(steps: tuple[Step, ...], kernels: Mapping[int, JoinedPrinter]) -> tuple[Step, ...]:
    """The steps with what these kernels are made of in their launches' places."""
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Launch) and step.kernel in kernels:
            found += kernels[step.kernel].apart
        else:
            found.append(inside(step, lambda body: taken_apart(body, kernels)))
    return tuple(found)


def are_apart(launch: Launch, kernel: Kernel, value: Callable[[Size], int]) -> bool:
    """Whether the places of the arena that a kernel writes lie apart from all others that it
    touches, for sizes that `value` tells."""
    shared = [i for i, b in enumerate(kernel.buffers) if b.role != "row"]
    places = dict(zip(shared, launch.buffers, strict=True))
    ends: dict[int, int] = {}
    for _, instr in kernel.instructions():
        if isinstance(instr, Load | Store) and instr.access.buffer in places:
            a = instr.access
            reach = value(actual(a.offset, launch)) + 1
            for axis, stride in a.strides:
                extent = value(actual(kernel.axes[axis].extent, launch))
                reach += max(0, value(actual(stride, launch)) * (extent - 1))
            ends[a.buffer] = max(
                ends.get(a.buffer, 0), reach * kernel.buffers[a.buffer].dtype.itemsize
            )
    spans = []
    for i, end in ends.items():
        if places[i].space == "arena":
            start = value(places[i].offset)
            spans.append((start, start + end, kernel.buffers[i].role != "in"))
    spans.sort()
    return not any(
        (one[2] or other[2]) and other[0] < one[1] and one[0] < other[1]
        for k, one in enumerate(spans)
        for other in spans[k + 1 :]
    )
