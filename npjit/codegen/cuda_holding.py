"""Rows that a group of threads keeps in registers: what printers of such kernels share.

In: a `Kernel` whose phases loop over the same axes, and the loads whose elements are held. Out: the
text of the phases, each over the `ITEMS` packs of a thread; its `LANES` threads hold a row:

    nj_pack<f32, V> h0[ITEMS];                  the row, read once
    ... k0_held0 f0 = nj_join<LANES>(...);      its maximum
    ... k0_held1 f1 = nj_join<LANES>(...);      the sum of exp(h0 - maximum)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npjit.codegen.cpp_types import size
from npjit.codegen.cuda_kernel import CudaPrinter
from npjit.codegen.cuda_lanes import LanePrinter, Move, levels_of, pack_variable
from npjit.codegen.cuda_launch import Request, Slot
from npjit.schedule.kernel import Access, Kernel, Load, Phase, Store


class HoldingPrinter(CudaPrinter):
    """See the module's docstring."""

    # whether a thread does many rows
    repeated = False

    def __init__(self, kernel: Kernel, name: str, held: Mapping[int, Load]) -> None:
        super().__init__(kernel, name)
        self.axes = next(p.axes for p in kernel.phases if p.axes)
        self.held = held
        self.loads: list[Move] = []
        self.ready: dict[int, str] = {}

    def row_packs(self) -> dict[int, str]:
        """The packs that stand for "row" buffers."""
        buffers = enumerate(self.kernel.buffers)
        return {i: f"row{i}[item]" for i, b in buffers if b.role == "row"}

    def printed_phases(self, phases: Sequence[Phase]) -> list[LanePrinter]:
        """The phases, printed; `loads` then has what fills the packs."""
        rows = self.row_packs()
        names: dict[tuple[Access, object], str] = {}
        packs: dict[int, str] = {}
        for number, instr in self.held.items():
            key = (instr.access, instr.dtype)
            packs[number] = names.setdefault(key, f"h{len(names)}[item]")
        level: dict[int, int] = {}
        found = []
        for phase in phases:
            levels = levels_of(phase.axes, level)
            printer = LanePrinter(
                self.values, phase, levels, self.slots, packs, rows, guard="place == 0"
            )
            printer.ready.update(self.ready)
            printer.repeated = self.repeated
            printer.print()
            level |= {n: 0 for n, _ in phase.body}
            found.append(printer)
        self.mover = LanePrinter(self.values, Phase((), ()), levels_of(self.axes, {}), self.slots)
        for (access, _), pack in names.items():
            dtype = self.kernel.buffers[access.buffer].dtype
            self.loads.append(self.mover.move(pack, access, dtype))
        return found

    def declare_packs(self, moves: Sequence[Move]) -> None:
        """Variables of a thread's packs."""
        self.writer.lines(m.declare().replace("[item]", "[ITEMS]") for m in moves)

    def declare_rows(self) -> None:
        """Variables for "row" buffers."""
        for i, pack in self.row_packs().items():
            declared = pack_variable(pack, self.kernel.buffers[i].dtype)
            self.writer.line(declared.replace("[item]", "[ITEMS]"))

    def fill_packs(self, moves: Sequence[Move]) -> None:
        """Load what a thread holds of the row at the outer indices. Where packs reach over its
        ends, what lies there is loaded too, if it is of the array: loads without branches are under
        way together."""
        if not moves:
            return
        w = self.writer
        held = self._beside(moves)
        if not held:
            self._fill(moves, "count")
            return
        with w.block(f"const auto beside = [&](idx x{self.axes[0]})", "};"):
            w.line(f"return {' && '.join(held)};")
        with w.block("if (EDGES == nj_skewed && beside(-skew))"):
            self._fill(moves, "nj_full()")
        with w.block("else"):
            self._fill(moves, "count")

    def _fill(self, moves: Sequence[Move], count: str) -> None:
        w = self.writer
        w.line("#pragma unroll")
        with w.block("for (i32 item = 0; item < ITEMS; ++item)"):
            self.chunk()
            last = self.axes[-1]
            w.line(f"const idx x{last} = start{last};")
            w.lines(m.load(count) for m in moves)

    def _beside(self, moves: Sequence[Move]) -> list[str]:
        """Conditions under which all of the row's packs are of arrays that nothing writes; none
        where that is not known."""
        if self.skew_reference() is None:
            return []
        written = {i.access.buffer for _, i in self.kernel.instructions() if isinstance(i, Store)}
        found = []
        for slot in (self.slots[m.slot] for m in moves):
            a = slot.access
            if a.buffer in written or a.gathers or not self.has_rows(slot):
                return []
            steps = (s * (self.kernel.axes[axis].extent - 1) for axis, s in a.strides)
            end = sum(steps, start=a.offset + 1)
            found.append(f"{self.mover.index(a)} + (n + skew + V - 1) / V * V <= {size(end)}")
        return list(dict.fromkeys(found))

    def skew(self, printer: LanePrinter, reference: Move) -> None:
        """How many elements in front of its row a row's first pack begins, so that packs lie on
        boundaries in rows that do not."""
        w = self.writer
        access = self.slots[reference.slot].access
        with w.block("if constexpr (EDGES == nj_skewed)"):
            w.line(f"const idx x{self.axes[0]} = 0;")
            w.line(f"skew = ({printer.index(access)}) % V;")

    def chunk(self) -> None:
        """The item's chunk of the row. A thread that does many rows computes lanes that are not
        there too: branches would keep the items' work apart. One that does a row lacks the
        registers that work of many items at once takes."""
        w = self.writer
        w.line("const idx chunk = (idx)item * LANES + place;")
        # packs in front of these are there whatever the skew
        w.line("const b1 first = item == 0, last = item >= ITEMS - 2;")
        always = "" if not self.repeated else "EDGES == nj_skewed && "
        w.line(f"if ({always}last && chunk * V >= n + skew) continue;")
        if len(self.axes) == 1:
            start = f"start{self.axes[0]}"
            w.line(f"const idx {start} = chunk * V - skew;")
            w.line(f"const auto count = nj_lanes_at<EDGES>({start}, n, first, last);")
        else:
            self.decode_chunk(self.axes, "chunk", f"({self.extent(self.axes[-1])} / V)")
            w.line("const auto count = nj_lanes_at<EDGES>(chunk * V, n, first, last);")

    def phase(self, number: int, printer: LanePrinter) -> None:
        """A phase whose reductions are the row's."""
        w = self.writer
        printed = printer.out
        w.lines([*printed.levels[-1], *printed.levels[0]])
        if not printer.phase.axes:
            return
        folds = self.folds(printer)
        struct, place = f"{self.name}_held{number}", f"f{number}"
        if folds:
            w.line(f"{struct} {place};")
            w.line(f"{place}.start();")
        self.each_pack(printer, place)
        if folds:
            w.line(f"__shared__ {struct} parts{number}[LANES / 32 + 1];")
            w.line(f"{place} = nj_join<LANES>({place}, parts{number});")
            w.lines(self.finish(folds, place))

    def each_pack(self, printer: LanePrinter, place: str) -> None:
        """A phase's loop over the packs of a thread, its values folded into `place`."""
        w = self.writer
        takes = self.takes(self.folds(printer), printer.phase, place)
        w.line("#pragma unroll")
        with w.block("for (i32 item = 0; item < ITEMS; ++item)"):
            self.chunk()
            self.lanes(printer.out, printer.moves, self.axes[-1], (), takes)

    # ------------------------------------------------------------ launches

    def skewed(self, request: Request, width: int) -> str:
        """The alignments of all slots when each row's packs begin on a boundary before it; empty
        when they need not, or when most arrays' rows do not lie alike."""
        last = self.axes[-1]
        reference = self.skew_reference()
        if width == 1 or reference is None:
            return ""
        if request.extent(last) % width == 0 and request.are_aligned(self.slots, last, width):
            return ""
        bits, alike, rows = 0, 0, 0
        for number, slot in enumerate(self.slots):
            found = request.lies_like(slot, self.slots[reference.slot], last, width)
            alike += found > 0
            rows += self.has_rows(slot)
            narrow = (slot.dtype.itemsize // slot.planes).bit_length() - 1
            bits |= (found or narrow) << (3 * number)
        return f"{bits:#x}ull" if 2 * alike > rows else ""

    def skew_reference(self) -> Move | None:
        """The pack whose boundaries decide, if rows may begin between boundaries."""
        found = (m for m in self.loads if self.has_rows(self.slots[m.slot]))
        return next(found, None) if len(self.axes) == 1 else None

    def has_rows(self, slot: Slot) -> bool:
        """Whether a slot has other elements for each row."""
        strides = dict(slot.access.strides)
        return any(strides.get(axis, 0) != 0 for axis in self.kernel.outer)
