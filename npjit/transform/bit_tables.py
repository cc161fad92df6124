"""Short loops that move and combine bits become look-ups.

In: a graph. Out: the same values, where a LOOP of a few trips inside a longer one, whose trips only
shift numbers, take bits of them and combine those by exclusive or, is one look-up in a table of 256
numbers. Such a trip is linear: what each bit of a number adds to a result does not depend on other
bits. All bits but eight must only move; what these eight add up to is tabulated in front of the
longer loop, by the trips themselves on 0, 1, ..., 255:

    loop over bytes b:                                  table = trips(iota(256), 0)
        loop 8 times:                                   loop over bytes b:
            crc = crc >> 1 ^ (poly if bit else 0)  ->       crc = crc >> 8 ^ table[(crc ^ b) & 255]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce

import numpy as np

from npjit.core import interval
from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, TensorType, Weight
from npjit.core.op import CONTROL, Gather, Kind
from npjit.core.rebuild import rebuild
from npjit.ops import build, kinds

_INT = np.dtype("i8")
_BOOL = np.dtype("?")
_WIDTH = 64
# bits that a table is for, the trips that it may stand for, and those that are worth one
_INDEX = 8
_TABLE = 1 << _INDEX
_TRIPS = range(3, 65)
_FEWEST = 64

# of each bit of a value, the bits of the inputs that it is the exclusive or of; the one above those
# of all inputs is always set
Bits = tuple[int, ...]


@dataclass(frozen=True)
class Move:
    """Bits of an input that move right, or left where `by` is negative; a mask of -1 is all."""

    input: int
    by: int
    mask: int


@dataclass(frozen=True)
class Moved:
    """A result: the exclusive or of moved inputs, of what the table has for eight bits, from bit
    `at` on, of the exclusive or of others, and of `constant`."""

    moved: tuple[Move, ...]
    looked_up: tuple[int, ...]
    at: int
    constant: int


def tabulate(graph: Graph) -> Graph:
    """See the module's docstring."""
    if not any(n.op.kind in CONTROL for n in graph.nodes):
        return graph

    def rewrite(block: Block, n: Node, args: tuple[Node, ...]) -> Node | None:
        if n.op.kind not in CONTROL:
            return None
        parts = {f.name: getattr(n.params, f.name) for f in fields(n.params)}
        parts |= {name: tabulate(g) for name, g in parts.items() if isinstance(g, Graph)}
        params = replace(n.params, **parts)
        if isinstance(params, Loop):
            params, args = _with_tables(block, params, args)
        return block.add(n.op, args, params, n.type)

    return rebuild(graph, rewrite)


def _with_tables(
    block: Block, outer: Loop, args: tuple[Node, ...]
) -> tuple[Loop, tuple[Node, ...]]:
    """The longer loop with its tables among its arguments."""
    if isinstance(outer.trips, int) and outer.trips < _FEWEST:
        return outer, args
    found = {n: m for n in outer.body.nodes if (m := _linear(n)) is not None}
    if not found:
        return outer, args
    inputs = list(outer.body.inputs)
    tables: dict[tuple[Node, int], Node] = {}
    made = []
    for n, results in found.items():
        for k, result in enumerate(results):
            if result.looked_up:
                made.append(_table(block, n.params, k, result))
                given = Node(inputs[0].op, (), len(inputs), made[-1].type, "")
                tables[n, k] = given
                inputs.append(given)
    body = _looking_up(outer.body, inputs, found, tables)
    count = len(outer.body.inputs)
    return replace(outer, body=body), (*args[:count], *made, *args[count:])


def _looking_up(
    body: Graph,
    inputs: Sequence[Node],
    found: dict[Node, list[Moved]],
    tables: dict[tuple[Node, int], Node],
) -> Graph:
    """The longer loop's body with look-ups in place of these loops."""
    block = Block()
    block.nodes += inputs
    new: dict[Node, Node] = {n: n for n in inputs}
    for n in body.nodes:
        block.where = n.where
        if n in new or n in found:
            continue
        if n.op.kind is Kind.RESULT and n.args[0] in found:
            (loop,), k = n.args, n.params
            given = [new[a] for a in loop.args]
            new[n] = _result(block, found[loop][k], given, tables.get((loop, k)))
        else:
            new[n] = block.add(n.op, [new[a] for a in n.args], n.params, n.type)
    made = Graph.of(
        block,
        inputs,
        [new[n] for n in body.outputs],
        [(k, new[n]) for k, n in body.writes],
        body.sources,
    )
    return replace(made, guards=body.guards)


def _result(block: Block, result: Moved, given: list[Node], table: Node | None) -> Node:
    parts = [_move(block, m, given[m.input]) for m in result.moved]
    if table is None:
        parts.append(build.constant(block, result.constant, _INT))
    else:
        index = _joined(block, [given[v] for v in result.looked_up])
        index = _by_bits(block, ">>", index, result.at) if result.at else index
        index = _by_bits(block, "&", index, _TABLE - 1)
        type_ = TensorType((), _INT, Weight.SCALAR)
        parts.append(block.add(kinds.GATHER, (table, index), Gather((0,), 0), type_))
    return _joined(block, parts)


def _joined(block: Block, parts: list[Node]) -> Node:
    return reduce(lambda a, b: build.bits(block, "^", a, b), parts)


def _move(block: Block, move: Move, x: Node) -> Node:
    if move.mask != -1:
        x = _by_bits(block, "&", x, move.mask)
    if move.by == 0:
        return x
    return _by_bits(block, ">>" if move.by > 0 else "<<", x, abs(move.by))


def _by_bits(block: Block, sign: str, x: Node, value: int) -> Node:
    """x & value and the like, for a number or for many."""
    constant = build.constant(block, value, _INT)
    return build.bits(block, sign, x, build.broadcast(block, constant, x.shape))


# ---------------------------------------------------------------- what a loop does to bits


def _linear(n: Node) -> list[Moved] | None:
    """What each result of a short loop is; None where it is not of this kind."""
    if not isinstance(n.params, Loop) or n.params.stops:
        return None
    body, count, trips = n.params.body, n.params.carried, n.params.trips
    if not isinstance(trips, int) or trips not in _TRIPS:
        return None
    is_plain = len(body.inputs) == count and not body.writes and len(n.args) == count
    if not is_plain or any(i.shape or i.dtype != _INT for i in body.inputs):
        return None
    state: list[Bits] = [tuple(1 << (_WIDTH * v + i) for i in range(_WIDTH)) for v in range(count)]
    for _ in range(trips):
        trip = _trip(body, state, 1 << (_WIDTH * count))
        if trip is None:
            return None
        state = trip
    found = [_moved(bits, count) for bits in state]
    if None in found or not any(m.looked_up for m in found if m is not None):
        return None
    return [m for m in found if m is not None]


def _trip(body: Graph, state: list[Bits], one: int) -> list[Bits] | None:
    """The bits that a body makes of these."""
    held = dict(zip(body.inputs, state, strict=True))
    for n in body.nodes:
        if n not in held:
            made = _bits_of(n, [held[a] for a in n.args], one)
            if made is None:
                return None
            held[n] = made
    return [held[n] for n in body.outputs]


def _bits_of(n: Node, args: list[Bits], one: int) -> Bits | None:
    """A node's bits; None where they depend on each other."""
    if n.shape or n.dtype not in (_INT, _BOOL):
        return None
    if n.op.kind is Kind.CONST:
        value = int(n.params.value)
        return tuple(one if value >> i & 1 else 0 for i in range(1 if n.dtype == _BOOL else _WIDTH))
    if n.op.kind is Kind.VIEW:
        return args[0]
    if n.op.kind is not Kind.ELEMENTWISE:
        return None
    if n.op.conversion:
        if n.dtype == _BOOL:
            return _is_set(args[0], one)
        return args[0] if len(args[0]) == _WIDTH else (*args[0], *[0] * (_WIDTH - 1))
    if n.op.relation in ("==", "!="):
        differs = _is_set(tuple(a ^ b for a, b in zip(*args, strict=True)), one)
        return differs and (differs if n.op.relation == "!=" else (differs[0] ^ one,))
    if n.op.choice:
        return _chosen(args[0], args[1], args[2], one)
    if n.op.range is interval.times:
        a, b = args
        return _doubled(a, b, one) or _doubled(b, a, one)
    return _combined(n.op.bits, args, one)


def _combined(sign: str, args: list[Bits], one: int) -> Bits | None:
    """x & y and the like."""
    if sign == "^":
        return tuple(a ^ b for a, b in zip(*args, strict=True))
    if sign == "~":
        return tuple(a ^ one for a in args[0])
    if sign == ">>":
        x, by = args
        if any(b not in (0, one) for b in by):
            return None
        count = sum(1 << i for i, b in enumerate(by) if b)
        return tuple(x[min(i + count, _WIDTH - 1)] for i in range(_WIDTH)) if count < 64 else None
    if sign not in ("&", "|"):
        return None
    whole, none = (one, 0) if sign == "&" else (0, one)
    found = []
    for a, b in zip(*args, strict=True):
        if b in (0, one):
            a, b = b, a
        if a not in (0, one):
            return None
        found.append(b if a == whole else none)
    return tuple(found)


def _doubled(x: Bits, by: Bits, one: int) -> Bits | None:
    """A product with a power of two: a number moved left."""
    if len(x) != _WIDTH or sorted(by) != [*[0] * (_WIDTH - 1), one]:
        return None
    count = by.index(one)
    return (*[0] * count, *x[: _WIDTH - count])


def _is_set(bits: Bits, one: int) -> Bits | None:
    """Whether any of the bits is, where at most one may be."""
    able = [b for b in bits if b]
    if one in able:
        return (one,)
    return (able[0] if able else 0,) if len(able) < 2 else None


def _chosen(condition: Bits, a: Bits, b: Bits, one: int) -> Bits | None:
    """One of two values that always differ in the same bits."""
    differ = [x ^ y for x, y in zip(a, b, strict=True)]
    if condition[0] in (0, one):
        return a if condition[0] else b
    if any(d not in (0, one) for d in differ):
        return None
    return tuple(y ^ (condition[0] if d else 0) for y, d in zip(b, differ, strict=True))


def _moved(bits: Bits, count: int) -> Moved | None:
    """A result in terms of moved inputs and a table; None where there is no such form."""
    columns = [[_column(bits, _WIDTH * v + i) for i in range(_WIDTH)] for v in range(count)]
    constant = sum(1 << k for k, b in enumerate(bits) if b >> (_WIDTH * count))
    for at in range(_WIDTH - _INDEX):
        inside = range(at, at + _INDEX)
        moves = [_move_of(v, c, inside) for v, c in enumerate(columns)]
        found = [m for m in moves if m is not None]
        if len(found) < count:
            continue
        rest = [
            [c[i] ^ _moved_bit(m, i) for i in inside] for c, m in zip(columns, found, strict=True)
        ]
        tables = {v: r for v, r in enumerate(rest) if any(r)}
        if all(t == next(iter(tables.values())) for t in tables.values()):
            return Moved(tuple(m for m in found if m.mask), tuple(tables), at, _signed(constant))
    return None


def _signed(word: int) -> int:
    """The int64 of these bits."""
    return word - (1 << _WIDTH) if word >> (_WIDTH - 1) else word


def _column(bits: Bits, number: int) -> int:
    """The bits of a result that one bit of the inputs changes."""
    return sum(1 << k for k, b in enumerate(bits) if b >> number & 1)


def _move_of(v: int, columns: list[int], inside: range) -> Move | None:
    """How an input moves but for eight bits; with an empty mask where the others add nothing."""
    others = [i for i in range(_WIDTH) if i not in inside and columns[i]]
    if not others:
        return Move(v, 0, 0)
    by = others[0] - (columns[others[0]].bit_length() - 1)
    whole, part = Move(v, by, -1), Move(v, by, _signed(sum(1 << i for i in others)))
    for move in (whole, part):
        if all(columns[i] == _moved_bit(move, i) for i in range(_WIDTH) if i not in inside):
            return move
    return None


def _moved_bit(move: Move, i: int) -> int:
    """What bit i of a number is once it has moved; the last one, the sign, fills what is free."""
    if not move.mask >> i & 1:
        return 0
    if i == _WIDTH - 1 and move.by >= 0:
        return sum(1 << k for k in range(_WIDTH - 1 - move.by, _WIDTH))
    place = i - move.by
    return 1 << place if 0 <= place < _WIDTH else 0


# ---------------------------------------------------------------- the table


def _table(block: Block, loop: Loop, number: int, result: Moved) -> Node:
    """What a result is for each of the first numbers, without what moves."""
    numbers = build.iota(block, _TABLE)
    if result.at:
        numbers = _by_bits(block, "<<", numbers, result.at)
    zero = _everywhere(block, build.constant(block, 0, _INT))
    first = result.looked_up[0]
    state = [numbers if v == first else zero for v in range(loop.carried)]
    assert isinstance(loop.trips, int)
    for _ in range(loop.trips):
        state = _trip_of_all(block, loop.body, state)
    moves = [_move(block, m, numbers) for m in result.moved if m.input == first]
    return _joined(block, [state[number], *moves])


def _trip_of_all(block: Block, body: Graph, state: list[Node]) -> list[Node]:
    held = dict(zip(body.inputs, state, strict=True))
    for n in body.nodes:
        if n in held:
            continue
        if n.op.kind is Kind.CONST:
            held[n] = _everywhere(block, block.add(n.op, (), n.params, n.type))
        elif n.op.kind is Kind.VIEW:
            held[n] = held[n.args[0]]
        else:
            type_ = TensorType((_TABLE,), n.dtype)
            held[n] = block.add(n.op, [held[a] for a in n.args], n.params, type_)
    return [held[n] for n in body.outputs]


def _everywhere(block: Block, n: Node) -> Node:
    return build.broadcast(block, n, (_TABLE,))
