"""From a Graph to a Plan: the whole of scheduling, pass by pass.

settle    what loops carry becomes storage              Graph  -> Graph
split     reductions that follow rows become two        Graph  -> Graph
cells     storage, versions, outputs                    Graph  -> Program
fuse      which kernel computes what                    Program -> Fusion
lower     each group                                    Group -> Kernel, Contract, Call or Check
memory    where stored values live                      -> places

All but the first are done for each block, the bodies of loops and branches being blocks of their
own: see `scope`.

    schedule(graph, ["C"] * len(graph.inputs))    ->  Plan
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.core.graph import Graph, Node, Weight
from npjit.core.layout import Layout
from npjit.core.size import bounds
from npjit.schedule.carried import has_control, settle
from npjit.schedule.cells import NotScheduled
from npjit.schedule.plan import InputSpec, OutputSpec, Place, Plan
from npjit.schedule.saves import find_saves
from npjit.schedule.scope import Scope, Shared
from npjit.schedule.strips import cut_in_strips
from npjit.schedule.turn import turn_matrices
from npjit.schedule.upright import stand_upright

# more than processors can address; sums of such sizes might leave int64
MOST_BYTES = 1 << 48


def schedule(graph: Graph, layouts: Sequence[Layout], few_threads: bool = True) -> Plan:
    """The plan of a graph whose array inputs have these layouts; `few_threads`: for caches and
    loops in order, not for a GPU."""
    graph = settle(graph)
    if few_threads:
        graph = cut_in_strips(stand_upright(turn_matrices(graph)))
    shared = Shared(has_control(graph), graph.guards, few_threads)
    scope = Scope(graph, layouts, shared)
    steps = scope.steps([Place("input", k) for k in range(len(graph.inputs))], 0)
    inputs = _inputs(scope)
    saves, arena = find_saves(steps, tuple(shared.kernels), inputs, scope.arena)
    least, _ = bounds(arena)
    if least is not None and least > MOST_BYTES:
        raise NotScheduled("room for a length known only in the run", graph.nodes[-1].where)
    return Plan(
        inputs,
        tuple(_output(scope, k, n) for k, n in enumerate(scope.graph.outputs)),
        tuple(shared.kernels),
        steps,
        arena,
        graph.guards,
        scope.storage.sources,
        tuple(shared.refusals),
        tuple(shared.locals),
        saves,
    )


def _inputs(scope: Scope) -> tuple[InputSpec, ...]:
    return tuple(
        InputSpec(n.dtype, n.shape, n.type.weight is not Weight.ARRAY, layout)
        for n, layout in zip(scope.graph.inputs, scope.storage.layouts, strict=True)
    )


def _output(scope: Scope, number: int, n: Node) -> OutputSpec:
    holder = next(h for h, to in scope.program.results.items() if number in to)
    return OutputSpec("fresh", n.dtype, n.shape, scope.storage.order(holder))
