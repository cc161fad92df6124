"""`np.vectorize`d functions in traced code: a loop over the elements that fills rows.

As NumPy does it, the function gets Python numbers, and what it gives for the first element, a NumPy
number, tells the dtype of the result (unless `otypes` does).

    np.vectorize(f)(x)    ->    out = []
                                for v in x.flat: out.append(f(v))
                                np.array(out).reshape(x.shape)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npjit.core.graph import Block, Weight
from npjit.frontend.effects import Watch
from npjit.frontend.lists import GrowingList
from npjit.frontend.rows import item_of
from npjit.frontend.values import type_of
from npjit.ops import build
from npjit.ops.errors import NotCaptured
from npjit.ops.flat import Flat
from npjit.ops.operands import as_array
from npjit.ops.regions import Region
from npjit.ops.symint import wrap
from npjit.ops.tracer import Tracer, fresh


class Vectorized:
    """A function made by np.vectorize; `otypes` are the letters of the results' dtypes, or None."""

    def __init__(self, outside: Any, function: Callable[..., Any], otypes: str | None) -> None:
        self.control = outside.control
        self.block: Block = outside.capture.block
        self.function = function
        self.otypes = otypes

    def __call__(self, *args: Any) -> Any:
        block = self.block
        if not args:
            raise NotCaptured("a vectorized function without arguments")
        arrays = np.broadcast_arrays(*[as_array(block, a) for a in args])
        lines = [Flat(a).copy() for a in arrays]
        count = lines[0].raw_shape[0]
        if not block.sizes.decide_le(1, count):
            raise NotCaptured("a vectorized function of no elements")
        dtypes = [np.dtype(c) for c in self.otypes or ()] or self._first(lines)
        made = self._filled(lines, count, dtypes)
        shape = tuple(wrap(block, n) for n in arrays[0].raw_shape)
        results = [
            np.reshape(_cast(block, rows, dtype), shape)
            for rows, dtype in zip(made, dtypes, strict=True)
        ]
        return tuple(results) if len(results) > 1 else results[0]

    def _first(self, lines: Sequence[Tracer]) -> list[np.dtype[Any]]:
        """The dtypes of what the function gives for the first elements."""
        watch = Watch([self.function])
        with Region(self.block), _exact_types(self.block):
            found = self.function(*[a[0] for a in lines])
        if watch.changed():
            raise NotCaptured("a vectorized function with effects")
        parts = found if isinstance(found, tuple) else (found,)
        return [type_of(self.block, v).dtype for v in parts]

    def _filled(self, lines: Sequence[Tracer], count: Any, dtypes: list[Any]) -> Sequence[Any]:
        """An array of all elements' results for each of the results."""
        made = GrowingList(self.block, [])

        def body(k: Any) -> tuple[()]:
            made.append(self.function(*[_number(a[k]) for a in lines]))
            return ()

        items = self.control.each_of(count)
        with _exact_types(self.block, self.otypes is None):
            self.control.for_loop(items, body, (), (), ())
        if made.rows is None:
            made.stack(item_of(self.block, list(made)), count)
        assert made.rows is not None
        if len(made.rows) != len(dtypes) or any(r.ndim != 1 for r in made.rows):
            raise NotCaptured("a vectorized function that gives something else than numbers")
        return made.rows


class _exact_types:
    """While it lasts, numbers of different kinds do not meet in one name: which of them comes first
    would decide the dtype of a result."""

    def __init__(self, block: Any, wanted: bool = True) -> None:
        self.block = block
        self.wanted = wanted

    def __enter__(self) -> None:
        self.before = self.block.exact_types
        self.block.exact_types = self.wanted or self.before

    def __exit__(self, *error: object) -> None:
        self.block.exact_types = self.before


def _number(element: Tracer) -> Tracer:
    """An element as the Python number that an array of objects holds."""
    block, kind = element.block, element.dtype.kind
    if element.dtype == np.uint64:
        raise NotCaptured("Python's int of a uint64")
    wide = {"b": build.BOOL, "f": build.FLOAT64, "c": np.dtype(np.complex128)}.get(kind)
    node = build.cast(block, element.node, wide or build.INT64)
    return fresh(block, build.weigh(block, node, Weight.WEAK))


def _cast(block: Block, rows: Tracer, dtype: np.dtype[Any]) -> Tracer:
    narrows = rows.dtype.kind == dtype.kind == "f" or rows.dtype.kind == dtype.kind == "c"
    if not narrows and not np.can_cast(rows.dtype, dtype, "safe"):
        raise NotCaptured(f"a vectorized function that gives {rows.dtype} for {dtype}")
    return fresh(block, build.cast(block, rows.node, dtype))


def vectorize(outside: Any, pyfunc: Any, otypes: Any = None, *rest: Any, **kwargs: Any) -> Any:
    """np.vectorize in traced code."""
    if rest or any(v for k, v in kwargs.items() if k != "doc"):
        raise NotCaptured("np.vectorize with these arguments")
    if otypes is not None and not isinstance(otypes, str):
        otypes = "".join(np.dtype(t).char for t in otypes)
    return Vectorized(outside, pyfunc, otypes)


def read_vectorized(outside: Any, value: np.vectorize, number: int) -> Any:
    """An outside object that np.vectorize has made, fetched at this step."""
    outside.capture.check(number, ("is", value))
    if value.excluded or value.signature is not None or value.cache:
        raise NotCaptured("a function vectorized with excluded=, signature= or cache=")
    outside.capture.step(("attr", number, "otypes"), ("equal", value.otypes))
    return Vectorized(outside, outside.read(value.pyfunc, ("attr", number, "pyfunc")), value.otypes)
