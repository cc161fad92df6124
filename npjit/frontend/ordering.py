"""Sorting, and the first or last by a key, of what only the running code knows.

In: what Python sorts by comparisons of traced numbers. Out: lists whose items are rows in the order
of a stable argsort:

    sorted(x)                            ->    rows = x[np.argsort(x, kind="stable")]
    sorted(range(n), key=lambda i: d[i]) ->    the same of the keys
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from npjit.frontend.items import Generated, Values, items_of
from npjit.frontend.lists import GrowingList, is_stacked
from npjit.frontend.rows import item_of
from npjit.frontend.values import NotStaged, is_array
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import CHECK
from npjit.ops.symint import wrap
from npjit.ops.tracer import is_traced


def sorted_list(control: Any, values: Any, key: Any = None, reverse: Any = False) -> Any:
    """sorted(values, key=key, reverse=reverse)"""
    items = _as_list(control, values)
    order = order_of(control, items, key, reverse)
    if order is None:
        return sorted(items, key=key, reverse=reverse)
    stacked = _stacked(items)
    if any(t.shape for t in stacked.item.types):
        raise NotCaptured("arrays are sorted")  # the list would hold the very arrays
    made = GrowingList(control.block, [])
    made.hold([r[order] for r in stacked.shown()], stacked.item)
    return made


def order_of(control: Any, items: Any, key: Any, reverse: Any) -> Any:
    """The positions of items in their order; None where Python can sort."""
    if reverse not in (True, False):
        raise NotCaptured("the order of a sort depends on a traced value")
    keys = items if key is None else _listed(control, items, key)
    if not is_stacked(keys) and not any(is_traced(k) for k in keys):
        return None
    keys = _stacked(keys)
    if not keys.item.is_plain or keys.item.types[0].shape:
        raise NotCaptured("arrays, tuples or objects are sorted")
    return _argsort(keys.whole(), reverse)


def first_by(control: Any, values: Any, key: Any, is_better: Any) -> Any:
    """The item whose key none is better than, the first of those."""

    def better(best: Any, new: Any) -> Any:
        return control.choose(is_better(best[1], new[1]), lambda: new, lambda: best)

    values = values.take() if type(values) is Generated else Values(values)
    if items_of(control.block, values.iterable) is None:
        return functools.reduce(better, [(v, key(v)) for v in values])[0]

    def pair(item: Any) -> Any:
        value = values.element(item)
        return value, key(value)

    return control.extreme(Values(values.iterable, pair, values.test), better)[0]


def _listed(control: Any, values: Any, element: Any) -> GrowingList:
    """[element(v) for v in values], in a loop."""
    made = GrowingList(control.block, [])

    def body(item: Any) -> tuple[()]:
        made.append(element(item))
        return ()

    control.for_loop(values, body, (), (), ())
    return made


def _as_list(control: Any, values: Any) -> GrowingList:
    """A list of its own of some items."""
    if is_stacked(values):
        return values.copy()  # type: ignore[no-any-return]
    if type(values) is Generated:
        values = values.take()
        found = control.listed(values.iterable, values.element, values.test)
        return found if type(found) is GrowingList else GrowingList(control.block, found)
    if not is_array(values) or not values.ndim:
        return _listed(control, values, lambda item: item)
    made = GrowingList(control.block, [])
    if values.raw_shape[0] != 0:
        made.hold([values.copy()], item_of(control.block, [values[0]]))
    return made


def _stacked(items: Any) -> Any:
    """Items as rows, in a list of their own where they are not yet."""
    if is_stacked(items):
        return items
    made = GrowingList(items.block, list(items))
    try:
        made.stack(item_of(items.block, list(items)), len(items))
    except NotStaged as e:
        raise NotCaptured(f"items that cannot be sorted: {e}") from None
    return made


def _argsort(keys: Any, reverse: bool) -> Any:
    """Equal keys stay in their order, also in reverse; NaN has no place."""
    if keys.dtype.kind not in "biuf":
        raise NotCaptured(f"{keys.dtype} numbers are sorted by Python")
    if keys.dtype.kind == "f":
        ok = np.all(keys == keys).node
        keys.block.add(CHECK, (ok,), "NaN is sorted by Python", ok.type)
    if not reverse:
        return np.argsort(keys, kind="stable")
    last = wrap(keys.block, keys.raw_shape[0] - 1)
    return (last - np.argsort(keys[::-1], kind="stable"))[::-1]
