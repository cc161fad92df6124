"""Arrays whose every element is stored before any is read start without a value.

In: a graph. Out: the same values, where such a cell, or one whose op says so (`Op.blank`), has no
argument, so that nothing fills it:

    %2 = cell %1                          %2 = storage
    %3 = update %2 %0 [@0, 0]             %3 = update %2 %0 [@0, 0]
    %4 = update %3 %0 [@0, 1]             %4 = update %3 %0 [@0, 1]         %2 has shape (n, 2)
"""

from __future__ import annotations

from collections.abc import Sequence

from npjit.core.graph import Block, Graph, Node
from npjit.core.op import Kind
from npjit.core.rebuild import rebuild
from npjit.core.size import Size
from npjit.core.view import Along, At, View
from npjit.schedule.carried import STORAGE

# longer chains of updates are not looked through
LONGEST = 16

# along one dimension the first element and how many
Slab = tuple[int, Size, Size]


def leave_blank(graph: Graph) -> Graph:
    """See the module's docstring."""
    users = graph.users()
    kept = {*graph.outputs, *(n for _, n in graph.writes)}
    cells = [n for n in graph.nodes if n.op.kind is Kind.CELL and n.args]
    blank = {k for k, n in enumerate(cells) if n.op.blank or _is_overwritten(n, users, kept)}
    if not blank:
        return graph
    numbers = iter(range(len(cells)))

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if n.op.kind is not Kind.CELL or not n.args or next(numbers) not in blank:
            return None
        return block.add(STORAGE, (), len(block.nodes), n.type)

    return rebuild(graph, rewrite)


def _is_overwritten(cell: Node, users: dict[Node, list[Node]], kept: set[Node]) -> bool:
    """Whether updates store every element before any is read."""
    return _is_filled(cell.args[0]) and _is_covered(_chain(cell, users, kept))


def _is_filled(n: Node) -> bool:
    """Whether a value is one element everywhere, and so in no order of its own."""
    return not n.shape or (n.op.kind is Kind.VIEW and not n.params.axes_used())


def _chain(cell: Node, users: dict[Node, list[Node]], kept: set[Node]) -> list[View]:
    """Where the updates store that follow the cell, as long as nothing else reads it."""
    found: list[View] = []
    version = cell
    while len(found) < LONGEST and version not in kept and len(users[version]) == 1:
        (user,) = users[version]
        if user.op.kind is not Kind.UPDATE or len(user.args) != 2 or user.args[1] is version:
            break
        found.append(user.params)
        version = user
    return found


def _is_covered(views: Sequence[View]) -> bool:
    """Whether the first few views show every element of their base."""
    slabs: list[Slab] = []
    for v in views:
        slab = _slab(v)
        if slab is None:
            return False
        slabs.append(slab)
        if _fill(slabs, v.base):
            return True
    return False


def _slab(v: View) -> Slab | None:
    """What a view shows, when that is whole but for one dimension."""
    found: Slab = (0, 0, v.base[0]) if v.base else (0, 0, 1)
    axes = [d.axis for d in v.dims if isinstance(d, Along)]
    cut = 0
    for place, (d, extent) in enumerate(zip(v.dims, v.base, strict=True)):
        first, count = (d.index, 1) if isinstance(d, At) else (d.start, v.shape[d.axis])
        if isinstance(d, Along) and d.step != 1:
            return None
        if first != 0 or count != extent:
            found, cut = (place, first, count), cut + 1
    return found if cut <= 1 and len(set(axes)) == len(axes) else None


def _fill(slabs: Sequence[Slab], shape: Sequence[Size]) -> bool:
    """Whether slabs that are cut along one dimension follow each other from its start to its
    end."""
    cut = slabs[-1][0]
    reached: Size = 0
    for _ in slabs:
        nexts = [reached + count for d, first, count in slabs if d == cut and first == reached]
        if not nexts:
            return False
        reached = nexts[0]
        if reached == (shape[cut] if shape else 1):
            return True
    return False
