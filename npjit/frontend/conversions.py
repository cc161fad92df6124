"""`float`, `int`, `bool`, NumPy's scalar types and `np.ndarray` as traced code sees them.

Called with a traced value they give a traced number instead of asking for its value; everywhere
else (as a dtype, in isinstance, as a dictionary key, called with plain values) they stand for the
type itself.

    float(np.sum(x))    ->  a traced Python float
    x.astype(float)     ->  np.dtype(float), by the class attribute `dtype`
    np.ndarray((3, n))  ->  a traced array, as np.empty makes one
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit import _runtime
from npjit.core.graph import Node, Weight, reachable
from npjit.ops import build, kinds
from npjit.ops.create import ndarray
from npjit.ops.errors import NotCaptured, active_trace
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer, as_node, fresh, guarded, is_traced, weak_number

# the greatest float below 2**63, the least one above: outside, int() gives what no int64 holds
_INT_LIMIT = 2.0**63


class StandIn(type):
    """The class of the stand-ins, which are equal to the type that they stand for."""

    stands_for: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.stands_for is np.ndarray:
            return guarded(ndarray, active_trace().block, *args, **kwargs)
        if len(args) == 1 and is_traced(args[0]) and not kwargs:
            return convert(cls.stands_for, args[0])
        if len(args) == 1 and type(args[0]) is _runtime.LazyArray and not kwargs:
            return _runtime.record(cls, args, {})
        if cls.stands_for is complex and any(map(is_traced, args)) and not kwargs:
            return _complex_of(*args)
        return cls.stands_for(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.stands_for)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(getattr(other, "stands_for", other), cls.stands_for)

    def __eq__(cls, other: Any) -> bool:
        return getattr(other, "stands_for", other) is cls.stands_for

    def __hash__(cls) -> int:
        return hash(cls.stands_for)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.stands_for, name)

    def __repr__(cls) -> str:
        return repr(cls.stands_for)


_NUMBERS = (float, int, bool, complex, *(np.dtype(c).type for c in "?bBhHiIlLqQefdFD"))
STAND_INS: dict[Any, StandIn] = {
    np.ndarray: StandIn("ndarray", (), {"stands_for": np.ndarray}),
    **{c: StandIn(c.__name__, (), {"stands_for": c, "dtype": np.dtype(c)}) for c in _NUMBERS},
}


def stand_in(cls: type) -> StandIn | None:
    """What stands for a class; bfloat16 is known from the first time it is seen."""
    if cls.__name__ == "bfloat16" and cls not in STAND_INS and issubclass(cls, np.generic):
        STAND_INS[cls] = StandIn(cls.__name__, (), {"stands_for": cls, "dtype": np.dtype(cls)})
    return STAND_INS.get(cls)


def convert(cls: Any, value: Any) -> Any:
    """cls(value) of a traced value."""
    if type(value) is SymInt:
        if cls is int:
            return value
        if cls is bool:
            return bool(value)
        value = weak_number(value)
    if issubclass(cls, np.generic):
        return _to_numpy(np.dtype(cls), value)
    if value.raw_shape:
        raise NotCaptured(f"{cls.__name__}() of an array with axes")
    return _TO_PYTHON[cls](value)


def _to_numpy(dtype: np.dtype[Any], value: Tracer) -> Tracer:
    node = value.node
    is_other = value.weight is Weight.WEAK and node.dtype != dtype
    if is_other and dtype.kind in "iu" and node.dtype.kind in "iuf":
        raise NotCaptured(f"{dtype} of a traced Python number")  # may not fit, which is an error
    if node.dtype.kind == "c" and dtype.kind != "c":
        raise NotCaptured("a complex number made real")
    node = build.cast(value.block, node, dtype)
    weight = Weight.ARRAY if node.shape else Weight.SCALAR
    return fresh(value.block, build.weigh(value.block, node, weight))


def _weak(value: Tracer, node: Node) -> Tracer:
    return fresh(value.block, build.weigh(value.block, node, Weight.WEAK))


def _to_float(value: Tracer) -> Tracer:
    if value.dtype.kind == "c":
        raise NotCaptured("float() of a complex value")
    return _weak(value, build.cast(value.block, value.node, build.FLOAT64))


def _to_complex(value: Tracer) -> Tracer:
    return _weak(value, build.cast(value.block, value.node, np.dtype(np.complex128)))


def _complex_of(real: Any, imag: Any) -> Tracer:
    """complex(real, imag) of real numbers."""
    block = next(v.block for v in (real, imag) if is_traced(v))
    nodes = [as_node(block, v) for v in (real, imag)]
    if any(n.dtype.kind == "c" or n.shape for n in nodes):
        raise NotCaptured("complex() of complex numbers or arrays")
    parts = [build.weigh(block, build.cast(block, n, build.FLOAT64), Weight.SCALAR) for n in nodes]
    made = build.apply(block, kinds.ROWS["from_parts"], parts, np.dtype(np.complex128))
    return fresh(block, build.weigh(block, made, Weight.WEAK))


def _to_bool(value: Tracer) -> Tracer:
    return _weak(value, build.cast(value.block, value.node, build.BOOL))


def _to_int(value: Tracer) -> Any:
    """Where only sizes decide, a plain int: `int(0.8 * len(x))` is for slicing."""
    kind = value.dtype.kind
    if kind == "c" or value.dtype == np.uint64:
        raise NotCaptured(f"int() of a {value.dtype} value")
    if kind in "biu":
        return _weak(value, build.cast(value.block, value.node, build.INT64))
    if not _has_inputs(value.node):
        return int(value)
    number = fresh(value.block, build.weigh(value.block, value.node, Weight.SCALAR))
    number = _to_numpy(build.FLOAT64, number)
    fits: Any = np.logical_and(np.less(number, _INT_LIMIT), np.greater_equal(number, -_INT_LIMIT))
    value.block.add(kinds.CHECK, (fits.node,), "int() of a float beyond 64 bits", fits.node.type)
    return _weak(value, build.cast(value.block, number.node, build.INT64))


def _has_inputs(node: Node) -> bool:
    return any(n.op is kinds.INPUT for n in reachable([node]))


_TO_PYTHON = {float: _to_float, complex: _to_complex, bool: _to_bool, int: _to_int}
