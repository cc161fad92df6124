"""Reads of local names that may be unbound.

`flag_unbound(function)` follows every local name that some path leaves without a value and that is
read all the same. A flag goes with it, set where the name is bound, and each such read asks for it:

    if x[0] > 0:                     if x[0] > 0:
        u = x * 2                        u = x * 2; _nj_has_u = True
    return u                ->       return _nj.given(u, _nj_has_u)

Where the path is known while tracing the flag is a Python bool and nothing is left of it; else it
becomes a check, whose failure lets Python raise its UnboundLocalError. The body of a `for` loop
that nothing is around counts as run: a loop of no trips is a check of its own there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from npjit.frontend.definite import Bindings, Known, deleted
from npjit.frontend.jumps import CONTROL, assign
from npjit.frontend.liveness import NONE, Names, bound

FLAG = "_nj_has_"

_SCOPES = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.GeneratorExp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)


def flag_unbound(function: ast.FunctionDef, parameters: Names) -> None:
    """Give the function, in place, a flag for each name that is read where it may be unbound."""
    reads = _Reads(bound(function.body) - _elsewhere(function))
    reads.block(function.body, parameters)
    if reads.unsure:
        names = frozenset(n.id for n in reads.unsure.values())
        flags = _Flags(names, reads.unsure)
        head = [assign(FLAG + n, ast.Constant(n in parameters), function.body[0]) for n in names]
        function.body = [*sorted(head, key=ast.unparse), *flags.block(function.body)]


def _elsewhere(function: ast.FunctionDef) -> Names:
    """Names that are bound inside expressions or by handlers: these are not followed."""
    nodes = list(ast.walk(function))
    named = {n.target.id for n in nodes if isinstance(n, ast.NamedExpr)}
    return frozenset(named | {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name})


@dataclass
class _Reads(Bindings):
    """Definite assignment that keeps the reads it cannot vouch for, by their identity."""

    names: Names
    unsure: dict[int, ast.Name] = field(default_factory=dict)
    # what is surely bound at each break out of the loop at hand
    breaks: list[Names] = field(default_factory=list)
    # how many branches and loops are around
    depth: int = 0

    def __post_init__(self) -> None:
        super().__init__(lambda s: True)

    def after(self, s: ast.stmt, known: Names) -> Known:
        """The names surely bound after one statement; its reads are looked at."""
        self.depth += isinstance(s, ast.If | ast.For | ast.While)
        try:
            return self._after(s, known)
        finally:
            self.depth -= isinstance(s, ast.If | ast.For | ast.While)

    def _after(self, s: ast.stmt, known: Names) -> Known:
        if isinstance(s, ast.For | ast.While):
            return self._loop(s, known)
        if isinstance(s, ast.Break):
            self.breaks.append(known)
        for n in _own_reads(s):
            if n.id in self.names and n.id not in known:
                self.unsure[id(n)] = n
        return super().after(s, known)

    def _loop(self, s: ast.For | ast.While, known: Names) -> Known:
        self.after(ast.Expr(s.iter if isinstance(s, ast.For) else s.test), known)
        known -= deleted([s])
        outer, self.breaks = self.breaks, []
        given = bound([s.target]) if isinstance(s, ast.For) else NONE
        end = self.block(s.body, known | given)
        if isinstance(s, ast.While) or end is None or self.depth > 1:
            end = known
        end = self.block(s.orelse, end)
        for found in self.breaks:
            end = found if end is None else end & found
        self.breaks = outer
        return end


def _own_reads(s: ast.stmt) -> list[ast.Name]:
    """The names that a statement reads itself, not in its blocks, nor in functions of its own."""
    found: list[ast.Name] = []
    queue: list[ast.AST] = [c for c in ast.iter_child_nodes(s) if not isinstance(c, ast.stmt)]
    if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
        found.append(s.target)
    while queue:
        n = queue.pop()
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load | ast.Del):
            found.append(n)
        inner: list[ast.AST] = []
        if isinstance(n, _COMPREHENSIONS):
            inner = [n.generators[0].iter]
        elif not isinstance(n, (*_SCOPES, ast.stmt)):
            inner = list(ast.iter_child_nodes(n))
        queue += inner
    return found


class _Flags(ast.NodeTransformer):
    """Sets the flags and asks for them."""

    def __init__(self, names: Names, unsure: dict[int, ast.Name]) -> None:
        self.names = names
        self.unsure = unsure
        # reads that a statement in front asks for: what stands in their place must stay a name
        self.early: list[ast.Name] = []

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, with what their flags need before and after each."""
        made: list[ast.stmt] = []
        for s in body:
            for name in ("body", "orelse", "finalbody"):
                if getattr(s, name, None) and not isinstance(s, _SCOPES):
                    setattr(s, name, self.block(getattr(s, name)))
            for handler in getattr(s, "handlers", []):
                handler.body = self.block(handler.body)
            given = self._given(s)
            if isinstance(s, ast.For):
                s.body = [*self._set(given, True, s), *s.body]
            self.early = self._named(s)
            asked = [ast.copy_location(ast.Expr(self._ask(n)), s) for n in self.early]
            self._rewrite(s)
            made += [*asked, s]
            if not isinstance(s, ast.For):
                made += self._set(given, True, s)
            made += self._set(deleted([s]) if isinstance(s, ast.Delete) else NONE, False, s)
        return made

    def _given(self, s: ast.stmt) -> Names:
        """The flagged names that the statement itself binds."""
        if isinstance(s, ast.For):
            return self.names & bound([s.target])
        if isinstance(s, ast.If | ast.While | ast.Try | ast.Delete):
            return NONE
        if isinstance(s, ast.AnnAssign) and s.value is None:
            return NONE
        if isinstance(s, ast.With):
            targets = [i.optional_vars for i in s.items if i.optional_vars is not None]
            return self.names & bound(targets)
        if isinstance(s, ast.FunctionDef | ast.ClassDef):
            return self.names & {s.name}
        return self.names & bound([s])

    def _named(self, s: ast.stmt) -> list[ast.Name]:
        """Unsure reads of a statement that must stay plain names: owners of items and methods."""
        if not isinstance(s, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Delete):
            return []
        owners = [n.value for n in ast.walk(s) if isinstance(n, ast.Subscript | ast.Attribute)]
        owners += [s.target] if isinstance(s, ast.AugAssign) else []
        owners += s.targets if isinstance(s, ast.Delete) else []
        return [n for n in owners if isinstance(n, ast.Name) and id(n) in self.unsure]

    def _rewrite(self, s: ast.stmt) -> None:
        """Wrap the other unsure reads of the statement's own expressions."""
        for name, value in ast.iter_fields(s):
            if isinstance(value, ast.expr):
                setattr(s, name, self.visit(value))
            elif isinstance(value, list) and value and not isinstance(value[0], ast.stmt):
                value[:] = [self.visit(v) if isinstance(v, ast.AST) else v for v in value]

    def visit_Name(self, n: ast.Name) -> ast.expr:
        """A read that asks first."""
        if id(n) in self.unsure and not any(n is e for e in self.early):
            return ast.copy_location(self._ask(n), n)
        return n

    def _ask(self, n: ast.Name) -> ast.Call:
        value, flag = ast.Name(n.id, ast.Load()), ast.Name(FLAG + n.id, ast.Load())
        given = ast.Attribute(ast.Name(CONTROL, ast.Load()), "given", ast.Load())
        return ast.Call(given, [value, flag], [])

    def _set(self, names: Names, value: bool, s: ast.stmt) -> list[ast.stmt]:
        return [assign(FLAG + n, ast.Constant(value), s) for n in sorted(self.names & names)]
