"""Checks of all indices, in loops, in the kernels that read at these indices anyway.

In: a `Plan`. Out: the plan in which a launch that asks something of every index, its check, and the
launch that then sums what lies at the indices are one launch and the check behind it; and, by the
number of the joined kernel, the value that tells of an index whether all is well:

    launch k2(index, flag; n), check flag, launch k4(x, index, y; n)
        ->   launch k5(index, flag, x, y; n, n), check flag
             for (...) { ... if (!v6) { acc7 = 0; break; } const f64 v9 = mem2[v8]; ... }

A short loop of its own would cost as much as the sum: how often it runs is hard to foresee.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from npjit.codegen.cpp_values import operands
from npjit.codegen.cpp_whole import WholePhase, WholePrinter
from npjit.codegen.cuda_terms import Terms, actual
from npjit.core.size import Size
from npjit.schedule.kernel import (
    Apply,
    Axis,
    Extent,
    Instr,
    Kernel,
    Load,
    Phase,
    Reduce,
    Store,
)
from npjit.schedule.plan import (
    Bind,
    Check,
    Launch,
    Loop,
    Place,
    Plan,
    Step,
    While,
    inside,
    places_in,
)


class AskedPrinter(WholePrinter):
    """Prints a joined kernel; `asks` is the value that tells whether an index is in range."""

    def __init__(self, kernel: Kernel, name: str, asks: int) -> None:
        super().__init__(kernel, name)
        self.asks = asks

    def is_inlined(self) -> bool:
        return self.is_tight

    def _short(self, p: WholePhase) -> str:
        return "4 * NJ_BLOCK(i64)" if p.phase.axes else ""

    def _at_once(self, p: WholePhase) -> None:
        """Up to the first index that is out of range."""
        with self._loop(p):
            self.writer.line('__asm__ volatile("");  // no vectors: they would read at any index')
            self._values(p, {n for n, _ in p.phase.body}, f"{self._answer(p)} = 0; break;")
            for f in p.folds:
                if f.instr.arg != self.asks:
                    self.writer.lines(f.take([name for _, name in f.cells], f.items("")))

    def _at_length(self, p: WholePhase) -> None:
        """All indices are asked of first: vectors read at any."""
        wanted = {self.asks}
        for n, i in reversed(p.phase.body):
            wanted |= set(operands(i)) if n in wanted else set()
        with self._loop(p):
            self._values(p, wanted, f"{self._answer(p)} = 0;")
        with self.writer.block(f"if ({self._answer(p)})"):
            super()._at_length(p)

    def _loop(self, p: WholePhase) -> AbstractContextManager[None]:
        self.writer.lines([*p.printed.levels[-1], *p.printed.levels[0]])
        (axis,) = p.phase.axes
        return self.writer.block(f"for (i64 x{axis} = 0; x{axis} < n; ++x{axis})")

    def _values(self, p: WholePhase, wanted: set[int], refuse: str) -> None:
        """These values of a step, and what is done where the index is out of range."""
        changing = set(p.printed.levels[1])
        for n, _ in p.phase.body:
            if n in wanted:
                lines = p.printed.definitions.get(n, ())
                self.writer.lines(line for line in lines if line in changing)
            if n == self.asks:
                self.writer.line(f"if (!{self.values.whole(n)}) {{ {refuse} }}")

    def _answer(self, p: WholePhase) -> str:
        """The cell that tells whether all indices are in range."""
        ((_, name),) = next(f.cells for f in p.folds if f.instr.arg == self.asks)
        return name


def with_questions(plan: Plan) -> tuple[Plan, dict[int, int]]:
    """See the module's docstring."""
    kernels = list(plan.kernels)
    asks: dict[int, int] = {}
    uses = Counter(places_in(plan.steps))
    saved = {Place("input", s.input) for s in plan.saves}

    def in_loop(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        found = [inside(s, in_loop) for s in steps]
        k = 0
        while k < len(found) - 1:
            joined = _joined(found[k:], kernels, uses, saved)
            if joined is None:
                k += 1
                continue
            place = k + joined.place
            found[place : place + 1] = [joined.terms.launch(len(kernels)), found[k + 1]]
            del found[k : k + 2]
            asks[len(kernels)] = joined.asks
            kernels.append(joined.kernel)
        return tuple(found)

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(inside(s, in_loop if isinstance(s, Loop | While) else changed) for s in steps)

    steps = changed(plan.steps)
    return replace(plan, steps=steps, kernels=tuple(kernels)), asks


@dataclass(frozen=True)
class _Question:
    """A launch that asks something of each of so many elements at a place."""

    launch: Launch
    answer: Place
    index: Place
    count: Size


@dataclass(frozen=True)
class _Joined:
    """A kernel for a question and what reads at the indices; `place` is the latter's among the
    steps from the question on, `asks` the value that the question is about."""

    place: int
    terms: Terms
    kernel: Kernel
    asks: int


def _joined(
    steps: Sequence[Step], kernels: Sequence[Kernel], uses: Mapping[Place, int], saved: set[Place]
) -> _Joined | None:
    """What becomes of the question that steps begin with, if they do."""
    question = _question(steps[0], steps[1], kernels, uses)
    place = 0 if question is None else _reader(question, steps, kernels, saved)
    reader = steps[place]
    if question is None or place == 0 or not isinstance(reader, Launch):
        return None
    return _one_kernel(question, place, reader, kernels)


def _places(kernel: Kernel, launch: Launch) -> dict[int, Place]:
    """Where the buffers of a launch are, those for rows aside."""
    shared = [i for i, b in enumerate(kernel.buffers) if b.role != "row"]
    return dict(zip(shared, launch.buffers, strict=True))


def _stores(kernel: Kernel, launch: Launch) -> list[Place]:
    places = _places(kernel, launch)
    stores = [i.access.buffer for _, i in kernel.instructions() if isinstance(i, Store)]
    return [places[b] for b in stores if b in places]


def _question(
    step: Step, check: Step, kernels: Sequence[Kernel], uses: Mapping[Place, int]
) -> _Question | None:
    """What a launch asks whose answer is checked at once, and wanted by nobody else."""
    if not isinstance(step, Launch) or not isinstance(check, Check) or step.scalars:
        return None
    kernel = kernels[step.kernel]
    loop = _only_loop(kernel)
    if loop is None or _stores(kernel, step) != [check.place] or uses[check.place] != 2:
        return None
    loads = [i for _, i in loop.body if isinstance(i, Load)]
    reduces = {n: i for n, i in loop.body if isinstance(i, Reduce)}
    all_loads = sum(isinstance(i, Load) for _, i in kernel.instructions())
    told = [i.value in reduces for _, i in kernel.instructions() if isinstance(i, Store)]
    styles = [i.op.reduction.style for i in reduces.values() if i.op.reduction]
    if len(loads) != 1 or all_loads != 1 or told != [True] or styles != ["all"]:
        return None
    (axis,), (load,) = loop.axes, loads
    if load.access.strides != ((axis, 1),) or load.within or load.access.gathers:
        return None
    index = _places(kernel, step)[load.access.buffer]
    return _Question(step, check.place, index, actual(kernel.axes[axis].extent, step))


def _only_loop(kernel: Kernel) -> Phase | None:
    """The loop of a kernel that has one, over one axis, and nothing but that."""
    loops = [p for p in kernel.phases if p.axes]
    rows = any(b.role == "row" for b in kernel.buffers)
    alone = not kernel.outer and not rows and len(loops) == 1 and len(loops[0].axes) == 1
    return loops[0] if alone else None


def _reader(
    q: _Question, steps: Sequence[Step], kernels: Sequence[Kernel], saved: set[Place]
) -> int:
    """Where the first launch is that reads at indices, with nothing before it that a bad one could
    harm; else 0. What the reader itself writes is undone when the check fails."""
    equal = {frozenset([q.count])}
    for place, step in enumerate(steps[2:], 2):
        if isinstance(step, Check | Bind):
            continue
        if not isinstance(step, Launch):
            return 0
        kernel, stores = kernels[step.kernel], _stores(kernels[step.kernel], step)
        gathers = any(isinstance(i, Load) and i.access.gathers for _, i in kernel.instructions())
        kept = all(p.space != "input" or (gathers and p in saved) for p in stores)
        if not kept or q.index in stores or q.answer in stores:
            return 0
        if gathers:
            loop = _only_loop(kernel)
            count = loop and actual(kernel.axes[loop.axes[0]].extent, step)
            return place if frozenset([q.count, count]) in equal else 0
        asked, checks = _equal_sizes(kernel, step), steps[place + 1 : place + 2]
        if asked and any(isinstance(c, Check) and c.place in stores for c in checks):
            equal.add(asked)
    return 0


def _equal_sizes(kernel: Kernel, launch: Launch) -> frozenset[Size] | None:
    """The two sizes of which a kernel finds out whether they are equal, if that is all it does."""
    known = dict(kernel.instructions())
    stored = [i.value for i in known.values() if isinstance(i, Store)]
    test = known[stored[0]] if len(stored) == 1 else None
    if not isinstance(test, Apply) or test.op.relation != "==":
        return None
    sizes = [i.size for a in test.args if isinstance(i := known[a], Extent)]
    return frozenset(actual(s, launch) for s in sizes) if len(sizes) == 2 else None


def _one_kernel(
    q: _Question, place: int, reader: Launch, kernels: Sequence[Kernel]
) -> _Joined | None:
    """A kernel for both launches, if the reader leaves nothing but sums."""
    terms = Terms()
    axis = Axis(terms.named(q.count))
    known: dict[Load, int] = {}
    parts: list[list[Phase]] = []
    for launch in (q.launch, reader):
        kernel = kernels[launch.kernel]
        loop = _only_loop(kernel)
        numbers = terms.buffers_of(kernel, launch, locals_too=True)
        if loop is None or numbers is None:
            return None
        parts.append(terms.phases(kernel, launch, numbers, {loop.axes[0]: 0}, known.get))
        # the reader has the index from the question
        known = {i: n for p in parts[0] if p.axes for n, i in p.body if isinstance(i, Load)}
    before, body, after = ([i for some in parts for i in _part(some, k)] for k in range(3))
    (asks,) = (i.arg for p in parts[0] for _, i in p.body if isinstance(i, Reduce))
    if not _reads_by(body, set(known.values())) or not _are_sums(parts[1]):
        return None
    phases = [Phase((), tuple(before))] if before else []
    phases += [Phase((0,), tuple(body)), Phase((), tuple(after))]
    written = {i.access.buffer for _, i in after if isinstance(i, Store)}
    return _Joined(place, terms, terms.kernel([axis], (), phases, written), asks)


def _part(phases: Sequence[Phase], part: int) -> list[tuple[int, Instr]]:
    """The instructions in front of the loop (0), in it (1), or behind it (2)."""
    number = next(k for k, p in enumerate(phases) if p.axes)
    wanted = (phases[:number], phases[number : number + 1], phases[number + 1 :])
    return [i for p in wanted[part] for i in p.body]


def _reads_by(body: Sequence[tuple[int, Instr]], index: set[int]) -> bool:
    """Whether something is read at what is made of an index."""
    for n, i in body:
        if isinstance(i, Load) and any(v in index for v, _ in i.access.gathers):
            return True
        if not isinstance(i, Reduce) and index & set(operands(i)):
            index.add(n)
    return False


def _are_sums(phases: Sequence[Phase]) -> bool:
    """Whether a loop leaves nothing but what folds value by value, wherever they stand."""
    loop = next(p for p in phases if p.axes)
    reductions = [i.op.reduction for _, i in loop.body if isinstance(i, Reduce)]
    stores = any(isinstance(i, Store) for _, i in loop.body)
    return bool(reductions) and not stores and all(r and r.merges for r in reductions)
