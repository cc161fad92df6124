"""One kernel as a Python function for Numba.

In: a `Kernel`, and whether it reduces along strided axes. Out: the function's source. The loops
are those of the kernel: outer axes, then phase by phase the inner ones; `by_columns` puts the last
outer axis inside the inner ones, with an array over it for each value that outlives its loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from npjit.codegen.cpp_phase import Levels
from npjit.codegen.cpp_statements import Statements
from npjit.codegen.cpp_types import ctype, factor, size
from npjit.codegen.numba_fold import NumbaFold
from npjit.codegen.numba_text import NumbaPhase, NumbaValues
from npjit.schedule.kernel import Kernel, Phase, Reduce

# values that are added up before their sum goes into the cascade
_BLOCK = 128


class NumbaKernel:
    """Prints one kernel's function."""

    def __init__(self, kernel: Kernel, name: str, by_columns: bool) -> None:
        self.kernel = kernel
        self.name = name
        self.values = NumbaValues(kernel)
        # the axis inside the inner loops
        self.lane = kernel.outer[-1] if by_columns else -1
        self.in_lanes: set[int] = set()
        # those that later phases use, reductions aside
        self.kept: list[int] = []
        self.lines: list[str] = []
        self.depth = 0

    def print(self) -> str:
        """The function's source."""
        self.line('@numba.njit(error_model="numpy")')
        with self.block(f"def {self.name}({', '.join(self._arguments())})"):
            outer = self.kernel.outer[:-1] if self.lane >= 0 else self.kernel.outer
            phases = self._phases()
            self._arrays(phases)
            for _, printed in phases:
                self.add(printed.levels[-1])
            with self.loops(outer):
                for phase, printed in phases:
                    self._phase(phase, printed)
        return "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def add(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.line(text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(f"{head}:")
        before = len(self.lines)
        self.depth += 1
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    @contextmanager
    def loops(self, axes: Sequence[int]) -> Iterator[None]:
        """Loops over whole axes."""
        with ExitStack() as stack:
            for axis in axes:
                head = f"for x{axis} in range({self._extent(axis)})"
                stack.enter_context(self.block(head))
            yield

    def _extent(self, axis: int) -> str:
        return size(self.kernel.axes[axis].extent)

    def _arguments(self) -> list[str]:
        found = []
        for i, b in enumerate(self.kernel.buffers):
            if b.role != "row":
                found += [f"mem{i}", f"at{i}"]
        found += [f"s{i}" for i in range(self.kernel.sizes)]
        return found + [f"arg{i}" for i in range(len(self.kernel.scalars))]

    def _phases(self) -> list[tuple[Phase, Statements]]:
        level: dict[int, int] = {}
        found = []
        for phase in self.kernel.phases:
            axes = [*phase.axes] + ([self.lane] if self.lane >= 0 else [])
            loops = [[a] for a in axes]
            inner = len(loops)
            earlier = {n: inner if n in self.in_lanes else k for n, k in level.items()}
            scale = f"({self._extent(self.lane)})" if self.lane >= 0 else ""
            levels = Levels(loops, earlier, scale, f"x{self.lane}")
            printer = NumbaPhase(self.values, phase, levels)
            printed = printer.print()
            own = {n: printer.level[n] for n, _ in phase.body}
            if self.lane >= 0:
                self.in_lanes |= {n for n, k in own.items() if k == inner}
            level |= {n: min(k, 0) for n, k in own.items()}
            found.append((phase, printed))
        return found

    def _arrays(self, phases: Sequence[tuple[Phase, Statements]]) -> None:
        """Row buffers, sums of blocks, and values kept for each lane."""
        lanes = self._extent(self.lane) if self.lane >= 0 else "1"
        for i, b in enumerate(self.kernel.buffers):
            if b.role == "row":
                self.line(
                    f"mem{i} = np.empty({factor(b.length)} * {_factor(lanes)}, {ctype(b.dtype)})"
                )
        for _, printed in phases:
            for number, instr in printed.reduces:
                fold = NumbaFold(number, instr, self.values)
                if self.lane >= 0:
                    self.add(fold.arrays(lanes))
                elif fold.blocked:
                    self.line(f"level{number} = np.zeros(64, {fold.kind})")
        used = dict.fromkeys(n for _, p in phases for n in p.imported if n in self.in_lanes)
        reduced = {n for _, p in phases for n, _ in p.reduces}
        self.kept = [n for n in used if n not in reduced]
        for number in self.kept:
            self.line(f"keep{number} = np.empty({lanes}, {ctype(self.values.dtype(number))})")

    # ------------------------------------------------------------ phases

    def _phase(self, phase: Phase, printed: Statements) -> None:
        folds = [NumbaFold(n, i, self.values) for n, i in printed.reduces]
        if self.lane >= 0:
            self._lane_phase(phase, printed, folds)
            return
        self.add(printed.levels[0])
        for f in folds:
            self.add(f.start(f.blocked))
        with self._nest(phase.axes[:-1], printed):
            if phase.axes:
                self._innermost(phase, printed.levels[len(phase.axes)], folds)
        for f in folds:
            self.add(f.finish(f.blocked))

    @contextmanager
    def _nest(self, axes: Sequence[int], printed: Statements) -> Iterator[None]:
        """Loops over inner axes, each with the statements of its level."""
        with ExitStack() as stack:
            for i, axis in enumerate(axes):
                stack.enter_context(self.loops([axis]))
                self.add(printed.levels[i + 1])
            yield

    def _innermost(self, phase: Phase, text: Sequence[str], folds: Sequence[NumbaFold]) -> None:
        axis = phase.axes[-1]
        blocked = [f for f in folds if f.blocked]
        extent = self._extent(axis)
        bounds = extent
        if blocked:
            self.line(f"for from{axis} in range(0, {extent}, {_BLOCK}):")
            self.depth += 1
            for f in blocked:
                self.line(f"acc{f.number} = {f.kind}(0)")
            bounds = f"from{axis}, min(from{axis} + {_BLOCK}, {extent})"
        with self.block(f"for x{axis} in range({bounds})"):
            self.add(text)
            for f in folds:
                self.add(f.take("", self._position(phase)))
        for f in blocked:
            n = f.number
            self.line(f"count{n} = nj_push(level{n}, count{n}, acc{n})")
        self.depth -= 1 if blocked else 0

    def _position(self, phase: Phase) -> str:
        text = f"x{phase.axes[0]}" if phase.axes else "0"
        for axis in phase.axes[1:]:
            text = f"({text}) * {_factor(self._extent(axis))} + x{axis}"
        return text

    def _lane_phase(self, phase: Phase, printed: Statements, folds: Sequence[NumbaFold]) -> None:
        lane = f"x{self.lane}"
        self.add(printed.levels[0])
        if folds:
            with self.loops([self.lane]):
                for f in folds:
                    self.add(f.start(False, f"[{lane}]"))
        with self._nest(phase.axes, printed), self.loops([self.lane]):
            for number in printed.imported:
                if number in self.in_lanes:
                    self._import(number)
            self.add(printed.levels[len(phase.axes) + 1])
            for f in folds:
                self.add(f.take(f"[{lane}]", self._position(phase)))
            for number, _ in phase.body:
                if number in self.kept:
                    self.line(f"keep{number}[{lane}] = v{number}")

    def _import(self, number: int) -> None:
        instr = self.values.instructions[number]
        if isinstance(instr, Reduce):
            self.add(NumbaFold(number, instr, self.values).finish(False, f"[x{self.lane}]"))
        else:
            self.line(f"v{number} = keep{number}[x{self.lane}]")


def _factor(shown: str) -> str:
    """An expression fit to stand beside `*`."""
    return shown if shown.isalnum() else f"({shown})"
