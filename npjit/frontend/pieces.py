"""Compiled expressions inside a statement that stays Python.

In: the statement. Out: the same with calls of segments in place of its largest expressions that
hold nothing that stays Python. They are evaluated where they stand, so that order and short
circuits are Python's:

    print("loss", np.sum(x ** 2))    ->    print("loss", _npjit_call_1(x))
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING, Any

from npjit.frontend.liveness import NONE, Names, bound, reads
from npjit.frontend.marks import SCOPES, key_of

if TYPE_CHECKING:
    from npjit.frontend.cut import Cutter

# the name by which a cut function asks for the compiled form of a function that it calls
THROUGH = "_npjit_compiled"

_COMPUTING = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.AugAssign, ast.For, ast.While)
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_LATER = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NO_PIECE = (ast.Starred, ast.Slice, ast.JoinedStr, ast.FormattedValue, ast.Lambda, *_LATER)
_NUMBERS = frozenset(["abs", "all", "any", "complex", "divmod", "float", "int", "max", "min"])
_OF_NUMBERS = _NUMBERS | {"bool", "pow", "round", "sum"}


def computes(node: ast.AST) -> bool:
    """Whether anything in it may be an operation on arrays."""
    return any(isinstance(n, _COMPUTING) for n in ast.walk(node))


def is_builtin_call(e: ast.expr, scope: dict[str, Any]) -> bool:
    """Whether it calls a builtin that gives no number: range, zip, print."""
    name = e.func.id if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) else ""
    return name not in _OF_NUMBERS and name not in scope and hasattr(builtins, name)


def may_be_piece(e: ast.expr, scope: dict[str, Any]) -> bool:
    """Whether an expression has a value by itself that may be worth compiling."""
    if isinstance(e, _NO_PIECE) or not isinstance(getattr(e, "ctx", ast.Load()), ast.Load):
        return False
    if isinstance(e, ast.Tuple) and any(isinstance(n, ast.Slice) for n in e.elts):
        return False
    return computes(e) and not is_builtin_call(e, scope)


class Pieces(ast.NodeTransformer):
    """Puts segments into what stays Python; `known` are the names that are surely bound, `items`
    those that comprehensions around bind.
    """

    def __init__(self, cutter: Cutter, known: Names, items: Names = NONE) -> None:
        self.cutter = cutter
        self.known = known
        self.items = items

    def visit(self, node: ast.AST) -> Any:
        """The node with its pieces compiled."""
        marks = self.cutter.marks
        if isinstance(node, SCOPES) or marks.is_opaque(node):
            return node
        if isinstance(node, ast.expr) and key_of(node) in marks.small:
            return node
        if isinstance(node, _LATER):
            return self._comprehension(node)
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value is not None else None
            return node
        if isinstance(node, ast.expr) and self._is_known_piece(node):
            body = ast.fix_missing_locations(ast.copy_location(ast.Return(node), node))
            return self.cutter.segment([body], self._needed(node), node)
        return self._call(node) if isinstance(node, ast.Call) else self.generic_visit(node)

    def _call(self, node: ast.Call) -> ast.Call:
        """What is called stays as it is, but for the object whose method it is."""
        through = key_of(node) in self.cutter.marks.through
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        if through:
            name = ast.Name(THROUGH, ast.Load())
            node.func = ast.copy_location(ast.Call(name, [node.func], []), node.func)
            ast.fix_missing_locations(node)
        return node

    def _is_known_piece(self, e: ast.expr) -> bool:
        return self.cutter.is_piece(e) and self._needed(e) <= self.known

    def _needed(self, e: ast.expr) -> Names:
        names = reads(e)
        return self.cutter.own(names) | (names & self.items)

    def _comprehension(self, node: _Comprehension) -> ast.expr:
        """The first iterable belongs to what is around; the rest has the items' names, too."""
        first, *others = node.generators
        first.iter = self.visit(first.iter)
        targets: list[ast.expr] = [g.target for g in node.generators]
        names = bound(targets)
        inner = Pieces(self.cutter, self.known | names, self.items | names)
        first.ifs = [inner.visit(e) for e in first.ifs]
        for g in others:
            g.iter, g.ifs = inner.visit(g.iter), [inner.visit(e) for e in g.ifs]
        if isinstance(node, ast.DictComp):
            node.key, node.value = inner.visit(node.key), inner.visit(node.value)
        else:
            node.elt = inner.visit(node.elt)
        return node
