"""Kernels of rows that run together, in the lanes of vectors, as C++.

In: the kernel of `wave_kernel`. Out: a function that does eight elements of each row at a time.
Lane r is row r. What a row needs of its own last elements, and of those of the row above, stays in
vectors:

    a[i, j - 1]         own_1, the last vector that was made for a[i, j]
    a[i - 1, j + 1]     above_0 = own_1 moved by a lane, and an element of the row above the first

Elements that are not written yet, and those of other arrays, are loaded by squares of 8 x 8, which
are turned; so are results before they are stored. When row after row is through, each lane goes on
with a row of the next group; while some have and some have not, and where no whole square is left,
elements are loaded and stored one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_types import constant, ctype, factor, size
from npjit.codegen.cpp_wave import LANES, Wave, mask_widths, operator_text
from npjit.core.size import Size
from npjit.schedule.kernel import (
    Access,
    Apply,
    Const,
    DType,
    Extent,
    Instr,
    Kernel,
    Load,
    Scalar,
    Store,
)


@dataclass
class Source:
    """Elements as vectors: `name`_0 of this time, `name`_1 of the one before, up to `depth`. Of
    those before time 0 the first `full` are there in all lanes; of others the last one is not
    needed."""

    name: str
    access: Access
    dtype: DType
    depth: int = 0
    full: int = LANES

    def at(self, ago: int) -> str:
        """The vector of an earlier time."""
        self.depth = max(self.depth, ago)
        return f"{self.name}_{ago}"

    def place(self, time: str) -> str:
        """Where the first lane's element is."""
        offset, step = size(self.access.offset), factor(self.step)
        return f"mem{self.access.buffer} + {offset} + {step} * ({time})"

    @property
    def row(self) -> str:
        """From lane to lane."""
        return size(dict(self.access.strides).get(0, 0))

    @property
    def step(self) -> Size:
        """From time to time."""
        return dict(self.access.strides).get(1, 0)

    def before(self) -> Iterator[str]:
        """The vectors of the times before 0."""
        for ago in range(1, self.depth + 1):
            lanes = LANES if ago <= self.full else LANES - 1
            value = f"nj_wave_at({self.place(str(-ago))}, {self.row}, {lanes})"
            yield f"nj_wave<{ctype(self.dtype)}> {self.name}_{ago} = {value};"

    def jump(self, lag: int) -> str:
        """From the end of a lane's row to its next row."""
        step = factor(self.step)
        return f"{LANES} * ({self.row} + {lag} * {step}) - columns * {step}"

    def begun(self) -> Iterator[str]:
        """Lane `row` begins another row."""
        yield f"{self.name}_places.at[row] += {self.name}_jump;"
        for ago in range(1, min(self.depth, self.full) + 1):
            name = f"{self.name}_{ago}"
            element = f"({self.place(f'time - {ago}')})[{self.name}_places.at[row]]"
            yield f"{name} = nj_wave_with({name}, row, {element});"

    def passed(self) -> Iterator[str]:
        """A time has passed."""
        for ago in range(self.depth, 0, -1):
            yield f"{self.name}_{ago} = {self.name}_{ago - 1};"


class WavePrinter(KernelPrinter):
    """Prints a kernel of rows that run together."""

    def __init__(self, kernel: Kernel, name: str, wave: Wave) -> None:
        super().__init__(kernel, name)
        self.wave = wave
        (phase,) = kernel.phases
        self.body = phase.body
        self.widths = mask_widths(self.body)
        # by buffer: what is made, and that of the row above
        self.own: dict[int, Source] = {}
        self.above: dict[int, Source] = {}
        # what is loaded at each time, and what a row has of its own
        self.streams: list[Source] = []
        self.still: list[Source] = []
        # what stands for a load
        self.loads: dict[int, str] = {}
        self._find_made()
        self._find_others()

    def print(self) -> str:
        w = self.writer
        _, times, columns = (size(axis.extent) for axis in self.kernel.axes)
        with self.launcher():
            w.lines(line for n, i in self.body for line in self._fixed(n, i))
            w.lines(line for s in self._sources() for line in s.before())
            w.line(f"const i64 times = {times}, columns = {columns};")
            w.line(f"const i64 together = columns - {(LANES - 1) * self.wave.lag};")
            w.line("i64 time = 0;")
            with w.block(f"for (; time + {LANES} <= together; time += {LANES})"):
                self._square()
            self._one_by_one()
        return str(w)

    def _square(self) -> None:
        """Eight elements of each row."""
        w = self.writer
        loaded = [s for s in self.streams if not self._slides(s)]
        for s in loaded:
            w.line(f"nj_wave<{ctype(s.dtype)}> {s.name}[{LANES}];")
            if s.step in (1, -1):
                w.line(f"nj_wave_load<{s.step}>({s.name}, {s.place('time')}, {s.row});")
            else:
                each = f"{s.name}[k] = nj_wave_at({s.place('time + k')}, {s.row}, {LANES});"
                w.line(f"for (int k = 0; k < {LANES}; ++k) {each}")
        w.lines(f"nj_wave<{ctype(s.dtype)}> {s.name}[{LANES}];" for s in self.own.values())
        with w.block(f"for (int k = 0; k < {LANES}; ++k)"):
            w.lines(f"const auto {s.name}_0 = {s.name}[k];" for s in loaded)
            known = [(s, self.own[b].at(self._behind(b))) for b, s in self.above.items()]
            known += [(s, s.at(self.wave.lag)) for s in self.streams if self._slides(s)]
            for s, last in known:
                w.line(f"const auto {s.name}_0 = nj_wave_down({last}, *({s.place('time + k')}));")
            self._element()
            w.lines(f"{s.name}[k] = {s.name}_0;" for s in self.own.values())
            w.lines(line for s in self._sources() for line in s.passed())
        for s in self.own.values():
            w.line(f"nj_wave_store<{s.step}>({s.name}, {s.place('time')}, {s.row});")

    def _one_by_one(self) -> None:
        """The last times: one element of each row after the other, each lane in front of its row's
        end or in its next row."""
        w, lag = self.writer, self.wave.lag
        for s in (*self._sources(), *self.still):
            w.line(f"const i64 {s.name}_jump = {s.jump(lag)};")
            w.line(f"nj_wave_places {s.name}_places({s.row});")
        with w.block("for (int begun = 0; time < times; ++begun)"):
            with w.block("if (begun > 0)"):
                w.line("const int row = begun - 1;")
                w.lines(line for s in self._sources() for line in s.begun())
                for s in self.still:
                    w.line(f"{s.name}_places.at[row] += {s.name}_jump;")
                    w.line(f"{s.name} = {s.name}_places.load({s.place('0')});")
            w.line(f"const i64 until = together + begun * {lag};")
            with w.block("for (; time < until; ++time)"):
                for s in (*self.streams, *self.above.values()):
                    w.line(f"const auto {s.name}_0 = {s.name}_places.load({s.place('time')});")
                self._element()
                for s in self.own.values():
                    w.line(f"{s.name}_places.store({s.place('time')}, {s.name}_0);")
                w.lines(line for s in self._sources() for line in s.passed())

    def _element(self) -> None:
        """One element of each row."""
        w = self.writer
        for n, i in self.body:
            if isinstance(i, Apply):
                w.line(f"const {self._type(i.dtype)} v{n} = {self._text(i)};")
            elif n in self.loads:
                w.line(f"const auto v{n} = {self.loads[n]};")
        for _, i in self.body:
            if isinstance(i, Store) and self._last_store(i.access.buffer) is i:
                w.line(f"const auto {self.own[i.access.buffer].name}_0 = v{i.value};")

    # -- values

    def _type(self, dtype: DType) -> str:
        return "auto" if dtype.kind == "b" else f"nj_wave<{ctype(dtype)}>"

    def _text(self, i: Apply) -> str:
        """The value; a comparison in front of a choice is a part of it, so that the compiler sees
        the greater of two."""
        args = [f"v{a}" for a in i.args]
        if i.op.choice:
            test = self.values.instructions[i.args[0]]
            asked = self._text(test) if isinstance(test, Apply) else args[0]
            wanted = self.widths.get(i.args[1], i.dtype.itemsize)
            if self.widths[i.args[0]] != wanted:
                asked = f"nj_wave_mask<i{8 * (wanted or 0)}>({asked})"
            return f"({asked}) ? {args[1]} : {args[2]}"
        if i.op.conversion:
            return f"__builtin_convertvector({args[0]}, nj_wave<{ctype(i.dtype)}>)"
        return operator_text(i, [self.values.dtype(a) for a in i.args]).format(*args)

    def _fixed(self, n: int, i: Instr) -> Iterator[str]:
        """What is the same at all times."""
        if isinstance(i, Store | Apply) or n in self.loads:
            return
        kind = ctype(i.dtype)
        if isinstance(i, Load):
            s = Source(f"v{n}", i.access, i.dtype)
            self.still.append(s)
            yield f"nj_wave<{kind}> v{n} = nj_wave_at({s.place('0')}, {s.row}, {LANES});"
            return
        if isinstance(i, Const):
            value = f"nj_wave_all<{kind}>({constant(i.value)})"
        elif isinstance(i, Extent):
            value = f"nj_wave_all(nj_cast<{kind}>(i64({size(i.size)})))"
        else:
            assert isinstance(i, Scalar)
            value = f"nj_wave_all(nj_cast<{kind}>(arg{i.number}))"
        yield f"const nj_wave<{kind}> v{n} = {value};"

    # -- where loads come from

    def _sources(self) -> list[Source]:
        return [*self.streams, *self.above.values(), *self.own.values()]

    def _last_store(self, buffer: int) -> Store:
        """The last store of an element."""
        found = [i for _, i in self.body if isinstance(i, Store) and i.access.buffer == buffer]
        return found[-1]

    def _moving(self) -> Iterator[tuple[int, Load]]:
        """The loads of other elements at other times."""
        for n, i in self.body:
            if isinstance(i, Load) and dict(i.access.strides).get(1, 0) != 0:
                yield n, i

    def _of_made(self, above: bool) -> list[tuple[int, Load, int]]:
        """Loads of elements that are made before, with their distance along the row."""
        found = [(n, i, self.wave.distances.get(n, (0, 0))) for n, i in self._moving()]
        if above:
            return [(n, i, columns) for n, i, (rows, columns) in found if rows < 0]
        return [(n, i, columns) for n, i, (rows, columns) in found if rows == 0 and columns < 0]

    def _ahead(self, buffer: int) -> int:
        """The last element of the row above that is read."""
        return max(c for _, i, c in self._of_made(above=True) if i.access.buffer == buffer)

    def _behind(self, buffer: int) -> int:
        """How many times ago the row above made it."""
        return self.wave.lag - self._ahead(buffer)

    def _find_made(self) -> None:
        for _, i in self.body:
            if isinstance(i, Store):
                b, dtype = i.access.buffer, self.values.dtype(i.value)
                self.own[b] = Source(f"own{b}", i.access, dtype, full=0)
        for n, i, columns in self._of_made(above=False):
            source = self.own[i.access.buffer]
            source.full = max(source.full, -columns)
            self.loads[n] = source.at(-columns)
        for _, i, columns in self._of_made(above=True):
            b = i.access.buffer
            if columns == self._ahead(b):
                self.above[b] = Source(f"above{b}", i.access, i.dtype)
                self.own[b].at(self._behind(b))
        for n, i, columns in self._of_made(above=True):
            b = i.access.buffer
            self.loads[n] = self.above[b].at(self._ahead(b) - columns)

    def _find_others(self) -> None:
        """Elements that are made at the same time, or written later, or never: those that follow
        each other in time share a source."""
        stored: dict[int, int] = {}
        for n, i in self.body:
            if isinstance(i, Store):
                stored[i.access.buffer] = i.value
            elif self.wave.distances.get(n) == (0, 0) and _buffer(i) in stored:
                self.loads[n] = f"v{stored[_buffer(i)]}"
        wanted = [(n, i) for n, i in self._moving() if n not in self.loads]
        for n, i in wanted:
            found = [(ago, other) for _, other in wanted if (ago := _ago(other, i)) is not None]
            ago, head = max(found, key=lambda pair: pair[0])
            source = self._stream(head)
            self.loads[n] = source.at(ago)
            source.full = max(source.full, ago)

    def _stream(self, head: Load) -> Source:
        for s in self.streams:
            if s.access == head.access:
                return s
        found = Source(f"in{len(self.streams)}", head.access, head.dtype, full=0)
        if self._slides(found):
            found.at(self.wave.lag)
        self.streams.append(found)
        return found

    def _slides(self, source: Source) -> bool:
        """Whether all rows read the same elements, one row after the other: those of the row above
        are a lane away."""
        row = dict(source.access.strides).get(0, 0)
        return row == -self.wave.lag * source.step


def _buffer(i: Instr) -> int:
    assert isinstance(i, Load | Store)
    return i.access.buffer


def _ago(head: Load, load: Load) -> int | None:
    """How many times before a load reads an element, another one has read it; None if it never
    has."""
    a, b = head.access, load.access
    step = dict(a.strides)[1]
    apart = a.offset - b.offset
    if apart == 0 and a == b:
        return 0
    if (a.buffer, a.strides) != (b.buffer, b.strides) or not isinstance(step, int):
        return None
    if not isinstance(apart, int) or apart % step or not 0 < apart // step <= LANES:
        return None
    return apart // step
