"""Kernels without reductions as CUDA: every thread does V neighbouring items of the last axis.

In: a `Kernel` without inner axes. Out: one function; a thread's accesses are as wide as their
addresses allow.

    template <class idx, i32 V, u64 A>
    __global__ void __launch_bounds__(128) k0(const f32* mem0, f32* mem1, i64 size0) {
      ... for (idx item = ...; item < chunks; item += step) { const idx start0 = item * V; ... }
    }
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from npjit.codegen.cpp_phase import Statements
from npjit.codegen.cuda_kernel import CudaPrinter, merged
from npjit.codegen.cuda_lanes import LanePrinter, levels_of
from npjit.codegen.cuda_launch import Configured, Request, Start, up

# threads of a block: small ones start and end in the gaps that others leave
BLOCK = 128
# lanes that are worth a thread, and the most blocks of a launch; threads step on to further items
_LANES = 8
_BLOCKS = 2**30


class MapPrinter(CudaPrinter):
    """See the module's docstring."""

    block = BLOCK

    def print(self) -> str:
        axes = self.kernel.outer
        phase = merged(self.kernel.phases)
        printer = LanePrinter(self.values, phase, levels_of(axes, {}), self.slots)
        printed = printer.print()
        with self.function("", block=str(BLOCK)), open_map(self, printed):
            self.lanes(printed, printer.moves, axes[-1])
        return str(self.writer)

    def configure(self, request: Request) -> Configured:
        axes = self.kernel.outer
        extent = request.extent(axes[-1])
        width = request.widest(self.slots)
        while width > 1 and (extent < width or not self._pays(request, width)):
            width //= 2
        items = request.items(axes[:-1]) * up(extent, width)
        if items == 0:
            return Configured(())
        index = request.index_type()
        packed = request.packed(self.slots, axes[-1], width)
        name = f"{self.name}<{index}, {width}, {packed}>"
        blocks = up(items, BLOCK * max(1, _LANES // width))
        return Configured((Start(name, (min(blocks, _BLOCKS), 1), BLOCK),))

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
