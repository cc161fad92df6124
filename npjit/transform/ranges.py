"""Comparisons of ints that come out the same however the code runs, and checks that never fail.

In: a graph. Out: the same values, where such comparisons are constants, and tests such as isfinite
of the root of an extent. A value is followed as an
interval (`Op.range`) through bodies of loops and branches, where what a loop carries is known

    from below   by what it never falls under: `n` starts at 0 and is added to
    by bits      by what it is never above: `x = (31 * x + y) % 65521`
    from above   by what it rises by in a trip: with t trips of at most 1 each `n` is t at most
    in a while   by the condition: below `limit` in its body

so that `n += 1` in a loop over an array never leaves 64 bits and is not asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npjit.core import interval
from npjit.core.assume import Assumptions
from npjit.core.control import Cond, Loop, While
from npjit.core.graph import Block, Graph, Node, every_node, named_graphs
from npjit.core.interval import Interval
from npjit.core.op import CONTROL, Kind
from npjit.core.rebuild import rebuild
from npjit.core.size import Expr, Size, Var, as_size, atoms, bounds, substitute, var
from npjit.ops import build
from npjit.transform.bodies import with_graphs
from npjit.transform.carried_ranges import START, Carried
from npjit.transform.held import (
    Held,
    both,
    compared,
    divisor,
    either,
    exactly,
    limits_of,
    risen,
    rounded,
    size_of,
    within,
)

# extents of arrays, and elements of one, are no more than these
_LONGEST = 2**48
_MOST_ELEMENTS = 2**60
# what is asked of ints that guards may bound
_MARKS = (2**31, 2**53, START)
_INT64 = (-(2**63), 2**63 - 1)
_DOUBLE = np.dtype("f8")
# nodes that are looked at before all of this is given up
_MOST_NODES = 50_000


class _TooMany(Exception):
    """The graph is too large to be looked at in this way."""


def decide_comparisons(graph: Graph) -> Graph:
    """See the module's docstring."""
    if not any(map(_is_asked, every_node(graph))):
        return graph
    try:
        found = _Ranges(graph).decided()
    except _TooMany:
        return graph
    return _with(graph, found) if found else graph


def _is_asked(n: Node) -> bool:
    """Whether the node is a comparison or another question about numbers."""
    return bool(n.op.relation) or (n.op.range is not None and n.dtype.kind == "b")


def _with(graph: Graph, found: dict[Node, bool]) -> Graph:
    """The graph with these nodes as constants."""

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if n in found:
            number = build.constant(block, found[n], n.dtype, n.type.weight)
            return build.broadcast(block, number, n.shape)
        if n.op.kind not in CONTROL or not any(m in found for m in every_node_in(n)):
            return None
        params = with_graphs(n.params, lambda name, g: _with(g, found))
        return block.add(n.op, args, params, n.type)

    return rebuild(graph, rewrite)


def every_node_in(n: Node) -> list[Node]:
    """The nodes of a control node's bodies."""
    return [m for _, g in named_graphs(n.params) for m in every_node(g)]


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
        entry = [limits_of(n.type) for n in self.graph.inputs]
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
                held[n] = found[n.params] if n.params < len(found) else limits_of(n.type)
            else:
                held[n] = self._value(n, args)
            if final and _is_asked(n):
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
        limits = limits_of(n.type)
        if limits is None:
            return rounded(n, args) if n.dtype == _DOUBLE else None
        if n.op.kind is Kind.CONST:
            return exactly(int(n.params.value))
        if n.op.kind is Kind.SIZE:
            return replace(within(self.ends(n.params), limits), below=divisor(n.params))
        if n.op.kind is Kind.BIND:
            least, greatest = self.ends(n.params.least)[0], self.ends(n.params.greatest)[1]
            self.variables[n.params.var] = within((least, greatest), limits).ends
        if n.op.kind in (Kind.VIEW, Kind.RESHAPE, Kind.CHECK, Kind.BIND):
            return args[0]
        if n.op.kind is not Kind.ELEMENTWISE or None in args:
            return limits
        return self._elementwise(n, [a for a in args if a is not None], limits)

    def _elementwise(self, n: Node, args: list[Held], limits: Held) -> Held:
        if n.op.choice:
            return args[1 if args[0].low else 2] if args[0].low == args[0].high else either(args)
        if n.op.relation:
            answer = compared(n, *args)
            return limits if answer is None else exactly(int(answer))
        if n.op.conversion:
            fits = limits.low <= args[0].low and args[0].high <= limits.high
            return args[0] if fits else limits
        if n.op.range is None:
            return limits
        low, high = n.op.range(*[a.ends for a in args])
        if low is None or high is None or low < limits.low or high > limits.high:
            return limits
        rise, fixed = risen(n, args, high)
        is_rest = n.op.range is interval.modulo and args[1].low > 0
        return Held(low, high, rise, fixed, size_of(n.args[1]) if is_rest else None)

    # ------------------------------------------------------------ bodies

    def _control(self, n: Node, args: list[Held | None], final: bool) -> list[Held | None]:
        params = n.params
        first = 1 if isinstance(params, Cond) else 0
        for k in params.written:
            args[first + k] = limits_of(n.args[first + k].type)
        if isinstance(params, Cond):
            # the condition holds on one side
            then = self.narrowed(n.args[0], n.args[1:], args[1:])
            sides = [self.run(params.then, then, final), self.run(params.other, args[1:], final)]
            return [both(a, b) for a, b in zip(*sides, strict=True)]
        assert isinstance(params, Loop | While)
        if isinstance(params, Loop):
            high = self.ends(params.trips - 1)[1]
            self.variables[params.index] = (0, None if high is None else max(high, 0))
        known = [a if limits_of(arg.type) else None for a, arg in zip(args, n.args, strict=True)]
        carried = Carried(self, params, known)
        self.depth += 1
        carried.settle()
        if final:
            self.run(params.body, self.refined(params, carried.bounded(), True), True)
        self.depth -= 1
        return carried.after()

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
        size = as_size(v)
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
                # doubles may be less by less than 1
                strict = 0 if sign.endswith("=") or this.dtype == _DOUBLE else 1
                if sign[0] == "<":
                    below = size_of(other) if strict else None
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
