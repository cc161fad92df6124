"""`grad` and `value_and_grad` of a Python function, inside a trace.

In: the function, the traced arguments it is called with, and which of them to differentiate for.
Out: what the user's call returns, as traced values. Compiling is not done here: `npjit.grad(f)` is
the compiled form of a function that calls `grad_of_traced`, and inside another trace the same call
simply adds to that trace's block.

    grad_of_traced(block, lambda p: np.sum(p["w"] ** 2), ({"w": w},), {})    ->  {"w": <2 * w>}

Each differentiated leaf enters the function through a node of its own (a CELL), so that the same
array passed twice has two gradients, and an array that the function finds in its closure counts as
constant. Arrays that the function updates in place are differentiated at their value on entry, and
the updates reach the caller's arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit.core.dtypes import kind_of
from npjit.core.graph import Block, Node, Weight
from npjit.core.trees import TreeDef, flatten, tree_map, unflatten
from npjit.ops import build, kinds
from npjit.ops.cell import Cell
from npjit.ops.errors import NotCaptured
from npjit.ops.sharing import root_of
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer, as_node, fresh
from npjit.transform.adjoints import zeros
from npjit.transform.grad import backward, require_scalar

Argnums = int | Sequence[int]


def grad_of_traced(
    block: Block,
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
) -> Any:
    """The gradients (see `value_and_grad_of_traced`); with has_aux the pair (gradients, aux)."""
    value, gradients = value_and_grad_of_traced(block, f, args, kwargs, argnums, has_aux)
    return (gradients, value[1]) if has_aux else gradients


def value_and_grad_of_traced(
    block: Block,
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
) -> tuple[Any, Any]:
    """f's value and the gradients: the argument's tree, or a tuple of them for several argnums.

    With has_aux, f returns (value, aux), and that pair stands here in place of the value.
    """
    numbers = positions(argnums, len(args))
    entries = {i: _Entry.of(block, i, args[i]) for i in dict.fromkeys(numbers)}
    points = [p for e in entries.values() for p in e.points]
    entered = [entries[i].enter() if i in entries else a for i, a in enumerate(args)]
    with _Watch(block, points):
        result = f(*entered, **kwargs)
    value = split_aux(result, has_aux)
    output = _output_node(block, value)
    found = backward(block, output, None, [p.node for p in points])
    result = _leave(result, points)
    for p, node in zip(points, found, strict=True):
        p.gradient = node
    gradients = [entries[i].gradients(block) for i in numbers]
    return result, gradients[0] if isinstance(argnums, int) else tuple(gradients)


def positions(argnums: Argnums, count: int) -> list[int]:
    """Argument positions, counted from the front."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for i in numbers:
        if not -count <= i < count:
            raise TypeError(
                f"grad for argument {i}, which must be passed by position; "
                f"this call has {count} positional argument{'' if count == 1 else 's'}"
            )
    return [i % count for i in numbers]


def split_aux(result: Any, has_aux: bool) -> Any:
    """The value to differentiate."""
    if not has_aux:
        return result
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError("with has_aux=True the function must return a pair (value, aux)")
    return result[0]


def require_number(value: Any) -> None:
    """TypeError unless a function's result is an array or a number."""
    if not isinstance(value, (int, float, complex, np.generic, np.ndarray)):
        raise TypeError(f"grad needs a scalar output, got {type(value).__name__}")
    if type(value) is not Tracer and isinstance(value, np.ndarray) and value.ndim:
        raise TypeError(f"grad needs a scalar output, got shape {value.shape}")


def _output_node(block: Block, value: Any) -> Node:
    require_number(value)
    node = as_node(block, value)
    require_scalar(node)
    return node


# ---------------------------------------------------------------- leaves of the arguments


@dataclass
class _Point:
    """A differentiated leaf: what the caller passed, and the node by which f knows it."""

    leaf: Any
    node: Node
    inner: Tracer
    gradient: Node | None = None

    @staticmethod
    def of(block: Block, leaf: Any, name: str) -> _Point:
        """How a leaf enters; TypeError naming it when it is no floating number or array."""
        require_differentiable(leaf, name)
        outer = as_node(block, leaf)
        node = block.add(kinds.CELL, (outer,), len(block.nodes), outer.type)
        cell = Cell(block, node)
        cell.owned = True
        return _Point(leaf, node, Tracer(cell, None, outer.type.weight))

    @property
    def written(self) -> bool:
        return self.inner.cell.node is not self.node

    def result(self, block: Block) -> Tracer:
        """The gradient as users see it: an array for an array, a NumPy scalar for a number."""
        node = self.gradient
        if node is None:
            node = zeros(block, self.node.shape, self.node.dtype)
        is_array = self.node.type.weight is Weight.ARRAY
        return fresh(block, build.weigh(block, node, Weight.ARRAY if is_array else Weight.SCALAR))


def require_differentiable(leaf: Any, name: str) -> None:
    """TypeError that names a leaf of an argument when it is no floating number or array."""
    if not isinstance(leaf, (int, float, complex, np.generic, np.ndarray)):
        shown = getattr(leaf, "__class__", type(leaf)).__name__  # of a proxy: the object's own
        raise TypeError(f"grad for {name}: cannot differentiate a {shown}")
    dtype = _dtype_of(leaf)
    if kind_of(dtype) not in "fc":
        raise TypeError(f"grad for {name}: needs a float or complex value, got {dtype}")


def _dtype_of(leaf: Any) -> np.dtype[Any]:
    if type(leaf) is SymInt:
        return build.INT64
    return leaf.dtype if hasattr(leaf, "dtype") else np.dtype(type(leaf))


@dataclass
class _Entry:
    """One differentiated argument."""

    tree: TreeDef
    points: list[_Point]

    @staticmethod
    def of(block: Block, number: int, argument: Any) -> _Entry:
        leaves, tree = flatten(argument)
        names = list(leaf_names(tree, f"argument {number}"))
        points = [_Point.of(block, x, name) for x, name in zip(leaves, names, strict=True)]
        return _Entry(tree, points)

    def enter(self) -> Any:
        """The argument as the function gets it."""
        return unflatten(self.tree, [p.inner for p in self.points])

    def gradients(self, block: Block) -> Any:
        return unflatten(self.tree, [p.result(block) for p in self.points])


def leaf_names(tree: TreeDef, name: str) -> Iterator[str]:
    """What to call each leaf in an error: "argument 0['w'][1]"."""
    if tree.kind == "leaf":
        yield name
    for key, child in zip(tree.keys, tree.children, strict=True):
        part = f".{key}" if tree.kind == "dataclass" else f"[{key!r}]"
        yield from leaf_names(child, name + part)


# ---------------------------------------------------------------- storage behind the leaves


class _Watch:
    """Finds what the call reads and writes of the caller's arrays other than by its arguments.

    Inside, an argument's storage is a cell of its own. If the function writes it and also reaches
    the same array through its closure, the two would drift apart; then the call is refused. To
    notice it, the caller's cells show fresh nodes during the call: whatever is computed from those
    was reached through the closure.
    """

    def __init__(self, block: Block, points: Sequence[_Point]) -> None:
        self.block = block
        self.points = points
        self.kept: dict[Cell, tuple[Node, Node]] = {}

    def __enter__(self) -> None:
        for cell in dict.fromkeys(self._cells()):
            before = cell.node
            stand_in = self.block.add(kinds.CELL, (before,), len(self.block.nodes), before.type)
            self.kept[cell] = (before, stand_in)
        for cell, (_, stand_in) in self.kept.items():
            cell.node = stand_in
        self.start = len(self.block.nodes)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        changed = [c for c, (_, stand_in) in self.kept.items() if c.node is not stand_in]
        for cell, (before, _) in self.kept.items():
            cell.node = before
        if kind is None:
            if changed:
                raise NotCaptured("grad of a function that writes its argument through its closure")
            self._refuse_aliases()

    def _cells(self) -> list[Cell]:
        """The callers' cells, one for each traced leaf."""
        return [root_of(p.leaf.cell) for p in self.points if type(p.leaf) is Tracer]

    def _refuse_aliases(self) -> None:
        cells = self._cells()
        read = {a for n in self.block.nodes[self.start :] for a in n.args}
        for p in self.points:
            if not p.written:
                continue
            if type(p.leaf) is not Tracer:
                raise NotCaptured("grad of a function that writes an array which is no argument")
            cell = root_of(p.leaf.cell)
            if cells.count(cell) > 1 or self.kept[cell][1] in read:
                raise NotCaptured("grad of a function that writes an array known by two names")


def _leave(result: Any, points: Sequence[_Point]) -> Any:
    """Pass updates on to the caller's arrays, and put those where the result has inner ones."""
    home: dict[Cell, Tracer] = {}
    for p in points:
        if type(p.leaf) is Tracer and p.leaf.weight is Weight.ARRAY:
            home[p.inner.cell] = p.leaf
            if p.written:
                p.leaf.write(p.inner.cell.node)

    def rename(value: Any) -> Any:
        if type(value) is not Tracer or root_of(value.cell) not in home:
            return value
        if value.cell not in home:
            raise NotCaptured("grad of a function that returns its argument reshaped")
        outer = home[value.cell]
        return outer if value.window is None else outer.through(value.window)

    return tree_map(rename, result)
