"""copy.copy and copy.deepcopy of arrays, numbers, and lists, tuples and dicts of them."""

from __future__ import annotations

from typing import Any

from npjit.frontend.lists import GrowingList
from npjit.frontend.values import is_array, is_number
from npjit.ops.errors import NotCaptured


def copied(outside: Any, value: Any) -> Any:
    """copy.copy(value)"""
    if is_array(value):
        return value.copy(order="K")
    if isinstance(value, GrowingList):
        return value.copy()
    if isinstance(value, (list, dict)):
        return value.__class__.stands_for(value) if hasattr(value, "stands_for") else value.copy()
    return _unchanged(value)


def deep_copied(outside: Any, value: Any, memo: Any = None) -> Any:
    """copy.deepcopy(value)"""
    if memo is not None:
        raise NotCaptured("copy.deepcopy with a memo")
    return _deep(value, {})


def _deep(value: Any, known: dict[int, Any]) -> Any:
    if id(value) not in known:
        known[id(value)] = _new(value, known)
    return known[id(value)]


def _new(value: Any, known: dict[int, Any]) -> Any:
    if is_array(value):
        return value.copy(order="K")
    if isinstance(value, GrowingList) and value.rows is not None:
        return value.copy()  # its items are in rows of their own
    if isinstance(value, list):
        return [_deep(v, known) for v in value]
    if isinstance(value, dict):
        return {k: _deep(v, known) for k, v in value.items()}
    if type(value) is tuple:
        return tuple(_deep(v, known) for v in value)
    return _unchanged(value)


def _unchanged(value: Any) -> Any:
    if is_number(value) or value is None or type(value) in (str, bytes, tuple):
        return value
    raise NotCaptured(f"a {type(value).__name__} object is copied")
