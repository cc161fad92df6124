"""Decisions of staged source: branches, `and`, `or`, `not`, assertions, errors, unbound names.

A decision on a plain Python value takes Python's path; one on a traced value becomes a COND, a
select, or a CHECK whose failure lets Python run the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npjit.core.graph import TensorType
from npjit.frontend.branches import Raised, scalar_condition, trace_branches
from npjit.frontend.membership import contains
from npjit.frontend.values import NOT_BOUND, UNDEFINED, NotStaged, truth_of
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.tracer import Tracer, where_called


class Decisions:
    """The decisions of one trace."""

    undefined = UNDEFINED

    def __init__(self, capture: Any) -> None:
        self.capture = capture
        self.block = capture.block

    # ------------------------------------------------------------ branches

    def branch(
        self,
        condition: Any,
        then: Callable[..., Any],
        other: Callable[..., Any],
        state: tuple[Any, ...],
        names: tuple[str, ...],
    ) -> Any:
        """if condition: state = then(*state) else: state = other(*state)"""
        del names
        condition = truth_of(condition)
        if not self._is_traced(condition):
            return then(*state) if condition else other(*state)
        return self._traced(condition, lambda: then(*state), lambda: other(*state))

    def _is_traced(self, condition: Any) -> bool:
        return type(condition) is Tracer

    def _traced(self, condition: Tracer, then: Any, other: Any) -> Any:
        try:
            node = scalar_condition(self.block, condition)
            return trace_branches(self.block, node, then, other)
        except NotStaged as e:
            raise NotCaptured(f"a branch on a traced value: {e}", where_called()) from None

    def choose(self, condition: Any, a: Callable[[], Any], b: Callable[[], Any]) -> Any:
        """a() if condition else b()"""
        condition = truth_of(condition)
        if not self._is_traced(condition):
            return a() if condition else b()
        return self._traced(condition, a, b)

    def and_(self, first: Any, rest: Callable[[], Any]) -> Any:
        """first and rest()"""
        if not self._is_traced(first):
            return first and rest()
        return self._traced(first, rest, lambda: first)

    def or_(self, first: Any, rest: Callable[[], Any]) -> Any:
        """first or rest()"""
        if not self._is_traced(first):
            return first or rest()
        return self._traced(first, lambda: first, rest)

    def not_(self, value: Any) -> Any:
        """not value"""
        value = truth_of(value)
        if not self._is_traced(value):
            return not value
        return self._traced(value, lambda: False, lambda: True)

    def contains(self, item: Any, container: Any) -> Any:
        """item in container"""
        return contains(self, item, container)

    def truth(self, value: Any) -> Any:
        """An operand of a condition, as far as it decides."""
        return truth_of(value)

    # ------------------------------------------------------------ checks

    def assert_(self, condition: Any, message: Callable[[], Any]) -> None:
        """assert condition, message()"""
        if not self._is_traced(condition):
            if not condition:
                self.raise_(lambda: _assertion_error(message()))
            return
        node = scalar_condition(self.block, condition)
        self.block.add(kinds.CHECK, (node,), "AssertionError", node.type)

    def bound(self, value: Any) -> Any:
        """The value of a name that is only given another name."""
        if value is UNDEFINED:
            self.raise_(lambda: UnboundLocalError(NOT_BOUND))
        return value

    def given(self, value: Any, flag: Any) -> Any:
        """The value of a name that is bound where the flag says so."""
        if self._is_traced(flag):
            node = scalar_condition(self.block, flag)
            self.block.add(kinds.CHECK, (node,), "UnboundLocalError", node.type)
        elif not flag:
            self.raise_(lambda: UnboundLocalError(NOT_BOUND))
        return value

    def raise_(self, error: Callable[[], Any]) -> None:
        """raise error(); under a traced condition it is a check, and Python raises it when the call
        is run again"""
        if not self.block.depth:
            raise error()
        never = build.constant(self.block, False, build.BOOL)
        self.block.add(
            kinds.CHECK, (never,), "the exception raised here", TensorType((), build.BOOL)
        )
        raise Raised


def _assertion_error(text: Any) -> AssertionError:
    return AssertionError(*([] if text is None else [text]))
