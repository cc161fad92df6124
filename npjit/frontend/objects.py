"""Objects of users' classes while tracing: outside ones, and those that the traced code makes
itself.

Either kind looks up methods and properties by Python's rules, and runs them staged; each look-up is
guarded, so that a method replaced on the class or on the object is seen. An outside object's
attributes are guarded reads, and stores into it are refused: it is older than the call, and
compiled code would lose the effect. An object made by the traced code (`MadeObject`) keeps its
attributes here; when the function returns it, an object of its class is built from them.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from npjit.core.graph import Weight
from npjit.ops.errors import NeverCaptured, NotCaptured
from npjit.ops.tracer import Tracer

if TYPE_CHECKING:
    from npjit.frontend.outside import Outside


class TracedObject:
    """What outside and made objects share: look-up through the class, and operators."""

    __slots__ = ("_npjit_class", "_npjit_outside")

    @property
    def __class__(self) -> type:  # type: ignore[override]
        cls: type = object.__getattribute__(self, "_npjit_class")
        return cls

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_npjit_") or name == "__class__":
            return object.__getattribute__(self, name)
        return _attribute(self, name)

    @property
    def _npjit_rebuilds_as(self) -> Any:
        """The class as traced code knows it."""
        return self._npjit_outside.read(self._npjit_class, ("root", self._npjit_class))

    def __bool__(self) -> bool:
        for name in ("__bool__", "__len__"):
            if hasattr(self._npjit_class, name):
                return bool(_special(self, name)())
        return True

    def _npjit_class_step(self, name: str) -> tuple[Any, ...]:
        """The fetch of the class's attribute of this name."""
        return ("attr", self._npjit_outside.capture.step(("root", self._npjit_class)), name)


class ObjectProxy(TracedObject):
    """An object older than the call."""

    __slots__ = ("_npjit_step", "_npjit_value")

    def __init__(self, outside: Outside, value: Any, step: int) -> None:
        object.__setattr__(self, "_npjit_outside", outside)
        object.__setattr__(self, "_npjit_class", type(value))
        object.__setattr__(self, "_npjit_value", value)
        object.__setattr__(self, "_npjit_step", step)

    def _npjit_fetch(self, name: str) -> tuple[Any, ...]:
        """The fetch of what `object.name` gives."""
        return ("attr", self._npjit_step, name)

    def _npjit_has(self, name: str) -> bool:
        return name in getattr(self._npjit_value, "__dict__", ())

    def _npjit_get(self, name: str) -> Any:
        if not hasattr(self._npjit_value, name):
            self._npjit_outside.capture.step(self._npjit_fetch(name), ("absent",))
            raise AttributeError(name)
        value = getattr(self._npjit_value, name)
        return self._npjit_outside.read(value, self._npjit_fetch(name))

    def _npjit_note_absence(self, name: str) -> None:
        """Guard that this name is missing: by those that the object has, which asks for nothing."""
        own = getattr(self._npjit_value, "__dict__", None)
        step = self._npjit_outside.capture.step
        if type(own) is dict:
            step(self._npjit_fetch("__dict__"), ("dict", dict, tuple(own)))
        else:
            step(self._npjit_fetch(name), ("absent",))

    def __setattr__(self, name: str, value: Any) -> None:
        # `self.w += x` updates the array in place, then stores the same object again
        updated = type(value) is Tracer and value.weight is Weight.ARRAY
        if not updated or not self._npjit_has(name) or self._npjit_get(name) is not value:
            raise NotCaptured(f"a store into an object older than the call (.{name})")

    def __delattr__(self, name: str) -> None:
        raise NotCaptured(f"a store into an object older than the call (del .{name})")

    def __hash__(self) -> int:
        return hash(self._npjit_value)


class MadeObject(TracedObject):
    """An object that the traced code has made; its own `__dict__` holds the attributes."""

    # object.__setattr__, which frozen dataclasses use, has to work
    __slots__ = ("__dict__",)

    def __init__(self, outside: Outside, cls: type) -> None:
        object.__setattr__(self, "_npjit_outside", outside)
        object.__setattr__(self, "_npjit_class", cls)

    @property
    def _npjit_own(self) -> dict[str, Any]:
        own: dict[str, Any] = object.__getattribute__(self, "__dict__")
        return own

    def _npjit_fetch(self, name: str) -> tuple[Any, ...]:
        return self._npjit_class_step(name)

    def _npjit_has(self, name: str) -> bool:
        return name in self._npjit_own

    def _npjit_get(self, name: str) -> Any:
        return self._npjit_own[name]

    def _npjit_note_absence(self, name: str) -> None:
        """What the trace makes is the same in every call."""

    def __setattr__(self, name: str, value: Any) -> None:
        if self._npjit_class.__setattr__ is not object.__setattr__:
            _special(self, "__setattr__")(name, value)
            return
        found = _in_class(self._npjit_class, name)
        if isinstance(found, property):
            _guard_class(self, name, found)
            self._npjit_outside.stage(found.fset)(self, value)
        elif hasattr(type(found), "__set__") and not _is_slot(found):
            raise NotCaptured(f"the descriptor .{name}")
        else:
            self._npjit_own[name] = value

    def __delattr__(self, name: str) -> None:
        raise NotCaptured(f"del .{name}")

    def __hash__(self) -> int:
        return object.__hash__(self)


# ---------------------------------------------------------------- look-up


def _in_class(cls: type, name: str) -> Any:
    """The class's attribute as it stands in the class's or a base's dictionary; None when there is
    none.
    """
    for base in cls.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return None


def _is_slot(found: Any) -> bool:
    return isinstance(found, types.MemberDescriptorType)


def _is_function(found: Any) -> bool:
    return isinstance(found, types.FunctionType) or hasattr(type(found), "__npjit_inline__")


def _attribute(obj: Any, name: str) -> Any:
    """obj.name by Python's rules."""
    cls = obj._npjit_class
    if _is_function(_in_class(cls, "__getattribute__")):
        raise NotCaptured(f"__getattribute__ of a {cls.__name__} object")
    found = _in_class(cls, name)
    if isinstance(found, property):
        return _property(obj, name, found)
    if _is_slot(found) or (found is not None and hasattr(type(found), "__set__")):
        if not _is_slot(found):
            raise NotCaptured(f"the descriptor .{name} of a {cls.__name__} object")
        return obj._npjit_get(name)
    if obj._npjit_has(name):
        return obj._npjit_get(name)
    if found is not None or any(name in vars(b) for b in cls.__mro__):
        return _from_class(obj, name, found)
    is_asked = hasattr(cls, "__getattr__")
    if is_asked and cls.__dictoffset__ == 0:
        raise NotCaptured(f"__getattr__ of a {cls.__name__} object without a __dict__")
    obj._npjit_note_absence(name)
    if is_asked:
        return _special(obj, "__getattr__")(name)
    raise AttributeError(f"'{cls.__name__}' object has no attribute '{name}'")


def _property(obj: Any, name: str, found: property) -> Any:
    if found.fget is None:
        raise AttributeError(f"property '{name}' of '{obj._npjit_class.__name__}' has no getter")
    _guard_class(obj, name, found)
    return obj._npjit_outside.stage(found.fget)(obj)


def _from_class(obj: Any, name: str, found: Any) -> Any:
    """A class attribute that the object does not hide."""
    outside, cls = obj._npjit_outside, obj._npjit_class
    if _is_function(found):
        _guard_bound(obj, name, found)
        return types.MethodType(outside.stage(found), obj)
    if isinstance(found, classmethod):
        _guard_bound(obj, name, found.__func__, types.MethodType)
        return types.MethodType(outside.stage(found.__func__), obj._npjit_rebuilds_as)
    if isinstance(found, staticmethod):
        outside.capture.step(obj._npjit_fetch(name), ("is", found.__func__))
        return outside.stage(found.__func__)
    if isinstance(found, functools.cached_property):
        raise NotCaptured(f"a cached property, .{name}, that has no value yet", passing=True)
    if hasattr(type(found), "__get__"):
        raise NeverCaptured(f"the descriptor .{name} of a {cls.__name__} object")
    return outside.read(found, obj._npjit_fetch(name))


def _guard_class(obj: Any, name: str, found: Any) -> None:
    """The class attribute of this name has to stay this function or property."""
    obj._npjit_outside.capture.step(obj._npjit_class_step(name), ("is", found))


def _guard_bound(obj: Any, name: str, function: Any, kind: Any = None) -> None:
    """What obj.name gives has to stay a method of this function."""
    if isinstance(obj, MadeObject) and kind is None:
        _guard_class(obj, name, function)
        return
    step = obj._npjit_outside.capture.step
    step(
        ("attr", step(obj._npjit_fetch(name), ("type", types.MethodType)), "__func__"),
        ("is", function),
    )


def _special(obj: Any, name: str) -> Any:
    """A special method, which Python looks up on the class only, bound to the object."""
    found = _in_class(obj._npjit_class, name)
    if not _is_function(found):
        raise NotCaptured(f"{name} of a {obj._npjit_class.__name__} object")
    _guard_class(obj, name, found)
    return types.MethodType(obj._npjit_outside.stage(found), obj)


def _forward(name: str, optional: bool) -> None:
    def method(self: Any, *args: Any) -> Any:
        if optional and not hasattr(self._npjit_class, name):
            return NotImplemented
        return _special(self, name)(*args)

    setattr(TracedObject, name, method)


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return _special(self, "__call__")(*args, **kwargs)


TracedObject.__call__ = _call  # type: ignore[attr-defined]
_REQUIRED = """
getitem setitem delitem len iter next contains enter exit neg pos abs invert lt le gt ge eq ne repr
str format int float complex index round trunc floor ceil reversed
"""
_OPTIONAL = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"
for _name in _REQUIRED.split():
    _forward(f"__{_name}__", optional=False)
for _name in _OPTIONAL.split():
    for _prefix in ("", "r", "i"):
        if (_prefix, _name) != ("i", "divmod"):
            _forward(f"__{_prefix}{_name}__", optional=True)


# ---------------------------------------------------------------- classes


class ClassProxy:
    """A user's class while tracing: making an instance runs a staged __init__; attributes are
    guarded reads.
    """

    def __init__(self, outside: Outside, cls: type, step: int) -> None:
        object.__setattr__(self, "_npjit_outside", outside)
        object.__setattr__(self, "_npjit_step", step)
        object.__setattr__(self, "stands_for", cls)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        cls = self.stands_for
        own_new = cls.__new__ is not object.__new__ or type(cls).__call__ is not type.__call__
        if own_new or cls.__module__.partition(".")[0] == "numpy":
            raise NotCaptured(f"making a {cls.__name__} object")
        if getattr(cls, "__abstractmethods__", None):
            raise TypeError(f"Can't instantiate abstract class {cls.__name__}")
        made = self._npjit_empty()
        if cls.__init__ is not object.__init__:  # type: ignore[misc]
            _special(made, "__init__")(*args, **kwargs)
        elif args or kwargs:
            raise TypeError(f"{cls.__name__}() takes no arguments")
        return made

    def _npjit_empty(self) -> MadeObject:
        """An instance without attributes."""
        return MadeObject(self._npjit_outside, self.stands_for)

    def __getattr__(self, name: str) -> Any:
        outside, step = self._npjit_outside, self._npjit_outside.capture.step
        raw = _in_class(self.stands_for, name)
        found = getattr(self.stands_for, name)
        fetch = ("attr", self._npjit_step, name)
        if isinstance(raw, classmethod):
            step(
                ("attr", step(fetch, ("type", types.MethodType)), "__func__"), ("is", raw.__func__)
            )
            return types.MethodType(outside.stage(raw.__func__), self)
        return outside.read(found, fetch)

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotCaptured(f"a store into a class (.{name})")

    def __delattr__(self, name: str) -> None:
        raise NotCaptured(f"a store into a class (del .{name})")

    def __eq__(self, other: Any) -> bool:
        return real_class(other) is self.stands_for

    def __hash__(self) -> int:
        return hash(self.stands_for)


def real_class(cls: Any) -> Any:
    """The class behind what traced code calls it by."""
    return getattr(cls, "stands_for", cls)


class SuperProxy:
    """super(cls, obj) in a staged method."""

    def __init__(self, cls: Any, obj: Any) -> None:
        self._npjit_class = real_class(cls)
        self._npjit_object = obj

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_npjit_"):
            return object.__getattribute__(self, name)
        obj = self._npjit_object
        if not isinstance(obj, TracedObject):
            raise NotCaptured("super() of a class")
        mro = obj._npjit_class.__mro__
        for base in mro[mro.index(self._npjit_class) + 1 :]:
            if name in vars(base):
                return _inherited(obj, base, name, vars(base)[name])
        raise AttributeError(f"'super' object has no attribute '{name}'")


def _inherited(obj: Any, base: type, name: str, found: Any) -> Any:
    """The attribute of this name of a base class, bound to the object."""
    if base is object:
        return _of_object(obj, name, found)
    if not _is_function(found) and not isinstance(found, property):
        raise NotCaptured(f"super().{name}")
    outside = obj._npjit_outside
    step = outside.capture.step
    step(("attr", step(("root", base)), name), ("is", found))
    if isinstance(found, property):
        return outside.stage(found.fget)(obj)
    return types.MethodType(outside.stage(found), obj)


def _of_object(obj: Any, name: str, found: Any) -> Callable[..., Any]:
    """A method of `object` itself."""
    if name == "__init__":
        return lambda: None
    if name == "__setattr__" and isinstance(obj, MadeObject):
        return types.MethodType(found, obj)
    raise NotCaptured(f"super().{name}")
