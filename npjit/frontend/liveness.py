"""Which local names a structured statement list reads, binds, and needs.

`live_in(body, out)` is backward liveness: the names whose value on entry may still be read, given
the names needed afterwards. It decides what a staged loop carries and what a staged branch gives
back.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

Names = frozenset[str]
NONE: Names = frozenset()


def bound(nodes: Sequence[ast.AST]) -> Names:
    """Names that statements, or targets of one, bind; what nested functions bind inside is left
    out.
    """
    found: set[str] = set()
    stack: list[ast.AST] = list(nodes)
    while stack:
        n = stack.pop()
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)):
            found.add(n.id)
        elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(n.name)
            continue
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).split(".")[0] for a in n.names}
        elif isinstance(n, ast.ExceptHandler) and n.name:
            found.add(n.name)
        if isinstance(n, ast.Lambda):
            continue
        if isinstance(n, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            found |= {w.target.id for w in ast.walk(n) if isinstance(w, ast.NamedExpr)}
            continue
        stack.extend(ast.iter_child_nodes(n))
    return frozenset(found)


def reads(node: ast.AST | None) -> Names:
    """Every name that is read (or deleted) somewhere inside, nested scopes included; not the
    variables of comprehensions and lambdas.
    """
    found: set[str] = set()
    stack: list[ast.AST] = [node] if node is not None else []
    while stack:
        n = stack.pop()
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store):
            found.add(n.id)
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            found.add(n.target.id)
        inner = list(ast.iter_child_nodes(n))
        if isinstance(n, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            # the first iterable is evaluated outside
            stack.append(n.generators[0].iter)
            targets = bound([g.target for g in n.generators])
            hidden = targets - reads(n.generators[0].iter)
        elif isinstance(n, ast.Lambda):
            args = n.args
            stack += [*args.defaults, *(d for d in args.kw_defaults if d is not None)]
            hidden = frozenset(a.arg for a in ast.walk(args) if isinstance(a, ast.arg))
            inner = [n.body]
        else:
            stack += inner
            continue
        found |= frozenset().union(*map(reads, inner)) - hidden
    return frozenset(found)


def captured(body: list[ast.stmt]) -> Names:
    """Names read inside nested functions and lambdas: needed as long as those may be called."""
    found: Names = NONE
    for s in body:
        for n in ast.walk(s):
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                found |= reads(n)
    return found


def live_in(body: list[ast.stmt], out: Names) -> Names:
    """Names needed on entry to the statements."""
    for s in reversed(body):
        out = live_before(s, out)
    return out


def live_before(s: ast.stmt, out: Names) -> Names:
    """Names needed before one statement."""
    if isinstance(s, ast.If):
        return reads(s.test) | live_in(s.body, out) | live_in(s.orelse, out)
    if isinstance(s, ast.While):
        return live_at_head(s, out)
    if isinstance(s, (ast.For, ast.AsyncFor)):
        return reads(s.iter) | live_at_head(s, out)
    if isinstance(s, (ast.With, ast.Try)):
        return out | reads(s)
    if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        kills = _certain(s)
        return (out - kills) | reads(s)
    if isinstance(s, ast.FunctionDef):
        return (out - {s.name}) | reads(s)
    return out | reads(s)


def live_at_head(s: ast.For | ast.AsyncFor | ast.While, out: Names) -> Names:
    """Names needed at the head of a loop: before a first or a further trip, or after the last."""
    stops = frozenset(getattr(s, "stops", ()))
    head = out | live_in(s.orelse, out) | stops
    if isinstance(s, ast.While):
        head |= reads(s.test)
    while True:
        trip = live_in(s.body, head)
        if not isinstance(s, ast.While):
            trip -= bound([s.target])
        grown = head | trip
        if grown == head:
            return head
        head = grown


def _certain(s: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Names:
    """Names that an assignment surely binds anew."""
    if isinstance(s, ast.Assign):
        return bound(s.targets)
    if isinstance(s, ast.AnnAssign) and s.value is not None and isinstance(s.target, ast.Name):
        return frozenset([s.target.id])
    return NONE
