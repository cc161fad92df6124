"""Gradients of functions that cannot be captured whole: the function runs once, over lazy arrays,
and the reverse pass goes over what they have recorded.

Between the chunks of a recording that have run Python has its effects; each chunk's gradient is
compiled, and what the chunks have computed are values to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit import _runtime
from npjit._runtime import LazyArray
from npjit.api.escapes import delivering, settled
from npjit.api.recorder import Chunk, Tape, versions_of
from npjit.core.dtypes import kind_of
from npjit.core.trees import flatten, unflatten
from npjit.transform.api_grad import (
    leaf_names,
    positions,
    require_differentiable,
    require_number,
    split_aux,
)

if TYPE_CHECKING:
    from npjit.api.grad import Gradient


def gradient_by_recording(gradient: Gradient, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One call of a gradient function."""
    tape = Tape(gradient.recorder, gradient.label)
    names = tape.names
    numbers = positions(gradient.argnums, len(args))
    points = {i: Point(tape, i, args[i]) for i in dict.fromkeys(numbers)}
    _entangle(tape, points.values(), [a for i, a in enumerate(args) if i not in points])
    entered = [points[i].enter() if i in points else names.read(a) for i, a in enumerate(args)]
    named = {k: names.read(v) for k, v in kwargs.items()}
    function = names.read(as_function(gradient.function))
    with delivering(tape):
        result = function(*entered, **named)
        sums = Reverse(tape).run(split_aux(result, gradient.has_aux))
        del entered, named
        result = settled(result)
    found = [points[i].gradients(sums) for i in numbers]
    gradients = found[0] if isinstance(gradient.argnums, int) else tuple(found)
    if gradient.with_value:
        return result, gradients
    return (gradients, result[1]) if gradient.has_aux else gradients


def _entangle(tape: Tape, points: Iterable[Point], others: Sequence[Any]) -> None:
    """Refuse stores into arguments that share memory."""
    read = [tape.names.read(x) for x in others]
    leaves = [pair for p in points for pair in zip(p.leaves, p.arrays, strict=True)]
    arrays = [pair for pair in leaves if isinstance(pair[0], np.ndarray)]
    for pair in tape.names.overlapping(arrays):
        tape.recording.entangle(*pair)
    del read


def as_function(value: Any) -> Any:
    """A callable object of a user's class as the method that it runs."""
    from npjit.api.jitted import is_model

    return type(value).__call__.__get__(value) if is_model(value) else value


class Point:
    """A differentiated argument: lazy arrays in place of its leaves."""

    def __init__(self, tape: Tape, number: int, argument: Any) -> None:
        self.leaves, self.tree = flatten(argument)
        names = leaf_names(self.tree, f"argument {number}")
        for leaf, name in zip(self.leaves, names, strict=True):
            tape.require_taken(leaf)
            require_differentiable(leaf, name)
        homes = [x if isinstance(x, np.ndarray) else None for x in self.leaves]
        self.arrays = [
            tape.recording.adopt(x, home, True) for x, home in zip(self.leaves, homes, strict=True)
        ]
        self.versions = [_runtime.version_of(x) for x in self.arrays]
        tape.active.update(self.versions)

    def enter(self) -> Any:
        """The argument as the function gets it, which alone has it then."""
        entered, self.arrays = unflatten(self.tree, self.arrays), []
        return entered

    def gradients(self, sums: dict[int, Any]) -> Any:
        """The gradient, with the argument's structure."""
        found = [
            sums[v] if v in sums else _zeros(leaf)
            for v, leaf in zip(self.versions, self.leaves, strict=True)
        ]
        return unflatten(self.tree, found)


def _zeros(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return np.zeros(leaf.shape, leaf.dtype)
    return np.asarray(leaf).dtype.type(0)


class Reverse:
    """The reverse pass over a tape; `sums` are the gradients found so far, by version."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.sums: dict[int, Any] = {}

    def run(self, value: Any) -> dict[int, Any]:
        """Gradients of a function's value, by the versions of what it was computed from."""
        require_number(value)
        dtype = value.dtype if hasattr(value, "dtype") else np.dtype(type(value))
        if kind_of(dtype) != "f":
            raise TypeError(f"grad needs a real floating output, got dtype {dtype}")
        if type(value) is LazyArray and _runtime.depends(value):
            self._start(value if _runtime.base_array(value) is value else value.copy())
            for chunk in reversed(self.tape.chunks):
                self._back(chunk)
        return self.sums

    def _start(self, value: LazyArray) -> None:
        """Run what is not yet computed; with it, where the value is among that, its gradient."""
        recording = self.tape.recording
        state, inputs, bases, wanted = recording.pending()
        if not any(w is value for w in wanted):
            recording.settle(wanted, self.tape.run(state, wanted, inputs, bases))
            one = np.ones((), value.dtype)
            is_array = isinstance(value, np.ndarray)
            self.sums[_runtime.version_of(value)] = one if is_array else one[()]
            return
        program = self.tape.recorder.program(state)
        slots = tuple(map(_runtime.slot_of, wanted))
        read = versions_of(bases)
        active = self._active(read)
        pull = program.backward((_runtime.slot_of(value),), slots, active, True)
        found = self.tape.call(pull, inputs)
        recording.settle(wanted, found[: len(slots)])
        self._add([read[i] for i in active], found[len(slots) :])

    def _back(self, chunk: Chunk) -> None:
        """Pass a chunk that has run."""
        places = [i for i, v in enumerate(chunk.made) if v in self.sums]
        active = self._active(chunk.read)
        if places and active:
            seeds = [self.sums.pop(chunk.made[i]) for i in places]
            slots = tuple(chunk.slots[i] for i in places)
            pull = chunk.program.backward(slots, (), active, False)
            found = self.tape.call(pull, [*chunk.inputs, *seeds])
            self._add([chunk.read[i] for i in active], found)

    def _active(self, versions: Sequence[int]) -> tuple[int, ...]:
        return tuple(i for i, v in enumerate(versions) if v in self.tape.active)

    def _add(self, versions: Sequence[int], gradients: Sequence[Any]) -> None:
        for v, g in zip(versions, gradients, strict=True):
            if g is not None and v in self.sums:
                total = np.add(self.sums[v], g)
                self.sums[v] = np.asarray(total) if isinstance(g, np.ndarray) else total
            elif g is not None:
                self.sums[v] = g
