"""How much work each node is to compute from what is surely in memory.

In: a program. Out: per node additions for one element, loads counted as one each. Repeating a value
repeats all that stands behind it, so this is what storing it saves; but what is dear and needed at
several places will be stored anyway. Values along fewer axes than their user (a row's mean, a
broadcast vector) come for nothing.

    work_of(program)[0.2 * (a[1:-1] + a[2:])]  ->  4, two loads, an addition and a product
"""

from __future__ import annotations

from typing import Any

from npjit.core.graph import Node
from npjit.core.op import Kind
from npjit.core.view import Along
from npjit.schedule.cells import STEPS, Program

_LOADED = (Kind.INPUT, Kind.CELL, Kind.UPDATE, *STEPS)
_MOST = 1 << 20
# the most repeated work, in additions per element, before storing a value is thought cheaper
REPEAT_LIMIT = 12


def work_of(program: Program) -> dict[Node, int]:
    """The work of every node; `_MOST` and more count as the same."""
    work: dict[Node, int] = {}
    places = _places(program)

    def seen(n: Node) -> int:
        """The work of a value for those who use it: what will be stored is loaded."""
        is_repeated = (places[n] - 1) * work[n] > REPEAT_LIMIT
        return min(1, work[n]) if is_repeated else work[n]

    for n in program.nodes:
        kind = n.op.kind
        if kind in _LOADED or n in program.stored:
            work[n] = 1 if n.shape else 0
        elif kind in (Kind.CONST, Kind.SIZE, Kind.IOTA, Kind.REDUCE) or _is_broadcast(n):
            work[n] = 0
        else:
            own = n.op.cost if kind in (Kind.ELEMENTWISE, Kind.GATHER) else 0
            work[n] = min(_MOST, own + sum(seen(a) for a in dict.fromkeys(n.args)))
    return work


def _places(program: Program) -> dict[Node, int]:
    """At how many places each node is used: through so many views, and as it stands."""
    found: dict[Node, set[Any]] = {n: set() for n in program.nodes}
    for n in program.nodes:
        for a in n.args:
            found[a].add(n.params if n.op.kind is Kind.VIEW else None)
    return {n: len(params) for n, params in found.items()}


def _is_broadcast(n: Node) -> bool:
    if n.op.kind is not Kind.VIEW:
        return False
    used = {d.axis for d in n.params.dims if isinstance(d, Along)}
    return any(size != 1 and axis not in used for axis, size in enumerate(n.shape))
