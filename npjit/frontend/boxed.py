"""Variables that nested functions bind, as items of lists; `global` without a store as nothing.

    n = 0                             _nj_box_n = [0]
    def step(v):                      def step(v):
        nonlocal n              ->        _nj_box_n[0] += 1
        n += 1                            return v * _nj_box_n[0]
        return v * n                  return step(x), _nj_box_n[0]
    return step(x), n

Loops and branches can carry what a list holds. A variable whose name another scope inside the
function uses for one of its own stays.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from npjit.frontend.jumps import CONTROL, assign

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def box_nonlocals(function: ast.FunctionDef) -> None:
    """Rewrite a function in place."""
    nodes = list(ast.walk(function))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    _drop(nodes, ast.Global, lambda name: name not in stored)
    inner = [n for n in nodes if isinstance(n, _SCOPES) and n is not function]
    declared = {name for n in nodes if isinstance(n, ast.Nonlocal) for name in n.names}
    own = {n.id for n in _own_names(function)} | {a.arg for a in _arguments(function)}
    names = (declared & own) - {name for scope in inner for name in _of_its_own(scope)}
    names -= {name for n in nodes for name in _bound_otherwise(n)}
    if not names:
        return
    _drop(nodes, ast.Nonlocal, lambda name: name in names)
    given = {a.arg for a in _arguments(function)}
    boxes = _Boxes(names)
    function.body = [boxes.visit(s) for s in function.body]
    head = [assign(_box(n), _first(n, n in given), function.body[0]) for n in sorted(names)]
    function.body[:0] = head


def _box(name: str) -> str:
    return f"_nj_box_{name}"


def _first(name: str, is_given: bool) -> ast.expr:
    """What a box begins with."""
    unbound = ast.Attribute(ast.Name(CONTROL, ast.Load()), "undefined", ast.Load())
    return ast.List([ast.Name(name, ast.Load()) if is_given else unbound], ast.Load())


def _drop(
    nodes: list[ast.AST], kind: type[ast.Global | ast.Nonlocal], wanted: Callable[[str], bool]
) -> None:
    """Take names out of `global` or `nonlocal` statements; those without names do nothing."""
    for node in nodes:
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            for k, s in enumerate(block if isinstance(block, list) else ()):
                if isinstance(s, kind):
                    left = [n for n in s.names if not wanted(n)]
                    made = kind(left) if left else ast.Pass()
                    block[k] = ast.copy_location(made, s)


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, those of the scopes in it aside."""
    queue = list(ast.iter_child_nodes(scope))
    while queue:
        n = queue.pop()
        yield n
        if not isinstance(n, _SCOPES):
            queue += ast.iter_child_nodes(n)


def _own_names(scope: ast.AST) -> list[ast.Name]:
    """The names that a scope binds."""
    return [n for n in _inside(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _bound_otherwise(n: ast.AST) -> set[str]:
    """Names for which no item of a list can stand where a node binds or deletes them."""
    if isinstance(n, _COMPREHENSIONS):
        targets = [t for g in n.generators for t in ast.walk(g.target)]
    elif isinstance(n, ast.NamedExpr | ast.AnnAssign):
        targets = [n.target]
    else:
        targets = n.targets if isinstance(n, ast.Delete) else []
    named = getattr(n, "asname", None) or getattr(n, "name", None)
    return {t.id for t in targets if isinstance(t, ast.Name)} | ({named} if named else set())


def _arguments(scope: ast.AST) -> list[ast.arg]:
    """The parameters of a function."""
    found = getattr(scope, "args", None)
    return [n for n in ast.walk(found) if isinstance(n, ast.arg)] if found is not None else []


def _of_its_own(scope: ast.AST) -> set[str]:
    """The names that a scope has for itself."""
    outer = {name for n in _inside(scope) if isinstance(n, ast.Nonlocal) for name in n.names}
    bound = {n.id for n in _own_names(scope)} | {a.arg for a in _arguments(scope)}
    return bound - outer


class _Boxes(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Name(self, n: ast.Name) -> ast.expr:
        if n.id not in self.names:
            return n
        box = ast.Name(_box(n.id), ast.Load())
        return ast.fix_missing_locations(
            ast.copy_location(ast.Subscript(box, ast.Constant(0), n.ctx), n)
        )
