"""Reductions across memory as CUDA: neighbouring threads do neighbouring columns, so that each
access is one line.

In: a `Kernel` whose last outer axis has unit stride. Out: one function for each of its steps (see
`cuda_steps`). A block is `BLOCK / DEEP` packs of columns wide and `DEEP` threads deep; more blocks
share the depth where columns are few.

    template <..., i32 DEEP> __global__ void k0_0(const f32* mem0, f32* mem1, i64 size0, ...) {
      k0_fold0 total[V];
      for (...) body(...);                                    a thread's share of V columns
      nj_join_deep<BLOCK / DEEP>(total[lane], shares, place); the block's
      if (gridDim.y > 1) ...                                  the blocks'
      if (place == 0) ...                                     what follows
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.codegen.cpp_reduce import Fold
from npjit.codegen.cpp_values import operands
from npjit.codegen.cuda_kernel import BLOCK, merged
from npjit.codegen.cuda_lanes import LanePrinter, levels_of, pack_variable
from npjit.codegen.cuda_launch import Configured, Request, Start, up
from npjit.codegen.cuda_steps import RUN, Step, StepsPrinter
from npjit.schedule.kernel import Phase

# threads of a block along the reduced axes
_DEEP = 8
# blocks that a large device runs at once, and steps of a thread that are worth another block
_BUSY = 1056
_STEPS = 32


class ColumnsPrinter(StepsPrinter):
    """See the module's docstring."""

    def print(self) -> str:
        for step in self.steps:
            self._step(step)
        return str(self.writer)

    def finishing(self, step: Step) -> Phase:
        """The same; each lane has leading values of its own, which later steps make anew if they
        use them."""
        lead = self.prologue()
        used = {a for _, i in step.finish.body for a in operands(i)}
        if step.number == 0 or used.isdisjoint(n for n, _ in lead.body):
            return super().finishing(step)
        return merged([lead, step.finish])

    @property
    def lane_axis(self) -> int:
        """The axis whose neighbours are a thread's lanes."""
        return self.kernel.outer[-1]

    def _step(self, step: Step) -> None:
        w = self.writer
        lane = self.lane_axis
        loops = (*(step.loop.axes if step.loop else ()), lane)
        every = {n: 1 for p in self.kernel.phases for n, _ in p.body}
        lead = self._printed(self.prologue(), (lane,))
        loop = (
            self._printed(step.loop, loops, {n: len(loops) for n in every}) if step.loop else None
        )
        last = self._printed(self.finishing(step), (lane,), every)
        folds = self.folds(loop) if loop else []
        struct = f"{self.name}_fold{step.number}"
        if folds:
            self.fold_struct(struct, folds)
        self.note(step, folds)
        with self.function(f"_{step.number}", ", i32 DEEP", more=self.scratch()):
            self._place()
            if loop and step.loop:
                kept = self._keep(lead, loop)
                if folds:
                    w.line(f"{struct} total[V];")
                    w.lines(
                        [
                            "#pragma unroll",
                            "for (i32 lane = 0; lane < V; ++lane) total[lane].start();",
                        ]
                    )
                before = [*kept, *self.imports(step, loop, self._column())]
                self._loop(step.loop, loop, folds, struct, before)
            if folds:
                self._join(struct)
            mine = "place == 0 && live" if folds else "place == 0 && live && blockIdx.y == 0"
            with w.block(f"if ({mine})"):
                w.line("const nj_some count = {left < V ? (i32)left : V};")
                before = [
                    *self.imports(step, last, self._column()),
                    *self.finish(folds, "total[lane]"),
                ]
                after = [
                    f"if (count.has(lane)) {line}" for line in self.exports(step, self._column())
                ]
                w.lines([*last.out.levels[-1], *last.out.levels[0]])
                self.lanes(last.out, last.moves, lane, before, after)

    def _printed(
        self, phase: Phase, loops: Sequence[int], level: dict[int, int] | None = None
    ) -> LanePrinter:
        printer = LanePrinter(self.values, phase, levels_of(loops, level or {}), self.slots)
        printer.print()
        return printer

    def _place(self) -> None:
        """This thread's columns."""
        w = self.writer
        lane = self.lane_axis
        self.unpack()
        w.line(f"const i32 wide = {BLOCK} / DEEP;")
        w.line("const i32 place = threadIdx.x / wide;")
        w.line(f"const idx chunks = ({self.extent(lane)} + V - 1) / V;")
        w.line("const idx item = (idx)blockIdx.x * wide + threadIdx.x % wide;")
        w.line(f"const b1 live = item < ({self.items(self.kernel.outer[:-1])}) * chunks;")
        self.decode_chunk(self.kernel.outer, "item", "chunks")
        w.line(f"const idx left = {self.extent(lane)} - start{lane};")

    def _column(self) -> str:
        return self.position(self.kernel.outer)

    def _keep(self, lead: LanePrinter, loop: LanePrinter) -> list[str]:
        """Compute the leading phases lane by lane; statements that get the values a loop uses
        back."""
        w = self.writer
        needed = self.needed_from(lead.phase, loop)
        if not needed:
            return []
        after: list[str] = []
        before: list[str] = []
        for n in needed:
            dtype = self.values.dtype(n)
            names = [name for _, name in self.values.names(n)]
            places = [f"kept{n}.at[lane]"]
            if len(names) == 2:
                places = [f"kept{n}.at[2 * lane]", f"kept{n}.at[2 * lane + 1]"]
            w.line(pack_variable(f"kept{n}", dtype))
            pairs = list(zip(self.values.names(n), places, strict=True))
            after += [f"{p} = {name};" for (_, name), p in pairs]
            before += [f"const {kind} {name} = {p};" for (kind, name), p in pairs]
        with w.block("if (live)"):
            w.line("const nj_some count = {left < V ? (i32)left : V};")
            w.lines([*lead.out.levels[-1], *lead.out.levels[0]])
            self.lanes(lead.out, lead.moves, self.lane_axis, (), after)
        return before

    def _loop(
        self,
        phase: Phase,
        loop: LanePrinter,
        folds: Sequence[Fold],
        struct: str,
        before: Sequence[str],
    ) -> None:
        """This thread's share of the reduced axes, in runs of a few steps when there is something
        to sum."""
        w = self.writer
        into = f", {struct}* part" if folds else ""
        with w.block(f"const auto body = [&](auto count, idx item{into})", "};"):
            self.decode(phase.axes, "item")
            takes = self.takes(folds, phase, "part[lane]")
            w.lines([*loop.out.levels[-1], *loop.out.levels[0]])
            self.lanes(loop.out, loop.moves, self.lane_axis, before, takes)
        with w.block("const auto share = [&](auto count)", "};"):
            w.line(f"const idx n = {self.items(phase.axes)};")
            w.line("const idx step = (idx)gridDim.y * DEEP;")
            w.line("idx item = (idx)blockIdx.y * DEEP + place;")
            if not folds:
                w.line("for (; item < n; item += step) body(count, item);")
            else:
                with w.block("while (item < n)"):
                    w.line(f"{struct} part[V];")
                    each = "for (i32 lane = 0; lane < V; ++lane)"
                    w.lines(["#pragma unroll", f"{each} part[lane].start();"])
                    w.line(f"const idx stop = nj_size_min(n, item + {RUN} * step);")
                    w.line("#pragma unroll 4")
                    w.line("for (; item < stop; item += step) body(count, item, part);")
                    w.lines(["#pragma unroll", f"{each} total[lane].take(part[lane]);"])
        with w.block("if (live)"):
            w.line("if (left >= V) share(nj_full());")
            w.line("else share(nj_some{(i32)left});")

    def _join(self, struct: str) -> None:
        """The block's and then the blocks' totals."""
        w = self.writer
        w.line(f"__shared__ {struct} shares[{BLOCK}];")
        join = "total[lane] = nj_join_deep<DEEP>(total[lane], shares);"
        each = "for (i32 lane = 0; lane < V; ++lane)"
        w.lines(["#pragma unroll", f"{each} {join}"])
        with w.block("if (gridDim.y > 1)"):
            w.line(f"{struct}* const all = ({struct}*)parts;")
            w.line("const idx row = (idx)gridDim.x * wide * V;")
            w.line("const idx column = item * V;")
            w.line("if (place == 0)")
            w.line(f"  {each} all[blockIdx.y * row + column + lane] = total[lane];")
            w.line("if (!nj_is_last(counters + blockIdx.x, gridDim.y)) return;")
            with w.block(each):
                w.line("total[lane].start();")
                with w.block("for (u32 y = place; y < gridDim.y; y += DEEP)"):
                    w.line("total[lane].take(all[y * row + column + lane]);")
                w.line(join)

    # ------------------------------------------------------------ launches

    def configure(self, request: Request) -> Configured:
        outer = self.kernel.outer
        extent = request.extent(outer[-1])
        others = request.items(outer[:-1])
        width = request.widest(self.slots)
        while width > 1 and (
            extent < 2 * width or not request.are_aligned(self.slots, outer[-1], width)
        ):
            width //= 2
        items = others * up(extent, width)
        if items == 0:
            return Configured(())
        starts = [self._start(request, step, width, items) for step in self.steps]
        splits = max(s.grid[1] for s in starts)
        blocks = starts[0].grid[0]
        # parts hold whole blocks of columns, some of them beyond the last one
        columns = max(s.grid[0] for s in starts) * BLOCK * width
        *regions, _ = self.regions(request, splits)
        cells = 16 * max(self.fold_counts, default=0)
        parts = columns * splits * cells if splits > 1 else 0
        return Configured(tuple(starts), (*regions, parts), blocks if splits > 1 else 0)

    def _start(self, request: Request, step: Step, width: int, items: int) -> Start:
        n = request.items(step.loop.axes) if step.loop else 1
        busy = request.busy(_BUSY)
        deep = 1 if n < 2 * _DEEP or items >= BLOCK * busy else _DEEP
        blocks = up(items, BLOCK // deep)
        splits = 1
        if deep > 1 and blocks < busy:
            splits = max(1, min(up(n, deep * _STEPS), busy // blocks))
        packed = request.packed(self.slots, self.lane_axis, width)
        function = f"{self.name}_{step.number}<{request.index_type()}, {width}, {packed}, {deep}>"
        return Start(function, (blocks, splits), BLOCK)
