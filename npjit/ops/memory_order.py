"""Memory order of traced values, as far as tracing knows it: whether NumPy surely makes a value
C-contiguous.

    is_c_ordered(block, node)     # x + 1 of a C-contiguous x: True; of x.T: False
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from npjit.core.graph import Block, Node
from npjit.core.op import CONTROL, Kind
from npjit.core.view import Along, View
from npjit.ops import build, kinds

# results follow their operands
_FOLLOWING = frozenset([Kind.ELEMENTWISE, Kind.REDUCE])
# C order is made of C order; of other orders nobody knows
_WHOLE = frozenset([Kind.CONTRACT, Kind.PAD, Kind.EXTERN, Kind.SCAN])
_CREATED = frozenset([Kind.CONST, Kind.SIZE, Kind.IOTA, Kind.RESHAPE])


def is_c_ordered(block: Block, node: Node) -> bool:
    """Whether NumPy surely makes this value C-contiguous."""

    def enter(n: Node) -> Node | None:
        outside = _outside(block, n)
        if outside is not None:
            return outside
        return None if block.c_ordered(n) else n  # type: ignore[attr-defined]

    return _are_c_ordered([node], enter)


def _are_c_ordered(nodes: Iterable[Node], enter: Callable[[Node], Node | None]) -> bool:
    """The same for several; `enter` gives what an INPUT stands for, None if that is C-contiguous,
    and the INPUT itself if it is not."""
    seen: set[Node] = set()
    pending = list(nodes)
    while pending:
        n = pending.pop()
        kind = n.op.kind
        if n in seen or (kind is not Kind.INPUT and has_one_axis(n.shape)):
            continue
        seen.add(n)
        if kind is Kind.INPUT:
            outside = enter(n)
            if outside is n:
                return False
            pending += [outside] if outside is not None else []
        elif kind is Kind.VIEW and keeps_order(n.params):
            pending.append(n.args[0])
        elif kind in _FOLLOWING or kind in _WHOLE or (kind is Kind.GATHER and not n.params.place):
            pending += n.args
        elif kind in (Kind.CELL, Kind.UPDATE, Kind.SCATTER):
            pending.append(n.args[0])
        elif kind is Kind.RESULT:
            if n.args[0].op.kind not in CONTROL or not _is_kept(n.args[0]):
                return False
            pending += n.args[0].args
        elif kind not in _CREATED:
            return False
    return True


def _is_kept(control: Node) -> bool:
    """Whether a loop or branch whose arguments are C-contiguous makes nothing else."""
    p = control.params
    bodies = (p.then, p.other) if control.op.kind is Kind.COND else (p.body,)
    return all(_are_c_ordered(g.outputs, lambda n: None) for g in bodies)


def has_one_axis(shape: tuple[object, ...]) -> bool:
    """Whether there is but one order."""
    return len([n for n in shape if n != 1]) <= 1


def keeps_order(view: View) -> bool:
    """Whether the view's axes run in the base's order, each base axis along at most one of them."""
    axes = [d.axis for d in view.dims if isinstance(d, Along)]
    return axes == sorted(set(axes))


def _laid_out(value: np.ndarray, model: np.ndarray) -> np.ndarray:
    made = np.empty_like(model, dtype=value.dtype)
    made[...] = value
    return made


IN_ORDER_OF = kinds.elementwise(
    _laid_out,
    "{0}",
    name="in_order_of",
    complex_c=lambda params, args, made: ("{0r}", "{0i}") if args[0].kind == "c" else "{0}",
    vjp=lambda g, y, value, model: [g],
)


def in_order_of(block: Block, value: Node, model: Node) -> Node:
    """The value in the memory order of a model of its shape: what is made of it will follow that
    order.
    """
    if is_c_ordered(block, model):
        return value
    return build.apply(block, IN_ORDER_OF, [value, model], value.dtype)


def _outside(block: Block, parameter: Node) -> Node | None:
    """What a parameter of an open region stands for."""
    for region in block.regions:
        for inner, outer, _, _ in region.entered.values():
            if inner is parameter:
                return outer  # type: ignore[no-any-return]
    return None
