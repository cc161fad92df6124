"""Elementwise rows: comparisons, tests, logic, bits, choice and cast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npjit.core import interval
from npjit.core.dtypes import c_name, kind_of
from npjit.core.op import Kind, Op
from npjit.ops.elementwise_arithmetic import by_kind
from npjit.ops.kinds import elementwise, row

# ---------------------------------------------------------------- comparisons


def _comparison(sign: str) -> Callable[..., str]:
    """int64 against uint64 has a loop of its own, which compares the numbers, not the bits."""

    def choose(params: Any, args: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> str:
        a, b = args
        if a.kind == b.kind:
            return f"{{0}} {sign} {{1}}"
        if a.kind == "i":
            less = f"{{0}} < 0 ? {_negative_first(sign)} : (u64){{0}} {sign} {{1}}"
            return less
        return f"{{1}} < 0 ? {_negative_second(sign)} : {{0}} {sign} (u64){{1}}"

    return choose


def _negative_first(sign: str) -> str:
    return "true" if sign in ("<", "<=", "!=") else "false"


def _negative_second(sign: str) -> str:
    return "true" if sign in (">", ">=", "!=") else "false"


for _ufunc, _sign in {
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
    np.equal: "==",
    np.not_equal: "!=",
}.items():
    elementwise(
        _ufunc, _comparison(_sign), complex_c=f"{{0}} {_sign} {{1}}", flat=True, relation=_sign
    )


def _is_index(i: Any, n: Any) -> Any:
    return (i >= 0) & (i < n)


# of int64s, the second one an extent: one comparison, since a negative index is a huge number
elementwise(_is_index, "(u64){0} < (u64){1}", name="is_index", flat=True, relation="in")

# ---------------------------------------------------------------- tests

for _ufunc, _whole in {np.isnan: "false", np.isinf: "false", np.isfinite: "true"}.items():
    _call = f"nj_{_ufunc.__name__}({{0}})"
    elementwise(
        _ufunc,
        by_kind(_call, b=_whole, i=_whole, u=_whole),
        complex_c=_call,
        flat=True,
        range=interval.always if _whole == "true" else interval.never,
    )
elementwise(np.signbit, "nj_signbit({0})", flat=True)

# ---------------------------------------------------------------- logic and bits

elementwise(
    np.logical_and,
    "nj_cast<b1>({0}) & nj_cast<b1>({1})",
    complex_c="(({0r} != 0) | ({0i} != 0)) & (({1r} != 0) | ({1i} != 0))",
    flat=True,
)
elementwise(
    np.logical_or,
    "nj_cast<b1>({0}) | nj_cast<b1>({1})",
    complex_c="({0r} != 0) | ({0i} != 0) | ({1r} != 0) | ({1i} != 0)",
    flat=True,
)
elementwise(
    np.logical_xor,
    "nj_cast<b1>({0}) != nj_cast<b1>({1})",
    complex_c="(({0r} != 0) | ({0i} != 0)) != (({1r} != 0) | ({1i} != 0))",
    flat=True,
)
elementwise(
    np.logical_not,
    "!nj_cast<b1>({0})",
    complex_c="({0r} == 0) & ({0i} == 0)",
    flat=True,
)
elementwise(np.bitwise_and, "{0} & {1}", flat=True, bits="&", range=interval.common_bits)
elementwise(np.bitwise_or, "{0} | {1}", flat=True, bits="|", range=interval.joined_bits)
elementwise(np.bitwise_xor, "{0} ^ {1}", flat=True, bits="^", range=interval.joined_bits)
elementwise(np.invert, by_kind("~{0}", b="!{0}"), flat=True, involution=True, bits="~")
elementwise(np.left_shift, "nj_left_shift({0}, {1})", cost=2, flat=True)
elementwise(
    np.right_shift,
    "nj_right_shift({0}, {1})",
    cost=2,
    flat=True,
    bits=">>",
    range=interval.without_bits,
)
elementwise(np.bitwise_count, "nj_bitwise_count({0})", cost=4, flat=True)

# ---------------------------------------------------------------- choice and cast


def _select_vjp(g: Any, y: Any, condition: Any, a: Any, b: Any) -> list[Any]:
    return [None, np.where(condition, g, 0), np.where(condition, 0, g)]


elementwise(
    np.where,
    "nj_select({0}, {1}, {2})",
    name="select",
    complex_c=("nj_select({0}, {1r}, {2r})", "nj_select({0}, {1i}, {2i})"),
    vjp=_select_vjp,
    choice=True,
)


def _convert(node: Any, array: Any) -> Any:
    with np.errstate(all="ignore"):
        value = array.real if array.dtype.kind == "c" and kind_of(node.dtype) in "fiu" else array
        return np.asarray(value).astype(node.dtype)


def _cast_text(params: Any, args: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> str:
    return f"nj_cast<{c_name(result)}>({{0}})"


def _cast_vjp(g: Any, y: Any, x: Any) -> list[Any]:
    back = np.real(g) if x.dtype.kind != "c" else g
    return [back.astype(x.dtype)]


row(
    Op(
        "cast",
        Kind.ELEMENTWISE,
        _convert,
        c=_cast_text,
        complex_c=_cast_text,
        vjp=_cast_vjp,
        conversion=True,
    )
)
