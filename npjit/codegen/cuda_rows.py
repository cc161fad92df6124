"""Reductions along memory as CUDA: groups of threads go through the elements of a row, several
blocks where rows are few.

In: a `Kernel`, with or without outer axes. Out: one function for each of its steps (see
`cuda_steps`):

    template <..., i32 LANES> __global__ void k0_0(..., char* parts, u32* counters) {
      for (...) body(...);                                  a thread's share of the row
      k0_fold0 total = nj_join<LANES>(...);                 the group's
      if (gridDim.y > 1) ...                                the blocks'
      if (place == 0) { const f32 v1 = total.acc1; ... }    what follows
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.codegen.cpp_reduce import Fold
from npjit.codegen.cpp_types import factor, stored
from npjit.codegen.cuda_kernel import BLOCK
from npjit.codegen.cuda_lanes import LanePrinter, levels_of
from npjit.codegen.cuda_launch import Configured, Request, Start, power, up
from npjit.codegen.cuda_moments import has_moments, run_struct
from npjit.codegen.cuda_steps import RUN, Step, StepsPrinter, in_batches
from npjit.schedule.kernel import Phase

# blocks that a large device runs at once, and packs of a thread that are worth another block
_BUSY = 1056
_PACKS = 8
# rows shorter than this are a warp's
_WARP_ROW = 1024


class RowsPrinter(StepsPrinter):
    """See the module's docstring."""

    def print(self) -> str:
        for step in self.steps:
            self._step(step)
        return str(self.writer)

    def _step(self, step: Step) -> None:
        w = self.writer
        outer = {n: 0 for p in self.kernel.phases for n, _ in p.body}
        lead = self._printed(self.prologue(), ())
        loop = self._printed(step.loop, step.loop.axes, outer) if step.loop else None
        last = self._printed(self.finishing(step), (), outer)
        folds = self.folds(loop) if loop else []
        struct = f"{self.name}_fold{step.number}"
        if folds:
            self.fold_struct(struct, folds)
        if has_moments(folds):
            run_struct(w, struct, folds)
        self.note(step, folds)
        bounds = f"LANES > {BLOCK} ? LANES : {BLOCK}"
        with self.function(f"_{step.number}", ", i32 LANES", bounds, self.scratch()):
            self.unpack()
            w.line("const i32 place = threadIdx.x % LANES;")
            per_block = f"(LANES < {BLOCK} ? {BLOCK} / LANES : 1)"
            w.line(f"const idx row = (idx)blockIdx.x * {per_block} + threadIdx.x / LANES;")
            w.line(f"if (row >= {self.items(self.kernel.outer)}) return;")
            self.decode(self.kernel.outer, "row")
            for i, b in enumerate(self.kernel.buffers):
                if b.role == "row":
                    w.line(f"{stored(b.dtype)}* const mem{i} = rows{i} + row * {factor(b.length)};")
            w.lines([*lead.out.levels[-1], *lead.out.levels[0]])
            if loop and step.loop:
                w.lines(self.imports(step, loop, "row"))
                w.lines([*loop.out.levels[-1], *loop.out.levels[0]])
                self._loop(step.loop, loop, folds, struct)
            if folds:
                self._join(struct)
            with w.block("if (place == 0 && blockIdx.y == 0)" if not folds else "if (place == 0)"):
                w.lines(self.imports(step, last, "row"))
                w.lines(self.finish(folds, "total"))
                w.lines([*last.out.levels[-1], *last.out.levels[0]])
                w.lines(self.exports(step, "row"))

    def _printed(
        self, phase: Phase, axes: Sequence[int], level: dict[int, int] | None = None
    ) -> LanePrinter:
        printer = LanePrinter(self.values, phase, levels_of(axes, level or {}), self.slots)
        printer.print()
        return printer

    def _loop(self, phase: Phase, loop: LanePrinter, folds: Sequence[Fold], struct: str) -> None:
        """This thread's share of the row, in runs of a few packs when there is something to sum."""
        w = self.writer
        *others, last = phase.axes
        chunks = f"({self.extent(last)} / V)"
        w.line(
            f"const idx chunks = {factor(1) if not others else self._product(others)} * {chunks};"
        )
        w.line("const idx step = (idx)gridDim.y * LANES;")
        w.line("idx chunk = (idx)blockIdx.y * LANES + place;")
        in_run = has_moments(folds)
        run, done = (f"{struct}_run", "part.done()") if in_run else (struct, "part")
        into = f", {run}& part" if folds else ""
        with w.block(f"const auto body = [&](auto count, idx chunk{into})", "};"):
            self.decode_chunk(phase.axes, "chunk", chunks)
            self.lanes(loop.out, loop.moves, last, (), self.takes(folds, phase, "part", in_run))
        if not folds:
            with w.block("for (; chunk < chunks; chunk += step)"):
                w.line("body(nj_full(), chunk);")
        else:
            w.line(f"{struct} total;")
            w.line("total.start();")
            with w.block("while (chunk < chunks)"):
                w.line(f"{run} part;")
                w.line("part.start();")
                w.line(f"const idx stop = nj_size_min(chunks, chunk + {RUN} * step);")
                w.lines(in_batches("chunk", "stop", "body(nj_full(), {}, part);"))
                w.line(f"total.take({done});")
        if not others:
            self._tail(last, folds, run, done)

    def _product(self, axes: Sequence[int]) -> str:
        return f"({self.items(axes)})"

    def _tail(self, last: int, folds: Sequence[Fold], run: str, done: str) -> None:
        """The lanes behind the last full pack."""
        w = self.writer
        w.line(f"const i32 left = (i32)({self.extent(last)} - chunks * V);")
        with w.block("if (chunk == chunks && left > 0)"):
            if folds:
                w.line(f"{run} part;")
                w.line("part.start();")
                w.line("body(nj_some{left}, chunk, part);")
                w.line(f"total.take({done});")
            else:
                w.line("body(nj_some{left}, chunk);")

    def _join(self, struct: str) -> None:
        """The group's and then the blocks' totals; threads that are not the last block's leave."""
        w = self.writer
        w.line(f"__shared__ {struct} shares[LANES / 32 + 1];")
        w.line("total = nj_join<LANES>(total, shares);")
        with w.block("if (gridDim.y > 1)"):
            w.line(f"{struct}* const all = ({struct}*)parts + row * gridDim.y;")
            w.line("if (place == 0) all[blockIdx.y] = total;")
            w.line("if (!nj_is_last(counters + row, gridDim.y)) return;")
            w.line("total.start();")
            with w.block("for (u32 y = place; y < gridDim.y; y += LANES)"):
                w.line("total.take(all[y]);")
            w.line("total = nj_join<LANES>(total, shares);")

    # ------------------------------------------------------------ launches

    def configure(self, request: Request) -> Configured:
        rows = request.items(self.kernel.outer)
        if rows == 0:
            return Configured(())
        starts = []
        most = 1
        for step in self.steps:
            start = self._start(request, step, rows)
            starts.append(start)
            most = max(most, start.grid[1])
        return Configured(tuple(starts), self.regions(request, most), rows if most > 1 else 0)

    def _start(self, request: Request, step: Step, rows: int) -> Start:
        axes = step.loop.axes if step.loop else ()
        n = request.items(axes)
        width = request.widest(self.slots) if axes else 1
        while width > 1 and not self._fits(request, axes, width, n):
            width //= 2
        packs = up(n, width)
        lanes = min(32, power(packs)) if packs <= _WARP_ROW // 4 else BLOCK
        splits = 1
        busy = request.busy(_BUSY)
        if lanes == BLOCK and rows < busy:
            splits = max(1, min(up(packs, BLOCK * _PACKS), busy // rows))
        packed = request.packed(self.slots, axes[-1], width) if axes else "0"
        function = f"{self.name}_{step.number}<{request.index_type()}, {width}, {packed}, {lanes}>"
        per_block = max(1, BLOCK // lanes)
        return Start(function, (up(rows, per_block), splits), max(lanes, BLOCK))

    def _fits(self, request: Request, axes: Sequence[int], width: int, n: int) -> bool:
        last = request.extent(axes[-1])
        if len(axes) > 1 and last % width:
            return False
        return n >= 2 * width and request.are_aligned(self.slots, axes[-1], width)
