"""Reductions over pairs, such as distances of all rows of two arrays: every thread does a block of
results.

In: a `Kernel` with one looping phase whose loads depend on one of the last two outer axes each.
Out: one function, and those of another form for small extents. A block of threads goes through the
reduced axis in steps of DEPTH, puts what its rows and columns need in shared memory, and each
thread combines SIDE x SIDE pairs from there, so memory is read once for many results:

    __shared__ f32 tile0[DEPTH][16 * SIDE + 1], tile1[DEPTH][16 * SIDE + 1];
    for (...) for (...) { const f32 v0 = tile0[step][...]; const f32 v1 = tile1[step][...]; ... }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from npjit.codegen.cpp_reduce import Fold
from npjit.codegen.cpp_values import operands
from npjit.codegen.cuda_kernel import BLOCK, CudaPrinter, merged
from npjit.codegen.cuda_lanes import LanePrinter, element_type, levels_of, whole_of
from npjit.codegen.cuda_launch import Configured, Request, Start, up
from npjit.codegen.cuda_steps import cut
from npjit.schedule.kernel import Const, Instr, Kernel, Load, Phase, Store

# threads of a block along each of the two axes, and steps of the reduced axis in shared memory
_THREADS = 16
_DEPTH = 16
# a longer sum would lose more bits than NumPy's
_LONGEST = 256
# an extent below this leaves most of a block idle
_LEAST = 48


class BlockedPrinter(CudaPrinter):
    """See the module's docstring."""

    def __init__(self, kernel: Kernel, name: str, plain: CudaPrinter) -> None:
        super().__init__(kernel, name)
        self.plain = plain
        self.leading, (self.step,) = cut(kernel)

    def print(self) -> str:
        w = self.writer
        row, column = self.kernel.outer[-2:]
        assert self.step.loop is not None
        loop = self.step.loop
        (deep,) = loop.axes
        printer = LanePrinter(self.values, loop, levels_of((deep, row, column), {}), self.slots)
        loads = staged_loads(loop, row, column, deep)
        printer.ready |= {
            n: f"tile{n}[step][{'row' if axis == row else 'column'}]" for n, axis in loads.items()
        }
        printed = printer.print()
        folds = self.folds(printer)
        struct = f"{self.name}_fold"
        self.fold_struct(struct, folds)
        with self.function("_blocked", ", i32 SIDE"):
            self.unpack()
            w.line(f"const i32 wide = {_THREADS} * SIDE;")
            for n in loads:
                kind = element_type(printer.values.dtype(n))
                w.line(f"__shared__ {kind} tile{n}[{_DEPTH}][wide + 1];")
            self._place(row, column)
            w.lines([*printed.levels[-1], *printed.levels[0]])
            w.line(f"{struct} total[SIDE][SIDE];")
            self._pairs("total[r][c].start();")
            with w.block(
                f"for (idx from{deep} = 0; from{deep} < {self.extent(deep)};"
                f" from{deep} += {_DEPTH})"
            ):
                w.line("__syncthreads();")
                for n, axis in loads.items():
                    self._stage(printer, n, axis, deep)
                w.line("__syncthreads();")
                self._combine(printer, folds, deep, row, column)
            self._finish(folds, row, column)
        return f"{w}\n{self.plain.print()}"

    def _place(self, row: int, column: int) -> None:
        """The block of results, and the thread's first one."""
        w = self.writer
        w.line(f"const i32 right = threadIdx.x % {_THREADS};")
        w.line(f"const i32 down = threadIdx.x / {_THREADS};")
        w.line("idx tile = blockIdx.x;")
        for axis in (column, row):
            w.line(f"const idx tiles{axis} = ({self.extent(axis)} + wide - 1) / wide;")
            w.line(f"const idx from{axis} = tile % tiles{axis} * wide;")
            w.line(f"tile /= tiles{axis};")
        self.decode(self.kernel.outer[:-2], "tile")

    def _stage(self, printer: LanePrinter, number: int, axis: int, deep: int) -> None:
        """Fill a tile; neighbouring threads go along the axis on which the load has unit stride."""
        w = self.writer
        instr = printer.values.instructions[number]
        assert isinstance(instr, Load)
        element = whole_of(printer.elements(instr), instr.dtype)
        along = dict(instr.access.strides).get(deep, 0) == 1
        place, step = (f"n / {_DEPTH}", f"n % {_DEPTH}") if along else ("n % wide", "n / wide")
        kind = element_type(instr.dtype)
        w.line("#pragma unroll")
        with w.block(f"for (i32 n = threadIdx.x; n < wide * {_DEPTH}; n += {BLOCK})"):
            w.line(f"const idx x{axis} = from{axis} + {place};")
            w.line(f"const idx x{deep} = from{deep} + {step};")
            inside = f"x{axis} < {self.extent(axis)} && x{deep} < {self.extent(deep)}"
            w.line(f"tile{number}[{step}][{place}] = {inside} ? {element} : {kind}();")

    def _combine(
        self, printer: LanePrinter, folds: Sequence[Fold], deep: int, row: int, column: int
    ) -> None:
        w = self.writer
        levels = printer.out.levels
        w.line(f"const i32 steps = nj_size_min({_DEPTH}, {self.extent(deep)} - from{deep});")
        with w.block("for (i32 step = 0; step < steps; ++step)"):
            w.line(f"const idx x{deep} = from{deep} + step;")
            w.lines(levels[1])
            with self._each_pair(row, column):
                w.line("const nj_full count;")
                w.line("const i32 lane = 0;")
                w.lines([*levels[2], *levels[3]])
                w.lines(self.takes(folds, printer.phase, "total[r][c]"))

    @contextmanager
    def _each_pair(self, row: int, column: int) -> Iterator[None]:
        """Loops over the thread's pairs, with their indices."""
        w = self.writer
        w.lines(["#pragma unroll", "for (i32 r = 0; r < SIDE; ++r)", "#pragma unroll"])
        with w.block("for (i32 c = 0; c < SIDE; ++c)"):
            w.line(f"const i32 row = down + {_THREADS} * r;")
            w.line(f"const i32 column = right + {_THREADS} * c;")
            w.line(f"const idx x{row} = from{row} + row;")
            w.line(f"const idx x{column} = from{column} + column;")
            yield

    def _pairs(self, line: str) -> None:
        w = self.writer
        w.lines(["#pragma unroll", "for (i32 r = 0; r < SIDE; ++r)", "#pragma unroll"])
        w.line(f"for (i32 c = 0; c < SIDE; ++c) {line}")

    def _finish(self, folds: Sequence[Fold], row: int, column: int) -> None:
        """What follows for each pair that there is."""
        w = self.writer
        every = {n: 2 for p in self.kernel.phases for n, _ in p.body}
        phase = merged([*self.leading, self.step.finish])
        last = LanePrinter(self.values, phase, levels_of((row, column), every), self.slots)
        last.print()
        with self._each_pair(row, column):
            inside = f"x{row} < {self.extent(row)} && x{column} < {self.extent(column)}"
            with w.block(f"if ({inside})"):
                w.line("const nj_full count;")
                w.line(f"const idx start{column} = x{column};")
                w.lines([*last.out.levels[-1], *last.out.levels[0]])
                self.lanes(last.out, last.moves, column, self.finish(folds, "total[r][c]"))

    # ------------------------------------------------------------ launches

    def configure(self, request: Request) -> Configured:
        assert self.step.loop is not None
        row, column = self.kernel.outer[-2:]
        deep = request.items(self.step.loop.axes)
        extents = [request.extent(row), request.extent(column)]
        if min(extents) < _LEAST or not 0 < deep <= _LONGEST:
            return self.plain.configure(request)
        side = self._side()
        tiles = request.items(self.kernel.outer[:-2])
        for extent in extents:
            tiles *= up(extent, _THREADS * side)
        function = f"{self.name}_blocked<{request.index_type()}, 1, 0, {side}>"
        return Configured((Start(function, (tiles, 1), BLOCK),) if tiles else ())

    def _side(self) -> int:
        """Results of a thread along each axis: as many as registers hold."""
        assert self.step.loop is not None
        loop = self.step.loop
        widths = [i.dtype.itemsize for _, i in loop.body if hasattr(i, "dtype")]
        return 8 if max(widths) <= 4 and len(self.step.loop.body) < 12 else 4


def staged_loads(loop: Phase, row: int, column: int, deep: int) -> dict[int, int]:
    """Loads that depend on the reduced axis and on one of the two others, which is given."""
    found = {}
    for number, instr in loop.body:
        if isinstance(instr, Load):
            strides = {a: s for a, s in instr.access.strides if s != 0}
            pair = [a for a in (row, column) if a in strides]
            if deep in strides and len(pair) == 1:
                found[number] = pair[0]
    return found


def is_paired(kernel: Kernel) -> bool:
    """Whether a kernel reduces something of two outer axes whose loads depend on one of them
    each."""
    looping = [p for p in kernel.phases if p.axes]
    if len(kernel.outer) < 2 or len(looping) != 1 or len(looping[0].axes) != 1:
        return False
    (loop,) = looping
    row, column = kernel.outer[-2:]
    own = {n for n, _ in loop.body}
    for _, instr in loop.body:
        if isinstance(instr, Store) or any(b.role == "row" for b in kernel.buffers):
            return False
        if isinstance(instr, Load):
            strides = {a for a, s in instr.access.strides if s != 0}
            if instr.within or instr.access.gathers or {row, column} <= strides:
                return False
        if not _is_local(instr, own, kernel):
            return False
    return len(set(staged_loads(loop, row, column, loop.axes[0]).values())) == 2


def _is_local(instr: Instr, own: set[int], kernel: Kernel) -> bool:
    """Whether an instruction uses values of its own phase and constants alone."""
    every = dict(kernel.instructions())
    return all(a in own or isinstance(every[a], Const) for a in operands(instr))
