"""Kernels that read one array along another axis than they write, such as a transpose: tiles go
through shared memory.

In: a `Kernel` without inner axes, some of whose loads have unit stride along an outer axis that is
not the last. Out: two functions, one for square tiles, and that of `cuda_map` for small extents:

    __shared__ f32 tile0[64][65];
    ... tile0[along + row][across + lane] = ...      a thread's lanes along the array's own axis
    __syncthreads();
    ... tile0[across + lane][along + row] ...        a thread's lanes along the result's
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from npjit.codegen.cuda_kernel import BLOCK, CudaPrinter, merged
from npjit.codegen.cuda_lanes import LanePrinter, Move, element_type, lanes_of, levels_of, whole_of
from npjit.codegen.cuda_launch import Configured, Request, Slot, Start, up
from npjit.codegen.cuda_map import MapPrinter
from npjit.schedule.kernel import Kernel, Load, Phase

# elements of a tile along each axis, by the lanes of a thread
_SIDES = {1: 32, 2: 64, 4: 64}
# bytes of shared memory that leave room for a second block
_SHARED = 40000


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
        printer = LanePrinter(self.values, phase, levels_of(axes, {}), self.slots)
        loads = turned_loads(phase, self.axis, axes[-1])
        printer.ready |= {n: f"tile{n}[across + lane][along + row]" for n in loads}
        printed = printer.print()
        w = self.writer
        moves = [printer.move(f"t{n}", i.access, i.dtype) for n, i in loads.items()]
        with self.function("", ", u64 B"):
            self.unpack()
            w.line(f"const i32 side = V == 1 ? {_SIDES[1]} : {_SIDES[4]};")
            w.line("const i32 wide = side / V;")
            for n, instr in loads.items():
                w.line(f"__shared__ {element_type(instr.dtype)} tile{n}[side][side + 1];")
            self._place()
            w.lines([*printed.levels[-1], *printed.levels[0]])
            with self._rows(self.axis, axes[-1]):
                for (n, instr), move in zip(loads.items(), moves, strict=True):
                    self._stage(n, instr, move)
            w.line("__syncthreads();")
            with self._rows(axes[-1], self.axis):
                self.lanes(printed, printer.moves, axes[-1])
        return f"{w}\n{self.plain.print()}"

    def _place(self) -> None:
        """The tile of this block and the thread's place in it."""
        w = self.writer
        last = self.kernel.outer[-1]
        w.line("const i32 across = threadIdx.x % wide * V;")
        w.line("const i32 along = threadIdx.x / wide;")
        w.line("idx tile = blockIdx.x;")
        for axis in (last, self.axis):
            tiles = f"(({self.extent(axis)} + side - 1) / side)"
            w.line(f"const idx from{axis} = tile % {tiles} * side;")
            w.line(f"tile /= {tiles};")
        self.decode([a for a in self.kernel.outer if a not in (last, self.axis)], "tile")

    @contextmanager
    def _rows(self, across: int, along: int) -> Iterator[None]:
        """This thread's elements, neighbours along the axis `across`, as far as they are there."""
        w = self.writer
        w.line("#pragma unroll")
        with w.block(f"for (i32 row = 0; row < side; row += {BLOCK} / wide)"):
            w.line(f"const idx start{across} = from{across} + across;")
            w.line(f"const idx x{along} = from{along} + along + row;")
            w.line(f"const idx left = {self.extent(across)} - start{across};")
            with w.block("const auto body = [&](auto count)", "};"):
                yield
            with w.block(f"if (x{along} < {self.extent(along)})"):
                w.line("if (left >= V) body(nj_full());")
                w.line("else body(nj_some{(i32)left});")

    def _stage(self, number: int, instr: Load, move: Move) -> None:
        """A load's lanes, from memory into the tile."""
        w = self.writer
        w.line(move.declare())
        with w.block(""):
            w.line(f"const idx x{self.axis} = start{self.axis};")
            w.line(move.load().replace("(A >>", "(B >>"))
        value = whole_of(lanes_of(f"t{number}", instr.dtype, raw=True), instr.dtype)
        w.line("#pragma unroll")
        with w.block("for (i32 lane = 0; lane < V; ++lane)"):
            w.line(f"tile{number}[along + row][across + lane] = {value};")

    def configure(self, request: Request) -> Configured:
        last = self.kernel.outer[-1]
        extents = [request.extent(last), request.extent(self.axis)]
        if min(extents) < _SIDES[1] // 2:
            return self.plain.configure(request)
        width = min(4, request.widest(self.slots))
        while width > 1 and not self._fits(request, width):
            width //= 2
        side = _SIDES[width]
        others = [a for a in self.kernel.outer if a not in (last, self.axis)]
        tiles = request.items(others) * up(extents[0], side) * up(extents[1], side)
        packed = [request.packed(self.slots, axis, width) for axis in (last, self.axis)]
        function = f"{self.name}<{request.index_type()}, {width}, {packed[0]}, {packed[1]}>"
        return Configured((Start(function, (tiles, 1), BLOCK),) if tiles else ())

    def _fits(self, request: Request, width: int) -> bool:
        """Whether all accesses can be as wide, each along its own axis, and a block has room for
        its tiles."""
        last = self.kernel.outer[-1]
        tiles = sum(s.dtype.itemsize for s in self.slots if self._is_turned(s))
        if tiles * _SIDES[width] ** 2 > _SHARED:
            return False
        return all(
            request.are_aligned([s], self.axis if self._is_turned(s) else last, width)
            for s in self.slots
        )

    def _is_turned(self, slot: Slot) -> bool:
        return dict(slot.access.strides).get(self.kernel.outer[-1], 0) != 1


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
    """The axis along which most loads run that do not run along the last one; None: there are
    none."""
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
