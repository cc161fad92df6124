"""Element types: NumPy's own, and bfloat16 of ml_dtypes, which only its arrays bring along.

In: a NumPy dtype. Out: what the rest of the package asks of it. bfloat16 is of NumPy's kind "V", as
it is not NumPy's; to compiled code it is a float of 16 bits:

    kind_of(np.dtype(ml_dtypes.bfloat16))      "f"
    c_name(np.dtype(ml_dtypes.bfloat16))       "bf16"
    text_of(np.dtype(ml_dtypes.bfloat16))      "bfloat16"
"""

from __future__ import annotations

from typing import Any

import numpy as np

DType = np.dtype[Any]

_HALF = np.dtype(np.float16)
_SINGLE = np.dtype(np.float32)


def is_brain(dtype: DType) -> bool:
    """Whether it is bfloat16."""
    return dtype.kind == "V" and dtype.name == "bfloat16"


def kind_of(dtype: DType) -> str:
    """The letter of its kind: b, i, u, f or c."""
    return "f" if is_brain(dtype) else dtype.kind


def c_name(dtype: DType) -> str:
    """The name in C texts: b1, i8 ... u64, f16, bf16, f32, f64, c64, c128."""
    if is_brain(dtype):
        return "bf16"
    return "b1" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize * 8}"


def text_of(dtype: DType) -> str:
    """The text that np.dtype makes this dtype of again."""
    return dtype.name if is_brain(dtype) else dtype.str


def accumulator_of(dtype: DType) -> DType:
    """The type that sums and products of this one are accumulated in."""
    return _SINGLE if dtype == _HALF or is_brain(dtype) else dtype
