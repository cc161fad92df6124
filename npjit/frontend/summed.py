"""sum() of traced code. Since Python 3.12 it keeps beside a float what its additions lost (Neumaier
1974), and adds that in the end; a NumPy scalar or a complex is added as `+` does, and ends this.

In: values, many or few, and where to start. Out: their sum, as the running Python makes it:

    sum([1e100, 1.0, -1e100])      ->    0.0 until Python 3.11, then 1.0
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.core.graph import Weight
from npjit.frontend.items import Values
from npjit.ops.errors import NotCaptured
from npjit.ops.symint import is_int
from npjit.ops.tracer import Tracer

if TYPE_CHECKING:
    from npjit.frontend.control import Control

COMPENSATES = sys.version_info >= (3, 12)


def sum_of_many(control: Control, values: Values, start: Any) -> Any:
    """The sum of values that a loop goes over."""

    def body(item: Any, total: Any, lost: Any) -> tuple[Any, Any]:
        wanted = values.test is None or values.test(item)

        def more() -> tuple[Any, Any]:
            value = values.element(item)
            if not _compensates(start):
                return total + value, lost
            if is_float(value) and is_int(start) and not _is_zero(start):
                raise NotCaptured("sum() of Python floats starts at an int")
            return _added(control, total, lost, value)

        # a tuple is chosen as one value
        return control.choose(wanted, more, lambda: (total, lost))  # type: ignore[no-any-return]

    found = control.for_loop(values.iterable, body, (start, 0.0), ("total", "lost"), ())
    return _ended(control, *found)


def sum_of_few(control: Control, values: Iterable[Any], start: Any) -> Any:
    """The sum of values one by one."""
    items = list(values)
    if not _compensates(start) or not any(type(i) is Tracer for i in (start, *items)):
        return sum(items, start)
    total, lost = start, 0.0
    for value in items:
        total, lost = _added(control, total, lost, value)
    return _ended(control, total, lost)


def is_float(value: Any) -> bool:
    """Whether code that is not traced would have a float here."""
    return type(value) is float or _is_weak(value, "f")


def _compensates(start: Any) -> bool:
    """Whether anything is kept: not where sum() starts at a bool, which is no exact int."""
    return COMPENSATES and not (type(start) is bool or _is_weak(start, "b"))


def _is_weak(value: Any, kinds: str) -> bool:
    """Whether code that is not traced would have a Python number of this kind here."""
    return type(value) is Tracer and value.weight is Weight.WEAK and value.dtype.kind in kinds


def _added(control: Control, total: Any, lost: Any, value: Any) -> tuple[Any, Any]:
    """The sum so far and what it lost, with one value more."""
    if not is_float(total):
        return total + value, lost
    if is_float(value):
        more = total + value
        less = control.choose(
            abs(total) >= abs(value), lambda: total - more + value, lambda: value - more + total
        )
        return more, lost + less
    if is_int(value) or _is_weak(value, "biu"):
        return total + value, lost
    if sys.version_info >= (3, 14) and (type(value) is complex or _is_weak(value, "c")):
        raise NotCaptured("sum() of Python complex numbers")
    return _ended(control, total, lost) + value, 0.0


def _ended(control: Control, total: Any, lost: Any) -> Any:
    """The sum, with what it lost unless that is nothing or no number."""
    if not is_float(total) or _is_zero(lost):
        return total
    is_some = control.and_(lost != 0, lambda: abs(lost) < np.inf)
    return control.choose(is_some, lambda: total + lost, lambda: total)


def _is_zero(value: Any) -> bool:
    return type(value) in (int, float) and value == 0
