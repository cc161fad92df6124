"""Calls that raise while they are traced: the next one of their kind goes to NumPy at once.

In: arguments. Out: what tells calls apart, and a memory of those that have raised NumPy's error:

    raising = Raising()
    raising.run(f, (x, y), {})      # ValueError, remembered
    raising.knows((x, y), {})       # True, until such a call returns
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# so many kinds of calls are remembered, of so many values each
MOST_KINDS = 64
MOST_VALUES = 32
_VALUES = (int, bool, str, type(None))


class Raising:
    """See the module's docstring. Nothing hangs on it but time: NumPy answers such calls."""

    def __init__(self) -> None:
        self._kinds: set[Any] = set()

    def knows(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the last call of this kind has raised."""
        return bool(self._kinds) and _kind((args, kwargs)) in self._kinds

    def run(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """function(*args, **kwargs)"""
        kind = _kind((args, kwargs))  # before: the function may change its arguments
        try:
            result = function(*args, **kwargs)
        except Exception:
            if kind is not None and len(self._kinds) < MOST_KINDS:
                self._kinds.add(kind)
            raise
        self._kinds.discard(kind)
        return result


def _kind(value: Any) -> Any:
    """Types, shapes and ints; None where there are too many."""
    found: list[Any] = []
    queue = [value]
    while queue:
        v = queue.pop()
        cls = type(v)
        found.append(cls)
        if cls is np.ndarray:
            found += (v.dtype, v.shape)
        elif cls in _VALUES:
            found.append(v)
        elif cls in (tuple, list):
            queue += v
            found.append(len(v))
        elif cls is dict:
            queue += v.values()
            found.append(tuple(v))
        if len(found) > 2 * MOST_VALUES:
            return None
    return tuple(found)
