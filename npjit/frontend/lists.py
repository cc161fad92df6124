"""Lists that grow in staged loops and branches: the items become rows of arrays.

Staged source makes a `GrowingList` of each list display whose name is appended to or indexed. As
long as that happens where Python's own path is taken it is a plain list. When the body of a staged
loop or branch changes it, it gets `rows`, arrays with room for the items of all trips, and from
then on it holds (rows, length); the length may depend on values:

    out = []                          rows = np.zeros(n); length = 0
    for i in range(n):          ->    for i in range(n):
        if x[i] > 0:                      if x[i] > 0:
            out.append(x[i] ** 2)             rows[length] = x[i] ** 2; length = length + 1
    np.array(out)                     rows[:length]

Where the room turns out to be too small, the check of the index fails and the call runs as NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import ref

from npjit.core.graph import Block
from npjit.core.size import Size, atoms
from npjit.frontend import rows as row
from npjit.frontend.rows import Item, ListOfRows, item_of
from npjit.frontend.values import NotStaged, is_array
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.indexing import bind, normalise_index, normalise_slice
from npjit.ops.kinds import CHECK
from npjit.ops.sharing import root_of
from npjit.ops.symint import SymInt, is_int, size_of, wrap
from npjit.ops.tracer import Tracer, as_node, weak_number

# a list of more items than this is not taken apart
MOST_ITEMS = 64
# rows that are added when a list grows where it is known to be full
MORE = 8


class GrowingList(ListOfRows):
    """See the module's docstring. `item` is the type of one item; `most` a bound of the length."""

    _npjit_rebuilds_as = stands_for = list

    def __init__(self, block: Block, items: Any) -> None:
        super().__init__(items)
        self.block = block
        self.length: Any = None
        self.most: Size = len(self)
        # lists, dicts and objects that have become rows, with what they held then
        self.given: list[tuple[Any, list[Any]]] = []

    @staticmethod
    def repeated(block: Block, value: Any, count: Size) -> GrowingList:
        """[value] * count"""
        made = GrowingList(block, [])
        made.stack(item_of(block, [value]), count)
        made._put(slice(None), value, own=False)
        made.length, made.most = wrap(block, count), count
        return made

    def stack(self, item: Item, room: Size) -> None:
        """From now on the items are rows, of which there is room for so many."""
        if self.rows is not None:
            self._join(item)
            self._widen(room)
            return
        items = list(self)
        if items and item.is_mutable:
            raise NotStaged("a list of lists, dicts or objects grows in a loop")
        self.clear()
        self.rows, self.length, self.item = row.rows_for(self.block, item, room), 0, item
        for k, value in enumerate(items):
            self._put(k, value, own=False)
        self.length = len(items)

    def _join(self, item: Item) -> None:
        """Have the items be of a type that holds this one as well, in the same rows."""
        assert self.item is not None
        both = row.joined_items(self.item, item)
        if [t.dtype for t in both.types] != [t.dtype for t in self.item.types]:
            raise NotStaged("the items of a list change their type in a loop")
        self.item = both

    def snapshot(self) -> tuple[Any, ...]:
        """What `revert` takes to make the list what it is now."""
        return list(super().__iter__()), self.rows, self.length, self.item, self.most

    def revert(self, before: tuple[Any, ...]) -> None:
        """The list as it was."""
        items, self.rows, self.length, self.item, self.most = before
        super().__setitem__(slice(None), items)

    def unstack(self, items: list[Any]) -> None:
        """A plain list again."""
        self.rows = self.length = self.item = None
        super().__setitem__(slice(None), items)

    @property
    def is_outside(self) -> bool:
        """Whether the rows were made outside the innermost loop or branch."""
        return self.rows is not None and _is_outside(self.rows[0])

    @property
    def room(self) -> Size:
        """How many items the rows take."""
        assert self.rows is not None
        found: Size = self.rows[0].raw_shape[0]
        return found

    @property
    def extent(self) -> Size:
        """The length as a size; one that depends on values is a size variable."""
        if is_int(self.length):
            return size_of(self.length)
        return bind(self.block, as_node(self.block, self.length), 0, self.room)

    def append(self, value: Any) -> None:
        self.most = self.most + 1
        if self.rows is None:
            super().append(value)
            return
        if not self.is_outside and not self._is_sure_of(self.most):
            self._widen(self.room + MORE)
        if is_int(self.length) and not self._is_sure_of(size_of(self.length) + 1):
            # the loop around finds the room too small, and its body is traced again
            never = build.constant(self.block, False, build.BOOL)
            self.block.add(CHECK, (never,), "a list without room", never.type)
        else:
            self._put(self.length, value, own=True)
        self.length = self.length + 1

    def extend(self, values: Any) -> None:
        for value in list(values):
            self.append(value)

    def pop(self, *index: Any) -> Any:
        if self.rows is None:
            return super().pop(*index)
        if index not in ((), (-1,)):
            raise NotCaptured("list.pop of an item that is not the last one")
        extent = self.extent
        if build.is_empty(self.block, extent):
            raise IndexError("pop from empty list")
        last = wrap(self.block, extent - 1)
        value = self.read(last)
        self.length = last if is_int(self.length) else weak_number(last)
        return value

    def __delitem__(self, key: Any) -> None:
        if self.rows is None:
            super().__delitem__(key)
        elif type(key) is int and key == -1:
            self.pop()
        else:
            raise NotCaptured("del of an item of a list that grows in a loop")

    def truth(self) -> Any:
        """Whether there are items."""
        return self.length if self.rows is not None else super().__len__() > 0

    def __iadd__(self, values: Any) -> Any:
        self.extend(values)
        return self

    def _is_sure_of(self, count: Size) -> bool:
        return self.block.sizes.le(count, self.room) is True

    def _widen(self, room: Size) -> None:
        """Rows with room for more items."""
        if self._is_sure_of(room) and self.block.sizes.eq(room, self.room) is not True:
            return
        assert self.rows is not None and self.item is not None
        old = wrap(self.block, self.room)
        wider = row.rows_for(self.block, self.item, room)
        for new, known in zip(wider, self.rows, strict=True):
            new[:old] = known
        self.rows = wider

    def _put(self, position: Any, value: Any, own: bool) -> None:
        """Store an item. A list holds arrays and objects themselves: what is written to one later
        would show, so that only those which nobody else has can become rows."""
        assert self.rows is not None and self.item is not None
        if own:
            require_own(self.block, value)
        self.given += [(m, row.contents(m)) for m in row.mutable_parts(value)]
        self._join(item_of(self.block, [value]))
        leaves = row.leaves_of(self.block, value, self.item)
        originals, _ = row.taken_apart(value)
        for array, original, leaf in zip(self.rows, originals, leaves, strict=True):
            if is_array(original):
                original.cell.children.append(ref(array.cell))
            array[position] = leaf

    def require_given(self, visible: list[Any]) -> None:
        """NotStaged when an item that has become rows was changed, or is still within reach."""
        for value, held in self.given:
            is_changed = not _are_same(row.contents(value), held)
            if is_changed or any(value is v for v in visible):
                raise NotStaged("a list of lists, dicts or objects that have other names")
        self.given = []

    def whole(self) -> Any:
        """All items as an array."""
        assert self.rows is not None and self.item is not None
        end = wrap(self.block, self.extent)
        return row.as_array([r[:end] for r in self.rows], self.item)

    def __len__(self) -> int:
        if self.rows is None:
            return super().__len__()
        if not is_int(self.length):
            raise NotCaptured("a list whose length depends on values")
        return int(self.length)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and self.rows is not None:
            return self._part(key)
        if self.rows is None and not self._is_computed(key):
            return super().__getitem__(key)
        self._stack_as_it_is()
        return self.read(self._position(key))

    def _part(self, key: slice) -> GrowingList:
        """A list of the items that a slice names."""
        assert self.rows is not None
        end = wrap(self.block, self.extent)
        made = GrowingList(self.block, [])
        made.rows = tuple(r[:end][key].copy() for r in self.rows)
        made.item = self.item
        made.most = normalise_slice(self.block, key, self.extent).length
        made.length = wrap(self.block, made.most)
        return made

    def _is_computed(self, key: Any) -> bool:
        """Whether only the running code knows which item a key names."""
        if type(key) is Tracer:
            return True
        known = self.block.sizes.values
        return type(key) is SymInt and any(v.name not in known for v in atoms(key.size))

    def _stack_as_it_is(self) -> None:
        if self.rows is None:
            try:
                self.stack(item_of(self.block, list(self)), super().__len__())
            except NotStaged as e:
                raise NotCaptured(f"a computed index of a list: {e}") from None

    def _position(self, key: Any) -> Any:
        return wrap(self.block, normalise_index(self.block, key, self.extent))

    def read(self, position: Any) -> Any:
        """The item at a position that is in range."""
        assert self.rows is not None and self.item is not None
        return row.read(self.block, self.rows, self.item, position)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.rows is None and not self._is_computed(key):
            super().__setitem__(key, value)
            return
        self._stack_as_it_is()
        self._put(self._position(key), value, own=True)

    def __iter__(self) -> Iterator[Any]:
        if self.rows is None:
            return super().__iter__()
        if len(self) > MOST_ITEMS:
            raise NotCaptured(f"a list of {len(self)} computed items is taken apart")
        return iter([self.read(k) for k in range(len(self))])


def _plain(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def checked(self: GrowingList, *args: Any, **kwargs: Any) -> Any:
        if self.rows is not None:
            raise NotCaptured(f"list.{name} of a list that grows in a loop")
        return method(self, *args, **kwargs)

    return checked


_OTHERS = """
__add__ __imul__ __mul__ __rmul__ __contains__ __eq__ __ne__ __lt__ __le__
__gt__ __ge__ __reversed__ insert remove sort reverse copy index count
"""
for _name in _OTHERS.split():
    setattr(GrowingList, _name, _plain(_name))


def whole(value: Any) -> Any:
    """A list that has become rows as one array; everything else as it is."""
    return value.whole() if is_stacked(value) else value


def is_stacked(value: Any) -> bool:
    """Whether a value is a list that has become rows."""
    return type(value) is GrowingList and value.rows is not None


def given_item(block: Block, target: GrowingList, known: Sequence[Any]) -> Item:
    """The type of the items that a body has given to a list that held `known`."""
    if target.rows is not None:
        assert target.item is not None
        return target.item
    held = list(target)
    kept = 0
    while kept < min(len(held), len(known)) and held[kept] is known[kept]:
        kept += 1
    for value in held[kept:]:
        require_own(block, value)
    return item_of(block, held[kept:] or known)


def require_own(block: Block, value: Any) -> None:
    """NotStaged for an item with an array that was not made in this very trip."""
    for leaf in row.taken_apart(value)[0]:
        if is_array(leaf) and (leaf.cell.argument or _is_outside(leaf)):
            raise NotStaged("a list of arrays that can be changed through other names")


def _is_outside(array: Tracer) -> bool:
    return bool(root_of(array.cell).is_outside)


def _are_same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
