"""Kernels of products and what is computed from them (cuda_product.py), tile by tile on Hopper's
tensor cores.

In: such a kernel. Out: a function that gives `prelude/cuda_product.h` the factors and, for a pack
of numbers of the product, the rest of the kernel; and one that copies factors whose lines do not
begin on boundaries of 16 bytes:

    k1<i32, 8, 0x24ull, true, false, false, false, false>: 132 blocks of 384 threads
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from npjit.codegen.cpp_types import ctype, size
from npjit.codegen.cuda_kernel import merged
from npjit.codegen.cuda_lanes import LanePrinter, levels_of
from npjit.codegen.cuda_launch import Configured, Request, Slot, Start, up
from npjit.codegen.cuda_product import BATCH, COLUMN, FACTORS, ROW, SUM, SUMMED, Multiplied
from npjit.codegen.cuda_terms import JoinedPrinter
from npjit.codegen.cuda_usual import suits_usual
from npjit.core.size import Size
from npjit.schedule.kernel import Load
from npjit.schedule.plan import Launch

# as in the header: threads, a tile's extents, bytes of a block's shared memory
_THREADS = 384
_TILE_ROWS, _TILE_COLUMNS = 128, 256
_SHARED = 4 * 6 * 64 * 64 * 2 + 8 * 16 * 64 * 4 + 128
# blocks at a time, one a multiprocessor, and bytes of a block's maps
_BLOCKS, _MAPS = 132, 256
# threads of a block that copies lines, each by a warp, and its most blocks
_COPYING, _COPIES = 256, 1056
# numbers of 16 bits between boundaries of 16 bytes
_WHOLE = 8
# the least multiplications that pay; and the most that ends of tiles and idle multiprocessors may
# cost for each number of the product, as long as they take not longer than moving it does
_MULTIPLICATIONS, _WASTE = 2**32, 320
# whether the first factor may be turned; it has not run so on a GPU
_TURNED_FIRST = False
# coordinates of the hardware's have 32 bits
_MOST = 2**30
_OUTER = {FACTORS[0]: ROW, FACTORS[1]: COLUMN}
_CONSTANTS = ", b1 SUMMED_A, b1 SUMMED_B, b1 COPIED_A, b1 COPIED_B, b1 WOVEN"


@dataclass(frozen=True)
class _Lines:
    """How a factor lies: whether the numbers of its lines are summed, and whether lines are copied
    as they do not begin on boundaries; `bytes` are those of the copy."""

    are_summed: bool
    are_copied: bool
    bytes: int


class ProductPrinter(JoinedPrinter):
    """See the module's docstring."""

    def __init__(self, multiplied: Multiplied, name: str, exact: bool) -> None:
        super().__init__(multiplied.kernel, name)
        self.apart = multiplied.apart
        # whether it spares a launch that reads the product
        self._saves_memory = len(multiplied.apart) > 1
        self.exact = exact
        loop, *rest = self.kernel.phases
        self.rest = merged(rest)
        loads = [i for _, i in loop.body if isinstance(i, Load)]
        self.factors = [Slot(i.access, i.dtype) for i in loads]

    # ------------------------------------------------------------ text

    def print(self) -> str:
        w, outer = self.writer, self.kernel.outer
        printer = LanePrinter(
            self.values, self.rest, levels_of(outer, {SUM: len(outer)}), self.slots
        )
        printer.usual = self.exact and suits_usual(self.kernel, self.values)
        printed = printer.print()
        narrow, made = ctype(self.factors[0].dtype), ctype(self.values.dtype(SUM))
        more = ["u64* maps", *(f"{narrow}* lines{f}" for f in FACTORS)]
        with self.function("", _CONSTANTS, f"{_THREADS}, 1", more):
            self._open(narrow)
            w.line("const auto a = COPIED_A ? given0.at(lines0) : given0;")
            w.line("const auto b = COPIED_B ? given1.at(lines1) : given1;")
            w.lines([*printed.levels[-1], *printed.levels[0]])
            given = f"nj_pack<{made}, V> product, i64 batch, i64 row, i64 column, auto count"
            with w.block(f"const auto body = [&]({given})", "};"):
                w.line(f"const idx x{BATCH} = (idx)batch;")
                w.line(f"const idx x{ROW} = (idx)row;")
                w.line(f"const idx start{COLUMN} = (idx)column;")
                taken = [f"const {made} v{SUM} = product.at[lane];"]
                self.lanes(printed, printer.moves, COLUMN, taken, usual=printer.usual)
            sizes = ", ".join(size(a.extent) for a in self.kernel.axes)
            constants = f"{narrow}, SUMMED_A, SUMMED_B, {made}, V, WOVEN"
            w.line(f"nj_multiply_matrices<{constants}>(a, b, {sizes}, maps, body);")
        with self.function("_copied", _CONSTANTS, str(_COPYING), more):
            self._open(narrow)
            w.line("if (COPIED_A && blockIdx.y == 0) nj_align_lines(given0, lines0);")
            w.line("if (COPIED_B && blockIdx.y == COPIED_A) nj_align_lines(given1, lines1);")
        return str(w)

    def _open(self, narrow: str) -> None:
        """Sizes, and the factors as they lie."""
        self.unpack()
        for f, constant in zip(FACTORS, ("SUMMED_A", "SUMMED_B"), strict=True):
            access, outer = self.factors[f].access, _OUTER[f]
            steps = {a: size(s) for a, s in access.strides}
            summed, other = (
                size(self.kernel.axes[SUMMED].extent),
                size(self.kernel.axes[outer].extent),
            )
            batch = steps.get(BATCH, "0")
            batches = f"{batch} == 0 ? 1 : {size(self.kernel.axes[BATCH].extent)}"
            fields = [
                f"mem{access.buffer} + {size(access.offset)}",
                f"{constant} ? {summed} : {other}",
                f"{constant} ? {steps[outer]} : {steps[SUMMED]}",
                f"{constant} ? {other} : {summed}",
                batch,
                batches,
            ]
            self.writer.line(f"const nj_lines<{narrow}> given{f}{{{', '.join(fields)}}};")

    # ------------------------------------------------------------ launches

    def fits(self, launch: Launch, value: Callable[[Size], int]) -> bool:
        request = Request(self.kernel, [value(s) for s in launch.sizes], {})
        extents = [request.extent(a) for a in range(len(self.kernel.axes))]
        if math.prod(extents) < _MULTIPLICATIONS or max(extents) >= _MOST:
            return False
        slots = up(_tiles(request), _BLOCKS) * _BLOCKS * _TILE_ROWS * _TILE_COLUMNS
        if extents[SUMMED] * (slots / request.items(self.kernel.outer) - 1) > _WASTE:
            return False
        a, b = (self._lines(request, f) for f in FACTORS)
        if a is None or b is None or (not a.are_summed and not _TURNED_FIRST):
            return False
        # without a launch behind it a product is worth a kernel where cuBLAS is slow: when lines
        # lie between boundaries
        aligned = request.are_aligned(self.slots, COLUMN, _WHOLE)
        if not self._saves_memory and aligned and not (a.are_copied or b.are_copied):
            return False
        return super().fits(launch, value)

    def configure(self, request: Request) -> Configured:
        lines = [self._lines(request, f) for f in FACTORS]
        a, b = (one for one in lines if one is not None)
        width = request.widest(self.slots)
        while width > 1 and not self._pays(request, width):
            width //= 2
        woven = width == 1
        width = _WHOLE if woven else width
        packed = request.packed(self.slots, COLUMN, 1 if woven else width)
        flags = (a.are_summed, b.are_summed, a.are_copied, b.are_copied, woven)
        told = ", ".join(str(flag).lower() for flag in flags)
        constants = f"<{request.index_type()}, {width}, {packed}, {told}>"
        blocks = min(_tiles(request), _BLOCKS)
        start = Start(f"{self.name}{constants}", (blocks, 1), _THREADS, _SHARED)
        copies = a.are_copied + b.are_copied
        copied = Start(f"{self.name}_copied{constants}", (_COPIES, copies), _COPYING)
        starts = (copied, start) if copies else (start,)
        return Configured(starts, (blocks * _MAPS, a.bytes, b.bytes))

    def _pays(self, request: Request, width: int) -> bool:
        """Whether so many lanes a thread make most accesses wide."""
        aligned = [request.are_aligned([s], COLUMN, width) for s in self.slots]
        return 2 * sum(aligned) >= len(aligned)

    def _lines(self, request: Request, factor: int) -> _Lines | None:
        """How a factor lies; None: its numbers do not follow each other."""
        slot, outer = self.factors[factor], _OUTER[factor]
        steps = {a: request.value(s) for a, s in slot.access.strides}
        if 1 not in (steps[SUMMED], steps[outer]):
            return None
        along, across = (SUMMED, outer) if steps[SUMMED] == 1 else (outer, SUMMED)
        batches = request.extent(BATCH) if steps.get(BATCH) else 1
        moving = [a for a, n in ((across, request.extent(across)), (BATCH, batches)) if n > 1]
        on_boundaries = 2 ** request.alignment(slot, along, _WHOLE) == 2 * _WHOLE
        if on_boundaries and all(steps[a] > 0 for a in moving):
            return _Lines(along == SUMMED, False, 0)
        length = up(request.extent(along), _WHOLE) * _WHOLE
        return _Lines(along == SUMMED, True, 2 * length * request.extent(across) * batches)


def _tiles(request: Request) -> int:
    """How many tiles a product has."""
    down, across = request.extent(ROW), request.extent(COLUMN)
    return request.extent(BATCH) * up(down, _TILE_ROWS) * up(across, _TILE_COLUMNS)
