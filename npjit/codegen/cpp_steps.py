"""The exported functions of a unit: npjit_prepare (sizes and guards), npjit_run (the plan's steps).

In: a `Plan`. Out: the text of both functions. A size variable is one word of `in`, read under the
name n<number>:

    const i64 n0 = in[1];
    k0(api, (const f64*)in[0], (f64*)buffers[0], n0);
    if (api->interrupted()) return NPJIT_INTERRUPTED;
"""

from __future__ import annotations

from collections.abc import Iterable

from npjit.codegen.cpp_kernel import word_type
from npjit.codegen.cpp_text import Writer
from npjit.codegen.cpp_types import ctype, is_complex, stored
from npjit.core.size import Size, atoms, text
from npjit.schedule.kernel import DType
from npjit.schedule.plan import Check, Contract, Launch, Matrix, Place, Plan, Source


class StepsPrinter:
    """Prints npjit_prepare and npjit_run of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.writer = Writer()
        self.names = {v: f"n{i}" for i, v in enumerate(plan.sources)}
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
        with self.writer.block(f'extern "C" int npjit_run({given})'):
            self._run()
        return str(self.writer)

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
        self._read(_sizes(self.plan))
        for i, step in enumerate(self.plan.steps):
            if i > 0 and not isinstance(step, Check):
                self.writer.line("if (api->interrupted()) return NPJIT_INTERRUPTED;")
            if isinstance(step, Launch):
                self._launch(step)
            elif isinstance(step, Contract):
                self._contract(step)
            else:
                held = self._pointer(step.place, "u8")
                self.writer.line(f"if (!*{held}) return {step.number};")
        self.writer.line("return NPJIT_OK;")

    def _pointer(self, place: Place, kind: str) -> str:
        if place.space == "input":
            base = f"in[{self.words[place.number]}]"
        elif place.space == "output":
            base = f"buffers[{place.number}]"
        else:
            base = "arena"
        if place.offset != 0:
            return f"({kind}*)({base} + {self.size(place.offset)})"
        return f"({kind}*){base}"

    def _launch(self, step: Launch) -> None:
        kernel = self.plan.kernels[step.kernel]
        given = ["api"]
        shared = [b for b in kernel.buffers if b.role != "row"]
        pairs = zip(shared, step.buffers, strict=True)
        given += [self._pointer(place, stored(b.dtype)) for b, place in pairs]
        given += [self.size(s) for s in step.sizes]
        for number, dtype in zip(step.scalars, kernel.scalars, strict=True):
            given += self._scalar(self.words[number], dtype)
        self.writer.line(f"k{step.kernel}({', '.join(given)});")

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
        sizes = [self.size(s) for s in (step.m, step.n, step.k)]
        given = [self._matrix(m, memory) for m in (step.a, step.b, step.c)]
        call = f"nj_matmul<{kind}>({', '.join(['api', *sizes, *given])});"
        self.writer.line(" ".join([*loops, call]))

    def _matrix(self, matrix: Matrix, kind: str) -> str:
        """Pointer to the first element of this batch's matrix, and its strides."""
        parts = [f"({kind}*)({self._pointer(matrix.place, 'char')})"]
        if matrix.offset != 0:
            parts.append(self.size(matrix.offset))
        for i, stride in enumerate(matrix.batch):
            if stride != 0:
                parts.append(f"({self.size(stride)}) * j{i}")
        strides = [self.size(s) for s in (matrix.row, matrix.column)]
        return ", ".join([" + ".join(parts), *strides])


def _sizes(plan: Plan) -> list[Size]:
    """Every size that the steps mention."""
    found: list[Size] = []
    for step in plan.steps:
        if isinstance(step, Launch):
            found += [*step.sizes, *(p.offset for p in step.buffers)]
        elif isinstance(step, Check):
            found.append(step.place.offset)
        else:
            found += [*step.batch, step.m, step.n, step.k]
            for matrix in (step.a, step.b, step.c):
                found += [
                    matrix.place.offset,
                    matrix.offset,
                    matrix.row,
                    matrix.column,
                    *matrix.batch,
                ]
    return found
