"""Loops whose trips threads may share out.

In: a LOOP whose carried values are storage (see `carried`). Out: whether no trip sees what another
one writes: each trip has a part of its own of every array that the loop writes, one index of some
dimension or some indices that follow each other, and reads nothing else of these arrays:

    loop i: loop k: c[i] += b[i, k] * a[k]         row i
    loop s: loop k: c[B*s : B*s + B, k] = ...      rows of strip s

Library calls and products stay with one thread: they have threads of their own, or need Python.
"""

from __future__ import annotations

from collections.abc import Iterator

from npjit.core.assume import Assumptions
from npjit.core.control import Loop
from npjit.core.graph import Graph, Node, every_node, nested_graphs
from npjit.core.op import CONTROL, Bind, Kind
from npjit.core.size import Expr, Fn, Size, Var, atoms, linear
from npjit.core.view import Along, At, View, identity
from npjit.schedule.cells import CALLS, inputs_of

# no fewer trips than these
_FEWEST = 4
_ALONE = frozenset([Kind.CONTRACT, *CALLS])

# an entry of a view, and how many indices it names
Part = tuple[At | Along, Size]


def is_apart(loop: Loop, known: Assumptions) -> bool:
    """See the module's docstring; `known` is known around the loop."""
    few = isinstance(loop.trips, int) and loop.trips < _FEWEST
    if few or loop.stops or not loop.written:
        return False
    if any(n.op.kind in _ALONE or n.op.raises for n in every_node(loop.body)):
        return False
    inner = set(_variables(loop.body))
    inside = known.copy()
    inside.ranges[loop.index] = (0, loop.trips - 1)
    return all(
        _has_own_part(list(views_of(loop.body, loop.body.inputs[p])), loop.index, inner, inside)
        for p in loop.written
    )


def _variables(graph: Graph) -> Iterator[Var]:
    """What changes within a trip: indices of loops in it, and computed sizes."""
    for n in every_node(graph):
        if isinstance(n.params, Loop):
            yield n.params.index
        elif isinstance(n.params, Bind):
            yield n.params.var


def views_of(graph: Graph, storage: Node) -> Iterator[View]:
    """How a graph touches an input or a cell: the views through which it reads and writes."""
    versions = {storage}
    for n in graph.nodes:
        if n.op.kind in CONTROL:
            for g in nested_graphs(n):
                for a, i in zip(inputs_of(n), g.inputs, strict=False):
                    if a in versions:
                        yield from views_of(g, i)
        elif n.op.kind is Kind.RESULT and n.args[0].op.kind in CONTROL:
            control = n.args[0]
            if inputs_of(control)[control.params.written[n.params]] in versions:
                versions.add(n)
        elif n.op.kind in (Kind.UPDATE, Kind.VIEW) and n.args[0] in versions:
            yield n.params
            if n.op.kind is Kind.UPDATE:
                versions.add(n)
        elif any(a in versions for a in n.args):
            yield identity(storage.shape)
        if n.op.kind is Kind.UPDATE and n.args[1] in versions:
            yield identity(storage.shape)
    if any(i is storage and last not in versions for i, last in _writes(graph)):
        yield identity(storage.shape)  # another value takes its place


def _writes(graph: Graph) -> list[tuple[Node, Node]]:
    """The inputs that a body writes, with what they hold at the end."""
    return [(graph.inputs[p], last) for p, last in graph.writes]


def _has_own_part(views: list[View], index: Var, inner: set[Var], known: Assumptions) -> bool:
    """Whether all views show, in one dimension, the same part, which no other trip sees."""
    if not views:
        return True  # nothing is touched
    for d in range(len(views[0].base)):
        parts = {_part(v, d) for v in views}
        if len(parts) == 1 and _differs(parts.pop(), index, inner, known):
            return True
    return False


def _part(v: View, d: int) -> Part:
    entry = v.dims[d]
    if isinstance(entry, At):
        return entry, 1
    # which axis it is of the view's own does not matter
    return Along(entry.start, entry.step, 0), v.shape[entry.axis]


def _differs(part: Part, index: Var, inner: set[Var], known: Assumptions) -> bool:
    """Whether the trips' parts lie apart."""
    entry, count = part
    start = entry.index if isinstance(entry, At) else entry.start
    step, rest = linear(start, index)
    if step is None or (atoms(rest) | atoms(step)) & {index, *inner} or atoms(count) & inner:
        return False
    if isinstance(entry, At):
        return isinstance(step, int) and step != 0
    return entry.step == 1 and (_is_within(count, step) or bool(known.le(count, step)))


def _is_within(count: Size, most: Size) -> bool:
    """Whether a size is the smaller one of `most` and something else."""
    if not isinstance(count, Expr) or len(count.terms) != 1:
        return False
    ((mono, factor),) = count.terms
    (atom, *more) = mono or (None,)
    return (
        factor == 1
        and not more
        and isinstance(atom, Fn)
        and atom.name == "min"
        and most in atom.args
    )
