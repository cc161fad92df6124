"""Statements that stay Python: their blocks are cut, and their expressions' pieces compiled.

In: the statement, the names that are bound before it and needed after it. Out: the same statement,
changed in place:

    with open(path) as file:                with open(path) as file:
        y = np.exp(x) * 2           ->          y = _npjit_call_1(x)
        file.write(str(y.sum()))                file.write(str(_npjit_call_2(y)))
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import types
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.frontend.definite import deleted
from npjit.frontend.liveness import NONE, Names, bound, live_at_head, live_in, reads
from npjit.frontend.pieces import Pieces

if TYPE_CHECKING:
    from npjit.frontend.cut import Context, Cutter

# context managers that swallow no exception
_QUIET = (np.errstate, np.printoptions, open, warnings.catch_warnings, contextlib.nullcontext)


class Opened:
    """One statement that stays Python; `known` are the names surely bound before it, `after` those
    needed after it.
    """

    def __init__(self, cutter: Cutter, known: Names, after: Names, context: Context) -> None:
        self.cutter = cutter
        self.known = known
        self.after = after
        self.context = context

    def statement(self, s: ast.stmt) -> ast.stmt:
        """The statement with its blocks cut."""
        if self.cutter.marks.is_opaque(s):
            return s
        if isinstance(s, ast.If):
            s.test = self._piece(s.test, self.known)
            s.body = self._block(s.body, self.known, self.after, tail=self.context.tail)
            s.orelse = self._block(s.orelse, self.known, self.after, tail=self.context.tail)
        elif isinstance(s, ast.For | ast.AsyncFor | ast.While):
            self._loop(s)
        elif isinstance(s, ast.With | ast.AsyncWith):
            self._with(s)
        elif isinstance(s, ast.Try):
            self._try(s)
        elif not isinstance(s, ast.Match | ast.TryStar):
            Pieces(self.cutter, self.known).visit(s)
        return s

    def _piece(self, e: ast.expr, known: Names) -> ast.expr:
        made: ast.expr = Pieces(self.cutter, known).visit(e)
        return made

    def _block(
        self,
        body: list[ast.stmt],
        known: Names | None,
        after: Names,
        seen: Names = NONE,
        tail: bool = False,
    ) -> list[ast.stmt]:
        context = type(self.context)(self.context.seen | seen, tail)
        return self.cutter.block(body, known, after, context)

    def _loop(self, s: ast.For | ast.AsyncFor | ast.While) -> None:
        head = self.known - deleted(s.body)
        needed = live_at_head(s, self.after)
        inside = head
        if isinstance(s, ast.While):
            s.test = self._piece(s.test, head)
        else:
            s.iter = self._piece(s.iter, self.known)
            inside |= _targets(s.target)
        s.body = self._block(s.body, inside, needed)
        s.orelse = self._block(s.orelse, head, self.after)

    def _with(self, s: ast.With | ast.AsyncWith) -> None:
        known = self.known
        for item in s.items:
            item.context_expr = self._piece(item.context_expr, known)
            known |= _targets(item.optional_vars)
        quiet = is_quiet(s, self.cutter.scope)
        s.body = self._block(s.body, known, self.after, NONE if quiet else self.after)

    def _try(self, s: ast.Try) -> None:
        final, at_last = live_in(s.finalbody, self.after), live_in(s.finalbody, NONE)
        handlers = [self.after, *(reads(h.type) | live_in(h.body, final) for h in s.handlers)]
        caught = frozenset().union(*handlers) if s.handlers else NONE
        raised = self.known - deleted(s.body)
        tried = self.cutter.bindings.block(s.body, self.known)
        for_else = live_in(s.orelse, final)
        s.body = self._block(s.body, self.known, for_else | caught | final, caught | at_last)
        s.orelse = self._block(s.orelse, tried, final, at_last)
        for h in s.handlers:
            named = frozenset([h.name] if h.name else [])
            h.body = self._block(h.body, raised | named, final, at_last)
        everywhere = raised - deleted([*s.orelse, *(b for h in s.handlers for b in h.body)])
        s.finalbody = self._block(s.finalbody, everywhere, self.after)


def is_quiet(s: ast.With | ast.AsyncWith, scope: dict[str, Any]) -> bool:
    """Whether the context managers of a with statement are known to swallow no exception."""
    return all(
        isinstance(i.context_expr, ast.Call) and _named(i.context_expr.func, scope) in _QUIET
        for i in s.items
    )


def _named(e: ast.expr, scope: dict[str, Any]) -> Any:
    """The object of a global name, or of a module's member."""
    if isinstance(e, ast.Name):
        return scope.get(e.id, getattr(builtins, e.id, None))
    if not isinstance(e, ast.Attribute):
        return None
    owner = _named(e.value, scope)
    return vars(owner).get(e.attr) if isinstance(owner, types.ModuleType) else None


def _targets(target: ast.expr | None) -> Names:
    return bound([target]) if target is not None else NONE
