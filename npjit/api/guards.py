"""Guards in words: what a version was compiled for, as `explain`, the log and warnings say it.

In: the steps of a captured call (see frontend.capture) and its size guards. Out: lines of text:

    x: float64[n > 1, 3] in C order
    scale: a float
    x.shape[1] == y.shape[0]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.core.assume import Guard
from npjit.core.graph import Graph
from npjit.core.size import Var, text

if TYPE_CHECKING:
    from npjit.api.compile import Compiled

Steps = Sequence[tuple[tuple[Any, ...], tuple[Any, ...]]]
MOST_CHARACTERS = 60


def in_words(function: Any, made: Compiled) -> list[str]:
    """All that a compiled version of a function asks of a call, a line each."""
    namer = Namer(function, made.steps)
    sizes = [namer.size_guard(g, made.graph, made.inputs) for g in made.graph.guards]
    return [*namer.guards(), *sizes]


class Namer:
    """Names what the steps of one function's version fetch, as its source would."""

    def __init__(self, function: Any, steps: Steps) -> None:
        self.steps = steps
        self.parameters = parameters_of(function)

    def name(self, number: int) -> str:
        """The object that a step fetches."""
        fetch = self.steps[number][0]
        kind = fetch[0]
        if kind == "arg":
            known = fetch[1] < len(self.parameters)
            return self.parameters[fetch[1]] if known else f"argument {fetch[1]}"
        if kind == "attr":
            return f"{self.name(fetch[1])}.{fetch[2]}"
        if kind == "item":
            return f"{self.name(fetch[1])}[{fetch[2]!r}]"
        if kind == "root":
            return str(getattr(fetch[1], "__name__", f"a {type(fetch[1]).__name__}"))
        if kind == "cell":
            return "a variable of the function around"
        if kind == "defaults":
            return f"a default of {fetch[1].__name__}"
        return str(fetch[-1])  # a keyword, a global, a keyword's default

    def guards(self) -> Iterator[str]:
        """What the steps ask for, a line each."""
        for number, (fetch, (kind, *what)) in enumerate(self.steps):
            words = _CONDITIONS[kind](*what)
            if (fetch[0], kind) == ("global", "absent"):
                words = " is Python's own"
            if words:
                yield f"{self.name(number)}{words}"

    def size_guard(self, guard: Guard, graph: Graph, inputs: Sequence[int]) -> str:
        """A guard on sizes, which `inputs` (the steps of the graph's inputs) have brought."""

        def named(v: Var) -> str:
            source = graph.sources.get(v)
            if source is None:
                return v.name
            owner = self.name(inputs[source.input])
            return owner if source.axis is None else f"{owner}.shape[{source.axis}]"

        return f"{text(guard.a, named)} {guard.relation} {text(guard.b, named)}"


def parameters_of(function: Any) -> list[str]:
    """Names of a function's parameters, as far as Python knows them."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _array(dtype: int, ndim: int, extents: Any, layout: Any, writeable: Any) -> str:
    shown = {-1: "n > 1", -2: "n"}
    shape = ", ".join(shown.get(n, str(n)) for n in extents)
    order = "C order" if layout == "C" else f"layout {' '.join(layout)}"
    return f": {_dtype(dtype)}[{shape}] in {order}{', writeable' if writeable else ''}"


def _device(dtype: int, ndim: int, extents: Any, layout: Any, device: int) -> str:
    return f"{_array(dtype, ndim, extents, layout, None)} on GPU {device}"


def _dtype(number: int) -> str:
    known = map(np.dtype, np.typecodes["All"])
    return next((t.name for t in known if t.num == number), "bfloat16")


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def _brief(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= MOST_CHARACTERS else f"<{type(value).__name__}>"


_PYTHON = {"f": "float", "i": "int", "b": "bool", "c": "complex"}
# by the kind of check, see runtime/entry.pxi; "": there is nothing to ask
_CONDITIONS: dict[str, Callable[..., str]] = {
    "any": lambda: "",
    "absent": lambda: ": not there",
    "is": lambda value: " is as it was",
    "equal": lambda value: f" == {_brief(value)}",
    "type": lambda cls: f": {_a(cls.__name__)}",
    "seq": lambda cls, length: f": {_a(cls.__name__)} of {length}",
    "dict": lambda cls, keys: f": {_a(cls.__name__)} with the keys {_brief(keys)}",
    "scalar": lambda letter: f": {_a(_PYTHON[letter])}",
    "npscalar": lambda dtype: f": a NumPy {_dtype(dtype)}",
    "array": _array,
    "device": _device,
}
