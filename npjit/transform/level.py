"""Branches with a few scalar operations become selections.

In: a graph. Out: the same values, where a COND that only computes a few numbers is gone: both sides
are computed and the condition chooses. A processor does that in less time than it loses when it
takes the wrong side, and what stands around it joins it in one kernel.

    %2 = cond %c %x (then: %x + 1, other: 0)     ->     %2 = select %c (add %x 1) 0

The frontend does the same while it traces; here are those whose checks have turned out not to be
needed.
"""

from __future__ import annotations

from npjit.core.control import Cond
from npjit.core.graph import Block, Graph, Node
from npjit.core.op import Kind
from npjit.core.size import Expr, Fn
from npjit.ops import build
from npjit.transform.bodies import change_control, with_graphs

# of both sides
_MOST_ADDITIONS = 24
_PURE = frozenset([Kind.ELEMENTWISE, Kind.CONST])


def level(graph: Graph) -> Graph:
    """The graph with every such branch as selections, in the bodies of loops and branches too."""

    def change(block: Block, n: Node, args: tuple[Node, ...]) -> tuple[Node, list[Node] | None]:
        params = with_graphs(n.params, lambda name, g: level(g))
        if isinstance(params, Cond) and _is_light(params):
            return args[0], _selected(block, params, args)
        return block.add(n.op, args, params, n.type), None

    return change_control(graph, change)


def _is_light(branch: Cond) -> bool:
    """Whether both sides are numbers, made by few operations that cannot fail."""
    nodes = [n for g in (branch.then, branch.other) for n in g.nodes if n.op.kind is not Kind.INPUT]
    return (
        not branch.written
        and all(_is_pure(n) for n in nodes)
        and not any(n.shape for g in (branch.then, branch.other) for n in g.outputs)
        and sum(n.op.cost for n in nodes if n.op.kind is Kind.ELEMENTWISE) <= _MOST_ADDITIONS
    )


def _is_pure(n: Node) -> bool:
    # a number seen as one of another weight is a view of it; elements are not loaded, as the index
    # may be one only where the condition holds
    is_number = n.op.kind is Kind.VIEW and not n.args[0].shape and len(n.args) == 1
    # a size may divide by what is not zero only where the condition holds
    is_size = n.op.kind is Kind.SIZE and not (
        isinstance(n.params, Expr) and any(isinstance(a, Fn) for m, _ in n.params.terms for a in m)
    )
    return not n.shape and (n.op.kind in _PURE or is_number or is_size)


def _selected(block: Block, branch: Cond, args: tuple[Node, ...]) -> list[Node]:
    condition, *given = args
    sides = [_inlined(block, g, given) for g in (branch.then, branch.other)]
    return [
        a if a is b else build.select(block, condition, a, b) for a, b in zip(*sides, strict=True)
    ]


def _inlined(block: Block, graph: Graph, given: list[Node]) -> list[Node]:
    """A side's nodes made outside it; what it gives."""
    made = dict(zip(graph.inputs, given, strict=False))
    for n in graph.nodes:
        if n not in made:
            made[n] = block.add(n.op, [made[a] for a in n.args], n.params, n.type)
    return [made[n] for n in graph.outputs]
