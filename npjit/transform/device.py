"""Graphs as GPUs want them: products of narrow types, attention and its gradients as rows.

In: a graph after all other passes. Out: the same values, by other nodes. A product of numbers of 16
bits is exact in float32, so that the tensor cores may take the numbers as they are; and a sum that
is rounded to 16 bits at once is written so:

    %2 = cast %0        f32                   %5 = contract %0 %1     bf16 of bf16
    %3 = cast %1        f32            ->
    %4 = contract %2 %3
    %5 = cast %4        bf16
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from npjit.core.assume import Assumptions
from npjit.core.dtypes import accumulator_of
from npjit.core.graph import Block, Graph, Node, named_graphs
from npjit.core.op import Kind
from npjit.core.rebuild import rebuild
from npjit.ops.attention import ATTENTION, as_attention, narrow
from npjit.ops.attention_gradient import gradients_in
from npjit.ops.places import PLACES, by_scatter


def for_device(graph: Graph) -> Graph:
    """See the module's docstring."""
    forward = _rewritten(graph)
    both = _with_gradients(forward)
    # without the gradients' uses of its weights the forward pass may be the row, too
    return _rounded_at_once(forward if both is forward else _rewritten(both))


def _rewritten(graph: Graph) -> Graph:
    """Everything but gradients."""
    users = graph.users()
    kept = {*graph.outputs, *(n for _, n in graph.writes)}

    def is_alone(n: Node) -> bool:
        return n not in kept and len(users[n]) == 1

    def rewritten(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        inner = named_graphs(n.params)
        if inner:
            params = replace(n.params, **{name: for_device(g) for name, g in inner})
            return block.add(n.op, args, params, n.type)
        if n.op is PLACES:
            return by_scatter(block, args[0])
        if n.op.kind is Kind.CONTRACT:
            return _product(block, n, args, is_alone)
        return None

    return rebuild(graph, rewritten)


def _rounded_at_once(graph: Graph) -> Graph:
    """Results that are rounded to their operands' type and nothing else are written so."""
    users = graph.users()
    kept = {*graph.outputs, *(n for _, n in graph.writes)}

    def rewritten(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if not n.op.conversion or n.args[0] in kept or len(users[n.args[0]]) != 1:
            return None
        made = args[0]
        if made.op is not ATTENTION and made.op.kind is not Kind.CONTRACT:
            return None
        if n.dtype != made.args[0].dtype or made.dtype != accumulator_of(n.dtype):
            return None
        return block.add(made.op, made.args, made.params, n.type)

    return rebuild(graph, rewritten)


def _product(
    block: Block, n: Node, args: tuple[Node, ...], is_alone: Callable[[Node], bool]
) -> Node:
    """A contraction of narrow operands, or the row that it is the end of."""
    short = tuple(narrow(block, a) for a in args)
    if short[0].dtype == short[1].dtype:
        args = short
    if is_alone(n.args[0]) and n.dtype == accumulator_of(n.dtype):
        found = as_attention(block, (args[0], short[1]), n.params, n.shape)
        if found is not None:
            return found
    return block.add(n.op, args, n.params, n.type)


def _with_gradients(graph: Graph) -> Graph:
    """The gradients of attention as one row, in front of the first product that it replaces."""
    block = Block(Assumptions.given(graph.guards))
    copies: dict[Node, Node] = {}
    for n in graph.nodes:
        block.where = n.where
        copies[n] = block.add(n.op, tuple(copies[a] for a in n.args), n.params, n.type)
    nodes = list(block.nodes)
    replaced = gradients_in(block)
    if not replaced:
        return graph
    final = Block(Assumptions.given(graph.guards))
    new: dict[Node, Node] = {}

    def emitted(n: Node) -> Node:
        n = replaced.get(n, n)
        if n not in new:
            args = tuple(map(emitted, n.args))
            final.where = n.where
            new[n] = final.add(n.op, args, n.params, n.type)
        return new[n]

    for n in nodes:
        emitted(n)
    return Graph.of(
        final,
        [emitted(copies[n]) for n in graph.inputs],
        [emitted(copies[n]) for n in graph.outputs],
        [(i, emitted(copies[n])) for i, n in graph.writes],
        graph.sources,
    )
