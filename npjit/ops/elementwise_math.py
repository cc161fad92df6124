"""Elementwise rows: exponentials, logarithms, trigonometry and their inverses.

In: NumPy ufuncs. Out: their rows. The C text is a call of the prelude function of the same name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.ops.gating import gate, over, scaled
from npjit.ops.kinds import elementwise

LN2 = math.log(2)
LN10 = math.log(10)


def _unary(ufunc: np.ufunc, cost: int, vjp: Callable[..., Any], has_near: bool = False) -> None:
    """A function of one argument, complex too where NumPy has it."""
    call = f"nj_{ufunc.__name__}({{0}})"
    near = ("nj_is_near({0})", f"nj_near_{ufunc.__name__}({{0}})") if has_near else None
    complex_c = call if "D->D" in ufunc.types else ""
    elementwise(ufunc, call, complex_c=complex_c, near=near, cost=cost, vjp=vjp)


# ---------------------------------------------------------------- exponentials and logarithms

_unary(np.exp, 10, lambda g, y, x: [scaled(g, y)])
_unary(np.exp2, 10, lambda g, y, x: [scaled(g, y * LN2)])
_unary(np.expm1, 12, lambda g, y, x: [scaled(g, y + 1)])
_unary(np.log, 10, lambda g, y, x: [over(g, x)])
_unary(np.log2, 10, lambda g, y, x: [over(g / LN2, x)])
_unary(np.log10, 10, lambda g, y, x: [over(g / LN10, x)])
_unary(np.log1p, 12, lambda g, y, x: [over(g, x + 1)])


def _finite_difference(a: Any, b: Any) -> Any:
    """a - b, 0 where they are equal (infinities too)."""
    return np.where(a == b, 0, a - b)


def _logaddexp_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    share = np.exp(_finite_difference(a, y)), np.exp(_finite_difference(b, y))
    return [scaled(g, share[0]), scaled(g, share[1])]


def _logaddexp2_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    share = np.exp2(_finite_difference(a, y)), np.exp2(_finite_difference(b, y))
    return [scaled(g, share[0]), scaled(g, share[1])]


elementwise(np.logaddexp, "nj_logaddexp({0}, {1})", cost=24, vjp=_logaddexp_vjp)
elementwise(np.logaddexp2, "nj_logaddexp2({0}, {1})", cost=24, vjp=_logaddexp2_vjp)

# ---------------------------------------------------------------- trigonometry

# a sine and a cosine of one value share the reduction of its turns
_unary(np.sin, 12, lambda g, y, x: [scaled(g, np.cos(x))], has_near=True)
_unary(np.cos, 12, lambda g, y, x: [scaled(-g, np.sin(x))], has_near=True)
_unary(np.tan, 16, lambda g, y, x: [scaled(g, 1 + y * y)])
_unary(np.sinh, 14, lambda g, y, x: [scaled(g, np.cosh(x))])
_unary(np.cosh, 14, lambda g, y, x: [scaled(g, np.sinh(x))])
_unary(np.tanh, 14, lambda g, y, x: [scaled(g, 1 - y * y)])
_unary(np.arcsin, 14, lambda g, y, x: [over(g, np.sqrt(1 - x * x))])
_unary(np.arccos, 14, lambda g, y, x: [-over(g, np.sqrt(1 - x * x))])
_unary(np.arctan, 14, lambda g, y, x: [over(g, 1 + x * x)])
_unary(np.arcsinh, 18, lambda g, y, x: [over(g, np.sqrt(x * x + 1))])
_unary(np.arccosh, 18, lambda g, y, x: [over(g, np.sqrt(x - 1) * np.sqrt(x + 1))])
_unary(np.arctanh, 18, lambda g, y, x: [over(g, 1 - x * x)])


def _arctan2_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    """0 at the origin."""
    length = a * a + b * b
    safe = np.where(length == 0, 1, length)
    return [scaled(g, b / safe), scaled(-g, a / safe)]


elementwise(np.arctan2, "nj_arctan2({0}, {1})", cost=18, vjp=_arctan2_vjp)

_unary(np.deg2rad, 1, lambda g, y, x: [g * (math.pi / 180)])
_unary(np.rad2deg, 1, lambda g, y, x: [g * (180 / math.pi)])
_unary(np.radians, 1, lambda g, y, x: [g * (math.pi / 180)])
_unary(np.degrees, 1, lambda g, y, x: [g * (180 / math.pi)])


def _heaviside_vjp(g: Any, y: Any, x: Any, at_zero: Any) -> list[Any]:
    return [None, np.where(x == 0, g, 0)]


elementwise(np.heaviside, "nj_heaviside({0}, {1})", cost=2, vjp=_heaviside_vjp)


def _angle_vjp(g: Any, y: Any, z: Any) -> list[Any]:
    """dL/dx + i dL/dy = g (-y + ix) / |z|^2, 0 at the origin."""
    size = np.real(z) * np.real(z) + np.imag(z) * np.imag(z)
    return [gate(g, g * 1j * z / np.where(size == 0, 1, size))]


elementwise(np.angle, "", name="angle", complex_c="nj_angle({0})", cost=18, vjp=_angle_vjp)
elementwise(np.real, "{0}", name="real", complex_c="{0r}", vjp=lambda g, y, z: [g.astype(z.dtype)])
elementwise(
    np.imag, "", name="imag", complex_c="{0i}", vjp=lambda g, y, z: [g.astype(z.dtype) * 1j]
)


def _from_parts(real: Any, imag: Any) -> Any:
    made = np.empty(np.shape(real), np.complex128)
    made.real, made.imag = real, imag
    return made[()]


elementwise(
    _from_parts,
    name="from_parts",
    complex_c=("{0}", "{1}"),
    vjp=lambda g, y, real, imag: [np.real(g), np.imag(g)],
)
