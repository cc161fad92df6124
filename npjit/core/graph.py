"""The tensor-level IR: interned nodes in program order.

A `Block` is a graph under construction: `block.add(op, args, params, type)` returns the node, the
same one for equal questions. A `Graph` is the finished, immutable value that passes take and give.
It prints as text:

    graph(%0: f64[n0])
      %1: f64[n0] = sin %0
      return %1
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from npjit.core.assume import Assumptions, Guard
from npjit.core.op import CONTROL, Kind, Op
from npjit.core.size import Expr, Shape, Size, Var, atoms, substitute, text
from npjit.core.view import At, View


class Weight(Enum):
    """What sort of value a node is to NumPy's rules."""

    ARRAY = "array"
    SCALAR = "scalar"  # a NumPy scalar: immutable, aliases nothing
    WEAK = "weak"  # a Python int, float, complex or bool (NEP 50)


@dataclass(frozen=True)
class TensorType:
    """Shape, element type and weight of a node's value."""

    shape: Shape
    dtype: np.dtype[Any]
    weight: Weight = Weight.ARRAY

    def __str__(self) -> str:
        name = self.dtype.name.replace("float", "f").replace("complex", "c")
        name = name.replace("uint", "u").replace("int", "i")
        mark = {Weight.ARRAY: "", Weight.SCALAR: "'", Weight.WEAK: "~"}[self.weight]
        return f"{name}{mark}[{', '.join(text(s) for s in self.shape)}]"


class Node:
    """One value; immutable, compared by identity. `where` is the user's file:line, outside the
    identity.
    """

    __slots__ = ("args", "op", "params", "type", "where")

    def __init__(
        self, op: Op, args: tuple[Node, ...], params: Any, type: TensorType, where: str
    ) -> None:
        self.op = op
        self.args = args
        self.params = params
        self.type = type
        self.where = where

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.type}>"


@dataclass
class Block:
    """Nodes in the order they were made, and what is assumed about their sizes."""

    sizes: Assumptions = field(default_factory=Assumptions)
    nodes: list[Node] = field(default_factory=list)
    # the user's line now being traced
    where: str = ""
    # size variables that stand for computed values, with their BIND nodes
    binds: dict[Var, Node] = field(default_factory=dict)
    # NumPy scalars that may be numbers of these types of Python's (npjit.ops.readings)
    either: dict[Node, type] = field(default_factory=dict)
    # what is known of the open regions (npjit.ops.regions), the outermost first
    regions: list[Any] = field(default_factory=list)
    # weak references to what has to be made before a region opens that may ask for it
    unmade: list[Any] = field(default_factory=list)
    # one interning table per open region, the outermost first
    _tables: list[dict[Any, Node]] = field(default_factory=lambda: [{}])
    _outer: list[list[Node]] = field(default_factory=list)

    def add(
        self, op: Op, args: Sequence[Node] = (), params: Any = None, type: TensorType | None = None
    ) -> Node:
        """The node for this question; a new one when it was never asked or the op is fresh."""
        assert type is not None
        if self.binds and op.kind in SIZED:
            args = (*args, *(b for b in self._binds_in(params, type) if b not in args))
        key = (op, tuple(args), params, type)
        if not op.fresh:
            for table in self._tables:
                found = table.get(key)
                if found is not None:
                    return found
        node = Node(op, tuple(args), params, type, self.where)
        self.nodes.append(node)
        if op.kind is Kind.BIND:
            self.binds[params.var] = node
        if not op.fresh:
            self._tables[-1][key] = node
        return node

    def once(self, key: Any, make: Callable[[], Node]) -> Node:
        """What `make` gave for this key, here or in a region around, or gives now."""
        for table in self._tables:
            if key in table:
                return table[key]
        found = self._tables[-1][key] = make()
        return found

    def _binds_in(self, params: Any, type: TensorType) -> list[Node]:
        """The BIND nodes of the variables that a node's sizes name."""
        named: set[Var] = set()
        for size in (*type.shape, *sizes_in(params)):
            named |= atoms(size)
        return [node for v, node in self.binds.items() if v in named]

    @property
    def depth(self) -> int:
        """How many regions (bodies of loops and branches) are open."""
        return len(self._outer)

    @property
    def outermost(self) -> list[Node]:
        """The nodes outside all regions."""
        return self._outer[0] if self._outer else self.nodes

    def open_region(self) -> None:
        """Nodes made from now on belong to a new region; nodes of the regions around can be used in
        it.
        """
        self._outer.append(self.nodes)
        self._tables.append({})
        self.nodes = []

    def close_region(self) -> list[Node]:
        """End the innermost region and give its nodes."""
        inner = self.nodes
        self.nodes = self._outer.pop()
        self._tables.pop()
        return inner

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Nodes made inside are for a graph of their own: they share nothing but the sizes."""
        kept = (self.nodes, self._tables, self.binds, self.where)
        self.nodes, self._tables, self.binds = [], [{}], {}
        try:
            yield
        finally:
            self.nodes, self._tables, self.binds, self.where = kept

    @contextmanager
    def before(self, node: Node) -> Iterator[None]:
        """Nodes made inside stand in front of `node`."""
        position = self.nodes.index(node)
        later = self.nodes[position:]
        del self.nodes[position:]
        tables, self._tables = self._tables, [{}]
        try:
            yield
        finally:
            self.nodes += later
            self._tables = tables


@dataclass(frozen=True)
class SizeSource:
    """Where a size variable's value comes from: extent `axis` of input `input`, or the int input
    itself (None).
    """

    input: int
    axis: int | None


@dataclass(frozen=True)
class Graph:
    """A finished block. `writes` pairs an input position with the last version of its storage."""

    inputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]
    writes: tuple[tuple[int, Node], ...] = ()
    guards: tuple[Guard, ...] = ()
    sources: Mapping[Var, SizeSource] = field(default_factory=dict)

    @staticmethod
    def of(
        block: Block,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        writes: Sequence[tuple[int, Node]] = (),
        sources: Mapping[Var, SizeSource] | None = None,
    ) -> Graph:
        """The block's live part as a graph."""
        roots = [*outputs, *(n for _, n in writes)]
        roots += [n for n in block.nodes if may_stop(n)]
        live = reachable(roots) | set(inputs)
        nodes = tuple(n for n in block.nodes if n in live)
        return Graph(
            tuple(inputs),
            nodes,
            tuple(outputs),
            tuple(writes),
            tuple(block.sizes.guards),
            dict(sources or {}),
        )

    def users(self) -> dict[Node, list[Node]]:
        """For each node the nodes that read it, in order."""
        found: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for n in self.nodes:
            for a in dict.fromkeys(n.args):
                found[a].append(n)
        return found

    def bind(self, arrays: Sequence[Any]) -> dict[Var, int]:
        """The size variables' values for these inputs."""
        values = {}
        for v, source in self.sources.items():
            a = arrays[source.input]
            values[v] = int(a) if source.axis is None else int(np.shape(a)[source.axis])
        return values

    def run(self, *arrays: Any) -> list[Any]:
        """The reference meaning: every node by NumPy. Inputs that the graph writes are updated in
        place.
        """
        return self.run_with(self.bind(arrays), arrays)

    def run_with(self, sizes: Mapping[Var, int], arrays: Sequence[Any]) -> list[Any]:
        """As `run`, with all size variables given (nested graphs see those of the graphs around
        them).
        """
        values: dict[Node, Any] = {}
        sizes = dict(sizes)  # BIND nodes add to it
        for n in self.nodes:
            if n.op.kind is Kind.INPUT:
                values[n] = np.asarray(arrays[n.params], n.dtype)
            else:
                concrete = Concrete(n, sizes)
                values[n] = n.op.evaluate(concrete, *[values[a] for a in n.args])
        results = [values[n] for n in self.outputs]
        if self.writes:
            # a result may look at memory that is about to be overwritten
            results = [np.array(r) for r in results]
            final = [(arrays[position], np.array(values[last])) for position, last in self.writes]
            for target, value in final:
                target[...] = value
        return results

    def verify(self) -> None:
        """Raise AssertionError when order, arguments or types are inconsistent."""
        seen: set[Node] = set()
        for n in self.nodes:
            assert all(a in seen for a in n.args), f"{n} comes before an argument"
            if n.op.kind is Kind.ELEMENTWISE:
                assert all(a.shape == n.shape for a in n.args), f"{n}: shapes differ"
            seen.add(n)
        assert all(n in seen for n in self.outputs), "an output is missing"

    def __str__(self) -> str:
        number = {n: i for i, n in enumerate(self.nodes)}
        lines = [f"graph({', '.join(f'%{number[n]}: {n.type}' for n in self.inputs)})"]
        lines += [f"  guard {g}" for g in self.guards]
        for n in self.nodes:
            if n.op.kind is not Kind.INPUT:
                args = " ".join(f"%{number[a]}" for a in n.args)
                params = "" if n.params is None else show_params(n.params)
                words = [f"  %{number[n]}: {n.type} = {n.op.name}", args, params]
                lines.append(" ".join(w for w in words if w))
                for name, inner in named_graphs(n.params):
                    lines.append(f"    {name} " + str(inner).replace("\n", "\n    "))
        lines += [f"  write {i} %{number[n]}" for i, n in self.writes]
        lines.append(f"  return {' '.join(f'%{number[n]}' for n in self.outputs)}")
        return "\n".join(lines)


class Concrete:
    """A node with actual sizes, as the reference evaluators see it."""

    __slots__ = ("dtype", "node", "params", "shape", "sizes")

    def __init__(self, node: Node, sizes: dict[Var, int]) -> None:
        self.node = node
        self.params = node.params
        self.dtype = node.dtype
        self.sizes = sizes
        self.shape = tuple(self.size(s) for s in node.shape)

    def size(self, size: Size) -> int:
        """A size expression's value."""
        value = substitute(size, self.sizes)
        assert isinstance(value, int), f"{text(size)} has no value"
        return value


# kinds whose sizes may name computed variables
SIZED = frozenset([Kind.VIEW, Kind.UPDATE, Kind.SIZE, Kind.IOTA, Kind.PAD, Kind.RESHAPE])


def sizes_in(params: Any) -> list[Size]:
    """Every size in a node's params."""
    if isinstance(params, (int, Expr)):
        return [params]
    if isinstance(params, View):
        found: list[Size] = [*params.base, *params.shape]
        for d in params.dims:
            found += [d.index] if isinstance(d, At) else [d.start, d.step]
        return found
    if isinstance(params, tuple):
        return [s for p in params for s in sizes_in(p)]
    return []


def nested_graphs(n: Node) -> list[Graph]:
    """The bodies of a loop or branch."""
    return [graph for _, graph in named_graphs(n.params)]


def every_node(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph, those of nested graphs behind their loop or branch."""
    for n in graph.nodes:
        yield n
        for inner in nested_graphs(n):
            yield from every_node(inner)


def may_stop(n: Node) -> bool:
    """Whether a check can fail here, or a row raise, so that the node stays though nobody uses its
    value."""
    if n.op.kind in CONTROL:
        return any(may_stop(m) for g in nested_graphs(n) for m in g.nodes)
    return n.op.kind is Kind.CHECK or n.op.raises


def reachable(roots: Iterable[Node]) -> set[Node]:
    """Every node that the roots need, themselves included."""
    found: set[Node] = set()
    stack = list(roots)
    while stack:
        n = stack.pop()
        if n not in found:
            found.add(n)
            stack.extend(n.args)
    return found


def named_graphs(params: Any) -> list[tuple[str, Graph]]:
    """The graphs that a control node holds, by their fields' names."""
    if not is_dataclass(params):
        return []
    named = [(f.name, getattr(params, f.name)) for f in fields(params)]
    return [(name, value) for name, value in named if isinstance(value, Graph)]


def show_params(params: Any) -> str:
    """A node's params as golden text shows them; nested graphs stand below."""
    inner = dict(named_graphs(params))
    if inner:
        named = [(f.name, getattr(params, f.name)) for f in fields(params)]
        shown = [(name, getattr(value, "name", value)) for name, value in named]
        return ", ".join(f"{name} {value}" for name, value in shown if name not in inner)
    if isinstance(params, tuple):
        return f"({', '.join(show_params(p) for p in params)})"
    shown = getattr(params, "value", params)
    return repr(shown) if isinstance(params, bytes | str) else str(shown)
