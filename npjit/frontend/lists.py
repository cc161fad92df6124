"""Lists that grow in staged loops: the items become rows of one array.

Staged source makes a `GrowingList` of each list display that it appends to. As long as nothing
grows in a staged loop it is a plain list. When the body of one appends to it, the loop's `Stager`
gives it `rows`, an array with room for all trips, and from then on it holds (rows, length):

    out = []                          rows = np.zeros(n); length = 0
    for i in range(n):          ->    for i in range(n):
        out.append(x[i] ** 2)             rows[length] = x[i] ** 2; length = length + 1
    np.array(out)                     rows[:length]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

from npjit.core.assume import Unknown
from npjit.core.graph import Block, TensorType, Weight
from npjit.core.size import Size
from npjit.frontend.values import NotStaged, as_type, is_array, is_number, joined, traced, type_of
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.indexing import normalise_index
from npjit.ops.symint import is_int, size_of, wrap
from npjit.ops.tracer import as_node, fresh

# a list of more items than this is not taken apart
MOST_ITEMS = 64
# rows that are added when a list grows behind its loop
MORE = 8


class GrowingList(list):  # type: ignore[type-arg]
    """See the module's docstring. `item` is the type of one item."""

    _npjit_rebuilds_as = stands_for = list

    def __init__(self, block: Block, items: Any) -> None:
        super().__init__(items)
        self.block = block
        self.rows: Any = None
        self.length: Any = None
        self.item: TensorType | None = None

    def stack(self, item: TensorType, most: Size) -> None:
        """From now on the items are rows, of which there is room for `most`."""
        items = list(self)
        self.clear()
        self.rows, self.length, self.item = self._new_rows(item, most), 0, item
        for k, value in enumerate(items):
            if is_array(value):
                value.cell.children.append(ref(self.rows.cell))
            self.rows[k] = as_row(self.block, value, item)
        self.length = len(items)

    def unstack(self, items: list[Any]) -> None:
        """A plain list again."""
        self.rows = self.length = self.item = None
        self[:] = items

    def append(self, value: Any) -> None:
        if self.rows is None:
            super().append(value)
            return
        item = self._as_item(value)
        self._make_room()
        self.rows[self.length] = item
        self.length = self.length + 1

    def _make_room(self) -> None:
        """Behind the loop that the rows were made for: more of them, as a list would have."""
        length, most = size_of(self.length), self.rows.raw_shape[0]
        try:
            if self.block.sizes.decide_le(length + 1, most):
                return
        except Unknown:
            pass  # there is room in some trips only
        if self.rows.cell.level < self.block.depth:
            raise NotStaged("a list grows in a second loop")
        assert self.item is not None
        wider = self._new_rows(self.item, most + MORE)
        wider[: wrap(self.block, most)] = self.rows
        self.rows = wider

    def _new_rows(self, item: TensorType, most: Size) -> Any:
        zero = build.constant(self.block, 0, item.dtype, Weight.ARRAY)
        rows = fresh(self.block, build.broadcast(self.block, zero, (most, *item.shape)))
        rows.cell._own()
        return rows

    def _as_item(self, value: Any) -> Any:
        """The value as a row. A list holds arrays themselves: what is written to one later would
        show, so that only arrays which nobody else has can become rows."""
        assert self.item is not None
        if is_array(value):
            require_own(self.block, value)
            value.cell.children.append(ref(self.rows.cell))
        if item_type(self.block, [value], self.item) != self.item:
            raise NotStaged("the items of a list change their type in a loop")
        return as_row(self.block, value, self.item)

    def whole(self) -> Any:
        """All items as an array."""
        return self.rows[: self.length].copy()

    def __len__(self) -> int:
        if self.rows is None:
            return super().__len__()
        if not is_int(self.length):
            raise NotCaptured("a list whose length depends on values")
        return int(self.length)

    def __getitem__(self, key: Any) -> Any:
        if self.rows is None:
            return super().__getitem__(key)
        return self._read(self._position(key))

    def _position(self, key: Any) -> Any:
        if isinstance(key, slice) or not is_int(self.length):
            raise NotCaptured("a slice of a list that grows in a loop")
        return wrap(self.block, normalise_index(self.block, key, size_of(self.length)))

    def _read(self, position: Any) -> Any:
        assert self.item is not None
        value = self.rows[position]
        if self.item.shape:
            return value.copy()
        return traced(self.block, build.weigh(self.block, value.node, self.item.weight))

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.rows is None:
            super().__setitem__(key, value)
        else:
            self.rows[self._position(key)] = self._as_item(value)

    def __iter__(self) -> Iterator[Any]:
        if self.rows is None:
            return super().__iter__()
        if len(self) > MOST_ITEMS:
            raise NotCaptured(f"a list of {len(self)} computed items is taken apart")
        return iter([self._read(k) for k in range(len(self))])


def _plain(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def checked(self: GrowingList, *args: Any, **kwargs: Any) -> Any:
        if self.rows is not None:
            raise NotCaptured(f"list.{name} of a list that grows in a loop")
        return method(self, *args, **kwargs)

    return checked


_OTHERS = """
__delitem__ __iadd__ __add__ __imul__ __mul__ __rmul__ __contains__ __eq__ __ne__ __lt__ __le__
__gt__ __ge__ __reversed__ extend insert pop remove sort reverse copy index count
"""
for _name in _OTHERS.split():
    setattr(GrowingList, _name, _plain(_name))


def whole(value: Any) -> Any:
    """A list that has become rows as one array; everything else as it is."""
    return value.whole() if type(value) is GrowingList and value.rows is not None else value


def as_row(block: Block, value: Any, item: TensorType) -> Any:
    """A value as an item of this type."""
    return traced(block, as_type(block, as_node(block, value), item))


def require_own(block: Block, value: Any) -> None:
    """NotStaged for an array that was not made in this very trip."""
    if value.cell.level < block.depth or value.cell.argument:
        raise NotStaged("a list of arrays that can be changed through other names")


def item_type(block: Block, values: list[Any], known: TensorType | None = None) -> TensorType:
    """The type of a row that holds any of these values."""
    found = known
    for value in values:
        if not (is_number(value) or is_array(value)):
            raise NotStaged("a list of objects grows in a loop")
        type_ = type_of(block, value)
        if found is not None and found != type_:
            type_ = joined(found, type_)
        found = type_
    assert found is not None
    return found
