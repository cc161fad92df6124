"""How a traced function's result is put together again after each call.

    results = Results(capture)
    results.describe((y, {"n": x.shape[0]}))
        ->  ("tuple", [("leaf", 0), ("dict", dict, ("n",), [("leaf", 1)])])

Leaves are numbers of `results.leaves`: a graph output ("fresh", k), a view of an input's memory
("alias", Alias), or an input itself ("input", position).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core.graph import Node, Weight
from npjit.core.layout import contiguous_strides, strides_of
from npjit.core.size import Shape, Size, atoms
from npjit.core.trees import children_of, kind_of
from npjit.core.view import Along, View
from npjit.frontend.capture import Capture
from npjit.frontend.containers import TracedDict, TracedList
from npjit.frontend.lists import is_stacked
from npjit.frontend.objects import MadeObject, ObjectProxy, real_class
from npjit.frontend.rows import Rebuilt
from npjit.ops import build
from npjit.ops.create import filled
from npjit.ops.errors import NotCaptured
from npjit.ops.selection import Selected
from npjit.ops.sharing import Part, Reshaped, family_of, is_as_numpys, root_of
from npjit.ops.symint import SymInt, wrap
from npjit.ops.tracer import Tracer, as_node, is_traced


@dataclass(frozen=True)
class Alias:
    """A result that is a view of an input's memory: offset and strides in elements; `writeable` if
    the input is.
    """

    input: int
    dtype: np.dtype[Any]
    shape: Shape
    offset: Size
    strides: tuple[Size, ...]
    writeable: bool = True


_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), slice, range, type(Ellipsis))


class Results:
    """The leaves and the tree of one result."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.nodes: list[Node] = []
        self.leaves: list[tuple[str, Any]] = []
        # whether NumPy's would have this memory order, and be no numbers of Python's
        self.is_sure = True
        self._known: dict[Any, Any] = {}
        self._fresh_arrays: list[Tracer] = []
        self._made: set[int] = set()

    def describe(self, value: Any) -> Any:
        """The recipe that rebuilds `value`, as the runtime's Entry takes it."""
        if type(value) is Tracer:
            return self._leaf(value)
        if type(value) is SymInt:
            return self._fresh(build.size_node(self.capture.block, value.size))
        if type(value) is Selected and value.array is not None:
            return self._leaf(value.array)
        if type(value) is Selected:
            # how many elements there are is known when they have been computed
            self._once(value)
            parts = [self._fresh(n) for n in (value.whole.node, value.mask)]
            return ("applied", operator.getitem, parts)
        if is_stacked(value):
            self._once(value)
            if value.item.mixed:
                raise NotCaptured("the function returns a list of Python's and NumPy's numbers")
            if value.stands_for is not list:
                raise NotCaptured(f"the function returns a {value.stands_for.__name__}")
            parts = [self.describe(v) for v in (value.length, *value.placed())]
            return ("applied", Rebuilt(value.item), parts)
        if type(value) in (TracedDict, TracedList):
            return ("step", value.step)
        if type(value) is ObjectProxy:
            return ("step", value._npjit_step)
        if type(value) is MadeObject:
            self._once(value)
            own = value._npjit_own
            parts = [self.describe(v) for v in own.values()]
            return ("dataclass", value.__class__, tuple(own), parts)
        if type(value) is np.ndarray:
            return self._fresh(as_node(self.capture.block, value))
        return self._container(value)

    def _container(self, value: Any) -> Any:
        kind = kind_of(value)
        cls = real_class(type(value))
        if kind in ("leaf", "none"):
            return self._constant(value)
        if kind in ("list", "dict", "dataclass"):
            self._once(value)
        keys, children = children_of(kind, value)
        if any(is_traced(k) for k in keys):
            raise NotCaptured("the function returns a dict with traced keys")
        parts = [self.describe(c) for c in children]
        if kind in ("dict", "dataclass"):
            return (kind, cls, keys, parts)
        if kind == "namedtuple":
            return (kind, cls, parts)
        if cls not in (tuple, list):
            raise NotCaptured(f"the function returns a {cls.__name__}")
        return (kind, parts)

    def _once(self, value: Any) -> None:
        """One mutable object at two places would come out as two."""
        if id(value) in self._made:
            raise NotCaptured("the function returns one list, dict or object at two places")
        self._made.add(id(value))

    def _constant(self, value: Any) -> Any:
        if type(value) not in _CONSTANTS and not isinstance(value, (np.generic, np.dtype)):
            raise NotCaptured(f"the function returns a {type(value).__name__} object")
        return ("const", value)

    def _leaf(self, value: Tracer) -> Any:
        # one object returned twice is one object for the caller
        key = (id(value.cell), value.window, value.weight)
        if key not in self._known:
            self._known[key] = self._describe_leaf(value)
        return self._known[key]

    def _describe_leaf(self, value: Tracer) -> Any:
        if value.weight is not Weight.ARRAY:
            self.is_sure = self.is_sure and value.node not in self.capture.block.either
            return self._fresh(value.node)
        position = self.capture.argument_position(root_of(value.cell))
        if position is None:
            family = family_of(value.cell)
            if any(self.capture.argument_position(c) is not None for c in family):
                raise NotCaptured("the function returns what may share memory with an argument")
            self._require_apart(value)
            self.is_sure = self.is_sure and is_as_numpys(value)
            return self._fresh(value.node)
        entry = self.capture.inputs[position]
        if isinstance(value.cell, Part):
            raise NotCaptured("the function returns the parts of a complex argument")
        if isinstance(value.cell, Reshaped):
            if entry.layout != "C":
                raise NotCaptured("the function returns a reshaped argument that is not contiguous")
            strides = contiguous_strides(value.cell.shape)
        else:
            strides = strides_of(position, entry.node.shape, entry.layout)
            if value.window is None:
                return self._add(("input", position))
        offset: Size = 0
        writeable = value.window is None or value.window.is_writable
        if value.window is not None:
            offset, strides = value.window.strides(strides)
        dtype, shape = entry.node.dtype, value.raw_shape
        self._require_sizes(offset, *shape, *strides)
        return self._add(("alias", Alias(position, dtype, shape, offset, strides, writeable)))

    def _require_sizes(self, *sizes: Size) -> None:
        """Memory for results is made before the code runs: sizes of inputs have to say how much."""
        if self._is_computed(*sizes):
            raise NotCaptured("the function returns an array whose shape depends on values")

    def _is_computed(self, *sizes: Size) -> bool:
        known = self.capture.block.sizes.values
        return any(v.name not in known for size in sizes for v in atoms(size))

    def _require_apart(self, value: Tracer) -> None:
        """NumPy's results may share memory with each other; ours do not, so that no byte may be in
        common.
        """
        family = family_of(value.cell)
        for other in self._fresh_arrays:
            if root_of(other.cell) in family and not self._are_apart(other, value):
                raise NotCaptured("the function returns arrays that share memory")
        self._fresh_arrays.append(value)

    def _are_apart(self, a: Tracer, b: Tracer) -> bool:
        if a.cell is not b.cell or a.window is None or b.window is None:
            return False
        known = self.capture.block.sizes
        for (first, last), (start, end) in zip(_spans(a.window), _spans(b.window), strict=True):
            if known.lt(last, start) or known.lt(end, first):
                return True
        return False

    def _fresh(self, node: Node) -> Any:
        if self._is_computed(*node.shape):
            return self._cut(node)
        self.nodes.append(node)
        return self._add(("fresh", len(self.nodes) - 1))

    def _cut(self, node: Node) -> Any:
        """An array whose extents only the running code knows: the corner of one that is as large as
        it may become."""
        block = self.capture.block
        room = tuple(block.sizes.greatest(n) for n in node.shape)
        self._require_sizes(*room)
        made = filled(block, 0, room, node.dtype)
        corner = made[tuple(slice(wrap(block, n)) for n in node.shape)]
        corner.write(build.same_shape(block, node, corner.raw_shape))
        extents = [self._fresh(build.size_node(block, n)) for n in node.shape]
        return ("applied", _corner, [self._fresh(made.node), *extents])

    def _add(self, leaf: tuple[str, Any]) -> Any:
        self.leaves.append(leaf)
        return ("leaf", len(self.leaves) - 1)

    def ordered(self, tree: Any) -> Any:
        """Put the fresh leaves first (the order of the plan's outputs) and renumber the tree's
        leaves.
        """
        order = sorted(range(len(self.leaves)), key=lambda i: self.leaves[i][0] != "fresh")
        self.leaves = [self.leaves[i] for i in order]
        return renumbered(tree, "leaf", {old: new for new, old in enumerate(order)})


def _corner(array: np.ndarray, *extents: int) -> np.ndarray:
    """As much of an array as is in use, in memory of its own."""
    return array[tuple(map(slice, extents))].copy()


def _spans(view: View) -> list[tuple[Size, Size]]:
    """First and last index that a view with steps of 1 or more touches, per base dimension."""
    spans: list[tuple[Size, Size]] = []
    for d, extent in zip(view.dims, view.base, strict=True):
        if not isinstance(d, Along):
            spans.append((d.index, d.index))
        elif isinstance(d.step, int) and d.step > 0:
            spans.append((d.start, d.start + d.step * (view.shape[d.axis] - 1)))
        else:
            spans.append((0, extent))
    return spans


def renumbered(tree: Any, kind: str, numbers: dict[int, int]) -> Any:
    """The tree with the numbers in its leaves of one kind ("leaf" or "step") replaced."""
    if tree[0] in ("leaf", "step", "const"):
        return (kind, numbers[tree[1]]) if tree[0] == kind else tree
    return (*tree[:-1], [renumbered(t, kind, numbers) for t in tree[-1]])
