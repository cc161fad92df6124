"""Numbers in a row: arange, linspace, logspace, geomspace, with NumPy's own bits."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from npjit.core.graph import Block
from npjit.core.size import Size, floordiv
from npjit.ops import build, readings
from npjit.ops.convert import lifted
from npjit.ops.create import counting
from npjit.ops.errors import NotCaptured
from npjit.ops.movement import moveaxis
from npjit.ops.namespace import creation
from npjit.ops.operands import (
    as_array,
    as_tracer,
    dtype_of,
    result_dtype,
)
from npjit.ops.symint import SymInt, is_int, size_of, wrap
from npjit.ops.tracer import Tracer, fresh


@creation
def arange(block: Block, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
    """np.arange: symbolic for ints; other numbers must be known."""
    start, stop, step = _bounds(args, kwargs)
    if any(type(v) is Tracer for v in (start, stop, step)):
        raise NotCaptured("np.arange of traced numbers")
    wanted = dtype_of(dtype)
    if all(is_int(v) for v in (start, stop, step)) and (wanted is None or wanted.kind in "iuf"):
        return _int_range(block, size_of(start), size_of(stop), step, wanted or build.INT64)
    known = [v.concrete() if type(v) is SymInt else v for v in (start, stop, step)]
    values = np.arange(*known, dtype=wanted)
    if values.dtype != np.float64 or len(values) < 3:
        return lifted(block, values)
    first, delta = float(values[0]), float(values[1]) - float(values[0])
    return counting(block, len(values), np.float64) * delta + first


def _bounds(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    given = dict(zip(("start", "stop", "step"), args, strict=False))
    if kwargs.pop("like", None) is not None or len(args) > 4:
        raise NotCaptured("np.arange with these arguments")
    given.update(kwargs)
    if "stop" not in given or given["stop"] is None:
        return 0, given["start"], given.get("step", 1)
    start, step = given.get("start", 0), given.get("step", 1)
    return 0 if start is None else start, given["stop"], 1 if step is None else step


def grid(block: Block, key: Any, is_open: bool) -> Any:
    """np.mgrid[key] and, open, np.ogrid[key], where ints say how far the slices go."""
    slices = key if isinstance(key, tuple) else (key,)
    ends = [(0 if s.start is None else s.start, s.stop, s.step or 1) for s in slices]
    if not all(is_int(v) for three in ends for v in three):
        raise NotCaptured("np.mgrid of traced numbers")
    lines = [arange(block, *three) for three in ends]
    if not isinstance(key, tuple):
        return lines[0]
    axes = np.meshgrid(*lines, indexing="ij", sparse=is_open)
    return tuple(axes) if is_open else np.stack(axes)


def _int_range(block: Block, start: Size, stop: Size, step: Any, dtype: Any) -> Tracer:
    by = step.concrete() if type(step) is SymInt else step
    if by == 0:
        raise ZeroDivisionError("division by zero")
    span = stop - start if by > 0 else start - stop
    length: Size = 0
    if block.sizes.decide_le(1, span):
        length = floordiv(span + (abs(by) - 1), abs(by))
    count = counting(block, length)
    shifted = count * by if by != 1 else count
    if start != 0:
        shifted = shifted + wrap(block, start)
    return fresh(block, build.cast(block, shifted.node, dtype))


def _inexact(*values: Tracer) -> np.dtype[Any]:
    nodes = [v.node for v in values]
    found: np.dtype[Any] = readings.entries_of(values[0].block, nodes, result_dtype)
    return found if found.kind in "fc" else np.result_type(found, np.float64)


@creation
def linspace(
    block: Block,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Any:
    """np.linspace, bit for bit; the ends may be traced numbers or arrays."""
    first, last = as_tracer(block, start), as_tracer(block, stop)
    if not is_int(num):
        num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    dt = _inexact(first, last)
    first, last = (fresh(block, build.cast(block, v.node, dt)) for v in (first, last))
    delta = as_array(block, last - first)
    div = num - 1 if endpoint else num
    row = counting(block, size_of(num))
    row = row[(slice(None), *[None] * delta.ndim)]
    y = row.astype(dt)
    if div > 0:
        step = delta / div
        y = np.where(np.any(step == 0), y / div * delta, y * step)
    else:
        step = as_array(block, float("nan"))
        y = y * delta
    y = y + first
    if endpoint and num > 1:
        y = np.where(row == num - 1, last, y)
    if axis != 0:
        y = moveaxis(y, 0, axis)
    wanted = dtype_of(dtype) or dt
    if wanted.kind in "iu":
        y = np.floor(y)
    y = y.astype(wanted)
    return (y, step) if retstep else y


@creation
def logspace(
    block: Block,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> Tracer:
    """np.logspace with a number as base."""
    y = linspace(block, start, stop, num, endpoint, axis=axis)
    if not isinstance(base, (int, float)):
        raise NotCaptured("np.logspace with an array as base")
    powers = np.power(base, y)
    return powers if dtype is None else powers.astype(dtype)


@creation
def geomspace(block: Block, *args: Any, **kwargs: Any) -> Tracer:
    """np.geomspace of known numbers."""
    return lifted(block, np.geomspace(*_known(args), **kwargs))


def _known(args: Any) -> list[Any]:
    if any(type(a) is Tracer for a in args):
        raise NotCaptured("an array is made from traced numbers")
    return [a.concrete() if type(a) is SymInt else a for a in args]
