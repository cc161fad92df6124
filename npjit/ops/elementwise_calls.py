"""Functions of a few elementwise rows: powers, ufuncs with two results, complex parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.graph import Block, Node, Weight
from npjit.core.op import Kind
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.gating import constant_value
from npjit.ops.kinds import ROWS, UFUNCS, attribute, function, setter
from npjit.ops.operands import as_array, as_tracer, find_block, result
from npjit.ops.readings import rule_entry
from npjit.ops.sharing import Part, share_unwritten
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer, as_node, fresh, weak_number
from npjit.ops.ufunc_calls import call_row

# ---------------------------------------------------------------- powers


def _loop_arguments(ufunc: np.ufunc, *values: Any) -> tuple[Block, list[Node], np.dtype[Any]]:
    """The nodes cast to the dtypes of the ufunc's loop, and the result's dtype."""
    block = find_block(*values)
    nodes = [as_node(block, v) for v in values]
    *loop, out = build.loop_of(block, ufunc, nodes)
    build.require_known(out)
    casts = [build.cast(block, n, d) for n, d in zip(nodes, loop, strict=True)]
    return block, casts, out


def _power(ufunc: np.ufunc, a: Any, b: Any) -> Tracer:
    """A known exponent takes a cheaper row, as in NumPy; an integer one must not be negative."""
    if type(b) is SymInt:
        b = _exponent(a, b)
    block, (base, exponent), out = _loop_arguments(ufunc, a, b)
    known = constant_value(exponent) if not exponent.shape else None
    if out.kind in "iu" and (known is None or known < 0):
        _require_no_negative(block, as_node(block, b), known)
    if known is not None and out.kind != "c":
        quick = _known_power(fresh(block, base), known, ufunc)
        if quick is not None:
            return quick
    powers = fresh(block, build.apply(block, UFUNCS[ufunc], [base, exponent], out))
    if ufunc is np.power and out.kind == "f" and base.shape and not exponent.shape:
        return _with_root(fresh(block, base), fresh(block, exponent), powers)
    return powers


def _exponent(base: Any, exponent: SymInt) -> Any:
    """An int as the exponent of an array: for a few values of it the cheaper rows are worth a
    version each."""
    is_few = getattr(exponent.block, "is_few", None)
    has_axes = type(base) is Tracer and base.raw_shape
    if has_axes and exponent.is_given and (is_few is None or is_few(exponent.size)):
        return exponent.concrete()
    return weak_number(exponent)


def _with_root(base: Tracer, exponent: Tracer, powers: Tracer) -> Tracer:
    """For a scalar 0.5 NumPy takes the square root, which differs at -0.0 and -inf."""
    if exponent.dtype.itemsize == 2 or constant_value(exponent.node) is not None:
        return powers
    differs = np.logical_or(base == 0, base == -np.inf)
    return np.where(np.logical_and(differs, exponent == 0.5), np.sqrt(base), powers)


def _require_no_negative(block: Block, exponent: Node, known: Any) -> None:
    if known is not None:
        raise ValueError("Integers to negative integer powers are not allowed.")
    if exponent.dtype.kind in "ub":
        return
    if exponent.op.kind is Kind.SIZE and block.sizes.decide_le(0, exponent.params):
        return
    raise NotCaptured("an integer power whose exponent may be negative")


def _known_power(base: Tracer, exponent: Any, ufunc: np.ufunc) -> Any:
    """The rows that NumPy takes for a scalar exponent, and products for 3 and 4."""
    if exponent == 0:
        one = build.constant(base.block, 1, base.dtype)
        return fresh(base.block, build.broadcast(base.block, one, base.raw_shape))
    if exponent == 1:
        return np.positive(base)
    if exponent == 2:
        return np.square(base)
    if exponent == 3:
        return base * base * base
    if exponent == 4:
        return np.square(np.square(base))
    if exponent == -1:
        return np.reciprocal(base)
    # elsewhere NumPy calls pow, which has other results for -0.0 and -inf
    if exponent == 0.5 and ufunc is np.power and base.ndim and base.dtype.itemsize > 2:
        return np.sqrt(base)
    return None


@function((np.power, "operator"))
def power_operator(a: Any, b: Any) -> Tracer:
    """a ** b: of an array with a Python number, NumPy takes the rows that the number names."""
    if type(a) is Tracer and a.weight is Weight.ARRAY and a.ndim:
        if type(b) is int and b == 2:
            return np.square(a)
        if type(b) is int and b == -1 and a.dtype.kind in "fc":
            return np.reciprocal(a)
        if type(b) is float and b == 0.5 and a.dtype.kind in "fc":
            return np.sqrt(a)
        traced = type(b) is Tracer and b.weight is Weight.WEAK and b.dtype.kind == "f"
        if traced and (a.dtype.kind == "c" or a.dtype.itemsize == 2):
            raise NotCaptured(f"a power of {a.dtype} by a traced Python float, which may be 0.5")
    return np.power(a, b)


function(np.power)(lambda a, b: _power(np.power, a, b))
function(np.float_power)(lambda a, b: _power(np.float_power, a, b))

# ---------------------------------------------------------------- two results


def _floating(x: Any, ufunc: np.ufunc) -> tuple[Block, Node]:
    block = find_block(x)
    node = as_node(block, x)
    loop = ufunc.resolve_dtypes((rule_entry(node), None, None))
    return block, build.cast(block, node, build.require_known(loop[0]))


@function(np.modf)
def modf(x: Any) -> tuple[Tracer, Tracer]:
    """np.modf."""
    block, node = _floating(x, np.modf)
    return (
        fresh(block, build.apply(block, ROWS["modf_fraction"], [node], node.dtype)),
        fresh(block, build.apply(block, ROWS["modf_whole"], [node], node.dtype)),
    )


@function(np.frexp)
def frexp(x: Any) -> tuple[Tracer, Tracer]:
    """np.frexp."""
    block, node = _floating(x, np.frexp)
    exponent = build.apply(block, ROWS["frexp_exponent"], [node], np.dtype(np.intc))
    return fresh(block, build.apply(block, ROWS["frexp_mantissa"], [node], node.dtype)), fresh(
        block, exponent
    )


@function(np.divmod)
def divmod_(a: Any, b: Any) -> tuple[Any, Any]:
    """np.divmod."""
    return np.floor_divide(a, b), np.remainder(a, b)


# ---------------------------------------------------------------- parts of complex numbers


@function("conj", "conjugate")
def conjugate_method(a: Tracer) -> Tracer:
    """ndarray.conj: a real array is its own."""
    return np.conjugate(a) if a.dtype.kind == "c" else a


@function(np.conjugate)
def conjugate(x: Any) -> Tracer:
    """np.conjugate; a real value is its own."""
    block = find_block(x)
    node = as_node(block, x)
    if node.dtype.kind == "f":
        return result(block, node)
    return call_row(block, np.conjugate, [node])


@function(np.real)
def real(val: Any) -> Tracer:
    """np.real; a real array is its own real part."""
    array = as_tracer(find_block(val), val)
    return array if array.dtype.kind != "c" else _shared_part(array, "real")


@function(np.imag)
def imag(val: Any) -> Tracer:
    """np.imag."""
    array = as_tracer(find_block(val), val)
    if array.dtype.kind == "c":
        return _shared_part(array, "imag")
    zero = build.constant(array.block, 0, array.dtype, array.weight)
    made = fresh(array.block, build.broadcast(array.block, zero, array.raw_shape))
    # read-only, as NumPy's
    return share_unwritten(fresh(array.block, zero), made)


def _shared_part(array: Tracer, name: str) -> Tracer:
    """The real or imaginary parts, in the array's own memory."""
    if array.weight is not Weight.ARRAY:
        return _part(array, name)
    return Tracer(Part(array.cell, name), array.window, Weight.ARRAY)


@setter("real")
def set_real(array: Tracer, value: Any) -> None:
    """array.real = value"""
    _set_part(array, real(array), value)


@setter("imag")
def set_imag(array: Tracer, value: Any) -> None:
    """array.imag = value"""
    if array.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    _set_part(array, imag(array), value)


def _set_part(array: Tracer, part: Tracer, value: Any) -> None:
    own = value.cell if type(value) is Tracer else None
    if type(own) is Part and own.base is array.cell and value.window == part.window:
        return  # the second half of a.real += x: the in-place operator has written already
    part[...] = value


def _part(array: Tracer, name: str) -> Tracer:
    block = array.block
    plane = array.dtype.type(0).real.dtype
    node = build.apply(block, ROWS[name], [array.node], plane)
    return fresh(block, build.weigh(block, node, array.weight))


attribute("real")(real)
attribute("imag")(imag)


@function(np.angle)
def angle(z: Any, deg: Any = False) -> Tracer:
    """np.angle."""
    array = as_array(find_block(z), z)
    made = _part(array, "angle") if array.dtype.kind == "c" else np.arctan2(0, array)
    return made * (180 / np.pi) if deg else made
