"""Gradients without a compiler: tracing small functions, and checking them against central
differences.

`Trace.of(call, *arguments)` runs `call(block, *tracers)` and keeps the graph with the values of its
inputs; `check_gradients(f, *arguments)` compares gradients and, through a weighted sum of them,
second derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core.graph import Block, Graph
from npjit.core.trees import flatten, tree_map, unflatten
from npjit.transform.api_grad import grad_of_traced
from tests.tracing import Trace as TracedBlock

STEP = 1e-5


@dataclass
class Trace:
    """A traced call: the graph, its inputs' values, and the tree of its outputs."""

    graph: Graph
    values: list[Any]
    tree: Any

    @staticmethod
    def of(call: Callable[..., Any], *arguments: Any, symbolic: bool = False) -> Trace:
        block = TracedBlock(symbolic)
        traced = [tree_map(block.input, a) for a in arguments]
        leaves, tree = flatten(call(block, *traced))
        return Trace(block.graph(leaves), block.arrays, tree)

    def run(self, graph: Graph | None = None) -> Any:
        """The results by the reference meaning; the inputs stay as they are."""
        values = [np.array(v) for v in self.values]
        return unflatten(self.tree, (graph or self.graph).run(*values))


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
