"""Reductions as C++: how values are folded into a few cells.

In: a kernel's `Reduce` instruction. Out: a `Fold`, the meaning of it: the types of its cells, their
initial values, the statement that takes in one more value, and the result. Strips of columns,
unrolled loops and the joining of the threads' results fold cell by cell; one long vector loop does
it by a form of its own (`cpp_loops`).

    sum of f64   cells acc5              acc5 = acc5 + v4
    max of f64   cells acc5              acc5 = nj_maximum(acc5, v4)
    argmax       cells acc5, at5         better5 ? (v4, position)
    deviation    cells n5, mean5, acc5, low5   join by Chan's formula
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npjit.codegen.cpp_types import ctype, is_complex, plane, stored
from npjit.codegen.cpp_values import Values
from npjit.core.dtypes import accumulator_of
from npjit.schedule.kernel import DType, Reduce


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
        return accumulator_of(dtype)

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
        better = f"{value} {sign} {best}"
        if is_complex(self.accumulator):
            is_nan = f"(({value} != {value}) & ({best} == {best}))"
            better = f"({where} < 0) | ({better}) | {is_nan}"
        elif self.accumulator.kind == "f":
            # not worse: greater, or the first NaN
            worse = "<=" if self.style == "argmax" else ">="
            better = f"!({value} {worse} {best}) & ({best} == {best})"
        name = f"better{self.number}"
        return [
            f"const b1 {name} = {better};",
            f"{best} = {name} ? {value} : {best};",
            f"{where} = {name} ? {position} : {where};",
        ]

    def finish(self, cells: Sequence[str]) -> list[str]:
        return [f"const {ctype(self.instr.dtype)} v{self.number} = {cells[1]};"]


class MomentsFold(Fold):
    """Squared distances from the mean. The cells are an nj_moments."""

    @property
    def cells(self) -> list[tuple[str, str]]:
        return [("f64", f"{part}{self.number}") for part in ("n", "mean", "acc", "low")]

    def initial(self) -> list[str]:
        return ["0", "0", "0", "0"]

    def items(self, position: str) -> list[str]:
        return ["1", self.values.converted(self.instr.arg, np.dtype("f8")), "0", "0"]

    def take(self, cells: Sequence[str], items: Sequence[str]) -> list[str]:
        both = (f"nj_moments{{{', '.join(parts)}}}" for parts in (cells, items))
        name = f"both{self.number}"
        parts = zip(cells, ("count", "mean", "squares", "low"), strict=True)
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
