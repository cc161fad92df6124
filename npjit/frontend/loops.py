"""Staged loops: a body traced once becomes one LOOP or WHILE node.

What a body changes is found by tracing it: names that come out as they went in are not carried, numbers are carried in
the type that both ends join to (the trace is repeated until that is stable), ints that only grow by a constant stay
sizes, arrays are carried by value only where no aliasing can tell the difference. Everything else is `NotStaged`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import ref

import numpy as np

from npjit.core.control import Loop, While
from npjit.core.graph import Block, Graph, Node, TensorType, Weight
from npjit.core.size import Expr, Size, Var, atoms, substitute
from npjit.core.trees import flatten, unflatten
from npjit.frontend.branches import owned_version, scalar_condition
from npjit.frontend.effects import Watch
from npjit.frontend.lists import GrowingList, item_type, require_own
from npjit.frontend.values import (
    UNDEFINED,
    NotStaged,
    as_type,
    is_array,
    is_number,
    joined,
    same,
    traced,
    type_of,
)
from npjit.ops import build
from npjit.ops.control import LOOP, WHILE, results
from npjit.ops.kinds import CHECK, UFUNCS
from npjit.ops.regions import Inputs, Region, extended, seal
from npjit.ops.sharing import ancestors_of, root_of, share_unwritten
from npjit.ops.symint import is_int, size_of, wrap
from npjit.ops.tracer import Tracer, as_node

ATTEMPTS = 8


@dataclass(frozen=True)
class Carry:
    """How one leaf of the state crosses trips: "value" (a carried input of this type), "grows" (an int that grows by
    `step` a trip, a size) or "last" (bound anew in every trip, wanted after the loop only)."""

    how: str
    type: TensorType | None = None
    step: Size = 0


class Permuted(NotStaged):
    """The state's arrays come back in another order (u, v = v, u)."""


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


@dataclass
class Attempt:
    """One trace of the body."""

    region: Region
    entry: list[Any]
    leaves: list[Any]
    params: dict[int, Node]
    nexts: dict[int, Node] = field(default_factory=dict)
    test: Node | None = None


class Stager:
    """Traces one loop; `trips` is None for a while loop."""

    def __init__(
        self, block: Block, state: Sequence[Any], stops: Sequence[int], codes: Sequence[Any]
    ) -> None:
        self.block = block
        self.watch = Watch([*codes, *state])
        self.watch.require_visible()
        # objects that the body changes: what they hold is part of the state
        self.included: list[int] = []
        # lists that have become rows, and what they held
        self.stacked: list[tuple[GrowingList, list[Any]]] = []
        self.keys: list[Any] = []
        self.state = list(state)
        self.leaves, self.tree = flatten((self.state, ()))
        self.stops = [self._leaf_of(state, k) for k in stops]
        self.carries: dict[int, Carry] = {}

    @staticmethod
    def _leaf_of(state: Sequence[Any], k: int) -> int:
        return sum(len(flatten(v)[0]) for v in state[:k])

    # ------------------------------------------------------------ for

    def for_loop(
        self, trips: Size, item: Callable[[Any], Any], body: Callable[..., Any], certain: bool
    ) -> list[Any]:
        """The state after `trips` trips; `certain`: there is at least one."""
        with self._undone_on_failure():
            return self._for_loop(trips, item, body, certain)

    def _for_loop(
        self, trips: Size, item: Callable[[Any], Any], body: Callable[..., Any], certain: bool
    ) -> list[Any]:
        block = self.block
        index = Var(f"i{len(block.sizes.ranges)}", 0)
        block.sizes.ranges[index] = (0, trips - 1)
        counter = Expr((((index,), 1),))

        def run(state: list[Any]) -> Any:
            return body(item(wrap(block, counter)), *state)

        attempt = self._settle(run, counter, certain, trips)
        graph, inputs = self._sealed(attempt)
        order = self._carried()
        stops = tuple(order.index(k) for k in self.stops if k in order)
        loop = Loop(graph, len(order), index, trips, stops)
        binds = [n for v, n in block.binds.items() if v in atoms(trips)]
        kind = TensorType((), build.BOOL)
        if not certain and self._shows_first_trip():
            some = build.ufunc(
                block,
                UFUNCS[np.less],
                np.less,
                [build.constant(block, 0, build.INT64), build.size_node(block, trips)],
            )
            block.add(CHECK, (some,), "a loop without a trip", some.type)
        node = block.add(LOOP, (*inputs.outer, *binds), loop, kind)
        return self._after(attempt, node, inputs, index, trips, certain)

    # ------------------------------------------------------------ while

    def while_loop(self, test: Callable[..., Any], body: Callable[..., Any]) -> list[Any]:
        """The state when the test fails or a stop flag is set."""
        block = self.block

        def run(state: list[Any]) -> Any:
            return body(*state)

        attempt = self._settle(run, None, False, None)
        order = self._carried()
        with Region(block) as region:
            params = {k: region.parameter(self.carries[k].type) for k in order}  # type: ignore[arg-type]
            entry = self._entry(params, None)
            answer = self._run(lambda state: test(*state), entry)[0]
            if type(answer) is Tracer:
                condition = scalar_condition(block, answer)
            elif answer is True and any(k in order for k in self.stops):
                condition = build.constant(block, True, build.BOOL)
            else:
                raise NotStaged("the condition of a while loop does not depend on traced values")
        if region.written:
            raise NotStaged("the condition of a while loop writes an array")
        graph, inputs = self._sealed(attempt)
        for k, param in params.items():
            inputs.positions[param] = order.index(k)
        for cell, (param, outer, _, _) in region.entered.items():
            position = self._position_of(attempt, inputs, cell)
            inputs.positions[param] = inputs.add(outer) if position is None else position
        tested, _ = seal(region, inputs, [condition])
        stops = tuple(order.index(k) for k in self.stops if k in order)
        loop = While(tested, extended(graph, inputs), len(order), stops)
        certain = self._shows_first_trip()
        if certain:
            answer = self._run(lambda state: test(*state), self.leaves)[0]
            if type(answer) is Tracer:
                some = scalar_condition(block, answer)
                block.add(CHECK, (some,), "a loop without a trip", some.type)
        node = block.add(WHILE, inputs.outer, loop, TensorType((), build.BOOL))
        return self._after(attempt, node, inputs, None, 0, certain)

    def _shows_first_trip(self) -> bool:
        """Whether a name's type tells if there was a trip at all. In nested loops nobody looks: numbers there go into
        further arithmetic, which gives the same values."""
        if self.block.depth:
            return False
        for k, carry in self.carries.items():
            initial = self.leaves[k]
            if is_array(initial):
                return True  # without a trip the name stands for the array from before
            if carry.type is not None and not carry.type.shape:
                if initial is UNDEFINED or type_of(self.block, initial) != carry.type:
                    return True
        return False

    def _position_of(self, attempt: Attempt, inputs: Inputs, cell: Any) -> int | None:
        found = attempt.region.entered.get(cell)
        return None if found is None else inputs.positions.get(found[0])

    # ------------------------------------------------------------ tracing to a fixpoint

    def _settle(
        self, run: Callable[[list[Any]], Any], counter: Any, certain: bool, trips: Size | None
    ) -> Attempt:
        for _ in range(ATTEMPTS):
            try:
                attempt = self._try(run, counter)
            except Included as e:
                self._include(e.numbers)
                continue
            except Grown as e:
                self._stack(e, trips, counter)
                continue
            changed = self._classify(attempt, counter, certain)
            changed |= self._narrow(attempt, certain)
            if not changed:
                return attempt
        raise NotStaged("the types of a loop's names do not settle")

    def _try(self, run: Callable[[list[Any]], Any], counter: Any) -> Attempt:
        block = self.block
        with Region(block) as region:
            params = {
                k: region.parameter(c.type) for k, c in self.carries.items() if c.type is not None
            }
            entry = self._entry(params, counter)
            out, parts = self._run(run, entry)
            leaves, tree = flatten((list(out), parts))
            if tree != self.tree:
                raise NotStaged("a container changes its structure in a loop")
            attempt = Attempt(region, entry, leaves, params)
            for k, carry in self.carries.items():
                if carry.type is not None and self._fits(leaves[k], carry.type):
                    attempt.nexts[k] = as_type(block, self._node(leaves[k]), carry.type)
        return attempt

    def _run(self, code: Callable[[list[Any]], Any], entry: list[Any]) -> tuple[Any, Any]:
        """What some code makes of the state, and of the objects that belong to it."""
        watch = self.watch
        state, parts = unflatten(self.tree, entry)
        watch.put(self.included, self.keys, parts)
        try:
            out = code(state)
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

    def _stack(self, grown: Grown, trips: Size | None, counter: Any) -> None:
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
        self._include([])

    @contextmanager
    def _undone_on_failure(self) -> Iterator[None]:
        """Lists are plain again when the loop is not staged after all."""
        try:
            yield
        except BaseException:
            for target, known in self.stacked:
                target.unstack(known)
            raise

    def _include(self, numbers: list[int]) -> None:
        """Make what these objects hold part of the state."""
        self.included += numbers
        self.keys = self.watch.keys(self.included)
        self.leaves, self.tree = flatten((self.state, self.watch.parts(self.included)))

    def _node(self, value: Any) -> Node | None:
        return None if value is UNDEFINED else as_node(self.block, value)

    def _fits(self, value: Any, type_: TensorType) -> bool:
        """Whether a value can be the next one of a carried input of this type."""
        if value is UNDEFINED or not (is_number(value) or is_array(value)):
            return False
        found = type_of(self.block, value)
        if type_.shape or found.shape:
            return self._same_array(found, type_)
        try:
            return joined(found, type_) == type_
        except NotStaged:
            return False

    def _same_array(self, a: TensorType, b: TensorType) -> bool:
        return (
            a.dtype == b.dtype
            and len(a.shape) == len(b.shape)
            and all(self.block.sizes.decide_eq(m, n) for m, n in zip(a.shape, b.shape, strict=True))
        )

    def _entry(self, params: dict[int, Node], counter: Any) -> list[Any]:
        """The state as the body gets it."""
        block = self.block
        entry = list(self.leaves)
        for k, carry in self.carries.items():
            if carry.how == "grows":
                entry[k] = wrap(block, size_of(self.leaves[k]) + carry.step * counter)
            elif carry.how == "value":
                entry[k] = traced(block, params[k])
        return entry

    # ------------------------------------------------------------ what is carried

    def _classify(self, attempt: Attempt, counter: Any, certain: bool) -> bool:
        """Update `carries` from what an attempt showed; whether it has to be repeated."""
        changed = False
        for k, (before, after) in enumerate(zip(attempt.entry, attempt.leaves, strict=True)):
            known = self.carries.get(k)
            if known is None and same(before, after):
                continue
            wanted = self._carry(k, known, before, after, counter, certain)
            if wanted != known:
                self.carries[k] = wanted
                changed = True
        self._refuse_aliases(attempt)
        return changed

    def _carry(
        self, k: int, known: Carry | None, before: Any, after: Any, counter: Any, certain: bool
    ) -> Carry:
        initial = self.leaves[k]
        if known is not None and known.how == "value":
            assert known.type is not None
            return self._widened(known.type, after)
        stopped = bool(self.stops)
        if is_int(after) and counter is not None:
            if is_int(initial):
                step = self._step(known, before, after, counter)
                if step is not None:
                    own = TensorType((), build.INT64, Weight.WEAK) if stopped else None
                    return Carry("grows", own, step)
            elif initial is UNDEFINED and certain and not stopped:
                return Carry("last")
        if initial is UNDEFINED:
            if not (is_number(after) or is_array(after)):
                raise NotStaged("a name first bound in a loop holds an object")
            if is_array(after) and self._is_shared(after):
                raise NotStaged("a name first bound in a loop is a view of another array")
            return Carry("value", type_of(self.block, after))
        if is_number(initial) and is_number(after):
            start, end = type_of(self.block, initial), type_of(self.block, after)
            try:
                return Carry("value", joined(start, end))
            except NotStaged:
                return Carry("value", end)  # where nobody looks at the first value: see _narrow
        if is_array(initial) and is_array(after):
            return self._array_carry(k, initial, after)
        raise NotStaged("a name is bound to different objects from trip to trip")

    def _narrow(self, attempt: Attempt, certain: bool) -> bool:
        """A number must end each trip in the very type it is carried in: what the first trip gets may have another one
        only where nobody looks at it."""
        changed = False
        for k, carry in self.carries.items():
            after = attempt.leaves[k]
            if carry.type is None or carry.type.shape or k not in attempt.nexts:
                continue
            initial, found = self.leaves[k], type_of(self.block, after)
            if found == carry.type and self._starts(initial, found):
                continue
            param = attempt.params[k]
            used = any(param in n.args for n in attempt.region.nodes) or param in attempt.nexts.values()
            if used or not certain or self.stops:
                raise NotStaged("a number changes its type from trip to trip")
            changed |= found != carry.type
            self.carries[k] = Carry("value", found)
        return changed

    def _starts(self, initial: Any, type_: TensorType) -> bool:
        """Whether a carried number of this type may start with this value."""
        if initial is UNDEFINED:
            return True
        try:
            return joined(type_of(self.block, initial), type_) == type_
        except NotStaged:
            return False

    def _step(self, known: Carry | None, before: Any, after: Any, counter: Any) -> Size | None:
        """By how much an int grows per trip, when that is the same in every trip."""
        difference = size_of(after) - size_of(before)
        ((mono, _),) = counter.terms
        (index,) = mono
        inner = {v for v in atoms(difference) if v in self.block.sizes.ranges and v == index}
        bound = {v for v in atoms(difference) if v in self.block.binds}
        if inner or bound:
            return None
        return difference if known is None or known.step == difference else None

    def _widened(self, type_: TensorType, after: Any) -> Carry:
        if after is UNDEFINED or not (is_number(after) or is_array(after)):
            raise NotStaged("a carried name is bound to an object")
        found = type_of(self.block, after)
        if type_.shape or found.shape:
            if not self._same_array(found, type_):
                raise NotStaged("a carried array changes its shape or dtype")
            return Carry("value", type_)
        return Carry("value", joined(type_, found))

    def _array_carry(self, k: int, initial: Tracer, after: Tracer) -> Carry:
        others = [x for j, x in enumerate(self.leaves) if j != k and is_array(x)]
        if any(same(after, x) for x in others):
            raise Permuted("arrays change places from trip to trip")
        if not self._same_array(type_of(self.block, after), type_of(self.block, initial)):
            raise NotStaged("an array changes its shape or dtype from trip to trip")
        if self._is_shared(after, initial):
            raise NotStaged("a name is bound to a view of another array in a loop")
        return Carry("value", type_of(self.block, initial))

    def _is_shared(self, array: Tracer, initial: Tracer | None = None) -> bool:
        """Whether an array that a trip ends with is, or may be, part of one from outside the loop, other than the
        name's own."""
        own = None if initial is None else root_of(initial.cell)
        outside = (c for c in ancestors_of(array.cell) if c.level <= self.block.depth)
        return any(c is not own for c in outside)

    def _refuse_aliases(self, attempt: Attempt) -> None:
        """By-value carries are exact only where nobody can reach the array by another name."""
        finals = attempt.region.finals
        fresh_cells = []
        for k, carry in self.carries.items():
            if carry.type is None or carry.type.weight is not Weight.ARRAY:
                continue
            initial, after = self.leaves[k], attempt.leaves[k]
            if is_array(initial) and initial.cell in finals:
                raise NotStaged("an array is both written and bound anew in a loop")
            inner = attempt.entry[k]
            if k in attempt.params and inner.cell._node is not attempt.params[k]:
                if is_array(initial):
                    raise NotStaged("an array is both written and bound anew in a loop")
            if is_array(after) and after.cell is not getattr(inner, "cell", None):
                fresh_cells.append(after.cell)
        if len(set(map(id, fresh_cells))) != len(fresh_cells):
            raise NotStaged("two names hold one array at the end of a trip")

    # ------------------------------------------------------------ the node

    def _carried(self) -> list[int]:
        """Leaves that are carried inputs, in order."""
        return sorted(k for k, c in self.carries.items() if c.type is not None)

    def _sealed(self, attempt: Attempt) -> tuple[Graph, Inputs]:
        block, region = self.block, attempt.region
        inputs = Inputs()
        for k in self._carried():
            type_ = self.carries[k].type
            assert type_ is not None
            position = inputs.append(as_type(block, self._node(self.leaves[k]), type_))
            inputs.types[position] = type_
            inputs.positions[attempt.params[k]] = position
        writes = []
        for cell, final in region.finals.items():
            position = inputs.append(owned_version(block, cell))
            inputs.positions[region.entered[cell][0]] = position
            writes.append((position, final))
        for cell, (param, outer, _, _) in region.entered.items():
            if cell not in region.finals:
                inputs.add(outer, param)
        outputs = [attempt.nexts[k] for k in self._carried()]
        graph, _ = seal(region, inputs, outputs, writes)
        return graph, inputs

    def _after(
        self,
        attempt: Attempt,
        node: Node,
        inputs: Inputs,
        index: Var | None,
        trips: Size,
        certain: bool,
    ) -> list[Any]:
        """The state after the loop; written cells get their new versions."""
        block = self.block
        order = self._carried()
        written = list(attempt.region.finals)
        types = [self.carries[k].type for k in order]
        types += [inputs.types[len(order) + j] for j in range(len(written))]
        found = results(block, node, types)  # type: ignore[arg-type]
        for cell, version in zip(written, found[len(order) :], strict=True):
            cell.node = version
            cell.owned = True
        state = list(self.leaves)
        for k, carry in self.carries.items():
            if carry.type is not None:
                state[k] = traced(block, found[order.index(k)])
                if is_array(self.leaves[k]) and not certain:
                    # without a trip it is the array from before
                    share_unwritten(self.leaves[k], state[k])
            elif carry.how == "grows":
                state[k] = wrap(block, size_of(self.leaves[k]) + carry.step * trips)
            else:
                assert index is not None
                last = substitute(size_of(attempt.leaves[k]), {index: trips - 1})
                state[k] = wrap(block, last)
        self._guard_items(state)
        made, parts = unflatten(self.tree, state)
        self.watch.put(self.included, self.keys, parts)
        return list(made)

    def _guard_items(self, state: list[Any]) -> None:
        """The last item of a list of arrays may be one of the carried arrays itself."""
        for target, _ in self.stacked:
            if target.item is not None and target.item.shape:
                for k in (k for k, c in self.carries.items() if is_array(state[k])):
                    state[k].cell.children.append(ref(target.rows.cell))
