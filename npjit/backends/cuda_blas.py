"""Matrix products by cuBLAS, which the runtime calls itself (runtime/cublas.h).

In: the regions of c = a @ b, addresses left out. Out: the call, and which operand is the runtime's
left one, right one and result; None where cuBLAS takes no such strides or dtypes:

    blas_product(a, b, c)       ->  (Product(-1, 0, 0, 68, ...), (1, 0, 2))
"""

from __future__ import annotations

import ctypes
import functools
from math import prod
from typing import Any, NamedTuple

import numpy as np

from npjit import _runtime
from npjit.backends.cuda_device import Region

# what cuBLAS calls an element's type and the type it computes in, and its place among s, d, c, z
_TYPES = {
    "float16": (2, 68, -1),
    "bfloat16": (14, 68, -1),
    "float32": (0, 68, 0),
    "float64": (1, 70, 1),
    "complex64": (4, 68, 2),
    "complex128": (5, 70, 3),
}
# products of one batch axis each that one of more axes is done as, at most
_PARTS = 64
# bytes for products to work in, as cuBLAS has for GPUs that split sums among blocks
_WORKSPACE = 32 << 20


class Product(NamedTuple):
    """A call of cuBLAS by the numbers of runtime/cublas.h, in their order there."""

    letter: int
    type: int
    made: int
    compute: int
    turn_left: int
    turn_right: int
    m: int
    n: int
    k: int
    lead_left: int
    lead_right: int
    lead_result: int
    step_left: int
    step_right: int
    step_result: int
    batch: int = 1


def in_batches(a: Region, b: Region, c: Region) -> list[tuple[Region, Region, Region]]:
    """The product as some of one batch axis at most: axes that follow each other in all three are
    one, and of others the longest stays. None when they are too many."""
    if 0 in (*a.shape, *c.shape):
        return []
    axes: list[tuple[int, tuple[int, ...]]] = []
    for n, *steps in zip(c.shape[:-2], *(r.strides[:-2] for r in (a, b, c)), strict=True):
        if axes and all(far == n * near for far, near in zip(axes[-1][1], steps, strict=True)):
            axes[-1] = (axes[-1][0] * n, tuple(steps))
        elif n != 1:
            axes.append((n, tuple(steps)))
    batch = [axes.pop(axes.index(max(axes)))] if axes else []
    if prod(n for n, _ in axes) > _PARTS:
        return []

    def part(number: int, r: Region, place: tuple[int, ...]) -> Region:
        away = sum(i * steps[number] for i, (_, steps) in zip(place, axes, strict=True))
        shape = (*(n for n, _ in batch), *r.shape[-2:])
        strides = (*(steps[number] for _, steps in batch), *r.strides[-2:])
        return Region(r.address + away * r.dtype.itemsize, r.dtype, shape, strides)

    places = np.ndindex(*(n for n, _ in axes))
    return [(part(0, a, p), part(1, b, p), part(2, c, p)) for p in places]


def blas_product(a: Region, b: Region, c: Region) -> tuple[Product, tuple[int, int, int]] | None:
    """See the module's docstring."""
    types, made = _TYPES.get(a.dtype.name), _TYPES.get(c.dtype.name)
    if types is None or made is None or 0 in (*a.shape, *b.shape):
        return None
    of_a, of_b, of_c = operand(a), operand(b), operand(c)
    if of_a is None or of_b is None or of_c is None or of_c[0] != 0:
        return None
    kind, compute, letter = types
    (to_a, lead_a), (to_b, lead_b), (_, lead_c) = of_a, of_b, of_c
    (m, k), n = a.shape[-2:], c.shape[-1]
    if letter >= 0 and c.shape[1:] == (1,):
        # the matrix that BLAS sees column by column is ours turned around, or ours
        seen = (m, k, 0) if to_a else (k, m, 0)
        leads, steps = (lead_a, 0, 0), (0, b.strides[0], c.strides[0])
        vector = Product(letter, kind, made[0], compute, 1 - to_a, 0, *seen, *leads, *steps)
        return vector, (0, 1, 2)
    # matrices are columns behind each other, so the product is done as c.T = b.T @ a.T
    leads, steps = (lead_b, lead_a, lead_c), (0, 0, 0)
    batch = 1
    if len(c.shape) == 3:
        steps, batch = (b.strides[0], a.strides[0], c.strides[0]), c.shape[0]
    found = Product(-1, kind, made[0], compute, to_b, to_a, n, m, k, *leads, *steps, batch)
    return found, (1, 0, 2)


def operand(region: Region) -> tuple[int, int] | None:
    """BLAS's transposition (0 or 1) and leading dimension of our matrix read column by column;
    None: it has none."""
    (rows, columns), (row, column) = region.shape[-2:], region.strides[-2:]
    if (column == 1 or columns == 1) and (row >= columns or rows == 1):
        return 0, max(row, columns, 1)
    if (row == 1 or rows == 1) and (column >= rows or columns == 1):
        return 1, max(column, rows, 1)
    return None


@functools.cache
def know_cublas() -> bool:
    """Have the runtime know the cuBLAS that CuPy has loaded; whether there is one."""
    kept: list[Any] = []

    def workspace() -> tuple[int, int]:
        from npjit.backends.cuda import current_device

        held, address = current_device().allocate(_WORKSPACE)
        kept.append(held)
        return address, _WORKSPACE

    try:
        from cupy_backends.cuda.libs import cublas

        # a library's own handle finds the functions of those it is linked with
        found = ctypes.CDLL(cublas.__file__)
        _runtime.set_cublas(functools.partial(_address, found), workspace)
    except (ImportError, OSError, AttributeError):
        return False
    return True


def _address(library: ctypes.CDLL, name: str) -> int | None:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
