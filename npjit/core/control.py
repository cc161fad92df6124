"""Control flow in a graph: what LOOP, WHILE and COND nodes hold.

Bodies are nested Graphs, complete in themselves: everything they use comes in through their inputs,
which stand in the order of the node's arguments. An input whose storage the body writes is in the
body Graph's `writes`, as a caller's array is in a whole function's; the node then has a new version
of that argument among its results.

Results of a node, in order (a RESULT node picks one by number): first one per carried value, then
one per written input, in the order of `written`.
"""

from __future__ import annotations

from dataclasses import dataclass

from npjit.core.graph import Graph
from npjit.core.size import Size, Var


@dataclass(frozen=True, eq=False)
class Loop:
    """`trips` runs of `body`, the variable `index` going 0, 1, ..., trips - 1.

    The first `carried` inputs are carried values: output k of the body is what input k is in the
    next trip, and the node's result k after the last one (with no trip, the argument). `stops`
    names carried bool scalars; the loop ends before a trip in which one of them is true.
    """

    body: Graph
    carried: int
    index: Var
    trips: Size
    stops: tuple[int, ...] = ()

    @property
    def written(self) -> tuple[int, ...]:
        """Inputs whose storage the body writes."""
        return tuple(position for position, _ in self.body.writes)


@dataclass(frozen=True, eq=False)
class While:
    """Runs of `body` as long as `test` (a Graph over the same inputs, one bool scalar output) gives
    true.
    """

    test: Graph
    body: Graph
    carried: int
    stops: tuple[int, ...] = ()

    @property
    def written(self) -> tuple[int, ...]:
        """Inputs whose storage the body writes."""
        return tuple(position for position, _ in self.body.writes)


@dataclass(frozen=True, eq=False)
class Cond:
    """`then` where the condition holds, else `other`; equal inputs (after the condition) and
    equally typed outputs.
    """

    then: Graph
    other: Graph

    @property
    def written(self) -> tuple[int, ...]:
        """Inputs (positions among the branches' inputs) whose storage either branch writes."""
        both = [p for g in (self.then, self.other) for p, _ in g.writes]
        return tuple(sorted(set(both)))
