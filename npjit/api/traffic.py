"""What each step of a plan on a GPU moves, and how long that takes when memory is the limit.

In: a program and the inputs of a call. Out: lines for `explain`; loops tell how often a step runs,
and steps whose sizes depend on the trip are those of the middle one:

    k0: 12,000,000 bytes, 2.5 us (model.py:12)
    1000 times k1: 8,388,608 bytes, 1.7 us (model.py:14)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from npjit.backends.cuda_places import Sizes
from npjit.backends.cuda_program import Program
from npjit.codegen.cuda_launch import Request
from npjit.core.size import atoms
from npjit.schedule.kernel import Kernel, Load, Store
from npjit.schedule.plan import (
    Call,
    Check,
    Contract,
    Launch,
    Loop,
    Step,
    Strided,
    bodies,
    sizes_in,
)


def traffic(program: Program, inputs: Sequence[Any]) -> list[str]:
    """See the module's docstring."""
    instance = program.instance(inputs)
    return list(_lines(program, instance.steps, instance.sizes, ""))


def microseconds(program: Program, size: int) -> str:
    """How long it takes to move so many bytes."""
    return f"{1e6 * size / program.device.rate():,.1f} us"


def kernel_bytes(kernel: Kernel, sizes: Sequence[int]) -> int:
    """What one launch reads and writes when every element moves once."""
    request = Request(kernel, sizes, {})
    parts: dict[Any, int] = {}
    for phase in kernel.phases:
        for _, instr in phase.body:
            if not isinstance(instr, Load | Store):
                continue
            access = instr.access
            buffer = kernel.buffers[access.buffer]
            if buffer.role == "row":
                continue  # stays in the kernel
            axes = [a for a, stride in access.strides if request.value(stride) != 0]
            axes = [*phase.axes] if access.gathers else axes
            # neighbours of a stencil are one read; windows along other axes are not
            part = access.buffer, isinstance(instr, Store), tuple(axes), access.gathers
            parts[part] = request.items(axes) * buffer.dtype.itemsize
    return sum(parts.values())


def _lines(program: Program, steps: Sequence[Step], sizes: Sizes, times: str) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Loop) and _are_known(step.trips, sizes):
            trips = sizes.value(step.trips)
            middle = sizes.with_values({step.index: trips // 2})
            yield from _lines(program, step.body, middle, f"{times}{trips} times ")
        elif isinstance(step, Check):
            yield from _lines(program, step.ahead, sizes, times)
        elif inside := bodies(step):
            for body in inside:
                yield from _lines(program, body, sizes, f"{times}a trip's ")
        elif isinstance(step, Launch | Contract | Call):
            where = getattr(step, "where", ())
            behind = f" ({', '.join(where)})" if where else ""
            yield f"{times}{_moved(program, step, sizes)}{behind}"


def _moved(program: Program, step: Launch | Contract | Call, sizes: Sizes) -> str:
    name = _name(step)
    if not _are_known(step, sizes):
        return f"{name}: sizes that the call finds"
    size = _size(program, step, sizes)
    return f"{name}: {size:,} bytes, {microseconds(program, size)}"


def _name(step: Launch | Contract | Call) -> str:
    if isinstance(step, Launch):
        return f"k{step.kernel}"
    return "product" if isinstance(step, Contract) else step.op.name


def _size(program: Program, step: Launch | Contract | Call, sizes: Sizes) -> int:
    if isinstance(step, Launch):
        return kernel_bytes(program.plan.kernels[step.kernel], sizes.shape(step.sizes))
    if isinstance(step, Contract):
        m, n, k = sizes.shape((step.m, step.n, step.k))
        factors = (m * k + k * n) * step.factors.itemsize
        return math.prod(sizes.shape(step.batch)) * (factors + m * n * step.dtype.itemsize)
    arrays: list[Strided] = [*step.arguments, *(r for _, r in step.results)]
    return sum(math.prod(sizes.shape(a.shape)) * a.dtype.itemsize for a in arrays)


def _are_known(value: object, sizes: Sizes) -> bool:
    return all(v in sizes.values for size in sizes_in(value) for v in atoms(size))
