"""Python's builtins as traced code sees them: pure ones are themselves, the others are replaced or
refused.
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.core.graph import Weight
from npjit.frontend.conversions import STAND_INS, convert
from npjit.frontend.copies import copied, deep_copied
from npjit.frontend.items import (
    Generated,
    Values,
    make_enumerate,
    make_range,
    make_reversed,
    make_zip,
)
from npjit.frontend.lists import is_stacked
from npjit.frontend.objects import ClassProxy, SuperProxy, TracedObject, real_class
from npjit.frontend.ordering import first_by, sorted_list
from npjit.frontend.summed import sum_of_few, sum_of_many
from npjit.frontend.values import is_array
from npjit.ops.errors import NeverCaptured, NotCaptured
from npjit.ops.selection import Selected
from npjit.ops.symint import SymInt, is_int, wrap
from npjit.ops.tracer import Tracer

if TYPE_CHECKING:
    from npjit.frontend.outside import Outside

# neither have effects nor read anything but their arguments
_PURE_NAMES = """
abs ascii bin bytearray bytes chr dict divmod enumerate format frozenset getattr
hasattr hash hex iter list next object oct ord pow repr set slice str
tuple zip property staticmethod classmethod NotImplemented Ellipsis True False None
__build_class__ __debug__
"""
_PURE = frozenset(_PURE_NAMES.split())


class TracedBuiltins(dict):  # type: ignore[type-arg]
    """The builtins dictionary of traced code, filled as names are looked up."""

    def __init__(self, outside: Outside) -> None:
        # the import statement looks here without asking __missing__
        super().__init__(__import__=outside.import_module)
        self.outside = outside

    def __missing__(self, name: str) -> Any:
        value = vars(builtins)[name]
        made = self._form(name, value)
        self[name] = made
        return made

    def _form(self, name: str, value: Any) -> Any:
        if name in _REPLACED:
            return functools.partial(_REPLACED[name], self.outside)
        if value in STAND_INS:
            return STAND_INS[value]
        is_error = isinstance(value, type) and issubclass(value, BaseException)
        return value if name in _PURE or is_error else _refuse(name)


def _refuse(name: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NeverCaptured(f"{name}() is called")

    return refused


def _len(outside: Outside, value: Any) -> Any:
    if type(value) is Tracer and value.ndim:
        return wrap(value.block, value.raw_shape[0])
    if type(value) is Selected:
        return wrap(value.block, value.packed().raw_shape[0])
    if is_stacked(value):
        return value.length
    return len(value)


def _range(outside: Outside, *args: Any) -> Any:
    return make_range(outside.capture.block, *args)


def _reversed(outside: Outside, values: Any) -> Any:
    return make_reversed(outside.capture.block, values)


def _zip(outside: Outside, *args: Any, **kwargs: Any) -> Any:
    return make_zip(outside.capture.block, *args, **kwargs)


def _enumerate(outside: Outside, iterable: Any, start: Any = 0) -> Any:
    return make_enumerate(outside.capture.block, iterable, start)


def _min(outside: Outside, *args: Any, **kwargs: Any) -> Any:
    return _extreme(outside, min, lambda a, b: b < a, args, kwargs)


def _max(outside: Outside, *args: Any, **kwargs: Any) -> Any:
    return _extreme(outside, max, lambda a, b: b > a, args, kwargs)


def _extreme(
    outside: Outside, pick: Any, is_better: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Sizes are compared with a guard; traced numbers by Python's chain of comparisons."""
    if len(args) == 1 and list(kwargs) == ["key"] and kwargs["key"] is not None:
        return first_by(outside.control, args[0], kwargs["key"], is_better)
    if len(args) == 1 and not kwargs:
        lazy = _lazily(args[0])
        if lazy is not None:
            return outside.control.extreme(
                lazy, lambda best, item: _better(outside, is_better, best, item)
            )
    items = list(args[0]) if len(args) == 1 else list(args)
    if kwargs or not any(type(i) is Tracer for i in items):
        return pick(*args, **kwargs) if len(args) != 1 else pick(items, **kwargs)
    return functools.reduce(lambda best, item: _better(outside, is_better, best, item), items)


def _better(outside: Outside, is_better: Any, best: Any, item: Any) -> Any:
    condition = is_better(best, item)
    if _kind_of_number(best) != _kind_of_number(item) and not outside.capture.block.depth:
        condition = bool(condition)  # max(7, 3.0) is an int: the choice decides the type
    return outside.control.choose(condition, lambda: item, lambda: best)


def _lazily(values: Any) -> Values | None:
    """Values that are many, as what a loop is staged over."""
    if is_stacked(values) or (is_array(values) and values.ndim):
        return Values(values)
    return values.take() if type(values) is Generated else None


def _kind_of_number(value: Any) -> Any:
    """Numbers of one kind merge: a Python float and an np.float64 count as the same, and so do a
    Python int and an np.int64."""
    if isinstance(value, float) or (type(value) is Tracer and value.dtype == np.float64):
        return float
    if is_int(value) or (type(value) is Tracer and value.dtype == np.int64):
        return int
    is_python = type(value) is not Tracer or value.weight is Weight.WEAK
    return value.__class__ if is_python else (value.dtype, value.weight)


def _round(outside: Outside, number: Any, *digits: Any, **kwargs: Any) -> Any:
    """round() to a Python int goes to the even one of two as near; with digits a NumPy number is
    NumPy's."""
    if type(number) is Tracer and number.weight is Weight.SCALAR and len(digits) == 1:
        return np.round(number, *digits, **kwargs)
    is_float = (
        type(number) is Tracer and number.dtype.kind == "f" and number.weight is not Weight.ARRAY
    )
    if not is_float or digits or kwargs:
        return round(number, *digits, **kwargs)
    return convert(int, np.rint(number))


def _sum(outside: Outside, values: Any, /, start: Any = 0) -> Any:
    lazy = _lazily(values)
    if lazy is not None:
        return sum_of_many(outside.control, lazy, start)
    return sum_of_few(outside.control, values, start)


def _any(outside: Outside, values: Any) -> Any:
    if is_array(values) and values.ndim == 1:
        return convert(bool, np.any(values))
    lazy = _lazily(values)
    return any(values) if lazy is None else outside.control.found(lazy, True)


def _all(outside: Outside, values: Any) -> Any:
    if is_array(values) and values.ndim == 1:
        return convert(bool, np.all(values))
    lazy = _lazily(values)
    if lazy is None:
        return all(values)
    return outside.control.not_(outside.control.found(lazy, False))


def _sorted(outside: Outside, values: Any, *, key: Any = None, reverse: Any = False) -> Any:
    return sorted_list(outside.control, values, key, reverse)


def _map(outside: Outside, function: Any, *iterables: Any) -> Any:
    if len(iterables) == 1:
        return outside.control.generated(iterables[0], function)
    return map(function, *iterables)


def _filter(outside: Outside, function: Any, iterable: Any) -> Any:
    if function is None:
        return filter(None, iterable)
    return outside.control.generated(iterable, lambda item: item, function)


def _type(outside: Outside, value: Any, *rest: Any) -> Any:
    if rest:
        raise NotCaptured("type() makes a class")
    if isinstance(value, TracedObject):
        return value._npjit_rebuilds_as
    cls = real_class(type(value)) if not isinstance(value, np.ndarray) else value.__class__
    found = value.__class__ if type(value) in (Tracer, SymInt) else cls
    return STAND_INS.get(found, found)


def _isinstance(outside: Outside, value: Any, classes: Any) -> bool:
    if isinstance(classes, tuple):
        return any(_isinstance(outside, value, c) for c in classes)
    return isinstance(value, _plain(outside, classes))


def _issubclass(outside: Outside, cls: Any, classes: Any) -> bool:
    if isinstance(classes, tuple):
        return any(_issubclass(outside, cls, c) for c in classes)
    return issubclass(_plain(outside, cls), _plain(outside, classes))


def _plain(outside: Outside, cls: Any) -> Any:
    return type if cls is outside.builtins["type"] else real_class(cls)


def _callable(outside: Outside, value: Any) -> bool:
    if isinstance(value, TracedObject):
        return any("__call__" in vars(base) for base in value._npjit_class.__mro__)
    return callable(value)


def _super(outside: Outside, *args: Any) -> Any:
    if args:
        return SuperProxy(*args)
    frame = sys._getframe(1)
    names = frame.f_code.co_varnames
    found = frame.f_locals
    if "__class__" not in found or not names or names[0] not in found:
        raise NotCaptured("super() is called")
    return SuperProxy(found["__class__"], found[names[0]])


def _replace(outside: Outside, obj: Any, **changes: Any) -> Any:
    """dataclasses.replace, for classes whose __init__ is the generated one."""
    cls = obj.__class__
    fields = dataclasses.fields(cls)
    if hasattr(cls, "__post_init__") or not all(f.init for f in fields):
        raise NotCaptured(
            "dataclasses.replace of a class with __post_init__ or fields that are not in __init__"
        )
    made = ClassProxy(outside, cls, outside.capture.step(("root", cls), ("is", cls)))
    values = {
        f.name: changes.get(f.name, getattr(obj, f.name)) for f in fields if f.name not in changes
    }
    return made(**values, **changes)


_REPLACED: dict[str, Callable[..., Any]] = {
    "len": _len,
    "enumerate": _enumerate,
    "range": _range,
    "reversed": _reversed,
    "zip": _zip,
    "min": _min,
    "max": _max,
    "round": _round,
    "sum": _sum,
    "sorted": _sorted,
    "map": _map,
    "filter": _filter,
    "any": _any,
    "all": _all,
    "type": _type,
    "isinstance": _isinstance,
    "issubclass": _issubclass,
    "callable": _callable,
    "super": _super,
}


def _fields(outside: Outside, obj: Any) -> Any:
    return dataclasses.fields(real_class(obj) if isinstance(obj, ClassProxy) else obj.__class__)


# Python functions that traced code calls by another one, with the Outside as first argument: those
# that look too deep into objects to be staged, and npjit's own transforms (npjit.api enters them)
REPLACED_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    dataclasses.replace: _replace,
    dataclasses.fields: _fields,
    copy.copy: copied,
    copy.deepcopy: deep_copied,
}
