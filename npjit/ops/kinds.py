"""Kind constructors: what a class of rows shares, written once; and the registry that they fill.

`elementwise(np.sin, c="nj_sin({0})", vjp=...)` makes the row and registers it for the NumPy
callable. Rows of the structural kinds (input, view, update, ...) are made here too, since every
part of the package builds with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from npjit.core.interval import Interval
from npjit.core.op import Gather, Kind, Op, Reduction
from npjit.core.view import At, View

# NumPy callable -> row or traced function; filled by the modules of this package
ROWS: dict[str, Op] = {}
UFUNCS: dict[np.ufunc, Op] = {}
FUNCTIONS: dict[Any, Callable[..., Any]] = {}
METHODS: dict[str, Callable[..., Any]] = {}
# array attributes: name -> function of the traced array
ATTRIBUTES: dict[str, Callable[..., Any]] = {}
SETTERS: dict[str, Callable[..., Any]] = {}

Vjp = Callable[..., Any]


def row(op: Op) -> Op:
    """Enter an op in the table."""
    assert op.name not in ROWS, f"two rows named {op.name}"
    ROWS[op.name] = op
    return op


def elementwise(
    function: Any,
    c: str | Callable[..., str] = "",
    *,
    name: str = "",
    complex_c: str | tuple[str, str] | Callable[..., Any] = "",
    near: tuple[str, str] | None = None,
    square: str = "",
    vjp: Vjp | None = None,
    flat: bool = False,
    cost: int = 1,
    neutral: tuple[tuple[int, float], ...] = (),
    involution: bool = False,
    conversion: bool = False,
    choice: bool = False,
    relation: str = "",
    powers: tuple[float, ...] = (),
    addends: tuple[int, ...] = (),
    bits: str = "",
    range: Callable[..., Interval] | None = None,
) -> Op:
    """A row that works element by element and means `function` (a NumPy ufunc, or a callable of
    arrays).
    """

    def evaluate(node: Any, *arrays: Any) -> Any:
        return function(*arrays)

    op = row(
        Op(
            name or function.__name__,
            Kind.ELEMENTWISE,
            evaluate,
            c=c,
            complex_c=complex_c,
            near=near,
            square=square,
            cost=cost,
            vjp=vjp,
            flat=flat,
            neutral=neutral,
            involution=involution,
            conversion=conversion,
            choice=choice,
            relation=relation,
            powers=powers,
            addends=addends,
            bits=bits,
            range=range,
        )
    )
    if isinstance(function, np.ufunc):
        UFUNCS[function] = op
    return op


def reduction(
    function: Any,
    style: str,
    *,
    name: str,
    identity: Any = None,
    vjp: Vjp | None = None,
    flat: bool = False,
) -> Op:
    """A row that combines along axes and means `function(array, axis=axes)`."""

    def evaluate(node: Any, array: Any) -> Any:
        if style in ("argmin", "argmax"):
            return _flat_position(function, array, node.params, node.dtype)
        return function(array, axis=node.params, dtype=node.dtype)

    def evaluate_plain(node: Any, array: Any) -> Any:
        return function(array, axis=node.params)

    keeps_dtype = style in ("min", "max", "any", "all")
    return row(
        Op(
            name,
            Kind.REDUCE,
            evaluate_plain if keeps_dtype else evaluate,
            reduction=Reduction(style, identity),
            vjp=vjp,
            flat=flat,
            cost=2,
        )
    )


def _flat_position(function: Any, array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
    kept = [a for a in range(array.ndim) if a not in axes]
    moved = np.transpose(array, [*kept, *axes])
    count = math.prod(array.shape[a] for a in axes)
    flat = moved.reshape(*[array.shape[a] for a in kept], count)
    return function(flat, axis=-1).astype(dtype)


def function(*targets: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a traced function for NumPy functions and methods ("sum" names a method)."""

    def enter(traced: Callable[..., Any]) -> Callable[..., Any]:
        for t in targets:
            if isinstance(t, str):
                METHODS[t] = traced
            else:
                FUNCTIONS[t] = traced
        return traced

    return enter


def attribute(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a traced function as an array attribute."""

    def enter(traced: Callable[..., Any]) -> Callable[..., Any]:
        ATTRIBUTES[name] = traced
        return traced

    return enter


def setter(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a traced function for stores into an array attribute."""

    def enter(traced: Callable[..., Any]) -> Callable[..., Any]:
        SETTERS[name] = traced
        return traced

    return enter


# ---------------------------------------------------------------- structural rows


def _looked_at(node: Any, array: Any, *binds: Any) -> Any:
    """The part of `array` that the node's view addresses, sharing its memory."""
    v: View = node.params
    shape = tuple(node.size(s) for s in v.shape)
    if 0 in shape:
        return np.empty(shape, array.dtype)
    first = tuple(node.size(d.index if isinstance(d, At) else d.start) for d in v.dims)
    _, strides = v.strides(array.strides)
    # the ellipsis keeps a 0-d array an array
    corner = array[(..., *(slice(i, i + 1) for i in first))]
    return as_strided(corner, shape, tuple(node.size(s) for s in strides))


def _update(node: Any, base: Any, value: Any, *binds: Any) -> Any:
    result = np.array(base)
    _looked_at(node, result)[...] = value
    return result


def _pad(node: Any, array: Any, *binds: Any) -> Any:
    widths = [(node.size(a), node.size(b)) for a, b in node.params]
    return np.pad(array, widths)


def _gather(node: Any, base: Any, *indices: Any) -> Any:
    g: Gather = node.params
    kept = [d for d in range(base.ndim) if d not in g.dims]
    moved = np.transpose(base, [*g.dims, *kept])
    picked = moved[tuple(indices)]
    rank = np.ndim(indices[0])
    order = list(range(rank, rank + g.place)) + list(range(rank))
    order += list(range(rank + g.place, picked.ndim))
    return np.transpose(picked, order)


def _contract(node: Any, a: Any, b: Any) -> Any:
    la, lb, out = node.params
    if node.dtype == np.bool_:
        return np.einsum(f"{la},{lb}->{out}", a.astype(np.int64), b.astype(np.int64)) != 0
    return np.einsum(f"{la},{lb}->{out}", a, b).astype(node.dtype)


INPUT = row(Op("input", Kind.INPUT, lambda node: None, fresh=True))
CONST = row(Op("const", Kind.CONST, lambda node: np.asarray(node.params.value)))
SIZE = row(
    Op("size", Kind.SIZE, lambda node, *binds: np.asarray(node.size(node.params), node.dtype))
)
IOTA = row(Op("iota", Kind.IOTA, lambda node, *binds: np.arange(node.shape[0], dtype=node.dtype)))
VIEW = row(Op("view", Kind.VIEW, _looked_at))
RESHAPE = row(Op("reshape", Kind.RESHAPE, lambda node, a, *binds: np.reshape(a, node.shape)))
PAD = row(Op("pad", Kind.PAD, _pad))
GATHER = row(Op("gather", Kind.GATHER, _gather))
CONTRACT = row(Op("contract", Kind.CONTRACT, _contract, cost=64))
CELL = row(Op("cell", Kind.CELL, lambda node, a: np.array(a), fresh=True))
ROOM = row(Op("room", Kind.CELL, lambda node, a: np.array(a), fresh=True, blank=True))
UPDATE = row(Op("update", Kind.UPDATE, _update))


def _check(node: Any, ok: Any) -> Any:
    if not np.all(ok):
        raise ArithmeticError(node.params)
    return ok


CHECK = row(Op("check", Kind.CHECK, _check, fresh=True))
