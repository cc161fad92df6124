"""The host of a recording (`npjit._runtime.Recording`): traces operations that are new, runs what
has been recorded as compiled programs, and keeps what a reverse pass needs.

In: operations on lazy arrays. Out: types, values, and errors that name the user's line:

    tape = Tape(Recorder(options), "f")
    x = tape.recording.adopt(np.ones(3), depends=True)
    print(x * 2)                       # traced and compiled once; a look-up each time after
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from npjit import _runtime
from npjit._runtime import LazyArray, NotRecorded, Operation, Recording, State, ValueType
from npjit.api.jitted import Jitted
from npjit.api.options import CaptureError, Options
from npjit.api.program import Program, entered, leaves_of, placed
from npjit.core import view as views
from npjit.core.graph import Node, Weight, may_stop
from npjit.core.trees import flatten, unflatten
from npjit.frontend.capture import Capture
from npjit.frontend.outside import Outside
from npjit.frontend.policy import Policy
from npjit.frontend.recorded_names import Names, is_users
from npjit.frontend.values import is_array
from npjit.ops import build
from npjit.ops.errors import NotCaptured, name_of, pop_trace, push_trace
from npjit.ops.memory_order import is_c_ordered
from npjit.ops.sharing import family_of, is_followed, root_of
from npjit.ops.tracer import Tracer

# so many programs of one call are compiled when they are first met, others when they come again
MOST_NEW = 16
# operations of one function that are remembered; calls that keep changing begin anew then
MOST_OPERATIONS = 100_000
# what a result that no array takes part in may be
_CONSTANTS = (type(None), bool, int, float, complex, str, np.dtype)


class Recorder:
    """What the recordings of one function share: the states that they pass, and their programs."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.start = State()
        # by what the operations are, types aside: those are guarded
        self.programs: dict[Any, Program] = {}
        # programs that have run before
        self.met: set[Jitted] = set()
        # operations that the states remember
        self.known = 0

    def begin(self) -> State:
        """The state that a recording begins in."""
        if self.known > MOST_OPERATIONS:
            self.start, self.known = State(), 0
            self.programs.clear()
            self.met.clear()
        return self.start

    def program(self, state: State) -> Program:
        """The operations that lead to a state, to be compiled."""
        if "program" not in state.compiled:
            path = state.path()
            key = tuple((o.key, o.writes, tuple(r.is_new for r in o.results)) for o in path)
            if key not in self.programs:
                self.programs[key] = Program(path, self.options)
            state.compiled["program"] = self.programs[key]
        found: Program = state.compiled["program"]
        return found

    @property
    def versions(self) -> int:
        """How many compiled versions the programs have."""
        return sum(p.versions for p in self.programs.values())


@dataclass
class Chunk:
    """Operations that have run: the versions of values that went in and came out."""

    program: Program
    inputs: list[Any]
    read: tuple[int, ...]
    slots: tuple[int, ...]
    made: range


class Tape:
    """One call's recording, its host, and the chunks that have run."""

    def __init__(self, recorder: Recorder, label: str, keeps: bool = True) -> None:
        self.recorder = recorder
        self.label = label
        # whether there will be a reverse pass
        self.keeps = keeps
        self.recording = Recording(self, recorder.begin())
        self.names = Names(self.recording)
        self.chunks: list[Chunk] = []
        # versions of values that depend on what is differentiated
        self.active: set[int] = set()
        self._tracing = Tracing()
        self._new = 0

    # ------------------------------------------------------------ what a Recording asks

    def trace(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation:
        """An operation that is new in the recording's state."""
        self.recorder.known += 1
        path = self.recording.state.path()
        try:
            if not self._tracing.follow(path, self.recording.inputs):
                self._tracing = Tracing()
                self._tracing.follow(path, self.recording.inputs)
            return self._tracing.add(function, _slots(args), _slots(kwargs))
        except NotCaptured as e:
            self._tracing = Tracing()  # it may have come half way
            raise NotRecorded(e.reason) from e.__cause__

    def run(self, state: State, wanted: list[Any], inputs: list[Any], bases: list[Any]) -> Any:
        """The values of arrays; what led to them is kept for the reverse pass."""
        program = self.recorder.program(state)
        slots = tuple(map(_runtime.slot_of, wanted))
        values = self.call(program.forward(slots), inputs)
        if not self.keeps:
            return values
        first = self.recording.versions + 1
        made = range(first, first + len(slots))
        self.chunks.append(Chunk(program, inputs, versions_of(bases), slots, made))
        self.active.update(v for v, x in zip(made, wanted, strict=True) if _runtime.depends(x))
        return values

    def call(self, jitted: Jitted, inputs: Sequence[Any]) -> Any:
        """The result of a program: a long course that never comes again is not compiled."""
        if not jitted.entries and jitted not in self.recorder.met:
            self.recorder.met.add(jitted)
            self._new += 1
            if self._new > MOST_NEW:
                return jitted.original(*inputs)
        return jitted(*inputs)

    def outside(
        self,
        error: NotRecorded,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The result of an operation that is not recorded: NumPy's, of actual values."""
        if type(function) is Jitted:
            return self.names.read(function.function)(*args, **kwargs)
        if not _runtime.depends_in((args, kwargs)):
            given = _runtime.values_in(args, True), _runtime.values_in(kwargs, True)
            return function(*given[0], **given[1])
        given = _copied(_runtime.values_in((args, kwargs)))
        result = function(*given[0], **given[1])  # NumPy's own error, where it has one
        leaves = leaves_of(result)
        if leaves and all(_stops_gradients(leaf) for leaf in leaves):
            return result
        reason = f" ({error})" if str(error) else ""
        self.refuse(f"{_called(function, args)}{reason}")

    def protect(self, array: np.ndarray) -> None:
        """An array's memory is about to change: keep what the chunks have read from it."""
        kept = None
        for chunk in self.chunks:
            for i, value in enumerate(chunk.inputs):
                if value is array:
                    kept = array.copy(order="K") if kept is None else kept
                    chunk.inputs[i] = kept

    def changed(self) -> NoReturn:
        """CaptureError where recorded operations may have read what another name has put there, or
        a gradient would go through that."""
        raise CaptureError(
            f"{self.label} cannot be run: {where_in_users_code()}: before this line, an array "
            "that it works on was changed by another name (a list's item, an attribute); use "
            "one name"
        )

    def require_taken(self, value: Any) -> None:
        """CaptureError for an array that compiled code does not take."""
        if isinstance(value, np.ndarray) and _runtime.describe_array(value) is None:
            try:
                Tracing().outside.read(value, ("arg", 0))
            except NotCaptured as e:
                raise CaptureError(f"{self.label} cannot be found: {e}") from None

    def refuse_store(self) -> NoReturn:
        """A store that may be one into another array as well."""
        raise CaptureError(
            f"{self.label} cannot be run: {where_in_users_code()}: a store into an array that may "
            "share memory with a reshape or a part of it; copy one of them before"
        )

    def refuse(self, what: str) -> NoReturn:
        """A value that depends on what is differentiated would leave the recording."""
        raise CaptureError(
            f"{self.label} cannot be found: {where_in_users_code()}: {what} of a value that "
            "depends on what is differentiated; use what npjit knows (docs/coverage.md), or take "
            "the gradient of a part without this call"
        )


class Tracing:
    """Operations on Tracers, which tell the types and the memory of results."""

    def __init__(self) -> None:
        self.capture = Capture(Policy(dynamic=False))
        self.outside = self.capture.outside = Outside(self.capture)
        self.path: list[Operation] = []
        self.values: list[Any] = []
        # storage -> the slot of the value that it was made for
        self.homes: dict[Any, int] = {}
        # how many of the values are inputs
        self.inputs = 0

    def follow(self, path: Sequence[Operation], inputs: Sequence[Any]) -> bool:
        """Trace the operations that `path` has more; False where it has others."""
        known = len(self.path)
        if len(path) < known or not all(map(operator.is_, path, self.path)):
            return False
        for operation in path[known:]:
            if operation.function is None:
                self._enter(operation, inputs[self.inputs])
            else:
                self.add(operation.function, operation.args, operation.kwargs)
                self.path[-1] = operation
        return True

    def _enter(self, operation: Operation, value: Any) -> None:
        number = len(self.values)
        traced = self.outside.read(value, ("arg", number))
        if is_array(traced):
            # in storage of its own, as in programs that write it
            (traced,) = entered(self.capture.block, [traced], [0])
            self.homes[root_of(traced.cell)] = number
            if not operation.args[0] and traced.ndim > 1:
                traced.cell.origin = _turned(traced)
        self.values.append(traced)
        self.path.append(operation)
        self.inputs += 1

    def add(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation:
        """One more operation; NotCaptured where there is none."""
        nodes = self.capture.block.nodes
        start = len(nodes)
        operands = placed((args, kwargs), self.values)
        touched = [root_of(t.cell) for t in leaves_of(list(_flat(operands))) if is_array(t)]
        before = [cell.node for cell in touched]
        push_trace(self.capture)
        try:
            result = function(*operands[0], **operands[1])
        finally:
            pop_trace()
        if self.capture.spoiled is not None:
            raise self.capture.spoiled
        changed = [c for c, node in zip(touched, before, strict=True) if c.node is not node]
        writes = tuple(dict.fromkeys(self._home_of(c) for c in changed))
        checked = any(may_stop(n) for n in nodes[start:])
        results, how = self._results(result, operands)
        made = Operation(function, args, kwargs, results, how, writes, checked)
        self.path.append(made)
        return made

    def _home_of(self, cell: Any) -> int:
        if cell not in self.homes:
            raise NotCaptured("a store into an array that is not known here")
        return self.homes[cell]

    def _results(self, result: Any, operands: Any) -> tuple[tuple[ValueType, ...], Any]:
        """The types of the leaves of a result, and what puts the leaves together."""
        leaves, tree = flatten(result)
        if not any(type(leaf) is Tracer for leaf in leaves):
            if not all(isinstance(leaf, _CONSTANTS) for leaf in leaves):
                raise NotCaptured(f"a {type(result).__name__} as the result")
            return (), functools.partial(_constant, result)
        if not all(type(leaf) is Tracer for leaf in leaves):
            raise NotCaptured("arrays and other things as the result")
        given = [t for t in leaves_of(list(_flat(operands))) if type(t) is Tracer]
        types = tuple(self._type(leaf, given) for leaf in leaves)
        return types, None if type(result) is Tracer else functools.partial(unflatten, tree)

    def _type(self, leaf: Tracer, operands: list[Tracer]) -> ValueType:
        dtype, weight = leaf.dtype, leaf.weight.value
        if not all(type(n) is int for n in leaf.raw_shape):
            raise NotCaptured("an array whose size depends on values")
        kind, slot = "made", 0
        if any(leaf is t for t in operands):
            kind, slot = "same", next(i for i, v in enumerate(self.values) if v is leaf)
        elif leaf.weight is Weight.ARRAY:
            cell = root_of(leaf.cell)
            family = family_of(cell)
            known = [root_of(t.cell) for t in operands if is_array(t)]
            related = [c for c in known if c in family]
            if cell in self.homes:
                kind, slot = "viewed" if is_followed(leaf.cell) else "unsure", self.homes[cell]
            elif related:
                kind, slot = "unsure", self.homes[related[0]]
        if kind != "same":
            if leaf.weight is Weight.ARRAY:
                self.homes.setdefault(root_of(leaf.cell), len(self.values))
            self.values.append(leaf)
        origin = root_of(leaf.cell).origin
        ordered = kind != "made" or leaf.weight is not Weight.ARRAY
        ordered = ordered or is_c_ordered(self.capture.block, origin)
        return ValueType(leaf.raw_shape, build.require_known(dtype), weight, kind, slot, ordered)


def _turned(array: Tracer) -> Node:
    """A value whose memory order is not known."""
    order = tuple(reversed(range(array.ndim)))
    return build.view(array.block, array.node, views.transpose(array.raw_shape, order))


def _flat(tree: Any) -> Any:
    """The operands in lists, tuples and dicts."""
    for part in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(part, (list, tuple, dict)):
            yield from _flat(part)
        else:
            yield part


def _slots(tree: Any) -> Any:
    """Operands with their slots in place of lazy arrays."""
    cls = type(tree)
    if cls is LazyArray:
        return _runtime.slot_object_of(tree)
    if cls in (tuple, list):
        return cls([_slots(t) for t in tree])
    if cls is dict:
        return {k: _slots(t) for k, t in tree.items()}
    if cls is slice:
        return slice(*(_slots(t) for t in (tree.start, tree.stop, tree.step)))
    return tree


def _constant(value: Any, leaves: list[Any]) -> Any:
    return value


def where_in_users_code() -> str:
    """file:line of the innermost frame of the user's own code."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_users(filename):
            return f"{filename}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def versions_of(bases: Sequence[Any]) -> tuple[int, ...]:
    """The versions of inputs; 0 for numbers, which nothing is differentiated for."""
    return tuple(0 if b is None else _runtime.version_of(b) for b in bases)


def _copied(tree: Any) -> Any:
    cls = type(tree)
    if cls is np.ndarray:
        return tree.copy(order="K")
    if cls in (tuple, list):
        return cls([_copied(t) for t in tree])
    return {k: _copied(t) for k, t in tree.items()} if cls is dict else tree


def _stops_gradients(value: Any) -> bool:
    """Whether a value has no derivative by its type."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "biu"
    return isinstance(value, (bool, int, str))


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    if function is _runtime.call_method:
        return f"the method .{args[0]}"
    return name_of(function) if hasattr(function, "__name__") else str(function)
