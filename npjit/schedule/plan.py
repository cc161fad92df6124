"""The plan: the ordered steps of a compiled graph, and where every value lives.

A `Plan` is what a backend turns into a function. Its sizes are expressions over the variables of
`sources`: extents and strides of inputs, and int inputs. Printing a plan gives the text that the
plan cache keys use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core.assume import Guard
from npjit.core.op import Op
from npjit.core.size import Shape, Size, Var, text
from npjit.schedule.kernel import Kernel

DType = np.dtype[Any]


@dataclass(frozen=True)
class Source:
    """Where a size variable's value comes from: an input's "extent" or "stride" (in elements) along
    `axis`, or its "value" (an int input; axis is 0)."""

    input: int
    what: str
    axis: int


@dataclass(frozen=True)
class Place:
    """Memory: space "input" or "output" with its number, or "arena" with number 0 and an offset in
    bytes."""

    space: str
    number: int
    offset: Size = 0


@dataclass(frozen=True)
class Launch:
    """Run kernel `kernel` on these buffers, scalar inputs (input numbers) and sizes (values of s0,
    s1, ...)."""

    kernel: int
    buffers: tuple[Place, ...]
    scalars: tuple[int, ...]
    sizes: tuple[Size, ...]


@dataclass(frozen=True)
class Matrix:
    """A batch of matrices in memory: offset and strides in elements (batch axes, then row, then
    column)."""

    place: Place
    offset: Size
    batch: tuple[Size, ...]
    row: Size
    column: Size


@dataclass(frozen=True)
class Contract:
    """c = a @ b over batches: a is m x k, b is k x n, c is m x n, all of one dtype."""

    dtype: DType
    batch: Shape
    m: Size
    n: Size
    k: Size
    a: Matrix
    b: Matrix
    c: Matrix


@dataclass(frozen=True)
class Check:
    """Stop with `number` unless the bool at `place` is true."""

    number: int
    place: Place
    message: str


@dataclass(frozen=True)
class Strided:
    """An array in memory: offset and strides in elements."""

    place: Place
    dtype: DType
    shape: Shape
    offset: Size
    strides: tuple[Size, ...]

    def __str__(self) -> str:
        shape, strides = (", ".join(text(s) for s in sizes) for sizes in (self.shape, self.strides))
        return f"{_place(self.place)}[{text(self.offset)}; {shape}; {strides}]"


@dataclass(frozen=True)
class Call:
    """Compute a row from arrays in memory: by its C text, or by Python. Python that raises stops
    the plan with `number`. `results` tells which results of the row are wanted, and where."""

    number: int
    op: Op
    params: Any
    arguments: tuple[Strided, ...]
    results: tuple[tuple[int, Strided], ...]


Step = Launch | Contract | Call | Check


@dataclass(frozen=True)
class InputSpec:
    """An input as the plan sees it: rank (scalars: is_scalar), element type, and layout ("C" or one
    letter an axis)."""

    dtype: DType
    shape: Shape
    is_scalar: bool
    layout: str | tuple[str, ...] = "C"


@dataclass(frozen=True)
class OutputSpec:
    """kind "fresh": shape (and memory order `perm`, outermost first, or None for C order); "alias":
    a view of input `input` with offset and strides in elements; "input": that very input."""

    kind: str
    dtype: DType
    shape: Shape
    perm: tuple[int, ...] | None = None
    input: int = -1
    offset: Size = 0
    strides: tuple[Size, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Everything that a printer needs."""

    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    arena: Size
    guards: tuple[Guard, ...]
    sources: Mapping[Var, Source]
    # why nodes did not fuse, for `explain`
    refusals: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"plan, arena {text(self.arena)} bytes"]
        for v, s in self.sources.items():
            lines.append(f"  {v.name} = {s.what} {s.axis} of input {s.input}")
        for i, spec in enumerate(self.inputs):
            shape = ", ".join(text(n) for n in spec.shape)
            sort = "scalar" if spec.is_scalar else f"[{shape}] {spec.layout}"
            lines.append(f"  input {i}: {spec.dtype} {sort}")
        for i, out in enumerate(self.outputs):
            lines.append(f"  output {i}: {out}")
        lines += [f"  guard {g}" for g in self.guards]
        for i, k in enumerate(self.kernels):
            lines.append(f"  k{i} = " + str(k).replace("\n", "\n  "))
        lines += [f"  {_show(s)}" for s in self.steps]
        return "\n".join(lines)


def _show(step: Step) -> str:
    if isinstance(step, Launch):
        where = ", ".join(_place(p) for p in step.buffers)
        sizes = ", ".join(text(s) for s in step.sizes)
        return f"launch k{step.kernel}({where}; {list(step.scalars)}; {sizes})"
    if isinstance(step, Check):
        return f"check {step.number} {_place(step.place)}: {step.message}"
    if isinstance(step, Call):
        given = ", ".join(str(a) for a in step.arguments)
        made = ", ".join(str(r) for _, r in step.results)
        return f"call {step.number} {step.op.name} {step.params}: {made} = {given}"
    dims = " ".join(text(s) for s in (*step.batch, step.m, step.n, step.k))
    return f"contract {step.dtype} {dims}: {step.c} = {step.a} @ {step.b}"


def _place(p: Place) -> str:
    return f"{p.space}+{text(p.offset)}" if p.space == "arena" else f"{p.space}{p.number}"


def ops_of(plan: Plan) -> set[Op]:
    """Every row that the plan's kernels use."""
    return {i.op for k in plan.kernels for _, i in k.instructions() if hasattr(i, "op")}
