"""Outside objects while tracing: their attributes and items are read with a guard, and stores into them refused.

A store into an object older than the call is an effect that compiled code would lose, so it ends the trace. Dicts
and lists become copies of the same type that refuse to be changed; everything else is an `ObjectProxy`.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from npjit.ops.errors import NotCaptured

if TYPE_CHECKING:
    from npjit.frontend.outside import Outside


def _refused(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotCaptured(f"a store into an object older than the call ({name})")

    return method


class TracedDict(dict):  # type: ignore[type-arg]
    """A dict argument (or global, ...) with traced values; cannot be changed while tracing."""

    step: int
    stands_for: type


class TracedList(list):  # type: ignore[type-arg]
    """A list argument with traced items; cannot be changed while tracing."""

    step: int
    stands_for: type


for _name in ("__setitem__", "__delitem__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(TracedDict, _name, _refused(_name))
TracedDict.__ior__ = _refused("__ior__")  # type: ignore[assignment,method-assign]
for _name in (
    *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "extend", "insert"),
    *("pop", "remove", "clear", "sort", "reverse"),
):
    setattr(TracedList, _name, _refused(_name))


class ObjectProxy:
    """Any other outside object: attributes through the Outside, methods staged with the proxy as self."""

    def __init__(self, outside: Outside, value: Any, step: int) -> None:
        object.__setattr__(self, "_npjit_outside", outside)
        object.__setattr__(self, "_npjit_value", value)
        object.__setattr__(self, "_npjit_step", step)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        cls: type = type(object.__getattribute__(self, "_npjit_value"))
        return cls

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_npjit_") or name == "__class__":
            return object.__getattribute__(self, name)
        return _attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotCaptured(f"a store into an object older than the call (.{name})")

    def __delattr__(self, name: str) -> None:
        raise NotCaptured(f"a store into an object older than the call (del .{name})")

    def __hash__(self) -> int:
        return hash(self._npjit_value)

    def __bool__(self) -> bool:
        for name in ("__bool__", "__len__"):
            if hasattr(type(self._npjit_value), name):
                return bool(_special(self, name)())
        return True


def _special(proxy: ObjectProxy, name: str) -> Any:
    """A special method of the object's class, staged and bound to the proxy."""
    found = getattr(type(proxy._npjit_value), name, None)
    if not isinstance(found, types.FunctionType):
        kind = type(proxy._npjit_value).__name__
        raise NotCaptured(f"{name} of a {kind} object")
    return types.MethodType(proxy._npjit_outside.stage(found), proxy)


def _forward(name: str) -> None:
    def method(self: ObjectProxy, *args: Any, **kwargs: Any) -> Any:
        return _special(self, name)(*args, **kwargs)

    setattr(ObjectProxy, name, method)


for _name in """__call__ __getitem__ __len__ __iter__ __next__ __contains__ __enter__ __exit__ __add__ __radd__ __sub__
__rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __mod__ __pow__ __rpow__ __matmul__ __rmatmul__ __neg__
__pos__ __abs__ __lt__ __le__ __gt__ __ge__ __eq__ __ne__ __and__ __or__ __xor__ __invert__""".split():
    _forward(_name)


def _attribute(proxy: ObjectProxy, name: str) -> Any:
    """getattr(object, name) by Python's rules, with user code in properties and methods staged."""
    value = proxy._npjit_value
    outside = proxy._npjit_outside
    cls = type(value)
    for base in cls.__mro__:
        if name in vars(base):
            return _from_class(proxy, vars(base)[name], name, base)
    own = getattr(value, "__dict__", {})
    if name in own:
        return outside.read(own[name], ("attr", proxy._npjit_step, name))
    if hasattr(cls, "__getattr__"):
        raise NotCaptured(f"__getattr__ of a {cls.__name__} object")
    raise AttributeError(f"'{cls.__name__}' object has no attribute '{name}'")


def _from_class(proxy: ObjectProxy, found: Any, name: str, base: type) -> Any:
    value, outside = proxy._npjit_value, proxy._npjit_outside
    own = getattr(value, "__dict__", {})
    if isinstance(found, property):
        if found.fget is None:
            raise AttributeError(f"property '{name}' has no getter")
        return outside.stage(found.fget)(proxy)
    is_data = hasattr(type(found), "__set__")
    if name in own and not is_data:
        return outside.read(own[name], ("attr", proxy._npjit_step, name))
    if isinstance(found, types.FunctionType) or hasattr(type(found), "__npjit_inline__"):
        return types.MethodType(outside.stage(found), proxy)
    if isinstance(found, classmethod):
        return types.MethodType(outside.stage(found.__func__), type(value))
    if isinstance(found, staticmethod):
        return outside.stage(found.__func__)
    if isinstance(found, types.MemberDescriptorType):  # __slots__
        return outside.read(getattr(value, name), ("attr", proxy._npjit_step, name))
    if hasattr(type(found), "__get__"):
        raise NotCaptured(f"the descriptor .{name} of a {base.__name__} object")
    return outside.read(found, ("attr", proxy._npjit_step, name))


class ClassProxy:
    """A user's class while tracing: making an instance runs a staged __init__; attributes are guarded reads."""

    def __init__(self, outside: Outside, cls: type, step: int) -> None:
        self.outside = outside
        self.stands_for = cls
        self.step = step

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        cls = self.stands_for
        if cls.__new__ is not object.__new__ or type(cls) is not type:
            raise NotCaptured(f"making a {cls.__name__} object")
        made = object.__new__(cls)
        init = cls.__init__  # type: ignore[misc]
        if isinstance(init, types.FunctionType):
            self.outside.stage(init)(made, *args, **kwargs)
        elif args or kwargs:
            raise TypeError(f"{cls.__name__}() takes no arguments")
        return made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.stands_for, name)
        if isinstance(found, types.MethodType):
            return types.MethodType(self.outside.stage(found.__func__), self.stands_for)
        if isinstance(found, types.FunctionType):
            return self.outside.stage(found)
        return self.outside.read(found, ("attr", self.step, name))
