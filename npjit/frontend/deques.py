"""`collections.deque` in traced code: a list that is also taken from, and given to, at its front.

q = deque(maxlen=3)
for v in x: q.append(v)      ->    rows[first + length] = v; length + 1, or first + 1 when full
"""

from __future__ import annotations

import collections
from typing import Any

from npjit.core.graph import Block
from npjit.frontend.lists import GrowingList
from npjit.frontend.values import truth_of
from npjit.ops.errors import NotCaptured


class GrowingDeque(GrowingList):
    """See the module's docstring."""

    _npjit_rebuilds_as = stands_for = collections.deque

    def __init__(self, block: Block, items: Any = (), maxlen: Any = None) -> None:
        super().__init__(block, list(items))
        self.maxlen = maxlen
        self._limit()

    def append(self, value: Any) -> None:
        super().append(value)
        self._limit()

    def appendleft(self, value: Any) -> None:
        """Put an item in front."""
        if self.maxlen is not None:
            raise NotCaptured("deque.appendleft with maxlen")
        self.insert(0, value)

    def popleft(self) -> Any:
        """Take the first item away."""
        return self.pop(0)

    def _limit(self) -> None:
        """Take what is too much away at the front."""
        if self.maxlen is None:
            return
        if self.rows is None:
            del self[: max(0, len(self) - self.maxlen)]
            return
        over = truth_of(self.length > self.maxlen)
        choose = self.block.capture.outside.control.choose  # type: ignore[attr-defined]
        self.first = choose(over, lambda: self.first + 1, lambda: self.first)
        self.length = choose(over, lambda: self.maxlen, lambda: self.length)


def _refused(name: str) -> Any:
    def method(self: Any, *args: Any) -> Any:
        raise NotCaptured(f"deque.{name}")

    return method


for _name in ("extendleft", "rotate"):
    setattr(GrowingDeque, _name, _refused(_name))
