"""Memory layouts of inputs: strides as sizes.

A layout is "C" (contiguous, C order) or one letter per axis: "0" stride 0, "1" stride of one
element, "p" another positive stride, "n" a negative one, "x" an axis of extent 0 or 1, whose stride
is never used. Layouts of two axes or more end with an order text, "10|-": the axes from the largest
stride to the smallest, then which of them merge.

    >>> strides_of(0, (3, 4), "C"), strides_of(2, (3, 4), ("p", "1"))
    ((4, 1), (t2_0, 1))
"""

from __future__ import annotations

from npjit.core.size import Shape, Size, Var, as_size

Layout = str | tuple[str, ...]


def stride_variable(position: int, axis: int, letter: str) -> Var:
    """The variable that stands for the stride (in elements) of an input's axis."""
    return Var(f"t{position}_{axis}", lo=1 if letter == "p" else None)


def strides_of(position: int, shape: Shape, layout: Layout) -> tuple[Size, ...]:
    """Strides in elements of input `position`."""
    if layout == "C":
        return contiguous_strides(shape)
    fixed: dict[str, Size] = {"0": 0, "1": 1, "x": 0}
    strides: list[Size] = []
    for axis, letter in enumerate(layout[: len(shape)]):
        unknown = as_size(stride_variable(position, axis, letter))
        strides.append(fixed.get(letter, unknown))
    return tuple(strides)


def contiguous_strides(shape: Shape) -> tuple[Size, ...]:
    """Strides in elements of a C-contiguous array."""
    strides: list[Size] = []
    step: Size = 1
    for n in reversed(shape):
        strides.append(step)
        step = step * n
    return tuple(reversed(strides))
