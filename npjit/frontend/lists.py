"""Lists that grow in staged loops and branches: the items become rows of arrays.

Staged source makes a `GrowingList` of each list display whose name is appended to or indexed. As
long as that happens where Python's own path is taken it is a plain list. When the body of a staged
loop or branch changes it, it gets `rows`, arrays with room for the items of all trips, and from
then on it holds (rows, first, length); where it begins and its length may depend on values:

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
from npjit.frontend.list_methods import ListMethods
from npjit.frontend.rows import Item, item_of
from npjit.frontend.values import NotStaged, is_array
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.indexing import bind, normalise_index
from npjit.ops.kinds import CHECK
from npjit.ops.sharing import root_of
from npjit.ops.symint import SymInt, is_int, size_of, wrap
from npjit.ops.tracer import Tracer, as_node

# a list of more items than this is not taken apart
MOST_ITEMS = 64
# rows that are added when a list grows where it is known to be full
MORE = 8
CHANGING = "a list changes while a loop goes over it"


class GrowingList(ListMethods):
    """See the module's docstring. `item` is the type of one item; `most` a bound of the length."""

    _npjit_rebuilds_as = stands_for = list

    def __init__(self, block: Block, items: Any) -> None:
        super().__init__(items)
        self.block = block
        self.length: Any = None
        # the row of the first item: those before have been taken away
        self.first: Any = 0
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
        self.rows, self.item = row.rows_for(self.block, item, room), item
        self.first, self.length = 0, 0
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

    def hold(self, rows: Sequence[Any], item: Item) -> None:
        """From now on the items are these rows, which nobody else has."""
        self.rows, self.item, self.first = tuple(rows), item, 0
        self.most = rows[0].raw_shape[0]
        self.length = wrap(self.block, self.most)

    def snapshot(self) -> tuple[Any, ...]:
        """What `revert` takes to make the list what it is now."""
        items = list(super().__iter__())
        return items, self.rows, self.first, self.length, self.item, self.most

    def revert(self, before: tuple[Any, ...]) -> None:
        """The list as it was."""
        items, self.rows, self.first, self.length, self.item, self.most = before
        super().__setitem__(slice(None), items)

    def unstack(self, items: list[Any]) -> None:
        """A plain list again."""
        self.rows = self.length = self.item = None
        self.first = 0
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

    @property
    def end(self) -> Any:
        """The row behind the last item."""
        return self.first + self.length

    def shown(self) -> list[Any]:
        """The rows of the items that there are."""
        assert self.rows is not None
        if self._begins_first():
            end = wrap(self.block, self.extent)
            return [r[:end] for r in self.rows]
        return [r[self.first : self.end] for r in self.rows]

    def placed(self) -> list[Any]:
        """Rows that begin with the first item."""
        assert self.rows is not None
        return list(self.rows if self._begins_first() else self.shown())

    def _begins_first(self) -> bool:
        return type(self.first) is int and self.first == 0

    def append(self, value: Any) -> None:
        self.most = self.most + 1
        if self.rows is None:
            super().append(value)
            return
        if not self.is_outside and not self._is_sure_of(self.most):
            self._widen(self.room + MORE)
        if is_int(self.end) and not self._is_sure_of(size_of(self.end) + 1):
            # the loop around finds the room too small, and its body is traced again
            never = build.constant(self.block, False, build.BOOL)
            self.block.add(CHECK, (never,), "a list without room", never.type)
        else:
            self._put(self.end, value, own=True)
        self.length = self.length + 1

    def extend(self, values: Any) -> None:
        def body(item: Any) -> tuple[()]:
            self.append(item)
            return ()

        is_own = values is self
        control = self.block.capture.outside.control  # type: ignore[attr-defined]
        control.for_loop(self.copy() if is_own else values, body, (), (), ())

    def truth(self) -> Any:
        """Whether there are items."""
        return self.length > 0 if self.rows is not None else super().__len__() > 0

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
        assert self.item is not None
        return row.as_array(self.shown(), self.item)

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
        assert self.item is not None
        made = GrowingList(self.block, [])
        made.hold([r[key].copy() for r in self.shown()], self.item)
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
        return row.read(self.block, self.rows, self.item, self.first + position)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.rows is None and not self._is_computed(key):
            super().__setitem__(key, value)
            return
        self._stack_as_it_is()
        self._put(self.first + self._position(key), value, own=True)

    def _one_by_one(self) -> Iterator[Any]:
        """The items of a plain list, as it is when each is asked for."""
        position = 0
        while position < super().__len__():
            yield super().__getitem__(position)
            position += 1
            if self.rows is not None:
                raise NotCaptured(CHANGING)

    def __iter__(self) -> Iterator[Any]:
        if self.rows is None:
            return self._one_by_one()
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
__gt__ __ge__ __reversed__
"""
for _name in _OTHERS.split():
    setattr(GrowingList, _name, _plain(_name))


def whole(value: Any) -> Any:
    """A list that has become rows as one array; everything else as it is."""
    return value.whole() if is_stacked(value) else value


def is_stacked(value: Any) -> bool:
    """Whether a value is a list that has become rows."""
    return isinstance(value, GrowingList) and value.rows is not None


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
