"""What names mean in traced code: globals, builtins and modules as the function sees them while it is traced.

A function is traced by running its own code object with `TracedGlobals` in place of its module's dictionary: each
load looks the name up in the real module and hands it to the `Outside`, which turns it into a traced value and
records the guard. Nothing in NumPy or in the user's modules is patched; other threads see nothing.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.core.graph import Weight
from npjit.ops import build
from npjit.ops.create import traced_namespace
from npjit.ops.errors import NotCaptured
from npjit.ops.symint import SymInt, wrap
from npjit.ops.tracer import Tracer, as_node, fresh, is_traced

if TYPE_CHECKING:
    from npjit.frontend.outside import Outside


class TracedGlobals(dict):  # type: ignore[type-arg]
    """A function's globals while it is traced: loads go to the real dictionary, through the Outside."""

    def __init__(self, outside: Outside, real: dict[str, Any]) -> None:
        super().__init__()
        self.outside = outside
        self.real = real
        super().__setitem__("__builtins__", outside.builtins)
        super().__setitem__("__name__", real.get("__name__", ""))

    def __getitem__(self, name: str) -> Any:
        if name in ("__builtins__", "__name__"):
            return super().__getitem__(name)
        value = self.real[name]
        return self.outside.read(value, ("global", self.real, name))


class TracedModule:
    """A module while tracing: attributes are read through the Outside; numpy's functions stay themselves."""

    def __init__(self, outside: Outside, module: ModuleType, step: int) -> None:
        self._outside = outside
        self._module = module
        self._step = step

    def __getattr__(self, name: str) -> Any:
        outside = object.__getattribute__(self, "_outside")
        module = object.__getattribute__(self, "_module")
        value = getattr(module, name)
        replaced = outside.replacement(value)
        if replaced is not None:
            return replaced
        if module.__name__.partition(".")[0] in _FIXED_MODULES and outside.is_pure(value):
            return value  # the library's own functions do not change: no guard
        return outside.read(value, ("attr", object.__getattribute__(self, "_step"), name))


_FIXED_MODULES = frozenset(["numpy", "math", "cmath", "operator"])


def replacements(capture: Any) -> dict[int, Any]:
    """id of a NumPy, math or builtin function -> what traced code calls in its place."""
    block = capture.block
    table: dict[int, Any] = {}
    for name, made in traced_namespace().items():
        original = getattr(np, name, None)
        if original is not None:
            table[id(original)] = _creation(block, original, made)
    for f, traced in _math_functions().items():
        table[id(f)] = traced
    for f, traced in _builtin_functions(block).items():
        table[id(f)] = traced
    table[id(np.errstate)] = _errstate
    return table


def _creation(block: Any, original: Any, made: Callable[..., Any]) -> Callable[..., Any]:
    def create(*args: Any, **kwargs: Any) -> Any:
        from npjit.ops.tracer import _guarded

        return _guarded(made, block, *args, **kwargs)

    create.__name__ = getattr(original, "__name__", "create")
    return create


class _errstate:
    """np.errstate in compiled code: 'ignore' and 'warn' change no value; anything else runs as NumPy."""

    def __init__(self, **kwargs: Any) -> None:
        if any(v not in ("ignore", "warn") for v in kwargs.values()):
            raise NotCaptured("np.errstate that raises, calls, prints or logs")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        return None

    def __call__(self, function: Any) -> Any:
        return function


_MATH = {
    math.sqrt: np.sqrt,
    math.exp: np.exp,
    math.log: np.log,
    math.log2: np.log2,
    math.log10: np.log10,
    math.log1p: np.log1p,
    math.expm1: np.expm1,
    math.sin: np.sin,
    math.cos: np.cos,
    math.tan: np.tan,
    math.asin: np.arcsin,
    math.acos: np.arccos,
    math.atan: np.arctan,
    math.atan2: np.arctan2,
    math.sinh: np.sinh,
    math.cosh: np.cosh,
    math.tanh: np.tanh,
    math.hypot: np.hypot,
    math.fabs: np.fabs,
    math.copysign: np.copysign,
    math.fmod: np.fmod,
    math.radians: np.radians,
    math.degrees: np.degrees,
}
# where math raises (ValueError: math domain error, OverflowError) and the ufunc gives nan or inf
_TOTAL = frozenset(
    [math.atan, math.atan2, math.tanh, math.hypot, math.fabs, math.copysign]
    + [math.radians, math.degrees]
)


def _math_functions() -> dict[Any, Any]:
    return {f: _as_python(f, ufunc) for f, ufunc in _MATH.items()}


def _as_python(f: Any, ufunc: np.ufunc) -> Callable[..., Any]:
    """math.f on traced numbers: the ufunc, its result a Python float, with math's errors as a run-time check."""

    def call(*args: Any) -> Any:
        if not any(is_traced(a) for a in args):
            return f(*args)
        if len(args) != ufunc.nin:
            raise NotCaptured(f"math.{f.__name__} with {len(args)} arguments")
        block = next(a.block for a in args if is_traced(a))
        nodes = [build.cast(block, as_node(block, a), build.FLOAT64) for a in args]
        if any(n.shape for n in nodes):
            raise NotCaptured(f"math.{f.__name__} of an array")
        numbers = [fresh(block, build.weigh(block, n, Weight.WEAK)) for n in nodes]
        result = ufunc(*numbers)
        if f not in _TOTAL:
            _require_finite(block, f, result, numbers)
        return fresh(block, build.weigh(block, result.node, Weight.WEAK))

    return call


def _require_finite(block: Any, f: Any, result: Any, numbers: list[Any]) -> None:
    """math raises where a finite argument gives nan or inf; the check hands such a call to Python."""
    from npjit.ops import kinds

    ok = np.isfinite(result)
    for n in numbers:
        ok = np.logical_or(ok, np.logical_not(np.isfinite(n)))
    node = ok.node
    block.add(kinds.CHECK, (node,), f"ValueError: math domain error in {f.__name__}", node.type)


def _builtin_functions(block: Any) -> dict[Any, Any]:
    return {
        len: _length,
        abs: _absolute,
        min: lambda *a, **k: _extreme(min, a, k),
        max: lambda *a, **k: _extreme(max, a, k),
        type: _type,
        print: _refuse("print"),
        input: _refuse("input"),
        open: _refuse("open"),
        exec: _refuse("exec"),
        eval: _refuse("eval"),
        globals: _refuse("globals"),
        locals: _refuse("locals"),
        vars: _refuse("vars"),
        id: _refuse("id"),
        super: _refuse("super"),
        setattr: _refuse("setattr"),
        delattr: _refuse("delattr"),
        isinstance: _isinstance,
    }


def _refuse(name: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotCaptured(f"{name}() is called")

    return refused


def _length(value: Any) -> Any:
    if type(value) is Tracer:
        if not value.ndim:
            raise TypeError("len() of unsized object")
        return wrap(value.block, value.raw_shape[0])
    return len(value)


def _absolute(value: Any) -> Any:
    return operator.abs(value)


def _extreme(pick: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """min and max: sizes stay symbolic (a comparison is guarded); traced values are Python's comparison chain."""
    items = list(args[0]) if len(args) == 1 else list(args)
    if kwargs or not any(type(i) is Tracer for i in items):
        return pick(*args, **kwargs)
    raise NotCaptured(f"{pick.__name__}() of traced values")


def _type(value: Any, *rest: Any) -> Any:
    if rest:
        raise NotCaptured("type() makes a class")
    return value.__class__


def _isinstance(value: Any, classes: Any) -> bool:
    if isinstance(classes, tuple):
        return any(_isinstance(value, c) for c in classes)
    return isinstance(value, _real_class(classes))


def _real_class(cls: Any) -> Any:
    """The class behind what traced code calls it by."""
    return type if cls is _type else getattr(cls, "stands_for", cls)


# builtins that neither have effects nor read anything but their arguments
_PURE = """abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter float format
frozenset getattr hasattr hash hex int isinstance issubclass iter len list map max min next object oct ord pow range
repr reversed round set slice sorted str sum tuple type zip property staticmethod classmethod NotImplemented Ellipsis
True False None __build_class__ __debug__""".split()


def traced_builtins(outside: Outside) -> dict[str, Any]:
    """The builtins dictionary of traced code."""
    table: dict[str, Any] = {}
    for name, value in vars(builtins).items():
        replaced = outside.replacement(value)
        if replaced is not None:
            table[name] = replaced
        elif name in _PURE or (isinstance(value, type) and issubclass(value, BaseException)):
            table[name] = value
        elif callable(value):
            table[name] = _refuse(name)
    table["range"] = _range
    table["__import__"] = outside.import_module
    return table


def _range(*args: Any) -> Any:
    """range over traced ints: specialised, as Python runs the loop while tracing."""
    return range(*[a.concrete() if type(a) is SymInt else a for a in args])
