"""Plans as Python source for Numba: what runs when there is no C++ compiler.

In: a `Plan`. Out: `print_numba(plan)`, source with one function a kernel and `run(inputs)`, which
returns the fresh outputs, and `load_numba(plan)`, that `run`, compiled when it is first called:

    @numba.njit(error_model="numpy")
    def k0(mem0, at0, mem1, at1, s0):
        for x0 in range(s0):
            v0 = mem0[at0 + x0]
            mem1[at1 + x0] = f64(v0 + 1.0)

The meaning is that of the C++: values are rounded to their types, floating-point sums are pairwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.codegen.cpp_call import spec
from npjit.codegen.cpp_form import Form, choose
from npjit.codegen.numba_kernel import NumbaKernel
from npjit.codegen.numba_prelude import NoNumbaText, namespace
from npjit.core.dtypes import accumulator_of
from npjit.core.size import Shape, Size, Var, text
from npjit.schedule.plan import Call, Check, Contract, Launch, Matrix, Place, Plan, Strided

_NAME = re.compile(r"\bnj_\w+")


class PlanStopped(Exception):
    """A check failed; `number` is the check's, 0 for a guard on sizes."""

    def __init__(self, number: int) -> None:
        super().__init__(f"check {number} failed")
        self.number = number


def print_numba(plan: Plan) -> str:
    """The Python source of a plan."""
    dtypes = {b.dtype for k in plan.kernels for b in k.buffers}
    if any(accumulator_of(d) != d for d in dtypes):
        raise NoNumbaText("Numba has no floats of 16 bits on the CPU")
    if plan.saves or not all(isinstance(s, Launch | Contract | Call | Check) for s in plan.steps):
        raise NoNumbaText("loops and branches of a plan are not printed for Numba")
    parts = []
    for i, kernel in enumerate(plan.kernels):
        by_columns = choose(kernel) is Form.COLUMNS
        parts.append(NumbaKernel(kernel, f"k{i}", by_columns).print())
    return "\n\n".join([*parts, _Run(plan).print()])


def load_numba(
    plan: Plan, host: Callable[..., None] | None = None
) -> Callable[[list[Any]], list[Any]]:
    """The plan as a function from its inputs to its fresh outputs; `host` computes its calls of
    rows, as npjit_api's does."""
    source = print_numba(plan)
    found = namespace(set(_NAME.findall(source)))
    found |= {"PlanStopped": PlanStopped, "host": host}
    exec(compile(source, "<npjit numba>", "exec"), found)
    run: Callable[[list[Any]], list[Any]] = found["run"]
    return run


class _Run:
    """Prints the function that runs the plan's steps."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names = {v: f"n{i}" for i, v in enumerate(plan.sources)}
        self.lines = ["def run(inputs):"]

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def size(self, value: Size) -> str:
        def name(v: Var) -> str:
            return self.names[v]

        return text(value, name, "nj_size_")

    def print(self) -> str:
        for v, source in self.plan.sources.items():
            array = f"inputs[{source.input}]"
            what = {
                "extent": f"{array}.shape[{source.axis}]",
                "stride": f"{array}.strides[{source.axis}] // {array}.itemsize",
                "value": f"int({array})",
            }[source.what]
            self.line(f"{self.names[v]} = {what}")
        for g in self.plan.guards:
            self.line(f"if not {self.size(g.a)} {g.relation} {self.size(g.b)}:")
            self.line("    raise PlanStopped(0)")
        for i, given in enumerate(self.plan.inputs):
            if not given.is_scalar:
                self.line(f"input{i}, first{i} = flat(inputs[{i}])")
        self._outputs()
        self.line(f"arena = np.empty(({self.size(self.plan.arena)}) // 64 * 64 + 64, np.uint8)")
        for step in self.plan.steps:
            if isinstance(step, Launch):
                self._launch(step)
            elif isinstance(step, Contract):
                self._contract(step)
            elif isinstance(step, Call):
                self._call(step)
            elif isinstance(step, Check):
                self._check(step)
        fresh = [i for i, out in enumerate(self.plan.outputs) if out.kind == "fresh"]
        self.line(f"return [{', '.join(f'result{i}' for i in fresh)}]")
        return "\n".join(self.lines) + "\n"

    def _outputs(self) -> None:
        for i, out in enumerate(self.plan.outputs):
            if out.kind == "fresh":
                order = out.perm or tuple(range(len(out.shape)))
                stored = self._shape(tuple(out.shape[a] for a in order))
                back = tuple(sorted(range(len(order)), key=lambda k: order[k]))
                self.line(f"memory{i} = np.empty({stored}, np.dtype({out.dtype.str!r}))")
                self.line(f"result{i} = memory{i}.transpose({back})")
                self.line(f"output{i} = memory{i}.reshape(-1)")

    def _shape(self, shape: Shape) -> str:
        return f"({''.join(f'{self.size(n)}, ' for n in shape)})"

    def _memory(self, place: Place, dtype: Any) -> tuple[str, str]:
        """A place as flat memory, and the number of its first element."""
        offset = f"({self.size(place.offset)})"
        if place.space == "arena":
            return f"arena[{offset}:].view(np.dtype({dtype.str!r}))", "0"
        first = f"first{place.number}" if place.space == "input" else "0"
        if place.offset != 0:
            first = f"{first} + {offset} // {dtype.itemsize}"
        return f"{place.space}{place.number}", first

    def _launch(self, step: Launch) -> None:
        kernel = self.plan.kernels[step.kernel]
        given: list[str] = []
        shared = [b for b in kernel.buffers if b.role != "row"]
        for b, place in zip(shared, step.buffers, strict=True):
            given += self._memory(place, b.dtype)
        given += [self.size(s) for s in step.sizes]
        given += [f"inputs[{i}]" for i in step.scalars]
        self.line(f"k{step.kernel}({', '.join(given)})")

    def _check(self, step: Check) -> None:
        memory, first = self._memory(step.place, np.dtype("?"))
        self.line(f"if not {memory}[{first}]:")
        self.line(f"    raise PlanStopped({step.number})")

    def _contract(self, step: Contract) -> None:
        a = self._matrix(step.a, (*step.batch, step.m, step.k), step.dtype)
        b = self._matrix(step.b, (*step.batch, step.k, step.n), step.dtype)
        c = self._matrix(step.c, (*step.batch, step.m, step.n), step.dtype)
        self.line(f"{c}[...] = np.matmul({a}, {b})")

    def _call(self, step: Call) -> None:
        given = ", ".join(self._array(a) for a in step.arguments)
        made = ", ".join(self._array(r) for _, r in step.results)
        call = f"host({spec(step)!r}, [{given}], [{made}])"
        if not step.op.raises:
            self.line(call)
            return
        self.line("try:")
        self.line(f"    {call}")
        self.line("except Exception:")
        self.line(f"    raise PlanStopped({step.number}) from None")

    def _array(self, array: Strided) -> str:
        memory, first = self._memory(array.place, array.dtype)
        start = f"{first} + {self.size(array.offset)}"
        shape, strides = self._shape(array.shape), self._shape(array.strides)
        return f"placed({memory}, {start}, {shape}, {strides})"

    def _matrix(self, matrix: Matrix, shape: Shape, dtype: Any) -> str:
        memory, first = self._memory(matrix.place, dtype)
        start = f"{first} + {self.size(matrix.offset)}"
        strides = self._shape((*matrix.batch, matrix.row, matrix.column))
        return f"placed({memory}, {start}, {self._shape(shape)}, {strides})"
