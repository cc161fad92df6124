"""Values that cross the edge of a loop or branch: when two are the same, and what type stands for
both.

Names carried by a staged loop, or bound in the branches of a traced `if`, hold traced or plain
Python values. This module says whether a value changed, which scalar type two values join to (types
only climb), and how a value becomes a node of that type.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.assume import Unknown
from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.ops import build
from npjit.ops.readings import PythonType, python_type, rule_entry_of
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer, as_node, fresh, weak_number


class NotStaged(Exception):
    """A loop or branch that cannot become one node; it is unrolled where that is possible."""


NOT_BOUND = "a local variable is used before it is bound"


class Undefined:
    """The value of a name that is not bound yet. Using it is Python's UnboundLocalError."""

    def __repr__(self) -> str:
        return "<unbound>"

    def _unbound(self, *args: Any, **kwargs: Any) -> Any:
        raise UnboundLocalError(NOT_BOUND)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._unbound()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _unbound
    __rtruediv__ = __getitem__ = __setitem__ = __call__ = __iter__ = __len__ = _unbound
    __lt__ = __gt__ = __le__ = __ge__ = __bool__ = __float__ = __int__ = __index__ = _unbound
    __neg__ = __abs__ = __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __mod__ = _unbound
    __floordiv__ = __rfloordiv__ = __array__ = _unbound


UNDEFINED = Undefined()
_NUMBERS = (bool, int, float, complex)


def same(a: Any, b: Any) -> bool:
    """Whether two values are one and the same to the program."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is Tracer:
        if a.weight is not b.weight:
            return False
        if a.cell is b.cell:
            return bool(a.window == b.window)
        return a.weight is not Weight.ARRAY and a.node is b.node
    if type(a) is SymInt:
        return bool(a.size == b.size)
    if isinstance(a, (_NUMBERS, np.generic)):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes() if a is not None else True
    return isinstance(a, (str, bytes, np.dtype)) and bool(a == b)


def truth_of(condition: Any) -> Any:
    """A condition; one on an int, or on the length of a list, that only the running code knows as
    a traced one."""
    condition = condition.truth() if hasattr(type(condition), "truth") else condition
    if type(condition) is not SymInt:
        return condition
    try:
        return bool(condition)
    except Unknown:
        return weak_number(condition) != 0


def is_number(value: Any) -> bool:
    """A Python or NumPy number, traced or not (no array)."""
    if type(value) is Tracer:
        return value.weight is not Weight.ARRAY
    return type(value) in (*_NUMBERS, SymInt) or isinstance(value, np.generic)


def is_array(value: Any) -> bool:
    """A traced array."""
    return type(value) is Tracer and value.weight is Weight.ARRAY


def type_of(block: Block, value: Any) -> TensorType:
    """The type of a number or array; no node is made, for the value's region may have ended."""
    if type(value) is Tracer:
        return TensorType(value.raw_shape, value.dtype, value.weight)
    return as_node(block, value).type


def joined(a: TensorType, b: TensorType) -> TensorType:
    """The scalar type that holds both; NotStaged when there is none."""
    if a == b:
        return a
    if a.shape or b.shape:
        raise NotStaged("values of different shapes meet in one name")
    if a.weight is Weight.WEAK and b.weight is Weight.WEAK:
        order = "biufc"
        kind = max(a.dtype.kind, b.dtype.kind, key=order.index)
        if "b" in (a.dtype.kind, b.dtype.kind):
            raise NotStaged("a bool and a number meet in one name")
        return a if a.dtype.kind == kind else b
    if Weight.WEAK not in (a.weight, b.weight) and a.dtype != b.dtype:
        raise NotStaged(f"numbers of types {a.dtype} and {b.dtype} meet in one name")
    entries = [rule_entry_of(t) for t in (a, b)]
    try:
        dtype = np.add.resolve_dtypes((*entries, None))[2]
    except TypeError:
        raise NotStaged(f"values of types {a} and {b} meet in one name") from None
    if {a.weight, b.weight} == {Weight.ARRAY, Weight.SCALAR}:
        raise NotStaged("a 0-d array and a scalar meet in one name")
    return TensorType((), dtype, Weight.SCALAR)


def require_one_kind(block: Block, a: TensorType, b: TensorType) -> None:
    """NotStaged for numbers of different kinds in a trace where their types decide something."""
    if a.dtype.kind != b.dtype.kind and block.exact_types:  # type: ignore[attr-defined]
        raise NotStaged("numbers of different kinds meet in one name")


def python_type_of(block: Block, value: Any) -> PythonType | None:
    """Python's type of a number that is, or may be, Python's own."""
    return python_type(block, as_node(block, value)) if is_number(value) else None


def as_type(block: Block, node: Node | None, type_: TensorType) -> Node:
    """A node cast to the joined type; None (an unbound name) is zero, which nobody may look at."""
    if node is None:
        zero = build.constant(block, 0, type_.dtype, type_.weight)
        return build.broadcast(block, zero, type_.shape) if type_.shape else zero
    node = build.cast(block, node, type_.dtype)
    if type_.shape:
        return build.same_shape(block, node, type_.shape)
    return build.weigh(block, node, type_.weight)


def traced(block: Block, node: Node) -> Tracer:
    """A node as the user sees it."""
    return fresh(block, node)
