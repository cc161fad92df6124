"""Trees of Python containers: tuples, lists, dicts, named tuples and dataclasses holding leaves.

`flatten(tree)` gives the leaves and a `TreeDef`; `unflatten` puts leaves back. None is a container
without leaves.

    >>> leaves, tree = flatten({"w": 1.0, "b": (2.0, None)})
    >>> leaves
    [1.0, 2.0]
    >>> unflatten(tree, [10.0, 20.0])
    {'w': 10.0, 'b': (20.0, None)}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TreeDef:
    """The structure: kind "leaf", "none", "tuple", "list", "namedtuple", "dict" or "dataclass";
    `keys` names the children.
    """

    kind: str
    cls: Any = None
    keys: tuple[Any, ...] = ()
    children: tuple[TreeDef, ...] = ()


LEAF = TreeDef("leaf")
NONE = TreeDef("none")


def kind_of(value: Any) -> str:
    """Which container a value is; "leaf" for everything else."""
    if value is None:
        return "none"
    cls = type(value)
    if isinstance(value, tuple):
        return "namedtuple" if hasattr(cls, "_fields") else "tuple"
    if isinstance(value, list):
        return "list"
    if isinstance(value, dict):
        return "dict"
    if dataclasses.is_dataclass(value.__class__):  # a traced proxy answers as its object
        return "dataclass"
    return "leaf"


def children_of(kind: str, value: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Keys and children of a container."""
    if kind == "dict":
        return tuple(value), list(value.values())
    if kind == "dataclass":
        names = tuple(f.name for f in dataclasses.fields(value.__class__))
        return names, [getattr(value, n) for n in names]
    return tuple(range(len(value))), list(value)


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """Leaves from left to right, and the structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> TreeDef:
    kind = kind_of(tree)
    if kind == "leaf":
        leaves.append(tree)
        return LEAF
    if kind == "none":
        return NONE
    keys, children = children_of(kind, tree)
    return TreeDef(kind, plain_class(tree), keys, tuple(_flatten(c, leaves) for c in children))


def plain_class(tree: Any) -> Any:
    """The class that a container is rebuilt as; traced stand-ins say so themselves."""
    cls = type(tree)
    return tree._npjit_rebuilds_as if hasattr(cls, "_npjit_rebuilds_as") else cls


def unflatten(tree: TreeDef, leaves: Sequence[Any]) -> Any:
    """A tree of this structure with these leaves."""
    return _unflatten(tree, iter(leaves))


def _unflatten(tree: TreeDef, leaves: Iterator[Any]) -> Any:
    if tree.kind == "leaf":
        return next(leaves)
    if tree.kind == "none":
        return None
    return build(tree.kind, tree.cls, tree.keys, [_unflatten(c, leaves) for c in tree.children])


def build(kind: str, cls: Any, keys: Sequence[Any], children: list[Any]) -> Any:
    """A container from its parts."""
    if kind == "namedtuple":
        return cls(*children)
    if kind == "dict":
        made = cls.__new__(cls)
        made.update(zip(keys, children, strict=True))
        return made
    if kind == "dataclass":
        made = cls._npjit_empty() if hasattr(cls, "_npjit_empty") else object.__new__(cls)
        for name, child in zip(keys, children, strict=True):
            object.__setattr__(made, name, child)
        return made
    return cls(children)


def tree_map(call: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with every leaf replaced."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [call(x) for x in leaves])
