"""`match` statements as chains of conditions.

    match n:                        _nj_m_1 = n
        case 0 | 1: y = x           if _nj_m_1 == 0 or _nj_m_1 == 1: y = x
        case k: y = x * k      ->   else: k = _nj_m_1; y = x * k

Patterns are values, captures, wildcards, alternatives without captures, and sequences, of a subject
that is a tuple display or a `.shape`; a `match` with others stays.
"""

from __future__ import annotations

import ast
import copy
import itertools
from dataclasses import dataclass, field

from npjit.frontend.jumps import assign


def without_match(function: ast.FunctionDef) -> None:
    """Rewrite the statements of a function in place."""
    if any(isinstance(n, ast.Match) for n in ast.walk(function)):
        _Matches().visit(function)


class _Other(Exception):
    """A pattern of another kind."""


@dataclass
class _Case:
    """When a case holds, and what it binds."""

    tests: list[ast.expr] = field(default_factory=list)
    bindings: list[tuple[str, ast.expr]] = field(default_factory=list)

    def test(self) -> ast.expr:
        """All tests as one."""
        return self.tests[0] if len(self.tests) == 1 else ast.BoolOp(ast.And(), self.tests)


class _Matches(ast.NodeTransformer):
    def __init__(self) -> None:
        self.numbers = itertools.count(1)

    def visit_Match(self, s: ast.Match) -> ast.AST | list[ast.stmt]:
        self.generic_visit(s)
        number = next(self.numbers)
        name, hit = f"_nj_m_{number}", f"_nj_hit_{number}"
        try:
            cases = [_case(c.pattern, _load(name), _is_tuple(s.subject)) for c in s.cases]
        except _Other:
            return s
        rest: list[ast.stmt] = []
        for found, case in zip(reversed(cases), reversed(s.cases), strict=True):
            rest = _chained(found, case, rest, hit)
        made = [assign(name, s.subject, s), *rest]
        return [ast.fix_missing_locations(ast.copy_location(m, s)) for m in made]


def _is_tuple(subject: ast.expr) -> bool:
    """Whether a subject is surely a tuple."""
    is_shape = isinstance(subject, ast.Attribute) and subject.attr == "shape"
    return is_shape or isinstance(subject, ast.Tuple)


def _chained(found: _Case, case: ast.match_case, rest: list[ast.stmt], hit: str) -> list[ast.stmt]:
    """One case, the others behind it."""
    bound = [assign(name, value, case.pattern) for name, value in found.bindings]
    if case.guard is None:
        body = [*bound, *case.body]
        return [ast.If(found.test(), body, rest)] if found.tests else body
    if not found.tests:
        return [*bound, ast.If(case.guard, case.body, rest)]
    return [
        assign(hit, found.test(), case.pattern),
        ast.If(_load(hit), [*bound, assign(hit, case.guard, case.pattern)], []),
        ast.If(_load(hit), case.body, rest),
    ]


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _case(pattern: ast.pattern, subject: ast.expr, is_tuple: bool) -> _Case:
    """What one pattern asks of a subject."""
    subject = copy.deepcopy(subject)  # each place in the code has nodes of its own
    if isinstance(pattern, ast.MatchValue):
        return _Case([ast.Compare(subject, [ast.Eq()], [pattern.value])])
    if isinstance(pattern, ast.MatchSingleton):
        return _Case([ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)])])
    if isinstance(pattern, ast.MatchAs):
        found = _Case() if pattern.pattern is None else _case(pattern.pattern, subject, is_tuple)
        found.bindings += [(pattern.name, subject)] if pattern.name is not None else []
        return found
    if isinstance(pattern, ast.MatchOr):
        sides = [_case(p, subject, is_tuple) for p in pattern.patterns]
        if any(s.bindings or not s.tests for s in sides):
            raise _Other
        return _Case([ast.BoolOp(ast.Or(), [s.test() for s in sides])])
    if isinstance(pattern, ast.MatchSequence) and is_tuple:
        return _sequence(pattern, subject)
    raise _Other


def _sequence(pattern: ast.MatchSequence, subject: ast.expr) -> _Case:
    if any(isinstance(p, ast.MatchStar) for p in pattern.patterns):
        raise _Other
    count = ast.Call(ast.Attribute(subject, "__len__", ast.Load()), [], [])
    found = _Case([ast.Compare(count, [ast.Eq()], [ast.Constant(len(pattern.patterns))])])
    for k, part in enumerate(pattern.patterns):
        inner = _case(part, ast.Subscript(subject, ast.Constant(k), ast.Load()), False)
        found.tests += inner.tests
        found.bindings += inner.bindings
    return found
