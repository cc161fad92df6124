"""Backends: what turns a captured graph into something that runs. See `npjit.backends.registry`."""

from npjit.backends.registry import find, names, register

__all__ = ["find", "names", "register"]
