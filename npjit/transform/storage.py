"""Removes storage that pure values can replace: what is read back from an array is the value stored
there.

In: a graph with CELL and UPDATE nodes. Out: the same values without those updates whose every
reader looks at just the elements stored, or at none of them, and without cells that are never
updated.

    %2 = cell %1
    %3 = update %2 %0 [@0, 0]              B[:, 0] = a
    %4 = view %3 [@0, 0]                   read B[:, 0]   ->  %0
    %5 = view %3 [@0, 1]                   read B[:, 1]   ->  view %1 [@0, 1]
    %6 = update %3 %5 [@0, 0]              B[:, 0] = ... again: the first update can go
"""

from __future__ import annotations

from dataclasses import dataclass

from npjit.core.assume import Assumptions
from npjit.core.graph import Block, Graph, Node
from npjit.core.op import CONTROL, Kind
from npjit.core.view import View, identity
from npjit.ops import build
from npjit.transform.locate import APART, locate

# an update with more readers stays: following each down a chain of updates costs their product
MOST_READS = 64

_UPDATES = (Kind.UPDATE, Kind.SCATTER)


def remove_storage(graph: Graph) -> Graph:
    """The graph without the cells and updates that nothing needs."""
    search = _Search(graph, Assumptions.given(graph.guards))
    search.run()
    if not search.removable:
        return graph
    return _without(graph, search)


class _Search:
    """Which CELL and UPDATE nodes can go; one walk from the last node to the first decides."""

    def __init__(self, graph: Graph, known: Assumptions) -> None:
        self.graph = graph
        self.known = known
        self.users = graph.users()
        self.removable: set[Node] = set()
        # for a removable node the reads that go through to its first argument
        self.passed: dict[Node, list[View]] = {}
        # the update that has a removable one's storage, when that is left out
        self.heirs: dict[Node, Node | None] = {}
        self.outputs = set(graph.outputs)
        self.written = {n for _, n in graph.writes}

    def run(self) -> None:
        for n in reversed(self.graph.nodes):
            if n.op.kind not in (Kind.CELL, Kind.UPDATE) or n in self.written:
                continue
            reads = self._reads(n)
            if reads is None or len(reads) > MOST_READS:
                continue
            if n.op.kind is Kind.UPDATE:
                reads = self._beside(n, reads)
            if reads is not None:
                self.removable.add(n)
                self.passed[n] = reads

    def _reads(self, n: Node) -> list[View] | None:
        """Views of the node that are read; None when a later update needs it as its storage."""
        whole = identity(n.shape)
        reads = [whole] if n in self.outputs else []
        for user in self.users[n]:
            if user.op.kind is Kind.VIEW:
                reads.append(user.params)
            elif user.op.kind in _UPDATES and user.args[0] is n:
                reads += self.passed.get(user, [])
                heir = self.heirs.get(user) if user in self.removable else user
                if heir is not None and not _replaces(heir, n):
                    return None
                self.heirs[n] = heir
            elif user.op.kind in CONTROL:
                return None
            else:
                reads.append(whole)
            if n in user.args[1:]:
                reads.append(whole)
        return list(dict.fromkeys(reads))

    def _beside(self, update: Node, reads: list[View]) -> list[View] | None:
        """The reads that see no updated element; None when one sees both sorts."""
        rest = []
        for v in reads:
            found = locate(v, update.params, self.known)
            if found is None:
                return None
            if found is APART:
                rest.append(v)
        return rest


def _replaces(later: Node, n: Node) -> bool:
    """Whether both are updates, of just the same elements."""
    both = later.op.kind is Kind.UPDATE and n.op.kind is Kind.UPDATE
    return both and later.params == n.params


@dataclass
class _Reader:
    """Gives what a view of a removed node shows."""

    block: Block
    search: _Search
    new: dict[Node, Node]

    def read(self, n: Node, v: View) -> Node:
        """The node seen through a view, in the new block."""
        while n in self.search.removable:
            if n.op.kind is Kind.UPDATE:
                found = locate(v, n.params, self.search.known)
                assert found is not None
                if isinstance(found, View):
                    return build.view(self.block, self.argument(n.args[1]), found)
            n = n.args[0]
        return build.view(self.block, self.new[n], v)

    def storage(self, n: Node) -> Node:
        """The version that stands for a removed one as the storage of a later update."""
        while n in self.search.removable:
            n = n.args[0]
        return self.new[n]

    def argument(self, n: Node) -> Node:
        """The node as an argument of anything but a view."""
        return self.read(n, identity(n.shape)) if n in self.search.removable else self.new[n]


def _without(graph: Graph, search: _Search) -> Graph:
    block = Block(sizes=search.known)
    reader = _Reader(block, search, {})
    for n in graph.nodes:
        block.where = n.where
        if n in search.removable:
            continue
        if n.op.kind is Kind.VIEW and n.args[0] in search.removable:
            reader.new[n] = build.weigh(block, reader.read(n.args[0], n.params), n.type.weight)
        else:
            is_update = n.op.kind is Kind.UPDATE
            first = [reader.storage(n.args[0])] if is_update else []
            args = first + [reader.argument(a) for a in n.args[len(first) :]]
            reader.new[n] = block.add(n.op, args, n.params, n.type)
    outputs = [build.weigh(block, reader.argument(n), n.type.weight) for n in graph.outputs]
    return Graph.of(
        block,
        [reader.new[n] for n in graph.inputs],
        outputs,
        [(i, reader.new[n]) for i, n in graph.writes],
        graph.sources,
    )
