"""LANES kernels that read an operand across memory again for each row: it is packed once.

In: a `Kernel` of the form LANES (see `cpp_form`) with two outer axes or more. Out: its functions.
Neighbouring lanes of `b[j, k]` lie a row of b apart, and every row of the result reads all of b.
The lanes are cut in strips; the strip's part of b is turned into a buffer of the thread's own, in
which neighbouring lanes are neighbours, and all rows of the result read that:

    d[i, j] = sum over k < 16 of (a[i, k] - b[j, k])**2
        for each strip of j:  packed[k, j] = b[j, k];  for each i: vector loop over j
"""

from __future__ import annotations

from dataclasses import replace

from npjit.codegen.cpp_form import per_item
from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_outer import LanesPrinter
from npjit.codegen.cpp_phase import Levels, PhasePrinter
from npjit.codegen.cpp_types import size, stored
from npjit.codegen.cpp_values import Values
from npjit.core.size import Size, product
from npjit.schedule.kernel import Access, Buffer, Instr, Kernel, Load, Phase, Store, extents

# lanes of a strip: with up to 16 steps a lane the packed values fit in the first-level cache
_STRIP = 128


class PackedPrinter(LanesPrinter):
    """Strips of lanes outside, rows inside."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        packed, self.packing = _pack(kernel)
        super().__init__(packed, name)
        self.values = Values(replace(packed, phases=(*self.packing, *packed.phases)))

    def print(self) -> str:
        w = self.writer
        self.struct()
        with self.chunk("_chunk"):
            self.unpack()
            self.body()
        lanes = size(self.kernel.axes[self.kernel.outer[-1]].extent)
        with self.launcher():
            w.line(self.packed())
            self.share(self.kernel.outer[:-1], _STRIP * per_item(self.kernel, self.kernel.phases))
            w.line(f"const i64 strips = ({lanes} + {_STRIP - 1}) / {_STRIP};")
            w.line(f"if (n * strips > 0) api->parallel({self.name}_chunk, &a, n * strips, grain);")
        return str(w)

    def body(self) -> None:
        w = self.writer
        *rows, lane = self.kernel.outer
        found = self.phases([lane])
        low, high = f"low{lane}", f"high{lane}"
        extent = self.kernel.axes[lane].extent
        is_one = isinstance(extent, int) and extent <= _STRIP
        self._scratch()
        w.line(f"const i64 rows = {size(product(extents(self.kernel, tuple(rows))))};")
        with w.block("for (i64 t = begin; t < end;)"):
            w.line(f"const i64 {low} = {'0' if is_one else f't / rows * {_STRIP}'};")
            lanes = self.extent(lane)
            end = lanes if is_one else f"nj_size_min({lanes}, {low} + {_STRIP})"
            w.line(f"const i64 {high} = {end};")
            w.line("const i64 stop = nj_size_min(end, (t / rows + 1) * rows);")
            for phase in self.packing:
                self._turn(phase, lane)
            self.decode(rows, f"x{rows[-1]}", "t % rows")
            with w.block("for (; t < stop; ++t)"):
                self.row(found, low, high)
                self.carry(rows)

    def _scratch(self) -> None:
        """The thread's memory for what is packed."""
        w = self.writer
        found = [(i, b) for i, b in enumerate(self.kernel.buffers) if b.role == "row"]
        w.line("i64 bytes = 0;")
        for i, b in found:
            w.line(f"const i64 offset{i} = bytes;")
            w.line(f"bytes += {size(b.length * b.dtype.itemsize)};")
        w.line("char* const packed = (char*)api->scratch(bytes);")

    def _turn(self, phase: Phase, lane: int) -> None:
        """Pack one operand's strip. Its buffer is addressed by the lane's own index."""
        w = self.writer
        store = phase.body[-1][1]
        assert isinstance(store, Store)
        number = store.access.buffer
        kind = stored(self.kernel.buffers[number].dtype)
        w.line(f"{kind}* const mem{number} = ({kind}*)(packed + offset{number}) - low{lane};")
        levels = Levels([[axis] for axis in (*phase.axes, lane)], {})
        printed = PhasePrinter(self.values, phase, levels).print()

        def inside() -> None:
            with w.block(f"for (i64 x{lane} = low{lane}; x{lane} < high{lane}; ++x{lane})"):
                w.lines(printed.levels[levels.innermost])

        self.nest(phase.axes, printed, 0, inside)


def printer_of(kernel: Kernel) -> type[KernelPrinter]:
    """The printer for a LANES kernel."""
    return PackedPrinter if len(kernel.outer) > 1 and _across(kernel) else LanesPrinter


def _across(kernel: Kernel) -> dict[Access, Load]:
    """Loads whose neighbouring lanes are no neighbours in memory, the same ones for every row."""
    *rows, lane = kernel.outer
    found: dict[Access, Load] = {}
    for _, i in kernel.instructions():
        if not isinstance(i, Load) or i.access.gathers or i.within or i.dtype.kind in "bc":
            continue
        strides = dict(i.access.strides)
        is_across = strides.get(lane, 0) not in (0, 1, -1)
        is_same = all(strides.get(axis, 0) == 0 for axis in rows)
        if is_across and is_same and kernel.buffers[i.access.buffer].role == "in":
            found[i.access] = i
    return found


def _pack(kernel: Kernel) -> tuple[Kernel, list[Phase]]:
    """The kernel reading packed operands, and the phases that pack them."""
    lane = kernel.outer[-1]
    buffers = list(kernel.buffers)
    packing: list[Phase] = []
    places: dict[Access, Access] = {}
    number = 1 + max(n for n, _ in kernel.instructions())
    for access, load in _across(kernel).items():
        axes = [a for a, stride in access.strides if stride != 0 and a != lane]
        strides: list[tuple[int, Size]] = [(lane, 1)]
        length: Size = _STRIP
        for axis in reversed(axes):
            strides.append((axis, length))
            length = length * kernel.axes[axis].extent
        places[access] = Access(len(buffers), tuple(sorted(strides)))
        buffers.append(Buffer(load.dtype, "row", length))
        body: tuple[tuple[int, Instr], ...] = (
            (number, load),
            (number + 1, Store(places[access], number)),
        )
        packing.append(Phase(tuple(axes), body))
        number += 2

    def read(i: Instr) -> Instr:
        return (
            replace(i, access=places[i.access]) if isinstance(i, Load) and i.access in places else i
        )

    phases = [Phase(p.axes, tuple((n, read(i)) for n, i in p.body)) for p in kernel.phases]
    return replace(kernel, phases=tuple(phases), buffers=tuple(buffers)), packing
