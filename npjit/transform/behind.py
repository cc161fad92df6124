"""Sums over all that earlier trips have made are begun for many trips at once.

In: a graph. Out: the same values, where a LOOP whose trips sum over a range that grows by one from
trip to trip is two loops: the outer one sums over what lies behind a panel of ROWS trips, as one
product of a matrix and a vector, and the inner one adds what the panel itself has made.

    loop i < n:  x[i] = b[i] - sum(a[i, :i] * x[:i])
    loop p < n / ROWS:  made = a[o:o+ROWS, :o] @ x[:o],   o = ROWS*p
        loop r < ROWS:  x[o+r] = b[o+r] - (made[r] + sum(a[o+r, o:o+r] * x[o:o+r]))

The range grows at its end, or at its front where a loop counts downwards. No trip of a panel may
write what lies behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npjit.core.assume import Assumptions
from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node
from npjit.core.op import Kind
from npjit.core.size import Size, atoms, linear
from npjit.core.view import Along, At, Entry, View
from npjit.ops import build, kinds
from npjit.ops.contract import contract
from npjit.transform.bodies import change_loops
from npjit.transform.locate import APART, locate
from npjit.transform.paneled import Paneled
from npjit.transform.touches import stores_of

# trips whose sums are begun together: enough for threads to share the work out
ROWS = 64


def sums_behind(graph: Graph) -> Graph:
    """See the module's docstring."""

    def again(n: Node, loop: Loop, known: Assumptions) -> Loop | None:
        sums = _Sums(loop, known)
        return sums.loop_of_loops(n, sums.made, sums.use) if sums.found else None

    return change_loops(graph, again)


@dataclass(frozen=True)
class _Sum:
    """A sum of products in a loop's body: its factors as views of inputs, and which of them the
    index picks a row of. The extent is that of the range; `is_up`: it grows at its end."""

    node: Node
    views: tuple[Node, Node]
    picked: int
    is_up: bool

    @property
    def extent(self) -> Size:
        return self.views[0].shape[0]


class _Sums(Paneled):
    """The sums of one loop that can be begun for many trips; then its two loops."""

    def __init__(self, loop: Loop, known: Assumptions) -> None:
        super().__init__(loop, ROWS, known)
        self.found: list[_Sum] = []
        if self.has_trips(ROWS + 1):
            sums = (n for n in loop.body.nodes if n.op.kind is Kind.REDUCE)
            self.found = [s for s in map(self._sum, sums) if s is not None]

    # -- legality

    def _names(self, *sizes: Size) -> bool:
        return any(self.index in atoms(s) for s in sizes)

    def _sum(self, n: Node) -> _Sum | None:
        """A sum of products that can be begun."""
        (product,) = n.args
        sums = n.op.reduction is not None and n.op.reduction.style == "sum"
        if not sums or product.op.powers != (1, 1) or len(product.shape) != 1:
            return None
        if n.dtype not in (np.float32, np.float64) or linear(product.shape[0], self.index)[0] != 1:
            return None
        a, b = product.args
        ways = [self._ways(f) for f in (a, b)]
        both = ways[0] & ways[1]
        picked = [self._is_picked(f) for f in (a, b)]
        if not both or {*picked} != {False, True} or not all(map(self._stays, (a, b))):
            return None
        return _Sum(n, (a, b), picked.index(True), is_up=max(both))

    def _ways(self, factor: Node) -> set[bool]:
        """Whether a factor's range grows at its end (True) or its front (False): the other end is
        the same in all trips."""
        if factor.op.kind is not Kind.VIEW or len(factor.args) != 1:
            return set()
        along = [d for d in factor.params.dims if isinstance(d, Along)]
        if factor.args[0].op.kind is not Kind.INPUT or len(along) != 1:
            return set()
        (d,) = along
        step = linear(d.start, self.index)[0]
        found = {is_up for is_up, want in ((True, 0), (False, -d.step)) if step == want}
        return set() if self._names(d.step) else found

    def _is_picked(self, factor: Node) -> bool | None:
        """Whether each trip sees another row of something (True), or all the same one (False)."""
        steps = self._steps(factor)
        if not steps:
            return False
        return True if len(steps) == 1 and isinstance(steps[0], int) else None

    def _steps(self, factor: Node) -> list[Any]:
        """How far each index that a factor has fixed moves from trip to trip, if it does."""
        at = [d.index for d in factor.params.dims if isinstance(d, At)]
        return [linear(i, self.index)[0] for i in at if self._names(i)]

    def _stays(self, factor: Node) -> bool:
        """Whether no trip of a panel writes what lies behind the panel."""
        storage = factor.args[0]
        if storage.params not in self.loop.written:
            return bool(storage.params >= self.loop.carried)
        known = Assumptions()
        known.ranges[self.row] = (0, self.count - 1)
        behind = self.all_rows(self._behind(factor.params))
        stores = stores_of(self.loop.body, storage)
        return stores is not None and all(
            locate(behind, self._in_trip(s), known) is APART for s in stores
        )

    # -- the two loops

    def _in_trip(self, v: View) -> View:
        """A view of the body in one trip of a panel."""
        dims = tuple(
            replace(d, start=self.at(d.start, self.trip), step=self.at(d.step, self.trip))
            if isinstance(d, Along)
            else At(self.at(d.index, self.trip))
            for d in v.dims
        )
        return View(v.base, dims, tuple(self.at(s, self.trip) for s in v.shape))

    def _behind(self, v: View) -> View:
        """What a factor shows of what lies behind the panel: the range of its first trip."""
        dims = tuple(
            replace(d, start=self.at(d.start, self.first)) if isinstance(d, Along) else d
            for d in v.dims
        )
        return View(v.base, dims, (self.at(v.shape[0], self.first),))

    def made(self, block: Block, inputs: Sequence[Node]) -> list[Node]:
        """What lies behind the panel, summed for all its trips."""
        return [*inputs, *(self._made(block, s, inputs) for s in self.found)]

    def _made(self, block: Block, s: _Sum, inputs: Sequence[Node]) -> Node:
        block.where = s.node.where
        views = [self._behind(f.params) for f in s.views]
        views[s.picked] = self.all_rows(views[s.picked])
        sources = [inputs[f.args[0].params] for f in s.views]
        a, b = (build.view(block, i, v) for i, v in zip(sources, views, strict=True))
        letters = ("rk", "k") if s.picked == 0 else ("k", "rk")
        return contract(block, a, b, *letters, "r", s.node.dtype)

    def use(
        self, block: Block, n: Node, new: dict[Node, Node], panels: Sequence[Node]
    ) -> Node | None:
        """A trip's sum: what has been made for it, and what the panel has added since."""
        place = next((k for k, s in enumerate(self.found) if s.node is n), None)
        if place is None:
            return None
        s = self.found[place]
        skipped = self.at(s.extent, self.first) if s.is_up else 0
        factors = [self._since(block, new[f.args[0]], f.params, skipped) for f in s.views]
        product = build.apply(block, n.args[0].op, factors, n.dtype)
        rest = block.add(n.op, (product,), n.params, n.type)
        row = self.trip - self.first
        if self._steps(s.views[s.picked])[0] < 0:
            row = self.rows - 1 - row
        begun = build.view(block, panels[place], View(panels[place].shape, (At(row),), ()))
        return build.ufunc(block, kinds.UFUNCS[np.add], np.add, [begun, rest])

    def _since(self, block: Block, source: Node, v: View, skipped: Size) -> Node:
        """What a factor shows of the panel itself."""
        dims: list[Entry] = [
            replace(d, start=d.start + d.step * skipped) if isinstance(d, Along) else d
            for d in v.dims
        ]
        count = self.trip - self.first
        return build.view(block, source, View(v.base, tuple(dims), (count,)))
