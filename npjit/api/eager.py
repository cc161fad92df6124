"""Gradients of functions whose Python needs actual values: traced again on every call, evaluated by NumPy.

A `while` to convergence or an `if` on a value cannot be captured as one graph yet; here the trace may look at the
values it is made for, so the path taken is the one differentiated. Right, at the speed of NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.api.options import CaptureError
from npjit.backends.reference import weighed
from npjit.core.graph import Concrete, Node, Weight
from npjit.core.op import Kind
from npjit.frontend.capture import Capture, Policy
from npjit.frontend.outside import Outside
from npjit.frontend.trees import tree_map
from npjit.ops.errors import NotCaptured, pop_trace, push_trace
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer

if TYPE_CHECKING:
    from npjit.api.grad import Gradient


class Evaluator:
    """Values of nodes in an eager trace, computed on demand and kept."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.values: dict[Node, Any] = {}

    def __call__(self, node: Node) -> Any:
        """The node's value; iterative, since chains are long."""
        stack = [node]
        while stack:
            n = stack[-1]
            missing = [a for a in n.args if a not in self.values]
            if missing:
                stack += missing
                continue
            stack.pop()
            if n not in self.values:
                self.values[n] = self._evaluate(n)
        return self.values[node]

    def _evaluate(self, n: Node) -> Any:
        if n.op.kind is Kind.INPUT:
            # a copy: the caller's array is written only when the call is over
            return np.array(self.capture.inputs[n.params].value)
        with np.errstate(all="ignore"):
            return n.op.evaluate(Concrete(n, {}), *[self.values[a] for a in n.args])


def gradient_by_values(gradient: Gradient, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One call of a gradient function, traced along the path that its values take."""
    capture = Capture(Policy(dynamic=False))
    evaluate = Evaluator(capture)
    capture.block.peek = evaluate
    outside = Outside(capture)
    capture.outside = outside
    push_trace(capture)
    try:
        traced = [outside.read(a, ("arg", i)) for i, a in enumerate(args)]
        named = {k: outside.read(v, ("kw", k)) for k, v in kwargs.items()}
        result = gradient.inline(outside)(*traced, **named)
        if capture.spoiled is not None:
            raise capture.spoiled
    except NotCaptured as e:
        cause = e.__cause__
        if isinstance(cause, (TypeError, ValueError, IndexError)):
            raise cause from None
        where = f"{e.where}: " if e.where else ""
        raise CaptureError(f"no gradient of {gradient._name}: {where}{e.reason}") from None
    finally:
        pop_trace()
    answer = tree_map(lambda leaf: _actual(leaf, evaluate), result)
    for position, node in capture.writes():
        capture.inputs[position].value[...] = evaluate(node)
    return answer


def _actual(leaf: Any, evaluate: Evaluator) -> Any:
    if type(leaf) is SymInt:
        return leaf.concrete()
    if type(leaf) is not Tracer:
        return leaf
    value = weighed(evaluate(leaf.node), leaf.weight)
    return np.asarray(value) if leaf.weight is Weight.ARRAY else value
