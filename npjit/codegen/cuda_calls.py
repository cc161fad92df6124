"""Steps on whole arrays that have CUDA kernels of their own: scans along rows, and what is added or
stored at indices.

In: a `Call` step with actual shapes, strides and addresses. Out: a `Routine`, the functions to
start and their parameters; None for what the device's libraries do.

    cumulative sum of a (32768, 4096) float32 array along axis 1
        -> nj_scan_rows<f32, nj_running_sum<f32>, 4, 4, 4, false>: 32768 blocks, given from, to,
           4096
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from npjit.codegen.cpp_types import ctype
from npjit.codegen.cuda_launch import Start, power, up
from npjit.core.op import Gather, Kind, Op
from npjit.core.weighing import Weighing
from npjit.schedule.plan import Call as CallStep
from npjit.schedule.plan import Contract, Plan, every_step

_BLOCK = 256
_BLOCKS = 2**30
# additions that the device does as one access
_ATOMIC = ("f4", "f8", "i4", "u4", "i8", "u8")
# packs of a thread in one stretch of a row that is scanned
_ITEMS = 4
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
        return self.size < 2 or self.apart == 1

    @property
    def is_one(self) -> bool:
        """Whether all elements are the same one."""
        return not any(self.strides)

    @property
    def apart(self) -> int | None:
        """How far apart elements are that follow each other in C order, if that is always the
        same."""
        return _spaced(self.shape, self.strides)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)


def _spaced(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """The one stride of axes that follow each other."""
    found, size = None, 1
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if found is None:
            found = stride
        elif stride != found * size:
            return None
        size *= n
    return found or 0


@dataclass(frozen=True)
class Address:
    """Where an operand lies (results stand behind the arguments), or a region of scratch memory."""

    number: int
    is_scratch: bool = False


@dataclass(frozen=True)
class Question:
    """What may be asked of every index while they are read: the kernel that does, by its name, and
    its sizes (see `cuda_asked`)."""

    kernel: str
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """One function to start, and its parameters."""

    start: Start
    parameters: tuple[Address | int, ...]


@dataclass(frozen=True)
class Routine:
    """What to start, one after the other, and the bytes of the scratch memory that the parts share.
    `copies`: argument 0 is copied to the result first, if they are apart. `answers`: so many parts
    have found the answer to a question, a flag in the last region."""

    parts: tuple[Part, ...]
    regions: tuple[int, ...] = ()
    copies: bool = False
    answers: int = 0


def routine_for(
    op: Op, params: Any, operands: Sequence[Operand], question: Question | None = None
) -> Routine | None:
    """The kernels for a call's arguments and results, if there are any. They may ask the
    question."""
    if 0 in operands[-1].shape:
        return None
    if op.kind is Kind.SCAN:
        return _scan(op, params, operands)
    if op.kind is Kind.SCATTER:
        return _scatter(op, params, operands, question)
    return None


# ---------------------------------------------------------------- scans


def _scan(op: Op, axis: int, operands: Sequence[Operand]) -> Routine | None:
    assert op.reduction is not None
    style = op.reduction.style
    source, target = operands
    if style not in _STYLES or target.dtype.kind not in "iuf" or target.dtype.itemsize < 4:
        return None
    if source.dtype != target.dtype or axis % len(source.shape) != len(source.shape) - 1:
        return None
    if not (source.is_contiguous and target.is_contiguous):
        return None
    length = target.shape[-1]
    size = target.dtype.itemsize
    width = 16 // size if min(o.aligned for o in operands) == 16 else 1
    skewed = length % width != 0
    items = min(_ITEMS, up(length + (width - 1) * skewed, width * _BLOCK))
    kind = ctype(target.dtype)
    bits = (width * size).bit_length() - 1
    constants = f"{width}, {bits}, {items}, {'true' if skewed else 'false'}"
    function = f"nj_scan_rows<{kind}, nj_running_{style}<{kind}>, {constants}>"
    start = Start(function, (target.size // length, 1), _BLOCK)
    return Routine((Part(start, (Address(0), Address(1), length)),))


# ---------------------------------------------------------------- at indices

# bytes of shared memory for the rows of a block, and how often these have to be added to for that
# to be worth it
_SHARED = 2**15
_OFTEN = 4
# blocks that a large device runs at once, and their threads; threads of a block that sorts, or adds
# what is sorted
_BUSY = 264
_THREADS = 1024
_SORTING = 512
_SCATTERS = {
    "nj_scatter_each",
    "nj_scatter_none",
    "nj_scatter_claim",
    "nj_scatter_begin",
    "nj_scatter_private",
    "nj_scatter_sort",
    "nj_scatter_buckets",
}
# how many index arrays there may be
_INDICES = 3
# how many values are worth sorting, and how many of a tile must be in a bucket
_MANY = 2**22
_TOGETHER = 24


_Given = tuple[Address | int, ...]
# how a value is put at its place, of type {0}
_PUTS = {
    "last": "nj_put_last",
    "sum": "nj_put_sum",
    **{s: f"nj_put<nj_running_{s}<{{0}}>>" for s in ("product", "max", "min")},
}


def _scatter(
    op: Op, params: Gather, operands: Sequence[Operand], question: Question | None
) -> Routine | None:
    style = op.reduction.style if op.reduction else ""
    base, values, *indices, target = operands
    dtype, index = target.dtype, indices[0]
    if values.dtype != dtype or base.dtype != dtype or not target.is_contiguous or not index.size:
        return None
    if style != "last" and (style not in _STYLES or dtype.str[1:] not in _ATOMIC):
        return None
    first = params.dims[0]
    if params.place != first or params.dims != tuple(range(first, first + len(indices))):
        return None
    asked = [*_values_apart(values, first, len(index.shape)), *(i.apart for i in indices)]
    apart = [a for a in asked if a is not None]
    if len(indices) > _INDICES or len(apart) < len(asked):
        return None
    if style == "sum" and params.dims == (0,) and index.apart == 1:
        rows = target.shape[0]
        given = (Address(1), Address(2), apart[1], index.size, rows)
        narrow = _narrow(dtype, index.size, rows, given) if target.size == rows else None
        if narrow is not None:
            return _asking(narrow, question)
    return _each(style, params, apart, indices, target)


def _values_apart(values: Operand, first: int, rank: int) -> list[int | None]:
    """How far apart values are along the axes in front of the indices', along these, and behind."""
    groups = (slice(first), slice(first, first + rank), slice(first + rank, None))
    return [_spaced(values.shape[g], values.strides[g]) for g in groups]


def _narrow(dtype: Any, count: int, rows: int, given: _Given) -> Routine | None:
    """Additions to rows of one element that are many for each."""
    in_block = _SHARED // dtype.itemsize
    blocks = min(_BUSY, up(count, _THREADS * _OFTEN))
    if rows <= in_block and rows * blocks * _OFTEN <= count:
        return _private(dtype, rows, blocks, in_block, given)
    buckets = up(rows, in_block)
    if buckets * _TOGETHER <= _tile(dtype) and count >= max(_MANY, _OFTEN * rows):
        return _sorted(dtype, count, rows, buckets, given)
    return None


def _each(
    style: str, params: Gather, apart: Sequence[int], indices: Sequence[Operand], target: Operand
) -> Routine:
    """One thread for each value; where values are stored, the last one for each place. `apart`: how
    far apart values are (see `_values_apart`), and the elements of each index array."""
    first, count, shape = params.dims[0], indices[0].size, target.shape
    outer, width = math.prod(shape[:first]), math.prod(shape[first + len(indices) :])
    given: _Given = ()
    for number, step in enumerate(apart[3:]):
        given += (Address(2 + number), step, shape[first + number])
    given += (0, 0, 1) * (_INDICES - len(indices))
    result = Address(2 + len(indices))
    blocks = min(up(outer * count * width, _BLOCK), _BLOCKS)
    kind = f"nj_word_of<{target.dtype.itemsize}>::type" if style == "last" else ctype(target.dtype)
    start = Start(f"nj_scatter_each<{kind}, {_PUTS[style].format(kind)}>", (blocks, 1), _BLOCK)
    head: _Given = (result, Address(1), *apart[:3], count, outer, width)
    if style != "last":
        return Routine((Part(start, (*head, 0, *given)),), copies=True)
    latest, places = Address(0, is_scratch=True), target.size // (outer * width)
    none = Start("nj_scatter_none", (min(up(places, _BLOCK), _BLOCKS), 1), _BLOCK)
    claim = Start("nj_scatter_claim", (min(up(count, _BLOCK), _BLOCKS), 1), _BLOCK)
    parts = (
        Part(none, (latest, places)),
        Part(claim, (latest, count, *given)),
        Part(start, (*head, latest, *given)),
    )
    return Routine(parts, (8 * places,), copies=True)


def _private(dtype: Any, rows: int, blocks: int, in_block: int, given: _Given) -> Routine:
    """Blocks that add in shared memory, with as many copies of a row as there is room for."""
    copies = min(32, power(in_block // rows + 1) // 2)
    start = Start(f"nj_scatter_private<{ctype(dtype)}, {in_block}>", (blocks, 1), _THREADS)
    return Routine((Part(start, (Address(3), *given, copies)),), copies=True)


def _tile(dtype: Any) -> int:
    """Values that a block sorts in shared memory, whose rows take two bytes each there."""
    return _SORTING * (14 if dtype.itemsize == 4 else 8)


def _sorted(dtype: Any, count: int, rows: int, buckets: int, given: _Given) -> Routine:
    """Values that are sorted before they are added."""
    bits = (_SHARED // dtype.itemsize).bit_length() - 1
    tile, room = _tile(dtype), power(buckets)
    tiles = up(count, tile)
    regions = (tiles * tile * dtype.itemsize, tiles * tile * 2, tiles * (room + 1) * 2)
    scratch = tuple(Address(k, is_scratch=True) for k in range(len(regions)))
    kind = ctype(dtype)
    sort = Start(
        f"nj_scatter_sort<{kind}, {tile // _SORTING}, {bits}, {room}>", (tiles, 1), _SORTING
    )
    add = Start(f"nj_scatter_buckets<{kind}, {tile}, {bits}, {room}>", (2 * _BUSY, 1), _SORTING)
    parts = Part(sort, (*given, *scratch)), Part(add, (Address(3), rows, tiles, buckets, *scratch))
    return Routine(parts, regions, copies=True)


def _asking(routine: Routine, question: Question | None) -> Routine:
    """The same, the first part asking the question."""
    if question is None:
        return routine
    reads, *others = routine.parts
    flag = Address(len(routine.regions), is_scratch=True)
    name = reads.start.function.replace("nj_scatter", question.kernel)
    asks = Part(replace(reads.start, function=name), (*reads.parameters, flag, *question.sizes))
    begin = Part(Start("nj_scatter_begin", (1, 1), 1), (flag,))
    regions = (*routine.regions, 4)
    return Routine((begin, asks, *others), regions, routine.copies, answers=2)


def routines_text(plan: Plan) -> str:
    """Mentions what the plan's calls and products may need, so that the module's prelude has it."""
    found: set[str] = set()
    for step in every_step(plan.steps):
        if isinstance(step, CallStep) and isinstance(step.params, Weighing):
            back = {f"nj_attention_gradient_{part}" for part in ("rows", "keys")}
            found |= back if step.params.backward else {"nj_attention"}
            found |= {"nj_attention_kinds"} if step.params.mask else set()
            found |= {ctype(a.dtype) for a in step.arguments}
        elif isinstance(step, CallStep) and step.op.reduction is not None:
            if step.op.kind is Kind.SCAN:
                found |= {"nj_scan_rows", f"nj_running_{step.op.reduction.style}"}
            elif step.op.kind is Kind.SCATTER:
                found |= {*_SCATTERS, _PUTS[step.op.reduction.style]}
        elif isinstance(step, Contract) and step.factors.itemsize == 2:
            found.add("nj_copy_rows")
    return "".join(f"// {name}\n" for name in sorted(found))
