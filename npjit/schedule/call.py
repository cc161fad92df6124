"""Steps that compute a row from arrays in memory: sorting, factorisations, transforms, scans.

In: the group of such a node (its operands are stored, read through views) and storage strides. Out:
`Called`: how each operand and result lies in its memory; places are filled in when memory is
planned.

    sort of x[:, ::2] for C-ordered x: (n, m) read with strides (k, 2), results (n, m) with (m, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from npjit.core.graph import Node
from npjit.core.op import Kind
from npjit.core.size import Size
from npjit.schedule.group import Group, Labels
from npjit.schedule.index import Index, address, labels_of, rename
from npjit.schedule.plan import Call, Place, Strided
from npjit.schedule.pull import arguments

NOWHERE = Place("arena", 0)


@dataclass(frozen=True)
class Called:
    """A step without places, and the stored nodes that its arguments and results are."""

    step: Call
    nodes: tuple[Node, ...]

    def placed(self, number: int, places: Sequence[Place]) -> Call:
        """The step with its number and memory."""
        count = len(self.step.arguments)
        given = zip(self.step.arguments, places[:count], strict=True)
        made = zip(self.step.results, places[count:], strict=True)
        return replace(
            self.step,
            number=number,
            arguments=tuple(replace(a, place=p) for a, p in given),
            results=tuple((k, replace(r, place=p)) for (k, r), p in made),
        )


def lower_call(
    group: Group, labels: Labels, strides_of: Callable[[Node], Sequence[Size]]
) -> Called:
    """The call of a group's step."""
    n = group.step
    assert n is not None
    read = [
        _operand(group, labels, a, index, strides_of)
        for a, index in zip(group.arguments, group.operands, strict=True)
    ]
    if n.op.kind is Kind.SCATTER:
        # the storage that it changes, of which it is the next version
        read.insert(0, (n, _whole(n, strides_of(n))))
    results = tuple(
        (r.params if r.op.kind is Kind.RESULT else 0, _whole(r, strides_of(r)))
        for r in group.results
    )
    step = Call(0, n.op, n.params, tuple(a for _, a in read), results)
    return Called(step, (*(source for source, _ in read), *group.results))


def _whole(n: Node, strides: Sequence[Size]) -> Strided:
    return Strided(NOWHERE, n.dtype, n.shape, 0, tuple(strides))


def _operand(
    group: Group,
    labels: Labels,
    n: Node,
    index: Index,
    strides_of: Callable[[Node], Sequence[Size]],
) -> tuple[Node, Strided]:
    """Follow an operand's views to stored memory."""
    shape, axes = n.shape, [min(labels_of((span,)), default=-1) for span in index]
    while group.replaced.get(n, n) not in group.loads:
        found = arguments(n, index)
        assert found is not None, f"{n} is neither stored nor a view"
        n, index = n.args[0], found[0]
    source = group.replaced.get(n, n)
    place = address(rename(index, labels.find), source.shape, strides_of(source))
    assert place is not None
    offset, steps = place
    strides = tuple(0 if a < 0 else steps.get(labels.find(a), 0) for a in axes)
    return source, Strided(NOWHERE, source.dtype, shape, offset, strides)
