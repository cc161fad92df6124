"""What stays Python in a function that cannot be captured whole, learned from failed traces.

In: a `NotCaptured` and the statements that were traced. Out: marks on syntax nodes, by their place
in the source, so that they hold for every copy of the tree:

    marks.learn(error, body)     ->  True; `marks.of(call)` is then "print() is called"
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass, field

from npjit.frontend.namespace import TracedGlobals
from npjit.ops.errors import NotCaptured

Key = tuple[str, int, int, int, int]
Span = tuple[tuple[int, int], tuple[int, int]]

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
# expressions that Python can evaluate by themselves, before the rest of their statement
_PARTS = (
    ast.Call,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Subscript,
    ast.Attribute,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.List,
    ast.Tuple,
    ast.Dict,
    ast.Set,
    ast.JoinedStr,
)


def key_of(node: ast.AST) -> Key:
    """What a node and its copies have in common: kind and place."""
    (line, column), (end_line, end_column) = span_of(node)
    return type(node).__name__, line, column, end_line, end_column


def span_of(node: ast.AST) -> Span:
    """First and last (line, column) of a node that has a place."""
    line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
    end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
    return (line, column), (end_line or line, end_column or column)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The node and everything in it that runs when it runs: no insides of functions and classes."""
    yield node
    if not isinstance(node, SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from own_nodes(child)


@dataclass
class Marks:
    """The marks on one function's source.

    python   nodes that stay Python, with the reason ("" where it is not worth telling); their parts
             may be compiled
    opaque   nodes of which nothing is compiled
    small    nodes that are not worth a segment by themselves
    through  calls of functions that may be compiled, or cut, by themselves
    starts   statements that begin a segment of their own
    names    local names whose values no compiled code takes
    """

    python: dict[Key, str] = field(default_factory=dict)
    opaque: set[Key] = field(default_factory=set)
    small: set[Key] = field(default_factory=set)
    through: set[Key] = field(default_factory=set)
    starts: set[Key] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)

    def stays(self, node: ast.AST) -> bool:
        """Whether the node itself is marked as Python's."""
        if isinstance(node, ast.Name):
            return node.id in self.names
        return isinstance(node, ast.expr | ast.stmt) and (
            key_of(node) in self.python or key_of(node) in self.opaque
        )

    def is_opaque(self, node: ast.AST) -> bool:
        """Whether nothing inside the node is compiled."""
        return isinstance(node, ast.expr | ast.stmt) and key_of(node) in self.opaque

    def is_small(self, nodes: list[ast.stmt]) -> bool:
        """Whether none of the statements is worth a segment."""
        return all(key_of(n) in self.small for n in nodes)

    def drop(self, body: list[ast.stmt]) -> None:
        """Compile these statements no more, unless others join them."""
        self.small |= {key_of(n) for s in body for n in _with_value(s)}

    def give_up(self, body: list[ast.stmt]) -> None:
        """Compile nothing of these statements."""
        self.opaque |= {key_of(n) for s in body for n in _with_value(s)}

    def learn(self, error: NotCaptured, body: list[ast.stmt], filename: str) -> ast.AST | None:
        """Mark what made the trace of these statements fail, and tell it; None when that is not
        among them.
        """
        path, inside = _failed_node(error, body, filename) or ([], False)
        if any(self.stays(node) for node in path):
            return None
        for node in reversed(path):
            if isinstance(node, ast.stmt):
                return node if self._keep(node, str(error)) else None
            if _is_part(node, path):
                self.python[key_of(node)] = str(error)
                if inside and isinstance(node, ast.Call):
                    self.through.add(key_of(node))
                return node
        return None

    def spread(self, call: ast.Call, body: list[ast.stmt], local: frozenset[str]) -> None:
        """Mark the further calls of what a marked call calls, where that is a builtin, or belongs
        to a global: print, or rng.normal. They would break, too. What a function of the user's
        does inside may depend on its arguments.
        """
        if key_of(call) in self.through:
            return
        callee = ast.unparse(call.func)
        file, _, reason = self.python[key_of(call)].partition(f":{call.lineno}: ")
        for n in (n for s in body for n in own_nodes(s) if isinstance(n, ast.Call)):
            if ast.unparse(n.func) == callee and not _names_in(n.func) & local:
                self.python.setdefault(key_of(n), f"{file}:{n.lineno}: {reason}")

    def _keep(self, s: ast.stmt, reason: str) -> bool:
        """Leave a statement to Python, but for its parts; at the second time, with them."""
        keys = [key_of(n) for n in _with_value(s)]
        if not all(k in self.python for k in keys):
            self.python.update(dict.fromkeys(keys, reason))
            return True
        if all(k in self.opaque for k in keys):
            return False
        self.opaque.update(keys)
        return True

    def divide(self, body: list[ast.stmt], reason: str) -> bool:
        """Split a segment that fails as a whole at its middle; one statement becomes Python's.
        False when nothing is left to try.
        """
        if len(body) > 1 and span_of(body[-1]) == span_of(body[-2]):
            body = body[:-1]  # the return statement of a segment
        if len(body) > 1:
            self.starts.add(key_of(body[len(body) // 2]))
            return True
        return self._keep(body[0], reason)


def _with_value(s: ast.stmt) -> list[ast.AST]:
    """The statement, and the expression that is all of it: a segment of one expression returns it,
    a temporary holds it.
    """
    value = getattr(s, "value", None)
    return [s, value] if isinstance(value, _PARTS) and span_of(value) == span_of(s) else [s]


def _names_in(e: ast.expr) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(e) if isinstance(n, ast.Name))


def _is_part(node: ast.AST, path: list[ast.AST]) -> bool:
    """Whether Python can evaluate the node by itself: no target, no name of what is called."""
    if not isinstance(node, _PARTS) or isinstance(getattr(node, "ctx", None), ast.Store):
        return False
    above = path[path.index(node) - 1] if node is not path[0] else None
    if isinstance(above, ast.Subscript) and node is above.slice:
        return not any(isinstance(n, ast.Slice) for n in ast.walk(node))
    return not (isinstance(above, ast.Call) and node is above.func)


def in_try(node: ast.AST, body: list[ast.stmt]) -> bool:
    """Whether an exception raised at the node may be caught inside these statements."""
    return any(
        isinstance(n, ast.Try | ast.With | ast.AsyncWith) and any(m is node for m in own_nodes(n))
        for s in body
        for n in own_nodes(s)
    )


def is_caught(error: NotCaptured, body: list[ast.stmt], filename: str) -> bool:
    """Whether what failed may be an exception that these statements catch."""
    found = _failed_node(error, body, filename)
    return found is not None and in_try(found[0][-1], body)


def _failed_node(
    error: NotCaptured, body: list[ast.stmt], filename: str
) -> tuple[list[ast.AST], bool] | None:
    """The innermost own node where the trace failed, with the nodes around it, and whether it
    failed inside a function called there.
    """
    found: tuple[list[ast.AST], bool] | None = None
    for code, line, span in _frames(error):
        path = _path(body, line, span) if code.co_filename == filename else None
        if path is not None:
            found = (path, False)
        elif found is not None:
            found = (found[0], True)
    if found is None and error.where.startswith(f"{filename}:"):
        path = _path(body, int(error.where.rpartition(":")[2]), None)
        found = (_identity(path), False) if path is not None else None
    return found


def _identity(path: list[ast.AST]) -> list[ast.AST]:
    """A statement that is refused before it is traced, with the comparison of identity in it."""
    for n in own_nodes(path[-1]):
        if isinstance(n, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in n.ops):
            return [*path, n]
    return path


def _frames(error: NotCaptured) -> Iterator[tuple[types.CodeType, int, Span | None]]:
    """The traced frames that the error went through, outermost first: code, line and place."""
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if isinstance(frame.f_globals, TracedGlobals):
            positions = list(frame.f_code.co_positions())[traceback.tb_lasti // 2]
            line, end_line, column, end_column = positions
            place = None
            if line and end_line and column is not None and end_column is not None:
                place = (line, column), (end_line, end_column)
            yield frame.f_code, traceback.tb_lineno, place
        traceback = traceback.tb_next


def _path(body: list[ast.stmt], line: int, span: Span | None) -> list[ast.AST] | None:
    """From a statement of `body` down to the innermost own node that holds the place (without a
    span: the innermost statement on the line).
    """
    path: list[ast.AST] = []
    kinds = ast.AST if span is not None else ast.stmt | ast.excepthandler
    level: list[ast.AST] = list(body)
    while True:
        holding = (n for n in _placed(level) if isinstance(n, kinds) and _holds(n, line, span))
        node = next(holding, None)
        if node is None:
            return path or None
        if isinstance(node, SCOPES):
            return None  # a function of its own, called from elsewhere
        path.append(node)
        level = list(ast.iter_child_nodes(node))


def _placed(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """The nodes, and those in place of the ones that have no place in the source."""
    for n in nodes:
        if hasattr(n, "lineno"):
            yield n
        else:
            yield from _placed(list(ast.iter_child_nodes(n)))


def _holds(node: ast.AST, line: int, span: Span | None) -> bool:
    start, end = span_of(node)
    if span is None:
        return start[0] <= line <= end[0]
    return start <= span[0] and span[1] <= end
