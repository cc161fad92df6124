"""The adjoints of loops and branches: a second loop that counts backwards, a second branch.

`control_adjoint(sweep, node)` passes gradients from a control node's results to its arguments. The
node itself is changed to record on tapes what its adjoint needs (`npjit.transform.tape`): its
results stay what they were, those for the tapes come after them.

    s = loop s0: s = sin(s)                  tape[i] = s as well
    g = loop g: g = g * cos(tape[n - 1 - i])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from npjit.core.control import Cond, Loop, While
from npjit.core.dtypes import kind_of
from npjit.core.graph import Block, Graph, Node, TensorType
from npjit.core.op import Kind
from npjit.core.size import Size, Var, as_size, atoms, product, smax, substitute
from npjit.ops import build
from npjit.ops.control import COND, LOOP, RESULT
from npjit.ops.errors import NotCaptured
from npjit.ops.indexing import bind
from npjit.transform.adjoints import cell, zeros
from npjit.transform.nested import Wanted, depends, differentiate, gradient_type
from npjit.transform.respell import Spell
from npjit.transform.tape import COUNT, Entries, Slots, Tape, counted, recording, replaying

if TYPE_CHECKING:
    from npjit.transform.grad import Sweep


# a while loop's tape: how many trips, and how many elements each; others run value by value
MOST_TRIPS = 4096
SMALL = 64


def control_adjoint(sweep: Sweep, node: Node) -> None:
    """Pass the gradients of a control node's results on to its arguments."""
    found = _results(sweep.block, node)
    if not any(n in sweep.found for n in found.values()):
        return
    if node.op.kind is Kind.COND:
        _pass_branch(sweep, node, found)
    else:
        _pass_loop(sweep, node, found)


def _results(block: Block, node: Node) -> dict[int, Node]:
    is_result = (n for n in block.nodes if n.op.kind is Kind.RESULT and n.args[0] is node)
    return {n.params: n for n in is_result}


# ---------------------------------------------------------------- loops


def _pass_loop(sweep: Sweep, node: Node, found: dict[int, Node]) -> None:
    block, loop = sweep.block, node.params
    count, carried = len(loop.body.inputs), loop.carried
    args, binds = node.args[:count], node.args[count:]
    wanted = _wanted_of_loop(loop, {p for p, a in enumerate(args) if a in sweep.path})
    body = differentiate(sweep, loop.body, wanted)
    there = {n for p, n in enumerate(body.inputs) if p >= carried and p not in loop.written}
    tape = Tape.of(body, there)
    entries = _entries(sweep, loop)
    arrays = _arrays(block, tape, entries)
    recorded = replace(loop, body=recording(block, tape, entries, arrays, 0))
    if isinstance(recorded, While):
        recorded = replace(recorded, test=_widened(recorded.test, recorded.body))
    first = carried + len(loop.written)
    kept = _record(block, node, recorded, args, binds, arrays, first)
    if entries.counted:
        trips = bind(block, counted(block, kept.pop()), 0, entries.count)
        binds = (*binds, *(n for v, n in block.binds.items() if v in atoms(trips)))
    else:
        trips = loop.trips

    ends = {p: found.get(carried + loop.written.index(p)) for p in loop.written}
    wiring = _Wiring(sweep, args, [tape], kept)
    for k in wanted.outputs:
        wiring.value([body.seeds[k]], found.get(k))
    for p in wanted.sums:
        wiring.value([body.sums[p]], None)
    for p in wanted.buffers:
        wiring.buffer([body.buffers[p]], p, p in ends, ends.get(p))
    slots = wiring.slots(binds)
    index, spell = _backwards(block, trips, entries)
    values = (*wanted.outputs, *wanted.sums)
    adjoint = replaying(block, tape, entries, slots, values, wanted.buffers, spell)
    params = Loop(adjoint, len(values), index, trips)
    made = block.add(LOOP, (*wiring.arguments, *binds), params, node.type)
    wiring.deliver(made, values, wanted.buffers)


def _wanted_of_loop(loop: Loop | While, given: set[int]) -> Wanted:
    """The inputs through which gradients pass, `given` those whose arguments want one."""
    body = loop.body
    ways = {p for p in given if kind_of(body.inputs[p].dtype) in "fc"}
    while True:
        reached = depends(body, ways)
        more = {k for k, n in enumerate(body.outputs) if n in reached}
        more |= {p for p, n in body.writes if n in reached}
        if more <= ways:
            break
        ways |= more
    carried = tuple(sorted(p for p in ways if p < loop.carried))
    others = sorted(p for p in ways if p >= loop.carried)
    sums = tuple(p for p in others if not body.inputs[p].shape and p not in loop.written)
    return Wanted(carried, sums, carried, tuple(p for p in others if p not in sums))


def _entries(sweep: Sweep, loop: Loop | While) -> Entries:
    """Where a loop keeps its values."""
    block, sizes = sweep.block, sweep.block.sizes
    if isinstance(loop, Loop):
        # a tape's extents are known before the code runs
        computed = atoms(loop.trips) & set(block.binds)
        trips = sizes.greatest(loop.trips) if computed else loop.trips
        if atoms(trips) & set(block.binds):
            raise NotCaptured("the gradient of a loop whose number of trips is computed")
        trips = trips if sizes.le(0, trips) else smax(trips, 0)
        return Entries(trips, as_size(loop.index), bool(loop.stops))
    if sweep.inside:
        raise NotCaptured("the gradient of a while loop in another loop")
    number = Var(f"v{len(sizes.ranges)}", 0)
    sizes.ranges[number] = (0, MOST_TRIPS - 1)
    return Entries(MOST_TRIPS, as_size(number), True, number)


def _widened(test: Graph, body: Graph) -> Graph:
    """A while loop's test with the inputs that its body has more."""
    more = [Node(n.op, (), n.params, n.type, "") for n in body.inputs[len(test.inputs) :]]
    return replace(test, inputs=(*test.inputs, *more), nodes=(*more, *test.nodes))


def _backwards(block: Block, trips: Size, entries: Entries) -> tuple[Var, Spell]:
    """The index of the second loop, and sizes as they are spelled there."""
    ranges = block.sizes.ranges
    index = Var(f"i{len(ranges)}", 0)
    ranges[index] = (0, trips - 1)
    (first,) = atoms(entries.index)
    there = trips - 1 - as_size(index)

    def spell(size: Size) -> Size:
        return substitute(size, {first: there})

    return index, spell


# ---------------------------------------------------------------- branches


def _pass_branch(sweep: Sweep, node: Node, found: dict[int, Node]) -> None:
    block, cond = sweep.block, node.params
    condition, *args = node.args
    outputs = len(cond.then.outputs)
    ends = {p: found.get(outputs + k) for k, p in enumerate(cond.written)}
    given = {p for p, a in enumerate(args) if a in sweep.path}
    wanted = _wanted_of_branch(
        cond, given, [k for k in range(outputs) if found.get(k) in sweep.found]
    )
    bodies = [differentiate(sweep, g, wanted) for g in (cond.then, cond.other)]
    tapes = [
        Tape.of(b, {n for p, n in enumerate(b.inputs) if p not in cond.written}) for b in bodies
    ]
    entries = Entries(1, 0)
    parts = [_arrays(block, tape, entries) for tape in tapes]
    arrays = [*parts[0], *parts[1]]
    graphs = [
        recording(block, tape, entries, arrays, first)
        for tape, first in zip(tapes, (0, len(parts[0])), strict=True)
    ]
    recorded = Cond(*graphs)
    kept = _record(block, node, recorded, node.args, (), arrays, outputs + len(cond.written))

    wiring = _Wiring(sweep, args, tapes, kept)
    for k in wanted.outputs:
        wiring.value([b.seeds[k] for b in bodies], found[k])
    for p in wanted.buffers:
        wiring.buffer([b.buffers[p] for b in bodies], p, p in ends, ends.get(p))
    slots = wiring.slots(())
    adjoints = [
        replaying(block, t, entries, slots, wanted.values, wanted.buffers, lambda s: s)
        for t in tapes
    ]
    arguments = (condition, *wiring.arguments)
    made = block.add(COND, arguments, Cond(*adjoints), node.type)
    wiring.deliver(made, wanted.values, wanted.buffers)


def _wanted_of_branch(cond: Cond, given: set[int], outputs: Sequence[int]) -> Wanted:
    ways = {p for p in given if kind_of(cond.then.inputs[p].dtype) in "fc"}
    for g in (cond.then, cond.other):
        reached = depends(g, ways)
        ways |= {p for p, n in g.writes if n in reached}
    values = tuple(
        p for p in sorted(ways) if not cond.then.inputs[p].shape and p not in cond.written
    )
    buffers = tuple(p for p in sorted(ways) if p not in values)
    return Wanted(tuple(outputs), (), values, buffers)


# ---------------------------------------------------------------- tapes


def _arrays(block: Block, tape: Tape, entries: Entries) -> list[TensorType]:
    """The types of the tapes, and that of the count of trips; NotCaptured when a value has extents
    that only the body knows.
    """
    inner = {n.params.var for n in tape.body.nodes if n.op.kind is Kind.BIND}
    inner |= atoms(entries.index)
    found = [entries.type(block, n) for n in tape.kept]
    if any(atoms(s) & inner for t in found for s in t.shape):
        raise NotCaptured("the gradient of a loop with arrays of unforeseeable sizes")
    if entries.number is not None and any(not _is_small(t) for t in found):
        raise NotCaptured("the gradient of a while loop that keeps arrays")
    return [*found, COUNT] if entries.counted else found


def _is_small(type_: TensorType) -> bool:
    size = product(type_.shape[1:])
    return isinstance(size, int) and size <= SMALL


def _record(
    block: Block,
    node: Node,
    params: Loop | While | Cond,
    args: Sequence[Node],
    binds: Sequence[Node],
    arrays: Sequence[TensorType],
    first: int,
) -> list[Node]:
    """Let a control node keep values in tapes; gives them as they are after it."""
    if not arrays:
        return []
    with block.before(node):
        tapes = [cell(block, zeros(block, t.shape, t.dtype)) for t in arrays]
    # in place: what the trace has computed from the results goes on naming this node; it is fresh,
    # so that no equal question can have been answered with it
    node.args = (*args, *tapes, *binds)
    node.params = params
    types = [t.type for t in tapes]
    return [block.add(RESULT, (node,), first + k, t) for k, t in enumerate(types)]


# ---------------------------------------------------------------- arguments and results


class _Wiring:
    """The arguments of an adjoint's node, as they are added, and where its results go."""

    def __init__(
        self, sweep: Sweep, args: Sequence[Node], tapes: Sequence[Tape], kept: Sequence[Node]
    ) -> None:
        self.sweep = sweep
        self.args = args
        self.tapes = tapes
        self.kept = kept
        self.arguments: list[Node] = []
        self.types: list[TensorType] = []
        self.nodes: dict[Node, int] = {}
        # inputs whose buffer holds what their argument's gradient was before
        self.continued: set[int] = set()

    def _add(self, outer: Node, type_: TensorType, inner: Sequence[Node] = ()) -> int:
        """A further argument, with the nodes that it is in the bodies."""
        position = len(self.arguments)
        self.arguments.append(outer)
        self.types.append(type_)
        self.nodes |= dict.fromkeys(inner, position)
        return position

    def value(self, inner: Sequence[Node], result: Node | None) -> None:
        """A gradient by value: that of a result, or zero."""
        type_ = inner[0].type
        given = self._given(result, type_)
        self._add(build.weigh(self.sweep.block, given, type_.weight), type_, inner)

    def _given(self, node: Node | None, type_: TensorType) -> Node:
        found = self.sweep.gradient(node) if node is not None else None
        block = self.sweep.block
        return found if found is not None else zeros(block, type_.shape, type_.dtype)

    def buffer(self, inner: Sequence[Node], p: int, written: bool, result: Node | None) -> None:
        """A gradient that is changed in place: of what a written input becomes, or, added to, of an
        input that is only read.
        """
        source = result
        if not written:
            taken = [self.args[q] for q in self.continued]
            if self.args[p] not in taken:
                self.continued.add(p)
                source = self.args[p]
        type_ = inner[0].type
        given = self._given(source, type_)
        if source not in self.sweep.stored or source not in self.sweep.found:
            given = cell(self.sweep.block, given)
        self._add(given, type_, inner)

    def slots(self, binds: Sequence[Node]) -> Slots:
        """All inputs, those of tapes and values that are still there included."""
        keys = [n for tape in self.tapes for n in tape.kept]
        arrays = {n: self._add(k, k.type) for n, k in zip(keys, self.kept, strict=True)}
        read = {n for tape in self.tapes for n in tape.inputs_read}
        for p, outer in enumerate(self.args):
            inner = [tape.body.inputs[p] for tape in self.tapes]
            if any(n in read for n in inner):
                self._add(outer, inner[0].type, inner)
        bound = {b: self._add(b.args[0], b.args[0].type) for b in binds}
        return Slots(tuple(self.types), self.nodes, arrays, bound)

    def deliver(self, node: Node, values: Sequence[int], buffers: Sequence[int]) -> None:
        """The results of the adjoint's node are gradients of the arguments."""
        sweep, block = self.sweep, self.sweep.block
        inputs = self.tapes[0].body.inputs
        order = list(enumerate((*values, *buffers)))
        # buffers first: they replace what their argument's gradient was, all others are added to it
        for k, p in sorted(order, key=lambda pair: pair[1] not in self.continued):
            result = block.add(RESULT, (node,), k, gradient_type(inputs[p].type))
            argument = self.args[p]
            if argument not in sweep.path:
                continue
            if p in self.continued or (p in buffers and argument not in sweep.found):
                sweep.found[argument] = result
                sweep.stored.add(argument)
            else:
                sweep.add(argument, result)
