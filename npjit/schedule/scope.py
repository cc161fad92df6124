"""The steps of one block, the body of a loop or branch or the whole graph, and their memory.

In: a graph and how its inputs lie in memory. A `Scope` fuses and lowers it, with the bodies of
its loops and branches as scopes of their own, and plans its memory from offset 0. Out: its steps,
once the places of its inputs and the start of its part of the arena are known.

    scope = Scope(graph, layouts, Shared())
    scope.steps(places of the inputs, start)   ->   (Launch(...), Loop(...), Check(...))

Single elements live in variables wherever loops or branches are (place "local"), so that they stay
in registers from trip to trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from npjit.core.assume import Assumptions, Guard
from npjit.core.control import Cond, Loop, While
from npjit.core.graph import Graph, Node
from npjit.core.layout import Layout
from npjit.core.op import CONTROL, Bind, Kind
from npjit.core.size import Size, Var, as_size, product, smax
from npjit.schedule import apart, plan
from npjit.schedule.blank import leave_blank
from npjit.schedule.call import Called, lower_call
from npjit.schedule.cells import CALLS, inputs_of, read_program
from npjit.schedule.contract import Product, lower_contract
from npjit.schedule.fuse import fuse
from npjit.schedule.group import Group
from npjit.schedule.handover import hand_over
from npjit.schedule.items import Memory
from npjit.schedule.kernel import Kernel
from npjit.schedule.lower import Lowered, lower
from npjit.schedule.memory import Use, plan_memory
from npjit.schedule.plan import SHARES, Check, DType, Launch, Place, Step
from npjit.schedule.reach import Ranges, greatest
from npjit.schedule.slices import tell_slices
from npjit.schedule.split import split
from npjit.schedule.storage import Storage


@dataclass
class Shared:
    """What all scopes of a plan have in common. `registers`: single elements live in variables.
    `guards` hold for every call. `in_order`: kernels in loops may run in order, in one thread."""

    registers: bool = False
    guards: Sequence[Guard] = ()
    in_order: bool = False
    kernels: dict[Kernel, int] = field(default_factory=dict)
    locals: list[DType] = field(default_factory=list)
    refusals: dict[str, None] = field(default_factory=dict)
    # steps that may stop the plan so far
    stops: int = 0


@dataclass(frozen=True)
class Nested:
    """A loop or branch: its bodies, and the memories that are their inputs."""

    node: Node
    scopes: tuple[Scope, ...]
    inputs: tuple[Memory, ...]
    scratch: Memory
    # of a loop whose trips threads share out
    share: Var | None = None

    @property
    def arena(self) -> Size:
        """Bytes of memory that the bodies need, for one share."""
        return _most(s.arena for s in self.scopes)


Part = Lowered | Product | Called | Nested | Node


class Scope:
    """See the module's docstring. A body has the `ranges` of the loops around, and the `strides` of
    its inputs."""

    def __init__(
        self,
        graph: Graph,
        layouts: Sequence[Layout],
        shared: Shared,
        ranges: Ranges | None = None,
        strides: Sequence[tuple[Size, ...]] | None = None,
        in_share: bool = False,
    ) -> None:
        graph = tell_slices(leave_blank(split(graph)))
        storage = Storage(graph, layouts)
        for n, given in zip(graph.inputs, strides or (), strict=False):
            storage.give(n, given)
        self.graph = graph
        self.storage = storage
        self.shared = shared
        self.inner = strides is not None
        # a loop around is shared out already
        self.in_share = in_share
        self.ranges = dict(ranges or {})
        for n in graph.nodes:
            if isinstance(n.params, Bind):
                self.ranges[n.params.var] = (n.params.least, n.params.greatest)
        known = Assumptions.given(shared.guards)
        known.ranges = self.ranges
        self.program = read_program(graph, known)
        self.program.in_order = self.inner and shared.in_order
        storage.program = self.program
        self.fusion = fuse(self.program, storage.strides)
        shared.refusals.update(dict.fromkeys(self.fusion.refusals))
        self.uses: list[Use] = []
        self.parts: list[Part] = []
        for group in self.fusion.groups:
            self._add(group)
        self._skip_copies()
        self.places, self.arena = self._plan_memory()

    # -- what runs, and what it touches

    def _add(self, group: Group) -> None:
        labels, strides = self.fusion.labels, self.storage.strides
        kind = None if group.step is None else group.step.op.kind
        if group.step is None:
            lowered = lower(group, labels, self.program, strides)
            buffers = zip(lowered.memories, lowered.kernel.buffers, strict=False)
            written = frozenset(m for m, b in buffers if b.role != "in")
            self._push(lowered, Use(lowered.memories, written, lowered.kernel))
        elif kind in CONTROL:
            self._add_nested(group, group.step)
        elif kind is Kind.CONTRACT:
            spare = self.storage.spare(group.step)
            made = lower_contract(group, labels, strides, spare)
            memories = tuple(self._memory(n) for n in made.nodes)
            self._push(made, Use(memories, frozenset([memories[2]])))
        elif kind in CALLS:
            called = lower_call(group, labels, strides)
            memories = tuple(self._memory(n) for n in called.nodes)
            results = memories[len(called.step.arguments) :]
            self._push(called, Use(memories, frozenset(results)))
        else:
            source = group.step.args[0]
            source = group.replaced.get(source, source)
            self._push(group.step, Use((self._memory(source),), frozenset()))

    def _push(self, part: Part, use: Use) -> None:
        self.parts.append(part)
        self.uses.append(use)

    def _memory(self, n: Node) -> Memory:
        return self.program.base.get(n, n), 0

    def _add_nested(self, group: Group, n: Node) -> None:
        """A loop or branch, its bodies scheduled."""
        params: Loop | While | Cond = n.params
        written = params.written
        given = [
            a if p in written else group.replaced.get(a, a) for p, a in enumerate(inputs_of(n))
        ]
        share = self._share_of(params)
        scopes = tuple(self._open(g, given, params, share) for g in _bodies(params))
        memories = tuple(self._memory(a) for a in given if a.op.kind is not Kind.BIND)
        scratch = (n, 0)
        touched = list(memories)
        if n.op.kind is Kind.COND:
            condition = group.replaced.get(n.args[0], n.args[0])
            touched.insert(0, self._memory(condition))
        if any(s.arena != 0 for s in scopes):
            touched.append(scratch)
        changed = frozenset(memories[p] for p in written)
        self._push(Nested(n, scopes, memories, scratch, share), Use(tuple(touched), changed))

    def _share_of(self, params: Loop | While | Cond) -> Var | None:
        """The variable that numbers the memories of a loop whose trips are apart."""
        if not isinstance(params, Loop) or self.in_share or not self.shared.in_order:
            return None
        is_shared = apart.is_apart(params, self.program.known)
        return Var(f"{params.index.name}t", 0) if is_shared else None

    def _open(
        self, body: Graph, given: Sequence[Node], params: Loop | While | Cond, share: Var | None
    ) -> Scope:
        # further arguments than the body has inputs are BIND nodes
        strides = [self.storage.strides(a) for a in given[: len(body.inputs)]]
        ranges = dict(self.ranges)
        if isinstance(params, Loop):
            ranges[params.index] = (0, params.trips - 1)
        layouts = ["C"] * len(body.inputs)
        in_share = self.in_share or share is not None
        return Scope(body, layouts, self.shared, ranges, strides, in_share)

    # -- memory

    def _skip_copies(self) -> None:
        """Let values be computed where they are wanted; only what has memory of its own moves."""
        every = {m for use in self.uses for m in use.memories}
        fixed = {m for m in every if m[0].op.kind is Kind.INPUT or m[0] in self.program.results}
        pairs = list(zip(self.parts, self.uses, strict=True))
        steps = hand_over(pairs, fixed, self.shared.in_order)
        self.parts = [part for part, _ in steps]
        self.uses = [use for _, use in steps]

    def _plan_memory(self) -> tuple[dict[Memory, Place], Size]:
        """Places counted from the start of this scope's part of the arena."""
        fixed: dict[Memory, Place] = {}
        sizes: dict[Memory, Size] = {}
        inside = {p.scratch: p for p in self.parts if isinstance(p, Nested)}
        for m in dict.fromkeys(m for use in self.uses for m in use.memories):
            node, copy = m
            if m in inside:
                sizes[m] = inside[m].arena * (SHARES if inside[m].share else 1)
            elif node.op.kind is Kind.INPUT:
                fixed[m] = Place("input", node.params)
            elif node in self.program.results and not self.inner:
                fixed[m] = Place("output", self.program.results[node][copy])
            elif not node.shape and self.shared.registers:
                fixed[m] = Place("local", len(self.shared.locals))
                self.shared.locals.append(node.dtype)
            else:
                count = product(self.storage.room(node))
                sizes[m] = greatest(count * node.dtype.itemsize, self.ranges)
        return plan_memory(self.uses, fixed, sizes)

    # -- steps

    def steps(self, inputs: Sequence[Place], start: Size) -> tuple[Step, ...]:
        """The block's steps; its own memory begins at `start` in the arena."""

        def place(m: Memory) -> Place:
            found = self.places[m]
            if found.space == "input":
                return inputs[found.number]
            return replace(found, offset=start + found.offset) if found.space == "arena" else found

        return tuple(
            self._step(part, [place(m) for m in use.memories], place)
            for part, use in zip(self.parts, self.uses, strict=True)
        )

    def result(self) -> Place:
        """Where the only output of a body is, a single element."""
        (holder,) = self.program.results
        return self.places[self._memory(holder)]

    def _step(self, part: Part, where: list[Place], place: Callable[[Memory], Place]) -> Step:
        if isinstance(part, Lowered):
            scalars = tuple(n.params for n in part.scalars)
            number = self.shared.kernels.setdefault(part.kernel, len(self.shared.kernels))
            return Launch(number, tuple(where), scalars, part.sizes, part.where)
        if isinstance(part, Product):
            return part.placed(*where)
        if isinstance(part, Nested):
            return self._nested_step(part, where, place)
        if isinstance(part, Node) and isinstance(part.params, Bind):
            return plan.Bind(part.params.var, where[0])
        self.shared.stops += 1
        if isinstance(part, Called):
            return part.placed(self.shared.stops, where)
        return Check(self.shared.stops, where[0], str(part.params))

    def _nested_step(
        self, part: Nested, where: list[Place], place: Callable[[Memory], Place]
    ) -> Step:
        inputs = [place(m) for m in part.inputs]
        start = place(part.scratch).offset if part.scratch in self.places else 0
        if part.share is not None:
            start = start + part.arena * as_size(part.share)
        bodies = [s.steps(inputs, start) for s in part.scopes]
        params: Loop | While | Cond = part.node.params
        if isinstance(params, Cond):
            return plan.If(where[0], *bodies)
        stops = tuple(inputs[k] for k in params.stops)
        if isinstance(params, Loop):
            is_apart = _may_end(params.body) and apart.is_apart(params, self.program.known)
            return plan.Loop(*(params.index, params.trips, bodies[0], stops, part.share), is_apart)
        return plan.While(bodies[0], part.scopes[0].result(), bodies[1], stops)


def _bodies(params: Loop | While | Cond) -> tuple[Graph, ...]:
    """The nested graphs in the order in which their steps stand."""
    if isinstance(params, Loop):
        return (params.body,)
    if isinstance(params, While):
        return (params.test, params.body)
    return (params.then, params.other)


def _may_end(body: Graph) -> bool:
    """Whether data end a loop in a body."""
    controls = [n.params for n in body.nodes]
    return any(isinstance(p, While) or (isinstance(p, Loop) and p.stops) for p in controls)


def _most(sizes: Iterable[Size]) -> Size:
    total: Size = 0
    for size in sizes:
        total = smax(total, size)
    return total
