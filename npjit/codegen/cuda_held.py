"""Rows that a group of threads keeps in registers: several phases, each element read once.

In: a `Kernel` whose phases loop over the same axes and read the same elements again, such as a
softmax. Out: one function for rows that fit (its `LANES` threads hold `ITEMS` packs each), and the
functions of `cuda_rows` for longer ones.

    template <..., i32 LANES, i32 ITEMS> __global__ void k0_held(...) {
      nj_pack<f32, V> h0[ITEMS];                  the row, read once
      ... k0_fold0 f0 = nj_join<LANES>(...);      its maximum
      ... k0_fold1 f1 = nj_join<LANES>(...);      the sum of exp(h0 - maximum)
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.codegen.cuda_holding import HoldingPrinter
from npjit.codegen.cuda_launch import Configured, Request, Start, power, up
from npjit.codegen.cuda_rows import RowsPrinter
from npjit.schedule.kernel import Access, DType, Kernel, Load, Phase, Store

# 32-bit registers of a thread that rows may take
_WORDS = 32
_GROUPS = (128, 256, 512, 1024)
# elements of a thread, where rows are short enough
_FEW = 8
# threads of a block whose rows take a warp or less
_SMALL = 128


class HeldPrinter(HoldingPrinter):
    """See the module's docstring."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        super().__init__(kernel, name, held_loads(kernel))
        self.long = RowsPrinter(kernel, name)

    def print(self) -> str:
        w = self.writer
        printers = self.printed_phases(self.kernel.phases)
        for number, printer in enumerate(printers):
            folds = self.folds(printer)
            if folds:
                self.fold_struct(f"{self.name}_held{number}", folds)
        block = f"LANES > 32 ? LANES : {_SMALL}"
        with self.function("_held", ", i32 LANES, i32 ITEMS, i32 EDGES", block):
            self.unpack()
            w.line("const i32 place = threadIdx.x % LANES;")
            w.line("const idx group = threadIdx.x / LANES;")
            w.line(
                f"const idx row = (idx)blockIdx.x * (LANES > 32 ? 1 : {_SMALL} / LANES) + group;"
            )
            w.line(f"if (row >= {self.items(self.kernel.outer)}) return;")
            self.decode(self.kernel.outer, "row")
            w.line(f"const idx n = {self.items(self.axes)};")
            w.line("idx skew = 0;")
            reference = self.skew_reference()
            if reference is not None:
                self.skew(printers[0], reference)
            self.declare_packs(self.loads)
            self.declare_rows()
            self.fill_packs(self.loads)
            for number, printer in enumerate(printers):
                self.phase(number, printer)
        return f"{w}\n{self.long.print()}"

    # ------------------------------------------------------------ launches

    def configure(self, request: Request) -> Configured:
        n = request.items(self.axes)
        rows = request.items(self.kernel.outer)
        last = self.axes[-1]
        width = request.widest(self.slots)
        skewed = self.skewed(request, width)
        while (
            width > 1
            and not skewed
            and (request.extent(last) % width or not request.are_aligned(self.slots, last, width))
        ):
            width //= 2
        most = _WORDS // max(1, self._words())
        found = shape_for(n + width - 1 if skewed else n, width, most)
        if found is None or n == 0 or rows == 0:
            return self.long.configure(request)
        lanes, items = found
        # packs that are there are whole, unless they reach over the row's ends
        edges = "nj_skewed" if skewed else "nj_exact"
        packed = skewed or request.packed(self.slots, last, width)
        constants = f"{width}, {packed}, {lanes}, {items}, {edges}"
        name = f"{self.name}_held<{request.index_type()}, {constants}>"
        per_block = 1 if lanes > 32 else _SMALL // lanes
        return Configured((Start(name, (up(rows, per_block), 1), max(lanes, _SMALL)),))

    def _words(self) -> int:
        """Registers per element of a row that are in use between two phases, at most."""
        spans = [(set(phases), dtype) for phases, dtype in self._uses()]
        count = len(self.kernel.phases)
        return max(
            sum(up(d.itemsize, 4) for used, d in spans if min(used) <= p < max(used))
            for p in range(count)
        )

    def _uses(self) -> list[tuple[list[int], DType]]:
        """For each pack the phases that touch it, and its type."""
        found: dict[object, list[int]] = {}
        dtypes: dict[object, DType] = {}
        for number, phase in enumerate(self.kernel.phases):
            for value, instr in phase.body:
                if not isinstance(instr, Load | Store):
                    continue
                buffer = instr.access.buffer
                is_row = self.kernel.buffers[buffer].role == "row"
                if is_row or value in self.held:
                    key: object = buffer if is_row else instr.access
                    found.setdefault(key, []).append(number)
                    dtypes[key] = self.kernel.buffers[buffer].dtype
        return [(phases, dtypes[key]) for key, phases in found.items()]


def shape_for(n: int, width: int, most: int) -> tuple[int, int] | None:
    """Threads of a row and packs of a thread for n elements, at most `most` elements a thread;
    None: too many.

    Few elements a thread leave registers for many threads, few threads a row make barriers cheap.
    """
    each = max(width, min(_FEW, most))
    lanes = power(up(n, each))
    if 1 < lanes <= 32 and padded(n, lanes // 2, width) < padded(n, lanes, width):
        lanes //= 2
    if lanes > _GROUPS[-1]:
        lanes = _GROUPS[-1]
    elif lanes > 32:
        lanes = next(g for g in _GROUPS if g >= lanes)
    while lanes > 2 * _GROUPS[0] and n * 2 <= lanes * most:
        lanes //= 2
    items = up(n, lanes * width)
    return (lanes, items) if items * width <= max(most, width) else None


def padded(n: int, lanes: int, width: int) -> int:
    """The elements that these threads have room for when they hold n."""
    return up(n, lanes * width) * lanes * width


def held_loads(kernel: Kernel) -> dict[int, Load]:
    """Loads of elements of the outer index's own row that several phases read."""
    seen: dict[tuple[Access, object], list[int]] = {}
    loads: dict[int, Load] = {}
    written: set[int] = set()
    for number, phase in enumerate(kernel.phases):
        for value, instr in phase.body:
            if isinstance(instr, Load) and _is_row(kernel, instr, phase, written):
                seen.setdefault((instr.access, instr.dtype), []).append(number)
                loads[value] = instr
        written |= {i.access.buffer for _, i in phase.body if isinstance(i, Store)}
    again = {key for key, phases in seen.items() if len(set(phases)) > 1}
    return {v: i for v, i in loads.items() if (i.access, i.dtype) in again}


def _is_row(kernel: Kernel, instr: Load, phase: Phase, written: set[int]) -> bool:
    strides = dict(instr.access.strides)
    if not phase.axes or instr.within or instr.access.gathers or instr.access.buffer in written:
        return False
    if kernel.buffers[instr.access.buffer].role == "row" or strides.get(phase.axes[-1], 0) != 1:
        return False
    return any(strides.get(axis, 0) != 0 for axis in kernel.outer)


def can_hold(kernel: Kernel) -> bool:
    """Whether holding rows saves reading."""
    looping: Sequence[Phase] = [p for p in kernel.phases if p.axes]
    if not kernel.outer or len({p.axes for p in looping}) != 1:
        return False
    has_rows = any(b.role == "row" for b in kernel.buffers)
    return has_rows or bool(held_loads(kernel))
