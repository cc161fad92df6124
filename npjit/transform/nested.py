"""The body of a loop or branch and its adjoint, as one list of nodes.

In: the body, which outputs have a gradient and which inputs want one. Out: a `Body`, in which the
gradients of outputs are further inputs. An array that the body writes or only reads has a buffer
for its gradient, which is changed in place; other inputs' gradients are values.

    %1 = multiply %0 %0                s = s * s, s carried
    %2: seed of %1
    %3 = multiply %2 %0, %4 = multiply %2 %0, %5 = add %3 %4      the gradient of %0 is %5
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from npjit.core.graph import Block, Graph, Node, TensorType, Weight
from npjit.core.op import CONTROL
from npjit.ops import kinds
from npjit.ops.errors import NotCaptured
from npjit.transform.active import active

if TYPE_CHECKING:
    from npjit.transform.grad import Sweep


@dataclass(frozen=True)
class Wanted:
    """Outputs that have gradients, and what inputs want: `sums` scalars added to, trip by trip,
    `values` gradients of their own, `buffers` arrays.
    """

    outputs: tuple[int, ...]
    sums: tuple[int, ...]
    values: tuple[int, ...]
    buffers: tuple[int, ...]


@dataclass
class Body:
    """A body's nodes, `forward` of them, and then its adjoint's.

    `seeds`, `sums` and `buffers` are the adjoint's inputs (by number of an output, an input, an
    input), `values` and `ends` what comes out of it for the body's inputs.
    """

    nodes: list[Node]
    forward: int
    inputs: list[Node]
    outputs: list[Node]
    finals: dict[int, Node]
    seeds: dict[int, Node]
    sums: dict[int, Node]
    buffers: dict[int, Node]
    values: dict[int, Node | None]
    ends: dict[int, Node]

    @property
    def gradients(self) -> list[Node]:
        """The adjoint's inputs."""
        return [*self.seeds.values(), *self.sums.values(), *self.buffers.values()]


def differentiate(sweep: Sweep, graph: Graph, wanted: Wanted) -> Body:
    """The body and its adjoint, made in a block apart."""
    block = sweep.block
    with block.apart():
        new = _copied(block, graph)
        inputs = [new[n] for n in graph.inputs]
        outputs = [new[n] for n in graph.outputs]
        finals = {p: new[n] for p, n in graph.writes}
        forward = len(block.nodes)
        last = block.nodes[-1] if forward else None
        starts = {p: finals.get(p, inputs[p]) for p in wanted.buffers}
        ways_in = {inputs[p] for p in (*wanted.sums, *wanted.values, *wanted.buffers)}
        ways_out = [*(outputs[k] for k in wanted.outputs), *starts.values()]
        inner = sweep.nested(active(block, ways_out, ways_in))
        buffers = {p: _input(block, n.type) for p, n in starts.items()}
        inner.found |= {starts[p]: n for p, n in buffers.items()}
        inner.stored |= set(starts.values())
        sums = {p: _input(block, inputs[p].type) for p in wanted.sums}
        inner.found |= {inputs[p]: n for p, n in sums.items()}
        seeds = {k: _input(block, outputs[k].type) for k in wanted.outputs}
        for k, seed in seeds.items():
            if outputs[k] in inner.path:
                inner.add(outputs[k], seed)
        inner.run()
        inner.settle([inputs[p] for p in wanted.buffers])
        # the loops inside now record more than before: their buffers stand in front of them
        forward = block.nodes.index(last) + 1 if last is not None else 0
        return Body(
            block.nodes,
            forward,
            inputs,
            outputs,
            finals,
            seeds,
            sums,
            buffers,
            {p: inner.gradient(inputs[p]) for p in (*wanted.sums, *wanted.values)},
            {p: _end(inner, inputs[p]) for p in wanted.buffers},
        )


def _copied(block: Block, graph: Graph) -> dict[Node, Node]:
    new: dict[Node, Node] = {}
    for n in graph.nodes:
        block.where = n.where
        new[n] = block.add(n.op, [new[a] for a in n.args], n.params, n.type)
    return new


def gradient_type(type_: TensorType) -> TensorType:
    """The type of a value's gradient: never a Python number."""
    weight = Weight.ARRAY if type_.shape else Weight.SCALAR
    return TensorType(type_.shape, type_.dtype, weight)


def _input(block: Block, type_: TensorType) -> Node:
    return block.add(kinds.INPUT, (), None, gradient_type(type_))


def _end(inner: Sweep, node: Node) -> Node:
    """The last version of the buffer for an input's gradient."""
    end = inner.gradient(node) if node in inner.stored else None
    if end is None:
        raise NotCaptured("the gradient of an array that a loop replaces by other storage")
    return end


def depends(graph: Graph, starts: Iterable[int]) -> set[Node]:
    """Nodes of a body that depend on these inputs differentiably."""
    found = {graph.inputs[p] for p in starts}
    for n in graph.nodes:
        passes = n.dtype.kind in "fc" or n.op.kind in CONTROL
        if passes and any(a in found for a in n.args):
            found.add(n)
    return found
