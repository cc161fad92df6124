"""Tracing one call: from a function and its actual arguments to a `Captured` graph and the recipe
of its result.

`capture_call(f, args, kwargs, policy)` runs f once over Tracers. What comes out says how to fetch
the graph's inputs again (steps), which graph computes what is new, and how the call's result is put
together (results and tree).

    capture_call(call, (x, 2.0), {}, Policy())    ->  Captured: graph(%0: f64[n0], %1: f64~[]) ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core.graph import Graph, Weight, reachable
from npjit.core.op import CONTROL, Kind
from npjit.frontend.capture import Capture, Input, Step
from npjit.frontend.namespace import TracedGlobals
from npjit.frontend.outside import Outside
from npjit.frontend.overflow import bound_sizes
from npjit.frontend.policy import Policy
from npjit.frontend.results import Results, renumbered
from npjit.frontend.steps import needed_steps
from npjit.ops.errors import NotCaptured, pop_trace, push_trace

# nodes that must keep their place among the others
_WRITERS = CONTROL | {Kind.UPDATE, Kind.SCATTER}
# errors of what no guard tells: a name, attribute or module that may come, settings, the machine
_UNGUARDED = (
    *(NameError, AttributeError, ImportError, OSError, RecursionError, MemoryError),
    *(FloatingPointError, Warning),
)


@dataclass(frozen=True)
class Captured:
    """A traced call; `tree` and `results` are those of frontend.results."""

    graph: Graph
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    npositional: int
    kwnames: tuple[str, ...]
    results: tuple[tuple[str, Any], ...]
    tree: Any
    disjoint: tuple[Any, ...]
    # whether the results surely are NumPy's in memory order, too, and as numbers of NumPy or Python
    is_sure: bool
    # whether arrays on the CPU may meet those on a GPU: they are copied there
    may_mix: bool = False


class Failed(Exception):
    """The traced code raised `error`; `steps` and `passing` are as a NotCaptured's."""

    def __init__(self, error: Exception, steps: tuple[Step, ...], passing: bool) -> None:
        super().__init__(error)
        self.error = error
        self.steps = steps
        self.passing = passing


def capture_call(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    policy: Policy,
) -> Captured:
    """Trace `call(outside, args, kwargs)` for these actual arguments; NotCaptured when it cannot
    be, Failed when it raises.
    """
    capture = Capture(policy)
    outside = Outside(capture)
    capture.outside = outside
    push_trace(capture)
    try:
        traced_args = [_argument(outside, i, a) for i, a in enumerate(args)]
        traced_kwargs = {k: outside.read(v, ("kw", k)) for k, v in kwargs.items()}
        result = call(outside, traced_args, traced_kwargs)
        outside.functions.refuse_stores()
        captured = _finish(capture, len(args), tuple(kwargs), result)
        if capture.spoiled is not None:
            raise capture.spoiled
        return captured
    except NotCaptured as e:
        e.where = e.where or _line_in(e.__traceback__)
        # the guards met so far: calls like this one go to NumPy without another attempt
        e.steps, _ = needed_steps(capture.steps, [])
        e.passing = e.passing or bool(capture.block.sizes.guards)
        raise
    except Exception as e:
        steps, _ = needed_steps(capture.steps, [])
        passing = bool(capture.block.sizes.guards) or isinstance(e, _UNGUARDED)
        raise Failed(e, steps, passing) from e
    finally:
        capture.block.close()
        pop_trace()
        # they are in many cycles, which would keep the trace until the next collection
        for part in (outside, capture):
            vars(part).clear()


def _argument(outside: Outside, number: int, value: Any) -> Any:
    try:
        return outside.read(value, ("arg", number))
    except NotCaptured as e:
        e.argument = number, value
        raise


def _line_in(traceback: Any) -> str:
    """file:line of the innermost traced frame."""
    where = ""
    while traceback is not None:
        frame = traceback.tb_frame
        if isinstance(frame.f_globals, TracedGlobals):
            where = f"{frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return where


def _finish(capture: Capture, npositional: int, kwnames: tuple[str, ...], result: Any) -> Captured:
    results = Results(capture)
    tree = results.ordered(results.describe(result))
    writes = capture.writes()
    for position, _ in writes:
        _require_writable(capture, position)
    _put_checks_first(capture)
    nodes = [i.node for i in capture.inputs]
    graph = Graph.of(capture.block, nodes, results.nodes, writes, capture.sources)
    if bound_sizes(capture, graph):
        graph = Graph.of(capture.block, nodes, results.nodes, writes, capture.sources)
    disjoint = tuple(capture.same) + _disjoint(capture, [p for p, _ in writes])
    steps, numbers = needed_steps(capture.steps, [i.step for i in capture.inputs], tree)
    for i in capture.inputs:
        i.step = numbers[i.step]
    return Captured(
        graph,
        tuple(capture.inputs),
        steps,
        npositional,
        kwnames,
        tuple(results.leaves),
        renumbered(tree, "step", numbers),
        disjoint,
        results.is_sure,
    )


def _put_checks_first(capture: Capture) -> None:
    """When a check fails the call runs again as NumPy, and no argument may have been changed: where
    all checks come before the first write, nothing has to be saved for that."""
    block = capture.block
    checks = [n for n in block.nodes if n.op.kind is Kind.CHECK or n.op.raises]
    if not checks or not capture.writes():
        return
    before = reachable(checks)
    if any(n.op.kind in _WRITERS for n in before):
        return
    first = [n for n in block.nodes if n in before]
    block.nodes[:] = first + [n for n in block.nodes if n not in before]


def _require_writable(capture: Capture, position: int) -> None:
    entry = capture.inputs[position]
    if not entry.value.flags.writeable:
        raise ValueError("assignment destination is read-only")
    if _overlaps_itself(entry.value):
        raise NotCaptured("a write to an array whose elements overlap", passing=True)
    fetch, check = capture.steps[entry.step]
    if check[0] == "array":
        capture.steps[entry.step] = (fetch, (*check[:-1], True))


def _overlaps_itself(array: np.ndarray) -> bool:
    reach = array.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True)):
        if n > 1 and stride < reach:
            return True
        reach += stride * max(n - 1, 0)
    return False


def _disjoint(capture: Capture, written: list[int]) -> tuple[Any, ...]:
    """Pairs of inputs that must not share memory; NotCaptured when they do in this call."""
    pairs = []
    same = {j for _, _, j in capture.same}
    arrays = [
        i
        for i, entry in enumerate(capture.inputs)
        if entry.node.type.weight is Weight.ARRAY and i not in same
    ]
    for w in written:
        for other in arrays:
            if other == w or (other in written and other < w):
                continue
            if np.may_share_memory(capture.inputs[w].value, capture.inputs[other].value):
                reason = "arguments that overlap in memory, one of them written"
                raise NotCaptured(reason, passing=True)
            pairs.append((w, other))
    return tuple(pairs)
