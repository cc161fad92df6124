"""Source staging: control flow becomes calls that decide while tracing.

`staged_code(code)` gives the code object of the same function with every `for`, `while`, `if`,
`and`, `or`, `not`, conditional expression, chained comparison, `assert` and `raise` handed to
`_nj`, the `Control` of the trace:

    if t > 0:            def _nj_then_1(y): y = x * 2; return (y,)
        y = x * 2   ->   def _nj_else_1(y): return (y,)
                         (y,) = _nj.branch(t > 0, _nj_then_1, _nj_else_1, (y,), ("y",))

Concrete conditions then take Python's path, traced ones become nodes. Names are the ones liveness
finds: assigned in the statement, and needed afterwards or at its head. A name that may be unbound
holds `_nj.undefined`.
"""

from __future__ import annotations

import ast
import copy
import functools
import itertools
import types

from npjit.frontend.boxed import box_nonlocals
from npjit.frontend.expressions import (
    Expressions,
    arguments,
    at,
    call,
    growing,
    is_named,
    load,
    looked_up,
    thunk,
)
from npjit.frontend.extended import extend_lists
from npjit.frontend.jumps import CONTROL, RESULT, Unstageable, structure
from npjit.frontend.liveness import (
    NONE,
    Names,
    bound,
    captured,
    live_at_head,
    live_before,
    live_in,
)
from npjit.frontend.matched import without_match
from npjit.frontend.named import move_named
from npjit.frontend.source import compile_function, function_tree
from npjit.frontend.unbound import flag_unbound


@functools.lru_cache(maxsize=1024)
def staged_code(code: types.CodeType) -> types.CodeType | None:
    """The rewritten code object; None when there is no source, nothing to stage, or control flow to
    leave alone.
    """
    tree = function_tree(code)
    if tree is None:
        return None
    node = copy.deepcopy(tree)
    if isinstance(node, ast.FunctionDef):
        box_nonlocals(node)
        without_match(node)
        move_named(node)
        extend_lists(node)
    if not _has_control(node):
        return None
    try:
        if isinstance(node, ast.FunctionDef):
            _rewrite_function(node)
        else:
            node.body = Expressions(_rewrite_function).visit(node.body)
    except Unstageable:
        return None
    made = compile_function(ast.fix_missing_locations(node), code)
    # a function object takes as many cells as its code has free variables, in their order
    return made if made.co_freevars == code.co_freevars else None


_CONTROL_NODES = (
    ast.For,
    ast.While,
    ast.If,
    ast.BoolOp,
    ast.IfExp,
    ast.Assert,
    ast.Raise,
    ast.ListComp,
    ast.GeneratorExp,
)


def _has_control(tree: ast.AST) -> bool:
    for n in ast.walk(tree):
        if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)):
            return False
        if isinstance(n, ast.NamedExpr):
            return False
    return any(
        isinstance(n, _CONTROL_NODES)
        or (isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not))
        or (isinstance(n, ast.Compare) and len(n.ops) > 1)
        or (isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.In | ast.NotIn))
        or (isinstance(n, ast.expr) and is_named(n, "list"))
        for n in ast.walk(tree)
    )


# methods of lists that grow in loops
_CHANGES = ("append", "extend", "pop", "insert", "remove", "sort", "reverse", "clear")


def _rewrite_function(node: ast.FunctionDef) -> None:
    """Stage one function in place, nested functions first."""
    for s in ast.walk(node):
        if isinstance(s, ast.FunctionDef) and s is not node and s.decorator_list:
            raise Unstageable("a decorated nested function")
    parameters = _parameters(node.args)
    flag_unbound(node, parameters)
    body = structure(node.body)
    stager = _Stager(captured(body), _appended(node))
    made, needed = stager.block(body, NONE)
    node.body = [*_undefined(needed | {RESULT}, parameters, body), *made]


def _appended(node: ast.FunctionDef) -> Names:
    """Names of lists that the function, or one inside it, appends to or indexes."""
    found = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            owner = n.func.value if n.func.attr in _CHANGES else None
        elif isinstance(n, ast.AugAssign):
            owner = n.target
        else:
            owner = n.value if isinstance(n, ast.Subscript) else None
        if isinstance(owner, ast.Name):
            found.add(owner.id)
    return frozenset(found)


def _parameters(args: ast.arguments) -> Names:
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    named += [a for a in (args.vararg, args.kwarg) if a is not None]
    return frozenset(a.arg for a in named)


def _undefined(names: Names, given: Names, body: list[ast.stmt]) -> list[ast.stmt]:
    """Assignments of `_nj.undefined` at the head of a body, for names that may be read before they
    are bound.
    """
    made = []
    for name in sorted((names & bound(body)) - given):
        value = ast.Attribute(ast.Name(CONTROL, ast.Load()), "undefined", ast.Load())
        made.append(at(ast.Assign([ast.Name(name, ast.Store())], value), body[0]))
    return made


class _Stager:
    """Stages the statements of one function; numbers its generated functions."""

    def __init__(self, always: Names, appended: Names) -> None:
        self.always = always
        self.appended = appended
        self.numbers = itertools.count(1)
        self.expressions = Expressions(_rewrite_function)

    def block(self, body: list[ast.stmt], out: Names) -> tuple[list[ast.stmt], Names]:
        """The staged statements, and the names that their control flow takes and gives."""
        needs = [out | self.always]
        for s in reversed(body):
            needs.append(live_before(s, needs[-1]) | self.always)
        needs.reverse()
        made: list[ast.stmt] = []
        states: Names = NONE
        for s, after in zip(body, needs[1:], strict=True):
            staged, state = self.statement(s, after)
            made += staged
            states |= state
        return made, states

    def statement(self, s: ast.stmt, after: Names) -> tuple[list[ast.stmt], Names]:
        if isinstance(s, ast.If):
            return self._if(s, after)
        if isinstance(s, (ast.For, ast.While)):
            return self._loop(s, after)
        if isinstance(s, (ast.With, ast.Try)):
            return self._compound(s, after)
        if isinstance(s, ast.FunctionDef):
            _rewrite_function(s)
            return [s], NONE
        if isinstance(s, ast.Assert):
            message = s.msg if s.msg is not None else ast.Constant(None)
            made = call("assert_", [self._visit(s.test), thunk(self._visit(message))])
            return [at(ast.Expr(made), s)], NONE
        if isinstance(s, ast.Raise):
            if s.exc is None or s.cause is not None:
                return [self.expressions.visit(s)], NONE
            return [at(ast.Expr(call("raise_", [thunk(self._visit(s.exc))])), s)], NONE
        if isinstance(s, ast.Delete) and all(isinstance(t, ast.Name) for t in s.targets):
            return _undefined(bound([s]), NONE, [s]), NONE
        if isinstance(s, ast.Assign) and bound([s]) & self.appended:
            s.value = growing(s.value)
        if isinstance(s, ast.Assign):
            s.value = looked_up(s.value)
        return [self.expressions.visit(s)], NONE

    def _visit(self, e: ast.expr) -> ast.expr:
        visited: ast.expr = self.expressions.visit(e)
        return visited

    def _tested(self, e: ast.expr) -> ast.expr:
        """A condition: of its operands only the truth counts, also of lists."""
        if isinstance(e, ast.BoolOp):
            for k, value in enumerate(e.values):
                if isinstance(value, ast.Name):
                    e.values[k] = at(call("truth", [value]), value)
        return self._visit(e)

    def _compound(self, s: ast.stmt, after: Names) -> tuple[list[ast.stmt], Names]:
        """with and try stay; the blocks inside are staged. Anything may be needed by a handler."""
        everything = after | bound([s])
        states: Names = NONE
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(s, name, None)
            if inner:
                made, state = self.block(inner, everything)
                setattr(s, name, made)
                states |= state
        for handler in getattr(s, "handlers", []):
            handler.body, state = self.block(handler.body, everything)
            states |= state
        for item in getattr(s, "items", []):
            item.context_expr = self._visit(item.context_expr)
        return [s], states

    def _if(self, s: ast.If, after: Names) -> tuple[list[ast.stmt], Names]:
        number = next(self.numbers)
        assigned = bound(s.body) | bound(s.orelse)
        head = live_in(s.body, after) | live_in(s.orelse, after)
        state = tuple(sorted(assigned & (after | head)))
        then = self._function(f"_nj_then_{number}", state, s.body, after, s)
        other = self._function(f"_nj_else_{number}", state, s.orelse, after, s)
        made = call(
            "branch",
            [self._tested(s.test), load(then.name), load(other.name), *_state(state)],
        )
        return [then, other, _receive(state, made, s)], frozenset(state)

    def _loop(self, s: ast.For | ast.While, after: Names) -> tuple[list[ast.stmt], Names]:
        number = next(self.numbers)
        head = live_at_head(s, after) | self.always
        stops = tuple(getattr(s, "stops", ()))
        assigned = bound(s.body)
        if isinstance(s, ast.For):
            assigned |= bound([s.target])
        state = tuple(sorted(assigned & (head | after)))
        stopping = ast.Constant(tuple(state.index(f) for f in stops))
        if isinstance(s, ast.For):
            take = at(ast.Assign([s.target], load("_nj_item")), s)
            body = self._function(
                f"_nj_body_{number}", state, [take, *s.body], head, s, ("_nj_item",)
            )
            args = [self._visit(s.iter), load(body.name), *_state(state), stopping]
            functions = [body]
            made = call("for_loop", args)
        else:
            test = self._test(f"_nj_test_{number}", state, s)
            body = self._function(f"_nj_body_{number}", state, s.body, head, s)
            functions = [test, body]
            args = [load(test.name), load(body.name), *_state(state), stopping]
            made = call("while_loop", args)
        return [*functions, _receive(state, made, s)], frozenset(state)

    def _test(self, name: str, state: tuple[str, ...], s: ast.While) -> ast.FunctionDef:
        return _define(name, state, [ast.Return(self._tested(s.test))], s)

    def _function(
        self,
        name: str,
        state: tuple[str, ...],
        body: list[ast.stmt],
        out: Names,
        where: ast.stmt,
        extra: tuple[str, ...] = (),
    ) -> ast.FunctionDef:
        """def name(*extra, *state): body; return state"""
        made, inner = self.block(body, frozenset(state) | (out & bound(body)))
        result = ast.Tuple([load(n) for n in state], ast.Load())
        head = _undefined(inner, frozenset(state), body) if body else []
        return _define(name, (*extra, *state), [*head, *made, ast.Return(result)], where)


def _define(
    name: str, parameters: tuple[str, ...], body: list[ast.stmt], where: ast.stmt
) -> ast.FunctionDef:
    made = ast.FunctionDef(
        name=name, args=arguments(parameters), body=body, decorator_list=[], type_params=[]
    )
    return ast.fix_missing_locations(ast.copy_location(made, where))


def _state(names: tuple[str, ...]) -> list[ast.expr]:
    """The state's values and its names, as two arguments."""
    values = ast.Tuple([load(n) for n in names], ast.Load())
    return [values, ast.Constant(names)]


def _receive(state: tuple[str, ...], call: ast.expr, where: ast.stmt) -> ast.stmt:
    if not state:
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), where))
    target = ast.Tuple([ast.Name(n, ast.Store()) for n in state], ast.Store())
    made = ast.Assign([target], call)
    return ast.fix_missing_locations(ast.copy_location(made, where))
