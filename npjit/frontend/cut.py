"""Cutting a function that cannot be captured whole into compiled segments with Python between them.

In: its syntax tree, and the marks on what stays Python. Out: the tree of a function that does the
same, and the functions that it calls in place of the runs of statements (and the expressions) that
hold no mark:

    y = np.exp(x) * 2                        y = _npjit_call_1(x)
    print(y.sum())            ->             print(_npjit_call_2(y))
    return y - y.mean()                      return _npjit_call_3(y)

A segment takes the names that it needs and returns those that it binds and that are needed later,
so that between segments all values are ordinary ones. Where an exception may be caught, or another
function sees a variable, a statement that binds such a name ends its segment.
"""

from __future__ import annotations

import ast
import copy
import types
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from npjit.frontend.definite import Bindings, Known
from npjit.frontend.liveness import NONE, Names, bound, captured, live_before, reads
from npjit.frontend.marks import Marks, key_of
from npjit.frontend.normal_form import NormalForm
from npjit.frontend.opened import Opened, is_quiet
from npjit.frontend.pieces import may_be_piece
from npjit.frontend.runs import Run

Definition = ast.FunctionDef | ast.AsyncFunctionDef

_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Assert, ast.Pass)
_STAYING = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.JoinedStr)


@dataclass(frozen=True)
class Segment:
    """One compiled part: its function, the name by which the cut function calls it, and the
    statements that it has in the place of (before them stand the constants that they need).
    """

    name: str
    node: ast.FunctionDef
    body: list[ast.stmt]


@dataclass
class Cut:
    """A function's tree after the cut, and its segments."""

    node: Definition
    segments: list[Segment] = field(default_factory=list)


@dataclass(frozen=True)
class Context:
    """What is around a block: names that may be read when an exception leaves it, and whether the
    function ends where it ends.
    """

    seen: Names = NONE
    tail: bool = False


def cut(tree: Definition, code: types.CodeType, scope: dict[str, Any], marks: Marks) -> Cut:
    """Cut the function with this tree and code, of the module with dictionary `scope`."""
    made = Cut(copy.deepcopy(tree))
    Cutter(made, code, scope, marks).function()
    ast.fix_missing_locations(made.node)
    return made


class Cutter:
    """Cuts one function."""

    def __init__(
        self, made: Cut, code: types.CodeType, scope: dict[str, Any], marks: Marks
    ) -> None:
        self.made = made
        self.marks = marks
        self.name = code.co_name
        body = made.node.body
        self.locals = frozenset((*code.co_varnames, *code.co_cellvars))
        # what is known of a name now: nothing of a variable, of others the global
        self.scope = {**scope, **dict.fromkeys((*self.locals, *code.co_freevars))}
        # names that other functions see: nested ones, and generators that run later
        self.captured = captured(body) | _in_generators(body)
        self.outer = _declared(body)
        # what a call may bind anew, and what belongs to the function's own frame
        self.shared = _bound_inside(body) | {"__class__"}
        self.rebound = self.own(_bound_often(made.node))
        # variables that are the same number or text wherever they are bound
        self.constants = {n: s for n, s in _constants(made.node).items() if n not in self.outer}
        self.bindings = Bindings(lambda s: is_quiet(s, self.scope))
        self.normal = NormalForm(self.stays, self.is_piece, self._is_fixed, self.scope)

    def function(self) -> None:
        """Cut the whole tree, in place."""
        node = self.made.node
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        arguments += [a for a in (node.args.vararg, node.args.kwarg) if a is not None]
        known = frozenset(a.arg for a in arguments)
        node.body = self.block(node.body, known, NONE, Context(tail=True))

    def segment(self, body: list[ast.stmt], parameters: Names, where: ast.AST) -> ast.Call:
        """A call of a new segment with this body."""
        name = f"_npjit_call_{len(self.made.segments) + 1}"
        names = sorted(parameters - self.constants.keys())
        known = [self.constants[n] for n in sorted(parameters) if n in self.constants]
        arguments = ast.arguments(
            posonlyargs=[],
            args=[ast.arg(n) for n in names],
            kwonlyargs=[],
            kw_defaults=[],
            defaults=[],
        )
        node = ast.FunctionDef(
            name=self.name,
            args=arguments,
            body=[*map(copy.deepcopy, known), *body],
            decorator_list=[],
            type_params=[],
        )
        ast.fix_missing_locations(ast.copy_location(node, body[0]))
        self.made.segments.append(Segment(name, node, body))
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(n, ast.Load()) for n in names], [])
        return ast.fix_missing_locations(ast.copy_location(call, where))

    # ------------------------------------------------------------ what may be compiled

    def stays(self, n: ast.AST) -> bool:
        """Whether the node itself is Python's."""
        if isinstance(n, ast.Name):
            stored = n.id in self.outer and not isinstance(n.ctx, ast.Load)
            return stored or n.id in self.shared or self.marks.stays(n)
        if isinstance(n, ast.Lambda | ast.GeneratorExp) and reads(n) & self.rebound:
            return True  # in a segment it would see that one's variables
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "super":
            return True
        return isinstance(n, _STAYING) or self.marks.stays(n) or self._takes_what_stays(n)

    def _takes_what_stays(self, n: ast.AST) -> bool:
        """Whether an operand is a variable whose values no compiled code takes."""
        if not self.marks.names or not isinstance(n, ast.expr):
            return False
        operands = [k.value if isinstance(k, ast.keyword) else k for k in ast.iter_child_nodes(n)]
        return any(isinstance(c, ast.Name) and self.marks.stays(c) for c in operands)

    def whole(self, e: ast.AST) -> bool:
        """Whether nothing in it stays Python."""
        return not any(self.stays(n) for n in ast.walk(e))

    def is_piece(self, e: ast.expr) -> bool:
        """Whether an expression may be a segment."""
        small = key_of(e) in self.marks.small
        return not small and may_be_piece(e, self.scope) and self.whole(e)

    def own(self, names: Names) -> Names:
        """Those of the names that are variables of the function."""
        return frozenset(n for n in names if n in self.locals or n.startswith("_npjit_"))

    def compilable(self, s: ast.stmt, loop: bool = False, leaves: bool = False) -> bool:
        """Whether a statement may be compiled as it stands; `loop`: inside a loop that is compiled,
        too; `leaves`: with return statements in it.
        """
        if self.marks.stays(s):
            return False
        if isinstance(s, ast.If):
            inner = [*s.body, *s.orelse]
            return self.whole(s.test) and all(self._inner(b, loop, leaves) for b in inner)
        if isinstance(s, ast.For | ast.While):
            head = [s.test] if isinstance(s, ast.While) else [s.target, s.iter]
            return (
                all(self.whole(e) for e in head)
                and all(self._inner(b, True, leaves) for b in s.body)
                and all(self._inner(b, loop, leaves) for b in s.orelse)
            )
        if isinstance(s, ast.Return):
            return leaves and self.whole(s)
        return isinstance(s, _SIMPLE) and self.whole(s)

    def _inner(self, s: ast.stmt, loop: bool, leaves: bool) -> bool:
        """The same for a statement inside a loop or branch."""
        if isinstance(s, ast.Break | ast.Continue):
            return loop
        if isinstance(s, ast.Raise):
            return self.whole(s)
        return self.compilable(s, loop, leaves)

    def _is_fixed(self, name: str) -> bool:
        """Whether nothing but the function's own statements binds the name."""
        return bool(self.own(frozenset([name]))) and name not in self.captured | self.outer

    # ------------------------------------------------------------ blocks

    def block(
        self, body: list[ast.stmt], known: Known, after: Names, context: Context
    ) -> list[ast.stmt]:
        """The statements, cut; `known` is surely bound before them, `after` needed after them."""
        if known is None:
            return body
        flat = [made for s in body for made in self._flattened(s)]
        sealed = self.captured | context.seen
        needs = [after | sealed]
        for s in reversed(flat):
            needs.append(live_before(s, needs[-1]) | sealed)
        needs.reverse()
        tail = self._tail(flat) if context.tail else len(flat)
        made: list[ast.stmt] = []
        run = Run(self, known, sealed)
        for i, s in enumerate(flat):
            if key_of(s) in self.marks.starts:
                made += run.ended(needs[i])
            rest = flat[i:] if i == tail else flat[i : i + 1] if isinstance(s, ast.Return) else []
            if rest and run.takes_rest(rest):
                return made + run.returned(rest) + flat[i + len(rest) :]
            if self.compilable(s) and run.takes(s, needs[i + 1]):
                run.add(s)
                if bound([s]) & sealed:
                    made += run.ended(needs[i + 1])
                continue
            made += run.ended(needs[i])
            inside = Context(context.seen, context.tail and i == len(flat) - 1)
            reached = self.bindings.after(s, run.known)
            made.append(Opened(self, run.known, needs[i + 1], inside).statement(s))
            if reached is None:
                return made + flat[i + 1 :]
            run = Run(self, reached, sealed)
        return made + run.ended(needs[-1])

    def _tail(self, flat: list[ast.stmt]) -> int:
        """Where the statements begin that can be compiled together up to the end of the function,
        if there is a return statement among the parts of the first.
        """
        first = len(flat)
        for i in reversed(range(len(flat))):
            if not self.compilable(flat[i], leaves=True):
                break
            if not self.compilable(flat[i]) and not isinstance(flat[i], ast.Return):
                first = i
            if key_of(flat[i]) in self.marks.starts:
                break
        return first

    def _flattened(self, s: ast.stmt) -> list[ast.stmt]:
        """The statement with its parts that stay Python in statements of their own."""
        if self.marks.is_opaque(s) or self.compilable(s, leaves=True):
            return [s]
        if isinstance(s, ast.If):
            before, s.test = self._header(s.test)
            return [*before, s]
        if isinstance(s, ast.For):
            before, s.iter = self._header(s.iter)
            return [*before, s]
        return self.normal.statement(s)

    def _header(self, e: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
        return self.normal.header(e, self.is_piece(e))


def _declared(body: list[ast.stmt]) -> Names:
    """Names that global and nonlocal statements declare, in nested functions, too."""
    nodes = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Global | ast.Nonlocal)]
    return frozenset(name for n in nodes for name in n.names)


def _bound_inside(body: list[ast.stmt]) -> Names:
    """Variables of the function that nested functions bind."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    nested = [n for s in body for n in ast.walk(s) if isinstance(n, kinds)]
    return frozenset(
        name for f in nested for n in ast.walk(f) if isinstance(n, ast.Nonlocal) for name in n.names
    )


def _bindings(nodes: list[ast.AST]) -> Counter[str]:
    """How often each name is bound or deleted in the text, nested functions included."""
    names: list[str | None] = []
    for node in nodes:
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
                names.append(n.id)
            elif isinstance(n, ast.arg):
                names.append(n.arg)
            elif isinstance(n, ast.alias):
                names.append((n.asname or n.name).split(".")[0])
            elif isinstance(n, ast.MatchMapping):
                names.append(n.rest)
            else:
                names.append(getattr(n, "name", None))
    return Counter(n for n in names if n is not None)


def _bound_often(node: Definition) -> Names:
    """Names that statements bind more than once, or anew: what a loop binds counts twice."""
    counts = _bindings([node.args, *node.body])
    for s in node.body:
        loops = [n for n in ast.walk(s) if isinstance(n, ast.For | ast.While)]
        counts.update(name for loop in loops for name in bound([loop]))
    return frozenset(n for n, count in counts.items() if count > 1)


def _constants(node: Definition) -> dict[str, ast.stmt]:
    """The variables that one statement binds, to a constant."""
    counts = _bindings([node.args, *node.body])
    found: dict[str, ast.stmt] = {}
    for s in node.body:
        for n in ast.walk(s):
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant):
                (target, *others) = n.targets
                if isinstance(target, ast.Name) and not others and counts[target.id] == 1:
                    found[target.id] = n
    return found


def _in_generators(body: list[ast.stmt]) -> Names:
    """Names in generator expressions that are not used up at once by a call."""
    found: set[str] = set()
    for s in body:
        nodes = list(ast.walk(s))
        at_once = {id(n.args[0]) for n in nodes if isinstance(n, ast.Call) and n.args}
        for n in nodes:
            if isinstance(n, ast.GeneratorExp) and id(n) not in at_once:
                found |= {m.id for m in ast.walk(n) if isinstance(m, ast.Name)}
    return frozenset(found)
