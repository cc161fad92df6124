"""A program's calls without Python: for sizes met before the runtime allocates and launches itself.

In: a `Program` whose inputs and results are all device arrays or numbers. Out: the `DevicePlan`
that an Entry runs beside its callable, and prepares by this module when it meets new sizes:

    native = NativePlan(program, keeps=False)
    Entry(..., call=call, device=native.plan)
"""

from __future__ import annotations

from typing import Any

from npjit import _runtime
from npjit.backends.cuda_places import rounded, words_of
from npjit.backends.cuda_program import Program
from npjit.schedule.plan import InputSpec


class NativePlan:
    """See the module's docstring. `keeps`: memory of one call is kept for the next."""

    def __init__(self, program: Program, keeps: bool) -> None:
        self.program = program
        device = program.device
        words = ""
        bases: list[int] = []
        for number, given in enumerate(program.plan.inputs):
            bases += range(len(words), len(words) + words_of(given))
            words += _letters(given, number in program.ints)
        self.plan = _runtime.DevicePlan(
            device=device.number,
            words=words,
            bases=bases,
            prepare=self._prepare,
            allocate=device.memory,
            counters=device.counters,
            keeps=keeps,
        )
        device.room.add(self)

    def release(self) -> None:
        """Let go of memory kept for later calls."""
        self.plan.release()

    def _prepare(self, inputs: list[Any], key: bytes) -> None:
        """Enter what the runtime needs for these inputs' sizes."""
        program = self.program
        instance = program.known_instance(inputs)
        if program.plan.saves:
            # what a failed check must restore is kept by Python
            self.plan.enter(key, _runtime.DeviceInstance([], 0, 0, 0, None))
            return
        prepared = program.prepared(instance, program.addresses(inputs))
        results = [program.device.maker(*spec) for spec in instance.outputs]
        arena = rounded(instance.arena)
        memory = arena + prepared.scratch
        self.plan.enter(
            key,
            _runtime.DeviceInstance(results, arena, memory, prepared.counters, prepared.tape),
        )


def _letters(given: InputSpec, is_size: bool) -> str:
    """What an input's words are to the plan."""
    if given.is_scalar:
        return "s" if is_size else "n" * words_of(given)
    return "a" + "s" * 2 * len(given.shape)
