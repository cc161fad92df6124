"""Sizes in a node's params and type written another way.

In: params (views, loops with their nested graphs, tuples of sizes) and a function of one size. Out:
the same with every size replaced.

    respelled(View [i, @0], {i: n - 1 - j})    ->   View [n - 1 - j, @0]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from npjit.core.control import Cond, Loop, While
from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.op import Bind
from npjit.core.rebuild import rebuild
from npjit.core.size import Expr, Size
from npjit.core.view import Along, At, View

Spell = Callable[[Size], Size]


def respelled(value: Any, spell: Spell) -> Any:
    """The value with every size in it replaced."""
    if isinstance(value, Expr):
        return spell(value)
    if isinstance(value, tuple):
        return tuple(respelled(v, spell) for v in value)
    if isinstance(value, Graph):
        return _graph(value, spell)
    if isinstance(value, View | At | Along | Loop | While | Cond | Bind):
        parts = {f.name: respelled(getattr(value, f.name), spell) for f in fields(value)}
        return replace(value, **parts)
    return value


def respelled_type(type_: TensorType, spell: Spell) -> TensorType:
    """The type with every extent replaced."""
    return replace(type_, shape=respelled(type_.shape, spell))


def _graph(graph: Graph, spell: Spell) -> Graph:
    def again(block: Block, n: Node, args: tuple[Node, ...]) -> Node:
        params = respelled(n.params, spell)
        return block.add(n.op, args, params, respelled_type(n.type, spell))

    return replace(rebuild(graph, again), guards=graph.guards)
