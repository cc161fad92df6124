"""Matrices that loops in a loop read column by column are turned first, once.

In: a graph whose carried values are storage (see `carried`). Out: the same values, where a LOOP
gets such a matrix a second time, turned, if it does not write it. The inner loop goes through all
of it in each trip of the outer one, a cache line for each element; of the turned one it reads rows.

    loop i: loop k: c[i] += b[i, k] * a[:, k]
    t = turned a, loop i: loop k: c[i] += b[i, k] * t[k]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.op import CONTROL, Kind, Op
from npjit.core.rebuild import rebuild
from npjit.core.size import Var, atoms, linear
from npjit.core.view import Along, At, View, transpose

_TURNED = Op("turned", Kind.VIEW, lambda n, a: a.T)
_INPUT = Op("input", Kind.INPUT, lambda n: None)


def turn_matrices(graph: Graph) -> Graph:
    """See the module's docstring."""
    if not any(n.op.kind in CONTROL for n in graph.nodes):
        return graph

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if n.op.kind not in CONTROL:
            return None
        params = n.params
        if isinstance(params, Loop):
            places = _walked(params)
            made = [_turned(block, args[p]) for p in places]
            args = _with(args, len(params.body.inputs), made)
            params = replace(params, body=_body(params.body, places, None))
        inner = {k: turn_matrices(g) for k, g in vars(params).items() if isinstance(g, Graph)}
        return block.add(n.op, args, replace(params, **inner), n.type)

    return replace(rebuild(graph, rewrite), guards=graph.guards)


def _turned(block: Block, n: Node) -> Node:
    view = transpose(n.shape, (1, 0))
    return block.add(_TURNED, (n,), view, TensorType(view.shape, n.dtype))


def _with(args: tuple[Node, ...], inputs: int, more: list[Node]) -> tuple[Node, ...]:
    """Arguments with more of them behind those that are a body's inputs."""
    return (*args[:inputs], *more, *args[inputs:])


def _walked(loop: Loop) -> list[int]:
    """The inputs of a loop's body that a loop in it reads column by column."""
    fixed = (k for k in range(len(loop.body.inputs)) if k not in loop.written)
    return [k for k in fixed if _is_walked(loop.body, loop.body.inputs[k])]


def _is_walked(graph: Graph, source: Node) -> bool:
    for n in graph.nodes:
        if isinstance(n.params, Loop):
            body = n.params.body
            places = [k for k, a in enumerate(n.args[: len(body.inputs)]) if a is source]
            if any(k not in n.params.written and _walks(n.params, k) for k in places):
                return True
    return False


def _walks(loop: Loop, k: int) -> bool:
    """Whether a loop, or one in it, reads an input of its body column by column."""
    inner = loop.body.inputs[k]
    here = any(_is_column(n, inner, loop.index) for n in loop.body.nodes)
    return here or _is_walked(loop.body, inner)


def _is_column(n: Node, source: Node, index: Var) -> bool:
    """Whether a node is a column of the source, and in the next trip the next one."""
    if n.op.kind is not Kind.VIEW or n.args[0] is not source or len(n.params.dims) != 2:
        return False
    down, at = n.params.dims
    if not isinstance(down, Along) or not isinstance(at, At) or len(n.shape) != 1:
        return False
    if any(index in atoms(s) for s in (down.start, down.step, *n.shape)):
        return False
    return linear(at.index, index)[0] in (1, -1)


def _body(graph: Graph, places: list[int], index: Var | None) -> Graph:
    """A body with these inputs turned behind its own ones; `index` is that of its loop, if that is
    one that walks."""
    if not places:
        return graph
    block = Block()
    new: dict[Node, Node] = {}
    for n in graph.inputs:
        new[n] = Node(n.op, (), n.params, n.type, n.where)
    first = len(graph.inputs)
    turned: dict[Node, Node] = {}
    for k, p in enumerate(places):
        n = graph.inputs[p]
        type_ = TensorType(tuple(reversed(n.shape)), n.dtype)
        turned[n] = Node(_INPUT, (), first + k, type_, "")
    block.nodes += [*new.values(), *turned.values()]
    for n in graph.nodes:
        if n.op.kind is not Kind.INPUT:
            block.where = n.where
            args = tuple(new[a] for a in n.args)
            new[n] = _again(block, n, args, turned, index)
    writes = [(p, new[n]) for p, n in graph.writes]
    inputs = [new[n] for n in graph.inputs]
    return Graph.of(block, [*inputs, *turned.values()], [new[n] for n in graph.outputs], writes)


def _again(
    block: Block, n: Node, args: tuple[Node, ...], turned: Mapping[Node, Node], index: Var | None
) -> Node:
    if index is not None and n.args and n.args[0] in turned and _is_column(n, n.args[0], index):
        v: View = n.params
        rows = View(tuple(reversed(v.base)), tuple(reversed(v.dims)), v.shape)
        return block.add(n.op, (turned[n.args[0]], *args[1:]), rows, n.type)
    if not isinstance(n.params, Loop):
        return block.add(n.op, args, n.params, n.type)
    body = n.params.body
    fixed = [(k, a) for k, a in enumerate(n.args[: len(body.inputs)]) if k not in n.params.written]
    used = [(k, turned[a]) for k, a in fixed if a in turned and _walks(n.params, k)]
    params = replace(n.params, body=_body(body, [k for k, _ in used], n.params.index))
    return block.add(n.op, _with(args, len(body.inputs), [t for _, t in used]), params, n.type)
