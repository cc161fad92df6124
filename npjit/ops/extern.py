"""Rows that NumPy itself computes from whole arrays: sorting, factorisations, transforms.

`extern` makes such a row; `call` asks it. Its results are dense arrays in C order:

    sort = extern("sort", lambda node, x: np.sort(x, *node.params), types=like_first)
    call(block, sort, [x], (axis, kind))

A rule for gradients is `vjp(params, g, y, *args)`; of a row with several results
`vjp(params, k, g, ys, *args)`, what the gradient of result k contributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.op import Kind, Op
from npjit.core.size import Shape
from npjit.ops import build
from npjit.ops.control import results
from npjit.ops.errors import NotCaptured
from npjit.ops.kinds import row
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer, fresh

Types = Callable[..., Sequence[TensorType]]


def extern(
    name: str,
    meaning: Callable[..., Any],
    types: Types,
    *,
    c: str | Callable[..., str] = "",
    vjp: Callable[..., Any] | None = None,
    flat: bool = False,
    raises: bool = False,
) -> Op:
    """A row that `meaning(node, *arrays)` computes; `node` has the params and the first result's
    shape and dtype. `types(params, *argument types)` tells the results' types; `c` is a call in C++
    that does the same."""
    made = Op(
        name,
        Kind.EXTERN,
        meaning,
        c,
        cost=1000,
        vjp=vjp,
        flat=flat,
        raises=raises,
        types=types,
    )
    return row(made)


def call(block: Block, op: Op, args: Sequence[Node], params: Any = None) -> list[Tracer]:
    """The results of a row for these arguments; `params` must be known when it runs."""
    assert op.types is not None
    params = _known(params)
    args = [build.weigh(block, a, Weight.ARRAY if a.shape else Weight.SCALAR) for a in args]
    types = list(op.types(params, *[a.type for a in args]))
    if len(types) == 1:
        return [fresh(block, block.add(op, args, params, types[0]))]
    # the node itself has no value; its dtype says whether gradients may pass
    whole = TensorType((), types[0].dtype, Weight.SCALAR)
    node = block.add(op, args, params, whole)
    return [fresh(block, n) for n in results(block, node, types)]


def _known(params: Any) -> Any:
    """Parameters with actual numbers, to which the compiled code is guarded."""
    if type(params) is tuple:
        return tuple(_known(p) for p in params)
    if type(params) is Tracer:
        raise NotCaptured("a traced number where the function needs a known one")
    return params.concrete() if type(params) is SymInt else params


def dense(shape: Shape, dtype: Any) -> TensorType:
    """The type of an array, or of a NumPy scalar when it is 0-d."""
    return TensorType(shape, np.dtype(dtype), Weight.ARRAY if shape else Weight.SCALAR)


def like_first(params: Any, first: TensorType, *rest: TensorType) -> list[TensorType]:
    """The types of a row whose one result is as its first argument."""
    return [dense(first.shape, first.dtype)]
