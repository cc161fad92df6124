"""Storage cells: which versions share a buffer, when a version ends, and where results are
returned.

In: a graph. Out: a `Program`, the graph's nodes with the few copies that storage asks for put in:
an output that is an old version of a cell, a scalar input, or a second name of one buffer gets an
identity view of its own, which is stored like any other value. All versions of a cell live in the
buffer of its `base` (a CELL or a written INPUT).

`horizon[n]` is the position of the first update that overwrites something n reads; a use after it
needs n's value stored before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from npjit.core.assume import Assumptions
from npjit.core.graph import Graph, Node
from npjit.core.op import CONTROL, Kind, Op
from npjit.core.view import identity
from npjit.schedule.split import Axes, row_axes

COPY = Op("copy", Kind.VIEW, lambda n, a: a)
WRITE = Op("write", Kind.UPDATE, lambda n, a, b: b)
FOREVER = 1 << 60

_VERSIONS = (Kind.INPUT, Kind.CELL, Kind.UPDATE)
# computed by steps of their own, from arrays in memory
CALLS = (Kind.SCAN, Kind.SCATTER, Kind.EXTERN)
STEPS = (Kind.CONTRACT, *CALLS, Kind.RESULT, Kind.BIND)


class NotScheduled(Exception):
    """What this scheduler has no plan for; `where` is the user's line."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"not scheduled: {what} {where}")
        self.what = what
        self.where = where


@dataclass
class Program:
    """Nodes in program order and what is known of their storage; see the module's docstring.
    `known` is what is known of sizes."""

    known: Assumptions = field(default_factory=Assumptions)
    # whether kernels may run in order, in one thread, to be spared a temporary
    in_order: bool = False

    nodes: list[Node] = field(default_factory=list)
    position: dict[Node, int] = field(default_factory=dict)
    # a version -> the node whose buffer holds it
    base: dict[Node, Node] = field(default_factory=dict)
    # a version -> the update, or the loop or branch, that overwrites it
    killer: dict[Node, Node] = field(default_factory=dict)
    # a version -> the next one
    successor: dict[Node, Node] = field(default_factory=dict)
    horizon: dict[Node, int] = field(default_factory=dict)
    # the axes along which a reduction's result is broadcast in a node
    rows: dict[Node, Axes] = field(default_factory=dict)
    # nodes whose value must be in memory, and the outputs that a stored node (a base, for a cell)
    # fills
    stored: set[Node] = field(default_factory=set)
    results: dict[Node, list[int]] = field(default_factory=dict)

    def copy_of(self, n: Node) -> Node:
        """A value of its own for `n`, as an identity view right behind it."""
        return Node(COPY, (n,), identity(n.shape), n.type, n.where)


def read_program(graph: Graph, known: Assumptions | None = None) -> Program:
    """The graph's nodes, storage and outputs."""
    known = known or Assumptions()
    program = Program(known=known, nodes=list(graph.nodes), rows=row_axes(graph))
    for n in graph.nodes:
        _add_version(program, n)
    _write_back(graph, program)
    behind: dict[Node, list[Node]] = {}
    for number, out in enumerate(graph.outputs):
        _place_output(program, behind, number, out)
    if behind:
        program.nodes = [m for n in program.nodes for m in (n, *behind.get(n, ()))]
    program.position = {n: i for i, n in enumerate(program.nodes)}
    _find_horizons(program)
    return program


def _add_version(program: Program, n: Node) -> None:
    if n.op.kind in (Kind.INPUT, Kind.CELL):
        program.base[n] = n
    if n.op.kind in (Kind.CHECK, Kind.BIND):
        program.stored.add(n.args[0])
    if n.op.kind in (Kind.UPDATE, Kind.SCATTER):
        old = n.args[0]
        _overwrite(program, old, n)
        _succeed(program, old, n)
    if n.op.kind in CONTROL:
        for old in written_arguments(n):
            _overwrite(program, old, n)
    if n.op.kind is Kind.RESULT and n.args[0].op.kind in CONTROL:
        _succeed(program, written_arguments(n.args[0])[n.params], n)


def written_arguments(n: Node) -> list[Node]:
    """The versions that the bodies of a loop or branch overwrite."""
    inputs = inputs_of(n)
    return [inputs[p] for p in n.params.written]


def inputs_of(n: Node) -> tuple[Node, ...]:
    """The arguments of a loop or branch that are its bodies' inputs."""
    return n.args[1:] if n.op.kind is Kind.COND else n.args


def before(n: Node) -> Node | None:
    """The version of storage that a version takes the place of."""
    if n.op.kind in (Kind.UPDATE, Kind.SCATTER):
        return n.args[0]
    if n.op.kind is Kind.RESULT and n.args[0].op.kind in CONTROL:
        control = n.args[0]
        place: int = control.params.written[n.params]
        return inputs_of(control)[place]
    return None


def storage_of(n: Node) -> Node:
    """What a version is a version of."""
    earlier = before(n)
    while earlier is not None:
        n, earlier = earlier, before(earlier)
    return n


def _overwrite(program: Program, old: Node, by: Node) -> None:
    if old not in program.base or old in program.killer:
        raise NotScheduled("an update of a value that is no cell's last version", by.where)
    program.killer[old] = by
    if program.base[old].op.kind is Kind.CELL:
        program.stored.add(program.base[old])


def _succeed(program: Program, old: Node, new: Node) -> None:
    program.base[new] = program.base[old]
    program.successor[old] = new


def _write_back(graph: Graph, program: Program) -> None:
    """A written input whose last value is not a version of its own storage gets one more update."""
    for number, last in graph.writes:
        target = graph.inputs[number]
        if program.base.get(last) is target:
            continue
        version = target
        while version in program.successor:
            version = program.successor[version]
        write = Node(WRITE, (version, last), identity(target.shape), target.type, last.where)
        program.nodes.append(write)
        _add_version(program, write)


def _place_output(program: Program, behind: dict[Node, list[Node]], number: int, out: Node) -> None:
    kind = out.op.kind
    holder = program.base.get(out, out)
    taken = holder in program.results and (kind in _VERSIONS or kind in STEPS)
    # a number that a loop carries stays in a register, and is copied out at the end
    carried = kind is Kind.RESULT and out in program.base and not out.shape
    is_input = kind is Kind.INPUT or holder.op.kind is Kind.INPUT
    if is_input or carried or out in program.killer or taken:
        copy = program.copy_of(out)
        behind.setdefault(out, []).append(copy)
        holder = copy
    program.stored.add(holder)
    program.results.setdefault(holder, []).append(number)


def _find_horizons(program: Program) -> None:
    position = program.position
    # what a reader of the node's value inherits: nothing, where the value is stored for itself
    seen: dict[Node, int] = {}
    for n in program.nodes:
        horizon = FOREVER
        if n in program.killer:
            horizon = position[program.killer[n]]
        if n.op.kind not in (Kind.INPUT, Kind.UPDATE, *STEPS, *CONTROL):
            horizon = min([horizon, *(seen[a] for a in n.args)])
        program.horizon[n] = horizon
        kept = n in program.stored and n not in program.base
        own = n.op.kind in STEPS and n not in program.base
        seen[n] = FOREVER if kept or own else horizon
