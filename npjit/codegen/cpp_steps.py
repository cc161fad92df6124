"""The exported functions of a unit: npjit_prepare (sizes and guards), npjit_run (the plan's steps).

In: a `Plan`. Out: the text of both functions. A size variable is one word of `in`, read under the
name n<number>:

    const i64 n0 = in[1];
    char* const in0 = (char*)in[0];
    k0(api, (const f64*)in0, (f64*)out0, n0);
    if (api->interrupted()) return NPJIT_INTERRUPTED;
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from npjit.codegen.cpp_call import CallPrinter
from npjit.codegen.cpp_form import is_point, per_item
from npjit.codegen.cpp_kernel import word_type
from npjit.codegen.cpp_lanes import LanesPrinter, lanes_of
from npjit.codegen.cpp_row_pass import RowPassPrinter
from npjit.codegen.cpp_small import is_small_product, small_product
from npjit.codegen.cpp_text import Writer
from npjit.codegen.cpp_types import ctype, is_complex, stored
from npjit.codegen.cpp_work import work_of
from npjit.core.size import Size, Var, atoms, text
from npjit.schedule.kernel import DType
from npjit.schedule.plan import (
    Bind,
    Call,
    Check,
    Contract,
    If,
    Launch,
    Loop,
    Matrix,
    Place,
    Plan,
    RowPass,
    Save,
    Source,
    Step,
    Sweep,
    While,
    every_step,
    places_in,
    sizes_in,
)

# trips after which Ctrl-C is looked for: of bodies without loops and library calls, and of others
STRIP = 65536
SHORT = 8
# instructions of a trip that takes no longer than going to the next one
SHORT_TRIP = 16


class StepsPrinter:
    """Prints npjit_prepare and npjit_run of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.writer = Writer()
        self.names = {v: f"n{i}" for i, v in enumerate(plan.sources)}
        # of the names of local variables, or "m" for those of a share; "t" for copies of them
        self.own = self.prefix = "l"
        # places of the arena that have a name
        self.slots: dict[Size, str] = {}
        self.words: list[int] = []
        word = 0
        for spec in plan.inputs:
            self.words.append(word)
            if spec.is_scalar:
                word += 2 if is_complex(spec.dtype) else 1
            else:
                word += 1 + 2 * len(spec.shape)

    def print(self) -> str:
        """The text of both functions."""
        with self.writer.block('extern "C" int npjit_prepare(const i64* in, i64* out)'):
            self._prepare()
        given = (
            "const npjit_api* api, const i64* in, const i64* out, char* const* buffers, char* arena"
        )
        if not self.plan.saves:
            with self.writer.block(f'extern "C" int npjit_run({given})'):
                self._run()
            return str(self.writer)
        with self.writer.block(f"static int npjit_steps({given})"):
            self._run()
        with self.writer.block(f'extern "C" int npjit_run({given})'):
            self._run_saved()
        return str(self.writer)

    def _run_saved(self) -> None:
        """The steps, with the caller's arrays put back when a check fails."""
        w = self.writer
        self._read(sizes_in(self.plan.saves))
        self._name_memory()
        w.lines(self._copy(save, "false") for save in self.plan.saves)
        w.line("const int code = npjit_steps(api, in, out, buffers, arena);")
        with w.block("if (code > 0)"):
            w.lines(self._copy(save, "true") for save in self.plan.saves)
        w.line("return code;")

    def _copy(self, save: Save, back: str) -> str:
        spec = self.plan.inputs[save.input]
        rank, word = len(spec.shape), self.words[save.input] + 1
        given = [
            self._pointer(save.place, "char"),
            self._pointer(Place("input", save.input), "char"),
        ]
        layout = f"{rank}, in + {word}, in + {word + rank}, {spec.dtype.itemsize}, {back}"
        return f"nj_keep({', '.join(given)}, {layout});"

    # ------------------------------------------------------------ sizes

    def size(self, value: Size) -> str:
        """A size over the plan's variables."""
        return text(value, lambda v: self.names[v], "nj_size_")

    def _read(self, used: Iterable[Size]) -> None:
        """Declare the variables that these sizes need."""
        needed = set().union(*(atoms(s) for s in used))
        for variable, source in self.plan.sources.items():
            if variable in needed:
                word = self._word(source)
                self.writer.line(f"const i64 {self.names[variable]} = in[{word}];")

    def _word(self, source: Source) -> int:
        start = self.words[source.input]
        rank = len(self.plan.inputs[source.input].shape)
        return (
            start
            + {"value": 0, "extent": 1 + source.axis, "stride": 1 + rank + source.axis}[source.what]
        )

    def _prepare(self) -> None:
        words = [self.plan.arena, *self._described()]
        guards = self.plan.guards
        self._read([*words, *(s for g in guards for s in (g.a, g.b))])
        for g in guards:
            held = f"{self.size(g.a)} {g.relation} {self.size(g.b)}"
            self.writer.line(f"if (!({held})) return 1;")
        self.writer.lines(f"out[{i}] = {self.size(w)};" for i, w in enumerate(words))
        self.writer.line("return 0;")

    def _described(self) -> list[Size]:
        """The words that tell the runtime about each output."""
        words: list[Size] = []
        for spec in self.plan.outputs:
            if spec.kind == "fresh":
                words += spec.shape
            elif spec.kind == "alias":
                words += [spec.offset, *spec.shape, *spec.strides]
        return words

    # ------------------------------------------------------------ steps

    def _run(self) -> None:
        self._read(sizes_in(self.plan.steps))
        self._name_memory()
        self._name_slots()
        for number, dtype in enumerate(self.plan.locals):
            parts = "[2]" if is_complex(dtype) else ""
            self.writer.line(f"{stored(dtype)} l{number}{parts} = {{}};")
        for i, step in enumerate(self.plan.steps):
            if i > 0 and not isinstance(step, Check | Bind):
                self.writer.line("if (api->interrupted()) return NPJIT_INTERRUPTED;")
            self._step(step)
        self.writer.line("return NPJIT_OK;")

    def _name_memory(self) -> None:
        """The arrays' addresses as variables, since what a loop stores might change `in` itself."""
        for number, word in enumerate(self.words):
            self.writer.declare("char*", f"in{number}", f"(char*)in[{word}]")
        for number in range(len(self.plan.outputs)):
            self.writer.declare("char*", f"out{number}", f"buffers[{number}]")

    def _name_slots(self) -> None:
        """Offsets into the arena that several steps compute, each of which is a long expression to
        the compiler."""
        places = Counter(p.offset for p in places_in(self.plan.steps) if p.space == "arena")
        for offset, count in places.items():
            if count > 1 and not isinstance(offset, int) and atoms(offset) <= self.names.keys():
                name = f"slot{len(self.slots)}"
                self.writer.declare("char*", name, f"arena + {self.size(offset)}")
                self.slots[offset] = name

    def _steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._step(step)

    def _step(self, step: Step) -> None:
        if isinstance(step, Loop):
            self._loop(step)
        elif isinstance(step, While):
            self._while(step)
        elif isinstance(step, If):
            self._branch(step)
        elif isinstance(step, Bind):
            self.names[step.var] = f"b_{step.var.name}"
            self.writer.line(
                f"const i64 {self.names[step.var]} = {self._value(step.place, 'i64')};"
            )
        elif isinstance(step, Check):
            self.writer.line(f"if (!{self._value(step.place)}) return {step.number};")
        elif isinstance(step, Launch) and is_point(self.plan.kernels[step.kernel]):
            self._launch(step)
        else:
            self._call(step)

    def _call(self, step: Launch | Contract | Call | Sweep | RowPass) -> None:
        """A step that is a real call: it gets copies of local variables, which can so stay in
        registers everywhere else."""
        used = _locals_in(step)
        apart = used or isinstance(step, Sweep | RowPass)
        with self.writer.block("") if apart else nullcontext():
            self._copy_locals(used, "t")
            self.prefix = "t"
            if isinstance(step, Launch):
                self._launch(step)
            elif isinstance(step, Sweep):
                self._sweep(step)
            elif isinstance(step, Contract):
                self._contract(step)
            elif isinstance(step, RowPass):
                self._row_pass(step)
            else:
                CallPrinter(step, self.size, self._pointer).print(self.writer)
            self.prefix = self.own
            for number in used:
                planes = ("[0]", "[1]") if is_complex(self.plan.locals[number]) else ("",)
                own = f"{self.own}{number}"
                self.writer.lines(f"{own}{plane} = t{number}{plane};" for plane in planes)

    def _copy_locals(self, numbers: Iterable[int], prefix: str) -> None:
        """Local variables of another prefix with the values of these."""
        for number in numbers:
            kind = stored(self.plan.locals[number])
            parts = ("[2]", "[0]", "[1]") if is_complex(self.plan.locals[number]) else ("", "")
            values = ", ".join(f"{self.own}{number}{part}" for part in parts[1:])
            self.writer.line(f"{kind} {prefix}{number}{parts[0]} = {{{values}}};")

    # ------------------------------------------------------------ loops and branches

    def _loop(self, step: Loop) -> None:
        """In strips, after each of which Ctrl-C is looked for; shared out among threads, if the
        trips are apart."""
        w = self.writer
        name = self.names[step.index] = f"x_{step.index.name}"
        if step.share is not None:
            self._shared_loop(step, step.share)
            return
        trips = self.size(step.trips)
        is_quick = self._is_quick(step.body)
        if is_quick and isinstance(step.trips, int) and step.trips <= STRIP:
            self._unroll(step)
            with w.block(f"for (i64 {name} = 0; {name} < {trips}; ++{name})"):
                self._trip(step)
            return
        end = f"end_{step.index.name}"
        with w.block(""):
            w.line(f"const i64 {end} = {trips};")
            self._strips(step, "0", end)

    def _strips(self, step: Loop, begin: str, end: str) -> None:
        w = self.writer
        name = self.names[step.index]
        lanes = lanes_of(step, self.plan)
        strip = "NJ_MANY" if lanes else STRIP if self._is_quick(step.body) else SHORT
        first, last = (f"{word}_{step.index.name}" for word in ("first", "last"))
        with w.block(f"for (i64 {first} = {begin}; {first} < {end}; {first} += {strip})"):
            w.line(f"if ({first} > {begin} && api->interrupted()) return NPJIT_INTERRUPTED;")
            w.line(f"const i64 {last} = nj_size_min({end}, {first} + {strip});")
            if lanes:
                if isinstance(lanes.inner, Loop):
                    self.names[lanes.inner.index] = "trip"
                given = (self.plan, w, self.size, self._pointer, self._steps)
                LanesPrinter(lanes, *given).print(name, first, last)
                return
            self._unroll(step)
            with w.block(f"for (i64 {name} = {first}; {name} < {last}; ++{name})"):
                self._trip(step)
            self._stop(step.stops)

    def _shared_loop(self, step: Loop, share: Var) -> None:
        """The trips as a function of their range, with local variables of its own."""
        w = self.writer
        trips, name = self.size(step.trips), step.index.name
        work = self.size(work_of(step, self.plan))
        self.names[share] = f"x_{share.name}"
        given = f"i64 {self.names[share]}, i64 begin_{name}, i64 end_{name}"
        with w.block(""):
            with w.block(f"const auto run = [=]({given}) -> int", "};"):
                self._copy_locals(_locals_in(step), "m")
                self.own = self.prefix = "m"
                self._strips(step, f"begin_{name}", f"end_{name}")
                self.own = self.prefix = "l"
                w.line("return NPJIT_OK;")
            w.line(f"const int code = nj_share(api, {trips}, {work}, run);")
            w.line("if (code) return code;")

    def _is_quick(self, steps: Sequence[Step]) -> bool:
        """Whether the steps take nanoseconds."""
        return all(
            isinstance(s, Check | Bind)
            or (isinstance(s, Launch) and is_point(self.plan.kernels[s.kernel]))
            or (isinstance(s, If) and self._is_quick((*s.then, *s.other)))
            for s in steps
        )

    def _unroll(self, step: Loop) -> None:
        """Have the compiler join some trips that take no longer than going to the next one."""
        launches = [s for s in every_step(step.body) if isinstance(s, Launch)]
        kernels = [self.plan.kernels[s.kernel] for s in launches]
        length = sum(len(list(k.instructions())) for k in kernels)
        if self._is_quick(step.body) and length <= SHORT_TRIP:
            self.writer.line("#pragma GCC unroll 4")

    def _trip(self, step: Loop) -> None:
        self._stop(step.stops)
        self._steps(step.body)

    def _stop(self, stops: Sequence[Place]) -> None:
        if stops:
            self.writer.line(f"if ({' || '.join(map(self._value, stops))}) break;")

    def _while(self, step: While) -> None:
        w = self.writer
        with w.block("for (i64 trip = 1;; ++trip)"):
            strip = STRIP if self._is_quick((*step.test, *step.body)) else SHORT
            w.line(f"if (trip % {strip} == 0 && api->interrupted()) return NPJIT_INTERRUPTED;")
            self._stop(step.stops)
            with w.block(""):
                self._steps(step.test)
            w.line(f"if (!{self._value(step.condition)}) break;")
            self._steps(step.body)

    def _branch(self, step: If) -> None:
        with self.writer.block(f"if ({self._value(step.condition)})"):
            self._steps(step.then)
        if step.other:
            with self.writer.block("else"):
                self._steps(step.other)

    # ------------------------------------------------------------ launches

    def _value(self, place: Place, kind: str = "u8") -> str:
        """The single element at a place, a bool if nothing else is said."""
        if place.space == "local":
            return f"{self.own}{place.number}"
        return f"*{self._pointer(place, kind)}"

    def _pointer(self, place: Place, kind: str) -> str:
        if place.space == "local":
            address = "" if is_complex(self.plan.locals[place.number]) else "&"
            return f"({kind}*){address}{self.prefix}{place.number}"
        if place.space == "input":
            base = f"in{place.number}"
        elif place.space == "output":
            base = f"out{place.number}"
        elif place.offset in self.slots:
            return f"({kind}*){self.slots[place.offset]}"
        else:
            base = "arena"
        if place.offset != 0:
            return f"({kind}*)({base} + {self.size(place.offset)})"
        return f"({kind}*){base}"

    def _sweep(self, step: Sweep) -> None:
        """The launches as one function of their number, the trip and the rows."""
        w = self.writer
        trip = ""
        if step.index is not None:
            trip = self.names[step.index] = f"x_{step.index.name}"
        pairs = list(zip(step.launches, step.paces, strict=True))
        with w.block("const nj_pace paces[] =", "};"):
            for launch, p in pairs:
                kernel = self.plan.kernels[launch.kernel]
                work = p.each * per_item(kernel, kernel.phases)
                pace = (p.first, p.rows, p.lag, p.below, work)
                w.line(f"{{{', '.join(map(self.size, pace))}}},")
        with w.block(f"const auto run = [=](i64 k, i64 {trip}, i64 from, i64 to)", "};"):
            for k, (launch, p) in enumerate(pairs):
                each = f"({self.size(p.each)})"
                with w.block(f"if (k == {k})"):
                    self._launch(launch, "_rows", [f"from * {each}", f"to * {each}"])
        sizes = f"{{0, 0, {step.lag}, {step.below}, 0}}, {self.size(step.trips)}"
        is_round = "true" if step.is_round else "false"
        call = f"nj_sweep(api, paces, {sizes}, {self.size(step.bytes)}, {is_round}, run)"
        w.line(f"if ({call}) return NPJIT_INTERRUPTED;")

    def _row_pass(self, step: RowPass) -> None:
        def one(s: Launch | Contract) -> None:
            if isinstance(s, Launch):
                self._launch(s)
            else:
                self._contract(s)

        def some(s: Launch, begin: str, end: str) -> None:
            self._launch(s, "_rows", [begin, end])

        kernels = self.plan.kernels
        RowPassPrinter(step, kernels, self.size, self._pointer, one, some).print(self.writer)

    def _launch(self, step: Launch, suffix: str = "", more: Sequence[str] = ()) -> None:
        kernel = self.plan.kernels[step.kernel]
        given = ["api"]
        shared = [b for b in kernel.buffers if b.role != "row"]
        pairs = zip(shared, step.buffers, strict=True)
        given += [self._pointer(place, stored(b.dtype)) for b, place in pairs]
        given += [self.size(s) for s in step.sizes]
        for number, dtype in zip(step.scalars, kernel.scalars, strict=True):
            given += self._scalar(self.words[number], dtype)
        self.writer.line(f"k{step.kernel}{suffix}({', '.join([*given, *more])});")

    def _scalar(self, word: int, dtype: DType) -> list[str]:
        kind = word_type(dtype)
        words = [word, word + 1] if is_complex(dtype) else [word]
        if kind == "f64":
            return [f"__builtin_bit_cast(f64, in[{w}])" for w in words]
        return [f"({kind})in[{w}]" for w in words]

    def _contract(self, step: Contract) -> None:
        kind = ctype(step.dtype)
        memory = kind if is_complex(step.dtype) else stored(step.dtype)
        loops = [
            f"for (i64 j{i} = 0; j{i} < {self.size(n)}; ++j{i})" for i, n in enumerate(step.batch)
        ]
        m, n, k = (self.size(s) for s in (step.m, step.n, step.k))
        a, b, c = (self._matrix(x, memory) for x in (step.a, step.b, step.c))
        given = [", ".join(x) for x in (a, b, c)]
        if is_small_product(step):
            call = small_product(kind, step, *given)
        elif 1 not in (step.m, step.n) or step.a.place == step.c.place:
            call = f"nj_matmul<{kind}>({', '.join(['api', m, n, k, *given])});"
        elif step.n == 1:
            vectors = f"{b[0]}, {b[1]}, {c[0]}, {c[1]}"
            call = f"nj_times_vector<{kind}>(api, {m}, {k}, {given[0]}, {vectors});"
        else:
            vectors = f"{a[0]}, {a[2]}, {c[0]}, {c[2]}"
            turned = f"{b[0]}, {b[2]}, {b[1]}"
            call = f"nj_times_vector<{kind}>(api, {n}, {k}, {turned}, {vectors});"
        self.writer.line(" ".join([*loops, call]))

    def _matrix(self, matrix: Matrix, kind: str) -> tuple[str, str, str]:
        """Pointer to the first element of this batch's matrix, and its strides."""
        parts = [f"({kind}*)({self._pointer(matrix.place, 'char')})"]
        if matrix.offset != 0:
            parts.append(self.size(matrix.offset))
        for i, stride in enumerate(matrix.batch):
            if stride != 0:
                parts.append(f"({self.size(stride)}) * j{i}")
        return " + ".join(parts), self.size(matrix.row), self.size(matrix.column)


def _locals_in(step: Step) -> list[int]:
    """The local variables that a step touches."""
    return sorted({p.number for p in places_in(step) if p.space == "local"})
