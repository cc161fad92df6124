"""Writing a random program while running it: what a line makes decides what later lines may do.

In: a `random.Random` and the lines that bind the arguments. `try_line` runs a line and keeps it if
NumPy accepts it; `pick` draws a name by what it holds now:

    writer = Writer(rng, ["a = make('f8', (3,), 0)"])
    writer.try_line("v0 = np.sin(a)")
    writer.program(["v0"])
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.arguments import make
from tests.fuzz.program import Program

# larger values are not bound: programs stay fast
LARGEST = 40_000


class Writer:
    """The lines so far, and the values they have bound."""

    def __init__(self, rng: random.Random, setup: list[str]) -> None:
        self.rng = rng
        self.setup = setup
        self.values: dict[str, Any] = {"np": np, "make": make}
        exec("\n".join(setup), self.values)
        self.arguments = [line.split(" = ")[0] for line in setup]
        self.names = list(self.arguments)
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0

    def fresh(self) -> str:
        """A name that is not bound yet."""
        self.count += 1
        return f"v{self.count - 1}"

    def add(self, text: str) -> None:
        """A line as it is."""
        self.lines.append("    " * self.depth + text)

    def bind(self, expression: str) -> str | None:
        """A new name for the value of an expression; None when NumPy refuses it."""
        name = self.fresh()
        return name if self.try_line(f"{name} = {expression}") else None

    def try_line(self, text: str) -> bool:
        """Run a line; keep it if it raises nothing and binds nothing odd."""
        before = dict(self.values)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(text, self.values)
        except Exception:
            self.values = before
            return False
        bound = [n for n in self.values if n not in before and n != "__builtins__"]
        if not all(_is_usual(self.values[n]) for n in bound):
            self.values = before
            return False
        self.names += [n for n in bound if n not in self.names]
        self.add(text)
        return True

    def pick(self, wanted: Callable[[Any], bool] = lambda v: True) -> str | None:
        """A name whose value is wanted; later names more often."""
        found = [n for n in self.names if n in self.values and wanted(self.values[n])]
        if not found:
            return None
        place = max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))
        return found[place]

    def program(self, results: list[str]) -> Program:
        """The program that returns these names."""
        head = f"def f({', '.join(self.arguments)}):"
        tail = (
            f"    return {results[0]}"
            if len(results) == 1
            else f"    return ({', '.join(results)},)"
        )
        return Program.of(self.setup, [head, *self.lines, tail])


def is_array(value: Any) -> bool:
    """An ndarray with axes."""
    return isinstance(value, np.ndarray) and value.ndim > 0


def is_float(value: Any) -> bool:
    """An array or number with a real floating-point type."""
    return np.asarray(value).dtype.kind == "f"


def _is_usual(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return len(value) < 9 and all(_is_usual(v) for v in value)
    if isinstance(value, np.ndarray | np.generic):
        return (type(value) is np.ndarray and value.size <= LARGEST and _is_known(value)) or (
            isinstance(value, np.generic) and _is_known(value)
        )
    return isinstance(value, bool | int | float | complex)


def _is_known(value: Any) -> bool:
    return value.dtype.char in "?bBhHiIlLqQefdFD"
