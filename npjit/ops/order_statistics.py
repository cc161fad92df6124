"""Order statistics: median, percentile, quantile and their forms that leave NaN out.

Each sorts along one axis and reads what it needs there, so that gradients go to the elements that
were picked. The arithmetic between two neighbours is NumPy's own, step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Block
from npjit.ops import build, kinds
from npjit.ops.create import counting
from npjit.ops.errors import NotCaptured
from npjit.ops.extern import call
from npjit.ops.gathering import gather
from npjit.ops.kinds import function
from npjit.ops.movement import ravel
from npjit.ops.operands import as_array, deliver, find_block, is_set, many_axes, result
from npjit.ops.sorting import PARTITION
from npjit.ops.tracer import Tracer, fresh, is_traced

# ---------------------------------------------------------------- shared parts


def _in_front(array: Tracer, axes: tuple[int, ...]) -> Tracer:
    """The axes to go through merged into one, which stands in front."""
    if len(axes) == array.ndim:
        return ravel(array)
    if len(axes) == 1:
        return np.moveaxis(array, axes[0], 0)
    kept = [d for d in range(array.ndim) if d not in axes]
    turned = np.moveaxis(array, kept, range(len(kept)))
    merged = np.reshape(turned, (*turned.shape[: len(kept)], -1))
    return np.moveaxis(merged, -1, 0)


def _delivered(
    made: Tracer, array: Tracer, axes: tuple[int, ...], keepdims: Any, out: Any, lead: int = 0
) -> Any:
    """The result with axes of extent 1 where they are to be kept."""
    node = made.node
    if is_set(keepdims):
        node = build.view(made.block, node, views.expand(node.shape, [a + lead for a in axes]))
    return deliver(out, result(made.block, node))


def _prepared(a: Any, axis: Any, overwrite: Any) -> tuple[Tracer, tuple[int, ...]]:
    array = as_array(find_block(a), a)
    if overwrite or not array.ndim:
        raise NotCaptured("an order statistic of a 0-d array, or one that overwrites it")
    if build.is_empty(array.block, build.element_count(array.raw_shape)):
        raise NotCaptured("an order statistic of no elements")
    return array, many_axes(axis, array.ndim)


def _has_nan(array: Tracer) -> bool:
    return array.dtype.kind in "fc"


# ---------------------------------------------------------------- medians


@function(np.median)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False
) -> Any:
    """np.median."""
    array, axes = _prepared(a, axis, overwrite_input)
    front = _in_front(array, axes)
    (part,) = call(front.block, PARTITION, [front.node], (0, None))
    n = part.shape[0]
    low, high = (n - 1) // 2, n // 2
    made = _mean(part[low], part[high], as_array(front.block, low) == high)
    if _has_nan(array):
        made = np.where(np.isnan(part[-1]), part[-1].astype(made.dtype), made)
    return _delivered(made, array, axes, keepdims, out)


@function(np.nanmedian)
def nanmedian(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: Any = False,
    keepdims: Any = np._NoValue,
) -> Any:
    """np.nanmedian."""
    array, axes = _prepared(a, axis, overwrite_input)
    if array.dtype.kind != "f":
        return median(array, axis, out, overwrite_input, is_set(keepdims))
    in_order = np.sort(_in_front(array, axes), 0)
    count = np.sum(~np.isnan(in_order), axis=0)
    low = _pick(in_order, np.maximum(count - 1, 0) // 2)
    high = _pick(in_order, count // 2)
    made = _mean(low, high, count % 2 == 1)
    return _delivered(made, array, axes, keepdims, out)


def _mean(low: Any, high: Any, same: Any) -> Any:
    """The mean of two elements, which may be one and the same."""
    both = np.mean(np.stack([low, high]), axis=0)
    return np.where(same, low.astype(both.dtype), both)


def _pick(values: Tracer, index: Any) -> Tracer:
    """Elements along the first axis; the index's last axes are those behind it."""
    block, rest = values.block, values.ndim - 1
    lead = index.ndim - rest
    nodes = [index.node]
    for d, n in enumerate(values.raw_shape[1:]):
        line = counting(block, n)
        others = [i for i in range(index.ndim) if i != lead + d]
        along = build.view(block, line.node, views.expand(line.raw_shape, others))
        nodes.append(build.stretch(block, along, index.raw_shape))
    return gather(block, values.node, tuple(range(rest + 1)), 0, *nodes)


# ---------------------------------------------------------------- quantiles

# methods that interpolate: alpha and beta of NumPy's formula for the place
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
_PICKING: dict[str, Callable[[Any], Any]] = {
    "lower": np.floor,
    "higher": np.ceil,
    "nearest": np.around,
}


def _place(method: str, n: Any, q: Any) -> Any:
    """The place, between two elements, of the quantile q of n sorted elements."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return n * q + (alpha + q * (1 - alpha - beta)) - 1
    if method == "linear":
        return (n - 1) * q
    if method == "midpoint":
        return 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q))
    if method in _PICKING:
        return _PICKING[method]((n - 1) * q)
    raise NotCaptured(f"quantiles by the method {method!r}")


def _quantile(in_order: Tracer, n: Any, q: Any, method: str, weak: bool, pick: Any) -> Tracer:
    """The quantiles of sorted values, `n` of which count; q's axes stand in front."""
    place = _place(method, n, q)
    last = n - 1
    if method in _PICKING:
        return pick(in_order, place.astype(np.int64))
    low = np.floor(place)
    above, below = place >= last, place < 0
    first = np.where(below, 0, np.where(above, last, low)).astype(np.int64)
    second = np.where(below, 0, np.where(above, last, low + 1)).astype(np.int64)
    previous, following = pick(in_order, first), pick(in_order, second)
    # NumPy counts the last element as number -1 there
    step = place - np.where(below, 0, np.where(above, -1, low))
    if method == "midpoint":
        step = np.where(place % 1 == 0, 0.0, 0.5)
    step = step[(..., *[None] * (previous.ndim - step.ndim))]
    steps = (step, 1 - step)
    if weak:
        # Python floats take part in the values' own dtype
        dtype = np.result_type(in_order.dtype, 1.0)
        steps = tuple(fresh(s.block, build.cast(s.block, s.node, dtype)) for s in steps)
    span = following - previous
    return np.where(step >= 0.5, following - span * steps[1], previous + span * steps[0])


def _fractions(block: Block, q: Any, divisor: int) -> Tracer:
    """The quantiles asked for, between 0 and 1."""
    if not is_traced(q):
        numbers = np.asanyarray(q) if divisor == 1 else np.true_divide(q, divisor)
        if not np.all((numbers >= 0) & (numbers <= 1)):
            raise ValueError("Quantiles must be in the range [0, 1]")
        if numbers.dtype.kind != "f":
            raise NotCaptured("quantiles given as integers")
        return as_array(block, numbers)
    asked = as_array(block, q)
    fractions = asked if divisor == 1 else np.true_divide(asked, divisor)
    if fractions.dtype.kind != "f":
        raise NotCaptured("quantiles given as integers")
    ok = np.all((fractions >= 0) & (fractions <= 1))
    block.add(kinds.CHECK, (ok.node,), "ValueError: quantiles outside of [0, 1]", ok.node.type)
    return fractions


def _function(divisor: int, without_nan: bool) -> Callable[..., Any]:
    def quantile(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: Any = False,
        method: Any = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Any:
        if weights is not None:
            raise NotCaptured("weighted quantiles")
        block = find_block(a, q)
        array, axes = _prepared(as_array(block, a), axis, overwrite_input)
        if array.dtype.kind == "c":
            raise TypeError("a must be an array of real numbers")
        wanted = _fractions(block, q, divisor)
        weak = type(q) in (int, float)
        in_order = np.sort(_in_front(array, axes), 0)
        if without_nan and array.dtype.kind == "f":
            made = _of_counted(in_order, wanted, method, weak)
        else:
            made = _of_all(in_order, wanted, method, weak)
        return _delivered(made, array, axes, keepdims, out, wanted.ndim)

    return quantile


def _of_all(in_order: Tracer, q: Tracer, method: str, weak: bool) -> Tracer:
    def pick(values: Tracer, index: Any) -> Tracer:
        return gather(values.block, values.node, (0,), 0, index.node)

    made = _quantile(in_order, in_order.shape[0], q, method, weak, pick)
    if not _has_nan(in_order):
        return made
    last = in_order[-1]
    return np.where(np.isnan(last), last.astype(made.dtype), made)


def _of_counted(in_order: Tracer, q: Tracer, method: str, weak: bool) -> Tracer:
    """Where NaN, which sorting puts last, does not count."""
    count = np.sum(~np.isnan(in_order), axis=0)
    n = np.maximum(count, 1)
    wide = q[(..., *[None] * count.ndim)]
    made = _quantile(in_order, n, wide, method, weak, _pick)
    return np.where(count == 0, made.dtype.type(np.nan), made)


for _target, _divisor, _without_nan in (
    (np.quantile, 1, False),
    (np.percentile, 100, False),
    (np.nanquantile, 1, True),
    (np.nanpercentile, 100, True),
):
    function(_target)(_function(_divisor, _without_nan))
