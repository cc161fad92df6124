"""Arrays of a loop that are only added to.

In: a loop's body. Out: the updates that add something to what is there, of arrays with which
nothing else happens in the body; in which order they add makes no difference but rounding:

    c[:i] = c[:i] + x;  c[i] = c[i] - y          two updates, of the sums c[:i] + x and c[i] - y
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from npjit.core.control import Loop
from npjit.core.graph import Block, Graph, Node, TensorType, may_stop, sizes_in
from npjit.core.op import CONTROL, Kind
from npjit.core.size import atoms
from npjit.core.view import View
from npjit.ops import build


@dataclass(frozen=True)
class Accumulation:
    """An update of an input, what it reads of the version before, and the terms of the sum."""

    storage: Node
    update: Node
    read: Node
    terms: tuple[Node, ...]

    @property
    def view(self) -> View:
        """What is added to."""
        view: View = self.update.params
        return view

    def again(self, block: Block, before: Node, view: View, made: Callable[[Node], Node]) -> Node:
        """The update of another version, through another view, with other terms."""

        def value(n: Node) -> Node:
            if n is self.read:
                return build.view(block, before, view)
            if n in self.terms:
                return made(n)
            type_ = TensorType(view.shape, n.dtype)
            return block.add(n.op, [value(a) for a in n.args], n.params, type_)

        total = value(self.update.args[1])
        return block.add(self.update.op, (before, total), view, before.type)


def accumulations(body: Graph) -> Iterator[Accumulation]:
    """See the module's docstring."""
    users = body.users()
    for position, last in body.writes:
        found = _of(body, users, body.inputs[position], last)
        yield from found or ()


def accumulating_loop(n: Node) -> Accumulation | None:
    """What a loop does that only adds to one part of one array."""
    loop: Loop = n.params
    if loop.carried or loop.stops or len(loop.written) != 1 or len(n.args) != len(loop.body.inputs):
        return None
    if any(m.op.kind in CONTROL or may_stop(m) for m in loop.body.nodes):
        return None
    found = list(accumulations(loop.body))
    if len(found) != 1 or loop.index in _variables(found[0].view):
        return None
    return found[0]


def _variables(v: View) -> set[object]:
    return {x for size in sizes_in(v) for x in atoms(size)}


def _of(
    body: Graph, users: dict[Node, list[Node]], storage: Node, last: Node
) -> list[Accumulation] | None:
    """The updates of an input; None where anything else happens with it."""
    versions = [storage]
    # what depends on the array, but for its versions
    tainted: set[Node] = set()
    found: list[Accumulation] = []
    for n in body.nodes:
        if n.op.kind is Kind.UPDATE and n.args[0] is versions[-1] and len(n.args) == 2:
            one = _sum(n, storage, tainted)
            if one is None:
                return None
            found.append(one)
            versions.append(n)
        elif any(a in versions or a in tainted for a in n.args):
            tainted.add(n)
    used_once = all(len(users[n]) == 1 for n in tainted) and tainted.isdisjoint(body.outputs)
    inside = {n for a in found for n in _nodes(a.update.args[1], a.terms)}
    return found if versions[-1] is last and used_once and tainted <= inside else None


def _sum(update: Node, storage: Node, tainted: set[Node]) -> Accumulation | None:
    leaves = list(_leaves(update.args[1], 1))
    reads = [(n, sign) for n, sign in leaves if n in tainted or n is update.args[0]]
    if len(reads) != 1 or reads[0][1] != 1:
        return None
    (read, _) = reads[0]
    shown = read is update.args[0] and update.params.is_identity
    if read.op.kind is Kind.VIEW and read.args == (update.args[0],):
        shown = read.params == update.params
    if not shown:
        return None
    return Accumulation(storage, update, read, tuple(n for n, _ in leaves if n is not read))


def _leaves(n: Node, sign: int) -> Iterator[tuple[Node, int]]:
    """The terms of a sum, with their signs."""
    if len(n.args) != 2 or len(n.op.addends) != 2:
        yield n, sign
        return
    for a, factor in zip(n.args, n.op.addends, strict=True):
        yield from _leaves(a, sign * factor)


def _nodes(n: Node, terms: tuple[Node, ...]) -> Iterator[Node]:
    """The nodes of a sum, terms aside."""
    yield n
    if n not in terms and len(n.args) == 2 and len(n.op.addends) == 2:
        for a in n.args:
            yield from _nodes(a, terms)
