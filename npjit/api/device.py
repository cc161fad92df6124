"""Compiled versions that run on a GPU.

In: a captured call, its plan, the GPU's number. Out: a `Compiled`. Its entry takes CuPy arrays as
they are and gives CuPy arrays; when all arrays live on the CPU it copies them to the GPU, and the
results back:

    npjit.jit(f)(cupy.ones(1000))                    # runs where the array lives
    npjit.jit(f, device="cuda")(np.ones(1000))       # there and back
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

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
from npjit.backends.cuda_device import Device
from npjit.backends.cuda_native import NativePlan
from npjit.backends.cuda_program import CheckFailed, Program
from npjit.backends.cuda_tune import fastest
from npjit.core.graph import Graph, Weight
from npjit.frontend.capture import ON_CPU
from npjit.frontend.results import Alias
from npjit.frontend.trace import Captured

if TYPE_CHECKING:
    from npjit.schedule.plan import Plan


def compile_cuda(
    captured: Captured, graph: Graph, plan: Plan, watch: Stopwatch, options: Options, number: int
) -> Compiled:
    """An entry that runs the plan on GPU `number`."""
    from npjit.backends.cuda import device

    on_gpu = device(number)
    choose = fastest if options.mode == "max-autotune" else None
    program = Program(plan, on_gpu, options.fastmath, choose)
    watch.lap("print")
    call = DeviceCall(captured, graph, program)
    specs = [_spec(kind, what, graph) for kind, what in captured.results]
    keeps = options.mode == "reduce-overhead"
    native = NativePlan(program, keeps).plan if call.is_native else None
    fits = program.fits if plan.guards else None
    captured = replace(captured, steps=_moved_constants(captured, on_gpu))
    entry = make_entry(captured, specs, call=call, device=native, fits=fits)
    source = program.module.source
    return Compiled(entry, graph, "cuda", plan, source, watch.seconds, program=program)


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

    def __init__(self, captured: Captured, graph: Graph, program: Program) -> None:
        self.results = captured.results
        self.weights = [n.type.weight for n in graph.outputs]
        self.program = program
        self.written = program.written_inputs()
        # whether results stay on the GPU: they go where the arrays come from
        self.on_device = any(i.device != ON_CPU for i in captured.inputs)
        # whether the runtime may do without this: device arrays and numbers in, arrays out
        self.is_native = self.on_device and all(
            kind == "input" or (kind == "fresh" and self.weights[what] is not Weight.WEAK)
            for kind, what in captured.results
        )
        self._graph = graph

    def __call__(self, inputs: list[Any]) -> list[Any] | None:
        device = self.program.device
        with device.active():
            arrays = [device.uploaded(v) if type(v) is np.ndarray else v for v in inputs]
            try:
                fresh = self.program(arrays)
            except CheckFailed:
                return None  # the function itself answers the call
            for position in self.written:
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
        found = self.program.device.downloaded(array)
        if weight is Weight.ARRAY:
            return found
        return found.item() if weight is Weight.WEAK else found[()]

    def _alias(self, alias: Alias, inputs: list[Any], sizes: dict[str, int]) -> Any:
        """A result that is a view of an argument."""
        base = inputs[alias.input]
        if type(base) is np.ndarray:
            return alias_result(alias, inputs, sizes)
        return self.program.device.part_of(base, *alias_geometry(alias, sizes))
