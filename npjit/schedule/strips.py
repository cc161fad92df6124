"""Loops over slices that lie apart in memory run strip by strip, each strip through all trips.

In: a graph whose carried values are storage (see `carried`). Out: the same values, where a LOOP
that works on columns is two loops: an outer one over strips of rows, and the old one on one strip.
What a strip reads and writes stays in the cache from one trip to the next, and so each cache line
comes from memory once instead of once for each of its elements.

    loop k < n (c: c[:, k] = f(c[:, k - 1], a[:, k]))
    loop s < strips: loop k < n (c: c[s:s+B, k] = f(c[s:s+B, k - 1], a[s:s+B, k]))

Nobody can tell when an axis runs through everything that the loop writes: each array that is
written is read and written along it at just the same positions, nothing reduces over it, no number
is carried, and neither the trips nor any condition depends on it. What is only read may be read
anywhere. Jacobi's, Gauss-Seidel's and Floyd and Warshall's loops have no such axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, every_node, named_graphs
from npjit.core.op import CONTROL, Kind, Op
from npjit.core.rebuild import rebuild
from npjit.core.size import Var, as_size, floordiv, smin
from npjit.schedule.joined import join_loops
from npjit.schedule.narrow import Narrow
from npjit.schedule.through import Refused, Through, explicit

_RESULT = Op("result", Kind.RESULT, lambda n, results: results[n.params])


def cut_in_strips(graph: Graph) -> Graph:
    """The graph with every loop cut in strips that gains by it, neighbouring ones together."""
    if not any(n.op.kind in CONTROL for n in graph.nodes):
        return graph
    return replace(rebuild(join_loops(graph, _fits), _rewritten), guards=graph.guards)


def _fits(loop: Loop) -> bool:
    return next(_strips_of(loop), None) is not None


def _rewritten(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
    if n.op.kind not in CONTROL:
        return None
    params = n.params
    strip = next(_strips_of(params), None) if isinstance(params, Loop) else None
    if strip is not None:
        params = _loop_of_loops(strip, n)
    else:
        inner = {name: cut_in_strips(g) for name, g in named_graphs(params)}
        params = replace(params, **inner)
    return block.add(n.op, args, params, n.type)


def _strips_of(loop: Loop) -> Iterator[Through]:
    """The ways in which the loop can be cut: one for each extent of what it writes."""
    if loop.stops or not loop.written or not _is_plain(loop):
        return
    loop = replace(loop, body=explicit(loop.body))
    shapes = [n.params.shape for n in every_node(loop.body) if n.op.kind is Kind.UPDATE]
    for extent in dict.fromkeys(n for shape in shapes for n in shape):
        strip = Through(loop, extent)
        try:
            strip.find()
        except Refused:
            continue
        if strip.shared and not strip.is_one:
            yield strip


def _is_plain(loop: Loop) -> bool:
    """Whether there is no control but branches in the body, and in joined loops loops like that."""
    found = [n for n in every_node(loop.body) if n.op.kind in CONTROL - {Kind.COND}]
    if not found:
        return True
    is_joined = loop.trips == 1 and all(n in loop.body.nodes for n in found)
    return is_joined and all(n.op.kind is Kind.LOOP and not n.params.stops for n in found)


def _loop_of_loops(strip: Through, n: Node) -> Loop:
    """The loop over strips, whose body is the old loop on one strip, or its one trip."""
    old, rows = strip.loop, strip.rows
    index = Var(f"{old.index.name}s", 0)
    offset = rows * as_size(index)
    strips = floordiv(strip.extent + rows - 1, rows)
    body = Narrow(strip, offset, smin(rows, strip.extent - offset)).graph(old.body)
    if old.trips == 1:
        return Loop(body, 0, index, strips)
    block = Block()
    inputs = [Node(i.op, (), i.params, i.type, i.where) for i in old.body.inputs]
    block.nodes += inputs
    loop = block.add(n.op, tuple(inputs), replace(old, body=body), n.type)
    finals = [
        (p, block.add(_RESULT, (loop,), k, inputs[p].type)) for k, p in enumerate(old.written)
    ]
    return Loop(Graph.of(block, inputs, [], finals), 0, index, strips)
