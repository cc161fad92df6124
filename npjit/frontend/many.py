"""What staged source calls for lists, comprehensions and generator expressions, and what `sum`,
`any`, `min`, `sorted` and their like do over many values: loops of their own.

    [f(v) for v in x if v > 0]     ->    made = []; for v in x: if v > 0: made.append(f(v))
    sum(v * v for v in x)          ->    total = 0; for v in x: total += v * v
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npjit.frontend.decisions import Decisions
from npjit.frontend.items import Generated, Items, Values, items_of
from npjit.frontend.lists import GrowingList, is_stacked
from npjit.frontend.ordering import order_of
from npjit.frontend.values import is_number
from npjit.ops.symint import SymInt, wrap

# loops that cannot be staged unroll up to so many trips, and lists of so many numbers are made item
# by item
LONGEST = 256


class ManyValues(Decisions):
    """See the module's docstring; loops are those of `Control`."""

    for_loop: Callable[..., Any]

    def listed(
        self,
        iterable: Any,
        element: Callable[[Any], Any],
        test: Callable[[Any], Any] | None = None,
    ) -> list[Any]:
        """[element(item) for item in iterable if test(item)]"""
        made = GrowingList(self.block, [])
        if type(iterable) is Generated:
            iterable = iterable.take()
        if not self._is_long(iterable) and test is None:
            return [element(item) for item in iterable]

        def given(item: Any) -> tuple[()]:
            made.append(element(item))
            return ()

        def body(item: Any) -> tuple[()]:
            if test is None:
                return given(item)
            self.branch(test(item), lambda: given(item), lambda: (), (), ())
            return ()

        if not self._is_long(iterable):
            for item in iterable:
                body(item)
            return made

        self.for_loop(iterable, body, (), (), ())
        return made

    def generated(
        self,
        iterable: Any,
        element: Callable[[Any], Any],
        test: Callable[[Any], Any] | None = None,
    ) -> Any:
        """(element(item) for item in iterable if test(item))"""
        values = Values(iterable, element, test)
        if type(iterable) is Generated:
            values = iterable.take().then(element, test)
        made = Generated(values)
        return made if self._is_long(values.iterable) else iter(made)

    def _is_long(self, iterable: Any) -> bool:
        """Whether Python should not go through an iterable item by item."""
        if type(iterable) is range and len(iterable) <= LONGEST:
            return False
        return items_of(self.block, iterable) is not None

    def found(self, values: Values, wanted: bool) -> Any:
        """Whether some value is true (`wanted`), or some is false."""

        def body(item: Any, found: Any) -> tuple[Any]:
            value = values.element(item)
            value = value if wanted else self.not_(value)
            hit = value if values.test is None else self.and_(values.test(item), lambda: value)
            return (self.choose(hit, lambda: True, lambda: found),)

        (made,) = self.for_loop(values.iterable, body, (False,), ("found",), (0,))
        return made

    def each_of(self, count: Any) -> Items:
        """0, 1, ..., count - 1"""
        return Items(count, lambda k: k, self.block)

    def extreme(self, values: Values, better: Callable[[Any, Any], Any]) -> Any:
        """The best of some values."""
        if values.test is not None:
            values = Values(self.listed(values.iterable, values.element, values.test))
        items = items_of(self.block, values.iterable)
        assert items is not None
        some = wrap(self.block, items.trips) > 0
        self.assert_(some, lambda: "an empty iterable")  # noqa: UP005 (no unittest)

        def body(item: Any, best: Any) -> tuple[Any]:
            new = values.element(item)
            return (better(best, new),)

        (made,) = self.for_loop(items.rest(), body, (values.element(items.get(0)),), ("best",), ())
        return made

    def list_of(self, cls: Any, values: Any) -> Any:
        """list(values), where the name `list` stands for `cls`"""
        if cls is list and type(values) is Generated:
            values = values.take()
            return self.listed(values.iterable, values.element, values.test)
        return values.copy() if cls is list and is_stacked(values) else cls(values)

    def order(self, items: Any, key: Any, reverse: Any) -> Any:
        """The positions of a list's items in their order; None where Python can sort."""
        return order_of(self, items, key, reverse)

    def growing(self, items: list[Any]) -> Any:
        """A list display that the function appends to, or indexes."""
        return GrowingList(self.block, items)

    def repeated(self, items: list[Any], count: Any) -> Any:
        """items * count, for a list that the function appends to, or indexes."""
        value = items[0] if len(items) == 1 else None
        if type(count) is not SymInt or not is_number(value):
            return self.growing(items * count)
        if not self.block.sizes.decide_le(1, count.size):
            return self.growing([])
        return GrowingList.repeated(self.block, value, count.size)
