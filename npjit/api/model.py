"""Jitted callable objects: calls are compiled, everything else is the object's own.

    model = npjit.jit(model)
    model(x)              # compiled; parameters held as attributes are read anew on every call
    model.weight *= 0.5   # the object's own attribute, of the object's own class

The wrapper's class is made for the object's class, so that `len(model)`, `model[0]` and other
special methods work.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any

from npjit.api.jit import jit_any
from npjit.api.jitted import Jitted
from npjit.api.options import Options
from npjit.frontend.outside import Outside

_PUBLIC = frozenset(["cache_info", "lower", "explain", "visualize", "with_options"])
# what the wrapper itself needs of the special methods
_KEPT_NAMES = """
__class__ __new__ __init__ __call__ __getattribute__ __getattr__ __setattr__ __delattr__
__reduce__ __reduce_ex__ __dict__ __weakref__ __slots__ __doc__ __module__ __init_subclass__
__subclasshook__ __copy__ __deepcopy__ __getstate__ __setstate__ __annotations__
__npjit_inline__ __signature__
"""
_KEPT = frozenset(_KEPT_NAMES.split())


class JittedObject:
    """An object with a compiled `__call__`; attributes, methods and isinstance pass through to the
    object.
    """

    __slots__ = ("__weakref__", "_npjit_call", "_npjit_model")

    def __init__(self, model: Any, options: Options) -> None:
        object.__setattr__(self, "_npjit_model", model)
        object.__setattr__(self, "_npjit_call", Jitted(model, options))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return object.__getattribute__(self, "_npjit_call")(*args, **kwargs)

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return type(object.__getattribute__(self, "_npjit_model"))

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._npjit_model)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_npjit_") or name in _KEPT:
            return object.__getattribute__(self, name)
        if name in _PUBLIC:
            return getattr(object.__getattribute__(self, "_npjit_call"), name)
        return getattr(object.__getattribute__(self, "_npjit_model"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._npjit_model, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._npjit_model, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return jit_any, (self._npjit_model, self._npjit_call.options)

    def __npjit_inline__(self, outside: Outside) -> Any:
        return self._npjit_call.inline(outside)


def _passing(name: str) -> Any:
    def method(self: JittedObject, *args: Any, **kwargs: Any) -> Any:
        return getattr(type(self._npjit_model), name)(self._npjit_model, *args, **kwargs)

    return method


@lru_cache(maxsize=256)
def _wrapper_class(cls: type) -> type[JittedObject]:
    """The wrapper class for objects of a class: its special methods pass through too."""
    special = {
        name: _passing(name)
        for name in dir(cls)
        if name.startswith("__") and name not in _KEPT and callable(getattr(cls, name, None))
    }
    return type(f"Jitted{cls.__name__}", (JittedObject,), {"__slots__": (), **special})


def jitted_object(model: Any, options: Options) -> JittedObject:
    """The compiled form of an object with `__call__`."""
    return _wrapper_class(type(model))(model, options)
