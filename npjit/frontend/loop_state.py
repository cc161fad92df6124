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

from npjit.core.graph import Block, TensorType
from npjit.core.size import Size, atoms
from npjit.core.trees import flatten, unflatten
from npjit.frontend.branches import Raised
from npjit.frontend.effects import Watch
from npjit.frontend.lists import GrowingList, item_type, require_own
from npjit.frontend.values import NotStaged, is_array
from npjit.ops.symint import is_int, size_of


class Included(Exception):
    """The body changes objects that are not part of the state yet."""

    def __init__(self, numbers: list[int]) -> None:
        super().__init__()
        self.numbers = numbers


class Grown(Exception):
    """The body appends `count` items of this type to a list."""

    def __init__(self, number: int, items: list[TensorType], count: Any) -> None:
        super().__init__()
        self.number = number
        (self.item,) = items
        self.count = count


class LoopState:
    """See the module's docstring. `codes` are the functions that the loop runs."""

    def __init__(self, block: Block, state: Sequence[Any], codes: Sequence[Any]) -> None:
        self.block = block
        self.watch = Watch([*codes, *state])
        self.watch.require_visible()
        # objects that the body changes: what they hold is part of the state
        self.included: list[int] = []
        # lists that have become rows, and what they held
        self.stacked: list[tuple[GrowingList, list[Any]]] = []
        self.keys: list[Any] = []
        self.names = list(state)
        self.leaves, self.tree = flatten((self.names, ()))

    def leaf_of(self, k: int) -> int:
        """The number of the first leaf of name k."""
        return sum(len(flatten(v)[0]) for v in self.names[:k])

    def run(self, code: Callable[[list[Any]], Any], entry: list[Any]) -> list[Any]:
        """The leaves that some code makes of these ones."""
        out, parts = self.call(code, entry)
        leaves, tree = flatten((list(out), parts))
        if tree != self.tree:
            raise NotStaged("a container changes its structure in a loop")
        return leaves

    def call(self, code: Callable[[list[Any]], Any], entry: list[Any]) -> tuple[Any, Any]:
        """What some code gives for these leaves, and what the objects hold then."""
        watch = self.watch
        state, parts = unflatten(self.tree, entry)
        watch.put(self.included, self.keys, parts)
        try:
            try:
                out = code(state)
            except Raised:
                raise NotStaged("a loop whose body raises whenever it runs") from None
            changed = [k for k in watch.changed() if k not in self.included]
            if changed:
                raise Included(changed)
            if watch.keys(self.included) != self.keys:
                raise Grown(*self._growth())
            return out, watch.parts(self.included)
        finally:
            watch.restore()

    def _growth(self) -> tuple[int, list[Any], Any]:
        """Which list the body appends to, what, and how many items a trip."""
        for k, keys in zip(self.included, self.keys, strict=True):
            target = self.watch.objects[k]
            if self.watch.keys([k]) == [keys]:
                continue
            if type(target) is not GrowingList or keys[:1] == ("rows",):
                break
            known = self.watch.before[k][1]
            if target.rows is not None:
                return k, [target.item], target.length - len(known)
            if any(a is not b for a, b in zip(target, known, strict=False)):
                break
            added = list(target)[len(known) :]
            for value in (v for v in added if is_array(v)):
                require_own(self.block, value)
            return k, [item_type(self.block, added)], len(added)
        raise NotStaged("a container grows or shrinks in a loop")

    def stack(self, grown: Grown, trips: Size | None, counter: Any) -> None:
        """Give a list that grows room for the items of all trips."""
        if trips is None or not is_int(grown.count):
            raise NotStaged("a list grows by a number of items that is not known before the loop")
        known = list(self.watch.before[grown.number][1])
        sizes = [*grown.item.shape, size_of(grown.count)]
        if any(atoms(counter) & atoms(s) for s in sizes):
            raise NotStaged("a list grows by items that differ from trip to trip")
        target = self.watch.objects[grown.number]
        item = item_type(self.block, known, grown.item)
        target.stack(item, len(known) + size_of(grown.count) * trips)
        self.stacked.append((target, known))
        self.watch.renew(grown.number)
        self.include([])

    @contextmanager
    def undone_on_failure(self) -> Iterator[None]:
        """Lists are plain again when the loop is not staged after all."""
        try:
            yield
        except BaseException:
            for target, known in self.stacked:
                target.unstack(known)
            raise

    def include(self, numbers: list[int]) -> None:
        """Make what these objects hold part of the state."""
        self.included += numbers
        self.keys = self.watch.keys(self.included)
        self.leaves, self.tree = flatten((self.names, self.watch.parts(self.included)))

    def filled(self, leaves: list[Any], carried: Sequence[int]) -> list[Any]:
        """The names after the loop; the objects hold what these leaves say."""
        self._guard_items([leaves[k] for k in carried if is_array(leaves[k])])
        names, parts = unflatten(self.tree, leaves)
        self.watch.put(self.included, self.keys, parts)
        return list(names)

    def _guard_items(self, arrays: list[Any]) -> None:
        """The last item of a list of arrays may be one of the carried arrays itself."""
        for target, _ in self.stacked:
            if target.item is not None and target.item.shape:
                for array in arrays:
                    array.cell.children.append(ref(target.rows.cell))
