"""Random arguments, as Python text that makes them.

In: a `random.Random`. Out: lines that bind the arguments' names, in the language of `make`:

    argument_lines(random.Random(0), ["a", "b"])
        ->  ["a = make('f8', (2, 17), 5, 'F')", "b = a[1:]"]
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

REAL = ["f8", "f8", "f8", "f4", "f4", "f2"]
COMPLEX = ["c16", "c8"]
INTEGER = ["i8", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"]
DTYPES = [*REAL, *REAL, *COMPLEX, *INTEGER, "?", "?"]
EXTENTS = [0, 1, 2, 3, 3, 4, 5, 16, 17, 33]
LAYOUTS = ["C", "C", "C", "F", "reversed", "strided", "shifted", "stretched", "mixed"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-3, 1e5, 0.5, -0.5, 2.0]


def make(dtype: str, shape: tuple[int, ...], seed: int, layout: str = "C", values: str = "") -> Any:
    """An array of random contents: small numbers, or `values` "special", "wide" or "positive"."""
    rng = np.random.default_rng(seed)
    kept = (
        tuple(1 if i % 2 == 0 else n for i, n in enumerate(shape))
        if layout == "stretched"
        else shape
    )
    array = _lay_out(_contents(rng, np.dtype(dtype), kept, values), layout)
    return np.broadcast_to(array, shape) if layout == "stretched" else array


def _contents(rng: Any, dtype: Any, shape: tuple[int, ...], values: str) -> Any:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if values == "wide":
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return rng.integers(
            0 if dtype.kind == "u" or values == "positive" else -4, 6, shape
        ).astype(dtype)
    if values == "special":
        parts = [rng.choice(SPECIAL, shape) for _ in range(2)]
    elif values == "positive":
        parts = [rng.uniform(0.25, 2, shape) for _ in range(2)]
    else:
        parts = [rng.uniform(-2, 2, shape) for _ in range(2)]
    if dtype.kind == "c":
        made = np.empty(shape, dtype)
        made.real, made.imag = parts
        return made
    with np.errstate(over="ignore"):
        return np.asarray(parts[0]).astype(dtype)


def _lay_out(array: Any, layout: str) -> Any:
    """The same contents in another memory layout."""
    if layout in ("C", "stretched") or array.ndim == 0:
        return array
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "mixed":
        order = (*range(1, array.ndim), 0)
        return array.transpose(np.argsort(order)).copy().transpose(order)
    if layout == "shifted":
        flat = np.zeros(array.size + 1, array.dtype)
        flat[1:] = array.reshape(-1)
        return flat[1:].reshape(array.shape)
    step = -1 if layout == "reversed" else 2
    room = np.zeros(tuple(abs(step) * n for n in array.shape), array.dtype)
    view = room[tuple(slice(None, None, step) for _ in array.shape)]
    view[...] = array
    return view


def argument_lines(
    rng: random.Random, names: list[str], dtypes: Any = None, alias: float = 0.15
) -> list[str]:
    """A line for each name; shapes are chosen so that many pairs broadcast."""
    extents = [rng.choice(EXTENTS) for _ in range(3)]
    if rng.random() < 0.05:
        extents[-1] = 1000
    dtypes = dtypes or [rng.choice(DTYPES) for _ in range(2)]
    lines: list[str] = []
    for number, name in enumerate(names):
        if lines and rng.random() < alias:
            other = rng.choice(names[:number])
            how = rng.choice(["{0}", "{0}[...]", "{0}[1:]", "{0}[::-1]", "{0}.T", "{0}[:-1]"])
            lines.append(
                f"{name} = {how.format(other)}" if _is_array(lines, other) else f"{name} = {other}"
            )
        else:
            lines.append(f"{name} = {_argument(rng, extents, dtypes)}")
    return lines


def _is_array(lines: list[str], name: str) -> bool:
    (line,) = (x for x in lines if x.startswith(f"{name} = "))
    if "make(" in line:
        return "make('" in line and ", ()" not in line
    return False


def _argument(rng: random.Random, extents: list[int], dtypes: list[str]) -> str:
    kind = rng.random()
    if kind < 0.06:
        return rng.choice(["2.5", "-1.5", "3", "-2", "0", "True", "1.5j", "0.0", "1"])
    dtype = rng.choice(dtypes)
    if kind < 0.1:
        return f"np.dtype({dtype!r}).type({rng.choice([0, 1, 2, 3])})"
    rank = rng.choice([0, 1, 1, 2, 2, 2, 3])
    shape = tuple(1 if rng.random() < 0.08 else n for n in extents[3 - rank :])
    layout = rng.choice(LAYOUTS) if rng.random() < 0.6 else "C"
    values = rng.choice(["", "", "", "", "special", "wide", "positive"])
    tail = f", {layout!r}, {values!r}" if values else f", {layout!r}" if layout != "C" else ""
    return f"make({dtype!r}, {shape}, {rng.randrange(1000)}{tail})"
