"""Counting and membership, which NumPy itself computes: histogram, isin."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from npjit.core.graph import TensorType
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.extern import call, dense, extern
from npjit.ops.kinds import function
from npjit.ops.operands import array_result, as_array, find_block
from npjit.ops.symint import is_int, size_of
from npjit.ops.tracer import Tracer, as_node, is_traced

DType = np.dtype[Any]


@lru_cache(maxsize=256)
def _histogram_dtypes(density: bool, *dtypes: DType) -> tuple[DType, DType]:
    a, *rest = (np.ones(1, d) for d in dtypes)
    weights = rest[0] if rest else None
    counts, edges = np.histogram(a, 1, density=density, weights=weights)
    return counts.dtype, edges.dtype


def _histogram_types(params: Any, *args: TensorType) -> list[TensorType]:
    _, density = params
    line, *data = args
    (bins,) = line.shape
    counts, edges = _histogram_dtypes(density, *(a.dtype for a in data))
    return [dense((bins,), counts), dense((bins + 1,), edges)]


def _histogram(node: Any, line: Any, a: Any, weights: Any = None) -> Any:
    """`line` is as long as there are bins: a number of them in `params` could be no size."""
    limits, density = node.params
    return np.histogram(a, len(line), limits, density, weights)


HISTOGRAM = extern("histogram", _histogram, _histogram_types, flat=True, raises=True)
ISIN = extern(
    "isin",
    lambda node, element, test: np.isin(element, test, invert=node.params),
    lambda params, element, test: [dense(element.shape, np.bool_)],
    flat=True,
)


@function(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """np.histogram with a number of bins."""
    block = find_block(a, weights, bins)
    if not is_int(bins) or not block.sizes.decide_le(1, size_of(bins)):
        raise NotCaptured("np.histogram with bins that are no number of them")
    if range is not None and any(is_traced(v) for v in range):
        raise NotCaptured("np.histogram with a traced range")
    limits = None if range is None else (float(range[0]), float(range[1]))
    given = [as_node(block, v) for v in (a, weights) if v is not None]
    if given[0].dtype.kind not in "iuf":
        raise NotCaptured("np.histogram of this dtype")
    line = build.iota(block, size_of(bins))
    return tuple(call(block, HISTOGRAM, [line, *given], (limits, bool(density))))


@function(np.isin)
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: Any = False,
    invert: Any = False,
    *,
    kind: Any = None,
) -> Tracer:
    """np.isin; `kind` is how NumPy searches."""
    block = find_block(element, test_elements)
    nodes = [as_array(block, v).node for v in (element, test_elements)]
    if kind not in (None, "sort") and not (kind == "table" and nodes[0].dtype.kind in "bui"):
        raise NotCaptured(f"np.isin of kind {kind!r}")
    (made,) = call(block, ISIN, nodes, bool(invert))
    return array_result(block, made.node)
