"""Compiled versions that run on a GPU.

In: a captured call, its plan, the GPU's number. Out: a `Compiled`. Its entry takes CuPy arrays as
they are and gives CuPy arrays; when all arrays live on the CPU it copies them to the GPU, and the
results back:

    npjit.jit(f)(cupy.ones(1000))                    # runs where the array lives
    npjit.jit(f, device="cuda")(np.ones(1000))       # there and back
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.api import plans
from npjit.api.compile import (
    Compiled,
    Stopwatch,
    alias_geometry,
    alias_result,
    make_entry,
    result_spec,
    variables,
)
from npjit.api.options import Options
from npjit.api.placement import host_arrays
from npjit.backends.cuda_device import CheckFailed, Device
from npjit.backends.cuda_native import Awaited, NativePlan
from npjit.backends.cuda_recall import Outline, recall_outline, remember_outline
from npjit.core.graph import Graph, Weight
from npjit.frontend.capture import ON_CPU
from npjit.frontend.results import Alias
from npjit.frontend.trace import Captured

if TYPE_CHECKING:
    from npjit.backends.cuda_program import Program
    from npjit.schedule.plan import Plan


def compile_cuda(
    captured: Captured,
    graph: Graph,
    make_plan: Callable[[], tuple[Graph, Plan]],
    watch: Stopwatch,
    options: Options,
    number: int,
    detail: bool,
) -> Compiled:
    """An entry that runs a graph on GPU `number`. What `make_plan` makes, the graph as it suits a
    GPU and its plan, is not made where another process has stored what a call needs, unless
    `detail` is wanted."""
    from npjit.backends.cuda import device

    on_gpu = device(number)
    awaited = Awaited(functools.partial(_program, make_plan, on_gpu, options))
    call = DeviceCall(captured, graph, on_gpu, awaited)
    key = None
    if call.is_native and options.mode != "max-autotune":
        key = plans.plan_key(captured, graph, f"{on_gpu.name} {options.fastmath}")
    outline = None if detail or key is None else recall_outline(key)
    watch.lap("recall")
    if outline is None:
        outline = awaited.program().outline
        watch.lap("schedule and print")
        if key is not None:
            remember_outline(key, outline)
    native = None
    if call.is_native:
        dtypes = [n.dtype for n in graph.outputs]
        keeps = options.mode == "reduce-overhead"
        native = NativePlan(on_gpu, outline, dtypes, awaited, key, keeps)
    specs = [_spec(kind, what, graph) for kind, what in captured.results]
    captured = replace(captured, steps=_moved_constants(captured, on_gpu))
    entry = make_entry(captured, specs, call=call, **_runs(native, awaited, outline))
    if awaited.made is None:
        return Compiled(entry, graph, "cuda", seconds=watch.seconds)
    graph, made = awaited.made
    plan, source = made.unjoined, made.module.source
    return Compiled(entry, graph, "cuda", plan, source, watch.seconds, program=made)


def _program(
    make_plan: Callable[[], tuple[Graph, Plan]], device: Device, options: Options
) -> tuple[Graph, Program]:
    from npjit.backends.cuda_program import Program
    from npjit.backends.cuda_tune import fastest

    choose = fastest if options.mode == "max-autotune" else None
    graph, plan = make_plan()
    return graph, Program(plan, device, options.fastmath, choose)


def _runs(native: NativePlan | None, awaited: Awaited, outline: Outline) -> dict[str, Any]:
    """What runs beside an entry's callable, and what asks whether sizes fit."""
    if native is None:
        return {"fits": awaited.program().fits if outline.guarded else None}
    return {"device": native.plan, "fits": native.fits if outline.guarded else None}


def _moved_constants(captured: Captured, device: Device) -> tuple[Any, ...]:
    """The steps with the trace's own arrays on the device."""
    steps = list(captured.steps)
    for number in {i.step for i in captured.inputs}:
        fetch, check = steps[number]
        if fetch[0] == "root" and check[0] == "array":
            with device.active():
                moved = device.uploaded(fetch[1])
            steps[number] = (("root", moved), ("device", *check[1:5], device.number))
    return tuple(steps)


def _spec(kind: str, what: Any, graph: Graph) -> tuple[Any, ...]:
    """The runtime's spec of one result leaf."""
    return ("device", what) if kind == "fresh" else result_spec(kind, what, graph.outputs, None)


class DeviceCall:
    """What an entry calls where compiled code does not answer: inputs in, one result for each
    output that is no input.
    """

    def __init__(self, captured: Captured, graph: Graph, device: Device, awaited: Awaited) -> None:
        self.results = captured.results
        self.weights = [n.type.weight for n in graph.outputs]
        self.device = device
        self.awaited = awaited
        # whether results stay on the GPU: they go where the arrays come from
        self.on_device = any(i.device != ON_CPU for i in captured.inputs)
        # whether the runtime may do without this: device arrays and numbers in, arrays out
        self.is_native = (
            self.on_device
            and not host_arrays(captured)
            and all(
                kind == "input" or (kind == "fresh" and self.weights[what] is not Weight.WEAK)
                for kind, what in captured.results
            )
        )
        self._graph = graph

    def __call__(self, inputs: list[Any]) -> list[Any] | None:
        device, program = self.device, self.awaited.program()
        with device.active():
            arrays = [device.uploaded(v) if type(v) is np.ndarray else v for v in inputs]
            try:
                fresh = program(arrays)
            except CheckFailed:
                return None  # the function itself answers the call
            for position in program.written_inputs():
                if inputs[position] is not arrays[position]:
                    inputs[position][...] = device.downloaded(arrays[position])
            return self._results(fresh, inputs)

    def _results(self, fresh: list[Any], inputs: list[Any]) -> list[Any]:
        has_alias = any(kind == "alias" for kind, _ in self.results)
        sizes = variables(self._graph, inputs) if has_alias else {}
        found = []
        for kind, what in self.results:
            if kind == "fresh":
                found.append(self._fresh(fresh[what], self.weights[what]))
            elif kind == "alias":
                found.append(self._alias(what, inputs, sizes))
        return found

    def _fresh(self, array: Any, weight: Weight) -> Any:
        """A result as the caller is to see it; CuPy has 0-d arrays for NumPy's scalars."""
        if self.on_device and weight is not Weight.WEAK:
            return array
        found = self.device.downloaded(array)
        if weight is Weight.ARRAY:
            return found
        return found.item() if weight is Weight.WEAK else found[()]

    def _alias(self, alias: Alias, inputs: list[Any], sizes: dict[str, int]) -> Any:
        """A result that is a view of an argument."""
        base = inputs[alias.input]
        if type(base) is np.ndarray:
            return alias_result(alias, inputs, sizes)
        return self.device.part_of(base, *alias_geometry(alias, sizes))
