"""NumPy functions that choose: where, select, clip, nan_to_num, closeness, rounding to decimals."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy._core.umath import clip as CLIP  # the ufunc whose types np.clip follows

from npjit.core.graph import Block, Node, Weight
from npjit.ops import build, readings
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import UFUNCS, function
from npjit.ops.operands import (
    array_result,
    as_array,
    common_dtype,
    deliver,
    find_block,
    result,
    result_dtype,
)
from npjit.ops.symint import is_int, wrap
from npjit.ops.tracer import Tracer, as_node, fresh

# ends of smaller types are within this
_WIDEST = 2**62


@function(np.where)
def where(condition: Any, *branches: Any) -> Any:
    """np.where."""
    if not branches:
        return np.nonzero(condition)
    if len(branches) != 2:
        raise ValueError("either both or neither of x and y should be given")
    block = find_block(condition, *branches)
    test = build.cast(block, as_node(block, condition), build.BOOL)
    nodes = [as_node(block, b) for b in branches]
    dtype = common_dtype(block, nodes)
    a, b = (build.cast(block, n, dtype) for n in nodes)
    return array_result(block, build.select(block, test, a, b))


@function(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tracer:
    """np.select: the first condition that holds decides."""
    block = find_block(condlist, choicelist, default)
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError("list of cases must be same length as list of conditions")
    conditions = [as_node(block, c) for c in condlist]
    if any(c.dtype != build.BOOL for c in conditions):
        raise TypeError("invalid entry in condlist: should be boolean ndarray")
    nodes = [as_node(block, v) for v in (*choicelist, default)]
    dtype = common_dtype(block, nodes)
    made = build.cast(block, nodes[-1], dtype)
    for test, node in zip(reversed(conditions), reversed(nodes[:-1]), strict=True):
        made = build.select(block, test, build.cast(block, node, dtype), made)
    return array_result(block, made)


@function(np.clip)
def clip(
    a: Any,
    a_min: Any = np._NoValue,
    a_max: Any = np._NoValue,
    out: Any = None,
    *,
    min: Any = np._NoValue,
    max: Any = np._NoValue,
) -> Any:
    """np.clip: its bounds are a_min and a_max, both of them, or min and max."""
    given = [v is not np._NoValue for v in (a_min, a_max, min, max)]
    if given[0] != given[1] or (given[0] and any(given[2:])):
        raise NotCaptured("these bounds of np.clip")
    low, high = (a_min, a_max) if given[0] else (min, max)
    low, high = (None if v is np._NoValue else v for v in (low, high))
    block = find_block(a, low, high, out)
    return deliver(out, _clipped(block, as_array(block, a), low, high))


@function("clip")
def clip_method(a: Tracer, min: Any = None, max: Any = None, out: Any = None) -> Any:
    """ndarray.clip."""
    return deliver(out, _clipped(a.block, as_array(a.block, a), min, max))


def _is_known(bound: Any, end: int) -> bool:
    """Whether an int can be compared with an end of its type: a traced one has 64 bits itself."""
    return type(bound) is int or (is_int(bound) and abs(int(end)) < _WIDEST)


def _clipped(block: Block, array: Tracer, low: Any, high: Any) -> Tracer:
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        low = None if _is_known(low, info.min) and low <= int(info.min) else low
        high = None if _is_known(high, info.max) and high >= int(info.max) else high
    if low is None and high is None:
        return np.positive(array)
    if array.dtype.kind == "c":
        raise NotCaptured("np.clip of complex numbers")
    if high is None:
        return np.maximum(array, low)
    if low is None:
        return np.minimum(array, high)
    nodes = [array.node, as_node(block, low), as_node(block, high)]
    *loop, out = build.loop_of(block, CLIP, nodes)
    value, bottom, top = (build.cast(block, n, d) for n, d in zip(nodes, loop, strict=True))
    if not bottom.shape and not top.shape:
        # of two equal values the second is given: NumPy keeps a -0.0 between constant bounds
        raised = build.apply(block, UFUNCS[np.maximum], [bottom, value], out)
        return fresh(block, build.apply(block, UFUNCS[np.minimum], [top, raised], out))
    raised = build.apply(block, UFUNCS[np.maximum], [value, bottom], out)
    return fresh(block, build.apply(block, UFUNCS[np.minimum], [raised, top], out))


@function(np.nan_to_num)
def nan_to_num(
    x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tracer:
    """np.nan_to_num of floats, copying."""
    array = as_array(find_block(x), x)
    block = array.block
    if not copy or array.dtype.kind == "c":
        raise NotCaptured("np.nan_to_num in place, or of complex numbers")
    if array.dtype.kind != "f":
        return result(block, array.node)
    info = np.finfo(array.dtype)
    top = info.max if posinf is None else posinf
    bottom = info.min if neginf is None else neginf
    made = array.node
    for test, value in (
        (np.isnan(array), nan),
        (array == np.inf, top),
        (array == -np.inf, bottom),
    ):
        filler = build.cast(block, as_node(block, value), array.dtype)
        if build.broadcast_shapes(block, [made.shape, filler.shape]) != made.shape:
            raise ValueError("more values than elements")
        made = build.select(block, test.node, filler, made)
    return result(block, made)


def array_copy(array: Tracer) -> Tracer:
    """The same value in a cell of its own."""
    return fresh(array.block, array.node)


@function(np.round, np.around, "round")
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """np.round, halves to even."""
    array = as_array(find_block(a, out), a)
    places = operator.index(decimals)
    if array.dtype.kind in "iu":
        if places < 0:
            raise NotCaptured("np.round of integers to tens")
        return deliver(out, np.positive(array))
    if array.dtype.kind == "b":
        raise NotCaptured("np.round of bools")
    if places == 0:
        return deliver(out, np.rint(array))
    if array.dtype.kind == "c":
        raise NotCaptured("np.round of complex numbers to decimals")
    scale = 10.0 ** abs(places)
    if places > 0:
        return deliver(out, np.rint(array * scale) / scale)
    return deliver(out, np.rint(array / scale) * scale)


@function(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    """np.fix."""
    return deliver(out, np.trunc(x))


@function(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Tracer:
    """np.isclose."""
    block = find_block(a, b)
    x, y = as_array(block, a), as_array(block, b)
    if y.dtype.kind in "iu":
        y = y.astype(np.result_type(y.dtype, 1.0))
    close = (np.abs(x - y) <= atol + rtol * np.abs(y)) & np.isfinite(y) | (x == y)
    if equal_nan:
        close = close | (np.isnan(x) & np.isnan(y))
    return close


@function(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Any:
    """np.allclose."""
    return as_bool(np.all(isclose(a, b, rtol, atol, equal_nan)))


def as_bool(value: Tracer) -> Tracer:
    """A bool scalar as the Python bool that NumPy gives."""
    return fresh(value.block, build.weigh(value.block, value.node, Weight.WEAK))


@function(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: Any = False) -> Any:
    """np.array_equal."""
    block = find_block(a1, a2)
    x, y = as_array(block, a1), as_array(block, a2)
    if not _same_extents(block, x.node, y.node):
        return False
    same = x == y
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        same = same | (np.isnan(x) & np.isnan(y))
    return as_bool(np.all(same))


@function(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    """np.array_equiv."""
    block = find_block(a1, a2)
    return as_bool(np.all(as_array(block, a1) == as_array(block, a2)))


def _same_extents(block: Block, a: Node, b: Node) -> bool:
    return len(a.shape) == len(b.shape) and all(
        block.sizes.decide_eq(m, n) for m, n in zip(a.shape, b.shape, strict=True)
    )


@function(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    """np.isposinf."""
    return deliver(out, np.logical_and(np.isinf(x), ~np.signbit(x)))


@function(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    """np.isneginf."""
    return deliver(out, np.logical_and(np.isinf(x), np.signbit(x)))


@function(np.isreal)
def isreal(x: Any) -> Any:
    """np.isreal."""
    return np.imag(x) == 0


@function(np.iscomplex)
def iscomplex(x: Any) -> Any:
    """np.iscomplex."""
    array = as_array(find_block(x), x)
    return np.imag(array) != 0


@function(np.choose, "choose")
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Any:
    """np.choose by a known index."""
    if type(a) is Tracer or out is not None or mode != "raise":
        raise NotCaptured("np.choose by a traced index")
    chosen = np.asarray(a)
    block = find_block(choices)
    if chosen.min() < 0 or chosen.max() >= len(choices):
        raise ValueError("invalid entry in choice array")
    tests = [fresh(block, as_node(block, chosen == i)) for i in range(len(choices))]
    return select(tests, list(choices), 0)[()]


@function(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tracer:
    """np.piecewise of values; functions would see selected elements only."""
    if any(callable(f) for f in funclist):
        raise NotCaptured("np.piecewise with functions")
    block = find_block(x, condlist, funclist)
    array = as_array(block, x)
    values = list(funclist)
    default = values.pop() if len(values) == len(condlist) + 1 else 0
    tests = [as_array(block, c).astype(bool) for c in condlist]
    made = np.where(np.ones_like(array, dtype=bool), default, array).astype(array.dtype)
    # a later condition overwrites an earlier one
    for test, value in zip(tests, values, strict=True):
        picked = np.where(test, value, made).astype(array.dtype)
        made = fresh(block, picked.node)
    return made


@function(np.shape)
def shape(a: Any) -> Any:
    """np.shape."""
    return as_array(find_block(a), a).shape


@function(np.ndim)
def ndim(a: Any) -> int:
    """np.ndim."""
    return as_array(find_block(a), a).ndim


@function(np.size)
def size(a: Any, axis: Any = None) -> Any:
    """np.size."""
    array = as_array(find_block(a), a)
    return array.size if axis is None else wrap(array.block, array.raw_shape[axis])


@function(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> Any:
    """np.result_type."""
    block = find_block(*arrays_and_dtypes)
    nodes = [as_node(block, v) for v in arrays_and_dtypes if type(v) is Tracer or is_int(v)]
    others = [v for v in arrays_and_dtypes if not (type(v) is Tracer or is_int(v))]
    return readings.entries_of(block, nodes, lambda entries: result_dtype([*entries, *others]))


for _test, _answer in {np.iscomplexobj: True, np.isrealobj: False}.items():

    @function(_test)
    def _is_complex(x: Any, answer: bool = _answer) -> bool:
        return answer == (as_array(find_block(x), x).dtype.kind == "c")
