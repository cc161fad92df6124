"""Methods of lists, for lists whose items have become rows (see `npjit.frontend.lists`).

Taking the first item away moves where the list begins; what changes the order of items, or closes
a gap, moves rows:

    q = [a, b, c];  q.pop(0)     ->    first = 1; length = 2
    q.insert(0, d)               ->    rows[first + 1 :] = rows[first : end]; rows[first] = d
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.graph import Block
from npjit.core.size import Size
from npjit.frontend.conversions import convert
from npjit.frontend.rows import ListOfRows
from npjit.frontend.values import is_number
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.indexing import normalise_slice, traced_int
from npjit.ops.kinds import CHECK
from npjit.ops.symint import is_int, wrap
from npjit.ops.tracer import Tracer, weak_number


class ListMethods(ListOfRows):
    """See the module's docstring. The list itself says what `read`, `append`, `extent` and `shown`
    are.
    """

    block: Block
    first: Any
    length: Any
    most: Size

    def pop(self, index: Any = -1) -> Any:
        """Take an item away."""
        if self.rows is None:
            return super().pop(index)
        left = self._one_less()
        if type(index) is int and index == 0:
            value = self.read(0)
            self.first = self.first + 1
        elif type(index) is int and index == -1:
            value = self.read(left)
        else:
            position = self._position(index)
            value = self.read(position)
            begin = self._row(position)
            self._move(begin + 1, self._row(left) + 1, begin)
        self.length = left if is_int(self.length) else weak_number(left)
        return value

    def _one_less(self) -> Any:
        """The number of items but one; a check sees to it that there is one."""
        if build.is_empty(self.block, self.extent):
            raise IndexError("pop from empty list")
        return wrap(self.block, self.extent - 1)

    def __delitem__(self, key: Any) -> None:
        if self.rows is None:
            super().__delitem__(key)
        elif isinstance(key, slice):
            raise NotCaptured("del of a part of a list that grows in a loop")
        else:
            self.pop(key)

    def insert(self, index: Any, value: Any) -> None:
        """Put an item before the one at an index."""
        if self.rows is None:
            self.most = self.most + 1
            super().insert(index, value)
            return
        before = normalise_slice(self.block, slice(0, index), self.extent).length
        begin, end = self._row(wrap(self.block, before)), self._row(self.length)
        self.append(value)
        for r in self.rows:
            new = r[end].copy()
            r[begin + 1 : end + 1] = r[begin:end].copy()
            r[begin] = new

    def remove(self, value: Any) -> None:
        """Take the first item away that equals a value."""
        if self.rows is None:
            super().remove(value)
        else:
            self.pop(self.index(value))

    def index(self, value: Any, *rest: Any) -> Any:
        """Where the first item is that equals a value."""
        if self.rows is None:
            return super().index(value, *rest)
        if rest:
            raise NotCaptured("list.index in a part of a list that grows in a loop")
        hits = self._equal(value)
        found = np.any(hits).node
        self.block.add(CHECK, (found,), "ValueError: not in the list", found.type)
        return convert(int, np.argmax(hits))

    def count(self, value: Any) -> Any:
        """How many items equal a value."""
        if self.rows is None:
            return super().count(value)
        return convert(int, np.sum(self._equal(value)))

    def _equal(self, value: Any) -> Any:
        if not is_number(value) or not self.item.is_plain or self.item.types[0].shape:
            raise NotCaptured("a list of arrays or objects that grows in a loop is searched")
        return self.whole() == value

    def copy(self) -> Any:
        """Another list of the same items."""
        return self[:] if self.rows is not None else super().copy()

    def clear(self) -> None:
        """Take all items away."""
        if self.rows is None:
            super().clear()
        else:
            self.first = self.length = 0

    def reverse(self) -> None:
        """Turn the order of the items."""
        if self.rows is None:
            super().reverse()
        else:
            self._store([r[::-1].copy() for r in self.shown()])

    def sort(self, *, key: Any = None, reverse: Any = False) -> None:
        """Sort the items."""
        order = self.block.capture.outside.control.order(self, key, reverse)
        if order is None:
            super().sort(key=key, reverse=reverse)
        else:
            self._stack_as_it_is()
            self._store([r[order] for r in self.shown()])

    def _store(self, parts: list[Any]) -> None:
        """Have the items be these."""
        begin, end = self._row(0), self._row(self.length)
        for r, part in zip(self.rows, parts, strict=True):
            r[begin:end] = part

    def _move(self, begin: Any, end: Any, to: Any) -> None:
        """Move rows to an earlier place."""
        for r in self.rows:
            r[to : to + (end - begin)] = r[begin:end].copy()

    def _row(self, position: Any) -> Any:
        """The row of an item, as an int whose sums and differences are known."""
        row = self.first + position
        return wrap(self.block, traced_int(self.block, row.node)) if type(row) is Tracer else row
