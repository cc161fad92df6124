"""What loops carry and branches give becomes storage that their bodies write.

In: a graph. Out: the same graph, where the bodies of LOOP, WHILE and COND nodes have no outputs any
more. A carried value is a cell that the body updates at the end of a trip, a result of a branch is
a cell that both branches write; RESULT nodes keep their numbers. What is left to schedule are
arrays that a body reads and arrays that it writes in place.

    %2 = loop %0 %1 (s, x -> s + x[i])      %2 = storage %0
                                            %3 = loop %2 %1 (s, x: s[...] = s + x[i])
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from npjit.core.control import Cond, Loop, While
from npjit.core.graph import Block, Graph, Node, TensorType, Weight
from npjit.core.op import CONTROL, Kind, Op
from npjit.core.rebuild import rebuild

STORAGE = Op(
    "storage", Kind.CELL, lambda n, *a: a[0] if a else np.zeros(n.shape, n.dtype), fresh=True
)
_INPUT = Op("input", Kind.INPUT, lambda n: None)
# what runs as a step of its own and reads its arguments from memory
_STEPS = CONTROL | {Kind.BIND, Kind.CHECK}
_VERSIONS = frozenset([Kind.INPUT, Kind.CELL, Kind.UPDATE, Kind.RESULT])


def settle(graph: Graph) -> Graph:
    """The graph with all carried values in storage."""
    return rebuild(graph, _rewrite) if has_control(graph) else graph


def has_control(graph: Graph) -> bool:
    """Whether any step of the graph holds nested graphs."""
    return any(n.op.kind in CONTROL for n in graph.nodes)


def _rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
    if n.op.kind not in _STEPS:
        return None
    args = tuple(in_cell(block, a) if is_scalar_input(a) else a for a in args)
    params = n.params
    if isinstance(params, Loop | While):
        args = _stored(block, args, range(params.carried), params.written)
        params = replace(params, body=_settled(params.body), carried=0)
        if isinstance(params, While):
            params = replace(params, test=_settled(params.test, keep=True))
    elif isinstance(params, Cond):
        results = params.then.outputs
        inputs = _stored(block, args[1:], (), params.written)
        args = (args[0], *(_empty(block, r) for r in results), *inputs)
        params = Cond(_settled(params.then, results), _settled(params.other, results))
    return block.add(n.op, args, params, n.type)


def is_scalar_input(n: Node) -> bool:
    """A scalar that the caller passes has no memory of its own."""
    return n.op.kind is Kind.INPUT and n.type.weight is not Weight.ARRAY


def _stored(
    block: Block, args: Sequence[Node], carried: Collection[int], written: Collection[int]
) -> tuple[Node, ...]:
    """The arguments, what the body writes being cells; carried values get one of their own."""
    found = list(args)
    for k, a in enumerate(args):
        if k in carried or (k in written and a.op.kind not in _VERSIONS):
            found[k] = in_cell(block, a)
    return tuple(found)


def in_cell(block: Block, n: Node) -> Node:
    """A value in storage of its own."""
    return block.add(STORAGE, (n,), len(block.nodes), TensorType(n.shape, n.dtype))


def _empty(block: Block, like: Node) -> Node:
    return block.add(STORAGE, (), len(block.nodes), TensorType(like.shape, like.dtype))


def _settled(graph: Graph, results: Sequence[Node] = (), keep: bool = False) -> Graph:
    """A nested graph whose outputs are written to its first inputs (`keep`: are left alone); new
    ones for `results`."""
    block = Block()
    first = len(results)
    given = [Node(_INPUT, (), k, TensorType(r.shape, r.dtype), "") for k, r in enumerate(results)]
    block.nodes += given
    new: dict[Node, Node] = {}
    for n in graph.nodes:
        if n.op.kind is Kind.INPUT:
            new[n] = Node(n.op, (), first + n.params, TensorType(n.shape, n.dtype), n.where)
            block.nodes.append(new[n])
            continue
        args = tuple(new[a] for a in n.args)
        block.where = n.where
        new[n] = _rewrite(block, n, args) or block.add(n.op, args, n.params, n.type)
    outputs = [new[n] for n in graph.outputs]
    writes = [(first + p, new[last]) for p, last in graph.writes]
    if not keep:
        outputs, writes = [], [*enumerate(outputs), *writes]
    return Graph.of(block, [*given, *(new[n] for n in graph.inputs)], outputs, writes)
