"""A program's calls without Python: for sizes met before the runtime allocates and launches itself.

In: the `Outline` of a plan whose inputs and results are all device arrays or numbers, and its
`Program`, which is only made if no process has stored what new sizes need. Out: the `DevicePlan`
that an Entry runs beside its callable, and prepares by this module when it meets new sizes:

    native = NativePlan(device, outline, dtypes, Awaited(make), key, keeps=False)
    Entry(..., call=call, device=native.plan, fits=native.fits)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from npjit import _runtime
from npjit.backends.cuda_device import Device
from npjit.backends.cuda_recall import Outline, instance_key, recall, remember

if TYPE_CHECKING:
    from npjit.backends.cuda_program import Program
    from npjit.core.graph import Graph


class Awaited:
    """A program, and the graph it is of, that are made when something asks for them."""

    def __init__(self, make: Callable[[], tuple[Graph, Program]]) -> None:
        self._make: Callable[[], tuple[Graph, Program]] | None = make
        self.made: tuple[Graph, Program] | None = None

    def program(self) -> Program:
        """The program."""
        make = self._make
        if self.made is None and make is not None:
            self.made = make()
            self._make = None
        assert self.made is not None
        return self.made[1]


class NativePlan:
    """See the module's docstring. `dtypes`: the results'. `key`: the graph's, None where instances
    are not stored. `keeps`: memory of one call is kept for the next."""

    def __init__(
        self,
        device: Device,
        outline: Outline,
        dtypes: Sequence[Any],
        awaited: Awaited,
        key: str | None,
        keeps: bool,
    ) -> None:
        self.device = device
        self.outline = outline
        self.dtypes = dtypes
        self.awaited = awaited
        self.key = key
        self.plan = _runtime.DevicePlan(
            device=device.number,
            words=outline.words,
            bases=outline.bases,
            prepare=self._prepare,
            allocate=device.memory,
            counters=device.counters,
            keeps=keeps,
        )
        device.room.add(self)

    def release(self) -> None:
        """Let go of memory kept for later calls."""
        self.plan.release()

    def fits(self, inputs: list[Any]) -> bool:
        """Whether the plan is made for such sizes; what is stored was made for them."""
        key = self._key(inputs) if self.awaited.made is None else None
        is_stored = key is not None and recall(key) is not None
        return is_stored or self.awaited.program().fits(inputs)

    def _key(self, inputs: Sequence[Any]) -> str | None:
        if self.key is None:
            return None
        return instance_key(self.key, self.outline, self.device, inputs)

    def _prepare(self, inputs: list[Any], key: bytes) -> None:
        """Enter what the runtime needs for these inputs' sizes."""
        stored_key = self._key(inputs)
        stored = None if stored_key is None else recall(stored_key)
        instance = None if stored is None else stored.instance(self.device, self.dtypes)
        self.plan.enter(key, instance or self._made(inputs, stored_key))

    def _made(self, inputs: list[Any], key: str | None) -> _runtime.DeviceInstance:
        program = self.awaited.program()
        instance = program.known_instance(inputs)
        if program.plan.saves:
            # what a failed check must restore is kept by Python
            return _runtime.DeviceInstance([], 0, 0, 0, None)
        stored = program.stored(instance, program.addresses(inputs))
        if key is not None:
            remember(key, stored)
        assert instance.prepared is not None
        return stored.around(instance.prepared.tape, self.device, self.dtypes)
