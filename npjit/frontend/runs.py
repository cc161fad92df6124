"""A run of statements that becomes one compiled segment of a cut function.

In: statements, one after the other, that hold nothing that stays Python. Out: the statement that
calls the segment in their place:

    run.add(y = x * 2); run.add(z = y + x); run.ended({"z"})    ->    z = _npjit_call_1(x)
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from npjit.frontend.definite import Known
from npjit.frontend.liveness import NONE, Names, bound, live_before, live_in
from npjit.frontend.pieces import computes

if TYPE_CHECKING:
    from npjit.frontend.cut import Cutter


class Run:
    """The statements gathered so far. `known` is surely bound after them, `sealed` are the names of
    which every binding must be seen outside before anything else happens.
    """

    def __init__(self, cutter: Cutter, known: Names, sealed: Names) -> None:
        self.cutter = cutter
        self.known = known
        self.sealed = sealed
        self.body: list[ast.stmt] = []

    def takes(self, s: ast.stmt, after: Names) -> bool:
        """Whether the statement can join: what it needs is bound, and what it gives will be."""
        given = bound([s]) & after
        reached = self._after(s)
        if reached is None or not given <= reached:
            return False
        if isinstance(s, ast.If | ast.For | ast.While) and bound([s]) & self.sealed:
            return False
        return self.cutter.own(live_before(s, given)) <= self.known

    def takes_rest(self, rest: list[ast.stmt]) -> bool:
        """The same for all the statements that are left of the function."""
        if not all(self.cutter.compilable(s, leaves=True) for s in rest):
            return False
        if bound(rest) & self.sealed:
            return False
        return self.cutter.own(live_in(rest, NONE)) <= self.known

    def add(self, s: ast.stmt) -> None:
        """Take the statement in."""
        reached = self._after(s)
        assert reached is not None
        self.body.append(s)
        self.known = reached

    def _after(self, s: ast.stmt) -> Known:
        return self.cutter.bindings.after(s, self.known)

    def ended(self, after: Names) -> list[ast.stmt]:
        """The statements in place of the run; a new one begins."""
        body, behind = self._computing(self.body)
        self.body = []
        if not body:
            return behind
        # what the last, uncompiled statements need is needed after the segment
        given = tuple(sorted(bound(body) & live_in(behind, after)))
        names: list[ast.expr] = [ast.Name(n, ast.Load()) for n in given]
        result = names[0] if len(names) == 1 else ast.Tuple(names, ast.Load())
        needed = self.cutter.own(live_in(body, frozenset(given)))
        back = [_at(ast.Return(result), body[-1])] if given else []
        call = self.cutter.segment([*body, *back], needed, body[0])
        return [_received(given, call, body[0]), *behind]

    def returned(self, rest: list[ast.stmt]) -> list[ast.stmt]:
        """The same for a run up to the end of the function."""
        body, behind = self._computing([*self.body, *rest])
        if not any(isinstance(n, ast.Return) for s in body for n in ast.walk(s)):
            self.body = body
            return self.ended(live_in(behind, NONE)) + behind
        body += behind
        call = self.cutter.segment(body, self.cutter.own(live_in(body, NONE)), body[0])
        return [_at(ast.Return(call), body[0])]

    def _computing(self, body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The statements up to the last that computes something, and those behind, which only give
        names to what there is.
        """
        last = max((i for i, s in enumerate(body, 1) if not _only_names(s)), default=0)
        computing = body[:last]
        if self.cutter.marks.is_small(computing) or not any(map(computes, computing)):
            return [], body
        return computing, body[last:]


def _only_names(s: ast.stmt) -> bool:
    """Whether a statement only gives names to what there is, or returns it."""
    if isinstance(s, ast.Pass):
        return True
    if not isinstance(s, ast.Assign | ast.Return):
        return False
    simple = (ast.Name, ast.Constant, ast.Tuple, ast.expr_context)
    return all(isinstance(n, simple) for n in list(ast.walk(s))[1:])


def _received(names: tuple[str, ...], call: ast.expr, where: ast.stmt) -> ast.stmt:
    if not names:
        return _at(ast.Expr(call), where)
    targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in names]
    target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
    return _at(ast.Assign([target], call), where)


def _at(made: ast.stmt, where: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(made, where))
