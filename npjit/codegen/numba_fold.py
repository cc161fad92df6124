"""Reductions as Python for Numba: one value at a time into a few variables.

In: a `Reduce`. Out: the statements that start, take in a value, and finish:

    fold.start(False)            acc5 = f64(-np.inf)
    fold.take("", position)      acc5 = f64(acc5 if acc5 > v4 or acc5 != acc5 else v4)
    fold.finish(False)           v5 = f64(acc5)
"""

from __future__ import annotations

import numpy as np

from npjit.codegen.cpp_types import ctype
from npjit.codegen.numba_text import NumbaValues, cast
from npjit.schedule.kernel import Reduce


class NumbaFold:
    """A reduction one value at a time; `at` is "" or the lane's subscript."""

    def __init__(self, number: int, instr: Reduce, values: NumbaValues) -> None:
        assert instr.op.reduction is not None
        self.number = number
        self.instr = instr
        self.values = values
        self.style = instr.op.reduction.style
        self.by_position = self.style in ("argmin", "argmax")
        # squared distances from the mean, which follows the values (Welford)
        self.by_mean = self.style == "deviation"
        dtype = values.dtype(instr.arg) if self.by_position else instr.dtype
        if self.style in ("any", "all"):
            dtype = np.dtype("?")
        if dtype.kind == "b" and not self.by_position:
            self.style = {"sum": "any", "max": "any", "product": "all", "min": "all"}.get(
                self.style, self.style
            )
        self.dtype = np.dtype("f8") if self.by_mean else dtype
        self.kind = ctype(self.dtype)

    @property
    def blocked(self) -> bool:
        """Whether sums of blocks are added as a tree."""
        return self.style == "sum" and self.dtype.kind in "fc"

    def arrays(self, lanes: str) -> list[str]:
        """Cells for every lane."""
        found = [f"acc{self.number} = np.empty({lanes}, {self.kind})"]
        if self.by_mean:
            cells = (f"{part}{self.number}" for part in ("mean", "count"))
            return found + [f"{cell} = np.empty({lanes}, f64)" for cell in cells]
        return found + (
            [f"place{self.number} = np.empty({lanes}, i64)"] if self.by_position else []
        )

    def start(self, blocked: bool, at: str = "") -> list[str]:
        """Set the cells to their initial values."""
        n = self.number
        if blocked:
            return [f"count{n} = 0"]
        if self.by_position:
            return [f"acc{n}{at} = {self.kind}(0)", f"place{n}{at} = -1"]
        if self.by_mean:
            return [f"{part}{n}{at} = f64(0)" for part in ("acc", "mean", "count")]
        return [f"acc{n}{at} = {self._initial()}"]

    def _initial(self) -> str:
        if self.style in ("min", "max"):
            if self.dtype.kind in "fc":
                worst = "-np.inf" if self.style == "max" else "np.inf"
                both = f"complex({worst}, {worst})" if self.dtype.kind == "c" else worst
                return f"{self.kind}({both})"
            limits = np.iinfo(self.dtype)
            return f"{self.kind}({limits.min if self.style == 'max' else limits.max})"
        return f"{self.kind}({1 if self.style in ('product', 'all') else 0})"

    def take(self, at: str, position: str) -> list[str]:
        """Fold one value in."""
        acc = f"acc{self.number}{at}"
        value = cast(
            self.values.whole(self.instr.arg), self.values.dtype(self.instr.arg), self.dtype
        )
        if self.by_position:
            sign = ">" if self.style == "argmax" else "<"
            place = f"place{self.number}{at}"
            better = f"{value} {sign} {acc} or ({value} != {value} and {acc} == {acc})"
            return [
                f"if {place} < 0 or {better}:",
                f"    {acc} = {value}",
                f"    {place} = {position}",
            ]
        if self.by_mean:
            mean, count = (f"{part}{self.number}{at}" for part in ("mean", "count"))
            apart = f"apart{self.number}"
            return [
                f"{count} = {count} + 1",
                f"{apart} = {value} - {mean}",
                f"{mean} = {mean} + {apart} / {count}",
                f"{acc} = {acc} + {apart} * ({value} - {mean})",
            ]
        joined = {
            "sum": f"{acc} + {value}",
            "product": f"{acc} * {value}",
            "any": f"{acc} | {value}",
            "all": f"{acc} & {value}",
            "max": f"{acc} if {acc} > {value} or {acc} != {acc} else {value}",
            "min": f"{acc} if {acc} < {value} or {acc} != {acc} else {value}",
        }[self.style]
        return [f"{acc} = {self.kind}({joined})"]

    def finish(self, blocked: bool, at: str = "") -> list[str]:
        """Define the value."""
        n = self.number
        if blocked:
            return [f"v{n} = nj_total(level{n}, count{n})"]
        found = f"place{n}{at}" if self.by_position else f"acc{n}{at}"
        return [f"v{n} = {ctype(self.instr.dtype)}({found})"]
