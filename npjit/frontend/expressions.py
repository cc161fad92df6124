"""Expressions of staged source: `and`, `or`, `not`, conditional expressions, chained comparisons,
`in`, comprehensions, generator expressions and list displays as calls of `_nj`.

    a < b < c                   ->  (lambda l, r: _nj.and_(l < r, lambda: r < c))(a, b)
    y if t > 0 else z           ->  _nj.choose(t > 0, lambda: y, lambda: z)
    [f(i) for i in items]       ->  _nj.listed(items, lambda i: f(i))
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from npjit.frontend.jumps import CONTROL


def looked_up(value: ast.expr) -> ast.expr:
    """A name that is given another name is looked at by nobody else, and may be unbound."""
    if isinstance(value, ast.Name):
        return at(call("bound", [value]), value)
    if isinstance(value, ast.Tuple | ast.List):
        value.elts = [looked_up(e) for e in value.elts]
    return value


class Expressions(ast.NodeTransformer):
    """See the module's docstring; `rewrite` stages functions that are found inside."""

    def __init__(self, rewrite: Callable[[ast.FunctionDef], None]) -> None:
        self.rewrite = rewrite

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        made = node.values[-1]
        for value in reversed(node.values[:-1]):
            made = at(call(name, [value, thunk(made)]), node)
        return made

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return at(call("not_", [node.operand]), node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return at(call("choose", [node.test, thunk(node.body), thunk(node.orelse)]), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return _membership(node)
        # a < b < c  ->  (lambda l, r: and_(l < r, lambda: r < c))(a, b), b evaluated once
        left, right = load("_nj_l"), load("_nj_r")
        first = ast.Compare(left, [node.ops[0]], [right])
        rest: ast.expr = ast.Compare(right, node.ops[1:], node.comparators[1:])
        rest = self.visit_Compare(rest) if len(node.ops) > 2 else rest  # type: ignore[assignment]
        both = call("and_", [first, thunk(rest)])
        pair = ast.Lambda(arguments(("_nj_l", "_nj_r")), both)
        return at(ast.Call(pair, [node.left, node.comparators[0]], []), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        self.generic_visit(node)
        return _comprehended("listed", node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if node.args and isinstance(node.args[0], ast.GeneratorExp):
            node.args[0] = _comprehended("generated", node.args[0])
        if is_named(node, "list") and len(node.args) == 1 and not node.keywords:
            return at(call("list_of", [node.func, node.args[0]]), node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.body = self.visit(node.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.rewrite(node)
        return node


def is_named(e: ast.expr, name: str) -> bool:
    """Whether an expression calls this name."""
    return isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == name


def _membership(node: ast.Compare) -> ast.expr:
    """x in y, x not in y as calls; other comparisons as they are."""
    (kind,), given = node.ops, [node.left, *node.comparators]
    if not isinstance(kind, ast.In | ast.NotIn):
        return node
    found = call("contains", given)
    made: ast.expr = found if isinstance(kind, ast.In) else call("not_", [found])
    return at(made, node)  # type: ignore[no-any-return]


def _comprehended(name: str, node: ast.ListComp | ast.GeneratorExp) -> ast.expr:
    """[f(i) for i in items] as a call with `items` and `lambda i: f(i)`; a condition is a third
    argument. Others stay as they are."""
    (first, *more) = node.generators
    targets = first.target.elts if isinstance(first.target, ast.Tuple) else [first.target]
    names = [t.id for t in targets if isinstance(t, ast.Name)]
    if more or first.is_async or len(names) < len(targets) or len(first.ifs) > 1:
        return node
    parts = []
    for part in (node.elt, *first.ifs):
        of_item: ast.expr = ast.Lambda(arguments(tuple(names)), part)
        if isinstance(first.target, ast.Tuple):
            item = ast.Starred(load("_nj_item"), ast.Load())
            of_item = ast.Lambda(arguments(("_nj_item",)), ast.Call(of_item, [item], []))
        parts.append(of_item)
    made: ast.expr = at(call(name, [first.iter, *parts]), node)
    return made


def growing(value: ast.expr) -> ast.expr:
    """List displays, by themselves or in a tuple, as lists that may grow in a staged loop."""
    if isinstance(value, ast.Tuple):
        value.elts = [growing(v) for v in value.elts]
    if isinstance(value, ast.List) or (is_named(value, "list") and not value.args):  # type: ignore[attr-defined]
        return at(call("growing", [value]), value)
    is_product = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult)
    if is_product and isinstance(value.left, ast.List):  # type: ignore[attr-defined]
        return at(call("repeated", [value.left, value.right]), value)  # type: ignore[attr-defined]
    return value


def at(node: Any, where: ast.AST) -> Any:
    return ast.fix_missing_locations(ast.copy_location(node, where))


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def call(name: str, args: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(load(CONTROL), name, ast.Load()), args, [])


def thunk(body: ast.expr) -> ast.Lambda:
    return ast.Lambda(arguments(()), body)


def arguments(names: tuple[str, ...]) -> ast.arguments:
    return ast.arguments(
        posonlyargs=[],
        args=[ast.arg(n) for n in names],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
