"""Items of a list as rows of arrays: one array for each number or array of an item.

`Item` is the type of an item: its structure, and the types of its leaves. `rows_for` makes empty
rows, `leaves_of` takes an item apart to be stored in them, `read` puts one together again.

    [(0, 1.5), (1, 2.5)]    ->    rows = (array([0, 1]), array([1.5, 2.5]))
                                  item = Item(tuple of two leaves, (int64~, float64~))

An item that is itself a list held as rows counts as one leaf, an array (kind "stacked").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core.graph import Block, TensorType, Weight
from npjit.core.size import Size
from npjit.core.trees import TreeDef, build, children_of, flatten, kind_of, plain_class
from npjit.frontend.objects import MadeObject, real_class
from npjit.frontend.values import NotStaged, as_type, is_array, is_number, joined, traced, type_of
from npjit.ops import build as nodes
from npjit.ops.errors import NotCaptured
from npjit.ops.tracer import as_node, fresh

_MUTABLE = ("list", "dict", "dataclass")


@dataclass(frozen=True)
class Item:
    """The type of an item. `mixed`: its numbers may be Python's or NumPy's, so that only an array
    can be made of the list."""

    tree: TreeDef
    types: tuple[TensorType, ...]
    mixed: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether an item is one number or array."""
        return self.tree.kind == "leaf"

    @property
    def is_mutable(self) -> bool:
        """Whether an item can be changed by other names, apart from its arrays."""
        return _has_kind(self.tree, (*_MUTABLE, "stacked"))

    def sizes(self) -> list[Size]:
        """The extents of its arrays."""
        return [n for t in self.types for n in t.shape]


class ListOfRows(list):  # type: ignore[type-arg]
    """A list whose items are rows, unless `rows` is None."""

    rows: tuple[Any, ...] | None = None
    item: Item | None = None

    def whole(self) -> Any:
        """All items as an array."""
        raise NotImplementedError


def _has_kind(tree: TreeDef, kinds: Sequence[str]) -> bool:
    return tree.kind in kinds or any(_has_kind(c, kinds) for c in tree.children)


def taken_apart(value: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of an item and its structure."""
    if isinstance(value, ListOfRows) and value.rows is not None:
        if value.item is None or not value.item.is_plain:
            raise NotStaged("a list of lists of objects grows in a loop")
        return [value.whole()], TreeDef("stacked", list, (value.item.types[0].weight,))
    kind = kind_of(value)
    if kind in ("leaf", "none"):
        leaves, tree = flatten(value)
        if not all(is_number(v) or is_array(v) for v in leaves):
            raise NotStaged("a list of objects grows in a loop")
        return leaves, tree
    keys, children = children_of(kind, value)
    parts = [taken_apart(c) for c in children]
    tree = TreeDef(kind, plain_class(value), keys, tuple(t for _, t in parts))
    return [leaf for leaves, _ in parts for leaf in leaves], tree


def item_of(block: Block, values: Sequence[Any], known: Item | None = None) -> Item:
    """The type of an item that holds any of these values."""
    for value in values:
        leaves, tree = taken_apart(value)
        found = Item(tree, tuple(type_of(block, v) for v in leaves))
        known = found if known is None else joined_items(known, found)
    if known is None:
        raise NotStaged("an empty list is taken for one of items")
    return known


def joined_items(a: Item, b: Item) -> Item:
    """The type that holds items of both."""
    if a.tree != b.tree:
        raise NotStaged("a list of items of different structure grows in a loop")
    types = tuple(s if s == t else joined(s, t) for s, t in zip(a.types, b.types, strict=True))
    return Item(a.tree, types, a.mixed or b.mixed or not a.types == types == b.types)


def leaves_of(block: Block, value: Any, item: Item) -> list[Any]:
    """A value as an item of this type."""
    leaves, _ = taken_apart(value)
    pairs = zip(leaves, item.types, strict=True)
    return [traced(block, as_type(block, as_node(block, v), t)) for v, t in pairs]


def rows_for(block: Block, item: Item, most: Size) -> tuple[Any, ...]:
    """Empty rows for so many items."""
    made = []
    for type_ in item.types:
        zero = nodes.constant(block, 0, type_.dtype, Weight.ARRAY)
        rows = fresh(block, nodes.broadcast(block, zero, (most, *type_.shape)))
        rows.cell._own()
        made.append(rows)
    return tuple(made)


def read(block: Block, rows: Sequence[Any], item: Item, position: Any) -> Any:
    """The item at a position."""
    if item.mixed and not block.depth:
        # in a loop, as with a name that is carried, nobody looks
        raise NotCaptured("an item of a list of Python's and NumPy's numbers")
    if item.is_mutable:
        # what is changed in it would have to show in the list
        raise NotCaptured("a list that grows in a loop gives back a list, dict or object")
    leaves = []
    for array, type_ in zip(rows, item.types, strict=True):
        value = array[position]
        if type_.shape:
            leaves.append(value.copy())
        else:
            leaves.append(traced(block, nodes.weigh(block, value.node, type_.weight)))
    return _put_together(item.tree, iter(leaves))


def _put_together(tree: TreeDef, leaves: Any) -> Any:
    if tree.kind in ("leaf", "stacked"):
        return next(leaves)
    if tree.kind == "none":
        return None
    return build(tree.kind, tree.cls, tree.keys, [_put_together(c, leaves) for c in tree.children])


def as_array(rows: Sequence[Any], item: Item) -> Any:
    """np.array of the list: items that are tuples or lists become axes."""
    made = _stacked(item.tree, iter(rows))
    # without a copy a later item would be written into the array
    return made.copy() if item.is_plain else made


def _stacked(tree: TreeDef, rows: Any) -> Any:
    if tree.kind in ("leaf", "stacked"):
        return next(rows)
    if tree.kind not in ("tuple", "list", "namedtuple") or not tree.children:
        raise NotCaptured("an array of a list of objects")
    parts = [_stacked(c, rows) for c in tree.children]
    if any(p.ndim != parts[0].ndim for p in parts):
        raise NotCaptured("an array of items of different shapes")
    return np.stack(parts, axis=1)


def contents(value: Any) -> list[Any]:
    """What a list, dict or object holds now, to be compared by identity."""
    if isinstance(value, ListOfRows) and value.rows is not None:
        return [r.cell.node for r in value.rows]
    return children_of(kind_of(value), value)[1]


def mutable_parts(value: Any) -> list[Any]:
    """The lists, dicts and objects that an item is made of."""
    if isinstance(value, ListOfRows) and value.rows is not None:
        return [value]
    kind = kind_of(value)
    own = [value] if kind in _MUTABLE or type(value) is MadeObject else []
    if kind in ("leaf", "none"):
        return own
    return own + [m for c in children_of(kind, value)[1] for m in mutable_parts(c)]


class Rebuilt:
    """What makes the Python list of a call's result of its length and its rows."""

    def __init__(self, item: Item) -> None:
        self.item = item

    def __call__(self, length: int, *rows: np.ndarray) -> list[Any]:
        columns = iter(
            _column(r[:length], t.weight, bool(t.shape))
            for r, t in zip(rows, self.item.types, strict=True)
        )
        return _items(self.item.tree, columns, length)


def _column(rows: np.ndarray, weight: Weight, has_axes: bool) -> list[Any]:
    if weight is Weight.WEAK:
        return rows.tolist()  # type: ignore[no-any-return]
    return [r.copy() for r in rows] if has_axes else list(rows)


def _items(tree: TreeDef, columns: Any, length: int) -> list[Any]:
    if tree.kind == "none":
        return [None] * length
    if tree.kind == "leaf":
        return next(columns)  # type: ignore[no-any-return]
    if tree.kind == "stacked":
        (weight,) = tree.keys
        return [_column(r, weight, False) for r in next(columns)]
    parts = [_items(c, columns, length) for c in tree.children]
    cls = real_class(tree.cls)
    return [build(tree.kind, cls, tree.keys, [p[k] for p in parts]) for k in range(length)]
