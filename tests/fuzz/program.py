"""A random program: source text, and what plain NumPy makes of it.

In: lines. Out: `Program(setup, body)`, whose `call(f)` runs a function on fresh arguments and gives
an `Outcome`: the result or the exception, and the arguments afterwards. `program.function()` is the
plain function:

    program = Program(["a = make('f8', (3,), 0)"], ["def f(a):", "    return np.sin(a)"])
    program.call(program.function())
"""

from __future__ import annotations

import ast
import linecache
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tests.fuzz.arguments import make
from tests.fuzz.noise import NOISY, make_noisy


@dataclass
class Outcome:
    """What a call did: its result (None after an exception), the exception, the arguments after
    it."""

    result: Any
    error: Exception | None
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Program:
    """Lines that bind the arguments, and lines that define `f` of these names."""

    setup: tuple[str, ...]
    body: tuple[str, ...]

    @staticmethod
    def of(setup: list[str], body: list[str]) -> Program:
        return Program(tuple(setup), tuple(body))

    @cached_property
    def names(self) -> list[str]:
        """The arguments' names, in order."""
        return [line.split(" = ")[0] for line in self.setup]

    def arguments(self) -> tuple[Any, ...]:
        """Fresh arguments: equal values, layouts and aliasing each time."""
        space: dict[str, Any] = {"np": np, "make": make}
        exec("\n".join(self.setup), space)
        return tuple(space[n] for n in self.names)

    def function(self, noisy: float = 0.0) -> Callable[..., Any]:
        """The function f; with `noisy`, every inexact operation errs by about so many roundings."""
        source = "\n".join(self.body) + "\n"
        name = f"<fuzz {hash(self)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        space: dict[str, Any] = {"np": np}
        if noisy:
            space[NOISY] = make_noisy(noisy)
            exec(compile(noisy_source(source), name, "exec"), space)
        else:
            exec(compile(source, name, "exec"), space)
        function: Callable[..., Any] = space["f"]
        return function

    def call(self, function: Callable[..., Any]) -> Outcome:
        """Call a function on fresh arguments."""
        arguments = self.arguments()
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return Outcome(function(*arguments), None, arguments)
            except Exception as e:
                return Outcome(None, e, arguments)

    def without(self, first: int, count: int) -> Program:
        """The program without some body lines."""
        return Program(self.setup, self.body[:first] + self.body[first + count :])

    def smaller(self) -> Iterator[Program]:
        """Programs with fewer lines, or with a block's body in place of the block."""
        for count in (8, 4, 2, 1):
            for first in range(1, len(self.body) - count):
                yield self.without(first, count)
        for k, line in enumerate(self.body[1:], 1):
            if line.rstrip().endswith(":"):
                depth = len(line) - len(line.lstrip())
                end = k + 1
                while end < len(self.body) and self.body[end].startswith(" " * (depth + 1)):
                    end += 1
                inner = tuple(x[4:] for x in self.body[k + 1 : end])
                yield Program(self.setup, self.body[:k] + self.body[end:])
                yield Program(self.setup, self.body[:k] + inner + self.body[end:])
        last = self.body[-1]
        names = last.strip().removeprefix("return").strip(" ()").split(", ")
        if last.startswith("    return") and len(names) > 1:
            for k in range(len(names)):
                left = [n for j, n in enumerate(names) if j != k]
                yield Program(self.setup, (*self.body[:-1], f"    return ({', '.join(left)},)"))

    def __str__(self) -> str:
        return "\n".join([*self.setup, *self.body])


def noisy_source(source: str) -> ast.Module:
    """The source with every inexact operation replaced by a call of the noisy one."""
    tree = _Noise().visit(ast.parse(source))
    ast.fix_missing_locations(tree)
    return tree


class _Noise(ast.NodeTransformer):
    """np.sin(x) -> _noisy('np.sin', np.sin, x); x @ y and x ** y likewise; methods through
    operator.methodcaller."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
        elif isinstance(node.func, ast.Name) and node.func.id in ("abs", "pow", "sum"):
            name = node.func.id
        else:
            return node
        given = [ast.Constant(name), node.func, *node.args]
        return ast.Call(ast.Name(NOISY, ast.Load()), given, node.keywords)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        found = _OPERATORS.get(type(node.op))
        if found is None:
            return node
        name, text = found
        function = ast.parse(f"lambda _a, _b: _a {text} _b", mode="eval").body
        return ast.Call(
            ast.Name(NOISY, ast.Load()), [ast.Constant(name), function, node.left, node.right], []
        )

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        found = _OPERATORS.get(type(node.op))
        if found is not None:
            same = ast.parse("lambda _a: _a", mode="eval").body
            node.value = ast.Call(
                ast.Name(NOISY, ast.Load()), [ast.Constant(found[0]), same, node.value], []
            )
        return node


# names as in `noise`, and the operators' texts; complex products differ between NumPy's own loops
_OPERATORS: dict[type, tuple[str, str]] = {
    ast.MatMult: ("matmul", "@"),
    ast.Pow: ("pow", "**"),
    ast.Div: ("divide", "/"),
    ast.Mult: ("multiply", "*"),
}
