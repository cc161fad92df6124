"""Rows and columns in one kernel: blocks that stay go through many rows, and keep sums of columns.

In: an `Across`. Out: two functions. The first holds rows in registers, as in `cuda_holding`, and
loads the next row while it works on one; what it has found of each column stays in registers from
row to row. The second joins what the blocks have found:

    template <..., i32 LANES, i32 ITEMS, i32 EDGES> __global__ void k3_rows(..., char* parts, ...) {
      k3_column sums[ITEMS][V];
      for (idx row = first; row < rows; row += step) { ... sums[item][lane].acc9 += v8; ... }
      ((k3_column*)parts)[blockIdx.x * n + column] = sums[item][lane];
    }
    template <..., i32 LANES> __global__ void k3_ends(..., char* parts, ...)

A row that begins between boundaries has its packs begin before it. A group's rows are a multiple of
V apart, so they all begin alike, and a lane's columns stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

from npjit.codegen.cpp_reduce import Fold, fold
from npjit.codegen.cpp_values import Values
from npjit.codegen.cuda_across import Across
from npjit.codegen.cuda_holding import HoldingPrinter
from npjit.codegen.cuda_kernel import BLOCK
from npjit.codegen.cuda_lanes import LanePrinter, Move, element_type, levels_of, whole_of
from npjit.codegen.cuda_launch import Configured, Request, Start, power, up
from npjit.codegen.cuda_terms import JoinedPrinter, actual
from npjit.core.size import Size
from npjit.schedule.kernel import Kernel, Load, Phase, Reduce, Store
from npjit.schedule.plan import Launch

# threads of the smallest block; the multiprocessors of a large device, and the threads that each
# runs at once with 128 registers, or with 102 where rows and sums take few of them
_SMALL = 128
_UNITS = 132
_RESIDENT = 512
_MANY = 640
_FEW_WORDS = 64
# threads of rows that take a block, at least, and of the longest row
_LEAST = 96
_LONGEST = 512
# 32-bit registers of a thread that rows and sums may take, and elements of a row that it may have
_WORDS = 80
_EACH = (16, 8, 4, 2, 1)
# bytes of shared memory in which a block's groups join their sums
_SHARED = 49152
# columns of a block that joins sums, and rows that are added up before a sum is put aside
_WIDE = 8
_RUN = 64
_CELL = 16
# lanes of a pack, at most
_WIDEST = 8


class PersistentPrinter(HoldingPrinter, JoinedPrinter):
    """See the module's docstring."""

    repeated = True

    def __init__(self, across: Across, name: str) -> None:
        super().__init__(across.kernel, name, packed_loads(across.kernel))
        self.across = across
        *self.phases, self.column_end, self.whole_end = across.kernel.phases
        folds = folds_across(across)
        self.column_folds = [f for f, axes in folds if axes]
        self.whole_folds = [f for f, axes in folds if not axes]
        each, words = burden(across)
        self.resident = _MANY if each * words <= _FEW_WORDS else _RESIDENT
        self.points = single_loads(across.kernel)
        self.ready = {n: f"now{n}" for n in self.points}

    # ------------------------------------------------------------ text

    def print(self) -> str:
        printers = self.printed_phases(self.phases)
        for number, printer in enumerate(printers):
            if number not in self.across.folded and self.folds(printer):
                self.fold_struct(f"{self.name}_held{number}", self.folds(printer))
        self.fold_struct(f"{self.name}_column", self.column_folds)
        if self.whole_folds:
            self.fold_struct(f"{self.name}_whole", self.whole_folds)
        self._print_rows(printers)
        self._print_ends()
        return str(self.writer)

    def _print_rows(self, printers: Sequence[LanePrinter]) -> None:
        w = self.writer
        block = f"LANES > 32 ? LANES : {_SMALL}"
        bounds = f"{block}, {self.resident} / ({block})"
        more = ["char* parts", "char* wholes", "u32* counters"]
        with self.function("_rows", ", i32 LANES, i32 ITEMS, i32 EDGES", bounds, more):
            self.unpack()
            w.line("const i32 place = threadIdx.x % LANES;")
            w.line("const i32 group = threadIdx.x / LANES;")
            self._counts()
            w.line("const idx step = (idx)gridDim.x * groups;")
            w.line("const idx first = (idx)blockIdx.x * groups + group;")
            w.line("idx skew = 0;")
            reference = self.skew_reference()
            if reference is not None:
                with w.block(""):
                    self.decode(self.kernel.outer, "first")
                    self.skew(printers[0], reference)
            fixed = [m for m in self.loads if not self.has_rows(self.slots[m.slot])]
            moving = [m for m in self.loads if m not in fixed]
            ahead = [replace(m, pack=m.pack.replace("h", "ahead")) for m in moving]
            self.declare_packs([*self.loads, *ahead])
            self.declare_rows()
            for n, load in self.points.items():
                w.line(f"{element_type(load.dtype)} now{n}, next{n};")
            self.fill_packs(fixed)
            self._start_sums()
            self._fetch(printers[0], ahead, "first")
            with w.block("for (idx row = first; row < rows; row += step)"):
                self.decode(self.kernel.outer, "row")
                self._take_over(moving, ahead)
                self._fetch(printers[0], ahead, "row + step")
                for number, printer in enumerate(printers):
                    if number in self.across.folded:
                        self._folded(printer)
                    else:
                        self.phase(number, printer)
                self._end_of_row(printers)
            self._leave_columns()
            if self.whole_folds:
                self._leave_whole()

    def _counts(self) -> None:
        """Rows and columns, and the groups of a block."""
        w = self.writer
        w.line(f"const i32 groups = LANES > 32 ? 1 : {_SMALL} / LANES;")
        w.line(f"const idx rows = {self.items(self.kernel.outer)};")
        w.line(f"const idx n = {self.items(self.axes)};")

    def _start_sums(self) -> None:
        w = self.writer
        w.line(f"{self.name}_column sums[ITEMS][V];")
        w.lines(["#pragma unroll", "for (i32 item = 0; item < ITEMS; ++item)", "#pragma unroll"])
        w.line("  for (i32 lane = 0; lane < V; ++lane) sums[item][lane].start();")
        if self.whole_folds:
            w.line(f"{self.name}_whole whole, run;")
            w.lines(["whole.start();", "run.start();", "i32 taken = 0;"])

    def _fetch(self, printer: LanePrinter, ahead: Sequence[Move], row: str) -> None:
        """Load a row's packs and single elements, if there is such a row."""
        w = self.writer
        with w.block(f"if ({row} < rows)"):
            self.decode(self.kernel.outer, f"({row})")
            self.fill_packs(ahead)
            for n, load in self.points.items():
                w.line(f"next{n} = {whole_of(printer.elements(load), load.dtype)};")

    def _take_over(self, moving: Sequence[Move], ahead: Sequence[Move]) -> None:
        """The row that was loaded ahead is this one."""
        w = self.writer
        w.lines(f"now{n} = next{n};" for n in self.points)
        w.line("#pragma unroll")
        with w.block("for (i32 item = 0; item < ITEMS; ++item)"):
            w.lines(f"{m.pack} = {a.pack};" for m, a in zip(moving, ahead, strict=True))

    def _folded(self, printer: LanePrinter) -> None:
        """A phase whose reductions go over the rows."""
        w = self.writer
        w.lines([*printer.out.levels[-1], *printer.out.levels[0]])
        if printer.phase.axes:
            self.each_pack(printer, "sums[item][lane]")
            return
        with w.block("if (place == 0)"):
            for f in self.folds(printer):
                w.lines(f.take([f"run.{cell}" for _, cell in f.cells], f.items("")))

    def _end_of_row(self, printers: Sequence[LanePrinter]) -> None:
        w = self.writer
        if self.whole_folds:
            with w.block(f"if (++taken % {_RUN} == 0)"):
                w.lines(["whole.take(run);", "run.start();"])
        joins = [n for n, p in enumerate(printers) if p.phase.axes and self.folds(p)]
        if len([n for n in joins if n not in self.across.folded]) == 1:
            # the next row's join writes where this one's is read
            w.line("if constexpr (LANES > 32) __syncthreads();")

    def _leave_columns(self) -> None:
        """What the block has found of each column."""
        w = self.writer
        column = f"{self.name}_column"
        w.line(f"{column}* const all = ({column}*)parts + (idx)blockIdx.x * n;")
        with w.block("if constexpr (groups == 1)"):
            self._each_sum("all[column] = sums[item][lane];")
        with w.block("else"):
            w.line("const i32 wide = LANES * ITEMS * V;")
            w.line(f"__shared__ {column} shares[groups * wide];")
            self._each_sum("shares[group * wide + column] = sums[item][lane];")
            w.line("__syncthreads();")
            with w.block(f"for (idx column = threadIdx.x; column < n; column += {_SMALL})"):
                w.line(f"{column} total = shares[column];")
                w.line("for (i32 g = 1; g < groups; ++g) total.take(shares[g * wide + column]);")
                w.line("all[column] = total;")

    def _each_sum(self, line: str) -> None:
        w = self.writer
        w.line("#pragma unroll")
        with w.block("for (i32 item = 0; item < ITEMS; ++item)"):
            self.chunk()
            w.line("#pragma unroll")
            with w.block("for (i32 lane = 0; lane < V; ++lane)"):
                w.line(f"const idx column = start{self.axes[0]} + lane;")
                w.line(f"if (count.has(lane) && column < n) {line}")

    def _leave_whole(self) -> None:
        w = self.writer
        whole = f"{self.name}_whole"
        w.line("whole.take(run);")
        w.line(f"__shared__ {whole} ones[groups];")
        w.line("if (place == 0) ones[group] = whole;")
        w.line("__syncthreads();")
        with w.block("if (threadIdx.x == 0)"):
            w.line("for (i32 g = 1; g < groups; ++g) whole.take(ones[g]);")
            w.line(f"(({whole}*)wholes)[blockIdx.x] = whole;")

    def _print_ends(self) -> None:
        w = self.writer
        more = ["char* parts", "char* wholes", "u32* counters"]
        with self.function("_ends", ", i32 LANES", more=more):
            self.unpack()
            self._counts()
            w.line(f"const idx block = LANES > 32 ? LANES : {_SMALL};")
            w.line(f"const idx most = {_UNITS} * ({self.resident} / block);")
            w.line("const idx needed = (rows + groups - 1) / groups;")
            w.line("const idx blocks = needed > most ? most : needed < 1 ? 1 : needed;")
            with w.block("if (blockIdx.x < gridDim.x - 1)") if self.whole_folds else nullcontext():
                self._end_columns()
            if self.whole_folds:
                with w.block("else"):
                    self._end_whole()

    def _end_columns(self) -> None:
        w = self.writer
        column, axis = f"{self.name}_column", self.axes[0]
        w.line(f"const i32 place = threadIdx.x / {_WIDE};")
        w.line(f"const idx x{axis} = (idx)blockIdx.x * {_WIDE} + threadIdx.x % {_WIDE};")
        w.lines([f"{column} total;", "total.start();"])
        with w.block(f"if (x{axis} < n)"):
            w.line("#pragma unroll 8")
            w.line(f"for (idx part = place; part < blocks; part += {BLOCK // _WIDE})")
            w.line(f"  total.take((({column}*)parts)[part * n + x{axis}]);")
        w.line(f"__shared__ {column} shares[{BLOCK}];")
        w.line(f"total = nj_join_deep<{BLOCK // _WIDE}>(total, shares);")
        with w.block(f"if (place == 0 && x{axis} < n)"):
            self._end(self.column_folds, self.column_end)

    def _end_whole(self) -> None:
        w = self.writer
        whole = f"{self.name}_whole"
        w.lines([f"{whole} total;", "total.start();"])
        w.line(f"for (idx part = threadIdx.x; part < blocks; part += {BLOCK})")
        w.line(f"  total.take((({whole}*)wholes)[part]);")
        w.line(f"__shared__ {whole} ones[{BLOCK} / 32 + 1];")
        w.line(f"total = nj_join<{BLOCK}>(total, ones);")
        with w.block("if (threadIdx.x == 0)"):
            self._end(self.whole_folds, self.whole_end)

    def _end(self, folds: Sequence[Fold], phase: Phase) -> None:
        """What follows when the reductions are known."""
        level = {f.number: 0 for f in folds}
        printed = LanePrinter(self.values, phase, levels_of((), level), self.slots).print()
        self.writer.lines(self.finish(folds, "total"))
        self.writer.lines([*printed.levels[-1], *printed.levels[0]])

    # ------------------------------------------------------------ launches

    def fits(self, launch: Launch, value: Callable[[Size], int]) -> bool:
        length = value(actual(self.kernel.axes[self.axes[0]].extent, launch))
        short = row_shape(self.across, length + _WIDEST, 1) is not None
        return short and super().fits(launch, value)

    def configure(self, request: Request) -> Configured:
        rows, n = request.items(self.kernel.outer), request.extent(self.axes[0])
        width = request.widest(self.slots)
        while not (skewed := self._skewed(request, rows, n, width)) and not self._fits(
            request, n, width
        ):
            width //= 2
        shape = row_shape(self.across, n + width - 1 if skewed else n, width)
        assert shape is not None, "the plan without this kernel is for longer rows"
        lanes, items = shape
        block, blocks = self._blocks(rows, lanes)
        packed = skewed or request.packed(self.slots, self.axes[0], width)
        constants = f"{request.index_type()}, {width}, {packed}, {lanes}"
        whole = "nj_exact" if n == lanes * items * width else "nj_whole"
        edges = "nj_skewed" if skewed else whole
        rows_name = f"{self.name}_rows<{constants}, {items}, {edges}>"
        first = Start(rows_name, (blocks, 1), block)
        ends = up(n, _WIDE) + (1 if self.whole_folds else 0)
        last = Start(f"{self.name}_ends<{constants}>", (ends, 1), BLOCK)
        cells = [sum(len(f.cells) for f in fs) for fs in (self.column_folds, self.whole_folds)]
        regions = [_CELL * cells[0] * n * blocks, _CELL * cells[1] * blocks]
        return Configured((first, last) if ends else (first,), tuple(regions))

    def _fits(self, request: Request, n: int, width: int) -> bool:
        """Whether a thread may have so many lanes; packs are whole, as nothing masks them."""
        if width == 1:
            return True
        fits = n % width == 0 and request.are_aligned(self.slots, self.axes[0], width)
        return fits and row_shape(self.across, n, width) is not None

    def _skewed(self, request: Request, rows: int, n: int, width: int) -> str:
        """The alignments of all slots when packs begin in front of rows, all of a group alike."""
        shape = row_shape(self.across, n + width - 1, width)
        if shape is None or len(self.kernel.outer) > 1:
            return ""
        lanes, _ = shape
        block, blocks = self._blocks(rows, lanes)
        step = blocks * (block // lanes)
        return self.skewed(request, width) if step % width == 0 or step >= rows else ""

    def _blocks(self, rows: int, lanes: int) -> tuple[int, int]:
        """Threads of a block, and blocks, as many as run at once if there are rows for them."""
        block = lanes if lanes > 32 else _SMALL
        return block, max(1, min(up(rows, block // lanes), _UNITS * (self.resident // block)))


def folds_across(across: Across) -> list[tuple[Fold, tuple[int, ...]]]:
    """The reductions over the rows, and the axes of their phases."""
    values = Values(across.kernel)
    phases = [across.kernel.phases[n] for n in sorted(across.folded)]
    return [
        (fold(n, i, values), p.axes) for p in phases for n, i in p.body if isinstance(i, Reduce)
    ]


def packed_loads(kernel: Kernel) -> dict[int, Load]:
    """Loads of neighbouring elements along the rows from memory that is not written."""
    return {
        n: i
        for p in kernel.phases
        for n, i in plain_loads(kernel, p)
        if p.axes and dict(i.access.strides).get(p.axes[0], 0) == 1
    }


def single_loads(kernel: Kernel) -> dict[int, Load]:
    """Loads of one element a row from such memory."""
    outer = set(kernel.outer)
    return {
        n: i
        for p in kernel.phases
        for n, i in plain_loads(kernel, p)
        if (strides := {a for a, s in i.access.strides if s != 0}) and strides <= outer
    }


def plain_loads(kernel: Kernel, phase: Phase) -> Iterator[tuple[int, Load]]:
    """Loads of what is surely there and is not written."""
    written = {i.access.buffer for _, i in kernel.instructions() if isinstance(i, Store)}
    for number, i in phase.body:
        if isinstance(i, Load) and not i.within and not i.access.gathers:
            is_row = kernel.buffers[i.access.buffer].role == "row"
            if not is_row and i.access.buffer not in written:
                yield number, i


def row_shape(across: Across, n: int, width: int) -> tuple[int, int] | None:
    """Threads of a row of n elements, and packs of a thread; None: no group holds it."""
    each, _ = burden(across)
    lanes = power(up(n, each))
    if lanes > 32:  # a whole block
        lanes = max(up(up(n, each), 32) * 32, _LEAST)
    if each < width or lanes > _LONGEST:
        return None
    return lanes, max(1, up(n, lanes * width))


def burden(across: Across) -> tuple[int, int]:
    """Elements of a row that a thread has, and registers that it needs for each."""
    kernel = across.kernel
    words = 0
    for access, dtype in {(i.access, i.dtype) for i in packed_loads(kernel).values()}:
        moves = any(a in kernel.outer and s != 0 for a, s in access.strides)
        words += up(dtype.itemsize, 4) * (2 if moves else 1)
    words += sum(up(b.dtype.itemsize, 4) for b in kernel.buffers if b.role == "row")
    folds = [f for f, axes in folds_across(across) if axes]
    cells = sum(8 * len(f.cells) for f in folds)
    words += sum(up(f.accumulator.itemsize, 4) * len(f.cells) for f in folds)
    fits = (e for e in _EACH if e * words <= _WORDS and e * cells * _SMALL <= _SHARED)
    return next(fits, 1), words
