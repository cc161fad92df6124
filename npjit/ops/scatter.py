"""Rows that store through index arrays. `scatter_add(base, value, *indices)` is the adjoint of a
gather.

The value has the gather's shape; where several of its elements meet one element of the base, they
add up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npjit.core.op import Gather, Kind, Op, Reduction
from npjit.ops.kinds import row


def _scatter_add(node: Any, base: Any, value: Any, *indices: Any) -> Any:
    g: Gather = node.params
    result = np.array(base)
    kept = [d for d in range(base.ndim) if d not in g.dims]
    rank = np.ndim(indices[0])
    placed = range(g.place, g.place + rank)
    rest = [axis for axis in range(value.ndim) if axis not in placed]
    target = np.transpose(result, [*g.dims, *kept])
    np.add.at(target, tuple(indices), np.transpose(value, [*placed, *rest]))
    return result


SCATTER_ADD = row(Op("scatter_add", Kind.SCATTER, _scatter_add, reduction=Reduction("sum", 0)))
