"""Loops over the same rows that follow each other become the body of one loop.

In: a graph whose carried values are storage (see `carried`). Out: the same values, where such
loops, with what stands between them, are the body of a LOOP of one trip, which `strips` can cut:

    loop k < n (c: c[:, k] = f(c[:, k - 1]))       loop 1 (y: c = storage
    y[:, 0] = c[:, n - 1]                                     loop k < n (c: ...)
    loop k < n - 1 (y: y[:, k + 1] = g(c[:, k]))              y[:, 0] = c[:, n - 1]
                                                              loop k < n - 1 (y: ...))

What one loop hands to the next then stays in the cache, and an array that nobody else sees is as
large as a strip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, TensorType, may_stop
from npjit.core.op import Kind, Op
from npjit.core.size import Var
from npjit.schedule.carried import in_cell, is_scalar_input
from npjit.schedule.cells import before, storage_of

_INPUT = Op("input", Kind.INPUT, lambda n: None)
_RESULT = Op("result", Kind.RESULT, lambda n, results: results[n.params])
_VERSIONS = frozenset([Kind.INPUT, Kind.CELL, Kind.UPDATE, Kind.RESULT])
_VALUES = frozenset([Kind.ELEMENTWISE, Kind.REDUCE, Kind.VIEW, Kind.CONST, Kind.SIZE])
_BETWEEN = _VALUES | {Kind.LOOP, Kind.RESULT, Kind.UPDATE, Kind.CELL}
# more nodes than these are not looked at
_LONGEST = 64

# whether a loop may be cut in strips
Fits = Callable[[Loop], bool]


def join_loops(graph: Graph, fits: Fits) -> Graph:
    """The graph with loops joined wherever the joined one fits as well."""
    loops = [n for n in graph.nodes if n.op.kind is Kind.LOOP and fits(n.params)]
    for first, last in _neighbours(graph, loops):
        joint = _Joint(graph, first, last)
        if joint.is_closed and fits(joint.loop):
            return join_loops(joint.graph(), fits)
    return graph


def _neighbours(graph: Graph, loops: list[Node]) -> Iterator[tuple[Node, Node]]:
    """Pairs of loops between which there is nothing that cannot be in a strip."""
    place = {n: k for k, n in enumerate(graph.nodes)}
    for first, last in pairwise(loops):
        between = graph.nodes[place[first] : place[last]]
        if len(between) <= _LONGEST and all(n.op.kind in _BETWEEN for n in between):
            yield first, last


@dataclass
class _Joint:
    """Two loops of a graph and what stands between them, as one loop."""

    outer: Graph
    first: Node
    last: Node
    # the nodes that are inside, in their order, and those of them that are outside as well
    inside: list[Node] = field(init=False)
    copied: set[Node] = field(init=False)
    # what the body gets, and the storage that it writes with the last version of each
    given: list[Node] = field(init=False)
    writes: list[tuple[int, Node]] = field(init=False)
    loop: Loop = field(init=False)

    def __post_init__(self) -> None:
        nodes = self.outer.nodes
        self.users = self.outer.users()
        self.kept = {*self.outer.outputs, *(n for _, n in self.outer.writes)}
        start, end = nodes.index(self.first), nodes.index(self.last)
        span = [*nodes[start : end + 1], *(n for n in nodes[end:] if n.args[:1] == (self.last,))]
        own = self._own_cells(set(span))
        needed = {a for n in (*own, *span) for a in n.args}
        self.copied = {n for n in nodes[:end] if n in needed and _is_fixed(n)}
        self.copied |= {a for n in self.copied for a in n.args if _is_fixed(a)}
        chosen = {*span, *own, *self.copied}
        self.inside = [n for n in nodes if n in chosen]
        self.given = [n for n in nodes if n in needed and n not in chosen]
        self.given += [a for n in self.copied for a in n.args if a not in (*chosen, *self.given)]
        self.loop = self._loop()

    def _own_cells(self, span: set[Node]) -> list[Node]:
        """Cells that nobody sees outside, begun with one number everywhere."""
        cells = [n for n in self.outer.nodes if n.op.kind is Kind.CELL and n not in span]
        return [
            n
            for n in cells
            if self.users[n] and n not in self.kept and set(self.users[n]) <= span
            if all(_is_fixed(a) for a in n.args)
        ]

    @property
    def is_closed(self) -> bool:
        """Whether nothing but versions of storage is seen outside, and gets in."""
        chosen = set(self.inside)
        ends = {n for _, n in self.writes}
        for n in self.inside:
            seen = n in self.kept or any(u not in chosen for u in self.users[n])
            if seen and n not in self.copied and n not in ends:
                return False
        if len({storage_of(n) for n in self.given}) < len(self.given):
            return False
        if any(may_stop(n) for n in self.inside):
            return False  # what one strip has stored would have to be taken back
        passed = {a for n in (self.first, self.last) for a in n.args}
        return all(n.op.kind in _VERSIONS or n in passed or not n.shape for n in self.given)

    def _loop(self) -> Loop:
        block = Block()
        new: dict[Node, Node] = {}
        for k, n in enumerate(self.given):
            new[n] = Node(_INPUT, (), k, TensorType(n.shape, n.dtype), n.where)
            block.nodes.append(new[n])
        for n in self.inside:
            block.where = n.where
            new[n] = block.add(n.op, tuple(new[a] for a in n.args), n.params, n.type)
        last = {storage_of(n): n for n in self.inside if before(n)}
        found = [(k, last.get(storage_of(n))) for k, n in enumerate(self.given)]
        self.writes = [(k, n) for k, n in found if n is not None]
        inputs = [new[n] for n in self.given]
        body = Graph.of(block, inputs, [], [(k, new[n]) for k, n in self.writes])
        return Loop(body, 0, Var(f"{self.first.params.index.name}j", 0), 1)

    def graph(self) -> Graph:
        """The graph around, with the one loop in place of both."""
        block = Block()
        new: dict[Node, Node] = {}
        left_out = set(self.inside) - self.copied
        for n in self.outer.nodes:
            block.where = n.where
            if n is self.last:
                given = [new[a] for a in self.given]
                args = tuple(in_cell(block, a) if is_scalar_input(a) else a for a in given)
                loop = block.add(n.op, args, self.loop, n.type)
                for k, (_, end) in enumerate(self.writes):
                    new[end] = block.add(_RESULT, (loop,), k, end.type)
            elif n not in left_out:
                args = tuple(new[a] for a in n.args)
                new[n] = block.add(n.op, args, n.params, n.type)
        made = Graph.of(
            block,
            [new[n] for n in self.outer.inputs],
            [new[n] for n in self.outer.outputs],
            [(k, new[n]) for k, n in self.outer.writes],
            self.outer.sources,
        )
        return replace(made, guards=self.outer.guards)


def _is_fixed(n: Node) -> bool:
    """Whether a value is a number, or one spread over an array."""
    if n.op.kind in (Kind.CONST, Kind.SIZE):
        return not n.args
    return (
        n.op.kind is Kind.VIEW
        and not n.params.axes_used()
        and len(n.args) == 1
        and not (n.args[0].shape)
    )
