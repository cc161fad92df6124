"""How each leaf of a loop's state crosses from trip to trip.

In: traces of the body (`Attempt`), one after the other. Out: a `Carry` for each leaf that changes;
the body is traced again until they stay as they are.

    s = s + x[i]      "value", carried in the type that both ends join to
    k = k + 1         "grows" by 1, a size
    y = x[i]          "last", bound anew in every trip
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from npjit.core.assume import Unknown
from npjit.core.graph import Block, Node, TensorType, Weight
from npjit.core.size import Size, atoms
from npjit.frontend.resized import Resizing, Written
from npjit.frontend.values import (
    UNDEFINED,
    NotStaged,
    is_array,
    is_number,
    joined,
    python_type_of,
    require_one_kind,
    same,
    type_of,
)
from npjit.ops import build
from npjit.ops.cell import Cell
from npjit.ops.readings import PythonType, wider
from npjit.ops.regions import Region
from npjit.ops.sharing import ancestors_of, root_of
from npjit.ops.symint import is_int, size_of
from npjit.ops.tracer import Tracer


@dataclass(frozen=True)
class Carry:
    """How one leaf of the state crosses trips: "value" (a carried input of this type), "grows" (an
    int that grows by `step` a trip, a size) or "last" (bound anew in every trip, wanted after the
    loop only)."""

    how: str
    type: TensorType | None = None
    step: Size = 0
    # what a NumPy scalar may be of Python's in some trips
    python: PythonType | None = None


class Permuted(NotStaged):
    """The state's arrays come back in another order (u, v = v, u)."""


@dataclass
class Attempt:
    """One trace of the body."""

    region: Region
    entry: list[Any]
    leaves: list[Any]
    params: dict[int, Node]
    nexts: dict[int, Node] = field(default_factory=dict)
    test: Node | None = None


class Carries:
    """See the module's docstring. `stopped`: the loop may end before its last trip; `is_own`:
    whether an array before it has no other name.
    """

    def __init__(self, block: Block, stopped: bool, is_own: Callable[[Tracer], bool]) -> None:
        self.block = block
        self.stopped = stopped
        self.is_own = is_own
        # the leaves before the loop
        self.leaves: Sequence[Any] = ()
        self.found: dict[int, Carry] = {}

    def order(self) -> list[int]:
        """Leaves that are carried inputs, in order."""
        return sorted(k for k, c in self.found.items() if c.type is not None)

    def type_of(self, k: int) -> TensorType:
        """The type of a carried input."""
        found = self.found[k].type
        assert found is not None
        return found

    def fits(self, value: Any, type_: TensorType) -> bool:
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

    def classify(self, attempt: Attempt, counter: Any, certain: bool) -> bool:
        """Update `carries` from what an attempt showed; whether it has to be repeated."""
        self._require_shapes(attempt)
        changed = False
        for k, (before, after) in enumerate(zip(attempt.entry, attempt.leaves, strict=True)):
            known = self.found.get(k)
            if known is None and same(before, after):
                continue
            wanted = self._carry(k, known, before, after, counter, certain)
            if wanted != known:
                self.found[k] = wanted
                changed = True
        self._refuse_aliases(attempt)
        return changed

    def _require_shapes(self, attempt: Attempt) -> None:
        """Resizing for arrays that end a trip in another shape than they were in."""
        pairs = enumerate(zip(self.leaves, attempt.leaves, strict=True))
        others = [x for x in self.leaves if is_array(x)]
        ends = {
            k: after
            for k, (initial, after) in pairs
            if is_array(initial) and is_array(after) and not any(same(after, x) for x in others)
            if self._is_resized(type_of(self.block, initial), type_of(self.block, after))
        }
        if ends:
            raise Resizing(ends)

    def _is_resized(self, a: TensorType, b: TensorType) -> bool:
        if a.dtype != b.dtype or len(a.shape) != len(b.shape):
            return False
        try:
            return not self._same_array(a, b)
        except Unknown:
            return True

    def _carry(
        self, k: int, known: Carry | None, before: Any, after: Any, counter: Any, certain: bool
    ) -> Carry:
        initial = self.leaves[k]
        if known is not None and known.how == "value":
            assert known.type is not None
            return self._widened(known, known.type, after)
        if is_int(after) and counter is not None:
            if is_int(initial):
                step = self._step(known, before, after, counter)
                if step is not None:
                    own = TensorType((), build.INT64, Weight.WEAK) if self.stopped else None
                    return Carry("grows", own, step)
            elif initial is UNDEFINED and certain and not self.stopped:
                return Carry("last")
        if initial is UNDEFINED:
            if not (is_number(after) or is_array(after)):
                raise NotStaged("a name first bound in a loop holds an object")
            if is_array(after) and self._is_shared(after):
                raise NotStaged("a name first bound in a loop is a view of another array")
            return self._of_type(type_of(self.block, after), after)
        if is_number(initial) and is_number(after):
            start, end = type_of(self.block, initial), type_of(self.block, after)
            require_one_kind(self.block, start, end)
            try:
                return self._of_type(joined(start, end), initial, after)
            except NotStaged:
                return self._of_type(
                    end, after
                )  # where nobody looks at the first value: see _narrow
        if is_array(initial) and is_array(after):
            return self._array_carry(k, initial, after)
        raise NotStaged("a name is bound to different objects from trip to trip")

    def narrow(self, attempt: Attempt, certain: bool) -> bool:
        """A number must end each trip in the very type it is carried in: what the first trip gets
        may have another one only where nobody looks at it."""
        changed = False
        for k, carry in self.found.items():
            after = attempt.leaves[k]
            if carry.type is None or carry.type.shape or k not in attempt.nexts:
                continue
            initial, found = self.leaves[k], type_of(self.block, after)
            if found == carry.type and self._starts(initial, found):
                continue
            param = attempt.params[k]
            used = (
                any(param in n.args for n in attempt.region.nodes)
                or param in attempt.nexts.values()
            )
            if used or not certain or self.stopped:
                raise NotStaged("a number changes its type from trip to trip")
            changed |= found != carry.type
            self.found[k] = self._of_type(found, after)
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

    def _of_type(self, type_: TensorType, *values: Any) -> Carry:
        """A value carried in this type that starts a trip as one of these."""
        if type_.weight is not Weight.SCALAR:
            return Carry("value", type_)
        return Carry("value", type_, python=wider(*(python_type_of(self.block, v) for v in values)))

    def _widened(self, known: Carry, type_: TensorType, after: Any) -> Carry:
        if after is UNDEFINED or not (is_number(after) or is_array(after)):
            raise NotStaged("a carried name is bound to an object")
        found = type_of(self.block, after)
        if type_.shape or found.shape:
            if not self._same_array(found, type_):
                raise NotStaged("a carried array changes its shape or dtype")
            return Carry("value", type_)
        carry = self._of_type(joined(type_, found), after)
        return replace(carry, python=wider(carry.python, known.python))

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
        """Whether an array that a trip ends with is, or may be, part of one from outside the loop,
        other than the name's own."""
        own = None if initial is None else root_of(initial.cell)
        outside = (c for c in ancestors_of(array.cell) if c.level <= self.block.depth)
        return any(c is not own for c in outside)

    def _refuse_aliases(self, attempt: Attempt) -> None:
        """By-value carries are exact only where nobody can reach the array by another name."""
        finals = attempt.region.finals
        fresh_cells = []
        for k, carry in self.found.items():
            if carry.type is None or carry.type.weight is not Weight.ARRAY:
                continue
            initial, after = self.leaves[k], attempt.leaves[k]
            if is_array(initial) and initial.cell in finals:
                if k in attempt.params:
                    raise NotStaged("an array is both written and bound anew in a loop")
                if not self.is_own(initial):
                    raise Written
            inner = attempt.entry[k]
            written = k in attempt.params and inner.cell._node is not attempt.params[k]
            if written and is_array(initial) and not self.is_own(initial):
                raise Written
            if is_array(after) and not (is_array(inner) and after.cell is inner.cell):
                fresh_cells.append(after.cell)
                if ancestors_of(after.cell).intersection(self._others(attempt, k)):
                    raise NotStaged("an array may end a trip under another name")
        if len(set(map(id, fresh_cells))) != len(fresh_cells):
            raise NotStaged("two names hold one array at the end of a trip")

    def _others(self, attempt: Attempt, k: int) -> list[Cell]:
        """The storage of the carried arrays but that of leaf k, as the body sees them."""
        entry = attempt.entry
        return [root_of(entry[j].cell) for j in attempt.params if j != k and is_array(entry[j])]
