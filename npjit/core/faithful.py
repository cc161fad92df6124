"""Text that tells any two different graphs apart: what keys of the disk cache are made of.

In: a graph, or anything that stands in one. Out: one text. Unlike `str(graph)`, which is for
people, it shows constants by their bits, variables with their bounds, and nested graphs in full.

    >>> faithful((1, "1", -0.0))
    "(1,'1',-0.0)"
"""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any

import numpy as np

from npjit.core.graph import Graph, Node
from npjit.core.size import Expr, Var, text

# NaNs of any payload look alike as Python floats: constants are Literals, which hold bytes
_SHOWN_WHOLE = (str, bytes, int, float, complex, slice, range, type, Enum, np.dtype, np.generic)


def faithful(value: Any) -> str:
    """The text of a graph or of anything that stands in one."""
    if isinstance(value, Graph):
        return _graph(value)
    if isinstance(value, Expr):
        return text(value)
    if isinstance(value, Var):
        return f"{value.name}[{value.lo},{value.hi}]"
    if isinstance(value, (tuple, list)):
        return f"({','.join(faithful(v) for v in value)})"
    if isinstance(value, dict):
        return f"{{{','.join(f'{faithful(k)}:{faithful(v)}' for k, v in value.items())}}}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [faithful(getattr(value, f.name)) for f in dataclasses.fields(value)]
        return f"{type(value).__name__}({','.join(fields)})"
    if value is None or isinstance(value, _SHOWN_WHOLE):
        return repr(value)
    raise TypeError(f"no text tells a {type(value).__name__} from every other one")


def _graph(graph: Graph) -> str:
    number = {n: i for i, n in enumerate(graph.nodes)}
    lines = [_node(n, number) for n in graph.nodes]
    lines += [f"write {position} {number[n]}" for position, n in graph.writes]
    lines += [f"guard {g}" for g in graph.guards]
    lines += [f"{faithful(v)} = {s.axis} of {s.input}" for v, s in graph.sources.items()]
    inputs = ",".join(str(number[n]) for n in graph.inputs)
    outputs = ",".join(str(number[n]) for n in graph.outputs)
    return "\n".join([f"({inputs})->({outputs})", *lines])


def _node(n: Node, number: dict[Node, int]) -> str:
    args = " ".join(str(number[a]) for a in n.args)
    return f"{number[n]}:{n.type.weight.value} {n.type} {n.op.name} {args} {faithful(n.params)}"
