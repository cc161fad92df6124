"""Kernels with outer axes as C++: the forms MAP, ROWS and LANES (see `cpp_form`).

In: a `Kernel`. Out: its functions. Threads share the linear range of outer indices; within a chunk

    MAP      for segments of the last outer axis: vector loop { everything }
    ROWS     for each outer index: for each phase: inner loops, the last a vector loop
    LANES    for segments of the last outer axis: vector loop { for each phase: inner loops }
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from npjit.codegen.cpp_form import cost, gathers_along, per_item
from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_loops import loop
from npjit.codegen.cpp_phase import Levels, PhasePrinter
from npjit.codegen.cpp_pick import Pick, pick
from npjit.codegen.cpp_reduce import fold
from npjit.codegen.cpp_statements import Statements, versions
from npjit.codegen.cpp_types import size
from npjit.core.size import product
from npjit.schedule.kernel import Kernel, Load, Phase, Store, extents

# steps that are looked at together: 4 KiB of float32
_STRIP = 1024
# bytes of an array that may be in the caches of two cores
_CACHED = 2 << 20
# bytes of an item of which a vector has so many that a part of one takes long
_NARROW = 2
# additions of a step that wait for memory rather than for the processor
_LIGHT = 64


class OuterPrinter(KernelPrinter):
    """What the forms with outer axes share: chunk function, preamble, launch."""

    def print(self) -> str:
        self.struct()
        with self.chunk("_chunk"):
            self.unpack()
            self.body()
        with self.launcher():
            self.writer.line(self.packed())
            self.share(self.kernel.outer, per_item(self.kernel, self.kernel.phases))
            self.run("chunk")
        if self.is_swept:
            self.launcher_of_rows()
        return str(self.writer)

    def body(self) -> None:
        """The chunk function's text behind its arguments."""
        raise NotImplementedError

    def phases(self, lanes: Sequence[int]) -> list[Statements]:
        """Every phase's statements, when loops over `lanes` are around all phases; the preamble is
        written at once."""
        level: dict[int, int] = {}
        found = []
        for phase in self.kernel.phases:
            loops = [[axis] for axis in (*lanes, *phase.axes)]
            vector = [*lanes, *phase.axes[-1:]][:1]
            levels = Levels(loops, level, vector=vector[0] if vector else None)
            printer = PhasePrinter(self.values, phase, levels)
            found.append(printer.print())
            level |= {n: min(k, len(lanes)) for n, k in printer.level.items()}
        for printed in found:
            self.writer.lines(printed.levels[-1])
        return found


class MapPrinter(OuterPrinter):
    """No inner axes: one vector loop does all phases. Where one range of its indices decides about
    all padding, the inside and the outside of the range are loops without conditions. Where
    functions have a quicker form for some arguments, a strip whose arguments all suit it gets a
    loop with that form. Where neighbours of an element are read from memory, vectors have half a
    cache line: of whole ones every load would wait for two lines. Where the place of an element
    depends on the position, the loop is cut into parts."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        super().__init__(pick(kernel), name)

    def body(self) -> None:
        w = self.writer
        axis = self.kernel.outer[-1]
        merged = Phase((), tuple(self.kernel.instructions()))
        printed = PhasePrinter(self.values, merged, Levels([[axis]], {}, vector=axis)).print()
        w.lines(printed.levels[-1])
        narrow = "" if self.is_swept else self._narrow(merged)
        if narrow:
            w.line(f"const b1 narrow = {narrow};")

        for head, (version,) in versions([printed]):
            with w.block(head) if head else nullcontext():
                self._segments(version, narrow)

    def _segments(self, printed: Statements, narrow: str) -> None:
        def inside(low: str, high: str) -> None:
            self.writer.lines(printed.levels[0])
            with self._parts(low, high, printed) as (low, high):
                loops(low, high)

        def loops(low: str, high: str) -> None:
            if len(printed.held) == 1:
                self._padded_loops(low, high, printed)
            elif not printed.near.keys().isdisjoint(printed.levels[1]):
                self._near_loops(low, high, printed)
            else:
                self._wide_or_narrow(low, high, printed.levels[1], narrow)

        self.segments(self.kernel.outer, inside)

    @contextmanager
    def _parts(self, low: str, high: str, printed: Statements) -> Iterator[tuple[str, str]]:
        """The bounds of a part in which every picked element's place is fixed, inside a loop over
        such parts; all of the range where nothing is picked."""
        if not printed.shifts:
            yield low, high
            return
        w = self.writer
        axis = self.kernel.outer[-1]
        start, stop = f"part{axis}", f"end{axis}"
        w.line(f"i64 {stop} = {low};")
        with w.block(f"for (i64 {start} = {low}; {start} < {high}; {start} = {stop})"):
            w.line(f"{stop} = {high};")
            ends = (size(end) for s in printed.shifts for end in (s.within.lo, s.within.hi))
            w.lines(f"{stop} = nj_cut({start}, {stop}, {end});" for end in dict.fromkeys(ends))
            w.lines(s.line(start) for s in printed.shifts)
            yield start, stop

    def _narrow(self, phase: Phase) -> str:
        """When vectors of half a cache line are better; empty for never."""
        axis = self.kernel.outer[-1]
        windows: dict[object, dict[str, None]] = {}
        for _, i in phase.body:
            if isinstance(i, Load) and (axis, 1) in i.access.strides and not i.access.gathers:
                places = windows.setdefault((i.access.buffer, i.access.strides), {})
                places[size(i.access.offset)] = None
            if isinstance(i, Pick) and (axis, 1) in i.access.strides:
                places = windows.setdefault((i.access.buffer, i.access.strides), {})
                places |= {size(i.access.offset): None, size(i.beyond): None}
        several = [", ".join(places) for places in windows.values() if len(places) > 1]
        if not several or cost(phase) > _LIGHT or self.is_inlined():
            return ""
        steps = size(product(extents(self.kernel, self.kernel.outer)))
        item = max(b.dtype.itemsize for b in self.kernel.buffers)
        close = " | ".join(f"nj_are_close({{{places}}})" for places in several)
        return f"(NJ_VECTOR_BYTES > 32) & (({steps}) * {item} > {_CACHED}) & ({close})"

    def _padded_loops(self, low: str, high: str, printed: Statements) -> None:
        w = self.writer
        axis = self.kernel.outer[-1]
        (held,) = printed.held
        start, stop = f"from{axis}", f"to{axis}"
        w.line(f"const i64 {start} = nj_size_min(nj_size_max({low}, {held.lo}), {high});")
        w.line(f"const i64 {stop} = nj_size_max({start}, nj_size_min({held.hi}, {high}));")
        outside = held.fixed(printed.levels[1], "false")
        self._vector_loop(low, start, outside)
        self._whole_vectors(start, stop, held.fixed(printed.levels[1], "true"))
        self._vector_loop(stop, high, outside)

    def _wide_or_narrow(self, low: str, high: str, text: Sequence[str], narrow: str) -> None:
        w = self.writer
        if not narrow:
            self._whole_vectors(low, high, text)
            return
        lanes = 32 // max(b.dtype.itemsize for b in self.kernel.buffers)
        with w.block("if (narrow)"):
            self._vector_loop(low, high, text, f"simdlen({lanes})")
        with w.block("else"):
            self._whole_vectors(low, high, text)

    def _near_loops(self, low: str, high: str, printed: Statements) -> None:
        w = self.writer
        axis = self.kernel.outer[-1]
        start, stop = f"from{axis}", f"to{axis}"
        text = printed.levels[1]
        near = {line: printed.near[line] for line in text if line in printed.near}
        stores = {n for n, i in self.kernel.instructions() if isinstance(i, Store)}
        stored = {line for n in stores for line in printed.definitions[n]}
        suits = " & ".join(dict.fromkeys(n.condition for n in near.values()))
        with w.block(f"for (i64 {start} = {low}; {start} < {high}; {start} += {_STRIP})"):
            w.line(f"const i64 {stop} = nj_size_min({start} + {_STRIP}, {high});")
            w.line("i32 far = 0;")
            values = [line for line in text if line not in stored]
            self._vector_loop(start, stop, [*values, f"far |= !({suits});"], "reduction(|:far)")
            with w.block("if (far)"):
                self._vector_loop(start, stop, text)
            with w.block("else"):
                quick = [near[line].line if line in near else line for line in text]
                self._vector_loop(start, stop, quick)

    def _whole_vectors(self, low: str, high: str, text: Sequence[str]) -> None:
        """A loop whose last vector, if it would not be full, begins earlier and does some items
        again: what is left of a row of bytes would be up to 31 items, one by one."""
        item = min(b.dtype.itemsize for b in self.kernel.buffers)
        is_row = len(self.kernel.outer) > 1 or self.is_swept
        if item > _NARROW or not is_row or not self.may_repeat:
            self._vector_loop(low, high, text)
            return
        w = self.writer
        axis = self.kernel.outer[-1]
        lanes, whole = f"NJ_VECTOR_BYTES / {item}", f"whole{axis}"
        rest = f"{high} - {low} < {lanes} ? 0 : ({high} - {low}) % ({lanes})"
        w.line(f"const i64 {whole} = {high} - ({rest});")
        self._vector_loop(low, whole, text)
        with w.block(f"if ({whole} < {high})"):
            w.line("#pragma omp simd")
            with w.block(f"for (i64 lane = 0; lane < {lanes}; ++lane)"):
                w.line(f"const i64 x{axis} = {high} - {lanes} + lane;")
                w.lines(text)

    def _vector_loop(self, low: str, high: str, text: Sequence[str], clause: str = "") -> None:
        w = self.writer
        axis = self.kernel.outer[-1]
        apart = not clause and gathers_along(self.kernel, axis)
        w.line("#pragma GCC unroll 4" if apart else f"#pragma omp simd {clause}".rstrip())
        with w.block(f"for (i64 x{axis} = {low}; x{axis} < {high}; ++x{axis})"):
            if apart:
                w.line('__asm__ volatile("");  // no vectors, whose gathers are slower')
            w.lines(text)


class RowsPrinter(OuterPrinter):
    """One outer index after the other; the inner axes in vectors."""

    def body(self) -> None:
        w = self.writer
        self.rows()
        found = self.phases([])
        outer = self.kernel.outer
        self.decode(outer, f"x{outer[-1]}")
        with w.block("for (i64 t = begin; t < end; ++t)"):
            for phase, printed in zip(self.kernel.phases, found, strict=True):
                self._phase(phase, printed)
            self.carry(outer)

    def _phase(self, phase: Phase, printed: Statements) -> None:
        w = self.writer
        if not phase.axes:
            w.lines(printed.levels[0])
            return
        loops = [loop(fold(n, i, self.values)) for n, i in printed.reduces]
        for a in loops:
            w.lines(a.before())
        last = phase.axes[-1]
        text = printed.levels.pop(len(phase.axes), [])

        def inside() -> None:
            self.vector_loop(phase, "0", size(self.kernel.axes[last].extent), text, loops)

        self.nest(phase.axes[:-1], printed, 0, inside)
        for a in loops:
            w.lines(a.fold.finish(a.results()))


class LanesPrinter(OuterPrinter):
    """A few literal inner steps: they are unrolled within each lane of the last outer axis."""

    def body(self) -> None:
        found = self.phases([self.kernel.outer[-1]])
        self.segments(self.kernel.outer, lambda low, high: self.row(found, low, high))

    def row(self, found: Sequence[Statements], low: str, high: str) -> None:
        """The lanes low .. high of one row."""
        w = self.writer
        axis = self.kernel.outer[-1]
        for printed in found:
            w.lines(printed.levels[0])
        w.line("#pragma omp simd")
        with w.block(f"for (i64 x{axis} = {low}; x{axis} < {high}; ++x{axis})"):
            for phase, printed in zip(self.kernel.phases, found, strict=True):
                self._phase(phase, printed)

    def _phase(self, phase: Phase, printed: Statements) -> None:
        w = self.writer
        folds = [fold(n, i, self.values) for n, i in printed.reduces]
        for f in folds:
            starts = zip(f.cells, f.initial(), strict=True)
            w.lines(f"{kind} {name} = {start};" for (kind, name), start in starts)

        w.lines(printed.levels[1])
        for place in self._places(phase.axes):
            # a loop here would often keep g++ from making vectors of the loop over lanes
            with w.block(""):
                pairs = zip(phase.axes, place, strict=True)
                w.lines(f"const i64 x{axis} = {at};" for axis, at in pairs)
                for level in range(2, 2 + len(phase.axes)):
                    w.lines(printed.levels[level])
                for f in folds:
                    w.lines(f.take([c for _, c in f.cells], f.items(self.position(phase.axes))))
        for f in folds:
            w.lines(f.finish([c for _, c in f.cells]))

    def _places(self, axes: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Every index of the inner axes, which are literal; none for a phase without axes."""
        if not axes:
            return iter(())
        found = extents(self.kernel, tuple(axes))
        return itertools.product(*(range(n) for n in found if isinstance(n, int)))
