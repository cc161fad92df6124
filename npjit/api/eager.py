"""Gradients of functions whose Python needs actual values: traced again on every call, evaluated by
NumPy.

A number from an array that is the key of a dict, say, cannot be captured; here the trace may look
at the values it is made for, so the path taken is the one differentiated. Right, at the speed of
NumPy.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.api.options import CaptureError
from npjit.backends.reference import weighed
from npjit.core.graph import Concrete, Node, Weight
from npjit.core.op import Kind
from npjit.core.trees import build, children_of, kind_of
from npjit.frontend.capture import ON_CPU, Capture, Input
from npjit.frontend.objects import TracedObject, real_class
from npjit.frontend.outside import Outside
from npjit.frontend.policy import Policy
from npjit.ops.errors import NotCaptured, pop_trace, push_trace
from npjit.ops.selection import Selected
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer

if TYPE_CHECKING:
    from npjit.api.grad import Gradient

# operations of one call: a loop to convergence runs as often as it runs
MOST_NODES = 10_000_000


class Evaluator:
    """Values of nodes in an eager trace, computed on demand and kept."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.values: dict[Node, Any] = {}
        # errors that the caller has asked NumPy to raise are raised; warnings would name lines of
        # npjit
        self.errors = {k: "ignore" if v == "warn" else v for k, v in np.geterr().items()}

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

    def placed(self, array: np.ndarray) -> Any:
        """An array of the result where the inputs live."""
        for given in self.capture.inputs:
            on_gpu = _gpu_of(given)
            if on_gpu is not None:
                return on_gpu.uploaded(array)
        return array

    def check(self, n: Node) -> None:
        """Raise what a CHECK node stands for, "ZeroDivisionError: division by zero" say, when it
        fails.
        """
        if not np.all(self(n.args[0])):
            name, _, message = str(n.params).partition(": ")
            raise getattr(builtins, name, ArithmeticError)(message or name)

    def _evaluate(self, n: Node) -> Any:
        if n.op.kind is Kind.INPUT:
            # a copy: the caller's array is written only when the call is over
            given = self.capture.inputs[n.params]
            on_gpu = _gpu_of(given)
            return np.array(given.value) if on_gpu is None else on_gpu.downloaded(given.value.base)
        with np.errstate(**self.errors):
            return n.op.evaluate(Concrete(n, {}), *[self.values[a] for a in n.args])


def gradient_by_values(gradient: Gradient, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One call of a gradient function, traced along the path that its values take."""
    capture = Capture(Policy(dynamic=False))
    capture.block.limit = MOST_NODES
    evaluate = Evaluator(capture)
    capture.block.eager = True
    capture.block.peek = evaluate  # type: ignore[method-assign]
    outside = Outside(capture, sees_values=True)
    capture.outside = outside
    push_trace(capture)
    try:
        traced = [outside.read(a, ("arg", i)) for i, a in enumerate(args)]
        named = {k: outside.read(v, ("kw", k)) for k, v in kwargs.items()}
        result = gradient.inline(outside)(*traced, **named)
        outside.functions.refuse_stores()
        if capture.spoiled is not None:
            raise capture.spoiled
        return _delivered(capture, result, evaluate)
    except NotCaptured as e:
        cause = e.__cause__
        if isinstance(cause, (TypeError, ValueError, IndexError, ArithmeticError)):
            raise cause from None
        raise CaptureError(f"{gradient.label} cannot be found: {e}") from None
    finally:
        capture.block.close()
        pop_trace()


def _delivered(capture: Capture, result: Any, evaluate: Evaluator) -> Any:
    """The result with actual values, after the checks; then the caller's arrays are written."""
    for n in capture.block.nodes:
        if n.op.kind is Kind.CHECK:
            evaluate.check(n)
        elif n.op.raises:
            evaluate(n)
    writes = [(position, evaluate(node)) for position, node in capture.writes()]
    for position, _ in writes:
        if not capture.inputs[position].value.flags.writeable:
            raise ValueError("assignment destination is read-only")
    answer = _answer(result, evaluate)
    for position, value in writes:
        given = capture.inputs[position]
        on_gpu = _gpu_of(given)
        if on_gpu is None:
            given.value[...] = value
        else:
            given.value.base[...] = on_gpu.uploaded(value)
    return answer


def _gpu_of(given: Input) -> Any:
    """The device of an input that is no NumPy array, or None."""
    if given.device == ON_CPU:
        return None
    from npjit.backends.cuda import device

    return device(given.device)


def _answer(value: Any, evaluate: Evaluator) -> Any:
    """The result with actual values and the user's own classes."""
    if type(value) is SymInt:
        return value.concrete()
    if type(value) is Tracer:
        found = weighed(evaluate(value.node), value.weight)
        return evaluate.placed(np.asarray(found)) if value.weight is Weight.ARRAY else found
    if type(value) is Selected:
        if value.array is not None:
            return evaluate.placed(evaluate(value.array.node))
        return evaluate.placed(evaluate(value.whole.node)[evaluate(value.mask)])
    kind = kind_of(value)
    is_object = isinstance(value, TracedObject)
    if kind in ("leaf", "none"):
        if is_object:
            raise NotCaptured(f"the function returns a {value.__class__.__name__} object")
        return value
    keys, children = children_of(kind, value)
    cls = value.__class__ if is_object else real_class(type(value))
    return build(kind, cls, keys, [_answer(c, evaluate) for c in children])
