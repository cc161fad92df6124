"""Building blocks of gradient rules: products and quotients in which a zero upstream gradient wins.

A branch that `where` did not take gets an upstream gradient of exactly 0, and its local derivative
may be infinite or NaN there. `0 * inf` and `0 / 0` must then be 0. `gate(g, r)` is `r`, but 0 where
`g` is 0; since every `r` here is linear in `g`, its own derivative passes straight through, so that
second derivatives at a zero of the gradient stay right.

    sqrt: vjp=lambda g, y, x: [over(0.5 * g, y)]      # finite at x == 0 when g == 0

The rules follow the convention dL/dx + i dL/dy: a holomorphic f gives g * conj(f'(x)).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.dtypes import c_name
from npjit.core.graph import Node
from npjit.core.op import Kind
from npjit.ops import build, kinds
from npjit.ops.tracer import Tracer, fresh


def _gate_text(params: Any, args: Any, result: np.dtype[Any]) -> str:
    return f"nj_select(nj_cast<b1>({{0}}), {{1}}, nj_cast<{c_name(result)}>(0))"


def _gate_planes(params: Any, args: Any, result: np.dtype[Any]) -> tuple[str, str]:
    """By masks: of a ? b : c with complex loads in c, g++ 12 makes vector code that is wrong."""
    none = f"(f{4 * result.itemsize})0"
    is_zero = "(b1)(({0r} == 0) & ({0i} == 0))"
    return f"nj_select({is_zero}, {none}, {{1r}})", f"nj_select({is_zero}, {none}, {{1i}})"


def _gate_vjp(g: Any, y: Any, upstream: Any, value: Any) -> list[Any]:
    return [None, g]


kinds.elementwise(
    lambda upstream, value: np.where(upstream == 0, value.dtype.type(0), value),
    _gate_text,
    name="gate",
    complex_c=_gate_planes,
    vjp=_gate_vjp,
)


def gate(g: Tracer, value: Tracer) -> Tracer:
    """`value`, but 0 where g is 0; `value` must be linear in g."""
    upstream = constant_value(g.node)
    if upstream is not None and upstream != 0:
        return value
    block = g.block
    nodes = [build.cast(block, g.node, value.dtype), value.node]
    return fresh(block, build.apply(block, kinds.ROWS["gate"], nodes, value.dtype))


def scaled(g: Tracer, factor: Any) -> Tracer:
    """g * conj(factor), 0 where g is 0."""
    product = g * np.conj(factor)
    known = constant_value(factor.node) if type(factor) is Tracer else factor
    if known is not None and np.isfinite(known):
        return product
    return gate(g, product)


def over(g: Tracer, divisor: Any) -> Tracer:
    """g / conj(divisor), 0 where g is 0."""
    quotient = g / np.conj(divisor)
    known = constant_value(divisor.node) if type(divisor) is Tracer else divisor
    if known is not None and np.isfinite(known) and known != 0:
        return quotient
    return gate(g, quotient)


def constant_value(node: Node) -> Any:
    """The one number that all elements are, when that is known while tracing; else None."""
    if node.op.kind is Kind.VIEW:
        node = node.args[0]
    return node.params.value if node.op.kind is Kind.CONST else None
