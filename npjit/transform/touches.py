"""Which parts of an array a body reads and stores.

In: a graph, one of its inputs, and what is known of sizes there. Out: a `Touch` for each view, in
the order of the nodes, those of loops and branches inside included:

    body(x): y = x[i, :j];  x' = update x [i, j]     ->   read [i, @0 < j], store [i, j]

What is not seen through a view, or becomes another value, touches all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npjit.core.assume import Assumptions
from npjit.core.control import Cond
from npjit.core.graph import Graph, Node, named_graphs
from npjit.core.op import CONTROL, Kind
from npjit.core.view import View, identity
from npjit.transform.within import within


@dataclass(frozen=True)
class Touch:
    """A view of the array, whether it is stored through, and what is known of the sizes in it."""

    view: View
    is_store: bool
    known: Assumptions


def touches(graph: Graph, storage: Node, known: Assumptions) -> Iterator[Touch]:
    """See the module's docstring."""
    whole = identity(storage.shape)
    versions = {storage}
    for n in graph.nodes:
        if n.op.kind in CONTROL:
            yield from _inside(n, versions, known)
        elif n.op.kind is Kind.RESULT and n.args[0].op.kind in CONTROL:
            if _argument(n) in versions:
                versions.add(n)
        elif n.op.kind is Kind.VIEW and n.args[0] in versions:
            yield Touch(n.params, False, known)
        elif n.op.kind is Kind.UPDATE and n.args[0] in versions:
            versions.add(n)
            yield Touch(n.params, True, known)
            if n.args[1] in versions:
                yield Touch(whole, False, known)
        elif any(a in versions for a in n.args):
            yield Touch(whole, True, known)
    if any(n in versions for n in graph.outputs) or any(
        graph.inputs[p] is storage and last not in versions for p, last in graph.writes
    ):
        yield Touch(whole, True, known)


def stores_of(body: Graph, storage: Node) -> list[View] | None:
    """The views through which a body writes an input itself; None if not all are known."""
    versions = {storage}
    found: list[View] = []
    for n in body.nodes:
        if n.op.kind is Kind.UPDATE and n.args[0] in versions:
            versions.add(n)
            found.append(n.params)
        elif n.op.kind in CONTROL and any(a in versions for a in n.args):
            return None
    (last,) = (last for p, last in body.writes if p == storage.params)
    return found if last in versions else None


def _inside(n: Node, versions: set[Node], known: Assumptions) -> Iterator[Touch]:
    """What the bodies of a loop or branch touch of an array with these versions."""
    inside = within(known, n.params, n.args)
    skipped = 1 if isinstance(n.params, Cond) else 0
    for name, graph in named_graphs(n.params):
        for a, i in zip(n.args[skipped:], graph.inputs, strict=False):
            if a in versions:
                yield from touches(graph, i, inside[name])
    carried = n.args[: getattr(n.params, "carried", 0)]
    if any(a in versions for a in (*carried, *n.args[:skipped])):
        yield Touch(identity(next(iter(versions)).shape), False, known)


def _argument(result: Node) -> Node | None:
    """The argument of a loop or branch whose storage a result is the last version of."""
    control = result.args[0]
    params = control.params
    is_branch = isinstance(params, Cond)
    values = len(params.then.outputs) if is_branch else params.carried
    if result.params < values:
        return None
    found: Node = control.args[is_branch + params.written[result.params - values]]
    return found
