"""Backends by name: built in, registered, or found through entry points ("npjit.backends").

A backend is a callable `(graph, example_types) -> callable`: it takes a Graph and its inputs'
types, and gives a function from the list of input arrays and scalars to the list of results, which
updates written inputs in place.

    >>> @register("traced")
    ... def traced(graph, example_types):
    ...     return lambda inputs: graph.run(*inputs)
    >>> "traced" in names()
    True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Backend = Callable[[Any, Any], Callable[[list[Any]], list[Any]]]

BUILT_IN = ("cpp", "cuda", "cython", "numba", "numpy")
GROUP = "npjit.backends"
_registered: dict[str, Backend] = {}


def _entry_points() -> Any:
    from importlib.metadata import entry_points  # takes longer to import than the rest of npjit

    return entry_points(group=GROUP)


def register(name: str) -> Callable[[Backend], Backend]:
    """Decorator: make a backend callable known under a name for `jit(..., backend=name)`.

    A later backend of the same name takes its place; npjit's own names are a ValueError.
    """

    def enter(backend: Backend) -> Backend:
        if name in BUILT_IN:
            raise ValueError(f"the backend name {name!r} is npjit's own")
        _registered[name] = backend
        return backend

    return enter


def names() -> list[str]:
    """Every name that `backend=` takes."""
    found = [e.name for e in _entry_points()]
    return list(dict.fromkeys([*BUILT_IN, *_registered, *found]))


def find(name: str) -> Backend:
    """The registered callable of this name; ValueError listing the names there are."""
    if name in _registered:
        return _registered[name]
    for entry in _entry_points():
        if entry.name == name:
            loaded: Backend = entry.load()
            return loaded
    raise ValueError(f"no backend named {name!r}; there are {', '.join(names())}")
