"""Reading the world outside a trace: every object a function loads passes through `Outside.read`.

In: the object and how it was fetched. Out: what traced code works with (a Tracer, a SymInt, a
staged function, a proxy, or the object itself when it is immutable), with a step recorded that
guards the load.

    outside.read(x, ("arg", 0))                  ->  Tracer, guarded by dtype, rank and layout
    outside.read(scale, ("global", d, "scale"))  ->  a traced float, an input of the graph
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from npjit import _runtime
from npjit.frontend.builtin_names import TracedBuiltins
from npjit.frontend.capture import Capture
from npjit.frontend.containers import TracedDict, TracedList, named_tuple_class, require_few
from npjit.frontend.control import Control
from npjit.frontend.library import UnknownCall, library_value
from npjit.frontend.namespace import TracedGlobals, TracedModule
from npjit.frontend.objects import ClassProxy, ObjectProxy, TracedObject
from npjit.frontend.staging import Stager
from npjit.frontend.vectorized import read_vectorized
from npjit.ops.errors import NotCaptured
from npjit.ops.tracer import is_traced

_CONSTANTS = (str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range)
_PLAIN_MODULES = frozenset(["builtins", "functools", "collections", "types", "abc", "typing"])


class Outside:
    """The reader of one trace."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.control = Control(capture)
        self.builtins = TracedBuiltins(self)
        self.functions = Stager(self)
        # id -> the traced form, one for each object, which is kept alive beside it
        self._once: dict[int, tuple[Any, Any]] = {}

    def once(self, value: Any, make: Callable[[], Any]) -> Any:
        """The traced form of an object that has one in a trace, however it was reached."""
        found = self._once.get(id(value))
        if found is None:
            found = self._once[id(value)] = (value, make())
        return found[1]

    def read(self, value: Any, fetch: tuple[Any, ...]) -> Any:
        """The traced form of an outside object fetched as `fetch` says."""
        if is_traced(value) or issubclass(type(value), _TRACED):
            return value
        number = self.capture.step(fetch)
        return self.capture.known(number, lambda: self._traced(value, number))

    def _traced(self, value: Any, number: int) -> Any:
        capture = self.capture
        cls = type(value)
        capture.check(number, ("type", cls))
        if cls is np.ndarray or _runtime.is_device_array(value):
            return capture.array(value, number)
        if cls in (bool, int, float, complex) or isinstance(value, np.generic):
            return capture.scalar(value, number)
        if cls in _CONSTANTS:
            capture.check(number, ("equal", value))
            return value
        if isinstance(value, np.ndarray):
            raise NotCaptured(f"arrays of type {cls.__name__} are not compiled")
        if isinstance(value, (tuple, list, dict)):
            return self._container(value, number)
        return self._identified(value, number)

    def _container(self, value: Any, number: int) -> Any:
        cls = type(value)
        require_few(value)
        if cls is dict:
            self.capture.check(number, ("dict", cls, tuple(value)))
            items = {k: self.read(v, ("item", number, k)) for k, v in value.items()}
            return TracedDict(items, number)
        if cls not in (tuple, list) and not (isinstance(value, tuple) and hasattr(cls, "_fields")):
            raise NotCaptured(f"a {cls.__name__} object")
        self.capture.check(number, ("seq", cls, len(value)))
        parts = [self.read(v, ("item", number, i)) for i, v in enumerate(value)]
        if cls is list:
            return TracedList(parts, number)
        return tuple(parts) if cls is tuple else named_tuple_class(self, cls)._make(parts)

    def _identified(self, value: Any, number: int) -> Any:
        """Functions, classes, modules and objects."""
        cls = type(value)
        if isinstance(value, types.MethodType):
            return self._bound_method(value, number)
        if isinstance(value, functools.partial):
            return self._partial(value, number)
        if cls is types.FunctionType and library_value(self, value) is None:
            return self.functions.stage(value, number)
        if cls is np.vectorize:
            return read_vectorized(self, value, number)
        made = self._by_identity(value, number)
        if made is not None:
            self.capture.check(number, ("is", value))
            return made
        if callable(value) and not hasattr(value, "__dict__"):
            self.capture.check(number, ("is", value))
            return self.unknown(value)
        self.capture.check(number, ("type", cls))
        return ObjectProxy(self, value, number)

    def _by_identity(self, value: Any, number: int) -> Any:
        """What is guarded to stay this very object; None when it need not be."""
        known = self._once.get(id(value))
        if known is not None:
            return known[1]
        made = library_value(self, value)
        if made is not None:
            return self.once(value, lambda: made)
        if hasattr(type(value), "__npjit_inline__"):
            return self.stage(value)
        if isinstance(value, types.ModuleType):
            return self.module(value)
        if isinstance(value, (enum.Enum, np.dtype)) or type(value) is object:
            return value
        if isinstance(value, types.BuiltinFunctionType) and value.__module__ == "builtins":
            return self.builtins[value.__name__]
        return (
            self.once(value, lambda: self._class(value, number))
            if isinstance(value, type)
            else None
        )

    def module(self, value: types.ModuleType) -> TracedModule:
        """A module, whose members are read one by one."""
        made: TracedModule = self.once(
            value, lambda: TracedModule(self, value, self.capture.step(("root", value)))
        )
        return made

    def _bound_method(self, value: types.MethodType, number: int) -> Any:
        self.capture.check(number, ("type", types.MethodType))
        self.capture.step(("attr", number, "__func__"), ("is", value.__func__))
        function = self.stage(value.__func__)
        if type(function) is UnknownCall:  # np.random.normal: compiled code takes no stand-in
            return self.unknown(value)
        owner = self.read(value.__self__, ("attr", number, "__self__"))
        return types.MethodType(function, owner)

    def _partial(self, value: Any, number: int) -> Any:
        self.capture.check(number, ("type", functools.partial))
        target = self.read(value.func, ("attr", number, "func"))
        args = self.read(value.args, ("attr", number, "args"))
        keywords = self.read(value.keywords, ("attr", number, "keywords"))
        return functools.partial(target, *args, **keywords)

    def _class(self, cls: type, number: int) -> Any:
        if cls in (type, object) or cls.__module__ in _PLAIN_MODULES:
            return self.builtins[cls.__name__] if cls.__name__ == "type" else cls
        if issubclass(cls, BaseException):
            return cls
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return named_tuple_class(self, cls)
        return ClassProxy(self, cls, number)

    def unknown(self, function: Any) -> Callable[..., Any]:
        """What traced code calls in place of a function that npjit does not know."""
        return UnknownCall(function)

    def stage(self, function: Any) -> Any:
        """A function, or what stands in its place, as traced code calls it."""
        inline = getattr(type(function), "__npjit_inline__", None)
        if inline is not None:
            return self.once(function, lambda: inline(function, self))
        if not isinstance(function, types.FunctionType):
            return self.read(function, ("root", function))
        return self.functions.stage(function, self.capture.step(("root", function)))

    def import_module(self, name: str, scope: Any = None, *args: Any) -> Any:
        """__import__ in traced code: the module is loaded as ever, its attributes are read with
        guards.
        """
        real = scope.real if isinstance(scope, TracedGlobals) else scope
        return self.module(__import__(name, real, *args))


_TRACED = (TracedObject, TracedModule, TracedDict, TracedList, ClassProxy)
