"""Assignment expressions as statements in front of the ones that they stand in.

    if (w := x[i] * 2) > 1:           w = x[i] * 2
        s += w                  ->    if w > 1:
                                          s += w

    while (d := step(x)) > tol:       while True:
        n += 1                  ->        d = step(x)
                                          if not d > tol: break
                                          n += 1

Only what Python evaluates in any case, and before all but names and constants, can be moved; other
assignment expressions stay.
"""

from __future__ import annotations

import ast

# where the statements stand, and which expression of a statement is evaluated first
_BLOCKS = ("body", "orelse", "finalbody", "handlers")
_FIRST = ("test", "value", "iter")


def move_named(node: ast.AST) -> None:
    """Rewrite the statements of a function in place."""
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list):
            for s in block:
                move_named(s)
            if name != "handlers":
                setattr(node, name, [made for s in block for made in _moved(s)])


def _moved(s: ast.stmt) -> list[ast.stmt]:
    name = next((n for n in _FIRST if isinstance(getattr(s, n, None), ast.expr)), None)
    if name is None or (isinstance(s, ast.While) and s.orelse):
        return [s]
    first, found = getattr(s, name), []
    while (named := _first_in(first)[0]) is not None:
        value = ast.Assign([ast.Name(named.target.id, ast.Store())], named.value)
        found.append(ast.fix_missing_locations(ast.copy_location(value, named)))
        first = _Replace(named).visit(first)
    if not found:
        return [s]
    if not isinstance(s, ast.While):
        setattr(s, name, first)
        return [*found, s]
    ends = ast.If(ast.UnaryOp(ast.Not(), first), [ast.Break()], [])
    s.test = ast.copy_location(ast.Constant(True), s.test)
    s.body = [*found, ast.fix_missing_locations(ast.copy_location(ends, s.test)), *s.body]
    return [s]


def _first_in(e: ast.expr) -> tuple[ast.NamedExpr | None, bool]:
    """The assignment that is evaluated first, and whether nothing but names and constants is."""
    if isinstance(e, ast.NamedExpr):
        inner, _ = _first_in(e.value)
        return inner or e, False
    if isinstance(e, ast.Name | ast.Constant):
        return None, True
    for part in _always(e):
        found, is_simple = _first_in(part)
        if found is not None or not is_simple:
            return found, False
    return None, False


def _always(e: ast.expr) -> list[ast.expr]:
    """The parts of an expression that are evaluated in any case, in order."""
    if isinstance(e, ast.BoolOp):
        return e.values[:1]
    if isinstance(e, ast.IfExp):
        return [e.test]
    if isinstance(e, ast.Compare):
        return [e.left, e.comparators[0]]
    if isinstance(e, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return []
    return [part for part in ast.iter_child_nodes(e) if isinstance(part, ast.expr)]


class _Replace(ast.NodeTransformer):
    """A named expression replaced by its name."""

    def __init__(self, named: ast.NamedExpr) -> None:
        self.named = named

    def visit_NamedExpr(self, e: ast.NamedExpr) -> ast.expr:
        if e is self.named:
            return ast.copy_location(ast.Name(e.target.id, ast.Load()), e)
        return self.generic_visit(e)  # type: ignore[return-value]
