"""The vector loop of a reduction over a whole array: strips of four vectors, memory asked ahead.

In: a phase of a WHOLE kernel with its text and loops. Out: the loop over a chunk. Each lane of a
strip has accumulators of its own, so that no addition waits for the one before, and their lanes are
joined once in a stretch of 16 strips (as many roundings as one vector has in a block of its own):

    for (i64 from0 = begin; from0 < end; from0 += 16 * NJ_STRIP(f32)) {
      f32 acc5_lanes[NJ_STRIP(f32)];  ... each = 0
      const auto step = [&](i64 x0, i64 lane) { f32& acc5 = acc5_lanes[lane]; ... };
      for (; at0 + NJ_STRIP(f32) <= to0; at0 += NJ_STRIP(f32)) { nj_ahead(...); ... step ... }
      ... the rest, step by step; acc5 += acc5_lanes[lane] for each lane
    }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npjit.codegen.cpp_kernel import KernelPrinter, width
from npjit.codegen.cpp_loops import Accumulator, Loop
from npjit.codegen.cpp_types import stored
from npjit.schedule.kernel import Load, Phase

# How far memory is asked for ahead of the loop, in bytes over all arrays. The processor does so by
# itself, but less far, and not beyond a page.
_AHEAD = 16384

_STRIPS = 16


@dataclass(frozen=True)
class Stream:
    """A phase, the text of a step, the memory that steps read in order, and the loops."""

    phase: Phase
    text: Sequence[str]
    addresses: Sequence[str]
    loops: Sequence[Loop]

    @property
    def axis(self) -> int:
        return self.phase.axes[-1]

    @property
    def accumulators(self) -> list[Accumulator]:
        return [a for loop in self.loops for a in loop.accumulators()]

    def strip(self) -> str:
        """How many steps a strip has: four vectors of the widest values."""
        kinds = [loop.kind for loop in self.loops] + [a.kind for a in self.accumulators]
        loads = [stored(i.dtype) for _, i in self.phase.body if isinstance(i, Load)]
        return f"NJ_STRIP({max([*kinds, *loads], key=width)})"


def print_stream(printer: KernelPrinter, stream: Stream, low: str, high: str) -> None:
    """The loop over low .. high."""
    w, axis, strip = printer.writer, stream.axis, stream.strip()
    start, stop, at = f"from{axis}", f"to{axis}", f"at{axis}"
    stretch = f"{_STRIPS} * {strip}"
    with w.block(f"for (i64 {start} = {low}; {start} < {high}; {start} += {stretch})"):
        w.line(f"const i64 {stop} = nj_size_min({start} + {stretch}, {high});")
        for loop in stream.loops:
            w.lines(loop.before_block())
        _print_step(printer, stream)
        w.line(f"i64 {at} = {start};")
        with w.block(f"for (; {at} + {strip} <= {stop}; {at} += {strip})"):
            _ask_ahead(printer, stream, high)
            _print_lanes(printer, strip, f"step({at} + lane, lane);")
        _print_lanes(printer, f"{stop} - {at}", f"step({at} + lane, lane);")
        sums = [a for a in stream.accumulators if a.sign == "+"]
        # one after the other, as a vector loop would add the lanes, takes as long as 100 values do
        w.lines(a.join(f"nj_lanes_total({a.name}_lanes)") for a in sums)
        others = [a for a in stream.accumulators if a not in sums]
        joined = " ".join(a.join(f"{a.name}_lanes[lane]") for a in others)
        _print_lanes(printer, strip, joined, [a.clause for a in others])
        position = printer.position(stream.phase.axes, start)
        for loop in stream.loops:
            w.lines(loop.after_block(f"{stop} - {start}", position))


def _print_step(printer: KernelPrinter, stream: Stream) -> None:
    """The lanes' accumulators, and the function of one step."""
    w, x = printer.writer, f"x{stream.axis}"
    for a in stream.accumulators:
        w.line(f"{a.kind} {a.name}_lanes[{stream.strip()}];")
    fills = " ".join(f"{a.name}_lanes[lane] = {a.start};" for a in stream.accumulators)
    _print_lanes(printer, stream.strip(), fills)
    inline = "__attribute__((always_inline))"
    with w.block(f"const auto step = [&](i64 {x}, i64 lane) {inline}", "};"):
        w.lines(f"{a.kind}& {a.name} = {a.name}_lanes[lane];" for a in stream.accumulators)
        w.lines(stream.text)
        for loop in stream.loops:
            w.lines(loop.step(printer.position(stream.phase.axes), f"{x} - from{stream.axis}"))


def _print_lanes(
    printer: KernelPrinter, count: str, text: str, clauses: Sequence[str] = ()
) -> None:
    if text:
        printer.writer.line(" ".join(["#pragma omp simd", *clauses]))
        printer.writer.line(f"for (i64 lane = 0; lane < {count}; ++lane) {{ {text} }}")


def _ask_ahead(printer: KernelPrinter, stream: Stream, high: str) -> None:
    """Ask for the memory of a strip to come. A loop of the plan has streams that end soon, and its
    next one may lie elsewhere."""
    if not stream.addresses or printer.is_repeated:
        return
    w, at, strip = printer.writer, f"at{stream.axis}", stream.strip()
    ahead = f"{_AHEAD // len(stream.addresses)}, {high} - {strip} - {at}"
    with w.block(""):
        w.line(f"const i64 x{stream.axis} = {at};")
        w.lines(f"nj_ahead<{strip}>({address}, {ahead});" for address in stream.addresses)
