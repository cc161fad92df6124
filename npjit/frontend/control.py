"""`Control`: what staged source calls for its control flow, under the name `_nj` (see
`npjit.frontend.rewrite`).

Besides the decisions of `decisions.py`: a loop whose trips Python knows to be few is unrolled, one
with many becomes a LOOP node, one with a traced condition a WHILE.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from npjit.core.assume import Unknown
from npjit.core.size import mod
from npjit.frontend.carries import Permuted
from npjit.frontend.effects import Watch
from npjit.frontend.items import Generated, Items, Values, items_of, lists_in
from npjit.frontend.lists import CHANGING
from npjit.frontend.loops import Stager
from npjit.frontend.many import LONGEST, ManyValues
from npjit.frontend.resized import Resizing, Written
from npjit.frontend.values import NotStaged, same, truth_of
from npjit.ops.errors import NotCaptured
from npjit.ops.readings import TwoReadings
from npjit.ops.tracer import where_called

# loops of at most so many trips unroll; those whose arrays change their shape up to the second
# number, loops that cannot be staged up to LONGEST
SHORT = 4
RESIZED = 16
# so many trips of unrolled loops inside each other: those inside do not unroll
UNROLLED = 64
# a trip behind a traced way out is a branch inside the one before: so many at most
NESTED = 8
# iterators that run code of the user's for each item
_LAZY = (types.GeneratorType, map, filter, Values)


class Control(ManyValues):
    """The control flow of one trace."""

    # trips of the unrolled loops around, multiplied
    unrolled = 1

    def for_loop(
        self,
        iterable: Any,
        body: Callable[..., Any],
        state: tuple[Any, ...],
        names: tuple[str, ...],
        stops: tuple[int, ...],
    ) -> Any:
        """for item in iterable: state = body(item, *state), until a stop flag is set"""
        del names
        if type(iterable) is Generated:
            iterable = iterable.take()
        items = items_of(self.block, iterable)
        if items is None:
            return self._pulled(iterable, body, state, stops)
        try:
            certain = self.block.sizes.decide_le(1, items.trips)
            if not certain:
                return state
        except Unknown:
            certain = False
        trips = items.trips if isinstance(items.trips, int) else UNROLLED
        if trips <= SHORT and self.unrolled * trips <= UNROLLED:
            return self._unrolled(_each(items, trips), body, state, stops)
        before = [(x, x.first, x.length) for x in lists_in(iterable)]
        state = self._staged_for(items, body, state, stops, certain)
        if not all(same(x.first, first) and same(x.length, count) for x, first, count in before):
            raise NotCaptured(CHANGING, where_called())
        return state

    def _staged_for(
        self, items: Items, body: Callable[..., Any], state: Any, stops: Any, certain: bool
    ) -> Any:
        spoiled = self.capture.spoiled
        is_short = isinstance(items.trips, int) and items.trips <= RESIZED
        stager = Stager(self.block, state, stops, [body])
        stager.resizes = not is_short
        try:
            return stager.for_loop(items.trips, items.get, body, certain)
        except Permuted:
            return self._by_period(items, body, state, stops)
        except (TwoReadings, Written) as e:
            self.capture.spoiled = spoiled
            if certain and not (is_short and type(e) is Written):
                return self._behind_first(items, body, state, stops)
            reason = str(e)
        except NotStaged as e:
            reason = str(e)
        except NotCaptured as e:
            self.capture.spoiled = spoiled
            reason = e.reason
        try:
            trips = self.block.sizes.specialise(items.trips)
        except Unknown:
            raise NotCaptured(f"a loop that cannot be staged: {reason}", where_called()) from None
        if trips > LONGEST:
            raise NotCaptured(
                f"a loop of {trips} trips that cannot be staged: {reason}", where_called()
            )
        return self._unrolled(_each(items, trips), body, state, stops)

    def _behind_first(
        self, items: Items, body: Callable[..., Any], state: Any, stops: Sequence[int]
    ) -> Any:
        """The first trip by itself: behind it a number that was Python's is NumPy's, and an array
        that was bound before the loop is the loop's own."""
        since = len(self.block.nodes)
        state = body(items.get(0), *state)
        if any(self._is_traced(state[k]) for k in stops):
            raise NotCaptured("a loop whose first trip may be its last", where_called())
        if any(state[k] for k in stops):
            return state
        rest = items.rest()
        try:
            more = self.block.sizes.decide_le(1, rest.trips)
        except Unknown:
            more = False  # a check sees to it, where that matters
        else:
            if not more:
                return state
        stager = Stager(self.block, state, stops, [body], since)
        stager.resizes = True
        try:
            return stager.for_loop(rest.trips, rest.get, body, more)
        except NotStaged as e:
            raise NotCaptured(f"a loop that cannot be staged: {e}", where_called()) from None

    def _by_period(self, items: Items, body: Callable[..., Any], state: Any, stops: Any) -> Any:
        """Arrays that change places every trip: two trips at a time, the odd one after them."""
        if stops:
            raise NotCaptured("arrays that change places in a loop with break", where_called())
        block = self.block
        pairs = items.every(2)
        try:
            odd = not block.sizes.decide_eq(mod(items.trips, 2), 0)
            certain = block.sizes.decide_le(1, pairs.trips)
        except Unknown:
            reason = "arrays that change places in a loop whose trips only the running code knows"
            raise NotCaptured(reason, where_called()) from None

        def twice(item: Any, *inner: Any) -> Any:
            first, second = item
            after = body(first(), *inner)
            return body(second(), *after)

        if certain:
            try:
                stager = Stager(block, state, stops, [body])
                state = stager.for_loop(pairs.trips, pairs.get, twice, certain)
            except NotStaged as e:
                raise NotCaptured(
                    f"arrays that change places in a loop: {e}", where_called()
                ) from None
        if odd:
            state = body(items.get(items.last()), *state)
        return state

    def _pulled(self, iterable: Any, body: Callable[..., Any], state: Any, stops: Any) -> Any:
        """A loop over what Python goes through: an item is asked for when its trip has come."""
        iterator = iter(iterable)
        while True:
            if any(self._is_traced(state[k]) for k in stops):
                if isinstance(iterable, _LAZY):
                    raise NotCaptured("a traced way out of a loop over an iterator", where_called())
                rest = list(iterator)
                count = len(rest) and _count(iterable)
                state = self._one_by_one(_known(rest), body, state, stops)
                if count != (len(rest) and _count(iterable)):
                    raise NotCaptured(CHANGING, where_called())
                return state
            if any(state[k] for k in stops):
                return state
            try:
                item = next(iterator)
            except StopIteration:
                return state
            state = body(item, *state)

    def _unrolled(
        self, items: Sequence[Callable[[], Any]], body: Callable[..., Any], state: Any, stops: Any
    ) -> Any:
        before, self.unrolled = self.unrolled, self.unrolled * max(1, len(items))
        try:
            return self._one_by_one(items, body, state, stops)
        finally:
            self.unrolled = before

    def _one_by_one(
        self, items: Sequence[Callable[[], Any]], body: Callable[..., Any], state: Any, stops: Any
    ) -> Any:
        for position, item in enumerate(items):
            for k in stops:
                if self._is_traced(state[k]):
                    rest = items[position:]
                    if len(rest) > NESTED:
                        reason = "a traced way out of a loop of many trips that is unrolled"
                        raise NotCaptured(reason, where_called())
                    others = tuple(j for j in stops if j != k)
                    return self._traced(
                        state[k],
                        lambda now=state: tuple(now),
                        lambda now=state, left=rest, o=others: tuple(
                            self._unrolled_from(left, body, now, stops, o)
                        ),
                    )
                if state[k]:
                    return state
            state = body(item(), *state)
        return state

    def _unrolled_from(
        self, items: Sequence[Callable[[], Any]], body: Any, state: Any, stops: Any, others: Any
    ) -> Any:
        """The next trip, its first stop flag known to be unset, and what follows."""
        if any(not self._is_traced(state[j]) and state[j] for j in others):
            return state
        if any(self._is_traced(state[j]) for j in others):
            raise NotStaged("several traced ways out of an unrolled loop")
        return self._one_by_one(items[1:], body, body(items[0](), *state), stops)

    def _staged_while(self, test: Any, body: Any, state: Any, stops: Any) -> Any:
        stager = Stager(self.block, state, stops, [test, body])
        try:
            return stager.while_loop(test, body)
        except Resizing as e:
            if e.is_given(self.block) and self._answer(test, state) is not None:
                raise  # a loop over extents: Python takes it
        stager = Stager(self.block, state, stops, [test, body])
        stager.resizes = True
        return stager.while_loop(test, body)

    def _staged_behind(self, test: Any, body: Any, state: Any, stops: Any) -> Any:
        """The rest of a loop, some trips of which may have run by themselves."""
        try:
            return self._staged_while(test, body, state, stops)
        except NotStaged as e:
            raise NotCaptured(f"a while loop that cannot be staged: {e}", where_called()) from None

    def _answer(self, test: Callable[..., Any], state: tuple[Any, ...]) -> bool | None:
        """Whether a loop goes on; None when only the running code knows. Nothing has changed."""
        watch = Watch([test, *state])
        try:
            answer = truth_of(test(*state))
            return None if self._is_traced(answer) else bool(answer)
        finally:
            watch.restore()

    def while_loop(
        self,
        test: Callable[..., Any],
        body: Callable[..., Any],
        state: tuple[Any, ...],
        names: tuple[str, ...],
        stops: tuple[int, ...],
    ) -> Any:
        """while test(*state): state = body(*state), until a stop flag is set"""
        del names
        if self._answer(test, state) is False:
            test(*state)
            return state
        spoiled = self.capture.spoiled
        try:
            return self._staged_while(test, body, state, stops)
        except NotStaged as e:
            reason = str(e)
        except NotCaptured as e:
            self.capture.spoiled = spoiled
            reason = e.reason
        for _ in range(LONGEST):
            if any(self._is_traced(state[k]) for k in stops):
                raise NotCaptured(f"a while loop that cannot be staged: {reason}", where_called())
            if any(state[k] for k in stops):
                return state
            if self._answer(test, state) is None:
                return self._staged_behind(test, body, state, stops)
            if not test(*state):
                return state
            state = body(*state)
        raise NotCaptured(
            f"a while loop of many trips that cannot be staged: {reason}", where_called()
        )


def _known(items: Sequence[Any]) -> list[Callable[[], Any]]:
    """Items that are there already, as `_unrolled` takes them."""
    return [lambda item=item: item for item in items]


def _count(iterable: Any) -> int:
    """How many items a list has; 0 for what does not change in a loop."""
    return len(iterable) if isinstance(iterable, list) else 0


def _each(items: Items, trips: int) -> list[Callable[[], Any]]:
    """The items of so many trips, each looked at in its own: the body may write to what they come
    from."""
    return [lambda k=k: items.get(k) for k in range(trips)]
