"""Storage while tracing: versions of an array's contents, which all its views share."""

from __future__ import annotations

from typing import Any
from weakref import ReferenceType

from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.op import Op
from npjit.core.size import Shape
from npjit.core.view import View, identity
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured


class Cell:
    """Storage: the latest version of an array's contents. `argument`: it is a caller's memory."""

    __slots__ = (
        "__weakref__",
        "_node",
        "argument",
        "block",
        "children",
        "level",
        "origin",
        "owned",
        "parents",
    )

    def __init__(self, block: Block, node: Node, argument: bool = False) -> None:
        self.block = block
        self._node = node
        # the depth of open regions at which `_node` is the version to use
        self.level = block.depth
        # the value that the storage was made for: tells its memory order
        self.origin = node
        self.argument = argument
        # whether `node` is a version with a buffer of its own
        self.owned = argument
        # storage that may be part of this one, or this a part of (see npjit.ops.sharing)
        self.children: list[ReferenceType[Cell]] = []
        self.parents: list[Cell] = []

    @property
    def node(self) -> Node:
        """The latest version. In a region it is one of the region's inputs until it is written
        there.
        """
        if self.block.depth > self.level and self._node.type.weight is Weight.ARRAY:
            for region in self.block.regions[self.level :]:
                region.enter(self)
        return self._node

    @node.setter
    def node(self, version: Node) -> None:
        assert self.node is not None  # enters the open regions
        self._node = version

    @property
    def type(self) -> TensorType:
        """The contents' type."""
        return self._node.type

    @property
    def is_outside(self) -> bool:
        """Whether the innermost open region did not make this storage itself."""
        regions = self.block.regions
        return self.level < self.block.depth or (bool(regions) and self in regions[-1].entered)

    def write(self, view: View | None, value: Node) -> None:
        """A new version in which the elements under `view` (None: all) are `value`, already cast
        and broadcast.
        """
        from npjit.ops.memory_order import is_c_ordered

        self.require_writable()
        if view is not None and 0 in view.shape:
            return  # an axis of no elements may be one that no dimension of the base runs along
        block = self.block
        replaced = view is None and not self.argument and not block.depth
        # the storage keeps its own memory order, whatever the value's
        if replaced and is_c_ordered(block, self.origin) and is_c_ordered(block, value):
            self.node = value
            self.owned = False
            return
        self._own()
        target = view if view is not None else identity(self.node.shape)
        self.node = block.add(kinds.UPDATE, (self.node, value), target, self.node.type)

    def scatter(self, op: Op, value: Node, params: Any, indices: tuple[Node, ...]) -> None:
        """A new version into which elements of `value` are scattered through index arrays."""
        self.require_writable()
        self._own()
        self.node = self.block.add(op, (self.node, value, *indices), params, self.node.type)

    def _own(self) -> None:
        """Have a buffer that versions can change in place."""
        version = self.node  # enters the open regions, where it has one
        if not self.owned:
            block, type_ = self.block, TensorType(version.shape, version.dtype)
            self.node = block.add(kinds.CELL, (version,), len(block.nodes), type_)
            self.owned = True

    def require_writable(self) -> None:
        """NotCaptured when another live array may share this memory in a way that tracing does not
        follow.
        """
        alive = (child() for child in self.children)
        if self.parents or any(c is not None and not c.is_followed() for c in alive):
            raise NotCaptured(
                "a write to an array that may share memory with a reshape or a part of it"
            )

    def is_followed(self) -> bool:
        """Whether a child sees what is written to its parent."""
        return False


def room_for(block: Block, shape: Shape, dtype: Any) -> Cell:
    """Storage of which nobody reads an element before it is stored."""
    zero = build.broadcast(block, build.constant(block, 0, dtype, Weight.ARRAY), shape)
    node = block.add(kinds.ROOM, (zero,), len(block.nodes), TensorType(shape, zero.dtype))
    cell = Cell(block, node)
    cell.owned = True
    return cell
