"""The plan: the ordered steps of a compiled graph, and where every value lives.

A `Plan` is what a backend turns into a function. Its sizes are expressions over the variables of
`sources`: extents and strides of inputs, and int inputs. A plan prints as the text that
`lower(...).as_text("kernels")` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from npjit.core.assume import Guard
from npjit.core.op import Op
from npjit.core.size import Expr, Shape, Size, Var, text
from npjit.schedule.kernel import Kernel

DType = np.dtype[Any]

# the most parts in which threads share out the trips of a loop
SHARES = 16


@dataclass(frozen=True)
class Source:
    """Where a size variable's value comes from: an input's "extent" or "stride" (in elements) along
    `axis`, or its "value" (an int input; axis is 0)."""

    input: int
    what: str
    axis: int


@dataclass(frozen=True)
class Place:
    """Memory: space "input" or "output" with its number, "arena" with number 0 and an offset in
    bytes, or "local": one element in a variable of that number (see `Plan.locals`)."""

    space: str
    number: int
    offset: Size = 0


@dataclass(frozen=True)
class Launch:
    """Run kernel `kernel` on these buffers, scalar inputs (input numbers) and sizes (values of s0,
    s1, ...). `where` are the user's lines that it computes."""

    kernel: int
    buffers: tuple[Place, ...]
    scalars: tuple[int, ...]
    sizes: tuple[Size, ...]
    where: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Matrix:
    """A batch of matrices in memory: offset and strides in elements (batch axes, then row, then
    column)."""

    place: Place
    offset: Size
    batch: tuple[Size, ...]
    row: Size
    column: Size

    def __str__(self) -> str:
        strides = ", ".join(text(s) for s in (*self.batch, self.row, self.column))
        return f"{_place(self.place)}[{text(self.offset)}; {strides}]"


@dataclass(frozen=True)
class Contract:
    """c = a @ b over batches: a is m x k, b is k x n, both of dtype `factors`, c is m x n. In c's
    rows `spare` further elements may be written, which nobody reads."""

    dtype: DType
    factors: DType
    batch: Shape
    m: Size
    n: Size
    k: Size
    a: Matrix
    b: Matrix
    c: Matrix
    spare: Size = 0


@dataclass(frozen=True)
class Check:
    """Stop with `number` unless the bool at `place` is true. `ahead` are launches behind it that a
    GPU may start before that is known."""

    number: int
    place: Place
    message: str
    ahead: tuple[Launch, ...] = ()


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


@dataclass(frozen=True)
class Bind:
    """From here on the size variable is the int64 at `place`."""

    var: Var
    place: Place


@dataclass(frozen=True)
class Loop:
    """The body, `trips` times, with `index` = 0, 1, ...; no further trip once the bool at one of
    the `stops` is true. Where threads may share out the trips, `share` is the number of the memory,
    one of SHARES, that a thread has for those of its own. `is_apart`: no trip sees what another one
    writes, and loops in it are known to end by data."""

    index: Var
    trips: Size
    body: tuple[Step, ...]
    stops: tuple[Place, ...] = ()
    share: Var | None = None
    is_apart: bool = False


@dataclass(frozen=True)
class While:
    """The body as long as the test's steps leave a true bool at `condition`, and none at the
    `stops`."""

    test: tuple[Step, ...]
    condition: Place
    body: tuple[Step, ...]
    stops: tuple[Place, ...] = ()


@dataclass(frozen=True)
class If:
    """`then` where the bool at `condition` is true, else `other`."""

    condition: Place
    then: tuple[Step, ...]
    other: tuple[Step, ...]


@dataclass(frozen=True)
class Pace:
    """How a launch goes along in a sweep: `rows` rows of `each` items, of which the first is row
    `first` of the arrays. It is `lag` rows behind the first launch; a thread that has rows of its
    own leaves out the first `below` and, as they need so many rows beyond, the last `lag` ones."""

    rows: Size
    each: Size
    first: int
    lag: int
    below: int


@dataclass(frozen=True)
class Sweep:
    """The launches, some rows of each in turn, `trips` times with `index` = 0, 1, ...; from trip to
    trip they are `lag` and `below` more rows apart. `bytes` are those of a row of all arrays;
    `is_round`: the last row's neighbour is the first one."""

    launches: tuple[Launch, ...]
    paces: tuple[Pace, ...]
    lag: int
    below: int
    bytes: Size
    is_round: bool = False
    index: Var | None = None
    trips: Size = 1


@dataclass(frozen=True)
class VectorProduct:
    """A matrix with contiguous rows times a vector, or a vector times the matrix: `across` its
    rows."""

    matrix: Strided
    vector: Strided
    result: Strided
    across: bool

    def __str__(self) -> str:
        one, other = (self.matrix, self.vector)[:: -1 if self.across else 1]
        return f"{self.result} = {one} @ {other}"


@dataclass(frozen=True)
class RowPass:
    """Some rows of each member in turn; a product across the rows is there when all are done.
    `apart` are the same steps one by one, for few rows."""

    members: tuple[Launch | VectorProduct, ...]
    rows: Size
    apart: tuple[Launch | Contract, ...]


Step = Launch | Contract | Call | Check | Bind | Loop | While | If | Sweep | RowPass


@dataclass(frozen=True)
class Save:
    """The contents of an input, kept at `place` until no check can fail any more."""

    input: int
    place: Place


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

    def __str__(self) -> str:
        shape = ", ".join(text(s) for s in self.shape)
        if self.kind == "fresh":
            return f"{self.dtype} [{shape}] {'C' if self.perm is None else self.perm}"
        if self.kind == "input":
            return f"input {self.input} itself"
        strides = ", ".join(text(s) for s in self.strides)
        return f"{self.dtype} [{shape}] in input {self.input}[{text(self.offset)}; {strides}]"


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
    # the types of the variables that hold single elements
    locals: tuple[DType, ...] = ()
    saves: tuple[Save, ...] = ()

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
        lines += [f"  save input {s.input} at {_place(s.place)}" for s in self.saves]
        lines += [f"  {line}" for s in self.steps for line in _lines(s)]
        return "\n".join(lines)


def bodies(step: Step) -> tuple[tuple[Step, ...], ...]:
    """The lists of steps inside a loop or branch, or behind a check."""
    if isinstance(step, Check):
        return (step.ahead,) if step.ahead else ()
    if isinstance(step, Loop):
        return (step.body,)
    if isinstance(step, Sweep):
        return (step.launches,)
    if isinstance(step, RowPass):
        return (step.apart,)
    if isinstance(step, While):
        return (step.test, step.body)
    return (step.then, step.other) if isinstance(step, If) else ()


def every_step(steps: tuple[Step, ...]) -> Iterator[Step]:
    """All steps, those inside loops and branches behind them."""
    for step in steps:
        yield step
        for body in bodies(step):
            yield from every_step(body)


def _lines(step: Step) -> list[str]:
    """A step as text; the steps inside it are indented."""
    lines = [_show(step)]
    for k, body in enumerate(bodies(step)):
        lines += ["else" if isinstance(step, If) else "do"] if k else []
        lines += [f"  {line}" for s in body for line in _lines(s)]
    return lines


def _show(step: Step) -> str:
    if isinstance(step, Bind):
        return f"{step.var.name} = {_place(step.place)}"
    if isinstance(step, If):
        return f"if {_place(step.condition)}"
    if isinstance(step, Loop | While):
        stops = "".join(f" until {_place(p)}" for p in step.stops)
        apart = isinstance(step, Loop) and step.share is not None
        stops += " apart" if apart else ""
        if isinstance(step, While):
            return f"while {_place(step.condition)}{stops}"
        return f"for {step.index.name} < {text(step.trips)}{stops}"
    if isinstance(step, Sweep):
        lags = ", ".join(f"{p.lag} {p.below}" for p in step.paces)
        around = ", round" if step.is_round else ""
        return f"sweep {text(step.trips)} trips, {lags}, each {step.lag} {step.below}{around}"
    if isinstance(step, RowPass):
        products = "; ".join(str(m) for m in step.members if isinstance(m, VectorProduct))
        return f"pass {text(step.rows)} rows, {products}"
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


def inside(step: Step, changed: Callable[[tuple[Step, ...]], tuple[Step, ...]]) -> Step:
    """The step, each tuple of steps that a loop or branch holds put through `changed`."""
    if isinstance(step, If):
        return replace(step, then=changed(step.then), other=changed(step.other))
    if isinstance(step, While):
        return replace(step, test=changed(step.test), body=changed(step.body))
    return replace(step, body=changed(step.body)) if isinstance(step, Loop) else step


def sizes_in(value: object) -> Iterator[Expr]:
    """Every size expression in steps."""
    return (part for part in _parts(value) if isinstance(part, Expr))


def places_in(value: object) -> Iterator[Place]:
    """Every place in steps."""
    return (part for part in _parts(value) if isinstance(part, Place))


def _parts(value: object) -> Iterator[object]:
    yield value
    if isinstance(value, tuple):
        for item in value:
            yield from _parts(item)
    elif is_dataclass(value) and not isinstance(value, Expr | Op):
        for f in fields(value):
            yield from _parts(getattr(value, f.name))
