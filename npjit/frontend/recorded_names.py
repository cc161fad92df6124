"""What names mean in a function that runs over lazy arrays.

The function's own code runs, with Python's own control flow and effects. Only names that would lead
out of the recording are replaced as they are loaded: NumPy's functions that make arrays (no
protocol reaches them), `float` and the functions of `math`, the user's modules and functions, so
that the same holds in them. Arrays are lazy arrays over the same memory.

    names = Names(recording)
    names.read(f)(x)        # f's own code, over lazy arrays
"""

from __future__ import annotations

import builtins
import dis
import functools
import itertools
import math
import os
import sys
import sysconfig
import types
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from npjit import _runtime
from npjit._runtime import LazyArray, Recording
from npjit.frontend.conversions import STAND_INS
from npjit.frontend.library import FORMS, library_value
from npjit.frontend.recorded_calls import CALLED, calling_code
from npjit.ops.errors import active_trace
from npjit.ops.namespace import traced_namespace
from npjit.ops.operands import has_traced

_PLACES = sysconfig.get_paths()
_OWN = f"{Path(__file__).parents[1]}{os.sep}"
_LIBRARIES = tuple({_PLACES[name] for name in ("stdlib", "purelib", "platlib")} | {_OWN})
# Python needs these as numbers of its own, which have no derivative
_OWN_NUMBERS = (int, bool, np.ndarray)


class Form:
    """A function of NumPy, math or Python that is recorded: with Tracers, its traced form."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self.original = original
        self.__name__ = original.__name__
        self.__module__ = original.__module__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = active_trace()
        if trace is not None and has_traced((*args, *kwargs.values())):
            return library_value(trace.outside, self.original)(*args, **kwargs)
        return self.original(*args, **kwargs)


class Names:
    """The loads of names in one call."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.builtins = {
            **vars(builtins),
            **{t.__name__: s for t, s in STAND_INS.items() if t in (float, complex)},
            "type": _type,
            "__import__": self._import,
            CALLED: self.called,
        }
        # id -> (what is read, what is given), so that one object is one
        self._known: dict[int, tuple[Any, Any]] = {}

    def adopt(self, array: np.ndarray) -> LazyArray:
        """An array of the caller's; the same one is one lazy array."""
        if id(array) not in self._known:
            self._known[id(array)] = (array, self.recording.adopt(array, array))
        found: LazyArray = self._known[id(array)][1]
        return found

    def overlapping(self, more: Sequence[tuple[Any, Any]] = ()) -> list[tuple[Any, Any]]:
        """Pairs of lazy arrays, those known here and `more` (with their arrays), that may be over
        the same memory."""
        known = [*more, *(k for k in self._known.values() if type(k[0]) is np.ndarray)]
        pairs = itertools.combinations(known, 2)
        return [(x, y) for (a, x), (b, y) in pairs if np.may_share_memory(a, b)]

    def read(self, value: Any) -> Any:
        """What the function gets for a value that it loads."""
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        cls = type(value)
        if cls is np.ndarray:
            return self.adopt(value) if _runtime.describe_array(value) is not None else value
        if id(value) in _REPLACED:
            made = _REPLACED[id(value)](self)
            self._known[id(value)] = (value, made)
            return made
        if _is_users_function(value):
            return self._stage(value)
        if cls is types.MethodType:
            return types.MethodType(self.read(value.__func__), value.__self__)
        if cls is functools.partial:
            return functools.partial(self.read(value.func), *value.args, **value.keywords)
        if cls is types.ModuleType and is_users(getattr(value, "__file__", None) or ""):
            return RecordedModule(self, value)
        return value

    def called(self, value: Any) -> Any:
        """What the function calls for a value: a class as what makes objects of it."""
        if type(value) is type and _is_made_by_init(value):
            return functools.partial(self._make, value)
        run = getattr(type(value), "__call__", None)  # noqa: B004 (that of the class)
        if not isinstance(value, type) and _is_users_function(run):
            return self.read(types.MethodType(run, value))
        return self.read(value)

    def _make(self, cls: type, /, *args: Any, **kwargs: Any) -> Any:
        made = object.__new__(cls)
        self.read(types.MethodType(cls.__init__, made))(*args, **kwargs)  # type: ignore[misc]
        return made

    def forget(self) -> None:
        """The call is over."""
        self._known.clear()

    def _import(self, name: str, scope: Any = None, *args: Any) -> Any:
        real = scope.real if isinstance(scope, RecordedGlobals) else scope
        return self.read(__import__(name, real, *args))

    def _stage(self, function: types.FunctionType) -> Any:
        """The function over globals, and functions in its closure, that are read here."""
        code = function.__code__
        if isinstance(function.__globals__, RecordedGlobals) or _stores_globals(code):
            return function
        closure = function.__closure__ or ()
        cells = tuple(types.CellType() if self._is_read(c) else c for c in closure)
        scope = RecordedGlobals(self, function.__globals__)
        runs = calling_code(code)
        made = types.FunctionType(runs, scope, function.__name__, function.__defaults__, cells)
        self._known[id(function)] = (function, made)
        made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
        for cell, own in zip(cells, closure, strict=True):
            if cell is not own:
                cell.cell_contents = self.read(own.cell_contents)
        return made

    def _is_read(self, cell: types.CellType) -> bool:
        """Whether a variable of the closure holds what is not to be used as it is. Arrays are: the
        variable may get another one."""
        try:
            value = cell.cell_contents
        except ValueError:
            return False
        return type(value) is not np.ndarray and self.read(value) is not value


class RecordedGlobals(dict):  # type: ignore[type-arg]
    """A function's globals while it is recorded."""

    def __init__(self, names: Names, real: dict[str, Any]) -> None:
        super().__init__(__builtins__=names.builtins)
        self.names = names
        self.real = real

    def __getitem__(self, name: str) -> Any:
        return self.names.read(self.real[name])


class RecordedModule:
    """A module while functions are recorded: what is loaded from it is read."""

    def __init__(self, names: Names, module: types.ModuleType) -> None:
        object.__setattr__(self, "_npjit_names", names)
        object.__setattr__(self, "_npjit_module", module)

    def __getattribute__(self, name: str) -> Any:
        own = object.__getattribute__
        return own(self, "_npjit_names").read(getattr(own(self, "_npjit_module"), name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(object.__getattribute__(self, "_npjit_module"), name, value)


@lru_cache(maxsize=4096)
def is_users(filename: str) -> bool:
    """Whether a file is the user's, and not Python's or an installed package's."""
    return bool(filename) and not filename.startswith(("<frozen", *_LIBRARIES))


def _is_users_function(value: Any) -> bool:
    return type(value) is types.FunctionType and is_users(value.__code__.co_filename)


def _is_made_by_init(cls: type) -> bool:
    """Whether a user's class has nothing but an `__init__` to make its objects."""
    found = {name: getattr(cls, name) for name in ("__init__", "__new__")}
    return _is_users_function(found["__init__"]) and found["__new__"] is object.__new__


@lru_cache(maxsize=4096)
def _stores_globals(code: types.CodeType) -> bool:
    """Whether a function, or one in it, binds global names: it runs over its own."""
    if any(i.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") for i in dis.get_instructions(code)):
        return True
    return any(_stores_globals(c) for c in code.co_consts if isinstance(c, types.CodeType))


def _type(value: Any, *rest: Any) -> Any:
    return value.__class__ if type(value) is LazyArray and not rest else type(value, *rest)


def _recorded(form: Form) -> Callable[[Names], Any]:
    """What stands for a function: recorded where a lazy array takes part, else called."""
    original = form.original

    def read(names: Names) -> Any:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if _runtime.is_lazy((args, kwargs)):
                return names.recording.record(form, args, kwargs)
            result = original(*args, **kwargs)
            is_new = type(result) is np.ndarray and sys.getrefcount(result) == 2
            is_known = is_new and _runtime.describe_array(result) is not None
            return names.recording.adopt(result) if is_known else result

        return call

    return read


def _replaced() -> dict[int, Callable[[Names], Any]]:
    table: dict[int, Callable[[Names], Any]] = {
        id(module): lambda names, module=module: RecordedModule(names, module)
        for module in (np, math)
    }
    for original in (*(getattr(np, n, None) for n in traced_namespace()), *FORMS):
        if original is not None:
            table[id(original)] = _recorded(Form(original))
    for original, stand_in in STAND_INS.items():
        if original not in _OWN_NUMBERS:
            table[id(original)] = lambda names, made=stand_in: made
    return table


_REPLACED = _replaced()
