"""Matrix products by cuBLAS.

In: the regions of c = a @ b, addresses left out. Out: a function of the three addresses; None where
cuBLAS takes no such strides or dtypes:

    multiply = blas_multiplier(a, b, c)
    multiply(0x7f00, 0x7f80, 0x8000)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.backends.cuda_device import Multiplier, Region

# BLAS's letters for the dtypes it multiplies
_LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}


def blas_multiplier(a: Region, b: Region, c: Region) -> Multiplier | None:
    """See the module's docstring."""
    letter = _LETTERS.get(c.dtype.str[1:])
    if letter is None or 0 in (*a.shape, *b.shape) or len(c.shape) > 3:
        return None
    of_a, of_b, of_c = operand(a), operand(b), operand(c)
    if of_a is None or of_b is None or of_c is None or of_c[0] != 0:
        return None
    if len(c.shape) == 2 and c.shape[1] == 1:
        return _vector(letter, a, b, c, of_a)
    return _matrices(letter, a, b, c, (of_a, of_b, of_c))


def _matrices(
    letter: str, a: Region, b: Region, c: Region, operands: tuple[tuple[int, int], ...]
) -> Multiplier:
    """BLAS's matrices are columns behind each other, so the product is done as c.T = b.T @ a.T."""
    from cupy.cuda.device import get_cublas_handle
    from cupy_backends.cuda.libs import cublas

    (to_a, lead_a), (to_b, lead_b), (_, lead_c) = operands
    m, n = c.shape[-2:]
    k = a.shape[-1]
    constants = np.array([1, 0], c.dtype)
    one, zero = constants.ctypes.data, constants[1:].ctypes.data
    gemm: Any = getattr(cublas, f"{letter}gemm")
    batched: Any = getattr(cublas, f"{letter}gemmStridedBatched")

    def multiply(x: int, y: int, z: int, kept: Any = constants) -> None:
        head = (get_cublas_handle(), to_b, to_a, n, m, k, one)
        gemm(*head, y, lead_b, x, lead_a, zero, z, lead_c)

    def multiply_batch(x: int, y: int, z: int, kept: Any = constants) -> None:
        head = (get_cublas_handle(), to_b, to_a, n, m, k, one)
        given = (y, lead_b, b.strides[0], x, lead_a, a.strides[0])
        batched(*head, *given, zero, z, lead_c, c.strides[0], c.shape[0])

    return multiply if len(c.shape) == 2 else multiply_batch


def _vector(letter: str, a: Region, b: Region, c: Region, of_a: tuple[int, int]) -> Multiplier:
    """c = a @ b where b and c are one column."""
    from cupy.cuda.device import get_cublas_handle
    from cupy_backends.cuda.libs import cublas

    turned, lead = of_a
    m, k = a.shape
    # the matrix that BLAS sees column by column is ours turned around, or ours
    rows, columns = (m, k) if turned else (k, m)
    constants = np.array([1, 0], c.dtype)
    one, zero = constants.ctypes.data, constants[1:].ctypes.data
    gemv: Any = getattr(cublas, f"{letter}gemv")
    step_b, step_c = b.strides[0], c.strides[0]

    def multiply(x: int, y: int, z: int, kept: Any = constants) -> None:
        head = (get_cublas_handle(), 1 - turned, rows, columns, one)
        gemv(*head, x, lead, y, step_b, zero, z, step_c)

    return multiply


def operand(region: Region) -> tuple[int, int] | None:
    """BLAS's transposition (0 or 1) and leading dimension of our matrix read column by column;
    None: it has none."""
    (rows, columns), (row, column) = region.shape[-2:], region.strides[-2:]
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return 0, max(row, columns, 1)
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return 1, max(column, rows, 1)
    return None
