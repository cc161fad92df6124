"""What is known of sizes inside the bodies of a loop or branch.

In: what is known around the node, its params and arguments. Out: for each nested graph, by the name
of its field, what is known there besides: a loop's index lies in its range, and what an `if` has
asked of sizes holds on one side and fails on the other.

    loop i < n        body: 0 <= i <= n - 1, 1 <= n
    cond (i > 0)      then: 0 <= i - 1,  other: 0 <= -i
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from npjit.core.assume import Assumptions
from npjit.core.control import Cond, Loop
from npjit.core.graph import Node, named_graphs
from npjit.core.op import Kind
from npjit.core.size import Size

# a relation and its contrary, both by the sizes that are not negative then
_DIFFERENCES: dict[str, Callable[[Size, Size], tuple[list[Size], list[Size]]]] = {
    "<": lambda a, b: ([b - a - 1], [a - b]),
    "<=": lambda a, b: ([b - a], [a - b - 1]),
    ">": lambda a, b: ([a - b - 1], [b - a]),
    ">=": lambda a, b: ([a - b], [b - a - 1]),
    "==": lambda a, b: ([a - b, b - a], []),
    "!=": lambda a, b: ([], [a - b, b - a]),
    "in": lambda a, b: ([a, b - a - 1], []),
}


def within(known: Assumptions, params: Any, args: Sequence[Node]) -> dict[str, Assumptions]:
    """See the module's docstring."""
    names = [name for name, _ in named_graphs(params)]
    made = {name: known.copy() for name in names}
    if isinstance(params, Loop):
        made["body"].ranges[params.index] = (0, params.trips - 1)
        made["body"].facts.append(params.trips - 1)
    elif isinstance(params, Cond):
        asked = compared_sizes(args[0])
        if asked is not None:
            then, other = _DIFFERENCES[args[0].op.relation](*asked)
            made["then"].facts += then
            made["other"].facts += other
    return made


def compared_sizes(n: Node) -> tuple[Size, Size] | None:
    """The two sizes that a node compares, when it does nothing else."""
    if not n.op.relation:
        return None
    a, b = (_size_of(x) for x in n.args)
    return None if a is None or b is None else (a, b)


def _size_of(n: Node) -> Size | None:
    if n.op.kind is Kind.SIZE:
        size: Size = n.params
        return size
    is_int = n.op.kind is Kind.CONST and n.dtype.kind == "i"
    return int(n.params.value) if is_int else None
