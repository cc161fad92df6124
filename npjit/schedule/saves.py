"""What a check that fails must undo: writes to the caller's arrays.

In: a plan's steps. Out: the inputs whose contents have to be kept from the start, with places
behind the arena. The call is run again by Python when a check fails, so the caller's arrays must be
as before. Nothing is kept where all checks come before the first write.

    for i < n: x[k[i]] = 1.0, each index checked   ->   x is saved
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npjit.core.size import Size, floordiv, product
from npjit.schedule.kernel import Kernel
from npjit.schedule.plan import (
    Call,
    Check,
    Contract,
    InputSpec,
    Launch,
    Place,
    Save,
    Step,
    every_step,
)


def find_saves(
    steps: Sequence[Step], kernels: Sequence[Kernel], inputs: Sequence[InputSpec], arena: Size
) -> tuple[tuple[Save, ...], Size]:
    """What to save where, and the size of the arena with it."""
    written: dict[int, None] = {}
    for k, step in enumerate(steps):
        inside = dict.fromkeys(n for s in every_step((step,)) for n in _written(s, kernels))
        written.update(inside)
        if written and any(map(_may_stop, every_step(tuple(steps[k:])))):
            break
    else:
        return (), arena
    every = dict.fromkeys(n for s in every_step(tuple(steps)) for n in _written(s, kernels))
    saves = []
    for number in every:
        spec = inputs[number]
        saves.append(Save(number, Place("arena", 0, arena)))
        size = product(spec.shape) * spec.dtype.itemsize
        arena = arena + 64 * floordiv(size + 63, 64)
    return tuple(saves), arena


def _may_stop(step: Step) -> bool:
    """Whether the call may have to run again because of this step."""
    return isinstance(step, Check) or (isinstance(step, Call) and step.op.raises)


def _written(step: Step, kernels: Sequence[Kernel]) -> Iterator[int]:
    """Inputs that a step writes, the steps inside it left out."""
    places: list[Place] = []
    if isinstance(step, Launch):
        shared = [b for b in kernels[step.kernel].buffers if b.role != "row"]
        pairs = zip(shared, step.buffers, strict=True)
        places = [place for b, place in pairs if b.role != "in"]
    elif isinstance(step, Contract):
        places = [step.c.place]
    elif isinstance(step, Call):
        places = [r.place for _, r in step.results]
    yield from (p.number for p in places if p.space == "input")
