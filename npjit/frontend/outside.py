"""Reading the world outside a trace: every object a function loads passes through `Outside.read`.

In: the object and how it was fetched. Out: what traced code works with (a Tracer, a SymInt, a staged function, a
proxy, or the object itself when it is immutable), with a step recorded that guards the load.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from npjit.frontend import namespace
from npjit.frontend.capture import Capture
from npjit.frontend.namespace import TracedGlobals, TracedModule
from npjit.frontend.objects import ClassProxy, ObjectProxy, TracedDict, TracedList
from npjit.ops.errors import NotCaptured
from npjit.ops.tracer import is_traced

_VALUES = (str, bytes, type(None), type(Ellipsis), type(NotImplemented), slice, range, np.dtype)


class Outside:
    """The reader of one trace."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self._replaced = namespace.replacements(capture)
        self._staged: dict[int, Any] = {}
        self._kept: list[Any] = []
        self.builtins = namespace.traced_builtins(self)

    def is_pure(self, value: Any) -> bool:
        """Whether calling this needs no staging: NumPy's functions, math, operator."""
        return _is_numpy_function(value) or (
            callable(value) and getattr(value, "__module__", "") in _PURE_NAMES
        )

    def replacement(self, value: Any) -> Any:
        """What traced code calls in place of a NumPy, math or builtin function; None: the thing itself."""
        return self._replaced.get(id(value))

    def read(self, value: Any, fetch: tuple[Any, ...]) -> Any:
        """The traced form of an outside object fetched as `fetch` says."""
        if is_traced(value):
            return value
        replaced = self.replacement(value)
        number = self.capture.step(fetch, ("any",))
        if replaced is not None:
            self.capture.check(number, ("is", value))
            return replaced
        return self.capture.known(number, lambda: self._traced(value, number))

    def _traced(self, value: Any, number: int) -> Any:
        capture = self.capture
        cls = type(value)
        capture.check(number, ("type", cls))
        if cls is np.ndarray:
            return capture.array(value, number)
        if cls in (bool, int, float, complex) or isinstance(value, np.generic):
            return capture.scalar(value, number)
        if cls in _VALUES:
            capture.check(number, ("is", value) if cls is np.dtype else ("equal", value))
            return value
        if isinstance(value, np.ndarray):
            raise NotCaptured(f"arrays of type {cls.__name__} run as NumPy")
        if cls in (tuple, list, dict) or isinstance(value, (tuple, dict)):
            return self._container(value, number)
        return self._object(value, number)

    def _container(self, value: Any, number: int) -> Any:
        cls = type(value)
        if isinstance(value, dict):
            if cls is not dict:
                raise NotCaptured(f"a {cls.__name__} object")
            self.capture.check(number, ("dict", cls, tuple(value)))
            traced = TracedDict({k: self.read(v, ("item", number, k)) for k, v in value.items()})
            traced.step, traced.stands_for = number, cls
            return traced
        if cls not in (tuple, list) and not hasattr(cls, "_fields"):
            raise NotCaptured(f"a {cls.__name__} object")
        self.capture.check(number, ("seq", cls, len(value)))
        items = [self.read(v, ("item", number, i)) for i, v in enumerate(value)]
        if cls is list:
            made = TracedList(items)
            made.step, made.stands_for = number, cls
            return made
        return tuple(items) if cls is tuple else cls(*items)

    def _object(self, value: Any, number: int) -> Any:
        check = self.capture.check
        inline = getattr(type(value), "__npjit_inline__", None)
        if inline is not None:
            check(number, ("is", value))
            return inline(value, self)
        if isinstance(value, types.ModuleType):
            check(number, ("is", value))
            return TracedModule(self, value, number)
        if isinstance(value, types.FunctionType):
            check(number, ("is", value))
            return self.stage(value)
        if isinstance(value, types.MethodType):
            return self._bound_method(value, number)
        if isinstance(value, functools.partial):
            return self._partial(value, number)
        if isinstance(value, type):
            check(number, ("is", value))
            return self._class(value, number)
        if self.is_pure(value):
            check(number, ("is", value))
            return value
        if callable(value) and not hasattr(value, "__dict__"):
            check(number, ("is", value))
            return _unknown_call(value)
        check(number, ("type", type(value)))
        return ObjectProxy(self, value, number)

    def _bound_method(self, value: types.MethodType, number: int) -> Any:
        function = self.capture.step(("attr", number, "__func__"), ("is", value.__func__))
        owner = self.read(value.__self__, ("attr", number, "__self__"))
        del function
        return types.MethodType(self.stage(value.__func__), owner)

    def _partial(self, value: Any, number: int) -> Any:
        self.capture.check(number, ("type", functools.partial))
        target = self.read(value.func, ("attr", number, "func"))
        args = self.read(value.args, ("attr", number, "args"))
        keywords = self.read(value.keywords, ("attr", number, "keywords"))
        return functools.partial(target, *args, **keywords)

    def _class(self, cls: type, number: int) -> Any:
        plain = (
            cls.__module__ in ("builtins", "numpy", "functools", "collections", "types")
            or issubclass(cls, BaseException)
            or hasattr(cls, "_fields")
            or (dataclasses.is_dataclass(cls) and not hasattr(cls, "__post_init__"))
        )
        return cls if plain else ClassProxy(self, cls, number)

    # ------------------------------------------------------------ functions

    def stage(self, function: Any) -> Any:
        """The function, running with traced globals, closure cells and defaults."""
        inline = getattr(type(function), "__npjit_inline__", None)
        if inline is not None:
            return inline(function, self)
        if not isinstance(function, types.FunctionType):
            return self.read(function, ("root", function))
        if isinstance(function.__globals__, TracedGlobals):
            return function
        found = self._staged.get(id(function))
        if found is None:
            found = self._stage(function)
        return found

    def _stage(self, function: types.FunctionType) -> Any:
        refuse_effects(function)
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        scope = TracedGlobals(self, function.__globals__)
        staged = types.FunctionType(function.__code__, scope, function.__name__, None, cells)
        # known before its cells are read: a function may find itself there
        self._staged[id(function)] = staged
        self._kept.append(function)
        for made, cell in zip(cells, function.__closure__ or (), strict=True):
            self._fill(made, cell)
        staged.__defaults__ = tuple(
            self.read(d, ("defaults", function, i))
            for i, d in enumerate(function.__defaults__ or ())
        )
        staged.__kwdefaults__ = {
            k: self.read(v, ("kwdefaults", function, k))
            for k, v in (function.__kwdefaults__ or {}).items()
        }
        return staged

    def _fill(self, made: types.CellType, cell: types.CellType) -> None:
        try:
            contents = cell.cell_contents
        except ValueError:
            return
        made.cell_contents = self.read(contents, ("cell", cell))

    def import_module(self, name: str, *args: Any) -> Any:
        """__import__ in traced code: the module is loaded as ever, its attributes are read with guards."""
        module = __import__(name, *[None if isinstance(a, TracedGlobals) else a for a in args[:1]],
                            *args[1:])
        return self.read(module, ("root", module))


def _is_numpy_function(value: Any) -> bool:
    if isinstance(value, np.ufunc):
        return True
    module = getattr(value, "__module__", None) or ""
    return callable(value) and (module == "numpy" or module.startswith(("numpy.", "numpy._core")))


_PURE_NAMES = frozenset(["math", "cmath", "operator", "_operator", "builtins", "itertools"])


def _unknown_call(value: Any) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotCaptured(f"a call to {getattr(value, '__name__', value)!r}, unknown to npjit")

    return refused


_EFFECTS = frozenset(["STORE_GLOBAL", "DELETE_GLOBAL"])


def refuse_effects(function: types.FunctionType) -> None:
    """NotCaptured when the function stores into globals or into variables of an enclosing scope, or yields."""
    code = function.__code__
    if code.co_flags & 0x2A0:  # generator, coroutine or asynchronous generator
        raise NotCaptured("a generator or coroutine function", _place(code))
    outer = frozenset(code.co_freevars)
    for instruction, inside in _instructions(code):
        if instruction.opname in _EFFECTS:
            raise NotCaptured(f"a store into the global {instruction.argval}", _place(inside))
        if instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and instruction.argval in outer:
            raise NotCaptured(f"a store into the outer variable {instruction.argval}", _place(inside))


def _instructions(code: types.CodeType) -> Iterator[tuple[dis.Instruction, types.CodeType]]:
    for instruction in dis.get_instructions(code):
        yield instruction, code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _instructions(const)


def _place(code: types.CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"
