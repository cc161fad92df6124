"""Reductions over partners, such as forces between all bodies: every thread does a few rows.

In: a `Kernel` with one outer axis and one loop, whose loads depend on the row or on the partner.
Out: two functions, and those of another form for small extents. A block puts partners in shared
memory, as one struct each, and every thread combines each of them with its ROWS rows; blocks along
y share the partners out. The second function joins what they have found:

    struct k0_partner { f32 at1, at4, at7, at9; };
    template <..., i32 ROWS> __global__ void k0_partners(..., char* parts, ...) {
      for (...) { const k0_partner one = partners[step]; for (r < ROWS) part[r].acc12 += ...; }
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.codegen.cpp_reduce import Fold
from npjit.codegen.cpp_values import operands
from npjit.codegen.cuda_kernel import CudaPrinter, merged
from npjit.codegen.cuda_lanes import LanePrinter, element_type, levels_of, whole_of
from npjit.codegen.cuda_launch import Configured, Request, Start, power, up
from npjit.codegen.cuda_steps import cut
from npjit.codegen.cuda_terms import JoinedPrinter
from npjit.schedule.kernel import Const, Kernel, Load, Phase, Reduce, Store

# threads of a block, and partners in shared memory
_BLOCK = 128
_DEPTH = 128
# blocks that keep a large device busy to the end
_BUSY = 2112
# 32-bit registers of a thread that rows may take
_WORDS = 64
# an extent below this leaves most of a block idle
_LEAST = 64
_CELL = 16


class PartnersPrinter(JoinedPrinter):
    """See the module's docstring."""

    def __init__(self, kernel: Kernel, name: str, plain: CudaPrinter) -> None:
        super().__init__(kernel, name)
        self.plain = plain
        self.loop, self.end = parts_of(kernel)
        (self.row,), (self.partner,) = kernel.outer, self.loop.axes
        loads = {n: i for n, i in self.loop.body if isinstance(i, Load)}
        self.own = {n: i for n, i in loads.items() if self.row in moving(i)}
        self.staged = {n: i for n, i in loads.items() if self.partner in moving(i)}
        self.folds_made: list[Fold] = []

    def print(self) -> str:
        w = self.writer
        levels = levels_of((self.partner, self.row), {})
        printer = LanePrinter(self.values, self.loop, levels, self.slots)
        printer.ready |= {n: f"own{n}[r]" for n in self.own}
        printer.ready |= {n: f"one.at{n}" for n in self.staged}
        printer.print()
        self.folds_made = self.folds(printer)
        self.fold_struct(f"{self.name}_fold", self.folds_made)
        bytes_of = sum(i.dtype.itemsize for i in self.staged.values())
        with w.block(f"struct alignas({min(16, power(bytes_of))}) {self.name}_partner", "};"):
            w.lines(f"{element_type(i.dtype)} at{n};" for n, i in self.staged.items())
        more = ["char* parts", "u32* counters"]
        with self.function("_partners", ", i32 ROWS", str(_BLOCK), more):
            self.unpack()
            self._counts()
            w.line(f"__shared__ {self.name}_partner partners[{_DEPTH}];")
            w.line(f"const idx first = (idx)blockIdx.x * ({_BLOCK} * ROWS) + threadIdx.x;")
            w.lines([*printer.out.levels[-1], *printer.out.levels[0]])
            self._load_rows(printer)
            w.line(f"{self.name}_fold total[ROWS];")
            self._each_row("total[r].start();")
            w.line(f"const idx share = ((n + {_DEPTH} - 1) / {_DEPTH} + splits - 1) / splits;")
            w.line(f"const idx from = (idx)blockIdx.y * share * {_DEPTH};")
            w.line(f"const idx to = nj_size_min(n, from + share * {_DEPTH});")
            with w.block(f"for (idx base = from; base < to; base += {_DEPTH})"):
                self._stage(printer)
                self._combine(printer)
            self._each_row(
                f"if (first + r * {_BLOCK} < rows)"
                f" (({self.name}_fold*)parts)[blockIdx.y * rows + first + r * {_BLOCK}] = total[r];"
            )
        self._print_ends()
        return f"{w}\n{self.plain.print()}"

    def _counts(self) -> None:
        """Rows and partners, and among how many blocks the partners of a row are shared out."""
        w = self.writer
        w.line(f"const idx rows = {self.extent(self.row)};")
        w.line(f"const idx n = {self.extent(self.partner)};")
        w.line(f"const idx blocks = (rows + {_BLOCK} * ROWS - 1) / ({_BLOCK} * ROWS);")
        w.line(f"const idx tiles = (n + {_DEPTH} - 1) / {_DEPTH};")
        w.line(f"const idx wanted = blocks < {_BUSY} ? {_BUSY} / blocks : 1;")
        w.line("const idx splits = wanted < tiles ? wanted : tiles;")

    def _load_rows(self, printer: LanePrinter) -> None:
        """What a thread's rows need; rows beyond the last one are the last one."""
        w = self.writer
        w.lines(f"{element_type(i.dtype)} own{n}[ROWS];" for n, i in self.own.items())
        w.line("#pragma unroll")
        with w.block("for (i32 r = 0; r < ROWS; ++r)"):
            w.line(f"const idx x{self.row} = nj_size_min(first + r * {_BLOCK}, rows - 1);")
            for n, i in self.own.items():
                w.line(f"own{n}[r] = {whole_of(printer.elements(i), i.dtype)};")

    def _each_row(self, line: str) -> None:
        self.writer.lines(["#pragma unroll", f"for (i32 r = 0; r < ROWS; ++r) {line}"])

    def _stage(self, printer: LanePrinter) -> None:
        """Put the next partners in shared memory."""
        w = self.writer
        w.line("__syncthreads();")
        with w.block(f"for (i32 step = threadIdx.x; step < {_DEPTH}; step += {_BLOCK})"):
            w.line(f"const idx x{self.partner} = base + step;")
            with w.block(f"if (x{self.partner} < to)"):
                for n, i in self.staged.items():
                    w.line(f"partners[step].at{n} = {whole_of(printer.elements(i), i.dtype)};")
        w.line("__syncthreads();")

    def _combine(self, printer: LanePrinter) -> None:
        """All of them with all rows of the thread."""
        w = self.writer
        levels = printer.out.levels
        w.line(f"{self.name}_fold part[ROWS];")
        self._each_row("part[r].start();")
        w.line(f"const i32 steps = nj_size_min({_DEPTH}, to - base);")
        w.line("#pragma unroll 4")
        with w.block("for (i32 step = 0; step < steps; ++step)"):
            w.line(f"const {self.name}_partner one = partners[step];")
            w.line(f"const idx x{self.partner} = base + step;")
            w.lines(levels[1])
            w.line("#pragma unroll")
            with w.block("for (i32 r = 0; r < ROWS; ++r)"):
                w.line(f"const idx x{self.row} = first + r * {_BLOCK};")
                w.line("const nj_full count;")
                w.line("const i32 lane = 0;")
                w.lines(levels[2])
                w.lines(self.takes(self.folds_made, printer.phase, "part[r]"))
        self._each_row("total[r].take(part[r]);")

    def _print_ends(self) -> None:
        w = self.writer
        with self.function("_ends", ", i32 ROWS", str(_BLOCK), ["char* parts", "u32* counters"]):
            self.unpack()
            self._counts()
            w.line(f"const idx x{self.row} = (idx)blockIdx.x * {_BLOCK} + threadIdx.x;")
            w.line(f"if (x{self.row} >= rows) return;")
            w.lines([f"{self.name}_fold total;", "total.start();", "#pragma unroll 8"])
            with w.block("for (idx split = 0; split < splits; ++split)"):
                w.line(f"total.take((({self.name}_fold*)parts)[split * rows + x{self.row}]);")
            level = {f.number: 0 for f in self.folds_made}
            printed = LanePrinter(self.values, self.end, levels_of((), level), self.slots).print()
            w.lines(self.finish(self.folds_made, "total"))
            w.lines([*printed.levels[-1], *printed.levels[0]])

    # ------------------------------------------------------------ launches

    def configure(self, request: Request) -> Configured:
        rows, n = request.extent(self.row), request.extent(self.partner)
        if min(rows, n) < _LEAST:
            return self.plain.configure(request)
        side = self._rows_of_a_thread()
        blocks, tiles = up(rows, _BLOCK * side), up(n, _DEPTH)
        splits = min(max(1, _BUSY // blocks), tiles)
        constants = f"<{request.index_type()}, 1, 0, {side}>"
        starts = (
            Start(f"{self.name}_partners{constants}", (blocks, splits), _BLOCK),
            Start(f"{self.name}_ends{constants}", (up(rows, _BLOCK), 1), _BLOCK),
        )
        cells = sum(len(f.cells) for f in self.folds_made)
        return Configured(starts, (_CELL * cells * rows * splits,))

    def _rows_of_a_thread(self) -> int:
        words = sum(up(i.dtype.itemsize, 4) for i in self.own.values())
        words += sum(2 * len(f.cells) * up(f.accumulator.itemsize, 4) for f in self.folds_made)
        return next((side for side in (4, 2) if side * words <= _WORDS), 1)


def moving(load: Load) -> set[int]:
    """The axes along which a load goes."""
    return {a for a, s in load.access.strides if s != 0}


def parts_of(kernel: Kernel) -> tuple[Phase, Phase]:
    """The loop, with what is in front of it, and what follows."""
    leading, (step, *_) = cut(kernel)
    assert step.loop is not None
    return Phase(step.loop.axes, (*merged(leading).body, *step.loop.body)), step.finish


def is_partnered(kernel: Kernel) -> bool:
    """Whether a kernel reduces something of rows and partners whose loads depend on one of both."""
    looping: Sequence[Phase] = [p for p in kernel.phases if p.axes]
    if len(kernel.outer) != 1 or len(looping) != 1 or len(looping[0].axes) != 1:
        return False
    if any(b.role == "row" for b in kernel.buffers):
        return False
    loop, end = parts_of(kernel)
    (row,), (partner,) = kernel.outer, loop.axes
    sides = []
    for _, i in loop.body:
        if isinstance(i, Store) or (isinstance(i, Load) and (i.within or i.access.gathers)):
            return False
        if isinstance(i, Load):
            sides.append(moving(i))
    own = {n for n, i in loop.body if isinstance(i, Reduce | Const)} | {n for n, _ in end.body}
    if any(a not in own for _, i in end.body for a in operands(i)):
        return False
    return {row} in sides and {partner} in sides and {row, partner} not in sides
