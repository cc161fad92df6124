"""Kernels that reduce along strided axes as C++: the form COLUMNS (see `cpp_form`).

In: a `Kernel` whose last outer axis has unit stride. Out: its functions. The last outer axis is cut in strips; every
value that differs from lane to lane and outlives its loop has an array over the strip:

    for strips of axis 1: for x0: for the strip { acc1[lane] = acc1[lane] + mem0[s1*x0 + x1]; }
                          for the strip { mem1[x1] = acc1[lane]; }

Sums of floating-point numbers are added to a second array every 128 rows, so that errors stay small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from npjit.codegen.cpp_outer import OuterPrinter
from npjit.codegen.cpp_phase import Levels, PhasePrinter, Statements
from npjit.codegen.cpp_reduce import Fold, fold
from npjit.codegen.cpp_types import size, stored
from npjit.core.size import product
from npjit.schedule.kernel import Kernel, Phase, Reduce, extents

# lanes of a strip at most, and rows that are added up before they go into the total
_STRIP = 256
_ROWS = 128
# bytes of a strip that several phases read: it should stay in a core's cache
_CACHE = 1 << 19


class ColumnsPrinter(OuterPrinter):
    """Strips of the last outer axis: a cell per lane, the inner loops outside the vector loop."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        super().__init__(kernel, name)
        self.axis = kernel.outer[-1]
        # values that differ from lane to lane
        self.lane: set[int] = set()

    def body(self) -> None:
        w = self.writer
        self._width()
        self.rows("width")
        found = self._statements()
        kept = self._kept(found)
        for printed in found:
            w.lines(printed.levels[-1])

        def inside(low: str, high: str) -> None:
            start = f"from{self.axis}"
            with w.block(f"for (i64 {start} = {low}; {start} < {high}; {start} += width)"):
                w.line(f"const i64 m = nj_size_min(width, {high} - {start});")
                for number in kept:
                    w.lines(f"{kind} {name}[{_STRIP}];" for kind, name in self._arrays(number))
                for phase, printed in zip(self.kernel.phases, found, strict=True):
                    self._phase(phase, printed, kept)

        self.segments(self.kernel.outer, inside)

    def _width(self) -> None:
        """Lanes per strip; few when several phases should find the strip in the cache."""
        looping = [p for p in self.kernel.phases if p.axes]
        if len(looping) == 1:
            self.writer.line(f"const i64 width = {_STRIP};")
            return
        item = max(b.dtype.itemsize for b in self.kernel.buffers)
        steps = size(product(extents(self.kernel, looping[0].axes)))
        fitting = f"{_CACHE // item} / nj_size_max(1, {steps}) / 16 * 16"
        self.writer.line(f"const i64 width = nj_size_max(16, nj_size_min({_STRIP}, {fitting}));")

    def _statements(self) -> list[Statements]:
        """Every phase's statements; the lanes are the innermost loop of each."""
        level: dict[int, int] = {}
        found = []
        for phase in self.kernel.phases:
            axes = [*phase.axes, self.axis]
            earlier = {n: len(axes) if n in self.lane else k for n, k in level.items()}
            levels = Levels(axes, earlier, "width", f"(x{self.axis} - from{self.axis})")
            printer = PhasePrinter(self.values, phase, levels)
            found.append(printer.print())
            own = {n: printer.level[n] for n, _ in phase.body if n in printer.level}
            self.lane |= {n for n, k in own.items() if k == len(axes)}
            level |= {n: min(k, 0) for n, k in own.items()}
        return found

    def _kept(self, found: Sequence[Statements]) -> list[int]:
        """Values with an array over the strip: reductions, and what later phases use."""
        kept = dict.fromkeys(n for printed in found for n, _ in printed.reduces)
        kept |= dict.fromkeys(n for p in found for n in p.imported if n in self.lane)
        return list(kept)

    def _arrays(self, number: int) -> list[tuple[str, str]]:
        """(type, name) of a kept value's arrays."""
        instr = self.values.instructions[number]
        if isinstance(instr, Reduce):
            made = fold(number, instr, self.values)
            totals = [(kind, _total(name)) for kind, name in made.cells if self._is_blocked(made)]
            return made.cells + totals
        kind = stored(self.values.dtype(number))
        return [(kind, _array(name)) for _, name in self.values.names(number)]

    def _is_blocked(self, made: Fold) -> bool:
        """Whether a sum has so many rows that it is added up in blocks."""
        phase = next(p for p in self.kernel.phases if any(n == made.number for n, _ in p.body))
        steps = product(extents(self.kernel, phase.axes))
        is_short = isinstance(steps, int) and steps <= _ROWS
        return made.style == "sum" and made.accumulator.kind in "fc" and not is_short

    @contextmanager
    def _lanes(self) -> Iterator[None]:
        name, start = f"x{self.axis}", f"from{self.axis}"
        self.writer.line("#pragma omp simd")
        with self.writer.block(f"for (i64 {name} = {start}; {name} < {start} + m; ++{name})"):
            yield

    def _at(self, array: str) -> str:
        return f"{array}[x{self.axis} - from{self.axis}]"

    # ------------------------------------------------------------ phases

    def _phase(self, phase: Phase, printed: Statements, kept: Sequence[int]) -> None:
        w = self.writer
        folds = [fold(n, i, self.values) for n, i in printed.reduces]
        sums = [name for f in folds if self._is_blocked(f) for _, name in f.cells]
        text = printed.levels.pop(len(phase.axes) + 1, [])
        spilled = [n for n, _ in phase.body if n in kept and n not in {f.number for f in folds}]
        self._start(folds, sums)
        counter = f"count{folds[0].number}" if folds else ""

        def inside() -> None:
            if text or folds or spilled:
                self._row(phase, printed.imported, text, folds, spilled)
            if sums:
                with w.block(f"if (++{counter} == {_ROWS})"):
                    self._add(sums, f"{counter} = 0;")

        if sums:
            w.line(f"i64 {counter} = 0;")
        self.nest(phase.axes, printed, 0, inside)
        if sums:
            self._add(sums, "")

    def _row(
        self,
        phase: Phase,
        imported: Sequence[int],
        text: Sequence[str],
        folds: Sequence[Fold],
        spilled: Sequence[int],
    ) -> None:
        """The vector loop over the strip for one step of the inner loops."""
        w = self.writer
        with self._lanes():
            for number in imported:
                if number in self.lane:
                    w.lines(self._import(number))
            w.lines(text)
            for f in folds:
                cells = [self._at(name) for _, name in f.cells]
                w.lines(f.take(cells, f.items(self.position(phase.axes))))
            for number in spilled:
                names = [name for _, name in self.values.names(number)]
                w.lines(f"{self._at(_array(name))} = {name};" for name in names)

    def _import(self, number: int) -> list[str]:
        """Declare a lane's value from its array."""
        instr = self.values.instructions[number]
        if isinstance(instr, Reduce):
            made = fold(number, instr, self.values)
            cells = [_total(name) if self._is_blocked(made) else name for _, name in made.cells]
            return made.finish([self._at(name) for name in cells])
        names = self.values.names(number)
        return [f"const {kind} {name} = {self._at(_array(name))};" for kind, name in names]

    def _start(self, folds: Sequence[Fold], sums: Sequence[str]) -> None:
        """Set the cells of every lane to their initial values."""
        if not folds:
            return
        with self._lanes():
            for f in folds:
                starts = zip(f.cells, f.initial(), strict=True)
                self.writer.lines(f"{self._at(name)} = {start};" for (_, name), start in starts)
            self.writer.lines(f"{self._at(_total(name))} = 0;" for name in sums)

    def _add(self, sums: Sequence[str], restart: str) -> None:
        """Add the block sums to the totals; start over when `restart` says how."""
        if restart:
            self.writer.line(restart)
        with self._lanes():
            for name in sums:
                self.writer.line(f"{self._at(_total(name))} += {self._at(name)};")
                if restart:
                    self.writer.line(f"{self._at(name)} = 0;")


def _array(name: str) -> str:
    """The array over the strip for the variable v5, v5r or v5i."""
    return f"lane{name[1:]}"


def _total(name: str) -> str:
    """The array of totals for the cell acc5, acc5r or acc5i."""
    return f"total{name[3:]}"
