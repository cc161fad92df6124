"""Watching Python objects while a body is traced: a loop body runs once, so it must not change any.

`with Watch(body, state)` compares the lists, dicts, sets and plain objects that the body can reach through its closure
and its arguments before and after; a change is undone and the body is not staged.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

from npjit.frontend.containers import TracedDict, TracedList
from npjit.frontend.objects import ClassProxy, ObjectProxy
from npjit.frontend.values import NotStaged
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer

_SKIPPED = (Tracer, SymInt, ObjectProxy, ClassProxy, TracedDict, TracedList, types.ModuleType, type)


class Watch:
    """Context manager; NotStaged on leaving when a reachable object was changed."""

    def __init__(self, body: Callable[..., Any], state: Iterable[Any]) -> None:
        self.saved: list[tuple[Any, Any]] = []
        seen: set[int] = set()
        self._collect(body, seen)
        for value in state:
            self._collect(value, seen)

    def _collect(self, value: Any, seen: set[int]) -> None:
        if id(value) in seen or type(value) in _SKIPPED:
            return
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            for cell in value.__closure__ or ():
                try:
                    self._collect(cell.cell_contents, seen)
                except ValueError:
                    continue
        elif isinstance(value, (list, set, tuple)):
            if not isinstance(value, tuple):
                self.saved.append((value, type(value)(value)))
            for item in value:
                self._collect(item, seen)
        elif isinstance(value, dict):
            self.saved.append((value, dict(value)))
            for item in value.values():
                self._collect(item, seen)
        elif _is_plain_object(value):
            self.saved.append((value.__dict__, dict(value.__dict__)))
            for item in list(value.__dict__.values()):
                self._collect(item, seen)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        changed = [pair for pair in self.saved if not _unchanged(*pair)]
        for now, before in changed:
            now.clear()
            if isinstance(now, list):
                now.extend(before)
            else:
                now.update(before)
        if changed and kind is None:
            raise NotStaged("a loop body changes a Python object")


def _is_plain_object(value: Any) -> bool:
    """An instance of a user's class, made while tracing."""
    module = type(value).__module__.partition(".")[0]
    return hasattr(value, "__dict__") and module not in ("builtins", "numpy", "npjit", "functools")


def _unchanged(now: Any, before: Any) -> bool:
    if len(now) != len(before):
        return False
    if isinstance(now, dict):
        return all(k in now and now[k] is v for k, v in before.items())
    if isinstance(now, set):
        return bool(now == before)
    return all(a is b for a, b in zip(now, before, strict=True))
