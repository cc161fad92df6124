"""How scores become weights: what a row that sums values by weights has as params.

In: nothing. Out: `Weighing`. Of scores q @ k.T the weights are the softmax of

    Weighing(scale=0.125)                          0.125 * scores
    Weighing(0.125, mask="where", fill=-inf)       where(mask, 0.125 * scores, -inf)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Weighing:
    """Scores are multiplied by `scale` and the factor, then a bool mask puts `fill` in place of
    those where it is False, or a mask of numbers is added. `rounded`: the weights are rounded to
    the type of the values.

    The row's arguments are q, k, v, and the factor and mask there are. With `backward` it gives
    their gradients, and the gradient of its result comes behind v."""

    scale: float = 1.0
    has_factor: bool = False
    mask: str = ""
    fill: float = 0.0
    rounded: bool = False
    backward: bool = False
