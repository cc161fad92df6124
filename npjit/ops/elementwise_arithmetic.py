"""Elementwise rows: arithmetic, rounding, extremes and powers.

In: NumPy ufuncs. Out: their rows, with C text, cost and gradient. One line usually says it all:

    elementwise(np.negative, "-{0}", vjp=lambda g, y, x: [-g])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npjit.core import interval
from npjit.ops.gating import gate, over, scaled
from npjit.ops.kinds import elementwise


def by_kind(others: str, **special: str) -> Callable[..., str]:
    """C text by the kind of the first argument's dtype: by_kind("{0} + {1}", b="{0} | {1}")."""

    def choose(params: Any, args: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> str:
        return special.get(args[0].kind, others)

    return choose


def whole(text: str) -> Callable[..., str]:
    """C text of a rounding, which leaves bools and ints as they are."""
    return by_kind(text, b="{0}", i="{0}", u="{0}")


# ---------------------------------------------------------------- + - * /

elementwise(
    np.add,
    by_kind("{0} + {1}", b="{0} | {1}"),
    complex_c=("{0r} + {1r}", "{0i} + {1i}"),
    vjp=lambda g, y, a, b: [g, g],
    neutral=((0, -0.0), (1, -0.0)),
    addends=(1, 1),
    range=interval.plus,
)
elementwise(
    np.subtract,
    "{0} - {1}",
    complex_c=("{0r} - {1r}", "{0i} - {1i}"),
    vjp=lambda g, y, a, b: [g, -g],
    neutral=((1, 0),),
    addends=(1, -1),
    range=interval.minus,
)
elementwise(
    np.multiply,
    by_kind("{0} * {1}", b="{0} & {1}"),
    complex_c=("{0r} * {1r} - {0i} * {1i}", "{0r} * {1i} + {0i} * {1r}"),
    vjp=lambda g, y, a, b: [scaled(g, b), scaled(g, a)],
    neutral=((0, 1), (1, 1)),
    powers=(1, 1),
    range=interval.times,
)


def _divide_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    first = over(g, b)
    return [first, gate(g, -first * np.conj(y))]


elementwise(
    np.true_divide,
    "{0} / {1}",
    complex_c="{0} / {1}",
    cost=4,
    vjp=_divide_vjp,
    neutral=((1, 1),),
    powers=(1, -1),
)
elementwise(
    np.floor_divide, "nj_floor_divide({0}, {1})", cost=8, flat=True, range=interval.quotient
)


def _remainder_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    return [g, scaled(-g, np.floor(a / b))]


def _fmod_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    return [g, scaled(-g, np.trunc(a / b))]


elementwise(
    np.remainder, "nj_remainder({0}, {1})", cost=8, vjp=_remainder_vjp, range=interval.modulo
)
elementwise(np.fmod, "nj_fmod({0}, {1})", cost=8, vjp=_fmod_vjp)

# ---------------------------------------------------------------- one argument

elementwise(
    np.negative,
    "-{0}",
    complex_c=("-{0r}", "-{0i}"),
    vjp=lambda g, y, x: [-g],
    involution=True,
)
elementwise(np.positive, "{0}", complex_c=("{0r}", "{0i}"), vjp=lambda g, y, x: [g])
elementwise(
    np.reciprocal,
    "nj_reciprocal({0})",
    complex_c="nj_reciprocal({0})",
    cost=4,
    vjp=lambda g, y, x: [gate(g, -over(g, x) * np.conj(y))],
    powers=(-1,),
)
elementwise(
    np.square,
    "{0} * {0}",
    complex_c=("{0r} * {0r} - {0i} * {0i}", "{0r} * {0i} + {0i} * {0r}"),
    vjp=lambda g, y, x: [scaled(g, 2 * x)],
    powers=(2,),
)


def _absolute_vjp(g: Any, y: Any, x: Any) -> list[Any]:
    if x.dtype.kind != "c":
        return [scaled(g, np.sign(x))]
    return [gate(g, g * x / np.where(y == 0, 1, y))]


elementwise(
    np.absolute,
    "nj_absolute({0})",
    complex_c="nj_absolute({0})",
    square="{0r} * {0r} + {0i} * {0i}",
    vjp=_absolute_vjp,
    range=interval.magnitude,
)
elementwise(np.fabs, "nj_fabs({0})", vjp=_absolute_vjp)
elementwise(np.sign, "nj_sign({0})", complex_c="nj_sign({0})", flat=True)
elementwise(
    np.conjugate,
    "{0}",
    complex_c=("{0r}", "-{0i}"),
    vjp=lambda g, y, x: [np.conj(g)],
    involution=True,
)

# ---------------------------------------------------------------- rounding

elementwise(np.floor, whole("nj_floor({0})"), flat=True)
elementwise(np.ceil, whole("nj_ceil({0})"), flat=True)
elementwise(np.trunc, whole("nj_trunc({0})"), flat=True)
elementwise(np.rint, "nj_rint({0})", complex_c="nj_rint({0})", flat=True)

# ---------------------------------------------------------------- extremes


def _larger_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    """Ties split evenly."""
    tie = np.where(a == b, 0.5 * g, 0)
    return [np.where(a > b, g, tie), np.where(b > a, g, tie)]


def _smaller_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    tie = np.where(a == b, 0.5 * g, 0)
    return [np.where(a < b, g, tie), np.where(b < a, g, tie)]


def _among_numbers(rule: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """The rule for fmax and fmin, where a number wins over NaN."""

    def vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
        first, second = rule(g, y, a, b)
        return [np.where(np.isnan(b), g, first), np.where(np.isnan(a), g, second)]

    return vjp


def _binary_call(
    ufunc: np.ufunc, vjp: Callable[..., Any], cost: int, range: Callable[..., Any]
) -> None:
    call = f"nj_{ufunc.__name__}({{0}}, {{1}})"
    elementwise(ufunc, call, complex_c=call, vjp=vjp, cost=cost, range=range)


_binary_call(np.maximum, _larger_vjp, 1, interval.greater)
_binary_call(np.minimum, _smaller_vjp, 1, interval.lesser)
_binary_call(np.fmax, _among_numbers(_larger_vjp), 2, interval.greater)
_binary_call(np.fmin, _among_numbers(_smaller_vjp), 2, interval.lesser)

# ---------------------------------------------------------------- powers


def _power_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    """d/da = b a^(b-1), 0 where b is 0; d/db = log(a) a^b, 0 where a is 0 and b > 0."""
    with_base = gate(b, g * np.conj(b * np.power(a, b - 1)))
    log_base = np.log(np.where(a == 0, 1, a))
    return [gate(g, with_base), scaled(g, np.where(y == 0, 0, y * log_base))]


def _power_text(params: Any, args: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> str:
    """Halves and integers have functions of their own."""
    is_wide = result.kind == "f" and result.itemsize > 2
    return "nj_raised({0}, {1})" if is_wide else "nj_power({0}, {1})"


elementwise(np.power, _power_text, complex_c="nj_power({0}, {1})", cost=20, vjp=_power_vjp)
elementwise(
    np.float_power,
    "nj_power({0}, {1})",
    complex_c="nj_power({0}, {1})",
    cost=20,
    vjp=_power_vjp,
)
elementwise(
    np.sqrt,
    "nj_sqrt({0})",
    complex_c="nj_sqrt({0})",
    cost=6,
    vjp=lambda g, y, x: [over(0.5 * g, y)],
    powers=(0.5,),
    range=interval.root,
)
elementwise(
    np.cbrt,
    "nj_cbrt({0})",
    cost=16,
    vjp=lambda g, y, x: [over(g, 3 * y * y)],
)


def _hypot_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    length = np.where(y == 0, 1, y)
    return [scaled(g, a / length), scaled(g, b / length)]


elementwise(np.hypot, "nj_hypot({0}, {1})", cost=10, vjp=_hypot_vjp)

# ---------------------------------------------------------------- whole numbers

elementwise(np.gcd, "nj_gcd({0}, {1})", cost=40, flat=True)
elementwise(np.lcm, "nj_lcm({0}, {1})", cost=50, flat=True)

# ---------------------------------------------------------------- parts of a floating number


def _copysign_vjp(g: Any, y: Any, a: Any, b: Any) -> list[Any]:
    return [np.where(np.signbit(a) == np.signbit(b), g, -g), None]


# of two values that are equal, 0.0 and -0.0, the second; for float16 from NumPy 2.5 on
_ZEROS = np.zeros(16, np.float16)
_HALVES_TOO = bool(np.signbit(np.nextafter(_ZEROS, -_ZEROS)).all())


def _nextafter(params: Any, args: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> str:
    """C text, by NumPy's version for float16."""
    second = _HALVES_TOO and result.itemsize == 2
    first = "nj_select({0} == {1}, {1}, {0})" if second else "{0}"
    return f"nj_nextafter({first}, {{1}})"


elementwise(np.copysign, "nj_copysign({0}, {1})", vjp=_copysign_vjp)
elementwise(np.nextafter, _nextafter, cost=4, flat=True)
elementwise(np.spacing, "nj_spacing({0})", cost=4, flat=True)
elementwise(
    np.ldexp,
    "nj_ldexp({0}, {1})",
    cost=4,
    vjp=lambda g, y, x, n: [gate(g, np.ldexp(g, n)), None],
)
elementwise(
    lambda x: np.modf(x)[0],
    "nj_modf_fraction({0})",
    name="modf_fraction",
    cost=2,
    vjp=lambda g, y, x: [g],
)
elementwise(lambda x: np.modf(x)[1], "nj_modf_whole({0})", name="modf_whole", cost=2, flat=True)


def _mantissa_vjp(g: Any, y: Any, x: Any) -> list[Any]:
    return [scaled(g, np.where(x == 0, 0, y / np.where(x == 0, 1, x)))]


elementwise(
    lambda x: np.frexp(x)[0],
    "nj_frexp_mantissa({0})",
    name="frexp_mantissa",
    cost=4,
    vjp=_mantissa_vjp,
)
elementwise(
    lambda x: np.frexp(x)[1],
    "nj_frexp_exponent({0})",
    name="frexp_exponent",
    cost=4,
    flat=True,
)
