"""Rows that compiled graphs leave to Python: the other end of a host step.

In: the text that a printer wrote, the row's name, which of its results are wanted and its params,
and arrays over the graph's memory. The results are put in place.

    compute("sort 0 (-1,)", [x], [out])     # out[...] = np.sort(x, -1)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from npjit.core.op import Gather, Op
from npjit.ops.kinds import ROWS


@lru_cache(maxsize=1024)
def _parse(spec: str) -> tuple[Op, tuple[int, ...], Any]:
    name, wanted, params = spec.split(" ", 2)
    values = eval(params, {"__builtins__": {}, "Gather": Gather})
    return ROWS[name], tuple(int(k) for k in wanted.split(",") if k), values


def compute(
    spec: str, arguments: Sequence[np.ndarray[Any, Any]], results: Sequence[np.ndarray[Any, Any]]
) -> None:
    """Evaluate a row's reference meaning from arrays into arrays."""
    op, wanted, params = _parse(spec)
    first = results[0] if results else None
    node = SimpleNamespace(
        params=params, dtype=getattr(first, "dtype", None), shape=getattr(first, "shape", None)
    )
    made = op.evaluate(node, *arguments)
    parts = made if isinstance(made, (tuple, list)) else (made,)
    for k, target in zip(wanted, results, strict=True):
        target[...] = parts[k]
