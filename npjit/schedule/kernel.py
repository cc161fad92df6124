"""The loop-level IR: one kernel is a nest of loops over a short list of instructions.

A `Kernel` has *outer* axes, which are independent (threads may share them out), and *phases* that
run one after the other for each outer index. A phase loops over some *inner* axes (none: its body
runs once per outer index). Instructions are numbered through the whole kernel; one may use the
value of

    an earlier instruction of its own phase,
    an instruction of an earlier phase without axes (a value per outer index),
    a `Reduce` of an earlier phase (its result per outer index).

Softmax over rows is outer (i), phases max over j, sum of exponentials over j, store over j. With no
outer axes the phases are whole-array steps, and a printer shares out the inner axes, combining
partial results.

Sizes in a kernel are expressions over its own size parameters s0, s1, ...; a launch says what they
are. Printing a kernel gives text that does not depend on where it stands, so equal kernels have
equal text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core.op import Literal, Op
from npjit.core.size import Shape, Size, text

DType = np.dtype[Any]


@dataclass(frozen=True)
class Buffer:
    """Memory that a kernel touches. role: "in", "out", "inout", "row" (scratch of one thread, per
    outer index), or "answer" (a bool; where it is false the kernel does nothing)."""

    dtype: DType
    role: str
    # elements, for role "row" only
    length: Size = 0


@dataclass(frozen=True)
class Access:
    """Element number offset + sum(stride * axis) + sum(stride * value) of a buffer.

    `strides` has one entry per kernel axis that matters, as (axis, stride); `gathers` pairs an
    int64 value (already wrapped and checked to be in range) with its stride.
    """

    buffer: int
    strides: tuple[tuple[int, Size], ...]
    offset: Size = 0
    gathers: tuple[tuple[int, Size], ...] = ()


@dataclass(frozen=True)
class Bound:
    """lo <= axis index < hi."""

    axis: int
    lo: Size
    hi: Size


@dataclass(frozen=True)
class Const:
    """A literal."""

    value: Literal
    dtype: DType


@dataclass(frozen=True)
class Scalar:
    """A scalar parameter of the launch, passed as int64, uint64, double or two doubles and cast to
    `dtype`."""

    number: int
    dtype: DType


@dataclass(frozen=True)
class Coordinate:
    """start + step * axis index, as an integer of `dtype` (int64)."""

    axis: int
    start: Size
    step: Size
    dtype: DType


@dataclass(frozen=True)
class Extent:
    """A size as a value."""

    size: Size
    dtype: DType


@dataclass(frozen=True)
class Load:
    """An element of a buffer; outside `within` (all must hold) the value is zero and nothing is
    read."""

    access: Access
    dtype: DType
    within: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class Inside:
    """`arg` where all bounds hold, else zero (a pad of a computed value)."""

    arg: int
    within: tuple[Bound, ...]
    dtype: DType


@dataclass(frozen=True)
class Apply:
    """An elementwise row of the table on values."""

    op: Op
    args: tuple[int, ...]
    params: Any
    dtype: DType


@dataclass(frozen=True)
class Reduce:
    """`arg` combined over the phase's axes; read by later phases. argmin/argmax give the row-major
    position (int64).

    `dtype` is the result's and the accumulator's.
    """

    op: Op
    arg: int
    dtype: DType


@dataclass(frozen=True)
class Store:
    """Write `value` to an element of a buffer; has no value of its own."""

    access: Access
    value: int


Instr = Const | Scalar | Coordinate | Extent | Load | Inside | Apply | Reduce | Store


@dataclass(frozen=True)
class Axis:
    """One loop; its extent is a literal or an expression over the kernel's sizes."""

    extent: Size


@dataclass(frozen=True)
class Phase:
    """A loop nest over inner `axes` (numbers of the kernel's axes, outermost first); `body` pairs
    numbers and instructions."""

    axes: tuple[int, ...]
    body: tuple[tuple[int, Instr], ...]


@dataclass(frozen=True)
class Kernel:
    """See the module's docstring. `outer` numbers the outer axes, outermost first; `sizes` counts
    s0, s1, ... `in_order`: the outer indices go up, in one thread, because elements are read that
    the kernel overwrites later."""

    axes: tuple[Axis, ...]
    outer: tuple[int, ...]
    phases: tuple[Phase, ...]
    buffers: tuple[Buffer, ...]
    scalars: tuple[DType, ...]
    sizes: int
    in_order: bool = False

    def instructions(self) -> Iterator[tuple[int, Instr]]:
        """All instructions in order, with their numbers."""
        for phase in self.phases:
            yield from phase.body

    def __str__(self) -> str:
        order = " in order" if self.in_order else ""
        lines = [f"kernel over ({', '.join(self._axis(a) for a in self.outer)}){order}"]
        for i, b in enumerate(self.buffers):
            length = f" [{text(b.length)}]" if b.role == "row" else ""
            lines.append(f"  b{i}: {b.role} {b.dtype}{length}")
        for i, dtype in enumerate(self.scalars):
            lines.append(f"  p{i}: {dtype}")
        for phase in self.phases:
            lines.append(f"  for ({', '.join(self._axis(a) for a in phase.axes)})")
            lines += [f"    {_show(n, i)}" for n, i in phase.body]
        return "\n".join(lines)

    def _axis(self, number: int) -> str:
        return f"i{number} < {text(self.axes[number].extent)}"


def _show(number: int, i: Instr) -> str:
    if isinstance(i, Store):
        return f"{show_access(i.access)} = v{i.value}"
    head = f"v{number}: {i.dtype} = "
    if isinstance(i, Const):
        return f"{head}{i.value.value!r}"
    if isinstance(i, Scalar):
        return f"{head}p{i.number}"
    if isinstance(i, Coordinate):
        return f"{head}{text(i.start)} + {text(i.step)}*i{i.axis}"
    if isinstance(i, Extent):
        return f"{head}{text(i.size)}"
    if isinstance(i, Load):
        return f"{head}{show_access(i.access)}{_show_bounds(i.within)}"
    if isinstance(i, Inside):
        return f"{head}v{i.arg}{_show_bounds(i.within)}"
    if isinstance(i, Reduce):
        return f"{head}{i.op.name} v{i.arg}"
    params = "" if i.params is None else f" {i.params}"
    return f"{head}{i.op.name} {' '.join(f'v{a}' for a in i.args)}{params}"


def show_access(a: Access) -> str:
    """An access as text: b0[4*i0 + i1 + 3]."""
    parts = [f"{_factor(s)}i{axis}" for axis, s in a.strides if s != 0]
    parts += [f"{_factor(s)}v{value}" for value, s in a.gathers]
    if a.offset != 0 or not parts:
        parts.append(text(a.offset))
    return f"b{a.buffer}[{' + '.join(parts)}]"


def _factor(stride: Size) -> str:
    if stride == 1:
        return ""
    shown = text(stride)
    return f"({shown})*" if " " in shown or shown.startswith("-") else f"{shown}*"


def _show_bounds(within: tuple[Bound, ...]) -> str:
    if not within:
        return ""
    shown = (f"{text(b.lo)} <= i{b.axis} < {text(b.hi)}" for b in within)
    return f" if {' and '.join(shown)}"


def extents(kernel: Kernel, axes: tuple[int, ...]) -> Shape:
    """The extents of these axes."""
    return tuple(kernel.axes[a].extent for a in axes)
