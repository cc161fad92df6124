"""Outside containers while tracing: copies with traced contents, which refuse to be changed.

A store into a list or dict older than the call is an effect that compiled code would lose, so it
ends the trace; only storing back the very array that is there, as `params["w"] -= g` does, is none.
Tuples are immutable and become plain tuples; a named tuple whose class has methods of the user's
becomes one of a subclass with those methods staged.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from npjit.core.graph import Weight
from npjit.ops.errors import NeverCaptured, NotCaptured
from npjit.ops.tracer import Tracer

if TYPE_CHECKING:
    from npjit.frontend.outside import Outside

# a container with more leaves than this is no argument list any more: each leaf is guarded on every
# call
MOST_ITEMS = 500


def _refused(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NeverCaptured(f"a store into an object older than the call ({name})")

    return method


def _set_item(self: Any, key: Any, value: Any) -> None:
    if type(value) is Tracer and value.weight is Weight.ARRAY and type(key) in (int, str):
        try:
            if self[key] is value:
                return
        except LookupError:
            pass
    raise NotCaptured("a store into an object older than the call")


class TracedDict(dict):  # type: ignore[type-arg]
    """A dict argument (or global, ...) with traced values; cannot be changed while tracing."""

    _npjit_rebuilds_as = stands_for = dict
    __setitem__ = _set_item

    def __init__(self, items: dict[Any, Any], step: int) -> None:
        super().__init__(items)
        self.step = step


class TracedList(list):  # type: ignore[type-arg]
    """A list argument with traced items; cannot be changed while tracing."""

    _npjit_rebuilds_as = stands_for = list
    __setitem__ = _set_item

    def __init__(self, items: list[Any], step: int) -> None:
        super().__init__(items)
        self.step = step


for _name in ("__delitem__", "clear", "pop", "popitem", "setdefault", "update", "__ior__"):
    setattr(TracedDict, _name, _refused(_name))
for _name in (
    *("__delitem__", "__iadd__", "__imul__", "append", "extend", "insert"),
    *("pop", "remove", "clear", "sort", "reverse"),
):
    setattr(TracedList, _name, _refused(_name))


def require_few(value: Any) -> None:
    """NotCaptured when a container has too many items to guard each."""
    if len(value) > MOST_ITEMS:
        raise NotCaptured(f"a {type(value).__name__} of {len(value)} items", passing=True)


# ---------------------------------------------------------------- named tuples

_GENERATED = frozenset(["__new__", "_make", "_replace", "_asdict", "__repr__", "__getnewargs__"])


def named_tuple_class(outside: Outside, cls: Any) -> Any:
    """The class that traced code makes and sees in place of a named tuple class."""
    own = {k: v for base in reversed(cls.__mro__[:-2]) for k, v in vars(base).items()}
    written = {k: v for k, v in own.items() if _is_written(k, v)}
    if not written:
        return cls
    if any(k in ("__new__", "__init__", "__getattribute__") for k in written):
        raise NotCaptured(f"making a {cls.__name__} object")
    step = outside.capture.step
    number = step(("root", cls))
    namespace: dict[str, Any] = {"__slots__": (), "stands_for": cls, "__module__": cls.__module__}
    for name, found in written.items():
        inner = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
        if not isinstance(found, classmethod):
            step(("attr", number, name), ("is", inner))
        namespace[name] = _staged(outside, found)
    return type(cls.__name__, (cls,), namespace)


def _is_written(name: str, value: Any) -> bool:
    """Whether the user wrote this attribute, rather than collections.namedtuple."""
    kinds = (types.FunctionType, property, classmethod, staticmethod)
    return isinstance(value, kinds) and name not in _GENERATED


def _staged(outside: Outside, found: Any) -> Any:
    if isinstance(found, property):
        return property(outside.stage(found.fget))
    if isinstance(found, (classmethod, staticmethod)):
        return type(found)(outside.stage(found.__func__))
    return outside.stage(found)
