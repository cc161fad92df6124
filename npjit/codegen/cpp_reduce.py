"""Reductions as C++: how values are folded into a few cells, and how a vector loop does that fast.

A `Fold` is the meaning: the types of its cells, their initial values, the statement that takes in
one more value, and the result. Strips of columns, unrolled loops and the joining of the threads'
results fold cell by cell. A `Loop` is the form for one long vector loop: it adds reduction clauses
and block sums, and leaves what a fold's cells would hold.

    sum of f64   cells acc5        acc5 = acc5 + v4              loop: block sums into nj_cascade
    max of f64   cells acc5        acc5 = nj_maximum(acc5, v4)   loop: max and an integer NaN flag
    argmax       cells acc5, at5   better5 ? (v4, position)      loop: blocks into nj_argument
    deviation    cells n5, mean5, acc5   join by Chan's formula  loop: blocks into nj_spread
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npjit.codegen.cpp_phase import Values
from npjit.codegen.cpp_types import ctype, is_complex, plane, stored
from npjit.schedule.kernel import DType, Reduce

_SINGLE = np.dtype("f4")


@dataclass(frozen=True)
class Fold:
    """One value at a time into cells; see the module's docstring."""

    number: int
    instr: Reduce
    values: Values

    @property
    def style(self) -> str:
        assert self.instr.op.reduction is not None
        style = self.instr.op.reduction.style
        if self.accumulator.kind == "b":
            # + and max of bools are "or", * and min are "and"
            return {"sum": "any", "max": "any", "product": "all", "min": "all"}.get(style, style)
        return style

    @property
    def accumulator(self) -> DType:
        """The type that is accumulated in."""
        assert self.instr.op.reduction is not None
        style = self.instr.op.reduction.style
        dtype = self.instr.dtype
        if style in ("argmin", "argmax"):
            dtype = self.values.dtype(self.instr.arg)
        if style in ("any", "all"):
            dtype = np.dtype("?")
        return _SINGLE if dtype == np.dtype("f2") else dtype

    @property
    def cells(self) -> list[tuple[str, str]]:
        """(type, name) of each cell."""
        if is_complex(self.accumulator):
            names = [f"acc{self.number}r", f"acc{self.number}i"]
            return [(plane(self.accumulator), name) for name in names]
        return [(stored(self.accumulator), f"acc{self.number}")]

    def initial(self) -> list[str]:
        """What the cells hold before the first value."""
        if self.style in ("min", "max"):
            kind = stored(self.accumulator)
            least = f"nj_lowest<{kind}>()" if self.style == "max" else f"nj_highest<{kind}>()"
        elif self.style in ("product", "all"):
            least = "1"
        else:
            least = "0"
        if is_complex(self.accumulator) and self.style == "product":
            return ["1", "0"]
        return [least] * len(self.cells)

    def items(self, position: str) -> list[str]:
        """One value of the loop, as the cells' types."""
        number = self.instr.arg
        if is_complex(self.accumulator):
            if is_complex(self.values.dtype(number)):
                return list(self.values.parts(number))
            return [f"{plane(self.accumulator)}({self.values.whole(number)})", "0"]
        return [self.values.converted(number, self.accumulator)]

    def take(self, cells: Sequence[str], items: Sequence[str]) -> list[str]:
        """Statements that fold one more value into the cells."""
        joined = {"sum": "{} + {}", "any": "{} | {}", "all": "{} & {}"}.get(self.style)
        if joined is not None:
            pairs = zip(cells, items, strict=True)
            return [f"{c} = {joined.format(c, i)};" for c, i in pairs]
        calls = {"product": "{} * {}", "max": "nj_maximum({}, {})", "min": "nj_minimum({}, {})"}
        call = calls[self.style]
        if len(cells) == 1:
            return [f"{cells[0]} = {call.format(cells[0], items[0])};"]
        kind = ctype(self.accumulator)
        both = call.format(*(f"{kind}{{{', '.join(parts)}}}" for parts in (cells, items)))
        name = f"better{self.number}"
        return [
            f"const {kind} {name} = {both};",
            f"{cells[0]} = {name}.re;",
            f"{cells[1]} = {name}.im;",
        ]

    def finish(self, cells: Sequence[str]) -> list[str]:
        """Define the reduction's value."""
        names = self.values.names(self.number)
        same = self.accumulator == self.instr.dtype or is_complex(self.accumulator)
        texts = cells if same else [f"nj_cast<{ctype(self.instr.dtype)}>({c})" for c in cells]
        return [f"const {t} {n} = {c};" for (t, n), c in zip(names, texts, strict=True)]


class ArgFold(Fold):
    """Position of the first extreme; NaN wins. The cells are the best value and its position."""

    @property
    def cells(self) -> list[tuple[str, str]]:
        dtype = self.accumulator
        best = ctype(dtype) if is_complex(dtype) else stored(dtype)
        return [(best, f"acc{self.number}"), ("i64", f"at{self.number}")]

    def initial(self) -> list[str]:
        if is_complex(self.accumulator):
            return [f"{self.cells[0][0]}()", "-1"]
        # when nothing beats this all values are equal to it, and the first of them stands at 0
        end = "lowest" if self.style == "argmax" else "highest"
        return [f"nj_{end}<{self.cells[0][0]}>()", "0"]

    def items(self, position: str) -> list[str]:
        return [self.values.converted(self.instr.arg, self.accumulator), position]

    def take(self, cells: Sequence[str], items: Sequence[str]) -> list[str]:
        sign = ">" if self.style == "argmax" else "<"
        (best, where), (value, position) = cells, items
        # bitwise, so that no branch stands in the way of vectors
        better = f"({value} {sign} {best}) | (({value} != {value}) & ({best} == {best}))"
        if is_complex(self.accumulator):
            better = f"({where} < 0) | {better}"
        elif self.accumulator.kind != "f":
            better = f"{value} {sign} {best}"
        name = f"better{self.number}"
        return [
            f"const b1 {name} = {better};",
            f"{best} = {name} ? {value} : {best};",
            f"{where} = {name} ? {position} : {where};",
        ]

    def finish(self, cells: Sequence[str]) -> list[str]:
        return [f"const {ctype(self.instr.dtype)} v{self.number} = {cells[1]};"]


class MomentsFold(Fold):
    """Squared distances from the mean. The cells are an nj_moments: count, mean and squares."""

    @property
    def cells(self) -> list[tuple[str, str]]:
        return [("f64", f"{part}{self.number}") for part in ("n", "mean", "acc")]

    def initial(self) -> list[str]:
        return ["0", "0", "0"]

    def items(self, position: str) -> list[str]:
        return ["1", self.values.converted(self.instr.arg, np.dtype("f8")), "0"]

    def take(self, cells: Sequence[str], items: Sequence[str]) -> list[str]:
        both = (f"nj_moments{{{', '.join(parts)}}}" for parts in (cells, items))
        name = f"both{self.number}"
        parts = zip(cells, ("count", "mean", "squares"), strict=True)
        joined = f"const nj_moments {name} = {' + '.join(both)};"
        return [joined, *(f"{cell} = {name}.{part};" for cell, part in parts)]

    def finish(self, cells: Sequence[str]) -> list[str]:
        kind = ctype(self.instr.dtype)
        return [f"const {kind} v{self.number} = nj_cast<{kind}>({cells[2]});"]


_FOLDS = {"argmin": ArgFold, "argmax": ArgFold, "deviation": MomentsFold}


def fold(number: int, instr: Reduce, values: Values) -> Fold:
    """The fold of a reduction."""
    assert instr.op.reduction is not None
    return _FOLDS.get(instr.op.reduction.style, Fold)(number, instr, values)


_JOINS = {sign: f"{{0}} {sign}= {{1}};" for sign in "+*|&"} | {
    "max": "{0} = {1} > {0} ? {1} : {0};",
    "min": "{0} = {1} < {0} ? {1} : {0};",
}


@dataclass(frozen=True)
class Accumulator:
    """A variable that vector lanes may fold apart: OpenMP's sign, its type and name."""

    sign: str
    kind: str
    name: str

    @property
    def clause(self) -> str:
        """The reduction clause of a vector loop."""
        return f"reduction({self.sign}:{self.name})"

    @property
    def start(self) -> str:
        """What a lane starts from."""
        if self.sign in ("max", "min"):
            return f"nj_{'lowest' if self.sign == 'max' else 'highest'}<{self.kind}>()"
        return "1" if self.sign in "*&" else "0"

    def join(self, value: str) -> str:
        """A statement that takes in what a lane has."""
        return _JOINS[self.sign].format(self.name, value)


@dataclass(frozen=True)
class Loop:
    """A fold as one loop; this base form carries the cells themselves from value to value."""

    fold: Fold

    # whether the loop over values may be a vector loop, whether it must be cut in blocks, whether
    # it needs little beside the fold's cells, and whether lanes may fold for themselves
    simd = False
    blocked = False
    is_light = False
    has_lanes = False

    @property
    def name(self) -> str:
        return f"{self.fold.number}"

    @property
    def cells(self) -> list[tuple[str, str]]:
        """(type, name) of each cell of the fold."""
        return self.fold.cells

    @property
    def kind(self) -> str:
        """The type of the values, of which a block holds so and so many."""
        return stored(self.fold.accumulator)

    def before(self) -> list[str]:
        """Statements in front of all loops."""
        pairs = zip(self.fold.cells, self.fold.initial(), strict=True)
        return [*(f"{kind} {name} = {start};" for (kind, name), start in pairs), *self.flags()]

    def flags(self) -> list[str]:
        """Definitions of what the loop carries beside the cells."""
        return []

    def before_block(self) -> list[str]:
        """Statements in front of each block."""
        return []

    def accumulators(self) -> list[Accumulator]:
        """The variables that a vector loop folds lane by lane."""
        return []

    def step(self, position: str, lane: str) -> list[str]:
        """Statements for one value; `lane` is its place within the block."""
        return self.fold.take([name for _, name in self.fold.cells], self.fold.items(position))

    def after_block(self, length: str, position: str) -> list[str]:
        """Statements behind each block of `length` values; `position` is that of its first."""
        return []

    def results(self) -> list[str]:
        """What the fold's cells would hold now."""
        return [name for _, name in self.fold.cells]

    def block_results(self) -> list[str]:
        """The same behind a single block, which started from the cells' initial values."""
        return self.results()


class ClauseLoop(Loop):
    """Sums of integers, products, any and all: OpenMP has the reduction."""

    simd = True
    is_light = True
    has_lanes = True

    def accumulators(self) -> list[Accumulator]:
        sign = {"sum": "+", "product": "*", "any": "|", "all": "&"}[self.fold.style]
        return [Accumulator(sign, kind, name) for kind, name in self.fold.cells]


class SumLoop(Loop):
    """A floating-point sum: block sums, then a cascade of them. Complex planes are summed apart."""

    simd = True
    blocked = True
    is_light = True
    has_lanes = True

    def _cells(self) -> list[tuple[str, str, str]]:
        return [(kind, name, f"sum{name[3:]}") for kind, name in self.fold.cells]

    def before(self) -> list[str]:
        return [f"nj_cascade<{kind}> {cascade};" for kind, _, cascade in self._cells()]

    def before_block(self) -> list[str]:
        return [f"{kind} {name} = 0;" for kind, name, _ in self._cells()]

    def accumulators(self) -> list[Accumulator]:
        return [Accumulator("+", kind, name) for kind, name in self.fold.cells]

    def after_block(self, length: str, position: str) -> list[str]:
        return [f"{cascade}.push({name});" for _, name, cascade in self._cells()]

    def results(self) -> list[str]:
        return [f"{cascade}.total()" for _, _, cascade in self._cells()]

    def block_results(self) -> list[str]:
        return [name for _, name in self.fold.cells]


class ExtremeLoop(Loop):
    """min and max of real numbers; a NaN raises an integer flag, which suits vectors better."""

    simd = True
    is_light = True

    @property
    def _sign(self) -> int:
        return 1 if self.fold.style == "max" else -1

    @property
    def _flag(self) -> str:
        """The flag's type, as wide as the values; empty when there is no NaN."""
        dtype = self.fold.accumulator
        return f"i{dtype.itemsize * 8}" if dtype.kind == "f" else ""

    def flags(self) -> list[str]:
        return [f"{self._flag} nan{self.name} = 0;"] if self._flag else []

    def accumulators(self) -> list[Accumulator]:
        found = [Accumulator(self.fold.style, kind, name) for kind, name in self.fold.cells]
        return found + ([Accumulator("|", self._flag, f"nan{self.name}")] if self._flag else [])

    def step(self, position: str, lane: str) -> list[str]:
        value, best = self.fold.items(position)[0], f"acc{self.name}"
        sign = ">" if self.fold.style == "max" else "<"
        steps = [f"{best} = {value} {sign} {best} ? {value} : {best};"]
        seen = f"nj_seen<{self._sign}>({value})"
        return steps + ([f"nan{self.name} |= {seen};"] if self._flag else [])

    def results(self) -> list[str]:
        best = f"acc{self.name}"
        if not self._flag:
            return [best]
        return [f"nj_extreme<{self._sign}>({best}, nan{self.name})"]


class ArgLoop(Loop):
    """argmin and argmax: a block's values are kept, and searched only if one of them wins."""

    simd = True
    blocked = True

    def before(self) -> list[str]:
        sign = 1 if self.fold.style == "argmax" else -1
        return [
            f"nj_argument<{self.kind}, {sign}> acc{self.name};",
            f"{self.kind} block{self.name}[4 * NJ_BLOCK({self.kind})];",
        ]

    def step(self, position: str, lane: str) -> list[str]:
        return [f"block{self.name}[{lane}] = {self.fold.items(position)[0]};"]

    def after_block(self, length: str, position: str) -> list[str]:
        return [f"acc{self.name}.push(block{self.name}, {length}, {position});"]

    def results(self) -> list[str]:
        return [f"acc{self.name}.best", f"acc{self.name}.at"]


class MomentsLoop(Loop):
    """Squared distances from the mean, by those from a number nearby (see nj_spread)."""

    simd = True
    blocked = True

    def before(self) -> list[str]:
        return [f"nj_spread<{self.kind}> spread{self.name};"]

    def before_block(self) -> list[str]:
        spread = f"spread{self.name}"
        return [
            f"{self.kind}* const kept{self.name} = {spread}.values + {spread}.count;",
            f"const {self.kind} nearby{self.name} = {spread}.nearby;",
            f"{self.kind} sum{self.name} = 0;",
            f"{self.kind} squares{self.name} = 0;",
        ]

    def accumulators(self) -> list[Accumulator]:
        names = (f"sum{self.name}", f"squares{self.name}")
        return [Accumulator("+", self.kind, name) for name in names]

    def step(self, position: str, lane: str) -> list[str]:
        value = self.fold.values.converted(self.fold.instr.arg, self.fold.accumulator)
        apart = f"apart{self.name}"
        return [
            f"kept{self.name}[{lane}] = {value};",
            f"const {self.kind} {apart} = {value} - nearby{self.name};",
            f"sum{self.name} += {apart};",
            f"squares{self.name} += {apart} * {apart};",
        ]

    def after_block(self, length: str, position: str) -> list[str]:
        return [f"spread{self.name}.push({length}, sum{self.name}, squares{self.name});"]

    def results(self) -> list[str]:
        total = f"spread{self.name}.done()"
        return [f"{total}.{part}" for part in ("count", "mean", "squares")]


def loop(made: Fold) -> Loop:
    """The vector loop of a fold."""
    if isinstance(made, MomentsFold):
        return MomentsLoop(made)
    dtype = made.accumulator
    if made.style in ("argmin", "argmax"):
        return (Loop if is_complex(dtype) else ArgLoop)(made)
    if made.style == "sum" and dtype.kind in "fc":
        return SumLoop(made)
    if made.style in ("min", "max"):
        return (Loop if is_complex(dtype) else ExtremeLoop)(made)
    return (Loop if is_complex(dtype) else ClauseLoop)(made)
