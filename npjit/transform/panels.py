"""Products that a loop makes row by row are made for many trips at once, in front of them.

In: a graph. Out: the same values, where a LOOP that multiplies a row (or column) picked by its
index by a matrix, neither of which it writes, is two loops: the outer one makes the products for
ROWS trips as one product of matrices, the inner one runs the trips, each with its row of that.

    loop i < n:  c[i, i:] = a[:, i] @ a[:, i:]
    loop p < n / ROWS:  made = a[:, o:o+ROWS].T @ a[:, o:],   o = ROWS*p
        loop r < ROWS:  c[o+r, o+r:] = made[r, r:]

The matrix may begin or end with the index, as in triangles; what the trips want of it together is
multiplied then. A window that moves at both ends would multiply much for nothing, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from npjit.core.assume import Assumptions
from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.op import Kind
from npjit.core.size import Size, atoms, linear
from npjit.core.view import Along, At, View, identity
from npjit.ops import build, kinds
from npjit.transform.bodies import change_loops
from npjit.transform.paneled import Paneled

# trips whose products are made together: enough for a matrix product to be one
ROWS = 64
# no fewer trips than these
_FEWEST = 9
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def in_panels(graph: Graph) -> Graph:
    """See the module's docstring."""

    def again(n: Node, loop: Loop, known: Assumptions) -> Loop | None:
        panels = _Panels(loop, known)
        return panels.loop_of_loops(n, panels.made, panels.use) if panels.found else None

    return change_loops(graph, again)


@dataclass(frozen=True)
class _Panel:
    """A product in a loop's body: which operand the index picks, both operands' views of inputs of
    the body, the axis of the matrix that is kept, and where that begins and ends."""

    node: Node
    picked: int
    sources: tuple[Node, Node]
    views: tuple[View, View]
    kept: int
    start: Size
    end: Size


class _Panels(Paneled):
    """The products of one loop that can be made for many trips; then its two loops."""

    def __init__(self, loop: Loop, known: Assumptions) -> None:
        super().__init__(loop, ROWS, known)
        self.found: list[_Panel] = []
        if self.has_trips(_FEWEST):
            products = (n for n in loop.body.nodes if n.op.kind is Kind.CONTRACT)
            self.found = [p for p in map(self._panel, products) if p is not None]

    # -- legality

    def _names(self, *sizes: Size) -> bool:
        return any(self.index in atoms(s) for s in sizes)

    def _panel(self, n: Node) -> _Panel | None:
        """A vector times a matrix, the vector picked by the index."""
        ranks = [len(a.shape) for a in n.args]
        if sorted(ranks) != [1, 2] or len(n.shape) != 1:
            return None
        picked = ranks.index(1)
        kept = n.params[1 - picked].index(n.params[2])
        seen = [self._seen(a) for a in n.args]
        if None in seen:
            return None
        sources, views = zip(*seen, strict=True)
        ends = self._ends(views[1 - picked], kept)
        if ends is None or not self._is_picked(views[picked]):
            return None
        return _Panel(n, picked, sources, views, kept, *ends)

    def _seen(self, n: Node) -> tuple[Node, View] | None:
        """The input of the body that a value shows, if no trip changes it, and how."""
        v = identity(n.shape)
        if n.op.kind is Kind.VIEW and len(n.args) == 1:
            n, v = n.args[0], n.params
        changed = {*range(self.loop.carried), *self.loop.written}
        fixed = n.op.kind is Kind.INPUT and n.params not in changed
        return (n, v) if fixed and len(v.axes_used()) == len(v.shape) else None

    def _is_picked(self, v: View) -> bool:
        """Whether each trip sees the next row of something."""
        at = [d.index for d in v.dims if isinstance(d, At) and self._names(d.index)]
        if len(at) != 1 or self._names(*v.shape) or self._moves(v, ()):
            return False
        step, _ = linear(at[0], self.index)
        return isinstance(step, int) and step > 0

    def _moves(self, v: View, but: Sequence[int]) -> bool:
        """Whether the index decides where an axis of the view runs, these ones aside."""
        along = [d for d in v.dims if isinstance(d, Along) and d.axis not in but]
        return any(self._names(d.start, d.step, v.shape[d.axis]) for d in along)

    def _ends(self, v: View, kept: int) -> tuple[Size, Size] | None:
        """Where the matrix's kept axis begins and ends, by the index, if one of both stays."""
        at = [d.index for d in v.dims if isinstance(d, At)]
        along = [d for d in v.dims if isinstance(d, Along) and d.axis == kept]
        if self._names(*at) or self._moves(v, (kept,)) or len(along) != 1:
            return None
        start, end = along[0].start, along[0].start + v.shape[kept]
        steps = [linear(s, self.index)[0] for s in (start, end)]
        if along[0].step != 1:
            return (start, end) if not self._names(start, end) else None
        literal = all(isinstance(s, int) for s in steps)
        return (start, end) if literal and 0 in steps else None

    # -- the two loops

    def _extreme(self, size: Size, sign: int) -> Size:
        """The least (sign -1) or greatest value of a size in the trips of a panel."""
        step, _ = linear(size, self.index)
        assert isinstance(step, int)
        return self.at(size, self.first + (self.rows - 1 if step * sign > 0 else 0))

    def made(self, block: Block, inputs: Sequence[Node]) -> list[Node]:
        """The products for all trips of a panel."""
        return [*inputs, *(self._made(block, p, inputs) for p in self.found)]

    def _made(self, block: Block, p: _Panel, inputs: Sequence[Node]) -> Node:
        """The product for all trips of a panel."""
        block.where = p.node.where
        views = list(p.views)
        views[p.picked] = self.all_rows(p.views[p.picked])
        views[1 - p.picked] = self._all_columns(p)
        args = [
            build.view(block, inputs[s.params], v) for s, v in zip(p.sources, views, strict=True)
        ]
        letters = list(p.node.params)
        trips = next(x for x in _LETTERS if x not in "".join(letters))
        letters[p.picked] = trips + letters[p.picked]
        letters[2] = trips + letters[2]
        shape = (self.rows, args[1 - p.picked].shape[p.kept])
        return block.add(p.node.op, args, tuple(letters), TensorType(shape, p.node.dtype))

    def _all_columns(self, p: _Panel) -> View:
        """What the trips of a panel see of the matrix, together."""
        v = p.views[1 - p.picked]
        if not self._names(p.start, p.end):
            return v
        low, high = self._extreme(p.start, -1), self._extreme(p.end, 1)
        dims = tuple(
            replace(d, start=low) if isinstance(d, Along) and d.axis == p.kept else d
            for d in v.dims
        )
        shape = tuple(high - low if axis == p.kept else n for axis, n in enumerate(v.shape))
        return View(v.base, dims, shape)

    def use(
        self, block: Block, n: Node, new: dict[Node, Node], panels: Sequence[Node]
    ) -> Node | None:
        """A trip's row of a product."""
        place = next((k for k, p in enumerate(self.found) if p.node is n), None)
        if place is None:
            return None
        start = self.found[place].start
        moved = start - self._extreme(start, -1) if self._names(start) else 0
        row = At(self.trip - self.first)
        v = View(panels[place].shape, (row, Along(moved, 1, 0)), n.shape)
        return block.add(kinds.VIEW, (panels[place],), v, n.type)
