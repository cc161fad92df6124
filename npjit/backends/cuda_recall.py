"""Plans on a GPU that another process has made ready, from the disk cache.

In: the key of a captured graph. Out: its `Outline`, which is what the runtime knows of a plan
whatever the sizes; and for the sizes of a call a `Stored`, from which the runtime's instance is
made without the plan, its kernels' text or their printers:

    outline = recall_outline(key)
    stored = recall(instance_key(key, outline, device, inputs))
    stored.instance(device, dtypes)     ->  DeviceInstance; None: its machine code is gone

What Python does while a plan runs is not stored, nor are plans that restore inputs.
"""

from __future__ import annotations

import contextlib
import json
import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from npjit import _runtime
from npjit.backends.cuda_device import Device
from npjit.backends.cuda_form import Form, multiplies, tape
from npjit.codegen.cache import digest, open_cache


@dataclass(frozen=True)
class Outline:
    """Of each input word its letter, and which words are bases, as `DevicePlan` takes them; the
    numbers of the inputs that are sizes and that are arrays; whether sizes have guards to pass."""

    words: str
    bases: Sequence[int]
    ints: Sequence[int]
    arrays: Sequence[int]
    guarded: bool

    def sizes_of(self, device: Device, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """All of the inputs that launches depend on, but for the addresses themselves."""
        key: list[Any] = [inputs[i] for i in self.ints]
        for i in self.arrays:
            a = inputs[i]
            key += (a.shape, a.strides, device.address(a) % 16)
        return tuple(key)


@dataclass(frozen=True)
class Stored:
    """An instance as data: shape and memory order of each result, bytes of the arena and of all
    memory, how many counters, the tape; and where the functions' machine code is."""

    results: Sequence[Any]
    arena: int
    memory: int
    counters: int
    form: Form
    codes: dict[str, str]

    def instance(self, device: Device, dtypes: Sequence[Any]) -> _runtime.DeviceInstance | None:
        """The runtime's instance, with results of these types."""
        functions = device.recalled(self.codes)
        if functions is None or (multiplies(self.form) and not device.knows_blas()):
            return None
        return self.around(tape(self.form, functions), device, dtypes)

    def around(
        self, made: _runtime.Tape, device: Device, dtypes: Sequence[Any]
    ) -> _runtime.DeviceInstance:
        """The runtime's instance with a tape that is there."""
        results = [
            device.maker(tuple(shape), dtype, None if perm is None else tuple(perm))
            for (shape, perm), dtype in zip(self.results, dtypes, strict=True)
        ]
        return _runtime.DeviceInstance(results, self.arena, self.memory, self.counters, made)


def recall_outline(key: str) -> Outline | None:
    """The outline stored under a graph's key."""
    data = open_cache().get_blob(key)
    return None if data is None else Outline(**json.loads(data))


def remember_outline(key: str, outline: Outline) -> None:
    """Store an outline."""
    open_cache().put_blob(key, json.dumps(asdict(outline)).encode())


def instance_key(key: str, outline: Outline, device: Device, inputs: Sequence[Any]) -> str:
    """The key of what a graph is for these inputs' sizes."""
    return digest("instance", key, repr(outline.sizes_of(device, inputs)))


def recall(key: str) -> Stored | None:
    """What is stored under an instance's key."""
    data = open_cache().get_blob(key)
    return None if data is None else Stored(**json.loads(data))


def remember(key: str, stored: Stored) -> None:
    """Store an instance, unless Python has a part in it."""
    # a callable is no number either
    with contextlib.suppress(TypeError):
        data = json.dumps(vars(stored), default=operator.index)
        open_cache().put_blob(key, data.encode())
