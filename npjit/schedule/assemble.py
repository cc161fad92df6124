"""From a Graph to a Plan: the whole of scheduling, pass by pass.

split     reductions that follow rows become two        Graph  -> Graph
cells     storage, versions, outputs                    Graph  -> Program
fuse      which kernel computes what                    Program -> Fusion
lower     each group                                    Group -> Kernel, Contract or Check
memory    where stored values live                      -> Plan

>>> plan = schedule(graph, ["C"] * len(graph.inputs))
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.core.graph import Graph, Node, Weight
from npjit.core.layout import Layout, strides_of
from npjit.core.op import Kind
from npjit.core.size import Size, Var, atoms, product
from npjit.schedule.cells import Program, read_program
from npjit.schedule.contract import Product, lower_contract
from npjit.schedule.fuse import Fusion, fuse
from npjit.schedule.group import Group
from npjit.schedule.index import row_major
from npjit.schedule.items import Memory
from npjit.schedule.kernel import Kernel
from npjit.schedule.lower import Lowered, lower
from npjit.schedule.memory import Use, plan_memory
from npjit.schedule.order import Order, input_strides, memory_orders
from npjit.schedule.plan import Check, InputSpec, Launch, OutputSpec, Place, Plan, Source, Step
from npjit.schedule.split import split


def schedule(graph: Graph, layouts: Sequence[Layout]) -> Plan:
    """The plan of a graph whose array inputs have these layouts."""
    graph = split(graph)
    storage = Storage(graph, layouts)
    program = read_program(graph)
    storage.program = program
    fusion = fuse(program, storage.strides)
    return _Assembly(graph, storage, program, fusion).plan()


class Storage:
    """How stored nodes lie in memory."""

    def __init__(self, graph: Graph, layouts: Sequence[Layout]) -> None:
        self.layouts = [
            layout if n.type.weight is Weight.ARRAY else "C"
            for n, layout in zip(graph.inputs, layouts, strict=True)
        ]
        self.orders = memory_orders(graph, self.layouts)
        self.sources: dict[Var, Source] = {}
        for v, s in graph.sources.items():
            what = "value" if s.axis is None else "extent"
            self.sources[v] = Source(s.input, what, s.axis or 0)
        self.program: Program | None = None
        self._strides: dict[Node, tuple[Size, ...]] = {}

    def order(self, n: Node) -> Order | None:
        """Memory order of a node stored in memory of its own; a view is stored to be read in C
        order."""
        returned = self.program is not None and n in self.program.results
        return None if n.op.kind is Kind.VIEW and not returned else self.orders.get(n)

    def strides(self, n: Node) -> tuple[Size, ...]:
        """In elements; all versions of a cell lie as its base does."""
        if self.program is not None:
            n = self.program.base.get(n, n)
        found = self._strides.get(n)
        if found is None:
            found = self._strides[n] = self._find_strides(n)
        return found

    def _find_strides(self, n: Node) -> tuple[Size, ...]:
        if n.op.kind is not Kind.INPUT or self.layouts[n.params] == "C":
            return row_major(n.shape, self.order(n) if n.op.kind is not Kind.INPUT else None)
        layout = self.layouts[n.params]
        strides = input_strides(n, layout)
        needed = set().union(*map(atoms, strides))
        for axis, stride in enumerate(strides_of(n.params, n.shape, layout)):
            for v in atoms(stride) & needed:
                self.sources[v] = Source(n.params, "stride", axis)
        return strides


class _Assembly:
    """Puts the steps of a fused program in order and gives them memory."""

    def __init__(self, graph: Graph, storage: Storage, program: Program, fusion: Fusion) -> None:
        self.graph = graph
        self.storage = storage
        self.program = program
        self.fusion = fusion
        self.kernels: dict[Kernel, int] = {}
        self.uses: list[Use] = []
        self.parts: list[Lowered | Product | Node] = []

    def plan(self) -> Plan:
        """Lower every group, plan memory, and write the plan down."""
        for group in self.fusion.groups:
            self._add(group)
        memories = {m: None for use in self.uses for m in use.memories}
        sizes = {m: product(m[0].shape) * m[0].dtype.itemsize for m in memories}
        places, arena = plan_memory(self.uses, self._fixed(memories), sizes)
        steps = tuple(
            self._step(part, use, places) for part, use in zip(self.parts, self.uses, strict=True)
        )
        return Plan(
            self._inputs(),
            tuple(self._output(k, n) for k, n in enumerate(self.graph.outputs)),
            tuple(self.kernels),
            steps,
            arena,
            self.graph.guards,
            self.storage.sources,
            tuple(dict.fromkeys(self.fusion.refusals)),
        )

    def _add(self, group: Group) -> None:
        labels, strides = self.fusion.labels, self.storage.strides
        if group.step is None:
            lowered = lower(group, labels, self.program, strides)
            self.kernels.setdefault(lowered.kernel, len(self.kernels))
            buffers = zip(lowered.memories, lowered.kernel.buffers, strict=False)
            written = frozenset(m for m, b in buffers if b.role != "in")
            self.uses.append(Use(lowered.memories, written, lowered.kernel))
            self.parts.append(lowered)
        elif group.step.op.kind is Kind.CONTRACT:
            made = lower_contract(group, labels, strides)
            memories = tuple((self.program.base.get(n, n), 0) for n in made.nodes)
            self.uses.append(Use(memories, frozenset([memories[2]])))
            self.parts.append(made)
        else:
            memory = (self.program.base.get(group.step.args[0], group.step.args[0]), 0)
            self.uses.append(Use((memory,), frozenset()))
            self.parts.append(group.step)

    def _fixed(self, memories: dict[Memory, None]) -> dict[Memory, Place]:
        """Inputs and outputs."""
        found: dict[Memory, Place] = {}
        for node, copy in memories:
            if node.op.kind is Kind.INPUT:
                found[node, copy] = Place("input", node.params)
            elif node in self.program.results:
                found[node, copy] = Place("output", self.program.results[node][copy])
        return found

    def _step(self, part: Lowered | Product | Node, use: Use, places: dict[Memory, Place]) -> Step:
        where = tuple(places[m] for m in use.memories)
        if isinstance(part, Lowered):
            scalars = tuple(n.params for n in part.scalars)
            return Launch(self.kernels[part.kernel], where, scalars, part.sizes)
        if isinstance(part, Product):
            return part.placed(*where)
        number = 1 + sum(isinstance(p, Node) for p in self.parts[: self.parts.index(part)])
        return Check(number, where[0], str(part.params))

    def _inputs(self) -> tuple[InputSpec, ...]:
        return tuple(
            InputSpec(n.dtype, n.shape, n.type.weight is not Weight.ARRAY, layout)
            for n, layout in zip(self.graph.inputs, self.storage.layouts, strict=True)
        )

    def _output(self, number: int, n: Node) -> OutputSpec:
        holder = next(h for h, to in self.program.results.items() if number in to)
        return OutputSpec("fresh", n.dtype, n.shape, self.storage.order(holder))
