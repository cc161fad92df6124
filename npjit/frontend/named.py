"""Assignment expressions as statements in front of the ones that they stand in.

    if (w := x[i] * 2) > 1:           w = x[i] * 2
        s += w                  ->    if w > 1:
                                          s += w

    while i < n and (v := x[i]) > 0:  while True:
        i += 1                            t = i < n
                                ->        if t: v = x[i]; t = v > 0
                                          if not t: break
                                          i += 1

Only what Python evaluates before all but names, constants and members of modules can be moved;
other assignment expressions stay.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import cast

from npjit.frontend.jumps import assign

# where the statements stand, and which expression of a statement is evaluated first
_BLOCKS = ("body", "orelse", "finalbody", "handlers")
_FIRST = ("test", "value", "iter")
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def move_named(function: ast.FunctionDef) -> None:
    """Rewrite the statements of a function in place."""
    if any(isinstance(n, ast.NamedExpr) for n in ast.walk(function)):
        _Mover(function).blocks(function)


class _Mover:
    def __init__(self, function: ast.FunctionDef) -> None:
        self.numbers = itertools.count(1)
        nodes = list(ast.walk(function))
        # names of the function's own: all others are globals, or belong to functions around
        self.own = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.own |= {n.arg for n in nodes if isinstance(n, ast.arg)}

    def blocks(self, node: ast.AST) -> None:
        """Rewrite the statements inside one."""
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                for s in block:
                    self.blocks(s)
                if name != "handlers":
                    setattr(node, name, [made for s in block for made in self._moved(s)])

    def _moved(self, s: ast.stmt) -> list[ast.stmt]:
        name = next((n for n in _FIRST if isinstance(getattr(s, n, None), ast.expr)), None)
        if name is None or (isinstance(s, ast.While) and s.orelse):
            return [s]
        first = getattr(s, name)
        if isinstance(s, ast.AugAssign) and _names(s.target) & _targets(first):
            return [s]
        found, left = self._evaluated(first)
        for made in found:
            ast.fix_missing_locations(ast.copy_location(made, first))
        if not found:
            return [s]
        if not isinstance(s, ast.While):
            setattr(s, name, left)
            return [*found, s]
        ends = ast.If(ast.UnaryOp(ast.Not(), left), [ast.Break()], [])
        s.test = ast.copy_location(ast.Constant(True), first)
        s.body = [*found, ast.fix_missing_locations(ast.copy_location(ends, first)), *s.body]
        return [s]

    def _evaluated(self, e: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        """Statements for what has to be evaluated first, and the expression that is left."""
        if not _targets(e):
            return [], e
        if isinstance(e, ast.NamedExpr):
            found, value = self._evaluated(e.value)
            return [*found, assign(e.target.id, value, e)], _load(e.target.id, e)
        if isinstance(e, ast.BoolOp):
            return self._decided(e)
        if isinstance(e, ast.IfExp):
            found, test = self._evaluated(e.test)
            kept = self._new()
            sides = [self._into(kept, side) for side in (e.body, e.orelse)]
            return [*found, ast.If(test, *sides)], _load(kept, e)
        if isinstance(e, ast.ListComp):
            return self._comprehended(e)
        return self._in_order(e)

    def _decided(self, e: ast.BoolOp) -> tuple[list[ast.stmt], ast.expr]:
        """a and b: b is evaluated where a is true."""
        kept = self._new()
        rest = e.values[1] if len(e.values) == 2 else ast.BoolOp(e.op, e.values[1:])
        test: ast.expr = _load(kept, e)
        if isinstance(e.op, ast.Or):
            test = ast.UnaryOp(ast.Not(), test)
        more = ast.If(test, self._into(kept, ast.copy_location(rest, e)), [])
        return [*self._into(kept, e.values[0]), more], _load(kept, e)

    def _into(self, name: str, e: ast.expr) -> list[ast.stmt]:
        found, value = self._evaluated(e)
        return [*found, assign(name, value, e)]

    def _in_order(self, e: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        """The parts that are evaluated in any case, as far as nothing else comes first."""
        made: list[ast.stmt] = []
        passed: set[str] = set()
        for part in _always(e):
            if passed & _targets(part):
                break
            found, left = self._evaluated(part)
            if found:
                e = cast(ast.expr, _Replace(part, left).visit(e))
                made += found
            if not self._is_simple(left):
                break
            passed |= _names(left)
        return made, e

    def _is_simple(self, e: ast.expr) -> bool:
        """Whether it does not matter when an expression is evaluated."""
        if isinstance(e, ast.Attribute):
            return not _names(e) & self.own and self._is_simple(e.value)
        return isinstance(e, ast.Name | ast.Constant)

    def _comprehended(self, e: ast.ListComp) -> tuple[list[ast.stmt], ast.expr]:
        """[f(x) for x in items if g(x)] as a loop that appends, its variables with other names."""
        if any(isinstance(n, _SCOPES) for n in ast.walk(e) if n is not e):
            return [], e
        kept = self._new()
        inner = {n for g in e.generators for n in _names(g.target)}
        renamed = {n: f"_nj_c_{kept}_{n}" for n in inner}
        first = e.generators[0].iter
        for n in ast.walk(e):
            if isinstance(n, ast.Name) and n.id in inner and not _holds(first, n):
                n.id = renamed[n.id]
        found, value = self._evaluated(e.elt)
        append = ast.Attribute(_load(kept, e), "append", ast.Load())
        body = [*found, ast.Expr(ast.Call(append, [value], []))]
        for g in reversed(e.generators):
            for test in reversed(g.ifs):
                found, left = self._evaluated(test)
                body = [*found, ast.If(left, body, [])]
            body = [ast.For(g.target, g.iter, body, [])]
        return [assign(kept, ast.List([], ast.Load()), e), *body], _load(kept, e)

    def _new(self) -> str:
        return f"_nj_v_{next(self.numbers)}"


def _targets(e: ast.expr) -> set[str]:
    """The names that assignment expressions in an expression bind."""
    return {n.target.id for n in ast.walk(e) if isinstance(n, ast.NamedExpr)}


def _names(e: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}


def _holds(e: ast.AST, part: ast.AST) -> bool:
    return any(n is part for n in ast.walk(e))


def _always(e: ast.expr) -> Sequence[ast.expr]:
    """The parts of an expression that are evaluated in any case, in order."""
    if isinstance(e, ast.Compare):
        return [e.left, e.comparators[0]]
    if isinstance(e, _SCOPES):
        return []
    return [part for part in ast.iter_child_nodes(e) if isinstance(part, ast.expr)]


def _load(name: str, where: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), where)


class _Replace(ast.NodeTransformer):
    """One part of an expression replaced."""

    def __init__(self, part: ast.expr, by: ast.expr) -> None:
        self.part = part
        self.by = by

    def visit(self, node: ast.AST) -> ast.AST:
        return self.by if node is self.part else super().visit(node)
