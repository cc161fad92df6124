"""softmax(scale * q @ k.T) @ v as one row, and how it is found in a graph.

In: a CONTRACT's arguments, the first of them weights computed as people write a softmax. Out: the
node of the row, or None. Axes are brought into the order (batch..., row, column), and the row's
arguments are q, k, v, then the factor of the scores and their mask where there are such:

    s = q @ k.swapaxes(-1, -2) * 0.125
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    (e / e.sum(axis=-1, keepdims=True)) @ v          ->  attention q k v
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from npjit.core.dtypes import accumulator_of
from npjit.core.graph import Block, Node, TensorType
from npjit.core.op import Kind, Op
from npjit.core.view import Along, View
from npjit.core.weighing import Weighing
from npjit.ops import build
from npjit.ops.contract import arrange
from npjit.ops.extern import dense, extern
from npjit.ops.kinds import ROWS, UFUNCS
from npjit.ops.reduce import MAX, SUM

SINGLE = np.dtype(np.float32)


def scores_of(p: Weighing, q: Any, k: Any, *others: Any) -> Any:
    """Scaled and masked scores."""
    s = (q.astype(SINGLE) @ k.astype(SINGLE).swapaxes(-1, -2)) * SINGLE.type(p.scale)
    if p.has_factor:
        s = s * others[0]
    if p.mask == "where":
        s[~others[-1]] = p.fill
    return s + others[-1].astype(SINGLE) if p.mask == "add" else s


def weights_of(s: Any) -> Any:
    """Their softmax."""
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _meaning(node: Any, q: Any, k: Any, v: Any, *others: Any) -> Any:
    p: Weighing = node.params
    weights = weights_of(scores_of(p, q, k, *others))
    if p.rounded:
        weights = weights.astype(v.dtype).astype(SINGLE)
    return (weights @ v.astype(SINGLE)).astype(node.dtype)


def _types(params: Any, q: TensorType, k: TensorType, v: TensorType, *rest: Any) -> Any:
    return [dense((*q.shape[:-1], v.shape[-1]), SINGLE)]


ATTENTION = extern("attention", _meaning, _types)


@dataclass
class Scores:
    """What is known of scores on the way from the softmax back to their product."""

    node: Node
    weighing: Weighing = field(default_factory=Weighing)
    factor: Node | None = None
    mask: Node | None = None


def as_attention(
    block: Block, args: tuple[Node, ...], labels: tuple[str, str, str], shape: Any
) -> Node | None:
    """See the module's docstring; the operands' types are narrow already."""
    weights, v = args
    la, lb, out = labels
    if accumulator_of(v.dtype) == v.dtype or len(la) < 2:
        return None
    summed = "".join(x for x in la if x in lb and x not in out)
    row = "".join(x for x in la if x not in lb)[-1:]
    column = "".join(x for x in lb if x not in la)
    if not len(summed) == len(row) == len(column) == 1:
        return None
    softmax = softmax_input(past(weights), la.index(summed))
    scores = None if softmax is None else peeled(block, softmax)
    if scores is None:
        return None
    order = "".join(x for x in la if x not in summed + row) + row + summed
    operands = factors(block, scores.node, la, order, v.dtype)
    if operands is None:
        return None
    given = [*operands, arranged(block, v, lb, f"{order[:-2]}{summed}{column}", operands[0])]
    if scores.factor is not None:
        given.append(scores.factor)
    if scores.mask is not None:
        given.append(arrange(block, scores.mask, la, order))
    weighing = replace(scores.weighing, rounded=weights.dtype == v.dtype)
    made = (*given[0].shape[:-1], given[2].shape[-1])
    node = block.add(ATTENTION, given, weighing, TensorType(made, SINGLE))
    return build.same_shape(block, arrange(block, node, f"{order[:-1]}{column}", out), shape)


def narrow(block: Block, n: Node) -> Node:
    """What a conversion widens from 16 bits, seen through the view that is around it."""
    if n.op.kind is Kind.VIEW and len(n.args) == 1:
        inner = narrow(block, n.args[0])
        return n if inner is n.args[0] else build.view(block, inner, n.params)
    if n.op.conversion and accumulator_of(n.args[0].dtype) == n.dtype != n.args[0].dtype:
        return n.args[0]
    return n


def past(n: Node) -> Node:
    """The value that conversions between short floats carry."""
    while n.op.conversion and n.dtype.itemsize <= 4 and _is_short_float(n.args[0]):
        n = n.args[0]
    return n


def _is_short_float(n: Node) -> bool:
    return accumulator_of(n.dtype) == SINGLE


def softmax_input(n: Node, axis: int) -> Node | None:
    """What the softmax along an axis is of."""
    if n.op is not UFUNCS[np.divide]:
        return None
    e = past(n.args[0])
    if e.op is not UFUNCS[np.exp] or reduced(n.args[1], SUM, axis) is not e:
        return None
    distance = past(e.args[0])
    if distance.op is not UFUNCS[np.subtract]:
        return None
    x = past(distance.args[0])
    return x if reduced(distance.args[1], MAX, axis) is x else None


def reduced(n: Node, op: Op, axis: int) -> Node | None:
    """What a reduction along one axis, spread along it again, is of."""
    n = past(n)
    if n.op.kind is not Kind.VIEW:
        return None
    kept = [a for a in range(len(n.shape)) if a != axis]
    if n.params.dims != tuple(Along(0, 1, a) for a in kept):
        return None
    n = past(n.args[0])
    return past(n.args[0]) if n.op is op and n.params == (axis,) else None


def peeled(block: Block, n: Node) -> Scores | None:
    """The product behind masks and scales."""
    found = Scores(n)
    while True:
        n = found.node = past(found.node)
        if n.op.kind is Kind.CONTRACT:
            return found
        if n.op.kind is not Kind.ELEMENTWISE or not _take(block, found, n):
            return None


def _take(block: Block, found: Scores, n: Node) -> bool:
    """Take one operation off the scores; False: it is none that the row has."""
    if n.op is ROWS["select"]:
        return _take_choice(block, found, n)
    is_scaled = found.weighing.scale != 1 or found.factor is not None
    if n.op is UFUNCS[np.add] and not is_scaled and not found.weighing.mask:
        found.weighing = replace(found.weighing, mask="add")
        found.node, found.mask = _apart(n.args)
        return True
    if n.op in (UFUNCS[np.multiply], UFUNCS[np.divide]):
        return take_scale(block, found, n)
    return False


def _apart(args: tuple[Node, ...]) -> tuple[Node, Node]:
    """The side that leads to a product, and the other one."""
    first, second = args
    return (first, second) if _leads(first) else (second, first)


def _leads(n: Node) -> bool:
    """Whether a value is computed element by element from a product."""
    seen, open_nodes = {n}, [n]
    while open_nodes:
        n = open_nodes.pop()
        if n.op.kind is Kind.CONTRACT:
            return True
        new = [a for a in n.args if n.op.kind is Kind.ELEMENTWISE and a not in seen]
        seen.update(new)
        open_nodes += new
    return False


def _take_choice(block: Block, found: Scores, n: Node) -> bool:
    condition, kept, fill = n.args
    number = number_of(fill)
    if number is None:
        kept, fill = fill, kept
        number = number_of(fill)
        condition = of_compact(block, UFUNCS[np.logical_not], condition)
    w = found.weighing
    is_scaled = w.scale != 1 or found.factor is not None
    if number is None or is_scaled or w.mask == "add" or (w.mask and w.fill != number):
        return False
    if found.mask is not None:
        condition = of_compact(block, UFUNCS[np.logical_and], condition, found.mask)
    found.weighing = replace(w, mask="where", fill=number)
    found.node, found.mask = kept, condition
    return True


def take_scale(block: Block, found: Scores, n: Node) -> bool:
    is_over = n.op is UFUNCS[np.divide]
    scores, by = n.args if is_over or _is_single(n.args[1]) else reversed(n.args)
    number = number_of(by)
    if number is not None:
        scale = 1 / number if is_over and number else number
        found.weighing = replace(found.weighing, scale=found.weighing.scale * scale)
    elif found.factor is None and _is_single(by):
        factor = build.cast(block, by.args[0], SINGLE)
        if is_over:
            one = build.constant(block, 1, SINGLE)
            factor = build.apply(block, UFUNCS[np.divide], [one, factor], SINGLE)
        found.factor, found.weighing = factor, replace(found.weighing, has_factor=True)
    else:
        return False
    found.node = scores
    return True


def _is_single(n: Node) -> bool:
    """Whether it is one element, spread."""
    return n.op.kind is Kind.VIEW and not n.params.base


def number_of(n: Node) -> float | None:
    """The constant that all elements are."""
    n = n.args[0] if n.op.kind is Kind.VIEW else n
    return float(n.params.value) if n.op.kind is Kind.CONST else None


def of_compact(block: Block, op: Op, *conditions: Node) -> Node:
    """An operation on conditions where they differ at all, spread over their shape."""
    small = [_compact(block, c) for c in conditions]
    return build.stretch(block, build.apply(block, op, small, build.BOOL), conditions[0].shape)


def _compact(block: Block, n: Node) -> Node:
    """The node with extent 1 along axes on which all its elements are alike."""
    if n.op.kind is not Kind.VIEW:
        return n
    used = n.params.axes_used()
    shape = tuple(s if a in used else 1 for a, s in enumerate(n.shape))
    return build.view(block, n.args[0], View(n.params.base, n.params.dims, shape))


def factors(
    block: Block, product: Node, labels: str, order: str, dtype: Any
) -> tuple[Node, Node] | None:
    """q and k of the product, whose axes have these labels."""
    la, lb, out = product.params
    if any(a.dtype != dtype for a in product.args):
        return None
    letters = dict(zip(labels, out, strict=True))
    row, column = letters[order[-2]], letters[order[-1]]
    batch = "".join(letters[x] for x in order[:-2])
    inner = [x for x in la if x in lb and x not in out]
    (q, lq), (k, lk) = zip(product.args, (la, lb), strict=True)
    if row in lk:
        (q, lq), (k, lk) = (k, lk), (q, lq)
    if len(inner) != 1 or row in lk or column in lq or not {row} <= set(lq):
        return None
    if len(lq) + len(lk) > 2 * len(batch) + 4 or column not in lk:
        return None
    shape = dict(zip(out, product.shape, strict=True))
    found = []
    for node, given, last in ((q, lq, row), (k, lk, column)):
        wanted = f"{batch}{last}{inner[0]}"
        depth = node.shape[given.index(inner[0])]
        full = (*(shape[x] for x in batch), shape[last], depth)
        found.append(build.stretch(block, arrange(block, node, given, wanted), full))
    return found[0], found[1]


def arranged(block: Block, v: Node, labels: str, wanted: str, q: Node) -> Node:
    """v with the batch of q."""
    turned = arrange(block, v, labels, wanted)
    return build.stretch(block, turned, (*q.shape[:-2], *turned.shape[-2:]))
