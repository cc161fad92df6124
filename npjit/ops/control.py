"""Rows of the control kinds, and their reference meaning: nested graphs run by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.control import Cond, Loop, While
from npjit.core.graph import Block, Node, TensorType
from npjit.core.op import Kind, Op
from npjit.ops.kinds import row


def _entry(args: tuple[Any, ...], written: tuple[int, ...]) -> list[Any]:
    """Arguments as the body may change them."""
    return [np.array(a) if i in written else a for i, a in enumerate(args)]


def _loop(node: Any, *args: Any) -> list[Any]:
    loop: Loop = node.params
    state = _entry(args, loop.written)
    for trip in range(node.size(loop.trips)):
        if any(state[k] for k in loop.stops):
            break
        results = loop.body.run_with({**node.sizes, loop.index: trip}, state)
        state[: loop.carried] = results
    return state[: loop.carried] + [state[p] for p in loop.written]


def _while(node: Any, *args: Any) -> list[Any]:
    loop: While = node.params
    state = _entry(args, loop.written)
    while not any(state[k] for k in loop.stops) and loop.test.run_with(node.sizes, state)[0]:
        state[: loop.carried] = loop.body.run_with(node.sizes, state)
    return state[: loop.carried] + [state[p] for p in loop.written]


def _cond(node: Any, condition: Any, *args: Any) -> list[Any]:
    cond: Cond = node.params
    state = _entry(args, cond.written)
    branch = cond.then if condition else cond.other
    return branch.run_with(node.sizes, state) + [state[p] for p in cond.written]


def _bind(node: Any, value: Any) -> Any:
    node.sizes[node.params.var] = int(value)
    return value


BIND = row(Op("bind", Kind.BIND, _bind))
LOOP = row(Op("loop", Kind.LOOP, _loop, fresh=True, cost=1000))
WHILE = row(Op("while", Kind.WHILE, _while, fresh=True, cost=1000))
COND = row(Op("cond", Kind.COND, _cond, fresh=True, cost=100))
RESULT = row(Op("result", Kind.RESULT, lambda node, results: results[node.params]))


def results(block: Block, node: Node, types: list[TensorType]) -> list[Node]:
    """The results of a control node, each as a RESULT node."""
    return [block.add(RESULT, (node,), k, t) for k, t in enumerate(types)]
