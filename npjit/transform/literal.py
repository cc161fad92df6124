"""Nodes whose elements are all one constant: a CONST, or a view of one.

literal_of(view 1.0)  ->  Literal of 1.0
"""

from __future__ import annotations

from npjit.core.graph import Node
from npjit.core.op import Kind, Literal


def literal_of(node: Node) -> Literal | None:
    """The constant that every element of the node is; None when there is no such."""
    if node.op.kind is Kind.VIEW:
        node = node.args[0]
    return node.params if node.op.kind is Kind.CONST else None


def is_zero(literal: Literal | None) -> bool:
    """Whether it is the zero that padding puts in; -0.0 is not."""
    return literal is not None and not any(literal.data)
