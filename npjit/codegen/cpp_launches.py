"""Steps that do work, as C++: launches, products, calls of rows, sweeps and passes.

In: the step, and the `Names` of the scope that it stands in. Out: its call, or the block that
prepares the call:

    k0(api, (const f64*)in0, (f64*)out0, n0);
    nj_matmul<f64>(api, n0, n1, n2, (f64*)in0, n2, 1, ...);
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.codegen.cpp_call import CallPrinter
from npjit.codegen.cpp_form import per_item
from npjit.codegen.cpp_kernel import word_type
from npjit.codegen.cpp_names import Names
from npjit.codegen.cpp_row_pass import RowPassPrinter
from npjit.codegen.cpp_small import is_small_product, small_product
from npjit.codegen.cpp_text import Writer
from npjit.codegen.cpp_types import ctype, is_complex, stored
from npjit.schedule.kernel import DType
from npjit.schedule.plan import Call, Contract, Launch, Matrix, RowPass, Sweep

Work = Launch | Contract | Call | Sweep | RowPass


class LaunchPrinter:
    """Prints one step at a time."""

    def __init__(self, names: Names, writer: Writer) -> None:
        self.names = names
        self.writer = writer
        self.kernels = names.plan.kernels

    def print(self, step: Work) -> None:
        """The step's text."""
        if isinstance(step, Launch):
            self._launch(step)
        elif isinstance(step, Contract):
            self._contract(step)
        elif isinstance(step, Call):
            CallPrinter(step, self.names).print(self.writer)
        else:
            with self.writer.block(""):
                if isinstance(step, Sweep):
                    self._sweep(step)
                else:
                    self._row_pass(step)

    def _sweep(self, step: Sweep) -> None:
        """The launches as one function of their number, the trip and the rows."""
        w = self.writer
        trip = ""
        if step.index is not None:
            trip = self.names.index(step.index)
        pairs = list(zip(step.launches, step.paces, strict=True))
        with w.block("const nj_pace paces[] =", "};"):
            for launch, p in pairs:
                kernel = self.kernels[launch.kernel]
                work = p.each * per_item(kernel, kernel.phases)
                pace = (p.first, p.rows, p.lag, p.below, work)
                w.line(f"{{{', '.join(map(self.names.size, pace))}}},")
        with w.block(f"const auto run = [=](i64 k, i64 {trip}, i64 from, i64 to)", "};"):
            for k, (launch, p) in enumerate(pairs):
                each = f"({self.names.size(p.each)})"
                with w.block(f"if (k == {k})"):
                    self._launch(launch, "_rows", [f"from * {each}", f"to * {each}"])
        sizes = f"{{0, 0, {step.lag}, {step.below}, 0}}, {self.names.size(step.trips)}"
        is_round = "true" if step.is_round else "false"
        call = f"nj_sweep(api, paces, {sizes}, {self.names.size(step.bytes)}, {is_round}, run)"
        w.line(f"if ({call}) return NPJIT_INTERRUPTED;")

    def _row_pass(self, step: RowPass) -> None:
        def some(s: Launch, begin: str, end: str) -> None:
            self._launch(s, "_rows", [begin, end])

        RowPassPrinter(step, self.names, self.print, some).print(self.writer)

    def _launch(self, step: Launch, suffix: str = "", more: Sequence[str] = ()) -> None:
        kernel = self.kernels[step.kernel]
        given = ["api"]
        shared = [b for b in kernel.buffers if b.role != "row"]
        pairs = zip(shared, step.buffers, strict=True)
        given += [self.names.pointer(place, stored(b.dtype)) for b, place in pairs]
        given += [self.names.size(s) for s in step.sizes]
        for number, dtype in zip(step.scalars, kernel.scalars, strict=True):
            given += self._scalar(self.names.words[number], dtype)
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
            f"for (i64 j{i} = 0; j{i} < {self.names.size(n)}; ++j{i})"
            for i, n in enumerate(step.batch)
        ]
        m, n, k = (self.names.size(s) for s in (step.m, step.n, step.k))
        a, b, c = (self._matrix(x, memory) for x in (step.a, step.b, step.c))
        given = [", ".join(x) for x in (a, b, c)]
        if is_small_product(step):
            call = small_product(kind, step, *given)
        elif 1 not in (step.m, step.n) or step.a.place == step.c.place:
            call = f"nj_matmul<{kind}, {_relation(step)}>({', '.join(['api', m, n, k, *given])});"
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
        parts = [f"({kind}*)({self.names.pointer(matrix.place, 'char')})"]
        if matrix.offset != 0:
            parts.append(self.names.size(matrix.offset))
        for i, stride in enumerate(matrix.batch):
            if stride != 0:
                parts.append(f"({self.names.size(stride)}) * j{i}")
        return " + ".join(parts), self.names.size(matrix.row), self.names.size(matrix.column)


def _relation(step: Contract) -> str:
    """How the operands of a product may lie, for the prelude."""
    if step.a.place == step.c.place:
        return "NJ_IN_PLACE"
    return "NJ_SQUARE" if step.a.place == step.b.place else "NJ_APART"
