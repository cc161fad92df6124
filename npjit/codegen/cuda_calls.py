"""Steps on whole arrays that have a CUDA kernel of their own: scans along rows and additions at
indices.

In: a `Call` step with actual shapes, strides and addresses. Out: a `Routine`, the function to start
and its parameters; None for what the device's libraries do.

    cumulative sum of a (32768, 4096) float32 array along axis 1
        -> nj_scan_rows<f32, nj_running_sum<f32>, 4, 4> with 32768 blocks, given from, to, 4096
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from npjit.codegen.cpp_types import ctype
from npjit.codegen.cuda_launch import Start, up
from npjit.core.op import Gather, Kind, Op
from npjit.schedule.plan import Call as CallStep
from npjit.schedule.plan import Plan, every_step

_BLOCK = 256
_BLOCKS = 2**30
# additions that the device does as one access
_ATOMIC = ("f4", "f8", "i4", "u4", "u8")
_STYLES = ("sum", "product", "max", "min")


@dataclass(frozen=True)
class Operand:
    """An array of a call: its type, shape, strides in elements, and how its address is aligned (in
    bytes, at most 16)."""

    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    aligned: int

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements follow each other in C order."""
        expected = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and stride != expected:
                return False
            expected *= n
        return True


@dataclass(frozen=True)
class Routine:
    """What to start; `arrays` are the numbers of the operands whose addresses it gets (results
    behind the arguments), `sizes` what comes after them. `copies`: argument 0 is copied to the
    result first, if they are apart."""

    start: Start
    arrays: tuple[int, ...]
    sizes: tuple[int, ...]
    copies: bool = False


def routine_for(op: Op, params: Any, operands: Sequence[Operand]) -> Routine | None:
    """The kernel for a call's arguments and results, if there is one."""
    if 0 in operands[-1].shape or not all(o.is_contiguous for o in operands):
        return None
    if op.kind is Kind.SCAN:
        return _scan(op, params, operands)
    if op.kind is Kind.SCATTER:
        return _scatter(op, params, operands)
    return None


def _scan(op: Op, axis: int, operands: Sequence[Operand]) -> Routine | None:
    assert op.reduction is not None
    style = op.reduction.style
    source, target = operands
    if style not in _STYLES or target.dtype.kind not in "iuf" or target.dtype.itemsize < 4:
        return None
    if source.dtype != target.dtype or axis % len(source.shape) != len(source.shape) - 1:
        return None
    length = target.shape[-1]
    rows = 1
    for n in target.shape[:-1]:
        rows *= n
    size = target.dtype.itemsize
    width = 16 // size if length % (16 // size) == 0 and _aligned(operands) == 16 else 1
    kind = ctype(target.dtype)
    bits = (width * size).bit_length() - 1
    function = f"nj_scan_rows<{kind}, nj_running_{style}<{kind}>, {width}, {bits}>"
    return Routine(Start(function, (rows, 1), _BLOCK), (0, 1), (length,))


def _scatter(op: Op, params: Gather, operands: Sequence[Operand]) -> Routine | None:
    assert op.reduction is not None
    if op.reduction.style != "sum" or params.dims != (0,) or params.place != 0:
        return None
    base, values, index, target = operands
    dtype = target.dtype
    if dtype.str[1:] not in _ATOMIC or values.dtype != dtype or base.dtype != dtype:
        return None
    width = 1
    for n in target.shape[1:]:
        width *= n
    count = 1
    for n in index.shape:
        count *= n
    if count == 0:
        return None
    blocks = min(up(count * width, _BLOCK), _BLOCKS)
    start = Start(f"nj_scatter_add<{ctype(dtype)}>", (blocks, 1), _BLOCK)
    return Routine(start, (3, 1, 2), (count, width, target.shape[0]), copies=True)


def _aligned(operands: Sequence[Operand]) -> int:
    return min(o.aligned for o in operands)


def routines_text(plan: Plan) -> str:
    """Mentions what the plan's calls may need, so that the module's prelude has it."""
    found: set[str] = set()
    for step in every_step(plan.steps):
        if isinstance(step, CallStep) and step.op.reduction is not None:
            if step.op.kind is Kind.SCAN:
                found |= {"nj_scan_rows", f"nj_running_{step.op.reduction.style}"}
            elif step.op.kind is Kind.SCATTER:
                found.add("nj_scatter_add")
    return "".join(f"// {name}\n" for name in sorted(found))
