"""One trace of one call: what was read from the outside, and the graph that grows.

`Capture` turns every outside object that the function reads (arguments, defaults, globals, closure
cells, attributes, items) into what the traced code sees, and records a *step* for it: how to fetch
the object again and what must hold for the compiled code to be used again. Arrays, floats and ints
become graph inputs, never constants.

    capture.array(x, capture.step(("arg", 0), ("any",)))    ->  Tracer, with the step's check now
    ("array", ...)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npjit import _runtime
from npjit.core.assume import Assumptions, Guard
from npjit.core.graph import Block, Concrete, Graph, Node, SizeSource, TensorType, Weight
from npjit.core.op import Kind
from npjit.core.size import Expr, Size, Var, atoms, text
from npjit.core.size import var as size_var
from npjit.frontend.policy import Policy
from npjit.ops import build, kinds
from npjit.ops.cell import Cell
from npjit.ops.errors import NotCaptured
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Tracer

Step = tuple[tuple[Any, ...], tuple[Any, ...]]
# an array's `device` when no GPU holds it
ON_CPU = -1
# a trace that grows beyond one of these is left to NumPy
MOST_NODES = 20_000
# and this many times as many with what attempts to stage loops have made and dropped
RETRIES = 10
MOST_SIZE_GUARDS = 400


@dataclass
class Input:
    """One graph input: the step that fetches it, its node, and (arrays) its memory layout. For an
    array on the GPU of number `device` the value is a header, which nobody may read through."""

    step: int
    node: Node
    layout: str | tuple[str, ...]
    value: Any
    device: int = ON_CPU


class TracedSizes(Assumptions):
    """Assumptions that give up when too much of a trace's course hangs on its sizes (a loop over
    them).
    """

    def _record(self, question: Guard, answer: bool) -> None:
        if len(self.guards) >= MOST_SIZE_GUARDS:
            raise NotCaptured("a loop whose course depends on sizes")
        super()._record(question, answer)


class TracedBlock(Block):
    """A Block that knows its Capture: it can look at values and take in array constants, and it
    ends with the trace.
    """

    def __init__(self, capture: Capture) -> None:
        super().__init__(TracedSizes())
        self.capture = capture
        self.limit = MOST_NODES
        # how many nodes were asked for, those of dropped attempts and those found again included
        self.asked = 0
        self.closed = False
        # whether numbers of different kinds may not meet in one name
        self.exact_types = False

    def add(
        self, op: Any, args: Any = (), params: Any = None, type: TensorType | None = None
    ) -> Node:
        self.asked += 1
        if len(self.nodes) > self.limit or self.asked > RETRIES * self.limit:
            if self.closed:
                raise RuntimeError("a value made while npjit traced a function is used after that")
            raise NotCaptured(f"a trace of more than {self.limit} operations")
        return super().add(op, args, params, type)

    def close(self) -> None:
        """From now on every operation on this trace's values is an error."""
        self.limit = -1
        self.closed = True

    def lift(self, value: np.ndarray) -> Node:
        """An array made by untraced code, as it is now, as an input of its own."""
        return self.capture.constant(value)

    def peek(self, node: Node) -> Any:
        """The value of a node that Python needs now; None where only the arrays' contents decide
        it.
        """
        return self.capture.decide(node)

    def actual(self, node: Node) -> Any:
        """A node's value for the arguments of this call; None where it has none: in a loop's body,
        or when a check before it fails.
        """
        inputs = self.capture.inputs
        if self.depth or any(i.device != ON_CPU for i in inputs):
            return None
        graph = Graph.of(self, [i.node for i in inputs], [node], (), self.capture.sources)
        try:
            with np.errstate(all="ignore"):
                return graph.run(*[i.value for i in inputs])[0]
        except (ArithmeticError, ValueError):
            return None

    def extents(self) -> Size:
        """The extents of all arrays that the trace has read, in all."""
        found: Size = 0
        for i in self.capture.inputs:
            for n in i.node.shape:
                found = found + n
        return found

    def is_few(self, size: Size) -> bool:
        """Whether a size is one of a few values of it that have versions of their own."""
        return self.capture.policy.may_fix(("size", text(size)), self.sizes.actual(size))

    def c_ordered(self, node: Node) -> bool:
        """Whether an INPUT node's array is C-contiguous, by the layout that is guarded."""
        if node.params is None:
            return False  # a region's parameter
        return self.capture.inputs[node.params].layout == "C"


class Capture:
    """The state of one trace; see the module's docstring."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.spoiled: NotCaptured | None = None
        # the reader that feeds this trace (frontend.outside.Outside)
        self.outside: Any = None
        self.block = TracedBlock(self)
        self.steps: list[Step] = []
        self.inputs: list[Input] = []
        self.sources: dict[Var, SizeSource] = {}
        self.same: list[tuple[str, int, int]] = []
        self._step_numbers: dict[Any, int] = {}
        self._values: dict[Any, Any] = {}
        self._arrays: dict[int, tuple[Tracer, int]] = {}
        self._constants: dict[Any, Node] = {}
        self._fixed: set[int] = set()

    # ------------------------------------------------------------ steps

    def step(self, fetch: tuple[Any, ...], check: tuple[Any, ...] = ("any",)) -> int:
        """The number of this step, recorded once."""
        key = tuple(id(x) if not isinstance(x, (str, int)) else x for x in fetch)
        found = self._step_numbers.get(key)
        if found is not None:
            if check != ("any",) and self.steps[found][1] == ("any",):
                self.steps[found] = (fetch, check)
            return found
        self.steps.append((fetch, check))
        self._step_numbers[key] = len(self.steps) - 1
        return len(self.steps) - 1

    def check(self, number: int, check: tuple[Any, ...]) -> None:
        """What must hold of the object that step `number` fetches."""
        self.steps[number] = (self.steps[number][0], check)

    def known(self, number: int, make: Any) -> Any:
        """The traced value of a step, made on first use."""
        if number not in self._values:
            self._values[number] = make()
        return self._values[number]

    # ------------------------------------------------------------ arrays

    def array(self, value: Any, number: int) -> Tracer:
        """An ndarray or device array read at step `number` as a traced array; the same object twice
        is one storage cell.
        """
        found = self._arrays.get(id(value))
        if found is not None:
            tracer, position = found
            known = self.inputs[position]
            if known.step != number:
                self._check_array(known.value, number, tracer.node.shape, known.device)
                self.same.append(("same", position, self._alias_input(number, tracer, value)))
            return tracer
        seen, device = (value, ON_CPU) if type(value) is np.ndarray else _header(value)
        self._check_array(seen, number, seen.shape, device)
        shape = self._shape(seen, number, len(self.inputs))
        node = self._input(TensorType(shape, seen.dtype))
        tracer = Tracer(Cell(self.block, node, argument=True), None, Weight.ARRAY)
        tracer.cell.level = 0
        layout = self._check_array(seen, number, shape, device)
        self.inputs.append(Input(number, node, layout, seen, device))
        self._arrays[id(value)] = (tracer, len(self.inputs) - 1)
        return tracer

    def constant(self, value: np.ndarray) -> Node:
        """An array that is no argument, as it is now: Python may change it before the trace is
        over.
        """
        key = (value.dtype, value.shape, value.tobytes())
        if key not in self._constants:
            kept = value.copy(order="K")
            number = self.step(("root", kept))
            node = self._input(TensorType(kept.shape, kept.dtype))
            layout = self._check_array(kept, number, kept.shape)
            self.inputs.append(Input(number, node, layout, kept))
            self._constants[key] = node
        return self._constants[key]

    def _alias_input(self, number: int, tracer: Tracer, value: np.ndarray) -> int:
        """A further input that is the very same array: fetched for the guard, read by nobody."""
        node = self._input(tracer.node.type)
        known = self.inputs[self._arrays[id(value)][1]]
        self.inputs.append(Input(number, node, known.layout, known.value, known.device))
        return len(self.inputs) - 1

    def _check_array(
        self, value: np.ndarray, number: int, shape: tuple[Size, ...], device: int = ON_CPU
    ) -> Any:
        described = _runtime.describe_array(value)
        known = build.is_known(value.dtype)
        if described is None or not known:
            self.step(("attr", number, "dtype"), ("is", value.dtype))
            what = "that are not aligned" if known else f"of dtype {value.dtype}"
            raise NotCaptured(f"arrays {what} are not compiled", passing=known)
        dtype_num, ndim, _, layout = described
        extents = tuple(n if isinstance(n, int) else -1 for n in shape)
        if device == ON_CPU:
            self.check(number, ("array", dtype_num, ndim, extents, layout, None))
        else:
            self.check(number, ("device", dtype_num, ndim, extents, layout, device))
        return layout

    def _shape(self, value: np.ndarray, place: int, position: int) -> tuple[Size, ...]:
        shape: list[Size] = []
        for axis, n in enumerate(value.shape):
            if self.policy.is_literal((place, axis), n):
                shape.append(n)
                continue
            shape.append(self._variable(f"n{len(self.sources)}", 2, n, SizeSource(position, axis)))
        return tuple(shape)

    def _variable(self, name: str, low: int | None, value: int, source: SizeSource) -> Expr:
        made = size_var(name, lo=low)
        ((mono, _),) = made.terms
        (unknown,) = mono
        assert isinstance(unknown, Var)
        self.sources[unknown] = source
        self.block.sizes.values[name] = value
        return made

    def _input(self, type_: TensorType) -> Node:
        # also when first read inside a loop: inputs belong to the whole function
        node = Node(kinds.INPUT, (), len(self.inputs), type_, self.block.where)
        self.block.outermost.append(node)
        return node

    # ------------------------------------------------------------ numbers

    def scalar(self, value: Any, number: int) -> Any:
        """A Python or NumPy number as a traced scalar."""
        if type(value) is bool:
            self.check(number, ("equal", value))
            return value
        if type(value) is int:
            return self._int(value, number)
        if isinstance(value, np.generic):
            dtype = build.require_known(value.dtype)
            self.check(number, ("npscalar", dtype.num))
            weight = Weight.SCALAR
        else:
            dtype = np.dtype(type(value))
            self.check(number, ("scalar", "c" if dtype.kind == "c" else "f"))
            weight = Weight.WEAK
        node = self._input(TensorType((), dtype, weight))
        self.inputs.append(Input(number, node, "C", value))
        return Tracer(Cell(self.block, node), None, weight)

    def _int(self, value: int, number: int) -> Any:
        if self.policy.dynamic is False or not -(2**63) <= value < 2**63:
            self.check(number, ("equal", value))
            return value
        self.check(number, ("scalar", "i"))
        position = len(self.inputs)
        node = self._input(TensorType((), build.INT64, Weight.WEAK))
        self.inputs.append(Input(number, node, "C", value))
        size = self._variable(f"k{len(self.sources)}", None, value, SizeSource(position, None))
        return SymInt(self.block, size)

    def decide(self, node: Node) -> Any:
        """The value of a node that only sizes and single numbers determine, guarded to stay so;
        else None.
        """
        order = _number_nodes(node)
        known = self.block.sizes.values
        if order is None or any(v.name not in known for n in order for v in _variables(n)):
            return None
        values: dict[Node, Any] = {}
        for n in order:
            if n.op.kind is Kind.INPUT:
                values[n] = self._fix(n.params)
            elif n.op.kind is Kind.SIZE:
                values[n] = np.int64(self.block.sizes.specialise(n.params))
            else:
                with np.errstate(all="ignore"):
                    values[n] = n.op.evaluate(Concrete(n, {}), *[values[a] for a in n.args])
        return np.asarray(values[node])

    def _fix(self, position: int) -> Any:
        """The number that is input `position`, from here on a constant of this version."""
        entry = self.inputs[position]
        if position not in self._fixed:
            fetch = self.steps[entry.step][0]
            if not self.policy.may_fix(fetch[:1] + tuple(map(str, fetch[1:])), entry.value):
                raise NotCaptured("Python branches on a number that keeps changing", passing=True)
            self.steps.append((fetch, ("equal", entry.value)))
            self._fixed.add(position)
        return np.asarray(entry.value)

    # ------------------------------------------------------------ results

    def writes(self) -> list[tuple[int, Node]]:
        """Input positions whose storage has a newer version, with that version."""
        changed = []
        for tracer, position in self._arrays.values():
            if tracer.cell.node is not self.inputs[position].node:
                changed.append((position, tracer.cell.node))
        return changed

    def argument_position(self, cell: Cell) -> int | None:
        """The input whose memory this cell is."""
        for tracer, position in self._arrays.values():
            if tracer.cell is cell:
                return position
        return None


def _header(value: Any) -> tuple[np.ndarray, int]:
    """A device array's header, and the number of its GPU."""
    found = _runtime.device_header(value)
    if found is None:
        raise NotCaptured(f"a device array of dtype {value.dtype} runs as the function itself")
    header: tuple[np.ndarray, int] = found
    return header


def _variables(n: Node) -> set[Var]:
    return atoms(n.params) if n.op.kind is Kind.SIZE else set()


_DECIDABLE = frozenset([Kind.INPUT, Kind.CONST, Kind.SIZE, Kind.ELEMENTWISE, Kind.VIEW])


def _number_nodes(node: Node) -> list[Node] | None:
    """The 0-d nodes behind a 0-d node, arguments first; None when an array is among them or they
    are many.
    """
    order: dict[Node, None] = {}
    pending = [node]
    while pending:
        n = pending[-1]
        is_array = bool(n.shape)
        if n.op.kind is Kind.INPUT:
            # a region's parameter has no position: its value differs from trip to trip
            is_array |= n.type.weight is Weight.ARRAY or n.params is None
        if is_array or n.op.kind not in _DECIDABLE or len(order) > 200:
            return None
        missing = [a for a in n.args if a not in order]
        if missing:
            pending += missing
        else:
            order[n] = None
            pending.pop()
    return list(order)
