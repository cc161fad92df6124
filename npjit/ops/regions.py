"""Regions: the bodies of loops and branches while they are traced, and how they become nested
Graphs.

Inside `with Region(block)` nodes go to the region. A storage cell of the world around is seen
through a parameter, its version on entry; what the region writes is undone at the end and reported
in `written`. `seal` makes the region a Graph that is complete in itself: nodes of the regions
around become inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.op import Kind
from npjit.ops import kinds
from npjit.ops.cell import Cell

# made anew inside a region rather than passed in
_CHEAP = frozenset([Kind.CONST, Kind.SIZE, Kind.IOTA, Kind.BIND])


class Region:
    """An open region, then what was found in it."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.nodes: list[Node] = []
        # cells of the world around: their parameter here, and how they were: (node, owned, level)
        self.entered: dict[Cell, tuple[Node, Node, bool, int]] = {}
        self.finals: dict[Cell, Node] = {}
        self._binds: dict[Any, Node] = {}
        self._facts = 0

    def __enter__(self) -> Region:
        for made in self.block.unmade:
            value = made()
            if value is not None:
                value.prepare()
        self.block.unmade.clear()
        self._binds = dict(self.block.binds)
        self._facts = len(self.block.sizes.facts)
        self.block.open_region()
        self.block.regions.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.block.regions.pop()
        self.nodes = self.block.close_region()
        self.block.binds = self._binds
        del self.block.sizes.facts[self._facts :]
        for cell, (param, node, owned, level) in self.entered.items():
            if cell._node is not param:
                self.finals[cell] = cell._node
            cell._node, cell.owned, cell.level = node, owned, level

    @contextmanager
    def again(self) -> Iterator[None]:
        """Go on in a region that has ended, to make nodes of its results (it cannot write any
        more).
        """
        block = self.block
        outside = (block.nodes, block.binds)
        block.open_region()
        block.regions.append(self)
        block.nodes = self.nodes
        try:
            yield
        finally:
            block.regions.pop()
            block.close_region()
            block.binds = outside[1]

    def parameter(self, type_: TensorType) -> Node:
        """A new input of the region (its position is settled when the region is sealed)."""
        return Node(kinds.INPUT, (), None, type_, self.block.where)

    def enter(self, cell: Cell) -> None:
        """Show the cell's version on entry as a parameter of this region."""
        if cell in self.entered:
            return
        outer = cell._node
        param = self.parameter(outer.type)
        self.entered[cell] = (param, outer, cell.owned, cell.level)
        cell._node, cell.owned = param, True
        cell.level = self.block.regions.index(self) + 1

    @property
    def written(self) -> list[Cell]:
        """Cells of the world around that the region has written."""
        return list(self.finals)


@dataclass
class Inputs:
    """The inputs that one or several sealed regions share: outer nodes, each with the parameter
    that stands for it.
    """

    outer: list[Node] = field(default_factory=list)
    types: list[TensorType] = field(default_factory=list)
    positions: dict[Node, int] = field(default_factory=dict)

    def add(self, outer: Node, *aliases: Node) -> int:
        """The position of the input that gets `outer`; `aliases` (parameters) mean it too."""
        found = self.positions.get(outer)
        if found is None:
            found = self.append(outer)
            self.positions[outer] = found
        for a in aliases:
            self.positions[a] = found
        return found

    def append(self, outer: Node) -> int:
        """A further input of its own, though another may get the same node."""
        self.outer.append(outer)
        self.types.append(outer.type)
        return len(self.outer) - 1


def seal(
    region: Region,
    inputs: Inputs,
    outputs: Sequence[Node],
    writes: Sequence[tuple[int, Node]] = (),
) -> tuple[Graph, Block]:
    """The region as a Graph whose inputs are `inputs`, which grows by what else the region uses."""
    block = Block()
    made: dict[Node, Node] = {}
    params: dict[int, Node] = {}
    inside = set(region.nodes)

    def found(n: Node) -> Node:
        if n in made:
            return made[n]
        if n not in inside and n not in inputs.positions and n.op.kind in _CHEAP:
            made[n] = block.add(n.op, [found(a) for a in n.args], n.params, n.type)
            return made[n]
        position = inputs.add(n)
        if position not in params:
            params[position] = Node(kinds.INPUT, (), position, inputs.types[position], n.where)
        made[n] = params[position]
        return made[n]

    for n in region.nodes:
        block.where = n.where
        args = [found(a) for a in n.args]
        made[n] = block.add(n.op, args, n.params, n.type)
    results = [found(n) for n in outputs]
    final = [(p, found(n)) for p, n in writes]
    return _graph(block, inputs, params, results, final), block


def _graph(
    block: Block,
    inputs: Inputs,
    params: dict[int, Node],
    results: list[Node],
    writes: list[tuple[int, Node]],
) -> Graph:
    for position, type_ in enumerate(inputs.types):
        if position not in params:
            params[position] = Node(kinds.INPUT, (), position, type_, "")
    ordered = [params[p] for p in range(len(inputs.types))]
    block.nodes[:0] = ordered
    return Graph.of(block, ordered, results, writes)


def extended(graph: Graph, inputs: Inputs) -> Graph:
    """The graph with the inputs that were added after it was sealed."""
    missing = [
        Node(kinds.INPUT, (), p, inputs.types[p], "")
        for p in range(len(graph.inputs), len(inputs.types))
    ]
    if not missing:
        return graph
    every = (*graph.inputs, *missing)
    return Graph(every, (*missing, *graph.nodes), graph.outputs, graph.writes)
