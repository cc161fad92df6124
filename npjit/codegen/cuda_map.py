"""Kernels without reductions as CUDA: every thread does V neighbouring items of the last axis.

In: a `Kernel` without inner axes. Out: one function; a thread's accesses are as wide as their
addresses allow. Rows between boundaries are done by another one, where a warp has a row:
neighbouring threads then touch neighbouring elements, and what a row shares is computed once.

    template <class idx, i32 V, u64 A>
    __global__ void __launch_bounds__(128) k0(const f32* mem0, f32* mem1, i64 size0) {
      ... for (idx item = ...; item < chunks; item += step) { const idx start0 = item * V; ... }
    }
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from npjit.codegen.cpp_statements import Statements
from npjit.codegen.cuda_kernel import CudaPrinter, merged
from npjit.codegen.cuda_lanes import LanePrinter, Moves, levels_of
from npjit.codegen.cuda_launch import Configured, Request, Start, up
from npjit.codegen.cuda_usual import suits_usual
from npjit.schedule.kernel import Kernel

# rows that a warp does, as many as must be there that warps are worth it
_ROWS = 8
_MANY_ROWS = 4096
# threads of a block: small ones start and end in the gaps that others leave
BLOCK = 128
# lanes that are worth a thread, and the most blocks of a launch; threads step on to further items
_LANES = 8
_BLOCKS = 2**30


class MapPrinter(CudaPrinter):
    """See the module's docstring."""

    block = BLOCK
    # whether there is a function for rows
    by_rows = False

    def __init__(self, kernel: Kernel, name: str, exact: bool = True) -> None:
        super().__init__(kernel, name)
        # whether divisions and roots are
        self.exact = exact

    def print(self) -> str:
        axes = self.kernel.outer
        phase = merged(self.kernel.phases)
        printer = LanePrinter(self.values, phase, levels_of(axes, {}), self.slots)
        printer.usual = self.exact and suits_usual(self.kernel, self.values)
        printed = printer.print()
        with self.function("", block=str(BLOCK)), open_map(self, printed):
            self.lanes(printed, printer.moves, axes[-1], usual=printer.usual)
        if len(axes) > 1 and self.slots:
            self.by_rows = True
            self._print_rows(printed, printer.moves, printer.usual)
        return str(self.writer)

    def _print_rows(self, printed: Statements, moves: Moves, usual: bool) -> None:
        w = self.writer
        *others, last = self.kernel.outer
        with self.function("_rows", block=str(BLOCK)):
            self.unpack()
            w.line(f"const idx rows = {self.items(others)};")
            w.line(f"const idx n = {self.extent(last)};")
            w.lines([*printed.levels[-1], *printed.levels[0]])
            w.line(f"const idx step = (idx)gridDim.x * {BLOCK // 32};")
            first = f"(idx)blockIdx.x * {BLOCK // 32} + threadIdx.x / 32"
            with w.block(f"for (idx row = {first}; row < rows; row += step)"):
                self.decode(others, "row")
                at = f"start{last}"
                loop = f"idx {at} = threadIdx.x % 32; {at} < n; {at} += 32 * V"
                with w.block(f"for ({loop})"):
                    lanes = f"(i32)nj_size_min(V, (n - {at} + 31) / 32)"
                    w.line(f"const nj_apart count{{{lanes}}};")
                    self.lanes(printed, moves, last, usual=usual)

    def configure(self, request: Request) -> Configured:
        axes = self.kernel.outer
        extent = request.extent(axes[-1])
        width = request.widest(self.slots)
        while width > 1 and (extent < width or not self._pays(request, width)):
            width //= 2
        rows = request.items(axes[:-1])
        if width == 1 and self.by_rows and self._suits_warps(request, rows, extent):
            width, packed = request.widest(self.slots), request.packed(self.slots, axes[-1], 1)
            name = f"{self.name}_rows<{request.index_type()}, {width}, {packed}>"
            blocks = up(rows, BLOCK // 32 * _ROWS)
            return Configured((Start(name, (min(blocks, _BLOCKS), 1), BLOCK),))
        items = request.items(axes[:-1]) * up(extent, width)
        if items == 0:
            return Configured(())
        index = request.index_type()
        packed = request.packed(self.slots, axes[-1], width)
        name = f"{self.name}<{index}, {width}, {packed}>"
        blocks = up(items, BLOCK * max(1, _LANES // width))
        return Configured((Start(name, (min(blocks, _BLOCKS), 1), BLOCK),))

    def _suits_warps(self, request: Request, rows: int, extent: int) -> bool:
        """Whether there are rows for warps, whose threads would move several elements if rows
        began on boundaries."""
        full = 4 * extent >= 3 * 32 * up(extent, 32)
        return full and rows >= _MANY_ROWS and request.widest(self.slots) > 1

    def _pays(self, request: Request, width: int) -> bool:
        """Whether so many lanes a thread make most accesses wide."""
        last = self.kernel.outer[-1]
        aligned = [request.are_aligned([s], last, width) for s in self.slots]
        return 2 * sum(aligned) >= len(aligned)


@contextmanager
def open_map(printer: MapPrinter, printed: Statements) -> Iterator[None]:
    """What stands around the lanes of a thread: its items, and whether all lanes are there
    (`count`)."""
    w = printer.writer
    axes = printer.kernel.outer
    last = axes[-1]
    printer.unpack()
    w.line(f"const idx chunks = ({printer.extent(last)} + V - 1) / V;")
    w.line(f"const idx items = {factor_of(printer.items(axes[:-1]))} * chunks;")
    w.lines([*printed.levels[-1], *printed.levels[0]])
    w.line(f"const idx step = (idx)gridDim.x * {BLOCK};")
    first = f"(idx)blockIdx.x * {BLOCK} + threadIdx.x"
    with w.block(f"for (idx item = {first}; item < items; item += step)"):
        printer.decode_chunk(axes, "item", "chunks")
        with w.block("const auto body = [&](auto count)", "};"):
            yield
        w.line(f"const idx left = {printer.extent(last)} - start{last};")
        w.line("if (left >= V) body(nj_full());")
        w.line("else body(nj_some{(i32)left});")


def factor_of(text: str) -> str:
    """A size's text, fit to stand beside *."""
    return f"({text})" if " " in text else text
