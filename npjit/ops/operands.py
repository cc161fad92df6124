"""What traced functions do to their arguments first: find the block, make arrays, read axes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from npjit.core.graph import Block, Node, Weight
from npjit.ops import build, readings
from npjit.ops.errors import NotCaptured
from npjit.ops.settings import require_usual
from npjit.ops.tracer import Tracer, as_node, fresh, is_traced

try:
    from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
except ImportError:  # NumPy 2.0 has them elsewhere
    from numpy._core.numeric import normalize_axis_index, normalize_axis_tuple  # type: ignore


def find_block(*values: Any) -> Block:
    """The block of the first traced value among arguments, lists and tuples included."""
    for value in values:
        if is_traced(value):
            return value.block
        if isinstance(value, (list, tuple)) and has_traced(value):
            return find_block(*value)
    raise NotCaptured("no argument of this function is traced")


def has_traced(values: Iterable[Any]) -> bool:
    """Whether a traced value stands anywhere in nested lists and tuples."""
    return any(is_traced(v) or (isinstance(v, (list, tuple)) and has_traced(v)) for v in values)


def as_tracer(block: Block, value: Any) -> Tracer:
    """Any operand as a Tracer; Python numbers stay weak."""
    return value if type(value) is Tracer else fresh(block, as_node(block, value))


def as_array(block: Block, value: Any) -> Tracer:
    """np.asarray of any operand: Python numbers lose their weakness; arrays are themselves."""
    tracer = as_tracer(block, value)
    if tracer.weight is Weight.WEAK:
        return fresh(block, build.weigh(block, tracer.node, Weight.SCALAR))
    return tracer


def is_scalar(value: Any) -> bool:
    """Whether a value is a NumPy scalar, traced or not."""
    if type(value) is Tracer:
        return value.weight is Weight.SCALAR
    return isinstance(value, np.generic)


def one_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front; AxisError when out of range."""
    return normalize_axis_index(operator.index(axis), ndim)


def many_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """None, an int or a tuple as a sorted tuple of axes counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (list, tuple)):
        return tuple(sorted(normalize_axis_tuple([operator.index(a) for a in axis], ndim)))
    return (one_axis(axis, ndim),)


def listed_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """An int or a sequence of ints as axes counted from the front, in the order given."""
    items = axis if isinstance(axis, (list, tuple, np.ndarray)) else (axis,)
    return normalize_axis_tuple([operator.index(a) for a in items], ndim)


def result(block: Block, node: Node) -> Tracer:
    """A function's result; 0-d ones are NumPy scalars."""
    if not node.shape:
        node = build.weigh(block, node, Weight.SCALAR)
    return fresh(block, node)


def array_result(block: Block, node: Node) -> Tracer:
    """A function's result that stays an array when it is 0-d."""
    return fresh(block, build.weigh(block, node, Weight.ARRAY))


def deliver(target: Any, value: Tracer, casting: str = "same_kind") -> Any:
    """`value`, or `out=` filled with it."""
    if isinstance(target, tuple):
        (target,) = target
    if target is None:
        return value
    if type(target) is not Tracer:
        raise NotCaptured("out= is an array that tracing cannot see")
    if len(target.raw_shape) != len(value.raw_shape):
        raise NotCaptured("out= has another number of dimensions than the result")
    target.write(value.node, casting)
    return target


def is_set(flag: Any) -> bool:
    """Whether a flag such as keepdims= is given and true."""
    return flag is not np._NoValue and bool(flag)


def dtype_of(value: Any) -> np.dtype[Any] | None:
    """A dtype argument, None kept."""
    require_usual({"dtype": value})
    return None if value is None else build.require_known(np.dtype(value))


def common_dtype(block: Block, nodes: Sequence[Node]) -> np.dtype[Any]:
    """np.result_type of operands; Python numbers are weak."""
    return build.require_known(readings.entries_of(block, nodes, result_dtype))


def result_dtype(entries: Iterable[Any]) -> np.dtype[Any]:
    """np.result_type of rule entries."""
    return np.result_type(*[{int: 0, float: 0.0, complex: 0j}.get(e, e) for e in entries])
