"""Elementwise kernels that read an array at neighbouring places: each element is loaded once for
all results of a thread.

In: a `Plan`. Out: the plan with launches of new kernels where loads of one array differ by a few
rows and columns, and these loads as windows; then, of a `Stencil`, one function. A thread does ROWS
rows of V lanes, from the rows of its window:

    x[i, j + 1], x[i + 2, j + 1], x[i + 1, j], x[i + 1, j + 2]     a window of 3 rows and 3 columns
    nj_pack<f32, V> a0[3 + ROWS - 1]; nj_pack<f32, 2> b0[3 + ROWS - 1];
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from npjit.codegen.cpp_form import Form, choose
from npjit.codegen.cpp_types import is_complex, stored
from npjit.codegen.cuda_kernel import CudaPrinter, merged
from npjit.codegen.cuda_lanes import LanePrinter, Move, levels_of
from npjit.codegen.cuda_launch import Configured, Request, Start, up, widest
from npjit.codegen.cuda_terms import Terms, actual
from npjit.core.size import Size, atoms, substitute
from npjit.schedule.kernel import Access, Axis, DType, Kernel, Load, Phase, Store
from npjit.schedule.plan import Launch, Plan, Step, inside

# threads of a block, and rows of a thread
_BLOCK = 128
_ROWS = 4
# the fewest loads of one array that are worth a window, and its largest extents
_LEAST = 3
_REACH = 4
_WIDE = 5


@dataclass(frozen=True)
class Window:
    """Elements around an access: so many rows and columns behind it."""

    access: Access
    dtype: DType
    rows: int
    columns: int


@dataclass(frozen=True)
class Stencil:
    """A kernel, its windows, and the window, row and column of each load in one."""

    kernel: Kernel
    windows: tuple[Window, ...]
    places: Mapping[int, tuple[int, int, int]]


def with_stencils(plan: Plan, others: Sequence[int]) -> tuple[Plan, dict[int, Stencil]]:
    """The plan with new kernels where there are windows, and these by their numbers; the kernels
    `others` are left alone."""
    kernels = list(plan.kernels)
    made: dict[int, Stencil] = {}

    def changed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(map(one, steps))

    def one(step: Step) -> Step:
        if not isinstance(step, Launch):
            return inside(step, changed)
        if step.kernel in others:
            return step
        finder = _Finder(kernels[step.kernel], step)
        if not finder.find():
            return step
        made[len(kernels)] = finder.stencil()
        kernels.append(made[len(kernels)].kernel)
        return finder.terms.launch(len(kernels) - 1)

    steps = changed(plan.steps)
    return replace(plan, steps=steps, kernels=tuple(kernels)), made


class _Finder:
    """Windows of one launch."""

    def __init__(self, kernel: Kernel, launch: Launch) -> None:
        self.kernel = kernel
        self.launch = launch
        self.terms = Terms()
        self.windows: list[Window] = []
        self.places: dict[int, tuple[int, int, int]] = {}
        self.phase = Phase((), ())

    def find(self) -> bool:
        """Whether there are any."""
        kernel = self.kernel
        if len(kernel.outer) < 2 or choose(kernel) is not Form.MAP:
            return False
        numbers = self.terms.buffers_of(kernel, self.launch)
        if numbers is None:
            return False
        axes = {a: a for a in range(len(kernel.axes))}
        self.phase = merged(self.terms.phases(kernel, self.launch, numbers, axes))
        loads: dict[tuple[int, object], dict[int, Load]] = {}
        written = {i.access.buffer for _, i in self.phase.body if isinstance(i, Store)}
        for number, i in self.phase.body:
            if isinstance(i, Load) and i.access.buffer not in written and is_plain(i):
                loads.setdefault((i.access.buffer, i.access.strides), {})[number] = i
        for group in loads.values():
            self._add(group)
        return bool(self.windows)

    def _add(self, group: dict[int, Load]) -> None:
        """Windows of loads that differ by their offsets alone: those near the first one, then those
        near the first of the others, and so on."""
        row, last = self.kernel.outer[-2:]
        strides = dict(next(iter(group.values())).access.strides)
        if strides.get(last, 0) != 1 or strides.get(row, 0) == 0:
            return
        pitch = self._planned(strides[row])
        while len(group) >= _LEAST:
            start = self._planned(next(iter(group.values())).access.offset)
            near: dict[int, tuple[int, int]] = {}
            for number, load in group.items():
                step = apart(self._planned(load.access.offset) - start, pitch)
                if step is not None:
                    near[number] = step
            self._add_window({n: group.pop(n) for n in near}, near, start, pitch)

    def _add_window(
        self,
        loads: Mapping[int, Load],
        steps: Mapping[int, tuple[int, int]],
        start: Size,
        pitch: Size,
    ) -> None:
        """The window of loads at steps from `start`, if they are some and it is small."""
        above, left = (min(s[d] for s in steps.values()) for d in (0, 1))
        rows = max(k for k, _ in steps.values()) - above + 1
        columns = max(j for _, j in steps.values()) - left + 1
        if len(set(steps.values())) < _LEAST or rows > _WIDE or columns > _WIDE:
            return
        first = next(iter(loads.values()))
        access = replace(first.access, offset=self.terms.named(start + above * pitch + left))
        for number, (row, column) in steps.items():
            self.places[number] = (len(self.windows), row - above, column - left)
        self.windows.append(Window(access, first.dtype, rows, columns))

    def _planned(self, size: Size) -> Size:
        """A size of the new kernel in terms of the plan."""
        if isinstance(size, int):
            return size
        return substitute(size, {v: self.terms.sizes[int(v.name[1:])] for v in atoms(size)})

    def stencil(self) -> Stencil:
        """The kernel with its windows."""
        written = {i.access.buffer for _, i in self.phase.body if isinstance(i, Store)}
        axes = [Axis(self.terms.named(actual(a.extent, self.launch))) for a in self.kernel.axes]
        kernel = self.terms.kernel(axes, self.kernel.outer, [self.phase], written, "out")
        return Stencil(kernel, tuple(self.windows), self.places)


def is_plain(load: Load) -> bool:
    """Whether a load may be part of a window."""
    return not load.within and not load.access.gathers and not is_complex(load.dtype)


def apart(distance: Size, pitch: Size) -> tuple[int, int] | None:
    """A distance in rows and columns, if it is a few of each."""
    for rows in range(-_REACH, _REACH + 1):
        columns = distance - rows * pitch
        if isinstance(columns, int) and abs(columns) <= _REACH:
            return rows, columns
    return None


class StencilPrinter(CudaPrinter):
    """Prints a `Stencil`."""

    def __init__(self, stencil: Stencil, name: str) -> None:
        super().__init__(stencil.kernel, name)
        self.stencil = stencil
        self.row, self.last = self.kernel.outer[-2:]

    def print(self) -> str:
        w = self.writer
        (phase,) = self.kernel.phases
        printer = LanePrinter(self.values, phase, levels_of(self.kernel.outer, {}), self.slots)
        for number, place in self.stencil.places.items():
            printer.ready[number] = self._element(*place)
        printed = printer.print()
        moves = [printer.move(f"a{i}[row]", s.access, s.dtype) for i, s in self._windows()]
        with self.function("", ", i32 ROWS", str(_BLOCK)):
            self.unpack()
            self._place()
            w.lines([*printed.levels[-1], *printed.levels[0]])
            with w.block("const auto body = [&](auto count)", "};"):
                for (i, window), move in zip(self._windows(), moves, strict=True):
                    self._load(i, window, move)
                w.line("#pragma unroll")
                with w.block("for (i32 r = 0; r < ROWS; ++r)"):
                    w.line(f"const idx x{self.row} = first + r;")
                    with w.block(f"if (x{self.row} < {self.extent(self.row)})"):
                        self.lanes(printed, printer.moves, self.last)
            w.line("if (left >= V) body(nj_full());")
            w.line("else body(nj_some{(i32)left});")
        return str(w)

    def _windows(self) -> Sequence[tuple[int, Window]]:
        return list(enumerate(self.stencil.windows))

    def _element(self, window: int, row: int, column: int) -> str:
        """An element of a window, for the lane and the thread's row at hand."""
        if column == 0:
            return f"a{window}[{row} + r].at[lane]"
        behind = f"b{window}[{row} + r].at[lane + {column} - V]"
        return f"(lane + {column} < V ? a{window}[{row} + r].at[lane + {column}] : {behind})"

    def _place(self) -> None:
        """The thread's lanes and its first row."""
        w = self.writer
        w.line(f"const idx chunks = ({self.extent(self.last)} + V - 1) / V;")
        w.line(f"const idx bands = ({self.extent(self.row)} + ROWS - 1) / ROWS;")
        w.line(f"const idx item = (idx)blockIdx.x * {_BLOCK} + threadIdx.x;")
        others = self.kernel.outer[:-2]
        w.line(f"if (item >= ({self.items(others)}) * bands * chunks) return;")
        w.line(f"const idx start{self.last} = item % chunks * V;")
        w.line("const idx first = item / chunks % bands * ROWS;")
        self.decode(others, "(item / chunks / bands)")
        w.line(f"const idx left = {self.extent(self.last)} - start{self.last};")

    def _load(self, number: int, window: Window, move: Move) -> None:
        """A window's rows: V columns, and those behind them."""
        w = self.writer
        height, more = f"{window.rows} + ROWS - 1", window.columns - 1
        kind = stored(window.dtype)
        w.line(f"nj_pack<{kind}, V> a{number}[{height}];")
        if more:
            w.line(f"nj_pack<{kind}, {more}> b{number}[{height}];")
        w.line("#pragma unroll")
        with w.block(f"for (i32 row = 0; row < {height}; ++row)"):
            w.line(f"const idx x{self.row} = first + row;")
            last = f"{self.extent(self.row)} + {window.rows - 1}"
            with w.block(f"if (x{self.row} < {last})"):
                w.line(f"const idx x{self.last} = start{self.last};")
                w.line(move.load(f"nj_more(count, {more})"))
                if more:
                    aligned = f"(A >> {3 * move.slot}) & 7"
                    least = f"nj_aligned<{kind}, {more}>({aligned})"
                    given = f"b{number}[row], {move.place} + V, nj_more(count, {more} - V)"
                    w.line(f"nj_load<{least}, 1>({given});")

    # ------------------------------------------------------------ launches

    def configure(self, request: Request) -> Configured:
        extent = request.extent(self.last)
        width = widest(self.slots)
        stores = [s for s in self.slots if self.kernel.buffers[s.access.buffer].role != "in"]
        while width > 1 and (extent < width or not request.are_aligned(stores, self.last, width)):
            width //= 2
        items = up(extent, width) * up(request.extent(self.row), _ROWS)
        items *= request.items(self.kernel.outer[:-2])
        packed = request.packed(self.slots, self.last, width)
        function = f"{self.name}<{request.index_type()}, {width}, {packed}, {_ROWS}>"
        return Configured((Start(function, (up(items, _BLOCK), 1), _BLOCK),) if items else ())
