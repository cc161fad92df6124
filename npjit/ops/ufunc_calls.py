"""Calls of ufuncs on traced values, with out=, where= and dtype=.

In: the ufunc, its operands and keyword arguments. Out: the traced result:

    apply_ufunc(block, np.add, "__call__", (x, 1.0), {"out": (x,)})    ->  x, written to
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.graph import Block, Node
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured, name_of
from npjit.ops.settings import require_usual
from npjit.ops.tracer import Tracer, as_node, fresh, guarded, is_traced


def call_ufunc(ufunc: np.ufunc, *inputs: Any, **kwargs: Any) -> Any:
    """A ufunc call on values of which at least one is traced."""
    block = next(v.block for v in inputs if is_traced(v))
    return guarded(apply_ufunc, block, ufunc, "__call__", inputs, kwargs)


def apply_ufunc(block: Block, ufunc: np.ufunc, method: str, inputs: Any, kwargs: Any) -> Any:
    require_usual(kwargs)
    if method != "__call__":
        found = kinds.FUNCTIONS.get((ufunc, method))
        if found is None:
            raise NotCaptured(f"{name_of(ufunc)}.{method} is not compiled")
        return found(*inputs, **kwargs)
    out = kwargs.pop("out", None)
    where = kwargs.pop("where", True)
    dtype = kwargs.pop("dtype", None)
    casting = kwargs.pop("casting", "same_kind")
    for name in ("order", "subok"):
        kwargs.pop(name, None)
    if kwargs or casting != "same_kind" or not all(is_traced(v) for v in _outs(out)):
        raise NotCaptured(f"{name_of(ufunc)} with these keyword arguments")
    handler = kinds.FUNCTIONS.get(ufunc)
    if handler is not None:
        if dtype is not None:
            raise NotCaptured(f"{name_of(ufunc)} with dtype=")
        result = handler(*inputs)
    else:
        nodes = [as_node(block, v) for v in inputs]
        result = call_row(block, ufunc, nodes, dtype)
    return _deliver(block, result, out, where)


def call_row(block: Block, ufunc: np.ufunc, nodes: list[Node], dtype: Any = None) -> Tracer:
    """The ufunc's row on nodes; `dtype` asks for that result, as NumPy's dtype= does."""
    op = kinds.UFUNCS.get(ufunc)
    if op is None:
        raise NotCaptured(f"{name_of(ufunc)} is not compiled")
    return fresh(block, build.ufunc(block, op, ufunc, nodes, dtype))


def _outs(out: Any) -> tuple[Any, ...]:
    return () if out is None else tuple(o for o in out if o is not None)


def _deliver(block: Block, result: Any, out: Any, where: Any) -> Any:
    """Put a result where `out` and `where` say."""
    if out is None or out == (None,):
        if where is not True:
            raise NotCaptured("where= without out= leaves elements uninitialised")
        return result
    if isinstance(result, tuple):
        raise NotCaptured("out= of a ufunc with several results")
    (target,) = out
    value = result.node
    if where is not True:
        mask = as_node(block, where)
        if not np.can_cast(value.dtype, target.dtype, "same_kind"):
            raise TypeError("Cannot cast ufunc output")
        value = build.select(block, mask, build.cast(block, value, target.dtype), target.node)
    if len(value.shape) > target.ndim:
        raise ValueError("non-broadcastable output operand")
    target.write(value, "same_kind")
    return target
