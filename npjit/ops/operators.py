"""Python's operators on traced values: NumPy's rules for arrays and NumPy scalars, Python's for
Python numbers.

Importing this module gives `Tracer` its operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.graph import Block, Node, Weight
from npjit.core.op import Kind
from npjit.ops import build, kinds, python_int
from npjit.ops.errors import NotCaptured
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer, as_node, fresh, guarded, is_traced, takes_over
from npjit.ops.ufunc_calls import apply_ufunc, call_ufunc


def _python_result(block: Block, node: Node) -> Tracer:
    """The result of Python arithmetic on Python numbers is a Python number."""
    return fresh(block, build.weigh(block, node, Weight.WEAK))


def _is_python(value: Any) -> bool:
    return type(value) in (int, float, complex, bool, SymInt) or (
        type(value) is Tracer and value.weight is Weight.WEAK
    )


def _python_binary(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """An operator between Python numbers, one of them traced, by Python's rules."""
    block = a.block if type(a) is Tracer else b.block
    x, y = as_node(block, a), as_node(block, b)
    if x.dtype == build.BOOL and y.dtype == build.BOOL and ufunc in (np.add, np.subtract):
        raise NotCaptured("Python arithmetic on traced bools")
    if ufunc in _DIVISIONS:
        _require_nonzero(block, y)
    op = kinds.UFUNCS.get(ufunc)
    if op is None:
        raise NotCaptured(f"Python's {ufunc.__name__} on traced numbers")
    if x.dtype.kind in "iub" and y.dtype.kind in "iub" and ufunc not in _COMPARISONS:
        if ufunc is not np.true_divide:
            made = python_int.arithmetic(block, ufunc, x, y)
            if ufunc in _BITWISE and x.dtype == y.dtype == build.BOOL:
                made = build.cast(block, made, build.BOOL)
            return _python_result(block, made)
        x, y = python_int.as_exact_float(block, x), python_int.as_exact_float(block, y)
    result = build.ufunc(block, op, ufunc, [x, y])
    if ufunc is np.power:
        _require_python_power(block, result, x, y)
    return _python_result(block, result)


def _require_python_power(block: Block, result: Node, x: Node, y: Node) -> None:
    """Python raises where finite numbers give inf, and makes complex numbers of negative bases'
    roots.
    """
    if result.dtype != build.FLOAT64:
        raise NotCaptured("a Python power of complex numbers")
    value, base, exponent = (
        fresh(block, build.weigh(block, n, Weight.SCALAR)) for n in (result, x, y)
    )
    real = (base >= 0) | np.isnan(base) | (np.floor(exponent) == exponent)
    ok = real & (np.isfinite(value) | ~np.isfinite(base) | ~np.isfinite(exponent))
    block.add(kinds.CHECK, (ok.node,), "OverflowError: a power beyond the floats", ok.node.type)


def _require_nonzero(block: Block, node: Node) -> None:
    if node.op.kind is Kind.CONST:
        if not node.params.value:
            raise ZeroDivisionError("division by zero")
        return
    zero = build.constant(block, 0, node.dtype)
    ok = build.apply(block, kinds.UFUNCS[np.not_equal], [node, zero], build.BOOL)
    block.add(kinds.CHECK, (ok,), "ZeroDivisionError: division by zero", ok.type)


_DIVISIONS = frozenset([np.true_divide, np.floor_divide, np.remainder])
_BITWISE = frozenset([np.bitwise_and, np.bitwise_or, np.bitwise_xor])
_COMPARISONS = frozenset(
    [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]
)


def _operator(name: str, ufunc: np.ufunc, reflected: bool = True) -> None:
    def forward(self: Tracer, other: Any) -> Any:
        if not _operand(other):
            return NotImplemented
        other = _as_python_sees(self, other)
        if _is_python(self) and _is_python(other):
            return guarded(_python_binary, ufunc, self, other)
        return guarded(_array_binary, ufunc, self, other)

    def backward(self: Tracer, other: Any) -> Any:
        if not _operand(other):
            return NotImplemented
        self = _as_python_sees(other, self)
        if _is_python(self) and _is_python(other):
            return guarded(_python_binary, ufunc, other, self)
        return guarded(_array_binary, ufunc, other, self)

    def in_place(self: Tracer, other: Any) -> Any:
        if self.weight is not Weight.ARRAY:
            return forward(self, other)
        if (ufunc, "operator") in kinds.FUNCTIONS:
            guarded(self.write, forward(self, other).node, "same_kind")
            return self
        return call_ufunc(ufunc, self, other, out=(self,))

    setattr(Tracer, f"__{name}__", forward)
    if reflected:
        setattr(Tracer, f"__r{name}__", backward)
        setattr(Tracer, f"__i{name}__", in_place)


def _as_python_sees(left: Any, right: Any) -> Any:
    """The right operand: np.float64 is a float to a Python complex on its left, whose result stays
    one.
    """
    is_complex = _is_python(left) and left.__class__ is complex
    if is_complex and right.__class__ is np.float64:
        block = left.block if type(left) is Tracer else right.block
        return _python_result(block, as_node(block, right))
    return right


def _operand(value: Any) -> bool:
    if takes_over(value):
        return False
    return is_traced(value) or isinstance(
        value, (int, float, complex, np.generic, np.ndarray, list, tuple)
    )


def _array_binary(ufunc: np.ufunc, a: Any, b: Any) -> Any:
    block = a.block if is_traced(a) else b.block
    if block.either and _may_both_be_python(block, a, b):
        return _either_binary(block, ufunc, a, b)
    return _numpy_binary(block, ufunc, a, b)


def _numpy_binary(block: Block, ufunc: np.ufunc, a: Any, b: Any) -> Any:
    special = kinds.FUNCTIONS.get((ufunc, "operator"))
    if special is not None:
        return special(a, b)
    return apply_ufunc(block, ufunc, "__call__", (a, b), {})


def _may_both_be_python(block: Block, *values: Any) -> bool:
    return all(
        _is_python(v)
        or (type(v) is Tracer and v.weight is Weight.SCALAR and as_node(block, v) in block.either)
        for v in values
    )


def _either_binary(block: Block, ufunc: np.ufunc, a: Any, b: Any) -> Any:
    """An operator between numbers that may both be Python's, which raises where NumPy warns."""
    x, y = as_node(block, a), as_node(block, b)
    if ufunc in _DIVISIONS:
        _require_nonzero(block, y)
    made = _numpy_binary(block, ufunc, a, b)
    if ufunc is np.power:
        _require_python_power(block, as_node(block, made), x, y)
    return made


for _name, _function in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}.items():
    _operator(_name, _function)
for _name, _function in {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}.items():
    _operator(_name, _function, reflected=False)


def _unary(name: str, ufunc: np.ufunc) -> None:
    def apply(self: Tracer) -> Any:
        if _is_python(self) and self.dtype == np.int64 and ufunc in (np.negative, np.absolute):
            made = python_int.negative(self.block, ufunc, self.node)
            return _python_result(self.block, made)
        result = call_ufunc(ufunc, self)
        return _python_result(self.block, result.node) if _is_python(self) else result

    setattr(Tracer, f"__{name}__", apply)


for _name, _function in {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}.items():
    _unary(_name, _function)


def _matmul(self: Tracer, other: Any) -> Any:
    return np.matmul(self, other)


def _rmatmul(self: Tracer, other: Any) -> Any:
    return np.matmul(other, self)


def _imatmul(self: Tracer, other: Any) -> Any:
    guarded(self.write, np.matmul(self, other).node, "same_kind")
    return self


def _divmod(self: Tracer, other: Any) -> Any:
    return self // other, self % other


Tracer.__matmul__ = _matmul  # type: ignore[attr-defined]
Tracer.__rmatmul__ = _rmatmul  # type: ignore[attr-defined]
Tracer.__imatmul__ = _imatmul  # type: ignore[attr-defined]
Tracer.__divmod__ = _divmod  # type: ignore[attr-defined]
