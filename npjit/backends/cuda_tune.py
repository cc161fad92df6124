"""Mode "max-autotune": for each new set of sizes the ways to run a program are timed.

In: a `Program` and inputs. Out: the fastest `Tuning`, from the disk cache where it was found before
for the same source, sizes and make of GPU:

    Program(plan, device, choose=fastest)
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from npjit.backends.cuda_program import Instance, Program
from npjit.codegen.cache import digest, open_cache
from npjit.codegen.cuda_launch import UNTUNED, Tuning
from npjit.schedule.plan import every_step

# what is not this much faster than the printers' own choice is not taken: times differ a little
_GAIN = 0.97
_LANES = (16, 4, 2, 1)
_BLOCKS = (1, 2, 4)


def fastest(program: Program, inputs: Sequence[Any]) -> Tuning:
    """See the module's docstring. Programs that write into their inputs are not run for trial."""
    if program.written_inputs():
        return UNTUNED
    cache, key = open_cache(), _key(program, inputs)
    stored = cache.get_blob(key)
    if stored is None:
        found = _measured(program, inputs)
        cache.put_blob(key, json.dumps(asdict(found)).encode())
        return found
    return Tuning(**json.loads(stored))


def _key(program: Program, inputs: Sequence[Any]) -> str:
    module = program.module
    sizes = repr(program.outline.sizes_of(program.device, inputs))
    return digest("tuning", module.source, *module.options, program.device.name, sizes)


def _measured(program: Program, inputs: Sequence[Any]) -> Tuning:
    times: dict[Tuning, float] = {}
    for tuning, instance in _different(program, inputs):
        work = functools.partial(program.run, instance, inputs)
        times[tuning] = program.device.seconds(work)
    best = min(times, key=lambda t: times[t])
    return best if times[best] < _GAIN * times[UNTUNED] else UNTUNED


def _different(program: Program, inputs: Sequence[Any]) -> Iterator[tuple[Tuning, Instance]]:
    """The tunings that differ in what they start, the printers' own choice first."""
    seen: set[Any] = set()
    for joined in (True, False):
        for blocks in _BLOCKS:
            for lanes in _LANES:
                tuning = Tuning(lanes, blocks, joined)
                instance = program.instance(inputs, tuning)
                starts = _starts(program, instance, inputs)
                if starts not in seen:
                    seen.add(starts)
                    yield tuning, instance


def _starts(program: Program, instance: Instance, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """What an instance starts, and the number of its steps."""
    works = program.draft(instance, inputs).works()
    return (*(w.what for w in works), sum(1 for _ in every_step(instance.steps)))
