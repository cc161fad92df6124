"""The reference backend: every node by NumPy. Slow, always right; what tests compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npjit.core.graph import Graph, Weight


def reference(graph: Graph, example_types: Any) -> Callable[[list[Any]], list[Any]]:
    """A function from inputs to results that interprets the graph."""
    del example_types

    def run(inputs: list[Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            results = graph.run(*inputs)
        return [weighed(r, n.type.weight) for r, n in zip(results, graph.outputs, strict=True)]

    return run


def weighed(value: Any, weight: Weight) -> Any:
    """A 0-d result as NumPy gives it: array, NumPy scalar or Python number. Arrays never share
    memory.
    """
    if weight is Weight.ARRAY:
        return np.array(value, order="K")
    scalar = np.asarray(value)[()]
    return scalar.item() if weight is Weight.WEAK else scalar
