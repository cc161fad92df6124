"""Statements in A-normal form around what stays Python.

In: a simple statement of which a part stays Python. Out: statements that do the same in the same
order, that part alone in one of them, so that the others can be compiled:

    y = np.exp(x) * rng.normal(size=n) + np.sin(x)
        ->  _npjit_3_4 = np.exp(x)
            _npjit_3_16 = rng.normal(size=n)
            y = _npjit_3_4 * _npjit_3_16 + np.sin(x)

Where Python decides whether, or how often, a part is evaluated (`and`, `if else`, comprehensions),
the whole expression stays Python. Names of temporaries tell the place, so that they stay the same
when further parts are found.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

# functions and methods that write into an argument of theirs
_WRITERS = frozenset(["copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask", "at"])
_WRITERS |= {"fill", "itemset", "partition", "resize", "setfield", "setflags", "sort", "byteswap"}

Test = Callable[[Any], bool]


class NormalForm:
    """Rewrites the statements of one function.

    `stays(node)` says whether a node (not what is in it) is Python's, `is_piece(expression)`
    whether it can be compiled; `is_fixed(name)` whether nothing that runs inside an expression can
    bind the name anew; `scope` is the module's dictionary.
    """

    def __init__(
        self, stays: Test, is_piece: Test, is_fixed: Callable[[str], bool], scope: dict[str, Any]
    ) -> None:
        self.stays = stays
        self.is_piece = is_piece
        self.is_fixed = is_fixed
        self.scope = scope
        self.taken = set(scope)
        self.before: list[ast.stmt] = []

    def statement(self, s: ast.stmt) -> list[ast.stmt]:
        """The statements in place of `s`; the last one is `s` itself, changed in place."""
        self.before = []
        value = getattr(s, "value", None)
        if isinstance(s, ast.Assign | ast.AnnAssign | ast.Expr | ast.Return) and value is not None:
            s.value = self._value(s, value)
        elif isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
            s.value = self.operand(s.value) if self.is_fixed(s.target.id) else s.value
        return [*self.before, s]

    def header(self, e: ast.expr, apart: bool) -> tuple[list[ast.stmt], ast.expr]:
        """The same for an expression that a compound statement evaluates once, at its start;
        `apart`: all of it is evaluated before.
        """
        self.before = []
        if apart:
            return self.before, self.hoisted(e)
        return self.before, self._ordered(e) if self.stays(e) else self.operand(e)

    def _value(self, s: ast.stmt, value: ast.expr) -> ast.expr:
        if isinstance(s, ast.Assign | ast.AnnAssign):
            targets = s.targets if isinstance(s, ast.Assign) else [s.target]
            if any(self._within(t) for t in targets):
                return self.hoisted(value)  # evaluated before the targets' own parts
        if self.stays(value) or _operands(value) is None:
            return self._ordered(value)
        return self.operand(value)

    # ------------------------------------------------------------ expressions

    def operand(self, e: ast.expr) -> ast.expr:
        """`e` with what stays Python in it evaluated before, and all that comes before that."""
        if not self._within(e):
            return e
        if isinstance(e, ast.Name):
            return self.hoisted(e)
        ordered = self._ordered(e)
        return self.hoisted(ordered) if self.stays(e) or _operands(e) is None else ordered

    def hoisted(self, e: ast.expr) -> ast.expr:
        """The name of a temporary that holds `e`; `e` itself where it cannot change meanwhile."""
        if isinstance(e, ast.Constant) or (isinstance(e, ast.Name) and self.is_fixed(e.id)):
            return e
        name = f"_npjit_{e.lineno}_{e.col_offset}_{e.end_lineno}_{e.end_col_offset}"
        while name in self.taken:
            name += "_"  # in f-strings, two expressions may claim one place
        self.taken.add(name)
        made = ast.Assign([ast.Name(name, ast.Store())], e)
        self.before.append(ast.fix_missing_locations(ast.copy_location(made, e)))
        return ast.copy_location(ast.Name(name, ast.Load()), e)

    def _within(self, e: ast.AST) -> bool:
        return any(self.stays(n) for n in ast.walk(e))

    def _ordered(self, e: ast.expr) -> ast.expr:
        """`e` with its operands, in the order of their evaluation, made into names where needed."""
        places = _operands(e) or []
        if isinstance(e, ast.JoinedStr):
            all(map(self._is_text_first, e.values))
        last = max((i for i, p in enumerate(places) if self._within(p.value)), default=-1)
        for i, place in enumerate(places[: last + 1]):
            if i < last and not self._within(place.value):
                place.put(self._held(place))
            else:
                made = self.operand(place.value)
                place.put(self.hoisted(made) if i < last else made)
        if self.stays(e):
            self._pieces_first(places[last + 1 :])
        return e

    def _pieces_first(self, places: list[_Place]) -> None:
        """Evaluate the first operands that can be compiled before the expression itself, where they
        join what is compiled before it: nothing compiled binds a name or looks at one.
        """
        for place in places:
            e = place.value
            if self.is_piece(e):
                place.put(self.hoisted(e))
            elif isinstance(e, ast.JoinedStr):
                if not all(map(self._is_text_first, e.values)):
                    return
            elif not (place.is_callee or isinstance(e, ast.Name | ast.Constant)):
                return

    def _is_text_first(self, part: ast.expr) -> bool:
        """Whether a part of an f-string leaves its place to the next; its own piece is evaluated
        before, if it does not write into what is made into text before it.
        """
        if not isinstance(part, ast.FormattedValue):
            return True
        if part.format_spec is not None and not _is_constant(part.format_spec):
            return False
        if self.is_piece(part.value) and self._only_reads(part.value):
            part.value = self.hoisted(part.value)
        return isinstance(part.value, ast.Name | ast.Constant)

    def _only_reads(self, e: ast.expr) -> bool:
        """Whether an expression that is compiled surely writes into no array."""
        for n in ast.walk(e):
            if not isinstance(n, ast.Call):
                continue
            name = n.func.attr if isinstance(n.func, ast.Attribute) else ""
            known = name and (self._is_module(n.func.value) or hasattr(np.ndarray, name))  # type: ignore[attr-defined]
            known = known or self._is_builtin(n.func)
            if not known or name in _WRITERS or any(k.arg in ("out", None) for k in n.keywords):
                return False
        return True

    def _held(self, place: _Place) -> ast.expr:
        """The operand, evaluated before those that follow it."""
        e = place.value
        if not place.is_callee:
            return self.hoisted(e)
        if isinstance(e, ast.Attribute):
            if self._is_module(e.value):
                return e
            if hasattr(np.ndarray, e.attr):
                e.value = self.hoisted(e.value)
                return e
        return e if self._is_builtin(e) else self.hoisted(e)

    def _is_builtin(self, e: ast.expr) -> bool:
        return isinstance(e, ast.Name) and e.id not in self.scope and hasattr(builtins, e.id)

    def _is_module(self, e: ast.expr) -> bool:
        """Whether the expression names a module, `np.linalg` say."""
        names: list[str] = []
        while isinstance(e, ast.Attribute):
            names.insert(0, e.attr)
            e = e.value
        if not isinstance(e, ast.Name) or self.is_fixed(e.id):
            return False
        value = self.scope.get(e.id)
        for name in names:
            value = vars(value).get(name) if isinstance(value, ModuleType) else None
        return isinstance(value, ModuleType)


class _Place:
    """Where an operand stands in its expression."""

    def __init__(self, node: ast.AST, name: str, index: int | None = None) -> None:
        self.node = node
        self.name = name
        self.index = index

    @property
    def is_callee(self) -> bool:
        return isinstance(self.node, ast.Call) and self.name == "func"

    @property
    def value(self) -> ast.expr:
        found: Any = getattr(self.node, self.name)
        expression: ast.expr = found if self.index is None else found[self.index]
        return expression

    def put(self, e: ast.expr) -> None:
        if self.index is None:
            setattr(self.node, self.name, e)
        else:
            getattr(self.node, self.name)[self.index] = e


def _operands(e: ast.expr) -> list[_Place] | None:
    """The operands in the order of evaluation; None where they are not all evaluated, once each."""
    if isinstance(e, ast.BinOp):
        return [_Place(e, "left"), _Place(e, "right")]
    if isinstance(e, ast.UnaryOp):
        return [_Place(e, "operand")]
    if isinstance(e, ast.Compare) and len(e.ops) == 1:
        return [_Place(e, "left"), _Place(e, "comparators", 0)]
    if isinstance(e, ast.Attribute | ast.YieldFrom | ast.Await | ast.NamedExpr):
        return [_Place(e, "value")]
    if isinstance(e, ast.Yield):
        return [_Place(e, "value")] if e.value is not None else []
    if isinstance(e, ast.Subscript) and not any(
        isinstance(n, ast.Slice) for n in ast.walk(e.slice)
    ):
        return [_Place(e, "value"), _Place(e, "slice")]
    if isinstance(e, ast.Tuple | ast.List) and not _starred(e.elts):
        return [_Place(e, "elts", i) for i in range(len(e.elts))]
    if isinstance(e, ast.Call) and not _starred(e.args) and all(k.arg for k in e.keywords):
        named = [_Place(k, "value") for k in e.keywords]
        return [_Place(e, "func"), *(_Place(e, "args", i) for i in range(len(e.args))), *named]
    return None


def _starred(nodes: list[ast.expr]) -> bool:
    return any(isinstance(n, ast.Starred) for n in nodes)


def _is_constant(e: ast.expr) -> bool:
    return not any(isinstance(n, ast.FormattedValue) for n in ast.walk(e))
