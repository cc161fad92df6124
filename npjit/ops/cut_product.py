"""Products of matrices whose sums, or whose results, end at a diagonal, as a row.

In: a matrix `a` of rows, a matrix `b` of columns, and for sums and results which indices a row
counts. Out: the products that are wanted; what stands elsewhere nobody reads:

    CUT_PRODUCT (BELOW, 0), (ALL, 0):    out[i, j] = sum over k < i of a[i, k] * b[k, j]
    CUT_PRODUCT (ALL, 0), (BELOW, 1):    out[i, j] = sum over k of a[i, k] * b[k, j], for j < i + 1
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.dtypes import DType, c_name
from npjit.core.graph import TensorType
from npjit.ops.extern import dense, extern

# a row's indices: all; those less than row + shift; those from row + shift on
ALL, BELOW, FROM = "all", "below", "from"
# one of these words, and the shift
Part = tuple[str, int]


def _slice(part: Part, row: int) -> slice:
    kind, shift = part
    end = max(row + shift, 0)
    return {ALL: slice(None), BELOW: slice(end), FROM: slice(end, None)}[kind]


def _meaning(node: Any, a: Any, b: Any) -> Any:
    sums, results = node.params
    out = np.zeros(node.shape, node.dtype)
    for i in range(len(out)):
        terms, wanted = _slice(sums, i), _slice(results, i)
        out[i, wanted] = a[i, terms] @ b[terms, wanted]
    return out


def _types(params: tuple[Part, Part], a: TensorType, b: TensorType) -> list[TensorType]:
    return [dense((a.shape[0], b.shape[1]), a.dtype)]


def _text(params: tuple[Part, Part], arguments: list[DType], result: DType) -> str:
    sums, results = params
    parts = f"NJ_{sums[0].upper()}, NJ_{results[0].upper()}"
    return f"nj_cut_product<{c_name(result)}, {parts}>(api, arrays, {sums[1]}, {results[1]})"


CUT_PRODUCT = extern("cut_product", _meaning, _types, c=_text)
