"""Rows that run together, in the lanes of vectors: which nests, and their kernel.

In: a `Nest`, and how far each of its rows is behind the one above it. Out: a kernel over eight rows
and the times at which they are under way, whose operations are operators of C or what
prelude/wave.h has; `WavePrinter` prints it. At time t row r is at element t + (7 - r) * lag:

    a[i, j] = a[i, j - 1] + b[j]        b0[i0, i1] at (n - lag) * i0 + i1
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from npjit.codegen.cpp_nest import Distance, Nest
from npjit.codegen.cpp_phase import row_text
from npjit.codegen.cpp_question import Made, made
from npjit.codegen.cpp_straight import Unfit
from npjit.core.size import Size, Var, as_size, linear, substitute
from npjit.schedule.kernel import (
    Access,
    Apply,
    Axis,
    Const,
    DType,
    Extent,
    Instr,
    Load,
    Scalar,
    Store,
)

LANES = 8
# what means the same for vectors, and what prelude/wave.h has for them
_OPERATORS = re.compile(r"(\{\d\}|[-+*/&|^~<>, ()]|[=!<>]=|nj_maximum|nj_minimum|nj_absolute)+")
_TRUTH = re.compile(r"nj_cast<b1>\((\{\d\})\)")
_ROW, _TIME = Var("lane", 0), Var("time", 0)


@dataclass(frozen=True)
class Wave:
    """How far each row is behind the one above it, and where what loads read is stored."""

    lag: int
    distances: Mapping[int, Distance]


def wave_kernel(nest: Nest, lag: int, top: Size, times: Size) -> Made:
    """The kernel for the group whose first row is `top`, in which row r is at element
    time + (7 - r) * lag. Its axes are rows, times and the elements of a row; `Unfit` where vectors
    cannot do what it does."""
    row, time = as_size(_ROW), as_size(_TIME)
    at = {nest.row: top + row, nest.column: time + (LANES - 1 - row) * lag}
    body = [(n, _moved(i, at)) for n, i in nest.straight.body]
    _ask_values(body)
    far = [rows < -1 or (rows == 0 and c < -LANES) for rows, c in nest.distances.values()]
    if any(far) or lag > LANES:
        raise Unfit  # such elements are in no vector
    axes = [Axis(LANES), Axis(times), Axis(nest.columns)]
    kernel, launch = made(nest.straight.terms, axes, body)
    return replace(kernel, outer=(0, 1)), launch


def _moved(i: Instr, at: Mapping[Var, Size]) -> Instr:
    """An instruction by the axes lane and time."""
    if isinstance(i, Load | Store):
        time, rest = linear(substitute(i.access.offset, at), _TIME)
        row, first = linear(rest, _ROW)
        if time is None or row is None or (isinstance(i, Store) and time not in (1, -1)):
            raise Unfit
        strides = tuple((axis, s) for axis, s in ((0, row), (1, time)) if s != 0)
        access = Access(i.access.buffer, strides, first)
        return Store(access, i.value) if isinstance(i, Store) else Load(access, i.dtype)
    if isinstance(i, Extent) and substitute(i.size, at) != i.size:
        raise Unfit
    if not isinstance(i, Apply | Const | Extent | Scalar):
        raise Unfit
    return i


def _ask_values(body: list[tuple[int, Instr]]) -> None:
    """Whether vectors have all types and operations."""
    types = {n: i.dtype for n, i in body if not isinstance(i, Store)}
    widths = mask_widths(body)
    for n, i in body:
        if isinstance(i, Store):
            continue
        is_number = i.dtype.kind in "iuf" and i.dtype.itemsize in (4, 8)
        if not is_number and (i.dtype.kind != "b" or widths.get(n) is None):
            raise Unfit
        if isinstance(i, Apply) and not i.op.choice and not i.op.conversion:
            operator_text(i, [types[a] for a in i.args])
        if isinstance(i, Apply) and i.op.conversion and not _converts(types[i.args[0]], i.dtype):
            raise Unfit


def _converts(a: DType, b: DType) -> bool:
    """Whether vectors convert as NumPy does."""
    return b.kind in "iuf" and (a.kind in "iu" or (a.kind, b.kind) == ("f", "f"))


def mask_widths(body: Iterable[tuple[int, Instr]]) -> dict[int, int | None]:
    """The bytes of a lane of each bool; None where no vector is it."""
    found: dict[int, int | None] = {}
    types: dict[int, DType] = {}
    for n, i in body:
        if isinstance(i, Store):
            continue
        types[n] = i.dtype
        if i.dtype.kind == "b" and isinstance(i, Apply):
            args = i.args[1:] if i.op.choice else i.args
            sizes = {found.get(a) if types[a].kind == "b" else types[a].itemsize for a in args}
            bools = any(types[a].kind == "b" for a in args)
            is_plain = len(sizes) == 1 and not (bools and i.op.relation)
            found[n] = sizes.pop() if is_plain else None
    return found


def operator_text(i: Apply, types: list[DType]) -> str:
    """The text of an operation, when vectors have it; else `Unfit`."""
    text = row_text(i.op, i, types)
    if isinstance(text, str) and all(d.kind == "b" for d in types):
        text = _TRUTH.sub(r"\1", text).replace("!{", "~{")
    if not isinstance(text, str) or not _OPERATORS.fullmatch(text):
        raise Unfit
    return text
