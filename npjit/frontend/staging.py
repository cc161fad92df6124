"""Staging a function: its own code, rewritten where it has control flow, over traced globals, cells
and defaults.

    Stager(outside).stage(f, step)    ->  a function to call with traced values; f's parts are
    guarded reads

A function is guarded by what it is made of, not by its identity, so that a lambda made anew for
each call, with the same code over other values, is the same to a compiled version.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from npjit.frontend.builtin_names import REPLACED_FUNCTIONS
from npjit.frontend.namespace import TracedGlobals
from npjit.frontend.refusals import refuse_untraceable
from npjit.frontend.rewrite import staged_code
from npjit.ops.errors import NotCaptured

if TYPE_CHECKING:
    from npjit.frontend.outside import Outside

Fetch = tuple[Any, ...]


class Stager:
    """The staged functions of one trace."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        # id -> (function, its staged form, the step it was first read at)
        self._staged: dict[int, tuple[Any, Any, int]] = {}
        # staged functions with the attributes that they began with
        self._attributes: list[tuple[Any, dict[str, Any]]] = []

    def stage(self, function: types.FunctionType, number: int) -> Any:
        """The function, read at step `number`, running with traced globals, closure cells and
        defaults.
        """
        check = self.outside.capture.check
        if isinstance(function.__globals__, TracedGlobals):
            return function
        replaced = REPLACED_FUNCTIONS.get(function)
        if replaced is not None:
            check(number, ("is", function))
            return functools.partial(replaced, self.outside)
        known = self._staged.get(id(function))
        if known is None:
            return self._stage(function, number)
        if known[2] != number:
            # one function at two places: the trace took them for one, so that they have to stay it
            check(number, ("is", function))
            check(known[2], ("is", function))
        return known[1]

    def _stage(self, function: types.FunctionType, number: int) -> Any:
        refuse_untraceable(function)
        code = function.__code__
        cells = tuple(types.CellType() for _ in function.__closure__ or ())
        scope = TracedGlobals(self.outside, function.__globals__)
        runs = staged_code(code) or code
        staged = types.FunctionType(runs, scope, function.__name__, None, cells)
        # known before its cells are read: a function may find itself there
        self._staged[id(function)] = (function, staged, number)
        parts = _Parts(self.outside.capture, function, number)
        read = self.outside.read
        for i, (made, cell) in enumerate(zip(cells, function.__closure__ or (), strict=True)):
            try:
                contents = cell.cell_contents
            except ValueError:
                continue
            made.cell_contents = read(contents, parts.cell(i))
        staged.__defaults__ = tuple(
            read(d, parts.default(i)) for i, d in enumerate(function.__defaults__ or ())
        )
        staged.__kwdefaults__ = {
            k: read(v, parts.keyword_default(k)) for k, v in (function.__kwdefaults__ or {}).items()
        }
        for name, value in vars(function).items():
            if name != "__wrapped__":
                vars(staged)[name] = read(value, ("attr", number, name))
        self._attributes.append((staged, dict(vars(staged))))
        return staged

    def refuse_stores(self) -> None:
        """NotCaptured when the trace has stored into a function's attributes."""
        for staged, before in self._attributes:
            now = vars(staged)
            if now.keys() != before.keys() or any(now[k] is not before[k] for k in now):
                raise NotCaptured(f"a store into an attribute of {staged.__name__}")


class _Parts:
    """How a function's parts are fetched again: directly from a function that stays, else through
    its step.
    """

    def __init__(self, capture: Any, function: types.FunctionType, number: int) -> None:
        self.step = capture.step
        self.function = function
        self.number = number
        self.stays = capture.steps[number][0][0] == "root"
        self.step(("attr", number, "__code__"), ("is", function.__code__))
        if not self.stays:
            capture.check(number, ("type", types.FunctionType))
            self.step(("attr", number, "__globals__"), ("is", function.__globals__))

    def _item(self, attribute: str, key: Any) -> Fetch:
        return ("item", self.step(("attr", self.number, attribute)), key)

    def cell(self, i: int) -> Fetch:
        if self.stays and self.function.__closure__ is not None:
            return ("cell", self.function.__closure__[i])
        return ("attr", self.step(self._item("__closure__", i)), "cell_contents")

    def default(self, i: int) -> Fetch:
        return ("defaults", self.function, i) if self.stays else self._item("__defaults__", i)

    def keyword_default(self, name: str) -> Fetch:
        if self.stays:
            return ("kwdefaults", self.function, name)
        return self._item("__kwdefaults__", name)
