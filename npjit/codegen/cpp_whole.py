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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npjit.codegen.cpp_form import cost
from npjit.codegen.cpp_kernel import KernelPrinter, width
from npjit.codegen.cpp_loops import loop
from npjit.codegen.cpp_phase import Levels, PhasePrinter
from npjit.codegen.cpp_reduce import Fold, fold
from npjit.codegen.cpp_statements import Statements
from npjit.codegen.cpp_stream import Stream, print_stream
from npjit.codegen.cpp_types import stored
from npjit.schedule.kernel import Load, Phase

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
        for p in phases:
            if self._short(p):
                self._long_function(p)
        with self.launcher():
            if not all(self._short(p) for p in phases if p.phase.axes):
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
                if loops and all(a.simd for a in loops):
                    steps = Stream(p.phase, p.printed.levels[1], p.printed.streams, loops)
                    print_stream(self, steps, low, high)
                else:
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
        short = self._short(p)
        if not short:
            self._join(p, [name for f in p.folds for _, name in f.cells])
            return
        with w.block(f"if (n <= {short})"):
            self._at_once(p)
        with w.block("else"):
            self._at_length(p)

    def _at_length(self, p: WholePhase) -> None:
        """All the steps of a long phase into the folds' cells."""
        given = ", ".join(name for _, name in self.arguments())
        part, cells = f"{self.name}_part{p.number}", [c for f in p.folds for c in f.cells]
        self.writer.line(f"const {part} all = {self.name}_long{p.number}({given});")
        self.writer.lines(f"{name} = all.{name};" for _, name in cells)

    def _short(self, p: WholePhase) -> str:
        """How many steps a phase may have to be done right in the launcher, so that a loop of the
        plan needs no call for it; none when that does not pay."""
        loops = [loop(f) for f in p.folds]
        looping = [q for q in self.kernel.phases if q.axes]
        is_alone = len(looping) == 1 and not p.printed.imported and not self._row_buffers()
        is_light = all(a.is_light for a in loops) and len({a.blocked for a in loops}) == 1
        if not (self.is_repeated and is_alone and is_light and len(p.phase.axes) == 1):
            return ""
        return f"4 * NJ_BLOCK({max((a.kind for a in loops), key=width)})"

    def _long_function(self, p: WholePhase) -> None:
        """A function for a phase with more steps than that, out of the loop's way."""
        w = self.writer
        given = ", ".join(f"{kind} {name}" for kind, name in self.arguments())
        part = f"{self.name}_part{p.number}"
        with w.block(f"NJ_NOINLINE static {part} {self.name}_long{p.number}({given})"):
            w.line(self.packed())
            starts = ", ".join(start for f in p.folds for start in f.initial())
            w.line(f"{part} all = {{{starts}}};")
            self.share(p.phase.axes, cost(p.phase))
            self._join(p, [f"all.{name}" for f in p.folds for _, name in f.cells])
            w.line("return all;")

    def _at_once(self, p: WholePhase) -> None:
        """All the steps of a short phase into the folds' cells."""
        w = self.writer
        loops = [loop(f) for f in p.folds]
        loads = [i for _, i in p.phase.body if isinstance(i, Load)]
        strides = [dict(i.access.strides).get(p.phase.axes[0], 0) for i in loads]
        w.lines([*p.printed.levels[-1], *p.printed.levels[0]])
        if any(i.access.gathers for i in loads):
            with w.block("for (i64 step = 0; step < n; ++step)"):
                w.line('__asm__ volatile("");  // no vectors: gathers of a few elements are slow')
                self._fold_in(p, "step", {name: name for f in p.folds for _, name in f.cells})
        elif all(s in (0, 1) for s in strides) and all(a.has_lanes for a in loops):
            self._in_lanes(p, min(8, max((i.dtype.itemsize for i in loads), default=8)))
        else:
            for a in loops:
                w.lines(a.flags())
            self.vectors(p.phase, "0", "n", p.printed.levels[1], loops)
            for a in loops:
                pairs = zip(a.fold.cells, a.block_results(), strict=True)
                w.lines(f"{cell} = {result};" for (_, cell), result in pairs if cell != result)

    def _in_lanes(self, p: WholePhase, itemsize: int) -> None:
        """Each lane of a vector by itself, block by block, then all lanes and what is left over.
        The compiler's own loop would end in several loops over ever shorter vectors, which take
        longer than a short sum itself. Truths are as wide as what they are about."""
        w = self.writer
        cells = [
            (f"i{8 * itemsize}" if f.style in ("any", "all") else kind, name, start)
            for f in p.folds
            for (kind, name), start in zip(f.cells, f.initial(), strict=True)
        ]
        widest = max((kind for kind, _, _ in cells), key=width)
        lanes, every = (
            f"NJ_LANES({widest})",
            f"for (i64 lane = 0; lane < NJ_LANES({widest}); ++lane)",
        )
        own = {name: f"lane{name}[lane]" for _, name, _ in cells}
        total = {name: f"all{name}[lane]" for _, name, _ in cells}
        w.line(f"const i64 rest = nj_size_max(n, 0) % {lanes};")
        w.lines(f"{kind} all{name}[{lanes}];" for kind, name, _ in cells)
        w.line(f"{every} {{ {' '.join(f'{total[name]} = {start};' for _, name, start in cells)} }}")
        with w.block(f"for (i64 part = 0; part < n - rest; part += NJ_BLOCK({widest}))"):
            w.line(f"const i64 end = nj_size_min(part + NJ_BLOCK({widest}), n - rest);")
            w.lines(f"{kind} lane{name}[{lanes}];" for kind, name, _ in cells)
            w.line(f"{every} {{ {' '.join(f'{own[n]} = {start};' for _, n, start in cells)} }}")
            with w.block(f"for (i64 from = part; from < end; from += {lanes})"):
                w.line("#pragma omp simd")
                with w.block(every):
                    self._fold_in(p, "from + lane", own)
            with w.block(every):
                for f in p.folds:
                    w.lines(_taken(f, total, own))
        for f in p.folds:
            if f.style == "sum":
                w.lines(f"{name} = nj_lanes_total(all{name});" for _, name in f.cells)
            else:
                with w.block(every):
                    w.lines(_taken(f, {name: name for _, name in f.cells}, total))
        with w.block("for (i64 lane = 0; lane < rest; ++lane)"):
            self._fold_in(p, "n - rest + lane", {name: name for _, name, _ in cells})

    def _fold_in(self, p: WholePhase, position: str, into: Mapping[str, str]) -> None:
        """Fold the values at one position into what stands for the cells."""
        self.writer.line(f"const i64 x{p.phase.axes[0]} = {position};")
        self.writer.lines(p.printed.levels[1])
        for f in p.folds:
            self.writer.lines(f.take([into[name] for _, name in f.cells], f.items("")))

    def _join(self, p: WholePhase, into: Sequence[str]) -> None:
        """The chunks of a phase, and what they leave joined in their order."""
        w = self.writer
        w.line(f"{self.name}_part{p.number} parts[{_PARTS}];")
        w.line(f"a.parts{p.number} = parts;")
        w.line(f"const i64 least = nj_size_max(grain, n / {_PARTS} + 1);")
        w.line("const int chunks = n > least ? api->chunks(n, least) : n > 0;")
        self.run(f"p{p.number}", grain="least")
        with w.block("for (int c = 0; c < chunks; ++c)"):
            cells = iter(into)
            for f in p.folds:
                own = [next(cells) for _ in f.cells]
                w.lines(f.take(own, [f"parts[c].{name}" for _, name in f.cells]))


def _taken(f: Fold, into: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Statements that fold cells into cells."""
    names = [name for _, name in f.cells]
    return f.take([into[name] for name in names], [given[name] for name in names])
