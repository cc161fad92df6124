"""`+=` of lists as calls of `extend`, which do not bind the name anew.

    out = []                          out = []
    for v in x:                 ->    for v in x:
        out += [v, v * 2]                 out.extend([v, v * 2])

Only for names that nothing but list displays, comprehensions and `list()` are ever bound to.
"""

from __future__ import annotations

import ast


def extend_lists(function: ast.FunctionDef) -> None:
    """Rewrite the statements of a function in place."""
    nodes = list(ast.walk(function))
    added = [n for n in nodes if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]
    if not added:
        return
    lists = {t.id for n in nodes for t in _list_targets(n)}
    known = {id(t) for n in nodes for t in _list_targets(n)}
    known |= {id(n.target) for n in added if _adds_list(n, lists)}
    names = [n for n in nodes if isinstance(n, ast.Name)]
    other = {n.id for n in names if not isinstance(n.ctx, ast.Load) and id(n) not in known}
    other |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    _Extended(lists - other).visit(function)


def _list_targets(n: ast.AST) -> list[ast.Name]:
    """Names that an assignment binds to a list."""
    if not isinstance(n, ast.Assign):
        return []
    pairs: list[tuple[ast.expr, ast.expr]] = [(t, n.value) for t in n.targets]
    if isinstance(n.value, ast.Tuple):
        tuples = [t for t in n.targets if isinstance(t, ast.Tuple)]
        pairs = [p for t in tuples for p in zip(t.elts, n.value.elts, strict=False)]
    return [t for t, value in pairs if isinstance(t, ast.Name) and _is_list(value)]


def _is_list(e: ast.expr) -> bool:
    if isinstance(e, ast.Call):
        return isinstance(e.func, ast.Name) and e.func.id == "list"
    return isinstance(e, ast.List | ast.ListComp)


def _adds_list(n: ast.AugAssign, lists: set[str]) -> bool:
    """Whether a list is added: an array, added to a list, gives an array."""
    is_list = _is_list(n.value) or (isinstance(n.value, ast.Name) and n.value.id in lists)
    return isinstance(n.op, ast.Add) and is_list


class _Extended(ast.NodeTransformer):
    def __init__(self, lists: set[str]) -> None:
        self.lists = lists

    def visit_AugAssign(self, s: ast.AugAssign) -> ast.stmt:
        target = s.target
        if not isinstance(target, ast.Name) or target.id not in self.lists:
            return s
        extend = ast.Attribute(ast.Name(target.id, ast.Load()), "extend", ast.Load())
        made = ast.Expr(ast.Call(extend, [s.value], []))
        return ast.fix_missing_locations(ast.copy_location(made, s))
