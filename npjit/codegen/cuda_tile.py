"""Kernels that read one array along another axis than they write, such as a transpose: tiles go through shared memory.

In: a `Kernel` without inner axes, some of whose loads have unit stride along an outer axis that is not the last. Out: two
functions, one for tiles of SIDE x SIDE elements, and that of `cuda_map` for small extents:

    __shared__ f32 tile0[32][33];
    tile0[...][threadIdx.x % 32] = mem0[...];      neighbouring threads along the array's own axis
    __syncthreads();
    ... tile0[threadIdx.x % 32][...] ...           neighbouring threads along the result's
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from npjit.codegen.cpp_types import ctype, is_complex, stored
from npjit.codegen.cuda_kernel import BLOCK, CudaPrinter, merged
from npjit.codegen.cuda_lanes import LanePrinter, levels_of
from npjit.codegen.cuda_launch import Configured, Request, Start, up
from npjit.codegen.cuda_map import MapPrinter
from npjit.schedule.kernel import Instr, Kernel, Load, Phase

SIDE = 32
_ROWS = BLOCK // SIDE


class TileLanes(LanePrinter):
    """Loads that were staged are read from their tiles."""

    staged: dict[int, str]

    def _define(self, number: int, instr: Instr) -> list[str]:
        tile = self.staged.get(number)
        if tile is None or not isinstance(instr, Load):
            return super()._define(number, instr)
        place = f"{tile}[across][along + row]"
        if is_complex(instr.dtype):
            return self._declare(number, [f"{place}.re", f"{place}.im"])
        truth = instr.dtype.kind == "b"
        return self._declare(number, [f"nj_truth({place})" if truth else place])


class TilePrinter(CudaPrinter):
    """See the module's docstring."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        super().__init__(kernel, name)
        self.plain = MapPrinter(kernel, f"{name}_plain")
        axis = turned_axis(kernel)
        assert axis is not None
        self.axis = axis

    def print(self) -> str:
        phase = merged(self.kernel.phases)
        axes = self.kernel.outer
        printer = TileLanes(self.values, phase, levels_of(axes, {}), self.slots)
        loads = turned_loads(phase, self.axis, axes[-1])
        printer.staged = {n: f"tile{n}" for n in loads}
        printed = printer.print()
        w = self.writer
        with self.function(""):
            self.unpack()
            for n, instr in loads.items():
                kind = ctype(instr.dtype) if is_complex(instr.dtype) else stored(instr.dtype)
                w.line(f"__shared__ {kind} tile{n}[{SIDE}][{SIDE + 1}];")
            self._place()
            w.lines([*printed.levels[-1], *printed.levels[0]])
            with self._rows(self.axis, axes[-1], "x"):
                for n, instr in loads.items():
                    w.line(f"tile{n}[along + row][across] = {self._element(printer, instr)};")
            w.line("__syncthreads();")
            with self._rows(axes[-1], self.axis, "start"):
                w.line("const nj_full count;")
                self.lanes(printed, printer.moves, axes[-1])
        return f"{w}\n{self.plain.print()}"

    def _place(self) -> None:
        """The tile of this block and the thread's place in it."""
        w = self.writer
        last = self.kernel.outer[-1]
        w.line(f"const i32 across = threadIdx.x % {SIDE};")
        w.line(f"const i32 along = threadIdx.x / {SIDE};")
        w.line("idx tile = blockIdx.x;")
        for axis in (last, self.axis):
            tiles = f"(({self.extent(axis)} + {SIDE - 1}) / {SIDE})"
            w.line(f"const idx from{axis} = tile % {tiles} * {SIDE};")
            w.line(f"tile /= {tiles};")
        self.decode([a for a in self.kernel.outer if a not in (last, self.axis)], "tile")

    @contextmanager
    def _rows(self, across: int, along: int, last: str) -> Iterator[None]:
        """This thread's elements, neighbouring threads along the axis `across`, if they are there."""
        w = self.writer
        name = f"{last}{across}"
        w.line("#pragma unroll")
        with w.block(f"for (i32 row = 0; row < {SIDE}; row += {_ROWS})"):
            w.line(f"const idx {name} = from{across} + across;")
            w.line(f"const idx x{along} = from{along} + along + row;")
            inside = f"{name} < {self.extent(across)} && x{along} < {self.extent(along)}"
            with w.block(f"if ({inside})"):
                yield

    def _element(self, printer: LanePrinter, instr: Load) -> str:
        parts = printer.elements(instr)
        return f"{ctype(instr.dtype)}{{{', '.join(parts)}}}" if len(parts) == 2 else parts[0]

    def configure(self, request: Request) -> Configured:
        last = self.kernel.outer[-1]
        extents = [request.extent(last), request.extent(self.axis)]
        if min(extents) < SIDE // 2:
            return self.plain.configure(request)
        others = [a for a in self.kernel.outer if a not in (last, self.axis)]
        tiles = request.items(others) * up(extents[0], SIDE) * up(extents[1], SIDE)
        function = f"{self.name}<{request.index_type()}, 1, 0>"
        return Configured((Start(function, (tiles, 1), BLOCK),) if tiles else ())


def turned_loads(phase: Phase, axis: int, last: int) -> dict[int, Load]:
    """Loads with unit stride along `axis` and another one along the last axis."""
    found = {}
    for number, instr in phase.body:
        if isinstance(instr, Load) and not instr.within and not instr.access.gathers:
            strides = dict(instr.access.strides)
            if strides.get(axis, 0) == 1 and strides.get(last, 0) not in (0, 1, -1):
                found[number] = instr
    return found


def turned_axis(kernel: Kernel) -> int | None:
    """The axis along which most loads run that do not run along the last one; None: there are none."""
    last = kernel.outer[-1] if kernel.outer else -1
    phase = merged(kernel.phases)
    counts = Counter({a: len(turned_loads(phase, a, last)) for a in kernel.outer[:-1]})
    if not counts or max(counts.values()) == 0:
        return None
    written = {
        instr.access.buffer
        for _, instr in phase.body
        if not isinstance(instr, Load) and hasattr(instr, "access")
    }
    axis = counts.most_common(1)[0][0]
    # a tile is read before anything is written
    reads = {i.access.buffer for i in turned_loads(phase, axis, last).values()}
    return None if reads & written else axis
