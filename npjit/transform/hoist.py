"""Checks that come out the same in every trip move in front of their loop.

In: a graph. Out: the same values, where no loop's body checks what only numbers from outside
decide. A check that fails behind the first store needs a copy of what is stored to, to start again
from. A loop without a trip checks more than it must then; that only has NumPy answer the call.

    loop (x, d: check (d != 0), x / d)      check (d != 0), loop (x, d: x / d)
"""

from __future__ import annotations

from dataclasses import replace

from npjit.core.assume import Assumptions
from npjit.core.control import Loop, While
from npjit.core.graph import Block, Graph, Node
from npjit.core.op import Kind
from npjit.core.rebuild import rebuild


def hoist_checks(graph: Graph) -> Graph:
    """See the module's docstring."""
    if not any(_fixed_checks(n) for n in graph.nodes):
        return graph

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        checks = _fixed_checks(n)
        if not checks:
            return None
        # behind what the body takes come values that only have to be computed before
        outside: dict[Node, Node] = dict(zip(n.params.body.inputs, args, strict=False))
        for m in n.params.body.nodes:
            if m not in outside and _needed(m, checks):
                made = [outside[a] for a in m.args]
                outside[m] = block.add(m.op, made, m.params, m.type)
        params = replace(n.params, body=_without(n.params.body, checks))
        return block.add(n.op, args, params, n.type)

    return rebuild(graph, rewrite)


def _needed(n: Node, checks: dict[Node, set[Node]]) -> bool:
    return n in checks or any(n in behind for behind in checks.values())


def _fixed_checks(n: Node) -> dict[Node, set[Node]]:
    """The checks of a loop's body that no trip changes, each with what it is computed from."""
    if not isinstance(n.params, Loop | While):
        return {}
    body = n.params.body
    if not any(m.op.kind is Kind.CHECK for m in body.nodes):
        return {}
    changed = {*range(n.params.carried), *n.params.written}
    behind = {m: {m} for k, m in enumerate(body.inputs) if k not in changed and not m.shape}
    for m in body.nodes:
        is_number = m.op.kind in (Kind.ELEMENTWISE, Kind.CONST, Kind.CHECK) and not m.shape
        if is_number and all(a in behind for a in m.args):
            behind[m] = {m}.union(*(behind[a] for a in m.args))
    return {m: found for m, found in behind.items() if m.op.kind is Kind.CHECK}


def _without(body: Graph, checks: dict[Node, set[Node]]) -> Graph:
    """The body without these checks, whose values are those that they check."""
    block = Block(Assumptions.given(body.guards))
    new: dict[Node, Node] = {}
    for n in body.nodes:
        block.where = n.where
        args = [new[a] for a in n.args]
        new[n] = args[0] if n in checks else block.add(n.op, args, n.params, n.type)
    return Graph.of(
        block,
        [new[n] for n in body.inputs],
        [new[n] for n in body.outputs],
        [(k, new[n]) for k, n in body.writes],
        body.sources,
    )
