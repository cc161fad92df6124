"""Reductions as C++: how one long vector loop folds values fast.

In: a `Fold` (`cpp_reduce`). Out: its `Loop`, which adds reduction clauses and block sums, and
leaves what the fold's cells would hold.

    sum of f64   block sums into nj_cascade
    max of f64   max and an integer NaN flag
    argmax       blocks into nj_argument
    deviation    blocks into nj_spread
"""

from __future__ import annotations

from dataclasses import dataclass

from npjit.codegen.cpp_reduce import Fold, MomentsFold
from npjit.codegen.cpp_types import is_complex, stored

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
        return [f"{total}.{part}" for part in ("count", "mean", "squares", "low")]


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
