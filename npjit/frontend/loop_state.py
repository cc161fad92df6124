"""The state of a loop: the names it binds, and what the Python objects hold that its body changes.

In: the values before the loop. Out: their leaves, numbers and arrays, and `run`, which runs the
body on other leaves and gives those it ends with. Objects that the body turns out to change become
part of the state (`include`); lists that it appends to become rows of an array (`stack`).

    state = LoopState(block, (s, out), [body]);  state.leaves   ->   [s]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import ref

from npjit.core.graph import Block
from npjit.core.size import Size, atoms
from npjit.core.trees import flatten, unflatten
from npjit.frontend.branches import Raised
from npjit.frontend.effects import Watch
from npjit.frontend.lists import GrowingList, given_item, is_stacked
from npjit.frontend.resized import LEAST_ROOM, ResizedArrays, Resizing, Roomier
from npjit.frontend.rows import Item, item_of
from npjit.frontend.values import NotStaged, is_array
from npjit.ops.selection import Selected
from npjit.ops.sharing import family_of
from npjit.ops.tracer import Tracer


class Included(Exception):
    """The body changes objects that are not part of the state yet."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__()
        self.numbers = numbers


class Grown(Exception):
    """The body changes a list in a way that only rows can follow: it is given items of this type,
    or more of them than there is room for."""

    def __init__(self, number: int, item: Item) -> None:
        super().__init__()
        self.number = number
        self.item = item


class LoopState:
    """See the module's docstring. `codes` are the functions that the loop runs; `since` is the
    number of the first node of a trip that has just run by itself.
    """

    def __init__(
        self, block: Block, state: Sequence[Any], codes: Sequence[Any], since: int | None = None
    ) -> None:
        self.block = block
        state = [v.packed() if type(v) is Selected else v for v in state]
        self.made = frozenset(() if since is None else block.nodes[since:])
        self.watch = Watch([*codes, *state])
        self.watch.require_visible()
        # objects that the body changes: what they hold is part of the state
        self.included: list[int] = []
        # lists that have become rows, and what they held
        self.stacked: list[tuple[GrowingList, Any]] = []
        # how many items a trip gives to each list
        self.growths: dict[int, Size] = {}
        self.keys: list[Any] = []
        # variables of the loops around
        self._outer = set(block.sizes.ranges)
        self.names = list(state)
        # arrays that change their shape
        self.resized = ResizedArrays(block)
        self.leaves, self.tree = flatten((self.names, ()))

    def leaf_of(self, k: int) -> int:
        """The number of the first leaf of name k."""
        return sum(len(flatten(v)[0]) for v in self.names[:k])

    def run(self, code: Callable[[list[Any]], Any], entry: list[Any]) -> list[Any]:
        """The leaves that some code makes of these ones."""
        out, parts = self.call(code, entry, is_body=True)
        leaves, tree = flatten((list(out), parts))
        if tree != self.tree:
            raise NotStaged("a container changes its structure in a loop")
        leaves = [v.packed() if type(v) is Selected else v for v in leaves]
        return self.resized.stored(leaves, entry, self.is_own)

    def is_own(self, array: Tracer) -> bool:
        """Whether an array before the loop has no other name than the one in the state: the trip
        that has just run has made it."""
        if array.cell.origin not in self.made:
            return False
        family = family_of(array.cell)
        held = flatten([self.names, self.watch.before])[0]
        return sum(is_array(v) and bool(family & family_of(v.cell)) for v in held) == 1

    def resize(self, found: Resizing, trips: Size | None) -> None:
        """Have arrays that change their shape lie in buffers."""
        self.resized.add(self.leaves, found.ends, trips)
        self.include([])

    def widen(self, wanted: Roomier) -> None:
        """Give arrays that grow the room they need."""
        if self._is_inner(wanted.room):
            raise NotStaged("an array grows by an extent that is not known before the loop")
        self.resized.widen(wanted)
        self.include([])

    def call(
        self, code: Callable[[list[Any]], Any], entry: list[Any], is_body: bool = False
    ) -> tuple[Any, Any]:
        """What some code gives for these leaves, and what the objects hold then."""
        watch = self.watch
        state, parts = unflatten(self.tree, self.resized.shown(entry))
        watch.put(self.included, self.keys, parts)
        try:
            try:
                out = code(state)
            except Raised:
                raise NotStaged("a loop whose body raises whenever it runs") from None
            changed = [k for k in watch.changed() if k not in self.included]
            if changed:
                raise Included(changed)
            if is_body:
                self.growths = watch.growths(self.included)
            self._require_rows()
            self._require_given(out)
            return out, watch.parts(self.included)
        finally:
            watch.restore()

    def _require_rows(self) -> None:
        """Grown for a list that has to become rows."""
        for k, keys in zip(self.included, self.keys, strict=True):
            target = self.watch.objects[k]
            if self.watch.keys([k]) == [keys]:
                continue
            if not isinstance(target, GrowingList) or (keys[:1] == ("rows",) and not target.rows):
                raise NotStaged("a container grows or shrinks in a loop")
            raise Grown(k, given_item(self.block, target, self.watch.before[k][1]))

    def _require_given(self, out: Any) -> None:
        """What has become rows in this trip nobody may change later."""
        lists = [x for k in self.included if isinstance(x := self.watch.objects[k], GrowingList)]
        if any(x.given for x in lists):
            visible = [*self.watch.objects, *Watch(list(out)).objects]
            for x in lists:
                x.require_given(visible)

    def stack(self, grown: Grown, trips: Size | None) -> None:
        """Have a list be rows, with room for the items of all trips."""
        target, item = self.watch.objects[grown.number], grown.item
        if any(self._is_inner(n) for n in item.sizes()):
            raise NotStaged("a list grows by items that differ from trip to trip")
        if not is_stacked(target):
            item = item_of(self.block, list(target), item)
        self.stacked.append((target, target.snapshot()))
        target.stack(item, self._room(grown.number, trips))
        self.watch.renew(grown.number)
        self.include([])

    def require_room(self, trips: Size | None) -> None:
        """Grown for a list of rows that has no room for the items of all trips."""
        for k, growth in self.growths.items():
            target = self.watch.objects[k]
            if growth == 0 or not is_stacked(target) or target.is_outside:
                continue
            if self.block.sizes.le(self._room(k, trips), target.room) is not True:
                raise Grown(k, target.item)

    def _room(self, number: int, trips: Size | None) -> Size:
        """For how many items there has to be room."""
        room = self.block.sizes.greatest(self.watch.most[number] + self._given(number, trips))
        if self._is_inner(room):
            raise NotStaged("a list grows by a number of items that is not known before the loop")
        return room

    def _given(self, number: int, trips: Size | None) -> Size:
        """How many items all trips give to a list; of a `while` that is a guess."""
        growth = self.growths[number]
        if trips is None:
            return 0 if growth == 0 else LEAST_ROOM + self.block.extents()  # type: ignore[attr-defined]
        return growth * trips

    def _is_inner(self, size: Size) -> bool:
        """Whether a size is known inside the loop only."""
        return bool(atoms(size) & (self.block.sizes.ranges.keys() - self._outer))

    @contextmanager
    def undone_on_failure(self) -> Iterator[None]:
        """Lists are plain again when the loop is not staged after all."""
        try:
            yield
        except BaseException:
            for target, before in reversed(self.stacked):
                target.revert(before)
            raise

    def include(self, numbers: list[int]) -> None:
        """Make what these objects hold part of the state."""
        self.included += numbers
        self.keys = self.watch.keys(self.included)
        leaves, self.tree = flatten((self.names, self.watch.parts(self.included)))
        self.leaves = self.resized.entry(leaves)

    def filled(
        self, leaves: list[Any], carried: Sequence[int], trips: Size | None, certain: bool
    ) -> list[Any]:
        """The names after the loop; the objects hold what these leaves say."""
        leaves = self.resized.left(leaves, certain)
        carried = [k for k in carried if k < len(leaves)]
        self._guard_items([leaves[k] for k in carried if is_array(leaves[k])])
        names, parts = unflatten(self.tree, leaves)
        self.watch.put(self.included, self.keys, parts)
        self.watch.grow({k: self._given(k, trips) for k in self.growths})
        return list(names)

    def _guard_items(self, arrays: list[Any]) -> None:
        """The last item of a list of arrays may be one of the carried arrays itself."""
        for target, _ in self.stacked:
            for rows in target.rows or ():
                for array in arrays:
                    if rows.ndim > 1 and array.cell is not rows.cell:
                        array.cell.children.append(ref(rows.cell))
