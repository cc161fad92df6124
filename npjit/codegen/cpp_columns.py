"""Kernels that reduce along strided axes as C++: the form COLUMNS (see `cpp_form`).

In: a `Kernel` whose last outer axis has unit stride. Out: its functions. Vector loops run along
that axis, the inner axes around them, and what differs from lane to lane and outlives its loop has
an array over the lanes:

    for x0: for lanes { acc1[x1 - from] = acc1[x1 - from] + mem0[s1*x0 + x1]; }
    for lanes { mem1[x1] = acc1[x1 - from]; }

One function for each phase does a strip of lanes for a range of inner steps. Two drivers call them:
with many lanes each thread takes strips of its own; with few (see `cpp_tall`) the threads share the
steps of each phase. Sums of floats go into a second array every 128 steps, to keep errors small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from npjit.codegen.cpp_form import per_item
from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_phase import Levels, PhasePrinter
from npjit.codegen.cpp_reduce import Fold, fold
from npjit.codegen.cpp_statements import Statements, versions
from npjit.codegen.cpp_types import factor, size, stored
from npjit.codegen.cpp_values import operands
from npjit.core.size import product
from npjit.schedule.kernel import Kernel, Phase, Reduce, extents

# most lanes of a strip, and fewest that pay when the strip should stay in the cache
WIDEST = 4096
NARROWEST = 512
# bytes of a strip that several phases read
_CACHE = 1 << 22
# steps that are added up before they go into the total
_STEPS = 128


@dataclass(frozen=True)
class ColumnsPhase:
    """A phase with its number, its statements and its folds."""

    number: int
    phase: Phase
    printed: Statements
    folds: Sequence[Fold]


class ColumnsPrinter(KernelPrinter):
    """Vector loops over lanes inside the loops over the inner axes."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        super().__init__(kernel, name)
        self.axis = kernel.outer[-1]
        # values that differ from lane to lane
        self.lane: set[int] = set()
        self.phases = self._phases()
        used = [n for p in self.phases for n in p.printed.imported if n in self.lane]
        reduced = [f.number for p in self.phases for f in p.folds]
        self.kept = list(dict.fromkeys([*reduced, *used]))
        self.row_buffers = [(i, b) for i, b in enumerate(kernel.buffers) if b.role == "row"]

    def print(self) -> str:
        self.struct()
        with self.writer.block(f"struct {self.name}_lanes", "};"):
            self.writer.lines(f"{kind}* {name};" for kind, name in self.arrays_of_lanes())
            self.writer.lines(f"{stored(b.dtype)}* mem{i};" for i, b in self.row_buffers)
            self.writer.line("i64 width;")
        for p in self.phases:
            self._function(p)
        self._carve()
        self.near_functions()
        self._strips()
        self.shared_functions()
        with self.launcher():
            self.writer.line(self.packed())
            self.share(self.kernel.outer, per_item(self.kernel, self.kernel.phases))
            self.launch_shared()
            self.run("chunk")
        return str(self.writer)

    def near_functions(self) -> None:
        """Functions for work that is small enough to lie near."""

    def strip_near(self) -> bool:
        """The text of a chunk that runs those, and returns, when they pay; whether they always
        do."""
        return False

    def shared_functions(self) -> None:
        """Functions for threads that share a phase's steps."""

    def launch_shared(self) -> None:
        """The launcher's text that runs those, and returns, when they pay."""

    def _phases(self) -> list[ColumnsPhase]:
        level: dict[int, int] = {}
        found = []
        for number, phase in enumerate(self.kernel.phases):
            loops = [phase.axes, [self.axis]] if phase.axes else [[self.axis]]
            earlier = {n: len(loops) if n in self.lane else k for n, k in level.items()}
            levels = Levels(loops, earlier, "width", "lane", self.axis)
            printer = PhasePrinter(self.values, phase, levels)
            printed = printer.print()
            own = {n: printer.level[n] for n, _ in phase.body}
            self.lane |= {n for n, k in own.items() if k == len(loops)}
            level |= {n: min(k, 0) for n, k in own.items()}
            folds = [fold(n, i, self.values) for n, i in printed.reduces]
            found.append(ColumnsPhase(number, phase, printed, folds))
        return found

    # ------------------------------------------------------------ arrays over the lanes

    def arrays_of_lanes(self) -> list[tuple[str, str]]:
        return [array for number in self.kept for array in self._arrays_of(number)]

    def _arrays_of(self, number: int) -> list[tuple[str, str]]:
        """(type, name) of a kept value's arrays."""
        instr = self.values.instructions[number]
        if isinstance(instr, Reduce):
            made = fold(number, instr, self.values)
            totals = [(kind, _total(name)) for kind, name in made.cells if self._is_blocked(made)]
            return made.cells + totals
        kind = stored(self.values.dtype(number))
        return [(kind, lane_array(name)) for _, name in self.values.names(number)]

    def _is_blocked(self, made: Fold) -> bool:
        """Whether a sum has so many steps that it is added up in blocks."""
        phase = next(p for p in self.kernel.phases if any(n == made.number for n, _ in p.body))
        steps = product(extents(self.kernel, phase.axes))
        is_short = isinstance(steps, int) and steps <= _STEPS
        return made.style == "sum" and made.accumulator.kind in "fc" and not is_short

    def results(self, made: Fold) -> list[str]:
        """The arrays that hold a fold's cells after its phase."""
        blocked = self._is_blocked(made)
        return [_total(name) if blocked else name for _, name in made.cells]

    def _carve(self) -> None:
        """A function that lays the arrays out behind `at` and says how many bytes they take."""
        w = self.writer
        lanes = f"{self.name}_lanes"
        head = (
            f"static i64 {self.name}_carve(const {self.name}_args& a, {lanes}& w, char* at, i64 n)"
        )
        with w.block(head):
            w.line("char* const start = at;")
            self.locals()
            w.line("w.width = (n + 63) / 64 * 64;")
            for kind, name in self.arrays_of_lanes():
                w.line(f"w.{name} = ({kind}*)at;")
                w.line(f"at += w.width * sizeof({kind});")
            for i, b in self.row_buffers:
                w.line(f"w.mem{i} = ({stored(b.dtype)}*)at;")
                w.line(f"at += w.width * sizeof({stored(b.dtype)}) * {factor(b.length)};")
            w.line("return at - start;")

    # ------------------------------------------------------------ one phase

    def _function(self, p: ColumnsPhase) -> None:
        """The function of a phase: lanes from .. to, inner steps begin .. end."""
        w = self.writer
        lanes = f"const {self.name}_lanes&"
        fixed = "".join(f", i64 x{axis}" for axis in self.kernel.outer[:-1])
        given = f"const {self.name}_args& a, {lanes} seen, {lanes} own, i64 from, i64 to"
        with w.block(f"static void {self.name}_p{p.number}({given}, i64 begin, i64 end{fixed})"):
            self.locals()
            self._pointers(p)
            for number in self._repeated(p):
                w.lines(self._definition(number))
            w.lines([*p.printed.levels[-1], *p.printed.levels[0]])
            for head, (printed,) in versions([p.printed]):
                with w.block(head) if head else nullcontext():
                    self._loops(replace(p, printed=printed))

    def _loops(self, p: ColumnsPhase) -> None:
        self._start(p)
        if p.phase.axes:
            self._steps(p)
        else:
            self._lane_loop(p)

    def _repeated(self, p: ColumnsPhase) -> list[int]:
        """Values of earlier phases, equal for all lanes, that this function must compute again."""
        found: set[int] = set()
        wanted = [n for n in p.printed.imported if n not in self.lane]
        while wanted:
            number = wanted.pop()
            if number not in found and self._definition(number):
                found.add(number)
                wanted += operands(self.values.instructions[number])
        return sorted(found)

    def _definition(self, number: int) -> list[str]:
        return next((d[number] for p in self.phases if number in (d := p.printed.definitions)), [])

    def _pointers(self, p: ColumnsPhase) -> None:
        """Local names of the arrays that a phase touches."""
        w = self.writer
        w.declare("i64", "width", "own.width")
        for i, b in self.row_buffers:
            w.declare(f"{stored(b.dtype)}*", f"mem{i}", f"own.mem{i}")
        for number in self.kept:
            made_here = any(n == number for n, _ in p.phase.body)
            if made_here or self.is_seen(number, p):
                source = "own" if made_here else "seen"
                for kind, name in self._arrays_of(number):
                    w.declare(f"{kind}*", name, f"{source}.{name}")

    def is_seen(self, number: int, p: ColumnsPhase) -> bool:
        """Whether a phase touches the array of an earlier one's value."""
        return number in p.printed.imported

    def _steps(self, p: ColumnsPhase) -> None:
        """The loops over the inner axes, and the block sums."""
        w = self.writer
        axes = p.phase.axes
        sums = [name for f in p.folds if self._is_blocked(f) for _, name in f.cells]
        if sums:
            w.line("i64 count = 0;")
        self.decode(axes, f"x{axes[-1]}")
        with w.block("for (i64 t = begin; t < end; ++t)"):
            w.lines(p.printed.levels[1])
            self.before_lanes(p)
            self._lane_loop(p)
            if sums:
                with w.block(f"if (++count == {_STEPS})"):
                    w.line("count = 0;")
                    self._add(sums, restart=True)
            self.carry(axes)
        if sums:
            self._add(sums, restart=False)

    def _lane_loop(self, p: ColumnsPhase) -> None:
        """The vector loop over the lanes, for one step of the inner axes."""
        w = self.writer
        reduced = {f.number for f in p.folds}
        spilled = [n for n, _ in p.phase.body if n in self.kept and n not in reduced]
        text = p.printed.levels[2 if p.phase.axes else 1]
        behind = self.handed_on(p)
        if not (text or spilled or behind or p.folds):
            return
        with self._lanes():
            for number in p.printed.imported:
                if number in self.lane:
                    w.lines(self._import(number))
            w.lines(text)
            for f in p.folds:
                cells = [self._at(name) for _, name in f.cells]
                w.lines(f.take(cells, f.items(self.position(p.phase.axes))))
            for number in spilled:
                names = [name for _, name in self.values.names(number)]
                w.lines(f"{self._at(lane_array(name))} = {name};" for name in names)
            w.lines(behind)

    def before_lanes(self, p: ColumnsPhase) -> None:
        """Text in front of each step's loop over the lanes."""

    def handed_on(self, p: ColumnsPhase) -> list[str]:
        """Statements that leave something to the next step of a phase, lane by lane."""
        return []

    @contextmanager
    def _lanes(self) -> Iterator[None]:
        self.writer.line("#pragma omp simd")
        # the count is a constant where a strip is, which the ends are not to the compiler
        with self.writer.block("for (i64 lane = 0; lane < to - from; ++lane)"):
            self.writer.line(f"const i64 x{self.axis} = from + lane;")
            yield

    def _at(self, array: str) -> str:
        """An array's element of the current lane."""
        return f"{array}[lane]"

    def _import(self, number: int) -> list[str]:
        """Declare a lane's value from its array."""
        instr = self.values.instructions[number]
        if isinstance(instr, Reduce):
            made = fold(number, instr, self.values)
            return made.finish([self._at(name) for name in self.results(made)])
        names = self.values.names(number)
        return [f"const {kind} {name} = {self._at(lane_array(name))};" for kind, name in names]

    def _start(self, p: ColumnsPhase) -> None:
        """Set the cells of every lane to their initial values."""
        if not p.folds:
            return
        with self._lanes():
            for f in p.folds:
                starts = zip(f.cells, f.initial(), strict=True)
                self.writer.lines(f"{self._at(name)} = {start};" for (_, name), start in starts)
                if self._is_blocked(f):
                    self.writer.lines(f"{self._at(name)} = 0;" for name in self.results(f))

    def _add(self, sums: Sequence[str], restart: bool) -> None:
        """Add the block sums to the totals."""
        with self._lanes():
            for name in sums:
                self.writer.line(f"{self._at(_total(name))} += {self._at(name)};")
                if restart:
                    self.writer.line(f"{self._at(name)} = 0;")

    # ------------------------------------------------------------ strips

    def _strips(self) -> None:
        """The function of a thread that does all phases for strips of its own lanes."""
        w = self.writer
        with self.chunk("_chunk"):
            w.line(f"const {self.name}_args& a = *(const {self.name}_args*)context;")
            self.locals()
            if self.strip_near():
                return
            w.line(f"const i64 most = nj_size_min(end - begin, {self.strip_width()});")
            w.line(f"{self.name}_lanes w;")
            bytes_needed = f"{self.name}_carve(a, w, nullptr, most)"
            w.line(f"{self.name}_carve(a, w, (char*)api->scratch({bytes_needed}), most);")
            self.segments(self.kernel.outer, self._strip)

    def _strip(self, low: str, high: str) -> None:
        w = self.writer
        fixed = "".join(f", x{axis}" for axis in self.kernel.outer[:-1])
        with w.block(f"for (i64 from = {low}; from < {high}; from += most)"):
            w.line(f"const i64 to = nj_size_min(from + most, {high});")
            for p in self.phases:
                steps = self.steps(p)
                w.line(f"{self.name}_p{p.number}(a, w, w, from, to, 0, {steps}{fixed});")

    def steps(self, p: ColumnsPhase) -> str:
        """How many steps the inner loops of a phase have."""
        return size(product(extents(self.kernel, p.phase.axes)))

    def strip_width(self) -> str:
        """Lanes of a strip: fewer when several phases should find it in the cache."""
        looping = [p for p in self.phases if p.phase.axes]
        if len(looping) == 1 and not self.row_buffers:
            return str(WIDEST)
        item = max(b.dtype.itemsize for b in self.kernel.buffers)
        fitting = f"{_CACHE // item} / nj_size_max(1, {self.steps(looping[0])})"
        least = 64 if self.row_buffers else NARROWEST
        return f"nj_size_max({least}, nj_size_min({WIDEST}, {fitting} / 64 * 64))"


def lane_array(name: str) -> str:
    """The array over the lanes for the variable v5, v5r or v5i."""
    return f"lane{name[1:]}"


def _total(name: str) -> str:
    """The array of totals for the cell acc5, acc5r or acc5i."""
    return f"total{name[3:]}"
