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

from npjit.codegen.cpp_form import is_point
from npjit.codegen.cpp_lanes import LoopLanesPrinter, lanes_of
from npjit.codegen.cpp_launches import LaunchPrinter, Work
from npjit.codegen.cpp_names import Names
from npjit.codegen.cpp_text import Writer
from npjit.codegen.cpp_types import is_complex, stored
from npjit.codegen.cpp_work import work_of
from npjit.core.size import Size, Var, atoms
from npjit.schedule.plan import (
    Bind,
    Check,
    If,
    Launch,
    Loop,
    Place,
    Plan,
    Save,
    Step,
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
        self.names = Names(plan)
        self.launches = LaunchPrinter(self.names, self.writer)

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
        rank, word = len(spec.shape), self.names.words[save.input] + 1
        given = [
            self.names.pointer(save.place, "char"),
            self.names.pointer(Place("input", save.input), "char"),
        ]
        layout = f"{rank}, in + {word}, in + {word + rank}, {spec.dtype.itemsize}, {back}"
        return f"nj_keep({', '.join(given)}, {layout});"

    # ------------------------------------------------------------ sizes

    def _read(self, used: Iterable[Size]) -> None:
        """Declare the variables that these sizes need."""
        needed = set().union(*(atoms(s) for s in used))
        for variable, source in self.plan.sources.items():
            if variable in needed:
                word = self.names.word(source)
                self.writer.line(f"const i64 {self.names.sizes[variable]} = in[{word}];")

    def _prepare(self) -> None:
        words = [self.plan.arena, *self._described()]
        guards = self.plan.guards
        self._read([*words, *(s for g in guards for s in (g.a, g.b))])
        for g in guards:
            held = f"{self.names.size(g.a)} {g.relation} {self.names.size(g.b)}"
            self.writer.line(f"if (!({held})) return 1;")
        self.writer.lines(f"out[{i}] = {self.names.size(w)};" for i, w in enumerate(words))
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
        for number, word in enumerate(self.names.words):
            self.writer.declare("char*", f"in{number}", f"(char*)in[{word}]")
        for number in range(len(self.plan.outputs)):
            self.writer.declare("char*", f"out{number}", f"buffers[{number}]")

    def _name_slots(self) -> None:
        """Offsets into the arena that several steps compute, each of which is a long expression to
        the compiler."""
        names = self.names
        places = Counter(p.offset for p in places_in(self.plan.steps) if p.space == "arena")
        for offset, count in places.items():
            if count > 1 and not isinstance(offset, int) and atoms(offset) <= names.sizes.keys():
                name = f"slot{len(names.slots)}"
                self.writer.declare("char*", name, f"arena + {names.size(offset)}")
                names.slots[offset] = name

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
            name = self.names.sizes[step.var] = f"b_{step.var.name}"
            self.writer.line(f"const i64 {name} = {self.names.value(step.place, 'i64')};")
        elif isinstance(step, Check):
            self.writer.line(f"if (!{self.names.value(step.place)}) return {step.number};")
        elif isinstance(step, Launch) and is_point(self.plan.kernels[step.kernel]):
            self.launches.print(step)
        else:
            self._call(step)

    def _call(self, step: Work) -> None:
        """A step that is a real call: it gets copies of local variables, which can so stay in
        registers everywhere else."""
        names, used = self.names, _locals_in(step)
        with self.writer.block("") if used else nullcontext():
            self._copy_locals(used, "t")
            names.prefix = "t"
            self.launches.print(step)
            names.prefix = names.own
            for number in used:
                planes = ("[0]", "[1]") if is_complex(self.plan.locals[number]) else ("",)
                own = f"{names.own}{number}"
                self.writer.lines(f"{own}{plane} = t{number}{plane};" for plane in planes)

    def _copy_locals(self, numbers: Iterable[int], prefix: str) -> None:
        """Local variables of another prefix with the values of these."""
        for number in numbers:
            kind = stored(self.plan.locals[number])
            parts = ("[2]", "[0]", "[1]") if is_complex(self.plan.locals[number]) else ("", "")
            values = ", ".join(f"{self.names.own}{number}{part}" for part in parts[1:])
            self.writer.line(f"{kind} {prefix}{number}{parts[0]} = {{{values}}};")

    # ------------------------------------------------------------ loops and branches

    def _loop(self, step: Loop) -> None:
        """In strips, after each of which Ctrl-C is looked for; shared out among threads, if the
        trips are apart."""
        w = self.writer
        name = self.names.index(step.index)
        if step.share is not None:
            self._shared_loop(step, step.share)
            return
        trips = self.names.size(step.trips)
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
        name = self.names.sizes[step.index]
        lanes = lanes_of(step, self.plan)
        strip = "NJ_MANY" if lanes else STRIP if self._is_quick(step.body) else SHORT
        first, last = (f"{word}_{step.index.name}" for word in ("first", "last"))
        with w.block(f"for (i64 {first} = {begin}; {first} < {end}; {first} += {strip})"):
            w.line(f"if ({first} > {begin} && api->interrupted()) return NPJIT_INTERRUPTED;")
            w.line(f"const i64 {last} = nj_size_min({end}, {first} + {strip});")
            if lanes:
                if isinstance(lanes.inner, Loop):
                    self.names.sizes[lanes.inner.index] = "trip"
                LoopLanesPrinter(lanes, self.names, w, self._steps).print(name, first, last)
                return
            self._unroll(step)
            with w.block(f"for (i64 {name} = {first}; {name} < {last}; ++{name})"):
                self._trip(step)
            self._stop(step.stops)

    def _shared_loop(self, step: Loop, share: Var) -> None:
        """The trips as a function of their range, with local variables of its own."""
        w = self.writer
        trips, name = self.names.size(step.trips), step.index.name
        work = self.names.size(work_of(step, self.plan))
        given = f"i64 {self.names.index(share)}, i64 begin_{name}, i64 end_{name}"
        with w.block(""):
            with w.block(f"const auto run = [=]({given}) -> int", "};"):
                self._copy_locals(_locals_in(step), "m")
                self.names.own = self.names.prefix = "m"
                self._strips(step, f"begin_{name}", f"end_{name}")
                self.names.own = self.names.prefix = "l"
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
            self.writer.line(f"if ({' || '.join(map(self.names.value, stops))}) break;")

    def _while(self, step: While) -> None:
        w = self.writer
        with w.block("for (i64 trip = 1;; ++trip)"):
            strip = STRIP if self._is_quick((*step.test, *step.body)) else SHORT
            w.line(f"if (trip % {strip} == 0 && api->interrupted()) return NPJIT_INTERRUPTED;")
            self._stop(step.stops)
            with w.block(""):
                self._steps(step.test)
            w.line(f"if (!{self.names.value(step.condition)}) break;")
            self._steps(step.body)

    def _branch(self, step: If) -> None:
        with self.writer.block(f"if ({self.names.value(step.condition)})"):
            self._steps(step.then)
        if step.other:
            with self.writer.block("else"):
                self._steps(step.other)


def _locals_in(step: Step) -> list[int]:
    """The local variables that a step touches."""
    return sorted({p.number for p in places_in(step) if p.space == "local"})
