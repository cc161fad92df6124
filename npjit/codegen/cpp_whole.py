"""Kernels without outer axes as C++: the form WHOLE (see `cpp_form`).

In: a `Kernel` such as a sum over everything. Out: its functions. Each phase with axes is a step of
its own: threads share its linear range, every chunk leaves what its folds hold in `parts`, and the
caller joins the parts in chunk order, so the result depends on nothing but the number of threads.
Phases without axes run in the caller.

    static void k0_p0(void* context, i64 begin, i64 end, int chunk) {
      ... a.parts0[chunk] = {sum3.total()};
    }
    static void k0(const npjit_api* api, const f64* mem0, f64* mem1, i64 s0) {
      ... api->parallel(k0_p0, &a, n, grain); ...
      acc3 = acc3 + parts[c].acc3; ...
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npjit.codegen.cpp_form import cost
from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_phase import Levels, PhasePrinter, Statements
from npjit.codegen.cpp_reduce import Fold, fold, loop
from npjit.codegen.cpp_types import stored
from npjit.schedule.kernel import Phase

# the most chunks that a phase is cut in; their results live on the caller's stack
_PARTS = 256


@dataclass(frozen=True)
class WholePhase:
    """A phase with its number, its statements and its folds."""

    number: int
    phase: Phase
    printed: Statements
    folds: Sequence[Fold]


class WholePrinter(KernelPrinter):
    """One step after the other over the whole array."""

    def print(self) -> str:
        phases = self._phases()
        needed = dict.fromkeys(n for p in phases if p.phase.axes for n in p.printed.imported)
        carried = [field for n in needed for field in self.values.names(n)]
        for p in phases:
            self._part_struct(p)
        self.struct([*self._memory(phases), *carried])
        for p in phases:
            if p.phase.axes:
                self._chunk(p)
        with self.launcher():
            self.writer.line(self.packed())
            self.rows()
            self.writer.lines(f"a.{name} = {name};" for _, name in self._row_buffers())
            for p in phases:
                self._step(p)
                own = [n for n, _ in p.phase.body if n in needed]
                names = [name for n in own for _, name in self.values.names(n)]
                self.writer.lines(f"a.{name} = {name};" for name in names)
        return str(self.writer)

    def _phases(self) -> list[WholePhase]:
        level: dict[int, int] = {}
        found = []
        for number, phase in enumerate(self.kernel.phases):
            vector = phase.axes[-1] if phase.axes else None
            levels = Levels([[a] for a in phase.axes[-1:]], level, vector=vector)
            printer = PhasePrinter(self.values, phase, levels)
            printed = printer.print()
            level |= {n: -1 for n, _ in phase.body}
            folds = [fold(n, i, self.values) for n, i in printed.reduces]
            found.append(WholePhase(number, phase, printed, folds))
        return found

    def _row_buffers(self) -> list[tuple[str, str]]:
        rows = enumerate(self.kernel.buffers)
        return [(f"{stored(b.dtype)}*", f"mem{i}") for i, b in rows if b.role == "row"]

    def _memory(self, phases: Sequence[WholePhase]) -> list[tuple[str, str]]:
        """Members for row buffers, which every thread sees, and for the chunks' results."""
        parts = [(f"{self.name}_part{p.number}*", f"parts{p.number}") for p in phases if p.folds]
        return [*self._row_buffers(), *parts]

    def _part_struct(self, p: WholePhase) -> None:
        if p.folds:
            with self.writer.block(f"struct {self.name}_part{p.number}", "};"):
                for f in p.folds:
                    self.writer.lines(f"{kind} {name};" for kind, name in f.cells)

    def _chunk(self, p: WholePhase) -> None:
        """The function for a chunk of one phase."""
        w = self.writer
        axes = p.phase.axes
        loops = [loop(f) for f in p.folds]
        carried = [field for n in p.printed.imported for field in self.values.names(n)]
        with self.chunk(f"_p{p.number}"):
            self.unpack([*self._row_buffers(), *carried])
            w.lines(p.printed.levels[-1])
            for a in loops:
                w.lines(a.before())

            def inside(low: str, high: str) -> None:
                w.lines(p.printed.levels[0])
                self.vector_loop(p.phase, low, high, p.printed.levels[1], loops)

            self.segments(axes, inside)
            if p.folds:
                with w.block(f"a.parts{p.number}[chunk] =", "};"):
                    w.lines(f"{result}," for a in loops for result in a.results())

    def _step(self, p: WholePhase) -> None:
        """The caller's part of one phase."""
        w = self.writer
        if not p.phase.axes:
            w.lines([*p.printed.levels[-1], *p.printed.levels[0]])
        for f in p.folds:
            starts = zip(f.cells, f.initial(), strict=True)
            w.lines(f"{kind} {name} = {start};" for (kind, name), start in starts)
        if p.phase.axes:
            with w.block(""):
                self._share(p)
        for f in p.folds:
            w.lines(f.finish([name for _, name in f.cells]))

    def _share(self, p: WholePhase) -> None:
        """Run a phase's chunks, and join what they leave in chunk order."""
        w = self.writer
        self.share(p.phase.axes, cost(p.phase))
        if not p.folds:
            self.run(f"p{p.number}")
            return
        w.line(f"{self.name}_part{p.number} parts[{_PARTS}];")
        w.line(f"a.parts{p.number} = parts;")
        w.line(f"const i64 least = nj_size_max(grain, n / {_PARTS} + 1);")
        w.line("const int chunks = n > least ? api->chunks(n, least) : n > 0;")
        self.run(f"p{p.number}", grain="least")
        with w.block("for (int c = 0; c < chunks; ++c)"):
            for f in p.folds:
                cells = [name for _, name in f.cells]
                w.lines(f.take(cells, [f"parts[c].{name}" for name in cells]))
