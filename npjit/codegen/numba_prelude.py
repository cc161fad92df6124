"""What kernels printed for Numba may call: prelude functions that it computes as NumPy does.

In: names nj_... that printed kernels use. Out: `namespace(names)`, the globals to run them in. What
has no exact twin in Numba is refused by `check`, and the plan then runs on another backend:

    namespace({"nj_sin", "nj_select"})["nj_sin"](0.5)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

TYPES = {
    "b1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}

_FLOAT = """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1
    log log2 log10 log1p cbrt floor ceil trunc rint fabs deg2rad rad2deg arctan2 hypot copysign
    nextafter logaddexp fmod signbit power"""
# functions and the kinds of dtypes for which Numba gives what NumPy gives
_UFUNCS = dict.fromkeys(_FLOAT.split(), "f")
_UFUNCS |= dict.fromkeys(["maximum", "minimum", "fmax", "fmin"], "biuf")
_UFUNCS |= dict.fromkeys(["right_shift", "gcd"], "iu")
_UFUNCS |= {"absolute": "biufc", "sqrt": "fc", "isnan": "fc", "isinf": "fc", "isfinite": "fc"}


class NoNumbaText(Exception):
    """Something that the Numba printer has no exact text for."""


def check(name: str, kinds: str) -> None:
    """Raise NoNumbaText unless a function takes arguments of these kinds of dtypes."""
    allowed = _OWN[name][1] if name in _OWN else _UFUNCS.get(name.removeprefix("nj_"), "")
    if not set(kinds) <= set(allowed):
        raise NoNumbaText(f"Numba has no {name} for dtypes of the kinds {kinds}")


def namespace(names: Iterable[str]) -> dict[str, Any]:
    """The globals of printed kernels that use these names."""
    import numba

    found: dict[str, Any] = {"np": np, "numba": numba, "flat": flat, "placed": placed, **TYPES}
    for name in names:
        if name in _OWN:
            found[name] = numba.njit(error_model="numpy", inline="always")(_OWN[name][0])
        else:
            found[name] = getattr(np, name.removeprefix("nj_"))
    return found


def flat(array: Any) -> tuple[Any, int]:
    """All memory of an array as one axis, lowest address first, and where its first element is."""
    if not array.size:
        return np.empty(1, array.dtype), 0
    lengths = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    before = -sum(s for s in lengths if s < 0) // array.itemsize
    count = sum(abs(s) for s in lengths) // array.itemsize + 1
    lowest = tuple(slice(n - 1, n) if s < 0 else slice(0, 1) for n, s in _axes(array))
    return as_strided(array[lowest], (count,), (array.itemsize,)), before


def placed(memory: Any, start: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view of flat memory: first element, extents, strides in elements."""
    if 0 in shape:
        return np.empty(shape, memory.dtype)
    return as_strided(memory[start:], shape, tuple(s * memory.itemsize for s in strides))


def _axes(array: Any) -> Iterable[tuple[int, int]]:
    return zip(array.shape, array.strides, strict=True)


def _select(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


def _float_to_u64(x: Any) -> Any:
    if x >= 9223372036854775808.0:
        return np.uint64(np.int64(x - 9223372036854775808.0)) ^ np.uint64(1 << 63)
    return np.uint64(np.int64(x))


def _floor_divide(a: Any, b: Any) -> Any:
    """Of signed integers: zero gives zero, the smallest one over -1 stays."""
    if b == 0:
        return a * 0
    return -a if b == -1 else a // b


def _remainder(a: Any, b: Any) -> Any:
    return a * 0 if b in (0, -1) else a % b


def _sign(x: Any) -> Any:
    return x if x != x else (x > 0) - (x < 0)


def _reciprocal(x: Any) -> Any:
    return 1 / x


def _radians(x: Any) -> Any:
    return np.deg2rad(x)


def _degrees(x: Any) -> Any:
    return np.rad2deg(x)


def _size_floordiv(a: int, b: int) -> int:
    return a // b


def _size_mod(a: int, b: int) -> int:
    return a % b


def _size_min(a: int, b: int) -> int:
    return min(a, b)


def _size_max(a: int, b: int) -> int:
    return max(a, b)


def _size_select(i: int, a: int, b: int) -> int:
    return a if i >= 0 else b


def _size_pow2(n: int) -> int:
    return 1 << min(max(n, 0), 62)


def _push(level: Any, count: int, block: Any) -> int:
    """Merge a block's sum like the digit of a binary counter; the new count."""
    k = 0
    c = count
    while c & 1:
        block = level[k] + block
        k += 1
        c >>= 1
    level[k] = block
    return count + 1


def _total(level: Any, count: int) -> Any:
    """The sum of all blocks; `level` holds a zero behind its digits."""
    found = level[63]
    k = 0
    c = count
    while c:
        if c & 1:
            found = level[k] + found
        k += 1
        c >>= 1
    return found


# helpers, and the kinds of dtypes that rows may call them with
_OWN: dict[str, tuple[Callable[..., Any], str]] = {
    "nj_select": (_select, "biufc"),
    "nj_floor_divide": (_floor_divide, "i"),
    "nj_remainder": (_remainder, "i"),
    "nj_sign": (_sign, "iuf"),
    "nj_reciprocal": (_reciprocal, "f"),
    "nj_radians": (_radians, "f"),
    "nj_degrees": (_degrees, "f"),
    "nj_float_to_u64": (_float_to_u64, "f"),
    "nj_push": (_push, ""),
    "nj_total": (_total, ""),
    "nj_size_floordiv": (_size_floordiv, ""),
    "nj_size_mod": (_size_mod, ""),
    "nj_size_min": (_size_min, ""),
    "nj_size_max": (_size_max, ""),
    "nj_size_select": (_size_select, ""),
    "nj_size_pow2": (_size_pow2, ""),
}
