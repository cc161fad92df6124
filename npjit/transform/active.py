"""Which nodes gradients pass: those between the outputs and what is differentiated for."""

from __future__ import annotations

from collections.abc import Sequence

from npjit.core.dtypes import kind_of
from npjit.core.graph import Block, Node, reachable
from npjit.core.op import CONTROL


def active(block: Block, outputs: Sequence[Node], wrt: set[Node]) -> dict[Node, None]:
    """Nodes through which the outputs depend on `wrt` differentiably, in program order."""
    needed = reachable(outputs)
    path: dict[Node, None] = {}
    for n in block.nodes:
        # the type of a control node says nothing: its results come through further nodes
        if n not in needed or (kind_of(n.dtype) not in "fc" and n.op.kind not in CONTROL):
            continue
        if n in wrt or any(a in path for a in n.args):
            path[n] = None
    return path
