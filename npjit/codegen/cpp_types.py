"""C++ types, constants and size expressions.

In: NumPy dtypes, `Literal`s, sizes. Out: their C++ text. All of it is exact: what is printed reads
back as the same bits.

    constant(Literal.of(0.1, np.dtype("f8")))   ->  0x1.999999999999ap-4
    size(smin(var("s0"), 4) + 1)                ->  nj_size_min(4, s0) + 1
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npjit.core.dtypes import c_name
from npjit.core.op import Literal
from npjit.core.size import Size, text

DType = np.dtype[Any]


def ctype(dtype: DType) -> str:
    """The prelude's name of a dtype: b1, i8 ... u64, f16, bf16, f32, f64, c64, c128."""
    return c_name(dtype)


def plane(dtype: DType) -> str:
    """The type of one stored number: complex values are two of them, one behind the other."""
    return f"f{dtype.itemsize * 4}" if dtype.kind == "c" else ctype(dtype)


def stored(dtype: DType) -> str:
    """The type of one number in memory; a bool's byte may hold more than 0 and 1."""
    return "u8" if dtype.kind == "b" else plane(dtype)


def is_complex(dtype: DType) -> bool:
    """Whether a value of this dtype is kept as two planes."""
    return dtype.kind == "c"


def size(value: Size) -> str:
    """A size as an i64 expression."""
    return text(value, prefix="nj_size_")


def factor(value: Size) -> str:
    """A size that can stand beside `*`."""
    shown = size(value)
    return f"({shown})" if " " in shown or shown.startswith("-") else shown


def constant(literal: Literal) -> str:
    """One element of a real dtype, as an expression of exactly that type."""
    value = literal.value
    dtype = np.dtype(literal.dtype)
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return _integer(int(value), dtype)
    return floating(value, dtype)


def planes(literal: Literal) -> tuple[str, str]:
    """The real and imaginary parts of one complex element."""
    value = literal.value
    part = np.dtype(f"f{value.dtype.itemsize // 2}")
    return floating(value.real, part), floating(value.imag, part)


def _integer(value: int, dtype: DType) -> str:
    name = ctype(dtype)
    if name == "i64":
        # the smallest one has no literal of its own
        return "(-9223372036854775807LL - 1)" if value == -(2**63) else _signed(f"{value}LL")
    if name == "u64":
        return f"{value}ULL"
    if name == "i32":
        return "(-2147483647 - 1)" if value == -(2**31) else _signed(str(value))
    return f"{name}({value})"


def floating(value: Any, dtype: DType) -> str:
    """A real number of a floating dtype; np.float64 and the like, or a Python float."""
    value = dtype.type(value)
    if dtype.itemsize == 2:
        return f"nj_cast<{ctype(dtype)}>({floating(np.float32(value), np.dtype('f4'))})"
    suffix = "f" if dtype.itemsize == 4 else ""
    number = float(value)
    if math.isnan(number):
        bits = int(value.view(f"u{dtype.itemsize}"))
        if bits in (0x7FC00000, 0x7FF8000000000000):
            return f'__builtin_nan{suffix}("")'
        wide = "u32" if dtype.itemsize == 4 else "u64"
        return f"__builtin_bit_cast({ctype(dtype)}, {wide}({bits:#x}{'' if suffix else 'ull'}))"
    if math.isinf(number):
        return _signed(f"{'-' if number < 0 else ''}__builtin_inf{suffix}()")
    return _signed(f"{_shortest(number)}{suffix}")


def _shortest(number: float) -> str:
    """Decimal when that is short and exact, else hexadecimal."""
    if abs(number) < 1e15 and number == int(number):
        return f"-{-number:.1f}" if math.copysign(1, number) < 0 else f"{number:.1f}"
    if abs(number) < 1e6 and number * 1024 == int(number * 1024):
        return repr(number)
    mantissa, exponent = number.hex().split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}"


def _signed(shown: str) -> str:
    return f"({shown})" if shown.startswith("-") else shown
