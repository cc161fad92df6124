"""Structured control flow: a function body without return, break and continue.

`structure(body)` rewrites the statements of one function so that jumps become flags and guarded
blocks:

    for i in range(n):                  for i in range(n):      (stops when _nj_brk_1 is true)
        if x[i] > t: break        ->        if x[i] > t: _nj_brk_1 = True
        k += 1                              else: k += 1

The rest of a block whose `if` always leaves in one branch moves into the other branch; where both
may go on, it is guarded by the flags. A loop carries the flags that stop it in its `stops`
attribute.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, field

CONTROL = "_nj"
RESULT = "_nj_ret"
DONE = "_nj_done"


class Unstageable(Exception):
    """Control flow that is left to Python (jumps out of try or with, match, yield)."""


@dataclass
class _Loop:
    """The loop around the statements at hand."""

    number: int

    @property
    def broken(self) -> str:
        return f"_nj_brk_{self.number}"

    @property
    def skipped(self) -> str:
        return f"_nj_cnt_{self.number}"


@dataclass
class _Block:
    """Rewritten statements; flags that may have been set in them; whether control can reach their
    end.
    """

    body: list[ast.stmt]
    flags: set[str] = field(default_factory=set)
    falls: bool = True


def structure(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a function, ending in one `return _nj_ret`."""
    structurer = _Structurer()
    block = structurer.block([*body, *_located(ast.Return(ast.Constant(None)), body[-1])], None)
    head = assign(DONE, ast.Constant(False), body[0])
    tail = ast.copy_location(ast.Return(_name(RESULT)), body[-1])
    return [head, *block.body, tail]


class _Structurer:
    def __init__(self) -> None:
        self.numbers = itertools.count(1)

    def block(self, body: list[ast.stmt], loop: _Loop | None) -> _Block:
        done = _Block([])
        for position, s in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(s, ast.If):
                return self._if(done, s, rest, loop)
            if isinstance(s, (ast.For, ast.While)):
                return self._loop(done, s, rest, loop)
            jump = self._jump(s, loop)
            if jump is not None:
                done.body += jump.body
                return _Block(done.body, done.flags | jump.flags, False)
            _refuse_inner_jumps(s)
            done.body.append(self._inner(s, loop))
        return done

    def _jump(self, s: ast.stmt, loop: _Loop | None) -> _Block | None:
        if isinstance(s, ast.Return):
            value = s.value if s.value is not None else ast.Constant(None)
            made = [assign(RESULT, value, s), assign(DONE, ast.Constant(True), s)]
            return _Block(made, {DONE})
        if isinstance(s, ast.Break):
            assert loop is not None
            return _Block([assign(loop.broken, ast.Constant(True), s)], {loop.broken})
        if isinstance(s, ast.Continue):
            assert loop is not None
            return _Block([assign(loop.skipped, ast.Constant(True), s)], {loop.skipped})
        if isinstance(s, ast.Raise):
            return _Block([s])
        return None

    def _inner(self, s: ast.stmt, loop: _Loop | None) -> ast.stmt:
        """Blocks inside with and try statements, which hold no jumps of their own."""
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(s, name, None)
            if inner and isinstance(s, (ast.With, ast.Try)):
                setattr(s, name, self.block(inner, loop).body)
        for handler in getattr(s, "handlers", []):
            handler.body = self.block(handler.body, loop).body
        return s

    def _if(self, done: _Block, s: ast.If, rest: list[ast.stmt], loop: _Loop | None) -> _Block:
        then, other = self.block(s.body, loop), self.block(s.orelse, loop)
        flags = then.flags | other.flags
        if then.falls and other.falls and flags:
            after = self.block(rest, loop)
            guarded = _if(_none_of(flags, s), after.body, [], s) if after.body else []
            made = [*_if(s.test, then.body, other.body, s), *guarded]
            return _Block(done.body + made, done.flags | flags | after.flags, True)
        if then.falls and other.falls:
            after = self.block(rest, loop)
            made = _if(s.test, then.body, other.body, s)
            return _Block(done.body + made + after.body, done.flags | after.flags, after.falls)
        falls = False
        for branch in (then, other):
            if branch.falls:
                after = self.block(rest, loop)
                branch.body += _guarded(branch.flags, after.body, s)
                flags |= after.flags
                falls = after.falls or bool(branch.flags)
        made = _if(s.test, then.body, other.body, s)
        return _Block(done.body + made, done.flags | flags, falls)

    def _loop(
        self,
        done: _Block,
        s: ast.For | ast.While,
        rest: list[ast.stmt],
        outer: _Loop | None,
    ) -> _Block:
        loop = _Loop(next(self.numbers))
        inner = self.block(s.body, loop)
        if loop.skipped in inner.flags:
            inner.body.insert(0, assign(loop.skipped, ast.Constant(False), s))
        stops = [f for f in (loop.broken, DONE) if f in inner.flags]
        s.body = inner.body
        orelse, s.orelse = s.orelse, []
        s.stops = stops  # type: ignore[union-attr]
        made: list[ast.stmt] = [assign(loop.broken, ast.Constant(False), s), s]
        if loop.broken not in inner.flags:
            made.pop(0)
        if orelse:
            made += _guarded(set(stops), orelse, s, visit=self, loop=outer)
        after = self.block(rest, outer)
        leaves = {DONE} & set(stops)
        made += _guarded(leaves, after.body, s)
        return _Block(
            done.body + made, done.flags | leaves | after.flags, after.falls or bool(leaves)
        )


def _guarded(
    flags: set[str],
    body: list[ast.stmt],
    where: ast.stmt,
    visit: _Structurer | None = None,
    loop: _Loop | None = None,
) -> list[ast.stmt]:
    """`body`, run only when none of the flags is set."""
    if visit is not None:
        inner = visit.block(body, loop)
        if inner.flags:
            raise Unstageable("a jump in a loop's else clause")
        body = inner.body
    if not flags or not body:
        return body
    return _if(_none_of(flags, where), body, [], where)


def _none_of(flags: set[str], where: ast.stmt) -> ast.expr:
    names: list[ast.expr] = [_name(f) for f in sorted(flags)]
    any_set = names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)
    return ast.copy_location(ast.UnaryOp(ast.Not(), any_set), where)


def _if(
    test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], where: ast.stmt
) -> list[ast.stmt]:
    made = ast.If(test, body or [ast.copy_location(ast.Pass(), where)], orelse)
    return [ast.copy_location(made, where)]


def assign(name: str, value: ast.expr, where: ast.AST) -> ast.stmt:
    """`name = value` at a node's place."""
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.fix_missing_locations(ast.copy_location(made, where))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _located(node: ast.stmt, where: ast.stmt) -> list[ast.stmt]:
    return [ast.fix_missing_locations(ast.copy_location(node, where))]


def _refuse_inner_jumps(s: ast.stmt) -> None:
    """Unstageable when a compound statement that is kept whole holds a jump out of itself."""
    if isinstance(s, ast.Match):
        raise Unstageable("match")
    if isinstance(s, (ast.With, ast.Try)):
        for n in _own_nodes(s):
            if isinstance(n, (ast.Return, ast.Break, ast.Continue)):
                raise Unstageable("a jump out of with or try")


def _own_nodes(s: ast.AST) -> list[ast.AST]:
    """The nodes of a statement, those of nested functions and classes left out."""
    found: list[ast.AST] = []
    stack = list(ast.iter_child_nodes(s))
    while stack:
        n = stack.pop()
        found.append(n)
        if not isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(ast.iter_child_nodes(n))
    return found
