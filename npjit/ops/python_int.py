"""Arithmetic of traced Python ints: int64, with a run-time check where Python's result would not
fit.

Python ints are unbounded; a sum, difference, product or quotient that leaves int64 fails its check,
as the negative of the least int64 does, and the call runs in Python.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npjit.core.graph import Block, Node, Weight
from npjit.core.op import Kind
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured

# products of floats below this are products of ints below 2**63, whatever the rounding
_SAFE_PRODUCT = 9.2233720368547e18
_EXACT = frozenset([np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.floor_divide, np.remainder])


def arithmetic(block: Block, ufunc: np.ufunc, x: Node, y: Node) -> Node:
    """ufunc(x, y) for two Python ints or bools."""
    x, y = (build.weigh(block, build.cast(block, n, build.INT64), Weight.SCALAR) for n in (x, y))

    def call(f: np.ufunc, *args: Node) -> Node:
        return build.ufunc(block, kinds.UFUNCS[f], f, args)

    def require(ok: Node) -> None:
        block.add(kinds.CHECK, (ok,), "a Python int beyond 64 bits", ok.type)

    if ufunc in (np.add, np.subtract):
        result = call(ufunc, x, y)
        require(_no_carry(block, call, ufunc, x, y, result))
        return result
    if ufunc is np.multiply:
        floats = [build.cast(block, n, build.FLOAT64) for n in (x, y)]
        size = call(np.absolute, call(np.multiply, *floats))
        require(call(np.less, size, build.constant(block, _SAFE_PRODUCT, build.FLOAT64)))
        return call(np.multiply, x, y)
    if ufunc is np.floor_divide and (y.op.kind is not Kind.CONST or y.params.value == -1):
        other = call(np.not_equal, y, build.constant(block, -1, build.INT64))
        require(call(np.logical_or, other, has_negative(block, x)))
    if ufunc in _EXACT:
        return call(ufunc, x, y)
    if ufunc is np.right_shift:
        require(call(np.greater_equal, y, build.constant(block, 0, build.INT64)))
        return call(ufunc, x, y)
    if ufunc is np.left_shift:
        require(call(np.greater_equal, y, build.constant(block, 0, build.INT64)))
        require(call(np.less, y, build.constant(block, 62, build.INT64)))
        factor = call(ufunc, build.constant(block, 1, build.INT64), y)
        return arithmetic(block, np.multiply, x, factor)
    if ufunc is np.power and y.op.kind is Kind.CONST and 1 <= y.params.value <= 4:
        result = x
        for _ in range(int(y.params.value) - 1):
            result = arithmetic(block, np.multiply, result, x)
        return result
    if ufunc is np.power:
        # of a negative exponent Python makes a float
        require(call(np.greater_equal, y, build.constant(block, 0, build.INT64)))
        floats = [build.cast(block, n, build.FLOAT64) for n in (x, y)]
        size = call(np.absolute, call(np.power, *floats))
        require(call(np.less, size, build.constant(block, _SAFE_PRODUCT, build.FLOAT64)))
        return call(np.power, x, y)
    raise NotCaptured(f"Python's {ufunc.__name__} on traced ints")


def has_negative(block: Block, x: Node) -> Node:
    """Whether the negative of an int64 is one."""
    least = build.constant(block, -(2**63), build.INT64)
    return build.ufunc(block, kinds.UFUNCS[np.greater], np.greater, [x, least])


def negative(block: Block, ufunc: np.ufunc, x: Node) -> Node:
    """-x or abs(x) of a Python int."""
    scalar = build.weigh(block, x, Weight.SCALAR)
    ok = has_negative(block, scalar)
    block.add(kinds.CHECK, (ok,), "a Python int beyond 64 bits", ok.type)
    return build.ufunc(block, kinds.UFUNCS[ufunc], ufunc, [scalar])


def as_exact_float(block: Block, x: Node) -> Node:
    """A Python int or bool as a float; a check where it would be rounded (Python divides ints
    exactly).
    """
    if x.op.kind is not Kind.CONST and x.dtype != build.BOOL:
        scalar = build.weigh(block, x, Weight.SCALAR)
        bounds = [(np.less_equal, 2**53), (np.greater_equal, -(2**53))]
        for test, bound in bounds:
            limit = build.constant(block, bound, build.INT64)
            ok = build.ufunc(block, kinds.UFUNCS[test], test, [scalar, limit])
            block.add(kinds.CHECK, (ok,), "a Python int beyond 53 bits is divided", ok.type)
    return build.cast(block, x, build.FLOAT64)


def _no_carry(
    block: Block, call: Callable[..., Node], ufunc: np.ufunc, x: Node, y: Node, result: Node
) -> Node:
    """Whether a wrapped sum or difference is exact: its sign fits the operands' (Hacker's Delight,
    2-13).
    """
    first = call(np.bitwise_xor, x, result if ufunc is np.add else y)
    second = call(np.bitwise_xor, y if ufunc is np.add else x, result)
    both = call(np.bitwise_and, first, second)
    return call(np.greater_equal, both, build.constant(block, 0, build.INT64))
