"""The opposite of looking at a box of an array: putting a value where the box is, with zeros
around.

`embed(block, value, view)` is an array of the view's base shape. It is made of moved axes, flips
and one PAD, which all fuse.

    view = x[2:5, 0], x of shape (8, 3)     ->     pad(value[:, None], ((2, 3), (0, 2)))
"""

from __future__ import annotations

from npjit.core.graph import Block, Node, TensorType
from npjit.core.size import Size
from npjit.core.view import Along, At, Entry, View
from npjit.ops import build, kinds


def is_box(v: View) -> bool:
    """Whether a view takes neither a diagonal nor steps longer than one."""
    along = [d for d in v.dims if isinstance(d, Along)]
    return len({d.axis for d in along}) == len(along) and all(d.step in (1, -1) for d in along)


def embed(block: Block, value: Node, v: View) -> Node | None:
    """The value in the place that the view shows, zero elsewhere; None when the view is no box.

    Axes of the value that the view does not use have extent 1.
    """
    if not is_box(v):
        return None
    moved: list[Entry] = [At(0)] * len(value.shape)
    shape: list[Size] = []
    widths: list[tuple[Size, Size]] = []
    for place, (d, n) in enumerate(zip(v.dims, v.base, strict=True)):
        if isinstance(d, At):
            shape.append(1)
            first = d.index
        else:
            length = v.shape[d.axis]
            first = d.start if d.step == 1 else d.start - length + 1
            moved[d.axis] = Along(0 if d.step == 1 else length - 1, d.step, place)
            shape.append(length)
        widths.append((first, n - first - shape[-1]))
    box = build.view(block, value, View(value.shape, tuple(moved), tuple(shape)))
    if all(block.sizes.eq(w, 0) for pair in widths for w in pair):
        return build.same_shape(block, box, v.base)
    return block.add(kinds.PAD, (box,), tuple(widths), TensorType(v.base, value.dtype))
