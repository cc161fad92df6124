"""Gradients without a compiler: tracing small functions, and checking them against central
differences.

`Trace.of(call, *arguments)` runs `call(block, *tracers)` and keeps the graph with the values of its
inputs; `check_gradients(f, *arguments)` compares gradients and, through a weighted sum of them,
second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npjit.core.graph import Block, Graph, Node, SizeSource, TensorType, Weight
from npjit.core.size import Shape, Size, Var, var
from npjit.frontend.trees import flatten, unflatten
from npjit.ops import kinds
from npjit.ops.tracer import Cell, Tracer, as_node
from npjit.transform.api_grad import grad_of_traced

STEP = 1e-5


@dataclass
class TracedBlock(Block):
    """A block that takes arrays met while tracing as further inputs."""

    inputs: list[Node] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    sources: dict[Var, SizeSource] = field(default_factory=dict)
    symbolic: bool = False

    def lift(self, value: np.ndarray) -> Node:
        return self.input(value, Weight.ARRAY)

    def c_ordered(self, node: Node) -> bool:
        return bool(self.values[node.params].flags.c_contiguous)

    def input(self, value: Any, weight: Weight) -> Node:
        value = np.asarray(value)
        shape = self._shape(value.shape)
        type_ = TensorType(shape, value.dtype, weight)
        node = self.add(kinds.INPUT, (), len(self.inputs), type_)
        self.inputs.append(node)
        self.values.append(value)
        return node

    def _shape(self, extents: Sequence[int]) -> Shape:
        shape: list[Size] = []
        for axis, n in enumerate(extents):
            if not self.symbolic or n < 2:
                shape.append(n)
                continue
            size = var(f"n{len(self.sources)}", lo=2)
            (atom,) = size.terms[0][0]
            self.sources[atom] = SizeSource(len(self.inputs), axis)
            self.sizes.values[atom.name] = n
            shape.append(size)
        return tuple(shape)


@dataclass
class Trace:
    """A traced call: the graph, its inputs' values, and the tree of its outputs."""

    graph: Graph
    values: list[Any]
    tree: Any

    @staticmethod
    def of(call: Callable[..., Any], *arguments: Any, symbolic: bool = False) -> Trace:
        block = TracedBlock(symbolic=symbolic)
        traced = [_tracers(block, a) for a in arguments]
        cells = [t.cell for a in traced for t in flatten(a)[0]]
        entry = [c.node for c in cells]
        leaves, tree = flatten(call(block, *traced))
        outputs = [as_node(block, x) for x in leaves]
        writes = [
            (block.inputs.index(before), c.node)
            for c, before in zip(cells, entry, strict=True)
            if c.node is not before
        ]
        graph = Graph.of(block, block.inputs, outputs, writes, block.sources)
        graph.verify()
        return Trace(graph, block.values, tree)

    def run(self, graph: Graph | None = None) -> Any:
        """The results by the reference meaning; the inputs stay as they are."""
        values = [np.array(v) for v in self.values]
        return unflatten(self.tree, (graph or self.graph).run(*values))


def _tracers(block: TracedBlock, argument: Any) -> Any:
    leaves, tree = flatten(argument)
    return unflatten(tree, [_tracer(block, x) for x in leaves])


def _tracer(block: TracedBlock, value: Any) -> Tracer:
    if isinstance(value, np.ndarray):
        weight = Weight.ARRAY
    else:
        weight = Weight.SCALAR if isinstance(value, np.generic) else Weight.WEAK
    node = block.input(value, weight)
    return Tracer(Cell(block, node, argument=weight is Weight.ARRAY), None, weight)


def gradient(
    f: Callable[..., Any], *arguments: Any, argnums: Any = 0, symbolic: bool = False
) -> Any:
    """grad(f)(*arguments) by the reference meaning of the traced graph."""

    def call(block: Block, *traced: Any) -> Any:
        return grad_of_traced(block, f, traced, {}, argnums)

    return Trace.of(call, *arguments, symbolic=symbolic).run()


def numeric_gradient(f: Callable[..., Any], arguments: Sequence[Any], number: int) -> np.ndarray:
    """Central differences; for complex arguments d/dx + i d/dy."""
    x = np.array(arguments[number])
    result = np.zeros_like(x)
    directions = (1, 1j) if x.dtype.kind == "c" else (1,)
    for i in np.ndindex(x.shape):
        for d in directions:
            ends = []
            for step in (STEP, -STEP):
                moved = x.copy()
                moved[i] += step * d
                changed = [*arguments[:number], moved, *arguments[number + 1 :]]
                ends.append(float(f(*changed)))
            result[i] += d * (ends[0] - ends[1]) / (2 * STEP)
    return result


def check_gradients(f: Callable[..., Any], *arguments: Any, order: int = 2) -> None:
    """Gradients for every argument agree with central differences, up to the given order."""
    everything = tuple(range(len(arguments)))
    found = gradient(f, *arguments, argnums=everything)
    for i, (g, x) in enumerate(zip(found, arguments, strict=True)):
        assert np.shape(g) == np.shape(x)
        assert g.dtype == np.asarray(x).dtype
        np.testing.assert_allclose(g, numeric_gradient(f, arguments, i), rtol=2e-5, atol=2e-7)
    if order == 2:
        _check_second(f, arguments, everything)


def _check_second(f: Callable[..., Any], arguments: Sequence[Any], everything: Any) -> None:
    random = np.random.default_rng(7)
    weights = [random.uniform(0.5, 1.5, np.shape(x)) for x in arguments]

    def slope(block: Block, *traced: Any) -> Any:
        """A weighted sum of the first derivatives."""
        gradients = grad_of_traced(block, f, traced, {}, everything)
        total = 0.0
        for g, w in zip(gradients, weights, strict=True):
            if g.dtype.kind == "c":
                total = total + np.sum(np.imag(g) * (w * w))
                g = np.real(g)
            total = total + np.sum(g * w)
        return total

    def second(block: Block, *traced: Any) -> Any:
        return grad_of_traced(block, lambda *a: slope(block, *a), traced, {}, everything)

    found = Trace.of(second, *arguments).run()
    for i, g in enumerate(found):
        wanted = numeric_gradient(
            lambda *a: Trace.of(slope, *a).run(), [np.asarray(x) for x in arguments], i
        )
        np.testing.assert_allclose(g, wanted, rtol=2e-4, atol=2e-5)
