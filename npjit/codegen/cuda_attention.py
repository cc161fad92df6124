"""The launches of the attention kernels (prelude/cuda_attention.h and cuda_attention_gradient.h).

In: a `Weighing` and the operands of a call: q, k, v, for gradients g, its factor and mask, the
results that are wanted. Out: a `Routine`; None for more batch axes than two that do not lie like
one, and for rows that are too long or not dense:

    q, k, v of (8, 16, 2048, 64) bfloat16, no mask, weights rounded, float32 out
        -> nj_attention<bf16, nj_unmasked, f32, 64, 64, 64, 1, 8> with 4096 blocks
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from npjit.codegen.cpp_types import ctype, stored
from npjit.codegen.cuda_calls import Address, Operand, Part, Routine
from npjit.codegen.cuda_launch import Start, up
from npjit.core.dtypes import accumulator_of
from npjit.core.weighing import Weighing

_THREADS = 128
# rows of a block
_ROWS = 64
# the longest rows for which a block has registers, forward and back
_LONGEST, _LONGEST_BACK = 256, 128
# numbers of a row of k and one of v, times the rows of a tile, forward and back (where functions
# declare their shared memory); a block has two tiles of each
_TOGETHER, _TOGETHER_BACK = 16384, 12288
# tiles whose masks a block looks at
_LOOKED_AT = 4
# pieces of 16 bits that make up a float32
_PIECES = 3
_NOWHERE = 0

_Parameter = Address | int


def attention_for(
    params: Weighing, operands: Sequence[Operand], wanted: Sequence[int]
) -> Routine | None:
    """See the module's docstring; `wanted` are the numbers of the results among the operands."""
    call = _Call(params, operands)
    longest = _LONGEST_BACK if params.backward else _LONGEST
    if max(call.depth, call.width) > longest or any(0 in o.shape for o in operands):
        return None
    if accumulator_of(call.narrow[0].dtype) == call.narrow[0].dtype or not call.has_dense_rows:
        return None
    return _backward(call, wanted) if params.backward else _forward(call)


@dataclass(frozen=True)
class _Looks:
    """Where kinds of tiles are, their steps along batches, heads and tiles of rows, and what finds
    them."""

    kinds: Address | int
    steps: tuple[int, ...]
    parts: tuple[Part, ...] = ()
    regions: tuple[int, ...] = ()


class _Call:
    """The operands by name."""

    def __init__(self, params: Weighing, operands: Sequence[Operand]) -> None:
        self.params = params
        self.operands = operands
        inputs = 4 if params.backward else 3
        self.narrow = operands[:inputs]
        self.factor = inputs if params.has_factor else None
        self.mask = inputs + params.has_factor if params.mask else None
        self.arguments = inputs + params.has_factor + bool(params.mask)
        self.made = operands[self.arguments :]
        self.rows, self.depth = self.narrow[0].shape[-2:]
        self.keys, self.width = self.narrow[2].shape[-2:]

    @property
    def has_dense_rows(self) -> bool:
        """Whether the numbers of each row follow each other."""
        return all(o.strides[-1] == 1 or o.shape[-1] == 1 for o in (*self.narrow, *self.made))

    @property
    def kinds(self) -> list[str]:
        """The types of numbers and mask as template arguments."""
        if self.mask is None:
            mask = "nj_unmasked"
        elif self.params.mask == "where" and self.params.fill == -math.inf:
            mask = "nj_hidden"
        else:
            mask = stored(self.operands[self.mask].dtype)
        return [ctype(self.narrow[0].dtype), mask]

    def tiles(self, together: int) -> list[int]:
        """The lengths of rows of k and v as tiles have them, and how many rows a tile has."""
        depth, width = (64 * up(n, 64) for n in (self.depth, self.width))
        return [depth, width, min(64, 1 << (together // (depth + width)).bit_length() - 1)]

    def given(self) -> list[_Parameter]:
        """Where the arguments lie."""
        others = [_NOWHERE if n is None else Address(n) for n in (self.factor, self.mask)]
        return [*map(Address, range(len(self.narrow))), *others]

    def looks(self, tile: int, region: int, turned: bool = False) -> _Looks:
        """What finds out about a mask of bools, tiles having so many columns (rows if turned)."""
        mask = None if self.mask is None else self.operands[self.mask]
        if mask is None or mask.dtype.itemsize > 1:
            return _Looks(_NOWHERE, (0, 0, 0))
        extents = (self.batches // self.heads, self.heads), (self.rows, self.keys)
        (batches, heads), (rows, columns) = extents
        m0, m1, *steps = self.mask_steps
        if turned:
            rows, columns, steps = columns, rows, steps[::-1]
        # what is the same along an axis is looked at once
        batches, heads = batches if m0 else 1, heads if m1 else 1
        rows = rows if steps[0] else 1
        across, down = up(columns, tile), up(rows, _ROWS)
        apart = (heads * down * across * bool(m0), down * across * bool(m1))
        places = *apart, across * bool(steps[0])
        grid = down * heads * batches, up(across, _LOOKED_AT)
        start = Start(f"nj_attention_kinds<{tile}>", grid, _THREADS)
        assert self.mask is not None
        found = Address(region, is_scratch=True)
        words = heads, rows, columns, m0, m1, *steps, *places
        part = Part(start, (Address(self.mask), found, *words))
        return _Looks(found, places, (part,), (batches * heads * down * across,))

    def words(self, results: Sequence[Operand]) -> list[int] | None:
        """Sizes, and the steps of all arrays along batch, head and row (the mask's along columns
        too); None: there are more axes."""
        q = self.narrow[0]
        mask = None if self.mask is None else self.operands[self.mask]
        arrays = [*self.narrow, *results, *([] if mask is None else [mask])]
        found = _two_axes(q.shape[:-2], [a.strides[:-2] for a in arrays])
        if found is None:
            return None
        (batch, self.heads), steps = found
        self.batches = batch * self.heads
        words = [self.heads, self.rows, self.keys, self.depth, self.width]
        for array, step in zip([*self.narrow, *results], steps, strict=False):
            words += [*step, array.strides[-2]]
        self.mask_steps = [0] * 4 if mask is None else [*steps[-1], *mask.strides[-2:]]
        return [*words, *self.mask_steps]

    @property
    def numbers(self) -> list[int]:
        """The scale and what masked scores are."""
        return [_bits(self.params.scale), _bits(self.params.fill)]


def _forward(call: _Call) -> Routine | None:
    (out,) = call.made
    words = call.words([out])
    if words is None:
        return None
    kind, mask = call.kinds
    pieces = 1 if call.params.rounded else _PIECES
    by_pairs = out.aligned >= 2 * out.dtype.itemsize and not any(s % 2 for s in out.strides[:-1])
    width = _width(call.narrow) if by_pairs else 1
    depth, columns, tile = tiles = call.tiles(_TOGETHER)
    name = _instance("nj_attention", kind, mask, ctype(out.dtype), *tiles, pieces, width)
    shared = 2 * tile * (depth + columns) * call.narrow[0].dtype.itemsize
    start = Start(name, (up(call.rows, _ROWS) * call.batches, 1), _THREADS, shared)
    looks = call.looks(tile, 0)
    places = *call.given(), looks.kinds, Address(call.arguments)
    part = Part(start, (*places, *words, *looks.steps, *call.numbers))
    return Routine((*looks.parts, part), looks.regions)


def _backward(call: _Call, wanted: Sequence[int]) -> Routine | None:
    if not all(o.is_contiguous for o in call.made):
        return None
    words = call.words([])
    if words is None:
        return None
    *_, tile = tiles = call.tiles(_TOGETHER_BACK)
    instance: list[str | int] = [*call.kinds, *tiles, _width(call.narrow)]
    places = dict(zip(wanted, range(call.arguments, len(call.operands)), strict=True))
    of_q, of_k, of_v = (Address(places[n]) if n in places else _NOWHERE for n in range(3))
    kept = [Address(n, is_scratch=True) for n in range(3)]
    regions: tuple[int, ...] = (4 * call.batches * call.rows,) * len(kept)
    rows = call.looks(tile, len(regions))
    regions += rows.regions
    columns = call.looks(tile, len(regions), turned=True)
    regions += columns.regions

    def part(name: str, count: int, looks: _Looks, *made: _Parameter) -> Part:
        start = Start(name, (up(count, _ROWS) * call.batches, 1), _THREADS)
        given = *call.given(), looks.kinds, *made, *kept
        return Part(start, (*given, *words, *looks.steps, *call.numbers))

    first, of_rows = (
        _instance("nj_attention_gradient_rows", *instance, step) for step in ("true", "false")
    )
    parts = [*rows.parts, part(first, call.rows, rows, _NOWHERE)]
    if of_q != _NOWHERE:
        parts.append(part(of_rows, call.rows, rows, of_q))
    if (of_k, of_v) != (_NOWHERE, _NOWHERE):
        of_keys = _instance("nj_attention_gradient_keys", *instance)
        parts += [*columns.parts, part(of_keys, call.keys, columns, of_k, of_v)]
    return Routine(tuple(parts), regions)


def _instance(name: str, *arguments: str | int) -> str:
    return f"{name}<{', '.join(map(str, arguments))}>"


@dataclass
class _Joined:
    """Neighbouring axes that lie like one: their extent, and the steps of all arrays."""

    extent: int
    steps: list[int]


def _two_axes(
    shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[tuple[int, int], list[tuple[int, int]]] | None:
    """Axes as two: their extents, and the arrays' steps along them."""
    kept: list[_Joined] = []
    for axis, n in enumerate(shape):
        own = [s[axis] for s in strides]
        if n == 1:
            continue
        if kept and kept[-1].steps == [n * step for step in own]:
            kept[-1] = _Joined(kept[-1].extent * n, own)
        else:
            kept.append(_Joined(n, own))
    if len(kept) > 2:
        return None
    outer, inner = [_Joined(1, [0] * len(strides))] * (2 - len(kept)) + kept
    return (outer.extent, inner.extent), list(zip(outer.steps, inner.steps, strict=True))


def _width(narrow: Sequence[Operand]) -> int:
    """How many numbers of q, k and v are read at a time."""
    width = 8
    while width > 1 and any(
        o.aligned < 2 * width or any(s % width for s in (o.shape[-1], *o.strides[:-1]))
        for o in narrow
    ):
        width //= 2
    return width


def _bits(value: float) -> int:
    (found,) = struct.unpack("q", struct.pack("d", value))
    return int(found)
