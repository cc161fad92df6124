"""Arrays that share memory in ways that a View cannot say: reshapes of a whole array, and the real
or imaginary parts of complex numbers.

`share_reshaped` gives a traced array the same storage under another shape, as `ndarray.reshape`
does when the array is C-contiguous. Where tracing cannot tell whether NumPy would share or copy,
both arrays may still be read; a write to either while the other is alive ends the trace.

    flat = share_reshaped(x, (12,));  flat[0] = 1      # x sees it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from weakref import ref

from npjit.core.assume import Assumptions, Unknown
from npjit.core.graph import Node, TensorType, Weight, reachable
from npjit.core.layout import contiguous_strides
from npjit.core.op import Kind
from npjit.core.size import Shape, Size
from npjit.core.view import Along, View
from npjit.ops import build, kinds
from npjit.ops.cell import Cell
from npjit.ops.memory_order import IN_ORDER_OF, has_one_axis, is_c_ordered
from npjit.ops.tracer import Tracer


class Reshaped(Cell):
    """The storage of `base`, which is C-contiguous, under another shape."""

    __slots__ = ("base", "shape", "version")

    def __init__(self, base: Cell, shape: Shape) -> None:
        base.children.append(ref(self))
        self.block = base.block
        self.base = base
        self.shape = shape
        self.origin = base.origin
        self.argument = base.argument
        self.children = []
        self.parents = []
        # the last version that was written through this cell
        self.version: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        return build.reshape(self.block, self.base.node, self.shape)

    @property
    def type(self) -> TensorType:
        return TensorType(self.shape, self.base.type.dtype)

    def is_followed(self) -> bool:
        """NumPy copies an array that is not C-contiguous."""
        return is_c_ordered(self.block, self.base.origin)

    def write(self, view: View | None, value: Node) -> None:
        """As Cell.write; the base sees the new version too."""
        block = self.block
        if view is not None and 0 in view.shape:
            return
        if view is not None:
            version = self.node
            if version is not self.version:
                type_ = TensorType(version.shape, version.dtype)
                version = block.add(kinds.CELL, (version,), len(block.nodes), type_)
            value = block.add(kinds.UPDATE, (version, value), view, version.type)
            self.version = value
        self.base.write(None, build.reshape(block, value, self.base.node.shape))


class Part(Cell):
    """The real or the imaginary parts of what complex storage holds (`name` says which)."""

    __slots__ = ("base", "name")

    def __init__(self, base: Cell, name: str) -> None:
        base.children.append(ref(self))
        self.block = base.block
        self.base = base
        self.name = name
        self.origin = base.origin
        self.argument = base.argument
        self.children = []
        self.parents = []

    @property
    def node(self) -> Node:  # type: ignore[override]
        return self._part(self.base.node, self.name)

    @property
    def type(self) -> TensorType:
        base = self.base.type
        return TensorType(base.shape, base.dtype.type(0).real.dtype)

    def _part(self, node: Node, name: str) -> Node:
        return build.apply(self.block, kinds.ROWS[name], [node], self.type.dtype)

    def is_followed(self) -> bool:
        """What is written to the base is seen here."""
        return True

    def write(self, view: View | None, value: Node) -> None:
        """As Cell.write: the base keeps its other parts."""
        block, node = self.block, self.base.node
        node = build.view(block, node, view) if view is not None else node
        other = self._part(node, "imag" if self.name == "real" else "real")
        parts = [value, other] if self.name == "real" else [other, value]
        made = build.apply(block, kinds.ROWS["from_parts"], parts, node.dtype)
        self.base.write(view, made)


def root_of(cell: Cell) -> Cell:
    """The cell whose versions hold this one's contents."""
    while isinstance(cell, (Reshaped, Part)):
        cell = cell.base
    return cell


def is_followed(cell: Cell) -> bool:
    """Whether this is surely the memory of the cell that holds its contents."""
    while isinstance(cell, (Reshaped, Part)):
        if not cell.is_followed():
            return False
        cell = cell.base
    return True


def _reached(cell: Cell, onwards: Callable[[Cell], Iterable[Cell | None]]) -> set[Cell]:
    """All storage that steps from a cell lead to, itself included."""
    found: set[Cell] = set()
    pending = [root_of(cell)]
    while pending:
        one = pending.pop()
        if one not in found:
            found.add(one)
            pending += [root_of(c) for c in onwards(one) if c is not None]
    return found


def family_of(cell: Cell) -> set[Cell]:
    """All storage that may have memory in common with this one."""
    return _reached(cell, lambda c: (*c.parents, *(child() for child in c.children)))


def ancestors_of(cell: Cell) -> set[Cell]:
    """The storage that this one may be a part of, itself included."""
    return _reached(cell, lambda c: c.parents)


def nearest_ancestors(cell: Cell, level: int) -> list[Cell]:
    """Of the storage that this one may be a part of, the closest that is not made deeper than
    `level`; the rest are ancestors of these."""
    reached = _reached(cell, lambda c: c.parents if c.level > level else ())
    return [c for c in reached if c.level <= level]


def share_reshaped(array: Tracer, shape: Shape) -> Tracer:
    """The reshape of an array that is a whole cell."""
    return Tracer(Reshaped(root_of(array.cell), shape), None, Weight.ARRAY)


def share_unwritten(array: Tracer, result: Tracer) -> Tracer:
    """`result` may share memory with `array`: nobody may write while both are alive."""
    share_cells(root_of(array.cell), result.cell)
    return result


def share_cells(parent: Cell, child: Cell) -> None:
    """`child` may be a part of `parent`."""
    parent.children.append(ref(child))
    child.parents.append(parent)


def reshape_copies(array: Tracer, shape: Shape) -> bool:
    """Whether NumPy surely copies to give this view of a C-contiguous array another shape."""
    view = array.window
    if view is None or not is_c_ordered(array.block, root_of(array.cell).origin):
        return False
    _, strides = view.strides(contiguous_strides(view.base))
    old = [(n, s) for n, s in zip(view.shape, strides, strict=True) if n != 1]
    try:
        return not _merges(array.block.sizes, old, [n for n in shape if n != 1])
    except Unknown:
        return False


def has_gaps(array: Tracer) -> bool:
    """Whether neighbours along this view's last axis surely lie apart in memory."""
    view = array.window
    if view is None or not is_c_ordered(array.block, root_of(array.cell).origin):
        return False
    _, strides = view.strides(contiguous_strides(view.base))
    steps = [s for n, s in zip(view.shape, strides, strict=True) if n != 1]
    return bool(steps) and isinstance(steps[-1], int) and steps[-1] != 1


def _merges(sizes: Assumptions, old: list[tuple[Size, Size]], new: list[Size]) -> bool:
    """NumPy's rule: axes that the new shape splits or joins must follow each other without gaps."""
    if any(n == 0 for n, _ in old):
        return True
    new = list(new)
    while old and new:
        extent, stride = old.pop(0)
        have, want = extent, new.pop(0)
        while not sizes.decide_eq(have, want):
            if sizes.decide_le(have, want):
                following, step = old.pop(0)
                if not sizes.decide_eq(stride, following * step):
                    return False
                have, stride = have * following, step
            else:
                want = want * new.pop(0)
    return True


def is_as_numpys(array: Tracer) -> bool:
    """Whether a result that is made anew surely lies in memory as NumPy's: in C order, in that of
    its operands, or as the transpose of such."""
    block, cell, view = array.block, array.cell, array.window
    if has_one_axis(array.raw_shape):
        return True
    if isinstance(cell, Part) or (view is not None and not _shows_all(block.sizes, view)):
        return False
    origin = root_of(cell).origin
    if is_c_ordered(block, origin):
        return True
    return view is None and cell.node is origin and _follows_operands(origin)


def _shows_all(sizes: Assumptions, view: View) -> bool:
    """Whether a view is its base with the axes in some order."""
    return all(
        d.step == 1 and bool(sizes.eq(view.shape[d.axis], n))
        if isinstance(d, Along)
        else sizes.eq(n, 1)
        for d, n in zip(view.dims, view.base, strict=True)
    )


def _follows_operands(node: Node) -> bool:
    """Whether only elementwise operations stand between a value and arguments."""
    following = (Kind.ELEMENTWISE, Kind.VIEW, Kind.INPUT, Kind.CONST, Kind.SIZE, Kind.IOTA)
    return all(n.op.kind in following and n.op is not IN_ORDER_OF for n in reachable([node]))
