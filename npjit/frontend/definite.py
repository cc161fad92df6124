"""Which local names are surely bound after statements.

`bound_after(s, known)` is forward analysis: the names that have a value on every path that reaches
the end of the statement; None where no path does (return, raise, break). A compiled segment is
given only names that are surely bound, so that an unbound one stays Python's own error.

    known = {x};  if x: y = 1              ->  {x}
    known = {x};  if x: y = 1 else: raise  ->  {x, y}
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from npjit.frontend.liveness import Names, bound, reads

Known = Names | None  # None: this place is never reached
Manages = Callable[[ast.With], bool]

_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)


class Bindings:
    """Definite assignment; `lets_through` says that a with statement swallows no exception."""

    def __init__(self, lets_through: Manages) -> None:
        self.lets_through = lets_through

    def block(self, body: list[ast.stmt], known: Known) -> Known:
        """The names surely bound after the statements."""
        for s in body:
            if known is None:
                return None
            known = self.after(s, known)
        return known

    def after(self, s: ast.stmt, known: Names) -> Known:
        """The names surely bound after one statement."""
        if isinstance(s, _LEAVING):
            return None
        if isinstance(s, ast.If):
            return _either(self.block(s.body, known), self.block(s.orelse, known))
        if isinstance(s, ast.With | ast.AsyncWith):
            return self._with(s, known)
        if isinstance(s, ast.Try):
            return self._try(s, known)
        if isinstance(s, ast.Delete):
            return known - bound([s])
        if isinstance(s, ast.For | ast.AsyncFor | ast.While | ast.Match | ast.TryStar):
            return known - deleted([s])
        if isinstance(s, ast.AnnAssign) and s.value is None:
            return known
        if isinstance(s, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets: list[ast.expr] = [*s.targets] if isinstance(s, ast.Assign) else [s.target]
            targets += [s.value.target] if isinstance(s.value, ast.NamedExpr) else []
            return known | bound(targets) | _surely_read(s)
        if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return known | {s.name}
        if isinstance(s, ast.Import | ast.ImportFrom):
            return known | bound([s])
        return known | _surely_read(s)

    def _with(self, s: ast.With | ast.AsyncWith, known: Names) -> Known:
        targets = [i.optional_vars for i in s.items if i.optional_vars is not None]
        known |= bound(targets)
        if isinstance(s, ast.With) and self.lets_through(s):
            return self.block(s.body, known)
        return known - deleted(s.body)

    def _try(self, s: ast.Try, known: Names) -> Known:
        raised = known - deleted(s.body)
        body = self.block(s.body, known)
        result = self.block(s.orelse, body)
        for handler in s.handlers:
            result = _either(result, self.block(handler.body, raised))
        if result is not None:
            # what a handler has named is unbound at its end
            result -= {h.name for h in s.handlers if h.name}
            result = self.block(s.finalbody, result)
        return result


def deleted(body: list[ast.stmt]) -> Names:
    """Names that the statements may unbind."""
    nodes = [n for s in body for n in ast.walk(s)]
    names = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    handled = {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}
    return frozenset(names | handled)


def _either(a: Known, b: Known) -> Known:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _surely_read(s: ast.stmt) -> Names:
    """Names that a simple statement reads on every path: they are bound, or it has raised."""
    partly = (ast.BoolOp, ast.IfExp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp)
    if any(isinstance(n, (*partly, ast.GeneratorExp, ast.Compare)) for n in ast.walk(s)):
        return frozenset()
    return reads(s)
