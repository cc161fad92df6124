"""What NumPy's, math's and operator's names mean in traced code; see `library_value`.

NumPy's ufuncs reach traced values through their protocols and stay themselves. Functions that make
arrays, and those whose traced arguments may hide in lists, are wrapped. What has effects or reads
the outside (files, random numbers, print options) is refused when called.
"""

from __future__ import annotations

import collections
import functools
import itertools
import math
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.core.graph import Weight
from npjit.frontend.conversions import convert, stand_in
from npjit.frontend.deques import GrowingDeque
from npjit.frontend.items import make_ndenumerate, make_ndindex, make_product
from npjit.frontend.lists import whole
from npjit.frontend.vectorized import vectorize
from npjit.ops import build, kinds
from npjit.ops.errors import NeverCaptured, NotCaptured, name_of
from npjit.ops.namespace import traced_namespace
from npjit.ops.operands import has_traced
from npjit.ops.ranges import grid
from npjit.ops.tracer import Tracer, as_node, fresh, guarded, is_traced

if TYPE_CHECKING:
    from npjit.frontend.outside import Outside

_ArrayFunction = type(np.sum)
_FIXED_MODULES = frozenset(
    ["numpy", "math", "cmath", "operator", "_operator", "itertools", "_functools"]
)
# array functions that read or write files, or text that depends on settings
_IMPURE_NAMES = """
save savez savez_compressed savetxt load loadtxt genfromtxt fromfile fromregex fromiter
array2string array_repr array_str
"""
_IMPURE = frozenset(_IMPURE_NAMES.split())
_PURE_FUNCTIONS_NAMES = """
promote_types can_cast issubdtype isdtype isscalar iterable broadcast_shapes result_type
mintypecode typename isfortran base_repr binary_repr diag_indices tril_indices triu_indices
mask_indices bartlett blackman hamming hanning kaiser common_type fftfreq rfftfreq iscomplexobj
isrealobj require asarray_chkfinite asanyarray
"""
_PURE_FUNCTIONS = frozenset(_PURE_FUNCTIONS_NAMES.split())
_PURE_CLASSES = (np.dtype, np.ndarray, np.finfo, np.iinfo, np.ufunc, np.broadcast, np.ndindex)
_INDEXING = tuple(type(x) for x in (np.s_, np.r_, np.c_, np.mgrid, np.ogrid))


def is_library(value: Any) -> bool:
    """Whether this comes from a module whose names never change: no guard is needed to read it
    there.
    """
    return _root_of(value) in _FIXED_MODULES


def _root_of(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0]
    module = getattr(value, "__module__", None) or type(value).__module__
    return module.partition(".")[0] if isinstance(module, str) else ""


def library_value(outside: Outside, value: Any) -> Any:
    """What traced code gets for an object of these libraries; None for everything else."""
    made = _special_form(outside.capture.block, value)
    if made is not None or isinstance(value, ModuleType):
        return made
    if isinstance(value, np.ufunc):
        return value
    root = _root_of(value)
    if root == "numpy":
        return _numpy_value(outside, value)
    if root in _FIXED_MODULES and callable(value):
        return value
    return None


def _special_form(block: Any, value: Any) -> Any:
    # by id: hashing a user's object would run code of the user's
    form = _FORMS.get(id(value))
    if form is not None:
        return form(block)
    return stand_in(value) if type(value) is type else None


def _numpy_value(outside: Outside, value: Any) -> Any:
    if isinstance(value, _ArrayFunction) and value.__name__ not in _IMPURE:
        return _array_function(outside.capture.block, value)
    if isinstance(value, type):
        return value if issubclass(value, (np.generic, *_PURE_CLASSES)) else None
    if isinstance(value, _INDEXING):
        return Subscripted(outside.capture.block, value)
    if getattr(value, "__name__", "") in _PURE_FUNCTIONS:
        return value
    is_function = callable(value) and not isinstance(value, np.ndarray)
    return UnknownCall(value) if is_function else None


class UnknownCall:
    """Stands in for a function that ends the trace when it is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = getattr(self.function, "__name__", self.function)
        raise NeverCaptured(f"a call to {name!r}, unknown to npjit")


class Subscripted:
    """np.r_, np.mgrid and their like, which are called by subscripts."""

    def __init__(self, block: Any, original: Any) -> None:
        self.block = block
        self.original = original

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        is_grid = self.original in (np.mgrid, np.ogrid) and all(type(p) is slice for p in parts)
        if is_grid and has_traced([v for p in parts for v in (p.start, p.stop, p.step)]):
            return guarded(grid, self.block, key, self.original is np.ogrid)
        return _held(self.block, self.original[key])


def _array_function(block: Any, function: Any) -> Callable[..., Any]:
    """A NumPy function: traced when a traced value stands anywhere in its arguments, else called
    now.
    """
    traced = kinds.FUNCTIONS.get(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(whole(a) for a in args)
        if not has_traced((*args, *kwargs.values())):
            return _held(block, function(*args, **kwargs))
        if traced is None:
            raise NotCaptured(f"{name_of(function)} is not compiled")
        return guarded(traced, *args, **kwargs)

    return call


def _held(block: Any, value: Any) -> Any:
    """A result of plain NumPy: arrays in it become storage of the trace, as if made there."""
    if type(value) is np.ndarray and build.is_known(value.dtype):
        return fresh(block, build.weigh(block, as_node(block, value), Weight.ARRAY))
    if type(value) in (tuple, list):
        return type(value)(_held(block, v) for v in value)
    return value


def _creation(original: Any, made: Callable[..., Any]) -> Callable[[Any], Any]:
    def form(block: Any) -> Any:
        @functools.wraps(original)
        def create(*args: Any, **kwargs: Any) -> Any:
            return guarded(made, block, *map(whole, args), **kwargs)

        return create

    return form


class _errstate:
    """np.errstate in compiled code: 'ignore' and 'warn' change no value; anything else runs as
    NumPy.
    """

    def __init__(self, **kwargs: Any) -> None:
        if any(v not in ("ignore", "warn") for v in kwargs.values()):
            raise NotCaptured("np.errstate that raises, calls, prints or logs")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        return None

    def __call__(self, function: Any) -> Any:
        return function


# ---------------------------------------------------------------- math

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
# the others raise (ValueError: math domain error, OverflowError) where the ufunc gives nan or inf
_TOTAL = frozenset(
    [
        math.atan,
        math.atan2,
        math.tanh,
        math.hypot,
        math.fabs,
        math.copysign,
        math.radians,
        math.degrees,
    ]
)
# numbers made whole, as Python's ints
_WHOLE = {math.floor: np.floor, math.ceil: np.ceil, math.trunc: np.trunc}
_TESTS = {math.isnan: np.isnan, math.isinf: np.isinf, math.isfinite: np.isfinite}


def _math_form(f: Any, ufunc: np.ufunc) -> Callable[[Any], Any]:
    """math.f on traced numbers: the ufunc, its result a Python number, with math's errors as a
    run-time check.
    """

    @functools.wraps(f)
    def call(*args: Any) -> Any:
        if not any(is_traced(a) for a in args):
            return f(*args)
        if len(args) != ufunc.nin:
            raise NotCaptured(f"math.{f.__name__} with {len(args)} arguments")
        return guarded(_math_result, next(a.block for a in args if is_traced(a)), f, ufunc, args)

    return lambda block: call


def _whole_form(f: Any, ufunc: np.ufunc) -> Callable[[Any], Any]:
    """math.f on traced numbers: a Python int."""

    @functools.wraps(f)
    def call(value: Any) -> Any:
        if type(value) is not Tracer or value.weight is Weight.ARRAY or value.dtype.kind != "f":
            return f(value)
        return convert(int, ufunc(value))

    return lambda block: call


def _math_result(block: Any, f: Any, ufunc: np.ufunc, args: tuple[Any, ...]) -> Any:
    nodes = [build.cast(block, as_node(block, a), build.FLOAT64) for a in args]
    if any(n.shape for n in nodes):
        raise NotCaptured(f"math.{f.__name__} of an array")
    numbers = [fresh(block, build.weigh(block, n, Weight.SCALAR)) for n in nodes]
    result = ufunc(*numbers)
    if f not in _TOTAL and f not in _TESTS:
        _require_finite(block, f, result, numbers)
    return fresh(block, build.weigh(block, result.node, Weight.WEAK))


def _require_finite(block: Any, f: Any, result: Any, numbers: list[Any]) -> None:
    """math raises where finite arguments give nan or inf, and some where infinite ones give nan."""
    ok = np.isfinite(result)
    for n in numbers:
        ok = np.logical_or(ok, np.isnan(n))
    spared = [np.logical_and(np.isinf(n), np.logical_not(np.isnan(result))) for n in numbers]
    node = functools.reduce(np.logical_or, spared, ok).node
    block.add(kinds.CHECK, (node,), f"ValueError: math domain error in {f.__name__}", node.type)


# classes whose objects are made of traced values
_MADE_BY_CALLS: dict[Any, Callable[..., Any]] = {
    collections.deque: GrowingDeque,
    itertools.product: make_product,
    np.ndenumerate: make_ndenumerate,
    np.ndindex: make_ndindex,
}


def _forms() -> dict[int, Callable[[Any], Any]]:
    table: dict[int, Callable[[Any], Any]] = {id(np.errstate): lambda block: _errstate}
    for cls, make in _MADE_BY_CALLS.items():
        table[id(cls)] = functools.partial(functools.partial, make)
    table[id(np.vectorize)] = lambda block: functools.partial(vectorize, block.capture.outside)
    for name, made in traced_namespace().items():
        original = getattr(np, name, None)
        if original is not None:
            table[id(original)] = _creation(original, made)
    for f, ufunc in _WHOLE.items():
        table[id(f)] = _whole_form(f, ufunc)
    for f, ufunc in (*_MATH.items(), *_TESTS.items()):
        table[id(f)] = _math_form(f, ufunc)
    return table


_FORMS = _forms()
# functions of numbers that have a traced form
FORMS = (*_MATH, *_TESTS)
