"""Tracing for tests of the op table: call a function on Tracers, run its graph by the reference.

check(lambda x: np.sum(x, axis=1), np.ones((2, 3)))      # equals NumPy in value, dtype, shape and
kind
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import npjit.ops  # noqa: F401 (fills the table)
from npjit.core.graph import Block, Graph, Node, SizeSource, TensorType, Weight
from npjit.core.size import Size, Var, var
from npjit.core.tolerance import assert_equal_numpy
from npjit.ops import kinds
from npjit.ops.cell import Cell
from npjit.ops.errors import pop_trace, push_trace
from npjit.ops.namespace import traced_namespace
from npjit.ops.tracer import Tracer, as_node


class Trace(Block):
    """A block whose inputs are the given arrays; `dynamic` makes their extents symbols."""

    def __init__(self, dynamic: bool = False) -> None:
        super().__init__()
        self.dynamic = dynamic
        self.inputs: list[Node] = []
        self.arrays: list[Any] = []
        self.cells: list[Cell] = []
        self.sources: dict[Var, SizeSource] = {}

    def input(self, value: Any) -> Tracer:
        """A traced argument."""
        weight = Weight.ARRAY
        if not isinstance(value, np.ndarray):
            weight = Weight.SCALAR if isinstance(value, np.generic) else Weight.WEAK
        array = np.asarray(value)
        shape = tuple(self._extent(i, n) for i, n in enumerate(array.shape))
        type_ = TensorType(shape, array.dtype, weight)
        node = self.add(kinds.INPUT, (), len(self.inputs), type_)
        self.inputs.append(node)
        self.arrays.append(array)
        self.cells.append(Cell(self, node, argument=weight is Weight.ARRAY))
        return Tracer(self.cells[-1], None, weight)

    def _extent(self, axis: int, n: int) -> Size:
        if not self.dynamic or n < 2:
            return n
        made = var(f"n{len(self.sources)}", lo=2)
        ((mono, _),) = made.terms
        (unknown,) = mono
        assert isinstance(unknown, Var)
        self.sources[unknown] = SizeSource(len(self.inputs), axis)
        self.sizes.values[unknown.name] = n
        return made

    def lift(self, value: np.ndarray) -> Node:
        """An array constant as an input of its own."""
        return self.input(value).node

    def actual(self, node: Node) -> Any:
        """The value of a node for the arrays at hand."""
        graph = Graph.of(self, self.inputs, [node], (), self.sources)
        return graph.run(*self.arrays)[0]

    def c_ordered(self, node: Node) -> bool:
        """Whether an input is C-contiguous."""
        return bool(self.arrays[node.params].flags.c_contiguous)

    def graph(self, outputs: list[Any]) -> Graph:
        """The finished graph."""
        nodes = [as_node(self, o) for o in outputs]
        changed = [(i, c.node) for i, c in enumerate(self.cells) if c.node is not self.inputs[i]]
        graph = Graph.of(self, self.inputs, nodes, changed, self.sources)
        graph.verify()
        return graph


class Namespace:
    """np as traced code sees it: creation functions make traced arrays."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._made = traced_namespace()

    def __getattr__(self, name: str) -> Any:
        made = self._made.get(name)
        if made is None:
            return getattr(np, name)
        return lambda *args, **kwargs: made(self._block, *args, **kwargs)


def run(function: Callable[..., Any], *args: Any, dynamic: bool = False) -> Any:
    """The function's result by its graph; written arguments are updated in place.

    A function whose first parameter is `xp` gets the traced namespace there.
    """
    block = Trace(dynamic)
    tracers = [block.input(a) for a in args]
    if takes_namespace(function):
        tracers.insert(0, Namespace(block))
    push_trace(block)
    try:
        outcome = function(*tracers)
    finally:
        pop_trace()
    outputs = list(outcome) if isinstance(outcome, (tuple, list)) else [outcome]
    graph = block.graph(outputs)
    with np.errstate(all="ignore"):
        values = graph.run(*block.arrays)
    made = [in_kind(v, n) for v, n in zip(values, graph.outputs, strict=True)]
    return type(outcome)(made) if isinstance(outcome, (tuple, list)) else made[0]


def takes_namespace(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is `xp`."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_varnames[:1] == ("xp",)


def in_kind(value: Any, node: Node) -> Any:
    """A reference value as the array, NumPy scalar or Python number that its node stands for."""
    array = np.asarray(value)
    assert array.dtype == node.dtype, f"{node}: the reference gives {array.dtype}"
    if node.type.weight is Weight.ARRAY:
        return array
    return array[()] if node.type.weight is Weight.SCALAR else array.item()


def check(
    function: Callable[..., Any],
    *args: Any,
    ulp: int = 0,
    bound: Any = None,
    dynamic: bool | None = None,
) -> None:
    """The traced function equals NumPy's, with literal and with symbolic extents."""
    own = copies(args)
    with np.errstate(all="ignore"):
        want = function(*([np, *own] if takes_namespace(function) else own))
    for symbolic in (False, True) if dynamic is None else (dynamic,):
        mine = copies(args)
        got = run(function, *mine, dynamic=symbolic)
        assert_equal_numpy(got, want, ulp=ulp, bound=bound)
        assert_equal_numpy(mine, own, ulp=ulp, bound=bound)


def copies(args: Any) -> list[Any]:
    """Arrays copied in their memory order, numbers as they are."""
    return [a.copy("K") if isinstance(a, np.ndarray) else a for a in args]
