"""Rows that store through index arrays: `scatter_add(base, value, *indices)` is the adjoint of a
gather, `scatter_last` is `base[indices] = value`.

The value has the gather's shape; its elements join the base one after the other, in C order. The
indices are int64 and in range; negative ones count from the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.core.dtypes import c_name
from npjit.core.op import Gather, Kind, Op, Reduction
from npjit.ops.kinds import row

DType = np.dtype[Any]


def _scattered(store: Callable[..., None]) -> Callable[..., Any]:
    """The reference meaning: `store(target, places, value)` on a copy of the base."""

    def evaluate(node: Any, base: Any, value: Any, *indices: Any) -> Any:
        g: Gather = node.params
        result = base.copy()
        kept = [d for d in range(base.ndim) if d not in g.dims]
        rank = np.ndim(indices[0])
        placed = range(g.place, g.place + rank)
        rest = [axis for axis in range(np.ndim(value)) if axis not in placed]
        target = np.transpose(result, [*g.dims, *kept])
        # flat index arrays are taken in order
        places = tuple(np.ravel(i) for i in indices)
        moved = np.transpose(value, [*placed, *rest])
        store(target, places, moved.reshape(places[0].size, *moved.shape[rank:]))
        return result

    return evaluate


def _at(ufunc: np.ufunc) -> Callable[..., None]:
    def store(target: Any, places: Any, value: Any) -> None:
        ufunc.at(target, places, value)

    return store


def _last(target: Any, places: Any, value: Any) -> None:
    if type(target) is not np.ndarray:
        raise TypeError("only NumPy says which of several values for one place stays")
    target[places] = value


def _text(join: str) -> Callable[..., str]:
    def text(params: Gather, arguments: list[DType], result: DType) -> str:
        numbers = ", ".join(map(str, (params.place, *params.dims)))
        return f"nj_scatter<{c_name(result)}, nj_join_{join}, {numbers}>(arrays)"

    return text


def _scatter(name: str, join: str, store: Callable[..., None], style: str) -> Op:
    return row(
        Op(
            f"scatter_{name}",
            Kind.SCATTER,
            _scattered(store),
            c=_text(join),
            reduction=Reduction(style),
        )
    )


SCATTER_LAST = _scatter("last", "last", _last, "last")
SCATTER_ADD = _scatter("add", "add", _at(np.add), "sum")
SCATTER_MULTIPLY = _scatter("multiply", "multiply", _at(np.multiply), "product")
SCATTER_MAXIMUM = _scatter("maximum", "maximum", _at(np.maximum), "max")
SCATTER_MINIMUM = _scatter("minimum", "minimum", _at(np.minimum), "min")


def _at_places(ufunc: np.ufunc) -> Callable[..., None]:
    def store(target: Any, places: Any, value: Any) -> None:
        ufunc.at(target, places)

    return store


# NumPy itself computes these
_UNARY = (np.negative, np.absolute, np.invert, np.logical_not, np.square, np.sqrt, np.reciprocal)
REPEATED_UNARY = {
    ufunc: row(Op(f"scatter_{ufunc.__name__}", Kind.SCATTER, _scattered(_at_places(ufunc))))
    for ufunc in _UNARY
}
REPEATED = {
    ufunc: row(Op(f"scatter_{ufunc.__name__}", Kind.SCATTER, _scattered(_at(ufunc))))
    for ufunc in (
        np.divide,
        np.floor_divide,
        np.remainder,
        np.power,
        np.bitwise_and,
        np.bitwise_or,
        np.bitwise_xor,
        np.left_shift,
        np.right_shift,
        np.logical_and,
        np.logical_or,
        np.fmax,
        np.fmin,
        np.hypot,
    )
}
