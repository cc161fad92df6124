"""Random straight-line NumPy programs, drawn by hypothesis: the same steps run on arrays and on
traced arrays.

A program is a list of steps over a growing list of arrays; `run_program(steps, arrays)` gives that
list. Shapes are followed while drawing, so that every drawn program is legal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

Draw = Callable[[Any], Any]

# smooth, and bounded, so that long programs stay finite
SMOOTH = (np.sin, np.tanh, lambda x: x * 0.5 - 1.0, lambda x: 1.0 / (x * x + 1.0))
# what a simplifier might take for nothing
IDLE = (
    lambda x: x * 1.0,
    lambda x: 1.0 * x,
    lambda x: x / 1.0,
    lambda x: x - 0.0,
    lambda x: x + -0.0,
    lambda x: x + 0.0,
    lambda x: np.negative(np.negative(x)),
    lambda x: x * (2.0 * 0.5),
)
PAIRS = (np.add, np.subtract, np.multiply, np.maximum)
STARTS = ((4,), (3, 4), (2, 3, 4))


@dataclass(frozen=True)
class Step:
    """One call: `apply` on the arrays at these positions; the result is appended."""

    name: str
    at: tuple[int, ...]
    apply: Callable[..., Any]

    def __repr__(self) -> str:
        return f"{self.name}{self.at}"


def run_program(steps: list[Step], arrays: list[Any]) -> list[Any]:
    """The starting arrays and every step's result."""
    values = list(arrays)
    for s in steps:
        values.append(s.apply(*[values[i] for i in s.at]))
    return values


@st.composite
def programs(draw: Draw, smooth: bool = False, length: int = 8) -> tuple[list[Step], list[Any]]:
    """Steps and starting arrays; `smooth` programs have a derivative at almost every point."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    arrays = [random.uniform(-2, 2, draw(st.sampled_from(STARTS))) for _ in range(2)]
    steps: list[Step] = []
    shapes = [a.shape for a in arrays]
    makers = [_unary, _binary, _view, _view, _sum, _write, _write]
    for _ in range(draw(st.integers(1, length))):
        maker = draw(st.sampled_from(makers))
        step = maker(draw, shapes, smooth)
        with np.errstate(all="ignore"):
            made = step.apply(*[np.zeros(shapes[i]) for i in step.at])
        steps.append(step)
        shapes.append(made.shape)
    return steps, arrays


def _pick(draw: Draw, shapes: list[Any]) -> int:
    # later arrays more often, so that steps build on each other
    return max(draw(st.integers(0, len(shapes) - 1)), draw(st.integers(0, len(shapes) - 1)))


def _unary(draw: Draw, shapes: list[Any], smooth: bool) -> Step:
    number = draw(st.integers(0, len(SMOOTH) + len(IDLE) - 1))
    return Step(f"unary{number}", (_pick(draw, shapes),), (*SMOOTH, *IDLE)[number])


def _binary(draw: Draw, shapes: list[Any], smooth: bool) -> Step:
    function = draw(st.sampled_from(PAIRS[: 3 if smooth else 4]))
    a, b = _pick(draw, shapes), _pick(draw, shapes)

    def apply(x: Any, y: Any) -> Any:
        rank = min(x.ndim, y.ndim)
        if rank == 0:
            return function(x, y)
        common = tuple(
            slice(0, min(m, n)) for m, n in zip(shapes[a][-rank:], shapes[b][-rank:], strict=True)
        )
        return function(x[(..., *common)], y[(..., *common)])

    return Step(function.__name__, (a, b), apply)


def _slice(draw: Draw, n: int) -> slice:
    step = draw(st.sampled_from([1, 1, 1, 2, -1, -2]))
    low = draw(st.integers(0, max(n - 1, 0)))
    high = draw(st.integers(low, n))
    if step > 0:
        return slice(low, high, step)
    return slice(high - 1 if high else None, low - 1 if low else None, step)


def _key(draw: Draw, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A basic index, with a slice in at least one place when there is an axis."""
    key: list[Any] = [_slice(draw, n) for n in shape]
    for axis, n in enumerate(shape[1:], 1):
        if n and draw(st.integers(0, 3)) == 0:
            key[axis] = draw(st.integers(-n, n - 1))
    return tuple(key)


def _view(draw: Draw, shapes: list[Any], smooth: bool) -> Step:
    i = _pick(draw, shapes)
    how = draw(st.sampled_from(["index", "index", "transpose", "newaxis"]))
    if how == "transpose":
        order = draw(st.permutations(range(len(shapes[i]))))
        return Step(f"transpose{order}", (i,), lambda x: np.transpose(x, order))
    if how == "newaxis":
        return Step("newaxis", (i,), lambda x: x[..., None] if x.ndim < 3 else x[..., ::-1])
    key = _key(draw, shapes[i])
    return Step(f"view[{key}]", (i,), lambda x: x[key] if key else x + 0.5)


def _sum(draw: Draw, shapes: list[Any], smooth: bool) -> Step:
    i = _pick(draw, shapes)
    axis = draw(st.integers(0, len(shapes[i]) - 1)) if shapes[i] else None
    empty = axis is not None and shapes[i][axis] == 0
    reduce = np.sum if smooth or empty or draw(st.booleans()) else np.max
    return Step(f"{reduce.__name__}{axis}", (i,), lambda x: reduce(x, axis=axis))


def _write(draw: Draw, shapes: list[Any], smooth: bool) -> Step:
    """An update of a fresh array: by a part of itself, by another array's mean, or by a number."""
    i, other = _pick(draw, shapes), _pick(draw, shapes)
    if not shapes[i]:
        return Step("square", (i,), np.square)
    key, add = _key(draw, shapes[i]), draw(st.booleans())
    flip = shapes[i][0] > 0 and draw(st.booleans())

    def apply(x: Any, y: Any) -> Any:
        made = np.sin(x)
        value = np.sin(made[::-1])[key] if flip else np.tanh(np.sum(y))
        if add:
            made[key] += value
        else:
            made[key] = value
        return made

    return Step(f"write[{key}]{'flip' if flip else ''}", (i, other), apply)
