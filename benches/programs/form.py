"""What a form of a program is: one way to run it, timed against the others.

In: a callable. Out: a value by which the bench prepares arguments, calls, and compares:

    form = Form(npjit.jit(program.function), typed=True)
    form(*form.prepare(program.arguments(40)))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Form:
    """`typed`: its results have NumPy's types; otherwise a Python number stands for a scalar."""

    call: Callable[..., Any]
    typed: bool = False

    def __call__(self, *arguments: Any) -> Any:
        return self.call(*arguments)

    def prepare(self, arguments: Values) -> Values:
        """The arguments as the form's users keep them: no time of the program's."""
        return arguments

    def given(self, result: Any, arguments: Values) -> Values:
        """What is compared of a call."""
        return (result, *arguments)

    def wanted(self, result: Any, arguments: Values) -> Values:
        """What it is compared with, of NumPy's call."""
        return (result, *arguments)
