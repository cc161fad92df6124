"""Traced branches: both sides of an `if` on a traced value, as one COND node or as selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from npjit.core.control import Cond
from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.op import Kind
from npjit.core.size import Size, smax
from npjit.core.trees import TreeDef, flatten, unflatten
from npjit.frontend.effects import Watch
from npjit.frontend.lists import GrowingList, given_item, is_stacked
from npjit.frontend.resized import Ragged
from npjit.frontend.rows import Item, item_of, joined_items
from npjit.frontend.values import (
    UNDEFINED,
    NotStaged,
    as_type,
    is_array,
    is_number,
    joined,
    python_type_of,
    require_one_kind,
    same,
    traced,
    type_of,
)
from npjit.ops import build, kinds
from npjit.ops.cell import Cell
from npjit.ops.control import COND, results
from npjit.ops.readings import mark, wider
from npjit.ops.regions import Inputs, Region, extended, seal
from npjit.ops.selection import Selected
from npjit.ops.sharing import nearest_ancestors, share_cells
from npjit.ops.tracer import Tracer, as_node

# branches of at most so many scalar operations become selects
SELECTED = 24
_PURE = frozenset([Kind.ELEMENTWISE, Kind.CONST, Kind.SIZE, Kind.VIEW])


class Raised(Exception):
    """A branch that always raises: the check has been made, no value comes out."""


@dataclass
class Side:
    """One traced branch: its region, the leaves it ends with (None: it raises), and numbers and
    arrays as nodes."""

    region: Region
    leaves: list[Any] | None = None
    tree: TreeDef | None = None
    nodes: list[Node | None] = field(default_factory=list)
    # the objects that it has changed, and the structure of those that are merged
    changed: list[int] = field(default_factory=list)
    keys: list[Any] | None = None
    # how many items it gives to the lists among them, and what items
    growths: dict[int, Size] = field(default_factory=dict)
    items: dict[int, Item | None] = field(default_factory=dict)


def trace_branches(
    block: Block,
    condition: Node,
    then: Callable[[], Any],
    other: Callable[[], Any],
) -> Any:
    """What the two sides give, merged under the condition (a bool scalar)."""
    watch = Watch([then, other])
    watch.require_visible()
    included: list[int] = []
    while True:
        first, second = (_side(block, branch, watch, included) for branch in (then, other))
        changed = {*first.changed, *second.changed}.difference(included)
        # once more, with what these objects hold among the results
        included += sorted(changed)
        if not changed and not _stacked(block, watch, included, first, second):
            break
    if first.leaves is None and second.leaves is None:
        raise NotStaged("both branches raise")
    tree = first.tree if first.leaves is not None else second.tree
    assert tree is not None
    both = first.leaves is not None and second.leaves is not None
    if both and (first.tree != second.tree or first.keys != second.keys):
        raise NotStaged("the branches bind containers of different structure")
    count = len(first.leaves if first.leaves is not None else second.leaves or [])
    for side in (first, second):
        if side.leaves is None:
            side.leaves, side.nodes = [UNDEFINED] * count, [None] * count
    value, parts = unflatten(tree, _merge(block, condition, first, second))
    keys = first.keys if first.keys is not None else second.keys
    watch.put(included, keys or [], parts)
    watch.grow({k: _more(first.growths.get(k, 0), second.growths.get(k, 0)) for k in first.growths})
    return value


def _more(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else smax(a, b)


def _stacked(block: Block, watch: Watch, included: list[int], a: Side, b: Side) -> bool:
    """Have lists that the sides leave with different numbers of items be rows; whether there are
    any."""
    found = False
    for position, k in enumerate(included):
        target = watch.objects[k]
        if not isinstance(target, GrowingList) or a.keys is None or b.keys is None:
            continue
        most = watch.most[k] + _more(a.growths[k], b.growths[k])
        if a.keys[position] != b.keys[position]:
            items = [s.items[k] for s in (a, b)]
            known = item_of(block, list(target)) if target.rows is None and target else None
            target.stack(reduce(joined_items, [i for i in (*items, known) if i is not None]), most)
        elif is_stacked(target) and not target.is_outside:
            if block.sizes.le(most, target.room) is True:
                continue
            target.stack(target.item, most)
        else:
            continue
        watch.renew(k)
        found = True
    return found


def _side(block: Block, branch: Callable[[], Any], watch: Watch, included: list[int]) -> Side:
    try:
        with Region(block) as region:
            try:
                leaves, tree = flatten((branch(), watch.parts(included)))
                leaves = [v.packed() if type(v) is Selected else v for v in leaves]
            except Raised:
                return Side(region)
            # as they are at the end of the branch: a later look would see the storage outside
            nodes = [as_node(block, v) if is_number(v) or is_array(v) else None for v in leaves]
            items = {k: _given(block, watch, k) for k in included}
        growths = watch.growths(included)
        return Side(
            region, leaves, tree, nodes, watch.changed(), watch.keys(included), growths, items
        )
    finally:
        watch.restore()


def _given(block: Block, watch: Watch, number: int) -> Item | None:
    """The type of the items that a branch gives to a list; None when there are none."""
    target = watch.objects[number]
    if not isinstance(target, GrowingList) or watch.growths([number])[number] == 0:
        return None
    target.require_given(watch.objects)
    return given_item(block, target, watch.before[number][1])


Ends = tuple[Region, list[Node]]


def _merge(block: Block, condition: Node, first: Side, second: Side) -> list[Any]:
    assert first.leaves is not None and second.leaves is not None
    pairs = list(zip(first.leaves, second.leaves, strict=True))
    ragged = Ragged(block, pairs)
    types = [ragged.rooms.get(k) or _type(block, x, y) for k, (x, y) in enumerate(pairs)]
    varying = [k for k, t in enumerate(types) if t is not None]
    written = list(dict.fromkeys([*first.region.written, *second.region.written]))
    sides: list[Ends] = []
    for number, side in enumerate((first, second)):
        with side.region.again():
            ends = ragged.padded(number, side.nodes)
            ends = [as_type(block, ends[k], types[k]) for k in varying]
            sides.append((side.region, ends + ragged.lengths(number)))
    simple = all(_is_simple(s.region) for s in (first, second)) and _are_scalars(types)
    if simple and not written:
        nodes = _selected(block, condition, *sides)
    else:
        nodes = _cond(block, condition, sides, written)
    ragged.merged(nodes[len(varying) :])
    merged = [x if x is not UNDEFINED else y for x, y in pairs]
    for k, node in zip(varying, nodes, strict=False):
        python = wider(*(python_type_of(block, v) for v in pairs[k]))
        result = traced(block, mark(block, node, python))
        if k in ragged.rooms:
            result = ragged.cut(k, result)
        for value in pairs[k]:
            if is_array(value):
                # what a branch has made itself nobody else can reach
                for c in nearest_ancestors(value.cell, block.depth):
                    share_cells(c, result.cell)
        merged[k] = result
    return merged


def _type(block: Block, x: Any, y: Any) -> TensorType | None:
    """The type of a merged leaf; None when both sides have the same value."""
    if same(x, y):
        return None
    known = [v for v in (x, y) if v is not UNDEFINED]
    if all(is_number(v) for v in known) or all(is_array(v) for v in known):
        types = [type_of(block, v) for v in known]
        if len(types) == 1:
            return types[0]
        if types[0].shape and not _same_shapes(block, *types):
            raise NotStaged("the branches bind arrays of different shapes to one name")
        require_one_kind(block, *types)
        return types[0] if types[0].shape else joined(*types)
    raise NotStaged("the branches bind different objects to one name")


def _same_shapes(block: Block, a: TensorType, b: TensorType) -> bool:
    return (
        a.dtype == b.dtype
        and len(a.shape) == len(b.shape)
        and all(block.sizes.decide_eq(m, n) for m, n in zip(a.shape, b.shape, strict=True))
    )


def _are_scalars(types: Sequence[TensorType | None]) -> bool:
    return all(t is None or not t.shape for t in types)


def _is_simple(region: Region) -> bool:
    return len(region.nodes) <= SELECTED and all(
        n.op.kind in _PURE and not n.shape for n in region.nodes
    )


def _selected(block: Block, condition: Node, a: Ends, b: Ends) -> list[Node]:
    """Both sides computed, and one chosen."""
    made = []
    for x, y in zip(_inlined(block, *a), _inlined(block, *b), strict=True):
        node = build.select(block, condition, x, y)
        made.append(build.weigh(block, node, x.type.weight))
    return made


def _inlined(block: Block, region: Region, ends: list[Node]) -> list[Node]:
    """The region's nodes made again outside it."""
    made: dict[Node, Node] = {param: outer for param, outer, _, _ in region.entered.values()}
    for n in region.nodes:
        args = [made.get(a, a) for a in n.args]
        made[n] = block.add(n.op, args, n.params, n.type)
    return [made.get(n, n) for n in ends]


def _cond(block: Block, condition: Node, sides: list[Ends], written: list[Cell]) -> list[Node]:
    """One COND node; written cells get their new versions."""
    inputs = Inputs()
    positions = {cell: inputs.append(owned_version(block, cell)) for cell in written}
    for region, _ in sides:
        for cell, (param, outer, _, _) in region.entered.items():
            if cell in positions:
                inputs.positions[param] = positions[cell]
            else:
                inputs.add(outer, param)
    graphs = [
        seal(region, inputs, ends, [(positions[c], n) for c, n in region.finals.items()])[0]
        for region, ends in sides
    ]
    then, other = (extended(g, inputs) for g in graphs)
    params = Cond(then, other)
    node = block.add(COND, (condition, *inputs.outer), params, condition.type)
    ends = sides[0][1]
    types = [n.type for n in ends] + [inputs.types[p] for p in params.written]
    found = results(block, node, types)
    for cell, position in positions.items():
        cell.node = found[len(ends) + params.written.index(position)]
        cell.owned = True
    return found[: len(ends)]


def owned_version(block: Block, cell: Cell) -> Node:
    """The cell's version in a buffer of its own, which a nested graph may write."""
    node = cell.node
    if not cell.owned:
        type_ = TensorType(node.shape, node.dtype)
        node = block.add(kinds.CELL, (node,), len(block.nodes), type_)
        cell.node, cell.owned = node, True
    return node


def scalar_condition(block: Block, value: Tracer) -> Node:
    """The truth of a traced scalar as a bool node."""
    node = value.node
    if node.shape:
        raise NotStaged("the truth of an array")
    truth = build.cast(block, node, build.BOOL)
    return build.weigh(block, truth, Weight.SCALAR)
