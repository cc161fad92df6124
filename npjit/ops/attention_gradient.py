"""The gradients of softmax(scale * q @ k.T) @ v as one row, and how they are found in a graph.

In: a block with the nodes that reverse mode made of an attention, whose weights were rounded to the
type of v. Out: for products that give the gradients of q, k and v what replaces them:

    d = weights * (g @ v.T - sum of weights * (g @ v.T))       attention_gradient q k v g
    d @ k, d.T @ q, weights.T @ g                         ->   its results 0, 1, 2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.op import Kind
from npjit.core.weighing import Weighing
from npjit.ops.attention import (
    SINGLE,
    Scores,
    arranged,
    factors,
    narrow,
    number_of,
    of_compact,
    past,
    peeled,
    reduced,
    scores_of,
    take_scale,
    weights_of,
)
from npjit.ops.contract import arrange
from npjit.ops.control import results
from npjit.ops.extern import dense, extern
from npjit.ops.kinds import ROWS, UFUNCS
from npjit.ops.reduce import MAX, SUM


def _meaning(node: Any, q: Any, k: Any, v: Any, g: Any, *others: Any) -> Any:
    p: Weighing = node.params
    s = scores_of(p, q, k, *others)
    weights = weights_of(s)
    q, k, v, g = (x.astype(SINGLE) for x in (q, k, v, g))
    pulled = g @ v.swapaxes(-1, -2)
    d = weights * (pulled - (weights * pulled).sum(axis=-1, keepdims=True))
    if p.mask == "where":
        d = np.where(others[-1], d, 0)
    d = d * (p.scale * (others[0] if p.has_factor else 1))
    d = d.astype(SINGLE)
    turned = (x.swapaxes(-1, -2) for x in (d, weights))
    return d @ k, next(turned) @ q, next(turned) @ g


def _types(params: Any, q: TensorType, k: TensorType, v: TensorType, *rest: Any) -> Any:
    return [dense(t.shape, SINGLE) for t in (q, k, v)]


GRADIENT = extern("attention_gradient", _meaning, _types)


@dataclass(frozen=True)
class Pull:
    """A gradient on its way back through a softmax: `weights` and `pulled`, the gradient of theirs,
    have axes `letters`, `order` is (batch..., row, column); `made` are the row's results."""

    weights: Node
    letters: str
    order: str
    g: Node
    k: Node
    q: Node
    made: tuple[Node, ...]


def gradients_in(block: Block) -> dict[Node, Node]:
    """What replaces the products of a block that give gradients of attention."""
    products = [n for n in block.nodes if n.op.kind is Kind.CONTRACT and n.dtype == SINGLE]
    replaced: dict[Node, Node] = {}
    pulls: dict[Node, Pull | None] = {}
    for n in products:
        for d, ld, other, lo in _both(n):
            if d not in pulls:
                pulls[d] = _pull(block, d)
            found = pulls[d]
            made = None if found is None else _of_scores(block, n, found, ld, other, lo)
            if made is not None:
                replaced[n] = made
    for n in products:
        for weights, lw, g, lg in _both(n):
            for p in filter(None, pulls.values()):
                if past(weights) is p.weights and weights.dtype == g.dtype == p.g.dtype:
                    made = _of_values(block, n, p, lw, g, lg)
                    replaced |= {} if made is None else {n: made}
    return replaced


def _both(n: Node) -> Iterator[tuple[Node, str, Node, str]]:
    (a, b), (la, lb, _) = n.args, n.params
    yield a, la, b, lb
    yield b, lb, a, la


def _of_scores(block: Block, n: Node, p: Pull, ld: str, other: Node, lo: str) -> Node | None:
    """The gradient of q, where the other factor is k, or of k, where it is q."""
    out = n.params[2]
    inner = [x for x in lo if x not in ld]
    if len(inner) != 1 or len(out) != len(ld):
        return None
    names = dict(zip(p.letters, ld, strict=True))
    *batch, row, column = (names[x] for x in p.order)
    other = narrow(block, other)
    for number, kept, summed, factor in ((0, row, column, p.k), (1, column, row, p.q)):
        fits = set(out) == {*batch, kept, *inner} and set(lo) == {*batch, summed, *inner}
        if fits and arrange(block, other, lo, "".join([*batch, summed, *inner])) is factor:
            return arrange(block, p.made[number], "".join([*batch, kept, *inner]), out)
    return None


def _of_values(block: Block, n: Node, p: Pull, lw: str, g: Node, lg: str) -> Node | None:
    """The gradient of v."""
    out = n.params[2]
    inner = [x for x in lg if x not in lw]
    names = dict(zip(p.letters, lw, strict=True))
    *batch, row, column = (names[x] for x in p.order)
    fits = len(inner) == 1 and set(out) == {*batch, column, *inner}
    if not fits or set(lg) != {*batch, row, *inner}:
        return None
    if arrange(block, g, lg, "".join([*batch, row, *inner])) is not p.g:
        return None
    return arrange(block, p.made[2], "".join([*batch, column, *inner]), out)


def _pull(block: Block, d: Node) -> Pull | None:
    """The row for the gradient of a product of scores."""
    own = Scores(_ungated(past(d)))
    while own.node.op in (UFUNCS[np.multiply], UFUNCS[np.divide]):
        if not take_scale(block, own, own.node):
            return None
        own.node = _ungated(past(own.node))
    masks: list[Node] = []
    while own.node.op is ROWS["select"]:
        condition, kept, none = own.node.args
        if number_of(none) != 0:
            kept, none = none, kept
            condition = of_compact(block, UFUNCS[np.logical_not], condition)
        if number_of(none) != 0:
            return None
        masks.append(condition)
        own.node = _ungated(past(kept))
    found = _softmax_gradient(own.node)
    if found is None:
        return None
    weights, pulled, axis = found
    x = past(past(weights.args[0]).args[0])
    scores = peeled(block, past(x.args[0]))
    if scores is None or not _agree(block, own, masks, scores):
        return None
    return _with_operands(block, weights, pulled, axis, scores)


def _agree(block: Block, own: Scores, masks: list[Node], forward: Scores) -> bool:
    """Whether scores and their gradients were scaled and masked alike."""
    mask = None
    for condition in reversed(masks):
        mask = (
            condition
            if mask is None
            else of_compact(block, UFUNCS[np.logical_and], condition, mask)
        )
    where = forward.mask if forward.weighing.mask == "where" else None
    is_same = own.weighing.scale == forward.weighing.scale and own.factor is forward.factor
    return is_same and mask is where


def _with_operands(
    block: Block, weights: Node, pulled: Node, axis: int, scores: Scores
) -> Pull | None:
    """The row's node, from the product that gives the gradient of the weights."""
    dtypes = {a.dtype for a in pulled.args} if pulled.op.kind is Kind.CONTRACT else set()
    if [d.itemsize for d in dtypes] != [2]:
        return None
    letters = pulled.params[2]
    for v, lv, g, lg in _both(pulled):
        inner = [x for x in lv if x in lg and x not in letters]
        rows = [x for x in lg if x not in lv]
        if letters[axis] not in lv or letters[axis] in lg or len(inner) != 1 or not rows:
            continue
        order = "".join(x for x in letters if x not in (rows[-1], letters[axis]))
        order += rows[-1] + letters[axis]
        operands = factors(block, scores.node, letters, order, v.dtype)
        if operands is None or set(lg) != {*order[:-1], *inner}:
            return None
        g = arrange(block, g, lg, order[:-1] + inner[0])
        v = arranged(block, v, lv, order[:-2] + order[-1] + inner[0], operands[0])
        given = [*operands, v, g]
        given += [] if scores.factor is None else [scores.factor]
        given += [] if scores.mask is None else [arrange(block, scores.mask, letters, order)]
        weighing = replace(scores.weighing, rounded=True, backward=True)
        node = block.add(GRADIENT, given, weighing, TensorType((), SINGLE, Weight.SCALAR))
        made = results(block, node, _types(weighing, *(a.type for a in given[:3])))
        return Pull(weights, letters, order, g, operands[1], operands[0], tuple(made))
    return None


def _ungated(n: Node) -> Node:
    """What a gate lets pass."""
    return past(n.args[1]) if n.op is ROWS["gate"] else n


def _softmax_gradient(n: Node) -> tuple[Node, Node, int] | None:
    """Of a gradient that came back through a softmax its weights, the gradient of these, and the
    axis; the weights were rounded."""
    if n.op is not UFUNCS[np.add]:
        return None
    through, tie = map(past, n.args)
    product = _ungated(through)
    if product.op is not UFUNCS[np.multiply] or past(product.args[1]).op is not UFUNCS[np.exp]:
        return None
    e = past(product.args[1])
    distance = past(e.args[0])
    if distance.op is not UFUNCS[np.subtract]:
        return None
    most = past(distance.args[1])
    largest = past(most.args[0]) if most.op.kind is Kind.VIEW else most
    if largest.op is not MAX or len(largest.params) != 1:
        return None
    (axis,) = largest.params
    x = past(distance.args[0])
    if reduced(most, MAX, axis) is not x or not _is_tie(tie, x, most, through, axis):
        return None
    found = _quotient_gradient(past(product.args[0]), e, axis)
    return None if found is None else (*found, axis)


def _quotient_gradient(n: Node, e: Node, axis: int) -> tuple[Node, Node] | None:
    """The same for the gradient of e in e / sum(e)."""
    if n.op is not UFUNCS[np.add]:
        return None
    through = past(n.args[0])
    quotient = _ungated(through)
    rest = reduced(n.args[1], SUM, axis)
    product = None if rest is None else _ungated(rest)
    if quotient.op is not UFUNCS[np.divide] or product is None:
        return None
    if product.op is not UFUNCS[np.multiply] or reduced(quotient.args[1], SUM, axis) is not e:
        return None
    less, weights = map(past, product.args)
    is_less = less.op is UFUNCS[np.negative] and past(less.args[0]) is through
    is_weights = weights.op is UFUNCS[np.divide] and past(weights.args[0]) is e
    if not is_less or not is_weights or reduced(weights.args[1], SUM, axis) is not e:
        return None
    wide = quotient.args[0]
    pulled = past(wide)
    factors_of = pulled.args[0].dtype if pulled.op.kind is Kind.CONTRACT else None
    was_rounded = wide.dtype == factors_of or (
        wide.op.conversion and wide.args[0].dtype == factors_of
    )
    return (weights, pulled) if was_rounded else None


def _is_tie(n: Node, x: Node, most: Node, through: Node, axis: int) -> bool:
    """Whether it is what comes back by the maximum: nothing, but for rounding."""
    if n.op is not ROWS["select"] or number_of(n.args[2]) != 0:
        return False
    condition, share = n.args[0], past(n.args[1])
    is_equal = condition.op is UFUNCS[np.equal] and past(condition.args[0]) is x
    if not is_equal or past(condition.args[1]) is not most or share.op is not UFUNCS[np.divide]:
        return False
    total, count = (reduced(a, SUM, axis) for a in share.args)
    if total is None or count is None or not count.op.conversion:
        return False
    is_less = total.op is UFUNCS[np.negative] and past(total.args[0]) is through
    return is_less and count.args[0] is condition
