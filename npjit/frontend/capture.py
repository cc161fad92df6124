"""One trace of one call: what was read from the outside, and the graph that grows.

`Capture` turns every outside object that the function reads (arguments, defaults, globals, closure cells, attributes,
items) into what the traced code sees, and records a *step* for it: how to fetch the object again and what must hold
for the compiled code to be used again. Arrays, floats and ints become graph inputs, never constants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npjit import _runtime
from npjit.core.graph import Block, Node, SizeSource, TensorType, Weight
from npjit.core.size import Expr, Size, Var
from npjit.core.size import var as size_var
from npjit.ops import build, kinds
from npjit.ops.errors import NotCaptured
from npjit.ops.symint import SymInt
from npjit.ops.tracer import Cell, Tracer

Step = tuple[tuple[Any, ...], tuple[Any, ...]]
# extents up to this stay literal on first sight: loops over coordinates, taps and channels unroll
LITERAL_EXTENT = 16


@dataclass
class Policy:
    """How sizes become symbols. `seen` remembers the literal extents and ints that earlier traces fixed."""

    dynamic: bool | None = None
    seen: dict[Any, int] = field(default_factory=dict)

    def is_literal(self, place: Any, value: int) -> bool:
        """Whether the extent at this place is compiled as a literal."""
        if value in (0, 1) or self.dynamic is False:
            return True
        if self.dynamic or value > LITERAL_EXTENT:
            return False
        return self.seen.setdefault(place, value) == value


@dataclass
class Input:
    """One graph input: the step that fetches it, its node, and (arrays) its memory layout."""

    step: int
    node: Node
    layout: str | tuple[str, ...]
    value: Any


class TracedBlock(Block):
    """A Block that can make inputs of array constants (`lift`) and evaluate nodes on the spot (`peek`)."""

    capture: Capture
    # set by traces that may look at actual values: node -> value
    peek: Callable[[Node], Any] | None = None

    def lift(self, value: np.ndarray) -> Node:
        """An array that is no argument (made by untraced code, a literal) as a graph input of its own."""
        step = self.capture.step(("root", value), ("any",))
        return self.capture.array(value, step, key=("lift", id(value))).node


class Capture:
    """The state of one trace; see the module's docstring."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.spoiled: NotCaptured | None = None
        # the reader that feeds this trace (frontend.outside.Outside)
        self.outside: Any = None
        self.block = TracedBlock()
        self.block.capture = self
        self.steps: list[Step] = []
        self.inputs: list[Input] = []
        self.sources: dict[Var, SizeSource] = {}
        self.same: list[tuple[str, int, int]] = []
        self._step_numbers: dict[Any, int] = {}
        self._values: dict[Any, Any] = {}
        self._arrays: dict[int, tuple[Tracer, int]] = {}

    # ------------------------------------------------------------ steps

    def step(self, fetch: tuple[Any, ...], check: tuple[Any, ...]) -> int:
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

    def known(self, number: int, make: Callable[[], Any]) -> Any:
        """The traced value of a step, made on first use."""
        if number not in self._values:
            self._values[number] = make()
        return self._values[number]

    # ------------------------------------------------------------ inputs

    def array(self, value: np.ndarray, number: int, key: Any = None) -> Tracer:
        """An ndarray read at step `number` as a traced array; the same object twice is one storage cell."""
        found = self._arrays.get(id(value))
        if found is not None:
            tracer, position = found
            if self.inputs[position].step != number:
                self._check_array(value, number, tracer.node.shape)
                self.same.append(("same", position, self._alias_input(number, tracer, value)))
            return tracer
        self._check_array(value, number, value.shape)
        build.require_known(value.dtype)
        shape = self._shape(value, key if key is not None else number, len(self.inputs))
        node = self._input(TensorType(shape, value.dtype))
        tracer = Tracer(Cell(self.block, node, argument=True), None, Weight.ARRAY)
        layout = self._check_array(value, number, shape)
        self.inputs.append(Input(number, node, layout, value))
        self._arrays[id(value)] = (tracer, len(self.inputs) - 1)
        return tracer

    def _alias_input(self, number: int, tracer: Tracer, value: np.ndarray) -> int:
        """A further input that is the very same array: fetched for the guard, read by nobody."""
        node = self._input(tracer.node.type)
        layout = self.inputs[self._arrays[id(value)][1]].layout
        self.inputs.append(Input(number, node, layout, value))
        return len(self.inputs) - 1

    def _check_array(self, value: np.ndarray, number: int, shape: tuple[Size, ...]) -> Any:
        described = _runtime.describe_array(value)
        if described is None:
            raise NotCaptured(f"an array of dtype {value.dtype} (or misaligned) runs as NumPy")
        dtype_num, ndim, _, layout = described
        extents = tuple(n if isinstance(n, int) else -1 for n in shape)
        self.check(number, ("array", dtype_num, ndim, extents, layout, None))
        return layout

    def _shape(self, value: np.ndarray, place: Any, position: int) -> tuple[Size, ...]:
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
        return self.block.add(kinds.INPUT, (), len(self.inputs), type_)

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
