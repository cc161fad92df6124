"""Reverse mode over a block: adjoint nodes are appended to the block that holds the forward nodes.

`backward(block, output, seed, wrt)` gives one gradient node (or None: no influence) per node of
`wrt`. The block then holds one joint graph: forward values are shared by interning, and a second
derivative is the same pass again.

    %1 = sin %0                                  y = np.sum(np.sin(x))
    %2 = reduce_sum %1
    %3 = view 1.0                                appended by backward(block, %2, None, [%0])
    %4 = cos %0
    %5 = multiply %3 %4                          the gradient: [%5]

Loops and branches are passed as a whole (`npjit.transform.control_adjoints`), by a sweep of the
same sort through their bodies.

Gradients of complex values are dL/dx + i dL/dy; a real value that receives a complex one takes its
real part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npjit.core.dtypes import kind_of
from npjit.core.graph import Block, Node
from npjit.core.op import CONTROL, Kind
from npjit.core.size import text
from npjit.core.view import Along, View, identity
from npjit.ops import build, kinds
from npjit.ops.scatter import SCATTER_ADD
from npjit.ops.tracer import as_node
from npjit.transform.active import active
from npjit.transform.adjoints import adjoint, cell, emptied, sources, summed, wrap, zeros
from npjit.transform.control_adjoints import control_adjoint
from npjit.transform.embed import embed, is_box

# a view that leaves out so few elements of each axis is added as a whole array
MARGIN = 8


def backward(
    block: Block, output: Node, seed: Node | None, wrt: Sequence[Node]
) -> list[Node | None]:
    """The gradient of `output`, a real scalar, for each node of `wrt`, times `seed` (None: 1).

    What a node of `wrt` was itself computed from counts as constant, unless it is in `wrt` too.
    """
    require_scalar(output)
    one = build.constant(block, 1, output.dtype)
    return pull_back(block, [(output, one if seed is None else seed)], wrt)


def pull_back(
    block: Block, seeded: Sequence[tuple[Node, Node]], wrt: Sequence[Node]
) -> list[Node | None]:
    """For each node of `wrt` what reaches it of the gradients that are given for other nodes."""
    sweep = Sweep(block, active(block, [node for node, _ in seeded], set(wrt)))
    for node, seed in seeded:
        if node in sweep.path:
            sweep.add(node, seed)
    sweep.run()
    return [sweep.gradient(n) for n in wrt]


def require_scalar(output: Node) -> None:
    """TypeError unless the node is a real floating scalar."""
    if output.shape:
        shown = ", ".join(text(n) for n in output.shape) + ("," if len(output.shape) == 1 else "")
        raise TypeError(f"grad needs a scalar output, got shape ({shown})")
    if kind_of(output.dtype) != "f":
        raise TypeError(f"grad needs a real floating output, got dtype {output.dtype}")


class Sweep:
    """Gradients on their way back through a block: `found` grows from the last node to the first.

    `path` are the nodes to pass, in program order. The gradient of a node in `stored` is the latest
    version of a buffer that belongs to it alone: what comes to it is added in place. That waits
    until the gradient is read (`gradient`), so that several parts are added in one pass over the
    buffer, and what has been read from it is used before it is overwritten.
    """

    def __init__(self, block: Block, path: dict[Node, None], inside: bool = False) -> None:
        self.block = block
        # whether the block is the body of a loop or branch
        self.inside = inside
        self.path = path
        self.found: dict[Node, Node] = {}
        self.stored: set[Node] = set()
        # of stored gradients: where zeros have to be put first, and what has to be added then
        self._emptied: dict[Node, View] = {}
        self._parts: dict[Node, list[tuple[Node, View]]] = {}

    def nested(self, path: dict[Node, None]) -> Sweep:
        """A sweep through the body of a loop or branch."""
        return Sweep(self.block, path, inside=True)

    def run(self) -> None:
        """Pass every node of the path."""
        for node in reversed(self.path):
            if node.op.kind in CONTROL:
                control_adjoint(self, node)
            elif node in self.found and self._goes_on(node):
                self._pass(node)

    def _goes_on(self, node: Node) -> bool:
        """Whether the node passes its gradient on; results of control nodes are passed together."""
        is_result = node.op.kind is Kind.RESULT and node.args[0].op.kind in CONTROL
        return not is_result and any(a in self.path for a in sources(node))

    def settle(self, nodes: Sequence[Node]) -> None:
        """Bring these gradients up to date: first those to which parts of the others are added."""
        for n in sorted(nodes, key=lambda n: n not in self._parts):
            self.gradient(n)

    def gradient(self, node: Node) -> Node | None:
        """The node's gradient so far."""
        block = self.block
        emptied = self._emptied.pop(node, None)
        if emptied is not None:
            none = zeros(block, emptied.shape, node.dtype)
            self._update(node, none, emptied)
        parts = self._parts.pop(node, [])
        large = [(g, v) for g, v in parts if _is_most(v)]
        if len(large) > 1:
            parts = [p for p in parts if p not in large]
            wide = [embed(block, g, v) for g, v in large]
            parts.append((self._sum([n for n in wide if n is not None]), identity(node.shape)))
        for g, v in parts:
            self._update(node, self._sum([build.view(block, self.found[node], v), g]), v)
        return self.found.get(node)

    def _sum(self, nodes: Sequence[Node]) -> Node:
        total: Any = wrap(self.block, nodes[0])
        for n in nodes[1:]:
            total = np.add(total, wrap(self.block, n))
        return as_node(self.block, total)

    def _update(self, node: Node, value: Node, v: View) -> None:
        """The gradient's next version."""
        before = self.found[node]
        value = build.stretch(self.block, value, v.shape)
        self.found[node] = self.block.add(kinds.UPDATE, (before, value), v, before.type)

    def add(self, node: Node, value: Node) -> None:
        """Add to the node's gradient, in the node's own element type and shape."""
        block = self.block
        if value.dtype.kind == "c" and node.dtype.kind != "c":
            value = as_node(block, np.real(wrap(block, value)))
        value = build.stretch(block, build.cast(block, value, node.dtype), node.shape)
        if node in self.stored:
            self._parts.setdefault(node, []).append((value, identity(node.shape)))
        elif node in self.found:
            self.found[node] = self._sum([self.found[node], value])
        else:
            self.found[node] = value

    def _pass(self, node: Node) -> None:
        """Pass one node; what is made for it carries its user's line."""
        start = len(self.block.nodes)
        g = self.gradient(node)
        assert g is not None
        if not self._in_place(node, g):
            for argument, value in self._pull(node, g):
                self.add(argument, value)
        for made in self.block.nodes[start:]:
            made.where = node.where

    def _pull(self, node: Node, g: Node) -> list[tuple[Node, Node]]:
        """Gradients that `node` passes to its active arguments."""
        given = sources(node)
        wanted = tuple(a in self.path for a in given)
        gradients = adjoint(self.block, node, g, wanted)
        return [
            (a, value)
            for a, want, value in zip(given, wanted, gradients, strict=True)
            if want and value is not None
        ]

    def _in_place(self, node: Node, g: Node) -> bool:
        """Pass the node by updates of a buffer, where a gradient has one."""
        base = node.args[0] if node.args else node
        kind = node.op.kind
        if kind is Kind.VIEW and base in self.stored:
            self._parts.setdefault(base, []).append(summed(self.block, g, node.params))
        elif kind is Kind.GATHER and base in self.stored:
            before = self.gradient(base)
            assert before is not None
            into = (before, g, *node.args[1:])
            self.found[base] = self.block.add(SCATTER_ADD, into, node.params, before.type)
        elif kind is Kind.UPDATE and node in self.stored and base in self.path:
            self._take(node, g, base)
        elif kind is Kind.SCATTER and node in self.stored and base in self.path:
            for argument, value in self._pull(node, g):
                if argument is not base:
                    self.add(argument, value)
            self._go_on(base, emptied(self.block, node, g))
        else:
            return False
        return True

    def _take(self, node: Node, g: Node, base: Node) -> None:
        """The gradient of stored elements is read where they are; then it is zero there."""
        value, v = node.args[1], node.params
        if value in self.path:
            part = build.view(self.block, g, v)
            self.add(value, cell(self.block, part) if part is g else part)
        self._go_on(base, g)
        self._emptied[base] = v

    def _go_on(self, base: Node, buffer: Node) -> None:
        """An earlier version of an array takes over the buffer of a later one's gradient."""
        before = self.gradient(base)
        self.found[base] = buffer
        self.stored.add(base)
        if before is not None:
            self.add(base, before)


def _is_most(v: View) -> bool:
    """Whether a view shows nearly all of its base, in order."""
    spare = [
        n - v.shape[d.axis] if isinstance(d, Along) and d.step == 1 else None
        for d, n in zip(v.dims, v.base, strict=True)
    ]
    return is_box(v) and all(isinstance(n, int) and n <= MARGIN for n in spare)
