"""The adjoint of each kind of node: from the gradient of its result to the gradients of its
arguments.

`adjoint(block, node, g, wanted)` gives one node or None per argument; only those that `wanted`
marks are used. Rows bring their own rule (`Op.vjp`); movement, storage and contractions have one
rule for the whole kind.

    y = x[1:-1]  ->  the gradient of x is g with a zero put on each side (PAD)
    y = x.T      ->  the gradient of x is g.T (VIEW)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.op import Kind
from npjit.core.size import Shape
from npjit.core.view import Along, Cut, View
from npjit.ops import build, kinds
from npjit.ops.cell import Cell
from npjit.ops.control import results
from npjit.ops.scatter import SCATTER_ADD
from npjit.ops.tracer import Tracer, as_node
from npjit.transform.embed import embed

Gradients = Sequence[Node | None]
Wanted = tuple[bool, ...]
Adjoint = Callable[[Block, Node, Node, Wanted], Gradients]


class NotDifferentiable(TypeError):
    """An op on the way from the arguments to the output has no derivative rule."""


def adjoint(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    """The gradients of the node's `sources`, given that of its result."""
    rule = _ADJOINTS.get(node.op.kind)
    if rule is None:
        raise _missing(node)
    gradients = rule(block, node, g, wanted)
    # further arguments are indices, which have none
    return [*gradients, *[None] * (len(sources(node)) - len(gradients))]


def sources(node: Node) -> tuple[Node, ...]:
    """The nodes that get a node's gradients: its arguments, or those of the call it is a result
    of.
    """
    return node.args[0].args if node.op.kind is Kind.RESULT else node.args


def wrap(block: Block, node: Node) -> Tracer:
    """A node as derivative rules see it: an array or a NumPy scalar, never a Python number."""
    return Tracer(Cell(block, node), None, Weight.ARRAY if node.shape else Weight.SCALAR)


def zeros(block: Block, shape: Shape, dtype: np.dtype[Any]) -> Node:
    """Zeros: one constant element, broadcast."""
    return build.broadcast(block, build.constant(block, 0, dtype), shape)


def _missing(node: Node) -> NotDifferentiable:
    where = f" ({node.where})" if node.where else ""
    return NotDifferentiable(f"{node.op.name} has no derivative rule{where}")


# ---------------------------------------------------------------- rows with a rule of their own


def _elementwise(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    if node.op.flat:
        return [None] * len(node.args)
    if node.op.vjp is None:
        raise _missing(node)
    args = [wrap(block, a) for a in node.args]
    return _nodes(block, node.op.vjp(wrap(block, g), wrap(block, node), *args))


def _reduce(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    if node.op.flat:
        return [None]
    if node.op.vjp is None:
        raise _missing(node)
    (x,) = node.args
    kept = [axis for axis in range(len(x.shape)) if axis not in node.params]
    back = View(node.shape, tuple(Along(0, 1, axis) for axis in kept), x.shape)
    wide = [wrap(block, build.view(block, n, back)) for n in (g, node)]
    return _nodes(block, node.op.vjp(*wide, wrap(block, x), node.params))


def _whole(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    """Rows on whole arrays."""
    if node.op.flat:
        return [None] * len(node.args)
    if node.op.vjp is None:
        raise _missing(node)
    args = [wrap(block, a) for a in node.args]
    return _nodes(block, node.op.vjp(node.params, wrap(block, g), wrap(block, node), *args))


def _result(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    """One of several results contributes to the gradients of their common arguments."""
    (call,) = node.args
    if call.op.flat:
        return [None] * len(call.args)
    if call.op.vjp is None:
        raise _missing(call)
    args = [wrap(block, a) for a in call.args]
    types = call.op.types(call.params, *(a.type for a in call.args))
    every = [wrap(block, n) for n in results(block, call, types)]
    found = call.op.vjp(call.params, node.params, wrap(block, g), every, *args)
    return _nodes(block, found)


def _nodes(block: Block, values: Sequence[Any]) -> Gradients:
    return [None if v is None else as_node(block, v) for v in values]


# ---------------------------------------------------------------- movement


def _view(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    g, v = summed(block, g, node.params)
    return [embed(block, g, v) or _scattered(block, g, v)]


def summed(block: Block, g: Node, v: View) -> tuple[Node, View]:
    """The gradient under a view summed over broadcast axes, and the view without them."""
    g = _sum_axes(block, g, [i for i in _unused(v) if v.shape[i] != 1])
    return g, replace(v, shape=g.shape)


def _unused(v: View) -> list[int]:
    return [i for i in range(len(v.shape)) if i not in v.axes_used()]


def _sum_axes(block: Block, g: Node, axes: list[int]) -> Node:
    """The sum over broadcast axes, which stay with extent 1."""
    if not axes:
        return g
    return as_node(block, np.sum(wrap(block, g), axis=tuple(axes), keepdims=True))


def _scattered(block: Block, g: Node, v: View) -> Node:
    """The adjoint of any view that takes no element twice: g stored through the view into zeros."""
    target = cell(block, zeros(block, v.base, g.dtype))
    return block.add(kinds.UPDATE, (target, g), v, target.type)


def cell(block: Block, node: Node) -> Node:
    """The node's value in a buffer of its own."""
    return block.add(kinds.CELL, (node,), len(block.nodes), TensorType(node.shape, node.dtype))


def _reshape(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    return [build.reshape(block, g, node.args[0].shape)]


def _pad_adjoint(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    x = node.args[0]
    cuts = [Cut(before, 1, n) for (before, _), n in zip(node.params, x.shape, strict=True)]
    return [build.view(block, g, views.index(node.shape, cuts))]


def _gather(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    base, *indices = node.args
    type_ = TensorType(base.shape, g.dtype)
    start = cell(block, zeros(block, base.shape, g.dtype))
    added = block.add(SCATTER_ADD, (start, g, *indices), node.params, type_)
    return [added]


def _scatter(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    """The gradient of what was added or stored there is read from there."""
    assert node.op.reduction is not None
    style = node.op.reduction.style
    if style not in ("sum", "last"):
        raise _missing(node)
    _, value, *indices = node.args
    picked = _gathered(block, g, value.shape, node)
    if style == "sum":
        return [g, picked]
    rest = emptied(block, node, cell(block, g))
    # of the values that met in one place the last one has stayed
    count = build.iota(block, build.element_count(value.shape))
    number = build.reshape(block, count, value.shape)
    start = cell(block, zeros(block, node.shape, number.dtype))
    type_ = TensorType(node.shape, number.dtype)
    last = block.add(node.op, (start, number, *indices), node.params, type_)
    stayed = wrap(block, _gathered(block, last, value.shape, node)) == wrap(block, number)
    none = zeros(block, value.shape, g.dtype)
    return [rest, build.select(block, stayed.node, picked, none)]


def emptied(block: Block, node: Node, buffer: Node) -> Node:
    """A gradient's buffer without what belongs to the values that a SCATTER has put in place of
    others.
    """
    assert node.op.reduction is not None
    if node.op.reduction.style == "sum":
        return buffer
    _, value, *indices = node.args
    none = zeros(block, value.shape, buffer.dtype)
    return block.add(node.op, (buffer, none, *indices), node.params, buffer.type)


def _gathered(block: Block, base: Node, shape: Shape, scatter: Node) -> Node:
    """What a base holds where a scatter has stored."""
    type_ = TensorType(shape, base.dtype)
    return block.add(kinds.GATHER, (base, *scatter.args[2:]), scatter.params, type_)


# ---------------------------------------------------------------- storage


def _same(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    return [g]


def _update(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    """The new elements' gradient is read through the view; the old elements there have none."""
    base, value = node.args[:2]
    v: View = node.params
    for_value = build.view(block, g, v) if wanted[1] else None
    if not wanted[0] or _covers(block, v):
        return [None, for_value]
    new = (cell(block, g), zeros(block, value.shape, g.dtype))
    rest = block.add(kinds.UPDATE, new, v, TensorType(base.shape, g.dtype))
    return [rest, for_value]


def _covers(block: Block, v: View) -> bool:
    """Whether a view surely shows every element of its base."""
    along = [d for d in v.dims if isinstance(d, Along)]
    return len({d.axis for d in along}) == len(v.dims) and all(
        d.step in (1, -1) and block.sizes.eq(v.shape[d.axis], n)
        for d, n in zip(along, v.base, strict=True)
    )


# ---------------------------------------------------------------- contraction


def _contract(block: Block, node: Node, g: Node, wanted: Wanted) -> Gradients:
    a, b = node.args
    la, lb, out = node.params
    return [
        _contract_with(block, g, out, b, lb, a, la) if wanted[0] else None,
        _contract_with(block, g, out, a, la, b, lb) if wanted[1] else None,
    ]


def _contract_with(block: Block, g: Node, out: str, other: Node, lo: str, x: Node, lx: str) -> Node:
    """The gradient of x: g contracted with the other operand's conjugate."""
    if not set(lx) <= set(out + lo):
        raise AssertionError("a contraction sums a label of one operand alone")
    if other.dtype.kind == "c":
        other = as_node(block, np.conj(wrap(block, other)))
    if set(out + lo) <= set(lx):
        # nothing is summed: an elementwise product, which fuses
        left = build.view(block, g, _spread(g, out, x, lx))
        right = build.view(block, other, _spread(other, lo, x, lx))
        return as_node(block, np.multiply(wrap(block, left), wrap(block, right)))
    type_ = TensorType(x.shape, g.dtype, Weight.ARRAY if x.shape else Weight.SCALAR)
    return block.add(kinds.CONTRACT, (g, other), (out, lo, lx), type_)


def _spread(node: Node, labels: str, x: Node, lx: str) -> View:
    return View(node.shape, tuple(Along(0, 1, lx.index(c)) for c in labels), x.shape)


_ADJOINTS: dict[Kind, Adjoint] = {
    Kind.ELEMENTWISE: _elementwise,
    Kind.REDUCE: _reduce,
    Kind.EXTERN: _whole,
    Kind.SCAN: _whole,
    Kind.RESULT: _result,
    Kind.VIEW: _view,
    Kind.RESHAPE: _reshape,
    Kind.PAD: _pad_adjoint,
    Kind.GATHER: _gather,
    Kind.SCATTER: _scatter,
    Kind.CONTRACT: _contract,
    Kind.CELL: _same,
    Kind.UPDATE: _update,
}
