"""What the printed functions of every kernel share: arguments, ranges shared by threads, loops.

In: a `Kernel` and its name. Out: a struct of arguments, a function for a chunk of the work, and a
function `k0` that the plan calls, which shares the work among threads:

    struct k0_args { const npjit_api* api; const f64* mem0; f64* mem1; i64 s0; };
    static void k0_chunk(void* context, i64 begin, i64 end, int chunk) { ... }
    static void k0(const npjit_api* api, const f64* mem0, f64* mem1, i64 s0) { ... }
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from npjit.codegen.cpp_form import GRAIN, is_point
from npjit.codegen.cpp_loops import Loop
from npjit.codegen.cpp_statements import Statements
from npjit.codegen.cpp_text import Writer
from npjit.codegen.cpp_types import factor, is_complex, size, stored
from npjit.codegen.cpp_values import Values
from npjit.core.dtypes import kind_of
from npjit.core.size import Size, product
from npjit.schedule.kernel import Apply, DType, Kernel, Load, Phase, Store, extents

# a chunk's function of more instructions than this is not inlined
INLINED = 12
# of a function that other units of the object call
HIDDEN = '__attribute__((visibility("hidden")))'
# a literal extent that is one block on every machine
_SHORT = 32


class KernelPrinter:
    """One kernel's functions; the forms are subclasses."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self.kernel = kernel
        self.name = name
        self.values = Values(kernel)
        self.writer = Writer()
        # a loop of the plan launches it
        self.is_repeated = False
        # the trips of that loop do little else
        self.is_tight = False
        # how many steps of the plan launch it
        self.launches = 1
        # a sweep launches it, some rows at a time
        self.is_swept = False
        # an item may be done a second time, since nothing that is read is written
        self.may_repeat = False
        # it stands in another unit than the plan's steps
        self.is_apart = False

    def print(self) -> str:
        """The text of all its functions."""
        raise NotImplementedError

    # ------------------------------------------------------------ arguments

    def arguments(self) -> list[tuple[str, str]]:
        """(type, name) of what a launch passes, `api` in front."""
        found = [("const npjit_api*", "api")]
        for i, b in enumerate(self.kernel.buffers):
            if b.role != "row":
                const = "const " if b.role == "in" else ""
                found.append((f"{const}{stored(b.dtype)}*", f"mem{i}"))
        found += [("i64", f"s{i}") for i in range(self.kernel.sizes)]
        for i, dtype in enumerate(self.kernel.scalars):
            parts = ("r", "i") if is_complex(dtype) else ("",)
            found += [(word_type(dtype), f"arg{i}{part}") for part in parts]
        return found

    def struct(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        """The struct of arguments, and what the phases hand to each other."""
        with self.writer.block(f"struct {self.name}_args", "};"):
            self.writer.lines(f"{kind} {name};" for kind, name in (*self.arguments(), *fields))

    def unpack(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        """The context's members as local variables."""
        self.writer.line(f"const {self.name}_args& a = *(const {self.name}_args*)context;")
        self.locals(fields)

    def locals(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        """The members of `a` as local variables."""
        for kind, name in (*self.arguments(), *fields):
            self.writer.declare(kind, name, f"a.{name}")

    def chunk(self, suffix: str) -> AbstractContextManager[None]:
        """A function that does the items begin .. end."""
        head = f"static void {self.name}{suffix}(void* context, i64 begin, i64 end, int chunk)"
        apart = self.is_repeated and not self.is_inlined()
        return self.writer.block(f"NJ_NOINLINE {head}" if apart else head)

    def is_inlined(self) -> bool:
        """Whether the plan's steps gain by having the kernel inside: it is short, and so are the
        trips that launch it. Else it would only be compiled once more for each launch."""
        long = sum(isinstance(i, Apply | Load | Store) for _, i in self.kernel.instructions())
        ranks = [len(self.kernel.outer), *(len(p.axes) for p in self.kernel.phases)]
        is_short = long <= INLINED and max(ranks) <= 1
        return is_point(self.kernel) or (self.is_tight and is_short)

    def launcher(self) -> AbstractContextManager[None]:
        """The function that the plan calls."""
        linkage = HIDDEN
        if not self.is_apart:
            linkage = "static" if self.is_inlined() else "NJ_NOINLINE static"
            if self.is_inlined() and self.launches == 1:
                linkage = "NJ_INLINE"
        return self.writer.block(f"{linkage} void {self._signature()}")

    def launcher_of_rows(self) -> None:
        """The function that a sweep calls for the items begin .. end."""
        linkage = HIDDEN if self.is_apart else "static"
        with self.writer.block(f"{linkage} void {self._signature_of_rows()}"):
            self.writer.line(self.packed())
            self.writer.line(f"if (begin < end) {self.name}_chunk(&a, begin, end, 0);")

    def declaration(self) -> str:
        """The launchers, for a unit that calls them."""
        rows = f"{HIDDEN} void {self._signature_of_rows()};\n" if self.is_swept else ""
        return f"{HIDDEN} void {self._signature()};\n{rows}"

    def _signature(self) -> str:
        given = ", ".join(f"{kind} {name}" for kind, name in self.arguments())
        return f"{self.name}({given})"

    def _signature_of_rows(self) -> str:
        given = ", ".join(f"{kind} {name}" for kind, name in self.arguments())
        return f"{self.name}_rows({given}, i64 begin, i64 end)"

    def packed(self) -> str:
        """The struct made of the launcher's arguments."""
        names = ", ".join(name for _, name in self.arguments())
        return f"{self.name}_args a = {{{names}}};"

    def share(self, axes: Sequence[int], per_item: Size) -> None:
        """Declare n, the items over `axes`, and `grain`, the fewest that are worth a chunk when
        one takes `per_item` element operations."""
        self.writer.line(f"const i64 n = {size(product(extents(self.kernel, tuple(axes))))};")
        if isinstance(per_item, int):
            self.writer.line(f"const i64 grain = {max(1, GRAIN // max(1, per_item))};")
        else:
            each = f"nj_size_max(1, {size(per_item)})"
            self.writer.line(f"const i64 grain = 1 + {GRAIN} / {each};")

    def run(self, suffix: str, items: str = "n", grain: str = "grain") -> None:
        """Share the items out among threads. A kernel that a loop launches does a few on the spot,
        where the compiler can inline the chunk's function."""
        chunk = f"{self.name}_{suffix}"
        if self.kernel.in_order:
            self.writer.line(f"if ({items} > 0) {chunk}(&a, 0, {items}, 0);")
            return
        if not self.is_repeated:
            self.writer.line(f"if ({items} > 0) api->parallel({chunk}, &a, {items}, {grain});")
            return
        with self.writer.block(f"if ({items} > {grain})"):
            self.writer.line(f"api->parallel({chunk}, &a, {items}, {grain});")
        with self.writer.block(f"else if ({items} > 0)"):
            self.writer.line(f"{chunk}(&a, 0, {items}, 0);")

    def rows(self) -> None:
        """This thread's memory for "row" buffers."""
        found = [(i, b) for i, b in enumerate(self.kernel.buffers) if b.role == "row"]
        if not found:
            return
        self.writer.line("i64 bytes = 0;")
        for i, b in found:
            self.writer.line(f"const i64 offset{i} = bytes;")
            self.writer.line(f"bytes += ({factor(b.length)} * {b.dtype.itemsize} + 63) / 64 * 64;")
        self.writer.line("char* const rows = (char*)api->scratch(bytes);")
        for i, b in found:
            kind = stored(b.dtype)
            self.writer.line(f"{kind}* const mem{i} = ({kind}*)(rows + offset{i});")

    # ------------------------------------------------------------ loops

    def extent(self, axis: int) -> str:
        """An axis's extent, fit to stand beside * and /."""
        return factor(self.kernel.axes[axis].extent)

    def decode(self, axes: Sequence[int], last: str, item: str = "begin") -> None:
        """Declare the axes' indices of an item; the last one is called `last`."""
        if len(axes) == 1:
            self.writer.line(f"i64 {last} = {item};")
            return
        self.writer.line(f"i64 rest = {item};")
        for axis in reversed(axes[1:]):
            name = last if axis == axes[-1] else f"x{axis}"
            self.writer.line(f"i64 {name} = rest % {self.extent(axis)};")
            self.writer.line(f"rest /= {self.extent(axis)};")
        self.writer.line(f"i64 x{axes[0]} = rest;")

    def carry(self, axes: Sequence[int]) -> None:
        """Step to the next index of these axes, the last one fastest."""
        if len(axes) == 1:
            self.writer.line(f"++x{axes[0]};")
        elif axes:
            with self.writer.block(f"if (++x{axes[-1]} == {self.extent(axes[-1])})"):
                self.writer.line(f"x{axes[-1]} = 0;")
                self.carry(axes[:-1])

    def segments(self, axes: Sequence[int], body: Callable[[str, str], None]) -> None:
        """The items begin .. end cut where the last axis wraps; `body` gets that axis's bounds."""
        w = self.writer
        if len(axes) == 1:
            body("begin", "end")
            return
        axis = axes[-1]
        low, high = f"low{axis}", f"high{axis}"
        self.decode(axes, low)
        with w.block("for (i64 t = begin; t < end;)"):
            w.line(f"const i64 {high} = nj_size_min({self.extent(axis)}, {low} + end - t);")
            w.line(f"t += {high} - {low};")
            body(low, high)
            w.line(f"{low} = 0;")
            self.carry(axes[:-1])

    def loop(self, axis: int) -> AbstractContextManager[None]:
        """A plain loop over an axis."""
        end = size(self.kernel.axes[axis].extent)
        return self.writer.block(f"for (i64 x{axis} = 0; x{axis} < {end}; ++x{axis})")

    def position(self, axes: Sequence[int], last: str = "") -> str:
        """The row-major position over some axes, where the last one's index has another name."""
        names = [f"x{axis}" for axis in axes]
        if last:
            names[-1] = last
        text = names[0] if names else "0"
        for axis, name in zip(axes[1:], names[1:], strict=True):
            text = f"({text}) * {self.extent(axis)} + {name}"
        return text

    def vector_loop(
        self, phase: Phase, low: str, high: str, text: Sequence[str], loops: Sequence[Loop]
    ) -> None:
        """The innermost loop of a phase, in blocks when an accumulator wants them."""
        w = self.writer
        axis = phase.axes[-1]
        if not any(a.blocked for a in loops):
            self.vectors(phase, low, high, text, loops)
            return
        extent = self.kernel.axes[axis].extent
        start, stop = f"from{axis}", f"to{axis}"
        # a block holds fewer of the widest values
        widest = max((a.kind for a in loops if a.blocked), key=width)
        block = f"NJ_BLOCK({widest})"
        one = isinstance(extent, int) and extent <= _SHORT
        step = f"for (i64 {start} = {low}; {start} < {high}; {start} += {block})"
        with w.block("" if one else step):
            if one:
                w.line(f"const i64 {start} = {low};")
            whole = high if one else f"nj_size_min({start} + {block}, {high})"
            w.line(f"const i64 {stop} = {whole};")
            for a in loops:
                w.lines(a.before_block())
            self.vectors(phase, start, stop, text, loops)
            position = self.position(phase.axes, start)
            for a in loops:
                w.lines(a.after_block(f"{stop} - {start}", position))

    def vectors(
        self, phase: Phase, low: str, high: str, text: Sequence[str], loops: Sequence[Loop]
    ) -> None:
        """One vector loop over a phase's last axis."""
        axis = phase.axes[-1]
        if all(a.simd for a in loops):
            clauses = [c.clause for a in loops for c in a.accumulators()]
            self.writer.line(" ".join(["#pragma omp simd", *clauses]))
        with self.writer.block(f"for (i64 x{axis} = {low}; x{axis} < {high}; ++x{axis})"):
            self.writer.lines(text)
            for a in loops:
                self.writer.lines(a.step(self.position(phase.axes), f"x{axis} - from{axis}"))

    def nest(
        self, axes: Sequence[int], printed: Statements, level: int, body: Callable[[], None]
    ) -> None:
        """Loops over `axes`, each behind the statements of its level, then `body`."""
        self.writer.lines(printed.levels[level])
        inner = self.loop(axes[0]) if axes else nullcontext()
        with inner:
            if axes:
                self.nest(axes[1:], printed, level + 1, body)
            else:
                body()


def word_type(dtype: DType) -> str:
    """How a scalar parameter travels: as i64, u64 or f64."""
    return {"u": "u64", "f": "f64", "c": "f64"}.get(kind_of(dtype), "i64")


def width(kind: str) -> int:
    """The bits of a type of numbers."""
    return int(kind.lstrip("bfiuc"))
