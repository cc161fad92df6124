"""Tracing one call: from a function and its actual arguments to a `Captured` graph and the recipe of its result.

`capture_call(f, args, kwargs, policy)` runs f once over Tracers. What comes out says how to fetch the graph's inputs
again (steps), which graph computes what is new, and how the call's result is put together (outputs and tree).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core import view as views
from npjit.core.graph import Graph, Node, Weight
from npjit.core.layout import strides_of
from npjit.core.size import Shape, Size
from npjit.frontend.capture import Capture, Input, Policy, Step
from npjit.frontend.objects import ObjectProxy, TracedDict, TracedList
from npjit.frontend.outside import Outside
from npjit.frontend.trees import children_of, kind_of
from npjit.ops import build
from npjit.ops.errors import NotCaptured, pop_trace, push_trace
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer

# a trace that grows beyond this is left to NumPy
LARGEST_TRACE = 20_000


@dataclass(frozen=True)
class Alias:
    """A result that is a view of an input's memory: offset and strides in elements."""

    input: int
    dtype: np.dtype[Any]
    shape: Shape
    offset: Size
    strides: tuple[Size, ...]


@dataclass(frozen=True)
class Captured:
    """A traced call. Leaves of `tree` number `results`: a graph output ("fresh", k), an Alias ("alias", a) or an
    input itself ("input", position)."""

    graph: Graph
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    npositional: int
    kwnames: tuple[str, ...]
    results: tuple[tuple[str, Any], ...]
    tree: Any
    disjoint: tuple[Any, ...]


def capture_call(
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    policy: Policy,
) -> Captured:
    """Trace `call(outside, args, kwargs)` for these actual arguments; NotCaptured when it cannot be."""
    capture = Capture(policy)
    outside = Outside(capture)
    capture.outside = outside
    push_trace(capture)
    try:
        traced_args = [outside.read(a, ("arg", i)) for i, a in enumerate(args)]
        traced_kwargs = {k: outside.read(v, ("kw", k)) for k, v in kwargs.items()}
        result = call(outside, traced_args, traced_kwargs)
        if capture.spoiled is not None:
            raise capture.spoiled
        if len(capture.block.nodes) > LARGEST_TRACE:
            raise NotCaptured(f"a trace of {len(capture.block.nodes)} operations")
        return _finish(capture, len(args), tuple(kwargs), result)
    except NotCaptured as e:
        # the guards met so far: calls like this one go to NumPy without another attempt
        e.steps = tuple(capture.steps)
        raise
    finally:
        pop_trace()


def _finish(capture: Capture, npositional: int, kwnames: tuple[str, ...], result: Any) -> Captured:
    results = Results(capture)
    tree = results.ordered(results.describe(result))
    writes = capture.writes()
    for position, _ in writes:
        _require_writable(capture, position)
    graph = Graph.of(
        capture.block,
        [i.node for i in capture.inputs],
        results.nodes,
        writes,
        capture.sources,
    )
    return Captured(
        graph,
        tuple(capture.inputs),
        tuple(capture.steps),
        npositional,
        kwnames,
        tuple(results.leaves),
        tree,
        tuple(capture.same) + _disjoint(capture, [p for p, _ in writes]),
    )


def _require_writable(capture: Capture, position: int) -> None:
    entry = capture.inputs[position]
    if not entry.value.flags.writeable:
        raise ValueError("assignment destination is read-only")
    fetch, check = capture.steps[entry.step]
    capture.steps[entry.step] = (fetch, (*check[:-1], True))


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
                raise NotCaptured("arguments that overlap in memory, one of them written")
            pairs.append((w, other))
    return tuple(pairs)


class Results:
    """The leaves and the tree of a traced function's result."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.nodes: list[Node] = []
        self.leaves: list[tuple[str, Any]] = []
        self._known: dict[Any, Any] = {}

    def describe(self, value: Any) -> Any:
        """The recipe that rebuilds `value`, as the runtime's Entry takes it."""
        if type(value) is Tracer:
            return self._leaf(value)
        if type(value) is SymInt:
            return self._fresh(build.size_node(self.capture.block, value.size))
        if type(value) in (TracedDict, TracedList):
            return ("step", value.step)
        if type(value) is ObjectProxy:
            return ("step", value._npjit_step)
        if isinstance(value, np.ndarray):
            raise NotCaptured("the function returns an array made outside its trace")
        kind = kind_of(value)
        if kind in ("leaf", "none"):
            return self._constant(value)
        keys, children = children_of(kind, value)
        parts = [self.describe(c) for c in children]
        cls = type(value)
        if kind == "dict":
            return ("dict", cls, keys, parts)
        if kind in ("namedtuple", "dataclass"):
            return ("namedtuple", cls, parts) if kind == "namedtuple" else (kind, cls, keys, parts)
        if cls not in (tuple, list):
            raise NotCaptured(f"the function returns a {cls.__name__}")
        return (kind, parts)

    def ordered(self, tree: Any) -> Any:
        """Put the fresh leaves first (the order of the plan's outputs) and renumber the tree's leaves."""
        order = sorted(range(len(self.leaves)), key=lambda i: self.leaves[i][0] != "fresh")
        self.leaves = [self.leaves[i] for i in order]
        return _renumbered(tree, {old: new for new, old in enumerate(order)})

    def _constant(self, value: Any) -> Any:
        fixed = (bool, int, float, complex, str, bytes, type(None), slice, type, np.dtype)
        if not isinstance(value, (*fixed, np.generic)) and not dataclasses.is_dataclass(value):
            raise NotCaptured(f"the function returns a {type(value).__name__} object")
        return ("const", value)

    def _leaf(self, value: Tracer) -> Any:
        # one object returned twice is one object for the caller
        key = (id(value.cell), value.view, value.weight)
        if key not in self._known:
            self._known[key] = self._describe_leaf(value)
        return self._known[key]

    def _describe_leaf(self, value: Tracer) -> Any:
        position = self.capture.argument_position(value.cell)
        if position is None:
            return self._fresh(value.node)
        if value.weight is not Weight.ARRAY:
            return self._fresh(value.node)
        if value.view is None:
            return self._add(("input", position))
        return self._add(("alias", self._alias(position, value.view)))

    def _alias(self, position: int, view: views.View) -> Alias:
        entry = self.capture.inputs[position]
        offset, strides = view.strides(input_strides(position, entry))
        return Alias(position, entry.node.dtype, view.shape, offset, strides)

    def _fresh(self, node: Node) -> Any:
        self.nodes.append(node)
        return self._add(("fresh", len(self.nodes) - 1))

    def _add(self, leaf: tuple[str, Any]) -> Any:
        self.leaves.append(leaf)
        return ("leaf", len(self.leaves) - 1)


def input_strides(position: int, entry: Input) -> tuple[Size, ...]:
    """An input's strides in elements as sizes; variables s<position>_<axis> where only the call knows them."""
    return strides_of(position, entry.node.shape, entry.layout)


def _renumbered(tree: Any, numbers: dict[int, int]) -> Any:
    if tree[0] == "leaf":
        return ("leaf", numbers[tree[1]])
    if tree[0] in ("const", "step"):
        return tree
    return (*tree[:-1], [_renumbered(t, numbers) for t in tree[-1]])
