"""Turns short chains of updates of a fresh array into selections, which fuse where storage does
not.

In: a graph with CELL and UPDATE nodes. Out: the same values, where an array that is made and then
updated a few times in boxes is a pure expression. Cells of arguments, results and long chains stay:
there an update in place is cheaper than a selection for every element.

    %2 = cell %1                           y = np.sin(x)
    %3 = update %2 0.0 [0]                 y[0] = 0.0
    ->
    %3 = select (pad True ((0, n - 1),)) (pad 0.0 ...) %1
"""

from __future__ import annotations

from npjit.core.graph import Block, Graph, Node
from npjit.core.op import CONTROL, Kind
from npjit.core.rebuild import rebuild
from npjit.ops import build
from npjit.transform.embed import embed, is_box
from npjit.transform.literal import is_zero, literal_of

# longer chains stay: each selection costs a comparison or two for every element
LONGEST = 4
# chains with more additions beside those of the dearest value stay: a selection computes all of its
# values for every element, where storage takes one
HEAVY = 2


def select_updates(graph: Graph) -> Graph:
    """The graph with every short chain of updates as selections."""
    chosen = _short_chains(graph)
    if not chosen:
        return graph

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if n not in chosen:
            return None
        return args[0] if n.op.kind is Kind.CELL else _selected(block, n, *args)

    return rebuild(graph, rewrite)


def _short_chains(graph: Graph) -> set[Node]:
    """The cells and updates that become selections."""
    updates: dict[Node, list[Node]] = {}
    for n in graph.nodes:
        if n.op.kind in (Kind.UPDATE, Kind.SCATTER):
            updates.setdefault(n.args[0], []).append(n)
    kept = {*graph.outputs, *(n for _, n in graph.writes)}
    kept.update(a for n in graph.nodes if n.op.kind in CONTROL for a in n.args)
    users = graph.users()
    chosen: set[Node] = set()
    for cell in (n for n in graph.nodes if n.op.kind is Kind.CELL):
        chain = [cell]
        while len(updates.get(chain[-1], ())) == 1:
            chain += updates[chain[-1]]
        # with more arguments it is at an index that is known only when it runs: it costs one store
        boxes = all(_is_box(u) for u in chain[1:])
        if len(chain) > LONGEST + 1 or not boxes or not kept.isdisjoint(chain):
            continue
        work = [_work(n.args[-1], users) for n in chain]
        if sum(work) - max(work) <= HEAVY:
            chosen.update(chain)
    return chosen


def _work(n: Node, users: dict[Node, list[Node]]) -> int:
    """The additions that an element of a value takes, counted until they are too many; what others
    need too may be stored."""
    if n.op.kind is Kind.VIEW:
        return 0 if len(users[n.args[0]]) > 1 else _work(n.args[0], users)
    work = n.op.cost if n.op.kind is Kind.ELEMENTWISE else 0
    for a in n.args if work else ():
        work += _work(a, users) if work <= HEAVY else 0
    return work


def _is_box(update: Node) -> bool:
    return update.op.kind is Kind.UPDATE and len(update.args) == 2 and is_box(update.params)


def _selected(block: Block, update: Node, base: Node, value: Node) -> Node:
    v = update.params
    stored = embed(block, value, v)
    assert stored is not None
    if is_zero(literal_of(base)):
        return stored
    true = build.constant(block, True, build.BOOL)
    inside = embed(block, build.broadcast(block, true, value.shape), v)
    assert inside is not None
    return build.select(block, inside, stored, base)
