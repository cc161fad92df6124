"""Loops and branches of a graph, changed with what is known of sizes around them and inside.

In: a graph, and what takes a loop's or branch's place. Out: the graph with these changes, or the
very same one if there are none; the inner ones come first:

    change(block, loop, args)  ->  another loop, and what its results are (None: its own)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from npjit.core.assume import Assumptions
from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, TensorType, named_graphs
from npjit.core.op import CONTROL, Kind
from npjit.core.rebuild import rebuild
from npjit.ops import kinds
from npjit.transform.within import within

# a loop or branch by its node and its new arguments
Change = Callable[[Block, Node, tuple[Node, ...]], tuple[Node, list[Node] | None]]
# another loop for one, by its node and what is known around it, if there is one
Again = Callable[[Node, Loop, Assumptions], Loop | None]
# a node of a body by its new inputs, if that replaces it; the dictionary has the node's arguments
Use = Callable[[Block, Node, dict[Node, Node], Sequence[Node]], Node | None]


def change_control(graph: Graph, change: Change) -> Graph:
    """See the module's docstring."""
    if not any(n.op.kind in CONTROL for n in graph.nodes):
        return graph
    ends: dict[Node, list[Node]] = {}
    changed: list[Node] = []

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if n.op.kind is Kind.RESULT and n.args[0] in ends:
            number: int = n.params
            return ends[n.args[0]][number]
        if n.op.kind not in CONTROL:
            return None
        made, found = change(block, n, args)
        if found is not None:
            ends[n] = found
        if found is not None or made.params is not n.params:
            changed.append(made)
        return made

    made = replace(rebuild(graph, rewrite), guards=graph.guards)
    return made if changed else graph


def with_bodies(n: Node, known: Assumptions, again: Callable[[Graph, Assumptions], Graph]) -> Any:
    """The params of a loop or branch with other bodies; the very same, if these are."""
    inside = within(known, n.params, n.args)
    return with_graphs(n.params, lambda name, g: again(g, inside[name]))


def with_graphs(params: Any, again: Callable[[str, Graph], Graph]) -> Any:
    """Params with other nested graphs, by their names; the very same, if these are."""
    old = dict(named_graphs(params))
    inner = {name: again(name, g) for name, g in old.items()}
    is_new = any(inner[name] is not g for name, g in old.items())
    return replace(params, **inner) if is_new else params


def change_loops(graph: Graph, again: Again) -> Graph:
    """The graph with each loop by what `again` gives for it, if anything."""

    def changed(graph: Graph, known: Assumptions) -> Graph:
        def change(block: Block, n: Node, args: tuple[Node, ...]) -> tuple[Node, None]:
            params = with_bodies(n, known, changed)
            if isinstance(params, Loop) and len(args) == len(params.body.inputs):
                params = again(n, params, known) or params
            return block.add(n.op, args, params, n.type), None

        return change_control(graph, change)

    return changed(graph, Assumptions.given(graph.guards))


def with_inputs(body: Graph, types: Sequence[TensorType], use: Use) -> Graph:
    """A body with more inputs, which may be used in place of some of its nodes."""
    block = Block()
    new = {i: block.add(kinds.INPUT, (), i.params, i.type) for i in body.inputs}
    count = len(body.inputs)
    more = [block.add(kinds.INPUT, (), count + k, type_) for k, type_ in enumerate(types)]
    for n in body.nodes:
        block.where = n.where
        if n not in new:
            used = use(block, n, new, more)
            new[n] = used or block.add(n.op, [new[a] for a in n.args], n.params, n.type)
    outputs = [new[n] for n in body.outputs]
    writes = [(k, new[n]) for k, n in body.writes]
    inputs = [*(new[i] for i in body.inputs), *more]
    return Graph.of(block, inputs, outputs, writes, body.sources)
