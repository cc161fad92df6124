"""A graph copied node by node, with others in place of some.

In: a graph, and what replaces a node, given its new arguments. Out: a graph of a new block:

    rebuild(graph, lambda block, n, args: args[0] if is_copy(n) else None)
"""

from __future__ import annotations

from collections.abc import Callable

from npjit.core.assume import Assumptions
from npjit.core.graph import Block, Graph, Node


def rebuild(graph: Graph, rewrite: Callable[[Block, Node, tuple[Node, ...]], Node | None]) -> Graph:
    """Copy a graph into a fresh block, letting `rewrite(block, node, new_args)` replace nodes
    (None: keep).
    """
    block = Block(Assumptions.given(graph.guards))
    new: dict[Node, Node] = {}
    for n in graph.nodes:
        args = tuple(new[a] for a in n.args)
        block.where = n.where
        replaced = rewrite(block, n, args)
        new[n] = replaced if replaced is not None else block.add(n.op, args, n.params, n.type)
    return Graph.of(
        block,
        [new[n] for n in graph.inputs],
        [new[n] for n in graph.outputs],
        [(i, new[n]) for i, n in graph.writes],
        graph.sources,
    )
