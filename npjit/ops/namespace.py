"""The traced namespace: what traced code calls where no protocol of NumPy reaches.

`np.zeros` and its kin take no array that could be a Tracer. A module enters its version, which gets
the block that is being traced as its first argument:

    @creation
    def zeros(block, shape, dtype=float): ...

    traced_namespace()["zeros"](block, (3, 4))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NAMESPACE: dict[str, Callable[..., Any]] = {}


def creation(made: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a function under its own name."""
    _NAMESPACE[made.__name__] = made
    return made


def traced_namespace() -> dict[str, Callable[..., Any]]:
    """Name in NumPy's namespace -> what traced code calls, with the block as first argument."""
    return dict(_NAMESPACE)
