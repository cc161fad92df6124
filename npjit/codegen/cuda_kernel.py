"""What the CUDA functions of every kernel share: parameters, indices of an item, lanes of a thread,
folds.

In: a `Kernel` and its name. Out: the text of its functions, templates over the index type and the
lanes of a thread, and `configure`, which says for actual sizes which of them to start:

    template <class idx, i32 V, u64 A>
    __global__ void __launch_bounds__(256) k0(const f32* mem0, f32* mem1, i64 size0) {
      const idx s0 = (idx)size0;
      ...
    }
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from npjit.codegen.cpp_kernel import word_type
from npjit.codegen.cpp_reduce import ArgFold, Fold, MomentsFold, fold
from npjit.codegen.cpp_statements import Statements
from npjit.codegen.cpp_text import Writer
from npjit.codegen.cpp_types import factor, is_complex, size, stored
from npjit.codegen.cpp_values import Values
from npjit.codegen.cuda_lanes import LanePrinter, Moves
from npjit.codegen.cuda_launch import Configured, Request, Slot
from npjit.codegen.cuda_moments import take_into_run
from npjit.codegen.cuda_usual import computed_twice
from npjit.core.size import product
from npjit.schedule.kernel import Kernel, Phase, Store, extents

# threads of a block, where nothing asks for another number
BLOCK = 256


class CudaPrinter:
    """One kernel's functions; the forms are subclasses."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.kernel = kernel
        self.name = name
        self.values = Values(kernel)
        self.slots: list[Slot] = []
        self.writer = Writer()

    def print(self) -> str:
        """The text of all its functions."""
        raise NotImplementedError

    def configure(self, request: Request) -> Configured:
        """What to start for these sizes and addresses; `print` was called before."""
        raise NotImplementedError

    # ------------------------------------------------------------ functions

    def parameters(self) -> list[str]:
        """What a launch passes."""
        found = []
        for i, b in enumerate(self.kernel.buffers):
            if b.role != "row":
                const = "const " if b.role in ("in", "answer") else ""
                found.append(f"{const}{stored(b.dtype)}* mem{i}")
        found += [f"i64 size{i}" for i in range(self.kernel.sizes)]
        for i, dtype in enumerate(self.kernel.scalars):
            parts = ("r", "i") if is_complex(dtype) else ("",)
            found += [f"{word_type(dtype)} arg{i}{part}" for part in parts]
        return found

    def function(
        self, suffix: str, constants: str = "", block: str = str(BLOCK), more: Iterable[str] = ()
    ) -> AbstractContextManager[None]:
        """A function of the device, its template constants behind idx, V and A, and more
        parameters."""
        self.writer.line(f"template <class idx, i32 V, u64 A{constants}>")
        given = ", ".join([*self.parameters(), *more])
        bounds = f"__launch_bounds__({block})"
        return self.writer.block(f"__global__ void {bounds} {self.name}{suffix}({given})")

    def unpack(self) -> None:
        """Sizes in the index type, if there is anything to do."""
        answers = [i for i, b in enumerate(self.kernel.buffers) if b.role == "answer"]
        self.writer.lines(f"if (!*mem{i}) return;" for i in answers)
        self.writer.lines(f"const idx s{i} = (idx)size{i};" for i in range(self.kernel.sizes))

    # ------------------------------------------------------------ indices

    def extent(self, axis: int) -> str:
        """An axis's extent, fit to stand beside * and /."""
        return factor(self.kernel.axes[axis].extent)

    def items(self, axes: Sequence[int]) -> str:
        """Points of these axes' space."""
        return size(product(extents(self.kernel, tuple(axes))))

    def decode(self, axes: Sequence[int], item: str) -> None:
        """Declare the axes' indices x<axis> of an item."""
        if not axes:
            return
        if len(axes) > 1:
            self.writer.line(f"idx rest{axes[0]} = {item};")
        for axis in reversed(axes[1:]):
            self._divide(axes[0], f"x{axis}", self.extent(axis))
        first = f"rest{axes[0]}" if len(axes) > 1 else item
        self.writer.line(f"const idx x{axes[0]} = {first};")

    def decode_chunk(self, axes: Sequence[int], item: str, chunks: str) -> None:
        """The same for a chunk of V lanes along the last axis, which gets start<axis>."""
        *others, last = axes
        if not others:
            self.writer.line(f"const idx start{last} = {item} * V;")
            return
        self.writer.line(f"idx chunk{last} = {item};")
        self.writer.line(f"const idx start{last} = chunk{last} % {chunks} * V;")
        self.decode(others, f"(chunk{last} / {chunks})")

    def _divide(self, group: int, name: str, by: str) -> None:
        self.writer.line(f"const idx {name} = rest{group} % {by};")
        self.writer.line(f"rest{group} /= {by};")

    def position(self, axes: Sequence[int]) -> str:
        """The row-major position over some axes."""
        text = f"x{axes[0]}" if axes else "0"
        for axis in axes[1:]:
            text = f"({text}) * {self.extent(axis)} + x{axis}"
        return text

    # ------------------------------------------------------------ lanes

    def lanes(
        self,
        printed: Statements,
        moves: Moves,
        axis: int,
        before: Sequence[str] = (),
        after: Sequence[str] = (),
        usual: bool = False,
    ) -> None:
        """The V lanes along an axis from start<axis> on: packs in, the statements lane by lane
        (for `usual` numbers first), packs out."""
        w = self.writer
        innermost = max((n for n in printed.levels if n > 0), default=1)
        for level in range(1, innermost):
            w.lines(printed.levels[level])
        w.lines(m.declare() for m in (*moves.loads, *moves.stores))
        self.at_start(axis, [m.load() for m in moves.loads])
        with computed_twice(w) if usual else nullcontext():
            w.line("#pragma unroll")
            with w.block("for (i32 lane = 0; lane < V; ++lane)"):
                w.line(f"const idx x{axis} = start{axis} + lane * count.apart;")
                w.lines(before)
                w.lines(printed.levels[innermost])
                w.lines(after)
        self.at_start(axis, [m.store() for m in moves.stores])

    def at_start(self, axis: int, lines: Sequence[str]) -> None:
        """Lines that see a thread's first lane as the axis's index."""
        if lines:
            with self.writer.block(""):
                self.writer.line(f"const idx x{axis} = start{axis};")
                self.writer.lines(lines)

    # ------------------------------------------------------------ folds

    def folds(self, printer: LanePrinter) -> list[Fold]:
        """The folds of a printed phase."""
        return [fold(n, i, self.values) for n, i in printer.out.reduces]

    def fold_struct(self, name: str, folds: Sequence[Fold]) -> None:
        """What a thread knows of all reductions of a phase, and how two threads' knowledge is
        joined."""
        w = self.writer
        cells = [cell for f in folds for cell in f.cells]
        # padding would be copied byte by byte
        bits = sum(int(kind.lstrip("bcfiu")) for kind, _ in cells)
        with w.block(f"struct {'alignas(8) ' if bits % 64 == 0 else ''}{name}", "};"):
            w.lines(f"{kind} {cell};" for kind, cell in cells)
            with w.block("void start()"):
                starts = [start for f in folds for start in f.initial()]
                w.lines(f"{c} = {s};" for (_, c), s in zip(cells, starts, strict=True))
            with w.block(f"void take(const {name}& o)"):
                for f in folds:
                    names = [cell for _, cell in f.cells]
                    w.lines(joined(f, names, [f"o.{cell}" for cell in names]))
            with w.block(f"{name} across(u32 mask, i32 distance) const"):
                w.line(f"{name} o;")
                w.lines(f"o.{c} = nj_shuffle(mask, {c}, distance);" for _, c in cells)
                w.line("return o;")

    def takes(
        self, folds: Sequence[Fold], phase: Phase, place: str, in_run: bool = False
    ) -> list[str]:
        """Statements that fold a lane's values into the struct at `place`, or into the struct of
        a run there."""
        lines: list[str] = []
        for f in folds:
            if in_run and isinstance(f, MomentsFold):
                lines += take_into_run(f, place)
                continue
            names = [f"{place}.{'rest.' if in_run else ''}{cell}" for _, cell in f.cells]
            lines += f.take(names, f.items(f"(i64)({self.position(phase.axes)})"))
        return ["if (count.has(lane)) {", *lines, "}"] if lines else []

    def finish(self, folds: Sequence[Fold], place: str) -> list[str]:
        """Statements that define the reductions' values."""
        return [
            line for f in folds for line in f.finish([f"{place}.{cell}" for _, cell in f.cells])
        ]


def joined(f: Fold, cells: Sequence[str], others: Sequence[str]) -> list[str]:
    """Statements that join what two threads hold."""
    if isinstance(f, ArgFold):
        sign = 1 if f.style == "argmax" else -1
        return [f"nj_join_position<{sign}>({', '.join([*cells, *others])});"]
    return f.take(cells, others)


def merged(phases: Iterable[Phase], stores: bool = True) -> Phase:
    """Phases without axes as one."""
    body = [pair for p in phases for pair in p.body]
    return Phase((), tuple(b for b in body if stores or not isinstance(b[1], Store)))
