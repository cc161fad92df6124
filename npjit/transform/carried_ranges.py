"""What a loop carries from trip to trip, as bounds that no trip leads out of.

In: a LOOP or WHILE, and what is known of its arguments. Out: what is known of the numbers that come
into its body, and of its results. Bounds begin with what the loop is given, and are made weaker as
long as the body leaves them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from npjit.core.control import Loop, While
from npjit.core.graph import Graph
from npjit.core.interval import Interval
from npjit.core.size import Size
from npjit.transform.held import Held, larger_size, limits_of

# a number that a loop carries starts at most here, and rises by at most so much in the outermost
# loop, half of it in loops in that one, and so on
START = 2**61
_RISE = 2**60
# how often a bound that no trip raises is looked for
_RAISES = 2


class Walk(Protocol):
    """The walk through the graph around."""

    depth: int

    def run(self, graph: Graph, entry: list[Held | None], final: bool) -> list[Held | None]:
        """What a graph's outputs are, given its inputs."""

    def refined(
        self, params: Loop | While, entry: list[Held | None], final: bool
    ) -> list[Held | None]:
        """What comes into a body when its condition holds."""

    def ends(self, size: Size) -> Interval:
        """The values that a size may have."""

    def most(self, size: Size) -> int | None:
        """A bound of a size that is not negative."""


class Carried:
    """What a loop carries, made weaker until no trip leads out of it."""

    def __init__(self, ranges: Walk, params: Loop | While, given: list[Held | None]) -> None:
        self.ranges = ranges
        self.params = params
        self.given = given
        self.entry = entry = [a and a.settled() for a in given]
        self.trips = self._trips()
        self.room = _RISE >> ranges.depth
        self.base = 2 * (_RISE - self.room) + START
        self.ints = [k for k in range(params.carried) if entry[k] is not None]
        self.limits = {k: limits_of(params.body.inputs[k].type) for k in self.ints}
        self.lows = {k: h.low for k in self.ints if (h := entry[k]) is not None}
        # those that are never above a number, with how often that has been raised
        alone = [k for k in self.ints if (h := given[k]) and h.rise is None and h.high < START]
        self.highs = {k: h.high for k in alone if (h := entry[k]) is not None}
        self.raised = dict.fromkeys(alone, 0)
        # those that rise from trip to trip
        self.group = set(self.ints) - set(alone)
        self.outputs: list[Held | None] = []
        self.rise: Size = 0
        self.fixed = 0

    def _trips(self) -> Size | None:
        """How many there are; None when nobody knows."""
        if not isinstance(self.params, Loop):
            return None
        trips = self.params.trips
        low = self.ranges.ends(trips)[0]
        return trips if low is not None and low >= 0 else self.ranges.most(trips)

    def settle(self) -> None:
        """Weaker bounds as long as the body leaves them."""
        while True:
            state = self._state(self.base + self.room)
            inside = self.ranges.refined(self.params, state, False)
            self.outputs = self.ranges.run(self.params.body, inside, False)
            weaker = [self._weaken(k) for k in self.ints]
            if not any(weaker):
                break
        self._measure()

    def _weaken(self, k: int) -> bool:
        """Whether one of the bounds of carried value k does not hold."""
        first, last, limits = self.entry[k], self.outputs[k], self.limits[k]
        assert first is not None and limits is not None
        low = limits.low if last is None else last.low
        falls = low < self.lows[k]
        if falls:
            self.lows[k] = 0 if low >= 0 else limits.low
        if k in self.highs:
            return self._raise(k, last) or falls
        if k not in self.group:
            return falls
        rises = self.ranges.most(self._by_all(None if last is None else last.rise))
        fixed = first.high if last is None or last.fixed is None else last.fixed
        is_far = rises is None or rises > self.room or max(fixed, first.high) > self.base
        if last is None or is_far:
            self.group.discard(k)
            return True
        return falls

    def _raise(self, k: int, last: Held | None) -> bool:
        """Whether carried value k is above its number, which is then one with more bits."""
        if last is not None and last.high <= self.highs[k]:
            return False
        self.raised[k] += 1
        if last is not None and self.raised[k] <= _RAISES and 0 <= last.high < START:
            self.highs[k] = (1 << last.high.bit_length()) - 1
        else:
            del self.highs[k]
            self.group.add(k)
        return True

    def _by_all(self, rise: Size | None) -> Size:
        """How much all trips raise what one raises by this much."""
        if rise is None or (isinstance(rise, int) and rise <= 0):
            return 0
        return 2 * _RISE if self.trips is None else self.trips * rise

    def _measure(self) -> None:
        for k in self.group:
            first, last = self.entry[k], self.outputs[k]
            assert first is not None and last is not None
            self.rise = larger_size(self.rise, self._by_all(last.rise))
            ends = [first.high, *([last.fixed] if last.fixed is not None else [])]
            self.fixed = max(self.fixed, *ends)

    def _state(self, cap: int) -> list[Held | None]:
        """What comes into the body of any trip, when all of the group is at most `cap`."""
        found = list(self.entry)
        for k in self.ints:
            limits = self.limits[k]
            assert limits is not None
            if k in self.highs:
                found[k] = Held(self.lows[k], self.highs[k], None, self.highs[k])
            elif k in self.group and cap <= limits.high:
                found[k] = Held(self.lows[k], cap, 0, None)
            else:
                found[k] = Held(self.lows[k], limits.high, None, limits.high)
        return found

    def bounded(self) -> list[Held | None]:
        """What comes into the body, by the bounds that have held."""
        return self._state(self.fixed + (self.ranges.most(self.rise) or 0))

    def after(self) -> list[Held | None]:
        """What the loop gives, seen from around it."""
        inside = self.bounded()
        inner = [h for k in self.group if (h := self.given[k]) is not None]
        rises = [h.rise for h in inner if h.rise is not None]
        fixed = [h.fixed for h in inner if h.fixed is not None]
        fixed += [h.fixed for k in self.group if (h := self.outputs[k]) and h.fixed is not None]
        by = self.ranges.most(self.rise) or 0
        rise: Size | None = None
        for r in rises:
            rise = larger_size(r + self.rise, 0 if rise is None else rise)
        most = max(fixed) + by if fixed else None
        results: list[Held | None] = [None] * self.params.carried
        for k in self.ints:
            known = inside[k]
            assert known is not None
            is_bound = k in self.group
            results[k] = replace(known, rise=rise, fixed=most) if is_bound else known.settled()
        return results
