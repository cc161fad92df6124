"""Comparisons of ints that come out the same however the code runs, and checks that never fail.

In: a graph. Out: the same values, where such comparisons are constants. A value is followed as an
interval (`Op.range`) through bodies of loops and branches, where what a loop carries is known

    from below   by what it never falls under: `n` starts at 0 and is added to
    from above   by what it rises by in a trip: with t trips of at most 1 each `n` is t at most
    in a while   by the condition: below `limit` in its body

so that `n += 1` in a loop over an array never leaves 64 bits and is not asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from npjit.core import interval
from npjit.core.assume import Assumptions
from npjit.core.control import Cond, Loop, While
from npjit.core.graph import Block, Graph, Node, TensorType, every_node, rebuild
from npjit.core.interval import Interval
from npjit.core.op import CONTROL, Kind, Literal
from npjit.core.size import Expr, Fn, Size, Var, atoms, bounds, substitute, var
from npjit.ops import kinds

# extents of arrays, and elements of one, are no more than these
_LONGEST = 2**48
_MOST_ELEMENTS = 2**60
# a number that a loop carries starts at most here, and rises by at most so much in the outermost
# loop, half of it in loops in that one, and so on
_START = 2**61
_RISE = 2**60
# what is asked of ints that guards may bound
_MARKS = (2**31, 2**53, _START)
_INT64 = (-(2**63), 2**63 - 1)
# nodes that are looked at before all of this is given up
_MOST_NODES = 200_000


@dataclass(frozen=True)
class Held:
    """What is known of an int: low <= it <= high; it is no more than the greater one of `fixed` and
    the bound of what the innermost loop carries plus `rise` (None: it does not depend on that), and
    less than the size `below`."""

    low: int
    high: int
    rise: Size | None = None
    fixed: int | None = None
    below: Size | None = None

    @property
    def ends(self) -> tuple[int, int]:
        return self.low, self.high

    def settled(self) -> Held:
        """Seen from another loop's body."""
        return Held(self.low, self.high, None, self.high)


class _TooMany(Exception):
    """The graph is too large to be looked at in this way."""


def decide_comparisons(graph: Graph) -> Graph:
    """See the module's docstring."""
    if not any(n.op.relation for n in every_node(graph)):
        return graph
    try:
        found = _Ranges(graph).decided()
    except _TooMany:
        return graph
    return _with(graph, found) if found else graph


def _with(graph: Graph, found: dict[Node, bool]) -> Graph:
    """The graph with these nodes as constants."""

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if n in found:
            return block.add(kinds.CONST, (), Literal.of(found[n], n.dtype), n.type)
        if n.op.kind not in CONTROL or not any(m in found for m in every_node_in(n)):
            return None
        parts = {f.name: getattr(n.params, f.name) for f in fields(n.params)}
        inner = {k: _with(g, found) for k, g in parts.items() if isinstance(g, Graph)}
        return block.add(n.op, args, replace(n.params, **inner), n.type)

    return rebuild(graph, rewrite)


def every_node_in(n: Node) -> list[Node]:
    """The nodes of a control node's bodies."""
    graphs = [getattr(n.params, f.name) for f in fields(n.params)]
    return [m for g in graphs if isinstance(g, Graph) for m in every_node(g)]


class _Ranges:
    """One walk through a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known = Assumptions.given(graph.guards)
        # what a size variable may be: extents, int arguments, indices of loops, computed sizes
        self.variables: dict[Var, Interval] = {}
        self.depth = 0
        self.count = 0
        # comparisons by what they have come out as
        self.answers: dict[Node, set[bool]] = {}

    def decided(self) -> dict[Node, bool]:
        """The comparisons that come out the same."""
        entry = [_limits(n.type) for n in self.graph.inputs]
        self.run(self.graph, entry, final=True)
        return {n: min(a) for n, a in self.answers.items() if len(a) == 1}

    # ------------------------------------------------------------ nodes

    def run(self, graph: Graph, entry: Sequence[Held | None], final: bool) -> list[Held | None]:
        """What a graph's outputs are, given its inputs; `final`: the inputs are what they are."""
        held: dict[Node, Held | None] = dict(zip(graph.inputs, entry, strict=False))
        results: dict[Node, list[Held | None]] = {}
        self.count += len(graph.nodes)
        if self.count > _MOST_NODES:
            raise _TooMany
        for n in graph.nodes:
            if n in held:
                continue
            args = [held[a] for a in n.args]
            if n.op.kind in CONTROL:
                results[n] = self._control(n, args, final)
                held[n] = None
            elif n.op.kind is Kind.RESULT and n.args[0] in results:
                found = results[n.args[0]]
                held[n] = found[n.params] if n.params < len(found) else _limits(n.type)
            else:
                held[n] = self._value(n, args)
            if final and n.op.relation:
                self._note(n, held[n])
        return [held[n] for n in graph.outputs]

    def _note(self, n: Node, answer: Held | None) -> None:
        open_ = answer is None or answer.low != answer.high
        found = {False, True} if open_ or answer is None else {bool(answer.low)}
        self.answers.setdefault(n, set()).update(found)

    def of_number(self, n: Node) -> Held | None:
        """What is known of a constant or a size."""
        return None if n.args else self._value(n, [])

    def _value(self, n: Node, args: list[Held | None]) -> Held | None:
        limits = _limits(n.type)
        if limits is None:
            return None
        if n.op.kind is Kind.CONST:
            return _exactly(int(n.params.value))
        if n.op.kind is Kind.SIZE:
            return replace(_within(self.ends(n.params), limits), below=_divisor(n.params))
        if n.op.kind is Kind.BIND:
            least, greatest = self.ends(n.params.least)[0], self.ends(n.params.greatest)[1]
            self.variables[n.params.var] = _within((least, greatest), limits).ends
        if n.op.kind in (Kind.VIEW, Kind.RESHAPE, Kind.CHECK, Kind.BIND):
            return args[0]
        if n.op.kind is not Kind.ELEMENTWISE or None in args:
            return limits
        return self._elementwise(n, [a for a in args if a is not None], limits)

    def _elementwise(self, n: Node, args: list[Held], limits: Held) -> Held:
        if n.op.choice:
            return args[1 if args[0].low else 2] if args[0].low == args[0].high else _either(args)
        if n.op.relation:
            answer = _compared(n, *args)
            return limits if answer is None else _exactly(int(answer))
        if n.op.conversion:
            fits = limits.low <= args[0].low and args[0].high <= limits.high
            return args[0] if fits else limits
        if n.op.range is None:
            return limits
        low, high = n.op.range(*[a.ends for a in args])
        if low is None or high is None or low < limits.low or high > limits.high:
            return limits
        rise, fixed = _risen(n, args, high)
        is_rest = n.op.range is interval.modulo and args[1].low > 0
        return Held(low, high, rise, fixed, _size_of(n.args[1]) if is_rest else None)

    # ------------------------------------------------------------ bodies

    def _control(self, n: Node, args: list[Held | None], final: bool) -> list[Held | None]:
        params = n.params
        first = 1 if isinstance(params, Cond) else 0
        for k in params.written:
            args[first + k] = _limits(n.args[first + k].type)
        if isinstance(params, Cond):
            # the condition holds on one side
            then = self.narrowed(n.args[0], n.args[1:], args[1:])
            sides = [self.run(params.then, then, final), self.run(params.other, args[1:], final)]
            return [_both(a, b) for a, b in zip(*sides, strict=True)]
        assert isinstance(params, Loop | While)
        if isinstance(params, Loop):
            high = self.ends(params.trips - 1)[1]
            self.variables[params.index] = (0, None if high is None else max(high, 0))
        entry = [a.settled() if a is not None else None for a in args]
        carried = _Carried(self, params, entry)
        self.depth += 1
        carried.settle()
        if final:
            self.run(params.body, self.refined(params, carried.bounded(), True), True)
        self.depth -= 1
        return carried.after(args)

    def refined(self, params: Any, entry: list[Held | None], final: bool) -> list[Held | None]:
        """What comes into a body when its condition holds."""
        if not isinstance(params, While):
            return entry
        self.run(params.test, entry, final)
        (condition,) = params.test.outputs
        return self.narrowed(condition, params.test.inputs, entry)

    def narrowed(
        self, condition: Node, values: Sequence[Node], entry: list[Held | None]
    ) -> list[Held | None]:
        """What is known of values where the condition holds."""
        held = dict(zip(values, entry, strict=False))
        for n, low, high, below in _asked(self, condition, held):
            known = held[n]
            if known is not None and max(known.low, low) <= min(known.high, high):
                low, high = max(known.low, low), min(known.high, high)
                is_new = high < known.high
                rise, fixed = (None, high) if is_new else (known.rise, known.fixed)
                below = known.below if below is None else below
                held[n] = Held(low, high, rise, fixed, below)
        return [held[n] for n in values]

    # ------------------------------------------------------------ sizes

    def ends(self, size: Size) -> Interval:
        """The values that a size may have."""
        return bounds(substitute(size, {v: self._bounded(v) for v in atoms(size)}))

    def _bounded(self, v: Var) -> Size:
        if v not in self.variables:
            self.variables[v] = self._of_argument(v)
        return var(v.name, *self.variables[v])

    def _of_argument(self, v: Var) -> Interval:
        """The range of an extent, or of an int argument as far as guards tell."""
        source = self.graph.sources.get(v)
        if source is not None and source.axis is not None:
            return v.lo, _LONGEST
        size = var(v.name, v.lo, v.hi)
        low = next((-m for m in (0, *_MARKS) if self.known.le(-m, size)), v.lo)
        return low, next((m for m in _MARKS if self.known.le(size, m)), v.hi)

    def most(self, size: Size) -> int | None:
        """A bound of a size that is not negative; of all elements of one array it is less than the
        product of bounds of its extents."""
        if isinstance(size, int):
            return size
        total = 0
        for mono, factor in size.terms:
            low, high = self.ends(Expr(((mono, 1),)) if mono else 1)
            places = [self.graph.sources.get(a) for a in mono if isinstance(a, Var)]
            axes = {(s.input, s.axis) for s in places if s is not None and s.axis is not None}
            if len(axes) == len(mono) > 1 and len({i for i, _ in axes}) == 1:
                high = _MOST_ELEMENTS if high is None else min(high, _MOST_ELEMENTS)
            high = low if factor < 0 else high
            if high is None:
                return None
            total += factor * high
        return max(total, 0)


class _Carried:
    """What a loop carries, made weaker until no trip leads out of it."""

    def __init__(self, ranges: _Ranges, params: Loop | While, entry: list[Held | None]) -> None:
        self.ranges = ranges
        self.params = params
        self.entry = entry
        self.trips = self._trips()
        self.room = _RISE >> ranges.depth
        self.base = 2 * (_RISE - self.room) + _START
        self.ints = [k for k in range(params.carried) if entry[k] is not None]
        self.limits = {k: _limits(params.body.inputs[k].type) for k in self.ints}
        self.lows = {k: h.low for k in self.ints if (h := entry[k]) is not None}
        # those that are bounded from above
        self.group = set(self.ints)
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
        if k not in self.group:
            return falls
        rises = self.ranges.most(self._by_all(None if last is None else last.rise))
        fixed = first.high if last is None or last.fixed is None else last.fixed
        is_far = rises is None or rises > self.room or max(fixed, first.high) > self.base
        if last is None or is_far:
            self.group.discard(k)
            return True
        return falls

    def _by_all(self, rise: Size | None) -> Size:
        """How much all trips raise what one raises by this much."""
        if rise is None or (isinstance(rise, int) and rise <= 0):
            return 0
        return 2 * _RISE if self.trips is None else self.trips * rise

    def _measure(self) -> None:
        for k in self.group:
            first, last = self.entry[k], self.outputs[k]
            assert first is not None and last is not None
            self.rise = _more(self.rise, self._by_all(last.rise))
            ends = [first.high, *([last.fixed] if last.fixed is not None else [])]
            self.fixed = max(self.fixed, *ends)

    def _state(self, cap: int) -> list[Held | None]:
        """What comes into the body of any trip, when all of the group is at most `cap`."""
        found = list(self.entry)
        for k in self.ints:
            limits = self.limits[k]
            assert limits is not None
            if k in self.group and cap <= limits.high:
                found[k] = Held(self.lows[k], cap, 0, None)
            else:
                found[k] = Held(self.lows[k], limits.high, None, limits.high)
        return found

    def bounded(self) -> list[Held | None]:
        """What comes into the body, by the bounds that have held."""
        return self._state(self.fixed + (self.ranges.most(self.rise) or 0))

    def after(self, args: list[Held | None]) -> list[Held | None]:
        """What the loop gives, seen from around it."""
        inside = self.bounded()
        inner = [h for k in self.group if (h := args[k]) is not None]
        rises = [h.rise for h in inner if h.rise is not None]
        fixed = [h.fixed for h in inner if h.fixed is not None]
        fixed += [h.fixed for k in self.group if (h := self.outputs[k]) and h.fixed is not None]
        by = self.ranges.most(self.rise) or 0
        rise: Size | None = None
        for r in rises:
            rise = _more(r + self.rise, 0 if rise is None else rise)
        most = max(fixed) + by if fixed else None
        results: list[Held | None] = [None] * self.params.carried
        for k in self.ints:
            known = inside[k]
            assert known is not None
            is_bound = k in self.group
            results[k] = replace(known, rise=rise, fixed=most) if is_bound else known.settled()
        return results


# ---------------------------------------------------------------- what is held of a value


def _limits(type_: TensorType) -> Held | None:
    """What its type says of a value; None when it is no int."""
    if type_.dtype.kind == "b":
        return Held(0, 1, None, 1)
    if type_.dtype.kind not in "iu":
        return None
    info = np.iinfo(type_.dtype)
    return Held(int(info.min), int(info.max), None, int(info.max))


def _exactly(value: int) -> Held:
    return Held(value, value, None, value)


def _within(ends: Interval, limits: Held) -> Held:
    low = limits.low if ends[0] is None else max(ends[0], limits.low)
    high = limits.high if ends[1] is None else min(ends[1], limits.high)
    return Held(low, high, None, high)


def _more(a: Size, b: Size) -> Size:
    """No less than either of two, or of one and 0."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if a == b:
        return a
    return (max(a, 0) if isinstance(a, int) else a) + (max(b, 0) if isinstance(b, int) else b)


def _both(a: Held | None, b: Held | None) -> Held | None:
    """Of a value that is one or the other."""
    if a is None or b is None:
        return None
    rises = [h.rise for h in (a, b) if h.rise is not None]
    fixed = [h.fixed for h in (a, b) if h.fixed is not None]
    rise = None if not rises else rises[0] if len(rises) == 1 else _more(*rises)
    ends = min(a.low, b.low), max(a.high, b.high)
    return Held(*ends, rise, max(fixed, default=None))


def _either(args: list[Held]) -> Held:
    found = _both(args[1], args[2])
    assert found is not None
    return found


def _risen(n: Node, args: list[Held], high: int) -> tuple[Size | None, int | None]:
    """`rise` and `fixed` of a value whose arguments may depend on what a loop carries."""
    if n.op.range in (interval.greater, interval.lesser):
        found = _both(*args)
        assert found is not None
        return found.rise, found.fixed
    if n.op.range is interval.plus and args[0].rise is None:
        args = args[::-1]
    a, b = (*args, *args)[:2]
    if a.rise is None or b.rise is not None or n.op.range not in (interval.plus, interval.minus):
        return None, high
    more = b.high if n.op.range is interval.plus else -b.low
    # sizes among the rises are never negative
    rise = a.rise + (more if isinstance(a.rise, int) else max(more, 0))
    return rise, None if a.fixed is None else a.fixed + more


def _compared(n: Node, a: Held, b: Held) -> bool | None:
    """How a comparison comes out, where that is known."""
    relation = n.op.relation
    is_below = a.below is not None and a.below == _size_of(n.args[1])
    if relation == "in":
        return True if a.low >= 0 and (is_below or a.high < b.low) else None
    return True if relation == "<" and is_below else _compare(relation, a, b)


def _size_of(n: Node) -> Size | None:
    """The size that a node gives."""
    size: Size | None = n.params if n.op.kind is Kind.SIZE else None
    return size


def _divisor(size: Size) -> Size | None:
    """The size that a remainder is less than: sizes are divided by positive ones alone."""
    if isinstance(size, int) or len(size.terms) != 1:
        return None
    ((mono, factor),) = size.terms
    is_rest = factor == 1 and len(mono) == 1 and isinstance(mono[0], Fn) and mono[0].name == "mod"
    return mono[0].args[1] if is_rest else None  # type: ignore[union-attr]


def _compare(relation: str, a: Held, b: Held) -> bool | None:
    if relation in (">", ">="):
        return _compare("<" if relation == ">" else "<=", b, a)
    if relation == "<":
        return True if a.high < b.low else False if a.low >= b.high else None
    if relation == "<=":
        return True if a.high <= b.low else False if a.low > b.high else None
    if a.high < b.low or b.high < a.low:
        return relation == "!="
    same = a.low == a.high == b.low == b.high
    return (relation == "==") if same else None


def _asked(
    ranges: _Ranges, condition: Node, held: dict[Node, Held | None]
) -> Iterator[tuple[Node, int, int, Size | None]]:
    """What a condition says of these values: (value, low, high, below)."""
    stack = [condition]
    while stack:
        n = stack.pop()
        if n.op.choice and n.args[0] is n.args[2]:
            stack += n.args[:2]  # both hold
        elif n.op.kind in (Kind.VIEW, Kind.CHECK):
            stack.append(n.args[0])
        elif n.op.kind is Kind.RESULT and _is_and(n.args[0], n.params):
            stack.append(n.args[0].args[0])
        elif n.op.relation in _TURNED:
            a, b = n.args
            for this, other, sign in ((a, b, n.op.relation), (b, a, _TURNED[n.op.relation])):
                limit = held[other] if other in held else ranges.of_number(other)
                if held.get(this) is None or limit is None:
                    continue
                strict = 0 if sign.endswith("=") else 1
                if sign[0] == "<":
                    below = _size_of(other) if strict else None
                    yield this, _INT64[0], limit.high - strict, below
                else:
                    yield this, limit.low + strict, _INT64[1], None


def _is_and(branch: Node, number: int) -> bool:
    """Whether a result of a branch is its condition where that fails."""
    if not isinstance(branch.params, Cond):
        return False
    other = branch.params.other
    last = other.outputs[number]
    given = branch.args[1 + other.inputs.index(last)] if last in other.inputs else None
    return given is branch.args[0]


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
