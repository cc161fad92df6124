"""Programs: the operations that a recording has made, compiled forwards and backwards.

In: the operations of a `_runtime.State`, from its start on. Out: callables of the program's inputs.
Each is a `Jitted`, with its guards, versions and caches; what it traces is the program, run over
Tracers by `replay`, which also runs it by NumPy.

    program.forward((3,))(x, 2.0)                            ->  (value of slot 3,)
    program.backward((3,), (), (0,))(x, 2.0, seed)           ->  (gradient of x,)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from npjit._runtime import Slot, copy_with_strides
from npjit.api.jitted import Jitted
from npjit.api.options import CaptureError, Options
from npjit.core.graph import Block, Weight
from npjit.frontend.outside import Outside
from npjit.frontend.policy import Policy
from npjit.frontend.trace import capture_call
from npjit.ops import build, kinds
from npjit.ops.cell import Cell
from npjit.ops.errors import NotCaptured
from npjit.ops.tracer import Tracer, as_node, fresh
from npjit.transform.grad import pull_back

Slots = tuple[int, ...]


def placed(tree: Any, values: Sequence[Any]) -> Any:
    """Operands with values in place of slots."""
    cls = type(tree)
    if cls is Slot:
        return values[tree.number]
    if cls in (tuple, list):
        return cls([placed(t, values) for t in tree])
    if cls is dict:
        return {k: placed(t, values) for k, t in tree.items()}
    if cls is slice:
        return slice(*(placed(t, values) for t in (tree.start, tree.stop, tree.step)))
    return tree


def leaves_of(result: Any) -> list[Any]:
    """The arrays and numbers in a result."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves_of(part)]
    return [result]


def replay(operations: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """The values of all slots, after all operations."""
    values: list[Any] = []
    waiting = iter(inputs)
    for o in operations:
        if o.function is None:
            values.append(next(waiting))
            continue
        result = o.function(*placed(o.args, values), **placed(o.kwargs, values))
        if o.results:
            leaves = zip(leaves_of(result), o.results, strict=True)
            values += [leaf for leaf, known in leaves if known.is_new]
    return values


class Program:
    """The operations of one recording."""

    def __init__(self, operations: Sequence[Any], options: Options) -> None:
        self.operations = operations
        self.options = options
        self._compiled: dict[Any, Jitted] = {}
        written = {slot for o in operations for slot in o.writes}
        places = _input_slots(operations)
        # numbers of the inputs that are changed
        self.written = [i for i, slot in enumerate(places) if slot in written]

    def forward(self, outputs: Slots) -> Jitted:
        """A function of the inputs, which stay as they are, that gives the values of slots."""

        def run(block: Block, inputs: Sequence[Any]) -> tuple[Any, ...]:
            values = replay(self.operations, entered(block, inputs, self.written))
            return tuple(fresh(block, as_node(block, values[s])) for s in outputs)

        def by_numpy(*inputs: Any) -> tuple[Any, ...]:
            kept = [copy_with_strides(x) if i in self.written else x for i, x in enumerate(inputs)]
            values = replay(self.operations, kept)
            return tuple(values[s] for s in outputs)

        return self._jitted(("forward", outputs), run, by_numpy)

    def backward(
        self, seeded: Slots, outputs: Slots, wanted: tuple[int, ...], ends: bool
    ) -> Jitted:
        """A function of the inputs, and of a gradient for each of the slots `seeded`: the values of
        `outputs`, and the gradients of the inputs `wanted`. `ends`: the only slot in `seeded` is
        the result that is differentiated, whose gradient is 1.
        """

        def run(block: Block, given: Sequence[Any]) -> tuple[Any, ...]:
            seeds = [] if ends else given[len(given) - len(seeded) :]
            inputs = entered(block, given[: len(given) - len(seeds)], (*self.written, *wanted))
            points = [as_node(block, inputs[i]) for i in wanted]
            values = replay(self.operations, inputs)
            reached = [as_node(block, values[s]) for s in seeded]
            if ends:
                nodes = [build.constant(block, 1, n.dtype) for n in reached]
            else:
                nodes = [as_node(block, s) for s in seeds]
            found = pull_back(block, list(zip(reached, nodes, strict=True)), points)
            gradients = [
                None if g is None else fresh(block, build.weigh(block, g, _solid(p.type.weight)))
                for g, p in zip(found, points, strict=True)
            ]
            return (*(fresh(block, as_node(block, values[s])) for s in outputs), *gradients)

        def by_reference(*given: Any) -> tuple[Any, ...]:
            return _by_reference(run, given)

        return self._jitted(("backward", seeded, outputs, wanted, ends), run, by_reference)

    def _jitted(self, key: Any, run: Callable[..., Any], original: Callable[..., Any]) -> Jitted:
        if key not in self._compiled:
            self._compiled[key] = _Run(run, original, self.options)
        return self._compiled[key]

    @property
    def versions(self) -> int:
        """How many compiled versions there are."""
        return sum(len(c.compiled) for c in self._compiled.values())


class _Run(Jitted):
    """A program in one direction."""

    def __init__(
        self, run: Callable[..., Any], original: Callable[..., Any], options: Options
    ) -> None:
        super().__init__(run, options, original)
        self.is_silent = True

    def inline(self, outside: Outside) -> Callable[..., Any]:
        block = outside.capture.block
        return lambda *inputs: self.function(block, inputs)


def _solid(weight: Weight) -> Weight:
    return Weight.ARRAY if weight is Weight.ARRAY else Weight.SCALAR


def _input_slots(operations: Sequence[Any]) -> list[int]:
    found, slot = [], 0
    for o in operations:
        if o.function is None:
            found.append(slot)
            slot += 1
        else:
            slot += sum(known.is_new for known in o.results)
    return found


def entered(block: Block, inputs: Sequence[Any], apart: Sequence[int]) -> list[Any]:
    """The inputs, those in `apart` with storage of their own."""
    found = list(inputs)
    for i in set(apart):
        outer = as_node(block, found[i])
        cell = Cell(block, block.add(kinds.CELL, (outer,), len(block.nodes), outer.type))
        cell.owned = True
        found[i] = Tracer(cell, None, outer.type.weight)
    return found


def _by_reference(run: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The traced function's result, node by node by NumPy."""
    try:
        captured = capture_call(
            lambda outside, args, kwargs: run(outside.capture.block, args), given, {}, Policy(False)
        )
    except NotCaptured as e:
        raise CaptureError(f"no gradient is found: {e}") from None
    values = captured.graph.run(*[i.value for i in captured.inputs])
    parts = captured.tree[1]
    assert captured.tree[0] == "tuple"
    return tuple(None if p[0] == "const" else _weighed(captured, values, p[1]) for p in parts)


def _weighed(captured: Any, values: list[Any], leaf: int) -> Any:
    from npjit.backends.reference import weighed

    place = captured.results[leaf][1]
    return weighed(values[place], captured.graph.outputs[place].type.weight)
