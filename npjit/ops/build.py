"""Making nodes by NumPy's rules: result types, casts and broadcasting are decided here, once, and
made explicit.

Everything below takes and gives `Node`s in one `Block`; the user-facing `Tracer` wraps it. After
this layer every ELEMENTWISE node has arguments of exactly its own shape and of the loop's own
element types.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.assume import Unknown
from npjit.core.dtypes import is_brain
from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.op import Kind, Literal, Op
from npjit.core.size import Shape, Size, product
from npjit.core.view import View
from npjit.ops import kinds, readings
from npjit.ops.errors import NotCaptured

DType = np.dtype[Any]
INT64 = np.dtype(np.int64)
FLOAT64 = np.dtype(np.float64)
BOOL = np.dtype(np.bool_)
# element types that compiled code knows
KNOWN = frozenset(np.dtype(c) for c in "?bBhHiIqQefdFD") | {np.dtype("l"), np.dtype("L")}


def is_known(dtype: DType) -> bool:
    """Whether compiled code has the element type, in some order of bytes."""
    return dtype in KNOWN or is_brain(dtype)


def require_known(dtype: DType) -> DType:
    """The dtype in native order, or NotCaptured."""
    if not is_known(dtype) or not dtype.isnative:
        raise NotCaptured(f"arrays of dtype {dtype} are not compiled")
    return dtype


def constant(block: Block, value: Any, dtype: DType, weight: Weight = Weight.SCALAR) -> Node:
    """A 0-d constant; NumPy's OverflowError when a Python int does not fit."""
    literal = Literal.of(value, dtype)
    return block.add(kinds.CONST, (), literal, TensorType((), dtype, weight))


def size_node(block: Block, size: Size) -> Node:
    """A size as a weak Python int."""
    if isinstance(size, int):
        return constant(block, size, INT64, Weight.WEAK)
    return block.add(kinds.SIZE, (), size, TensorType((), INT64, Weight.WEAK))


def iota(block: Block, length: Size) -> Node:
    """0, 1, ..., length - 1 as int64."""
    return block.add(kinds.IOTA, (), None, TensorType((length,), INT64))


def view(block: Block, node: Node, v: View) -> Node:
    """The node seen through a view; views of views are one view."""
    if node.op.kind is Kind.VIEW:
        v = node.params.then(v)
        node = node.args[0]
    if v.is_identity:
        return node
    return block.add(kinds.VIEW, (node,), v, TensorType(v.shape, node.dtype))


def weigh(block: Block, node: Node, weight: Weight) -> Node:
    """A 0-d node of another weight (a 0-d result is a NumPy scalar; x[..., 0] is a 0-d array)."""
    if node.type.weight is weight:
        return node
    if node.op.kind is Kind.CONST:
        return block.add(node.op, (), node.params, TensorType((), node.dtype, weight))
    identity = views.identity(node.shape)
    return block.add(kinds.VIEW, (node,), identity, TensorType(node.shape, node.dtype, weight))


def broadcast(block: Block, node: Node, shape: Shape) -> Node:
    """The node stretched to `shape` (already known to be compatible)."""
    if node.shape == shape:
        return node
    return view(block, node, views.broadcast(node.shape, shape))


def broadcast_shapes(block: Block, shapes: Sequence[Shape]) -> Shape:
    """NumPy's broadcast shape; guards on equal extents, ValueError when they differ."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[Size] = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            result[i] = _joined(block, result[i], n, shapes)
    return tuple(result)


def are_equal(block: Block, a: Size, b: Size) -> bool:
    """Whether extents are equal; where neither bounds nor the sizes at hand tell, they must be when
    the code runs."""
    try:
        return block.sizes.decide_eq(a, b)
    except Unknown:
        sides = [weigh(block, size_node(block, s), Weight.SCALAR) for s in (a, b)]
        ok = ufunc(block, kinds.UFUNCS[np.equal], np.equal, sides)
        block.add(kinds.CHECK, (ok,), "ValueError: shapes that differ", ok.type)
        return True


def is_empty(block: Block, count: Size) -> bool:
    """Whether there are no elements; where nothing tells, there must be some when the code runs."""
    try:
        return block.sizes.decide_eq(count, 0)
    except Unknown:
        sides = [weigh(block, size_node(block, s), Weight.SCALAR) for s in (count, 0)]
        ok = ufunc(block, kinds.UFUNCS[np.not_equal], np.not_equal, sides)
        block.add(kinds.CHECK, (ok,), "ValueError: no elements", ok.type)
        block.sizes.facts.append(count - 1)
        return False


def _joined(block: Block, a: Size, b: Size, shapes: Sequence[Shape]) -> Size:
    if b == 1 or a == b:
        return a
    if a == 1:
        return b
    if are_equal(block, a, b):
        return a
    # an extent that is only now found to be 1 has to be a literal 1 for the view to fix it
    if not isinstance(a, int) and block.sizes.decide_eq(a, 1):
        raise NotCaptured("an extent that depends on sizes turned out to be 1 while broadcasting")
    if not isinstance(b, int) and block.sizes.decide_eq(b, 1):
        raise NotCaptured("an extent that depends on sizes turned out to be 1 while broadcasting")
    shown = " ".join(str(s) for s in shapes)
    raise ValueError(f"operands could not be broadcast together with shapes {shown}")


def same_shape(block: Block, node: Node, shape: Shape) -> Node:
    """The node with its extents spelled as `shape` spells them (equal by the guards already
    recorded).
    """
    if node.shape == shape:
        return node
    v = View(node.shape, views.identity(node.shape).dims, shape)
    return block.add(kinds.VIEW, (node,), v, TensorType(shape, node.dtype))


def stretch(block: Block, node: Node, shape: Shape) -> Node:
    """Broadcast to `shape`, whose extents may be spelled otherwise where a guard equates them."""
    if node.shape == shape:
        return node
    lead = len(shape) - len(node.shape)
    spelled = tuple(n if n == 1 else shape[lead + i] for i, n in enumerate(node.shape))
    return broadcast(block, same_shape(block, node, spelled), shape)


def cast(block: Block, node: Node, dtype: DType) -> Node:
    """The node converted to `dtype`; constants convert now, sizes that may not fit are guarded."""
    if node.dtype == dtype:
        return node
    weight = node.type.weight
    if node.op.kind is Kind.CONST:
        return constant(block, _convert(node.params.value, node, dtype), dtype, weight)
    if node.op.kind is Kind.VIEW and node.args[0].op.kind is Kind.CONST:
        inner = cast(block, node.args[0], dtype)
        return block.add(kinds.VIEW, (inner,), node.params, TensorType(node.shape, dtype, weight))
    if node.type.weight is Weight.WEAK and node.dtype == INT64 and dtype.kind in "iu":
        _require_fits(block, node, dtype)
    op = kinds.ROWS["cast"]
    return block.add(op, (node,), None, TensorType(node.shape, dtype, weight))


def _convert(value: Any, node: Node, dtype: DType) -> Any:
    if node.type.weight is Weight.WEAK and node.dtype == INT64:
        return int(value)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)[()]


def _require_fits(block: Block, node: Node, dtype: DType) -> None:
    """NEP 50: a Python int that does not fit the array's integer type is an OverflowError."""
    info = np.iinfo(dtype)
    if node.op.kind is not Kind.SIZE:
        _check_fits(block, node, info)
        return
    sizes = block.sizes
    low = sizes.decide_le(int(info.min), node.params)
    if not low or (dtype != np.uint64 and not sizes.decide_le(node.params, int(info.max))):
        raise OverflowError(f"Python integer {sizes.actual(node.params)} out of bounds for {dtype}")


def _check_fits(block: Block, node: Node, info: Any) -> None:
    """A run-time check that a computed Python int lies in the range of an integer type."""
    node = weigh(block, node, Weight.SCALAR)
    ends = [(np.less_equal, max(int(info.min), -(2**63))), (np.greater_equal, int(info.max))]
    for compare, end in ends:
        if end < 2**63:
            bound = constant(block, end, INT64)
            ok = apply(block, kinds.UFUNCS[compare], [bound, node], BOOL)
            block.add(kinds.CHECK, (ok,), "OverflowError: a Python int out of bounds", ok.type)


@lru_cache(maxsize=4096)
def loop_dtypes(
    ufunc: np.ufunc, signature: tuple[Any, ...], result: DType | None = None
) -> tuple[DType, ...]:
    """The element types a ufunc's loop takes and gives; signature holds dtypes and the types int,
    float, complex.

    `result` asks for the loop that gives it.
    """
    if all(s is int for s in signature):
        # NumPy would take objects for Python ints alone
        signature = (INT64,) * len(signature)
    operands = (*signature, *[None] * ufunc.nout)
    if result is None:
        if ufunc.signature is not None:
            return ufunc.resolve_dtypes(operands)
        # NumPy refuses some types only when called (bool - bool)
        ufunc(*[np.empty(0, d) if isinstance(d, np.dtype) else d(1) for d in signature])
        return ufunc.resolve_dtypes(operands)
    wanted = (*[None] * ufunc.nin, *[result] * ufunc.nout)
    return ufunc.resolve_dtypes(operands, signature=wanted)


def loop_of(
    block: Block, ufunc: np.ufunc, nodes: Sequence[Node], result: DType | None = None
) -> tuple[DType, ...]:
    """`loop_dtypes` for these operands."""
    found: tuple[DType, ...] = readings.entries_of(
        block, nodes, lambda entries: loop_dtypes(ufunc, entries, result)
    )
    return found


def apply(block: Block, op: Op, args: Sequence[Node], dtype: DType, params: Any = None) -> Node:
    """An elementwise row on arguments that already have its loop's element types."""
    shape = broadcast_shapes(block, [a.shape for a in args])
    stretched = [stretch(block, a, shape) for a in args]
    weight = Weight.ARRAY if shape else Weight.SCALAR  # as a ufunc's result
    return block.add(op, stretched, params, TensorType(shape, dtype, weight))


def ufunc(
    block: Block, op: Op, function: np.ufunc, args: Sequence[Node], result: Any = None
) -> Node:
    """A ufunc's row on nodes of any types: resolve, cast, broadcast, apply."""
    wanted = None if result is None else np.dtype(result)
    *loop, out = loop_of(block, function, args, wanted)
    require_known(out)
    cast_args = [cast(block, a, require_known(d)) for a, d in zip(args, loop, strict=True)]
    made = apply(block, op, cast_args, out)
    if block.either and all(readings.python_type(block, a) for a in args):
        # what Python makes of Python's numbers is Python's
        readings.mark(block, made, readings.PYTHON_TYPES.get(out.kind))
    return made


_BITWISE = {
    "&": np.bitwise_and,
    "^": np.bitwise_xor,
    ">>": np.right_shift,
    "<<": np.left_shift,
}


def bits(block: Block, sign: str, a: Node, b: Node) -> Node:
    """a & b, a ^ b, a >> b or a << b for ints of one dtype."""
    f = _BITWISE[sign]
    return ufunc(block, kinds.UFUNCS[f], f, [a, b])


def select(block: Block, condition: Node, a: Node, b: Node) -> Node:
    """where(condition, a, b) for a bool condition and values of one dtype."""
    return apply(block, kinds.ROWS["select"], [condition, a, b], a.dtype)


def reduce(block: Block, op: Op, node: Node, axes: tuple[int, ...], dtype: DType) -> Node:
    """A reduction whose argument already has the accumulator's element type; axes sorted, not
    negative.
    """
    if not axes:
        return node
    shape = tuple(n for i, n in enumerate(node.shape) if i not in axes)
    weight = Weight.ARRAY if shape else Weight.SCALAR
    return block.add(op, (node,), axes, TensorType(shape, dtype, weight))


def reshape(block: Block, node: Node, shape: Shape) -> Node:
    """C-order reshape; adding and removing axes of extent 1 is a view."""
    if node.shape == shape:
        return node
    kept_old = [n for n in node.shape if n != 1]
    kept_new = [n for n in shape if n != 1]
    if kept_old == kept_new:
        dropped = [i for i, n in enumerate(node.shape) if n == 1]
        flat = view(block, node, views.squeeze(node.shape, dropped))
        return view(
            block, flat, views.expand(flat.shape, [i for i, n in enumerate(shape) if n == 1])
        )
    if node.op.kind is Kind.RESHAPE:
        return reshape(block, node.args[0], shape)
    return block.add(kinds.RESHAPE, (node,), None, TensorType(shape, node.dtype))


def element_count(shape: Shape) -> Size:
    """How many elements a shape has."""
    return product(shape)
