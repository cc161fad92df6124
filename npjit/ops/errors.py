"""The signal that a function cannot be captured as it stands."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

_active = threading.local()


class NotCaptured(BaseException):
    """Tracing met something that it has no graph for; the call is answered by NumPy instead.

    A BaseException, so that the user's own `except Exception` around an operation never sees it and
    so never takes the wrong path. `reason` says what was met, `where` the user's file:line. Making
    one spoils the traces that are active in this thread: a bare `except:` in the user's code cannot
    hide it. `passing` says that the trace's guards do not decide it: another call that passes them
    may well be captured.
    """

    def __init__(self, reason: str, where: str = "", passing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.where = where
        self.passing = passing
        # (number, value) of the argument that could not be taken in
        self.argument: tuple[int, Any] | None = None
        # the guards that the spoilt trace had recorded (frontend.capture's steps)
        self.steps: tuple[Any, ...] = ()
        for trace in getattr(_active, "traces", ()):
            trace.spoiled = self

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}" if self.where else self.reason


def name_of(function: Any) -> str:
    """What a refusal calls a NumPy function ("np.linalg.eig"), or another library's ufunc."""
    name: str = function.__name__
    if isinstance(function, np.ufunc):
        return f"np.{name}" if getattr(np, name, None) is function else f"the ufunc {name}"
    return f"{function.__module__}.{name}".replace("numpy.", "np.", 1)


class NeverCaptured(NotCaptured):
    """A call that no trace can make, whatever its arguments: print, a draw of random numbers."""


def active_trace() -> Any:
    """The innermost trace of this thread, or None."""
    traces = getattr(_active, "traces", None)
    return traces[-1] if traces else None


def push_trace(trace: object) -> None:
    """Make `trace` (anything with a `spoiled` attribute) active in this thread."""
    if not hasattr(_active, "traces"):
        _active.traces = []
    _active.traces.append(trace)


def pop_trace() -> None:
    """End the innermost active trace."""
    _active.traces.pop()
