"""Values that are spread over more elements than they have move into the loops and branches that
read them.

In: a graph. Out: the same values, where a body gets what a broadcast view looks at, or a constant,
and makes the array itself. An argument of a loop or branch lies in memory: a number spread over a
matrix would be a matrix there, read in every trip.

    %2 = view %1 []   (a number as [n, n])      loop %0 %1 (s, c: s * view c [])
    %3 = loop %0 %2 (s, x: s * x)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from npjit.core.assume import Assumptions
from npjit.core.control import Cond
from npjit.core.graph import Block, Graph, Node, named_graphs
from npjit.core.op import CONTROL, Kind
from npjit.core.rebuild import rebuild
from npjit.ops import kinds


@dataclass(frozen=True)
class _Sunk:
    """An argument that the bodies make of argument number `source` (None: of nothing), the last
    node first."""

    chain: tuple[Node, ...]
    source: int | None


def sink(graph: Graph) -> Graph:
    """See the module's docstring."""
    if not any(n.op.kind in CONTROL for n in graph.nodes):
        return graph
    written = frozenset(position for position, _ in graph.writes)

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if n.op.kind not in CONTROL:
            return None
        first = 1 if isinstance(n.params, Cond) else 0
        graphs = named_graphs(n.params)
        # behind what the bodies take come values that only have to be computed before
        last = first + len(graphs[0][1].inputs)
        given = args[first:last]
        kept = {*range(getattr(n.params, "carried", 0)), *n.params.written}
        found = _arguments(given, kept, lambda a: _chain(a, written))
        if found is None:
            return None
        places, after = found
        bodies = {name: _made(g, places, after) for name, g in graphs}
        params = replace(n.params, **bodies)
        return block.add(n.op, (*args[:first], *after, *args[last:]), params, n.type)

    return rebuild(graph, rewrite)


def _chain(a: Node, written: frozenset[int]) -> tuple[Node, ...]:
    """The nodes, last one first, that a body can make again for nothing."""
    if a.op.kind is Kind.CONST:
        return (a,)
    if a.op.kind is not Kind.VIEW or len(a.args) > 1:
        return ()
    if len(a.params.axes_used()) == sum(size != 1 for size in a.shape):
        return ()
    source = a.args[0]
    if source.op.kind in (Kind.CELL, Kind.UPDATE, Kind.SCATTER, Kind.RESULT):
        return ()
    if source.op.kind is Kind.INPUT and source.params in written:
        return ()
    return (a, *_chain(source, written))


def _arguments(
    args: Sequence[Node], kept: set[int], chain_of: Callable[[Node], tuple[Node, ...]]
) -> tuple[list[int | _Sunk], list[Node]] | None:
    """Where the bodies find each argument, and the arguments then; None when nothing moves."""
    chains = [() if k in kept else chain_of(a) for k, a in enumerate(args)]
    if not any(chains):
        return None
    after = [a for a, chain in zip(args, chains, strict=True) if not chain]
    places: list[int | _Sunk] = []
    sources: dict[Node, int] = {}
    plain = 0
    for chain in chains:
        if not chain:
            places.append(plain)
            plain += 1
        elif chain[-1].op.kind is Kind.CONST:
            places.append(_Sunk(chain, None))
        else:
            source = chain[-1].args[0]
            if source not in sources:
                sources[source] = len(after)
                after.append(source)
            places.append(_Sunk(chain, sources[source]))
    return places, after


def _made(graph: Graph, places: Sequence[int | _Sunk], args: Sequence[Node]) -> Graph:
    """The body for these arguments."""
    block = Block(Assumptions.given(graph.guards))
    types = [a.type for a in args]
    for place, inner in zip(places, graph.inputs, strict=True):
        if isinstance(place, int):
            types[place] = inner.type
    inputs = [block.add(kinds.INPUT, (), k, t) for k, t in enumerate(types)]
    new: dict[Node, Node] = {}
    for place, inner in zip(places, graph.inputs, strict=True):
        if isinstance(place, int):
            new[inner] = inputs[place]
            continue
        made = [] if place.source is None else [inputs[place.source]]
        for n in reversed(place.chain):
            made = [block.add(n.op, made, n.params, n.type)]
        new[inner] = made[0]
    for n in graph.nodes:
        if n.op.kind is not Kind.INPUT:
            block.where = n.where
            new[n] = block.add(n.op, [new[a] for a in n.args], n.params, n.type)
    outputs = [new[n] for n in graph.outputs]
    writes = [(inputs.index(new[graph.inputs[p]]), new[last]) for p, last in graph.writes]
    return sink(Graph.of(block, inputs, outputs, writes, graph.sources))
