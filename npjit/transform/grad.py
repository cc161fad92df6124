"""Reverse mode over a block: adjoint nodes are appended to the block that holds the forward nodes.

`backward(block, output, seed, wrt)` gives one gradient node (or None: no influence) per node of
`wrt`. The block then holds one joint graph: forward values are shared by interning, and a second
derivative is the same pass again.

    %1 = sin %0                                  y = np.sum(np.sin(x))
    %2 = reduce_sum %1
    %3 = view 1.0                                appended by backward(block, %2, None, [%0])
    %4 = cos %0
    %5 = multiply %3 %4                          the gradient: [%5]

Gradients of complex values are dL/dx + i dL/dy; a real value that receives a complex one takes its
real part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npjit.core.graph import Block, Node, reachable
from npjit.core.op import CONTROL
from npjit.core.size import text
from npjit.ops import build
from npjit.ops.tracer import as_node
from npjit.transform.adjoints import adjoint, sources, wrap


def backward(
    block: Block, output: Node, seed: Node | None, wrt: Sequence[Node]
) -> list[Node | None]:
    """The gradient of `output`, a real scalar, for each node of `wrt`, times `seed` (None: 1).

    What a node of `wrt` was itself computed from counts as constant, unless it is in `wrt` too.
    """
    require_scalar(output)
    path = _active(block, output, set(wrt))
    found: dict[Node, Node] = {}
    if output in path:
        one = build.constant(block, 1, output.dtype)
        found[output] = one if seed is None else seed
    for node in reversed(path):
        # a wrt node that is computed from other wrt nodes keeps its gradient and passes it on
        if node in found and any(a in path for a in node.args):
            for argument, value in _pull(block, node, found[node], path):
                _accumulate(block, found, argument, value)
    return [found.get(n) for n in wrt]


def require_scalar(output: Node) -> None:
    """TypeError unless the node is a real floating scalar."""
    if output.shape:
        shown = ", ".join(text(n) for n in output.shape) + ("," if len(output.shape) == 1 else "")
        raise TypeError(f"grad needs a scalar output, got shape ({shown})")
    if output.dtype.kind != "f":
        raise TypeError(f"grad needs a real floating output, got dtype {output.dtype}")


def _active(block: Block, output: Node, wrt: set[Node]) -> dict[Node, None]:
    """Nodes through which `output` depends on `wrt` differentiably, in program order."""
    needed = reachable([output])
    path: dict[Node, None] = {}
    for n in block.nodes:
        # the type of a control node says nothing: its results come through further nodes
        if n not in needed or (n.dtype.kind not in "fc" and n.op.kind not in CONTROL):
            continue
        if n in wrt or any(a in path for a in n.args):
            path[n] = None
    return path


def _pull(block: Block, node: Node, g: Node, path: dict[Node, None]) -> list[tuple[Node, Node]]:
    """Gradients that `node` passes to its active arguments; new nodes carry its user's line."""
    start = len(block.nodes)
    given = sources(node)
    wanted = tuple(a in path for a in given)
    gradients = adjoint(block, node, g, wanted)
    for made in block.nodes[start:]:
        made.where = node.where
    return [
        (a, value)
        for a, want, value in zip(given, wanted, gradients, strict=True)
        if want and value is not None
    ]


def _accumulate(block: Block, found: dict[Node, Node], node: Node, value: Node) -> None:
    """Add to the node's gradient, in the node's own element type and shape."""
    if value.dtype.kind == "c" and node.dtype.kind != "c":
        value = as_node(block, np.real(wrap(block, value)))
    value = build.stretch(block, build.cast(block, value, node.dtype), node.shape)
    before = found.get(node)
    if before is not None:
        value = as_node(block, np.add(wrap(block, before), wrap(block, value)))
    found[node] = value
