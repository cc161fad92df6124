"""`in`, where only the running code knows the answer.

In: a traced number and a container, or a plain number and a traced container. Out: a traced bool:

    k in (1, 3)             ->    k == 1 or k == 3
    k in range(2, n, 2)     ->    2 <= k < n and (k - 2) % 2 == 0
    v in array              ->    np.any(array == v)

Everything else is Python's own `in`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.frontend.containers import TracedDict, TracedList
from npjit.frontend.conversions import convert
from npjit.frontend.items import TracedRange
from npjit.frontend.lists import GrowingList, is_stacked
from npjit.frontend.values import is_array, is_number
from npjit.ops.errors import NotCaptured
from npjit.ops.symint import SymInt, wrap
from npjit.ops.tracer import Tracer

_CONTAINERS = (tuple, list, set, frozenset, dict, GrowingList, TracedDict, TracedList)


def contains(control: Any, item: Any, container: Any) -> Any:
    """item in container"""
    if is_stacked(container):
        if not container.item.is_plain or not is_number(item):
            raise NotCaptured("`in` a list of arrays or objects that grows in a loop")
        container = container.whole()
    if is_array(container) and container.ndim and is_number(item):
        return convert(bool, np.any(container == item))
    if type(container) in (range, TracedRange) and type(item) in (Tracer, SymInt):
        return _in_range(control, item, container)
    if type(container) in _CONTAINERS:
        elements = list(container)
        if _is_traced([item, *elements]) and all(map(is_number, [item, *elements])):
            return _is_one_of(control, item, elements)
    return item in container


def _is_traced(values: list[Any]) -> bool:
    return any(type(v) in (Tracer, SymInt) for v in values)


def _is_one_of(control: Any, item: Any, elements: list[Any]) -> Any:
    """Numbers are found by their identity, too: NaN is in a list that holds it."""
    if any(e is item for e in elements):
        return True
    found: Any = False
    for e in elements:
        hit = e == item
        hit = convert(bool, hit) if type(hit) is Tracer else bool(hit)
        found = control.choose(found, lambda: True, lambda hit=hit: hit)
    return found


def _in_range(control: Any, item: Any, numbers: Any) -> Any:
    if type(item) is Tracer:
        if is_array(item) or item.dtype.kind not in "iu":
            raise NotCaptured("`in` a range, of no int")
        item = convert(int, item)
    low, high = numbers.start, numbers.start + _trips(numbers) * numbers.step
    if numbers.step < 0:
        low, high = high + 1, low + 1
    inside = control.and_(item >= low, lambda: item < high)
    return control.and_(inside, lambda: (item - numbers.start) % numbers.step == 0)


def _trips(numbers: Any) -> Any:
    return len(numbers) if type(numbers) is range else wrap(numbers.block, numbers.trips)
