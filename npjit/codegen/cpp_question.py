"""Kernels made of instructions in the plan's own sizes; those that ask whether numbers are such
that another form of a loop may run.

In: instructions, whose sizes may be any of the plan. Out: a kernel and how it is launched:

    question(terms, [], [n2 - 8, b_v1 + 1], local7)
        v0 = s0, v1 = v0 >= 0, v2 = s1, v3 = v2 >= 0, v4 = v1 & v3, b0[0] = v4
        launch k9(local7; n2 - 8, b_v1 + 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from npjit.codegen.cpp_affine import Affine
from npjit.codegen.cpp_straight import Unfit, touched
from npjit.codegen.cuda_terms import Terms
from npjit.core.op import Kind, Op
from npjit.core.size import Size
from npjit.schedule.kernel import (
    Access,
    Apply,
    Axis,
    Buffer,
    Coordinate,
    Extent,
    Instr,
    Kernel,
    Load,
    Phase,
    Store,
)
from npjit.schedule.plan import Launch, Place

_INDEX, _BOOL = np.dtype("i8"), np.dtype("?")

Body = list[tuple[int, Instr]]
# a kernel, and its launch when its number is known
Made = tuple[Kernel, Callable[[int], Launch]]


def made(given: Terms, axes: Sequence[Axis], body: Iterable[tuple[int, Instr]]) -> Made:
    """The kernel with this body over these outer axes."""
    terms = _copied(given)
    named_axes = [Axis(terms.named(a.extent)) for a in axes]
    phases = terms.only_used([Phase((), tuple((n, _named(terms, i)) for n, i in body))])
    written = touched(i for _, i in phases[0].body if isinstance(i, Store))
    kernel = terms.kernel(named_axes, tuple(range(len(axes))), phases, written)
    return replace(kernel, in_order=bool(axes)), terms.launch


def question(given: Terms, fixed: Body, numbers: Iterable[Affine], answer: Place) -> Made:
    """Whether no number is negative, as a bool at `answer`; `fixed` computes their values."""
    terms = _copied(given)
    body = list(fixed)
    tests = tuple(_test(terms, body, number) for number in numbers)
    text = " & ".join(f"{{{k}}}" for k in range(len(tests)))
    every = _add(terms, body, Apply(_row(text), tests, None, _BOOL))
    terms.places.append(answer)
    terms.buffers.append(Buffer(_BOOL, "out"))
    _add(terms, body, Store(Access(len(terms.buffers) - 1, ()), every))
    return made(terms, [], body)


def _test(terms: Terms, body: Body, number: Affine) -> int:
    """Whether a number is not negative."""
    parts, args = ["{0}"], [_add(terms, body, Extent(number.rest, _INDEX))]
    for value, factor in number.values:
        if not isinstance(factor, int):
            raise Unfit
        parts.append(f"{factor}LL * {{{len(args)}}}")
        args.append(value)
    return _add(terms, body, Apply(_row(f"{' + '.join(parts)} >= 0"), tuple(args), None, _BOOL))


def _row(text: str) -> Op:
    return Op("question", Kind.ELEMENTWISE, lambda *_: None, c=text)


def _add(terms: Terms, body: Body, instr: Instr) -> int:
    body.append((terms.count, instr))
    terms.count += 1
    return terms.count - 1


def _copied(given: Terms) -> Terms:
    """Terms with the same buffers and scalars, and no sizes yet."""
    terms = Terms()
    terms.places, terms.buffers = list(given.places), list(given.buffers)
    terms.scalars, terms.scalar_types = list(given.scalars), list(given.scalar_types)
    terms.where, terms.count = set(given.where), given.count
    return terms


def _named(terms: Terms, i: Instr) -> Instr:
    """An instruction whose sizes are the kernel's."""
    if isinstance(i, Load | Store):
        a = i.access
        strides = tuple((axis, _size(terms, s)) for axis, s in a.strides)
        gathers = tuple((v, _size(terms, s)) for v, s in a.gathers)
        return replace(i, access=Access(a.buffer, strides, _size(terms, a.offset), gathers))
    if isinstance(i, Extent):
        return replace(i, size=_size(terms, i.size))
    if isinstance(i, Coordinate):
        return replace(i, start=_size(terms, i.start), step=_size(terms, i.step))
    return i


def _size(terms: Terms, size: Size) -> Size:
    """A size of the kernel; those that differ by a number are seen to do so."""
    number = size if isinstance(size, int) else dict(size.terms).get((), 0)
    return terms.named(size - number) + number
