"""The text of a phase by loop level, and what a loop may do to it: other forms of its lines.

In: the lines that `cpp_phase` prints. Out: `Statements`, whose conditions hold for a part of the
vector loop (`Held`), whose lines may have a quicker form (`Near`), and whose offsets are worked out
in front of a loop (`Shift`):

    level 0: const f64 v2 = mem1[x0];
    level 2: const f64 v3 = (x1 < n0) ? mem0[x1] : f64();     Held("(x1 < n0)", "0", "n0")
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from npjit.codegen.cpp_types import size
from npjit.schedule.kernel import Bound, Reduce


@dataclass(frozen=True)
class Held:
    """A printed condition that holds for lo <= index < hi of the vector loop, and nowhere else."""

    text: str
    lo: str
    hi: str

    def fixed(self, lines: Sequence[str], answer: str) -> list[str]:
        """Statements for a part of the loop where the condition is always "true" or "false"."""
        opaque = f"nj_held({self.text})"
        return [line.replace(opaque, self.text).replace(self.text, answer) for line in lines]


@dataclass(frozen=True)
class Near:
    """A quicker line that may stand for another one where a condition holds."""

    condition: str
    line: str


@dataclass(frozen=True)
class Shift:
    """A variable for the offset of picked elements, of those within the bound and of others."""

    name: str
    within: Bound
    inside: str
    beyond: str

    def line(self, index: str) -> str:
        """Its definition, for this index of the bound's axis."""
        lo, hi = size(self.within.lo), size(self.within.hi)
        holds = f"({index} >= {lo}) & ({index} < {hi})"
        return f"const i64 {self.name} = {holds} ? {self.inside} : {self.beyond};"


@dataclass
class Statements:
    """The text of a phase by level, and what its values need from outside."""

    levels: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    reduces: list[tuple[int, Reduce]] = field(default_factory=list)
    # values of earlier phases that are used here
    imported: list[int] = field(default_factory=list)
    # the conditions of the vector loop's padded values
    held: set[Held] = field(default_factory=set)
    # the offsets that vary along the vector loop
    shifts: list[Shift] = field(default_factory=list)
    # the addresses of what a vector loop reads element after element
    streams: list[str] = field(default_factory=list)
    # the lines that have a quicker form
    near: dict[str, Near] = field(default_factory=dict)
    # the lines that have a quicker form where a condition holds that no axis changes
    fixed: dict[str, Near] = field(default_factory=dict)
    # the text that defines each value
    definitions: dict[int, list[str]] = field(default_factory=dict)

    def changed(self, lines: Mapping[str, str]) -> Statements:
        """The same with other lines in place of these."""
        levels = defaultdict(list)
        for level, text in self.levels.items():
            levels[level] = [lines.get(line, line) for line in text]
        return replace(self, levels=levels)


def versions(phases: Sequence[Statements]) -> Iterator[tuple[str, list[Statements]]]:
    """The heads of blocks for the quicker forms that a launch may take, and the phases in each; one
    without a head where there are none."""
    quick = {line: near for p in phases for line, near in p.fixed.items()}
    if quick:
        holds = " & ".join(dict.fromkeys(near.condition for near in quick.values()))
        lines = {line: near.line for line, near in quick.items()}
        yield f"if ({holds})", [p.changed(lines) for p in phases]
    yield ("else" if quick else ""), list(phases)
