"""The built-in backends: schedule a graph, print, build and load it; or take the next backend.

In: a captured call and its graph after all passes. Out: a `Compiled`, whose entry runs it:

    compile_native(captured, graph, Options(), ON_CPU, watch, False)   ->  Compiled(entry, ...)
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from npjit import _runtime
from npjit.api import plans
from npjit.api.compile import (
    NO_COMPILER,
    SEARCH,
    Compiled,
    Stopwatch,
    Unavailable,
    callable_entry,
    make_entry,
    result_spec,
)
from npjit.api.options import Options
from npjit.backends.reference import reference, weighed
from npjit.codegen import toolchain
from npjit.core.graph import Graph
from npjit.core.warn import warn_user
from npjit.frontend.trace import Captured
from npjit.ops.errors import NotCaptured
from npjit.ops.host import compute

if TYPE_CHECKING:
    from npjit.schedule.plan import OutputSpec, Plan

_runtime.set_host(compute)

_warned: set[str] = set()


def compile_native(
    captured: Captured,
    graph: Graph,
    options: Options,
    number: int,
    watch: Stopwatch,
    detail: bool,
) -> Compiled:
    """Compile with the built-in backend of the options, or the first of the search order that is
    there.

    `number`: the GPU of backend "cuda". `detail`: plan and source are wanted too, so that
    remembered plans are of no use.
    """
    backend = options.backend
    if backend == "numpy":
        return _reference(captured, graph, watch, mode="whole")
    if backend in (None, "cpp") and not detail:
        made = _recalled(captured, graph, options, watch)
        if made is not None:
            return made
    if backend == "cuda":
        from npjit.api.device import compile_cuda

        make = functools.partial(_device_plan, _without_values(captured), graph)
        return compile_cuda(captured, graph, make, watch, options, number, detail)
    plan = make_plan(captured, graph)
    watch.lap("schedule")
    for name in (str(backend),) if backend else SEARCH:
        try:
            return _BUILDERS[name](captured, graph, plan, options, watch)
        except Unavailable as e:
            if backend is not None:
                raise NotCaptured(str(e)) from None
            if e.told:
                _warn_once(str(e))
    raise AssertionError("the last backend of the search takes every plan")


def _compiler(options: Options) -> toolchain.Compiler | None:
    """The C++ compiler, as `fastmath` wants it."""
    found = toolchain.find_compiler()
    return found if found is None or options.fastmath is None else replace(found, contracts=True)


def _recalled(
    captured: Captured, graph: Graph, options: Options, watch: Stopwatch
) -> Compiled | None:
    """A version that this or another process has compiled before."""
    compiler = _compiler(options)
    if compiler is None:
        return None
    found = plans.recall(plans.plan_key(captured, graph, compiler.identity))
    watch.lap("recall")
    if found is None:
        return None
    native = _runtime.NativeObject(str(found.path))
    entry = make_entry(captured, native_specs(captured, graph, found.perms), native=native)
    watch.lap("load")
    return Compiled(entry, graph, "cpp", seconds=watch.seconds)


def make_plan(captured: Captured, graph: Graph, few_threads: bool = True) -> Plan:
    """The schedule, with results in the order of the captured leaves (fresh ones first)."""
    from npjit.schedule import NotScheduled, schedule
    from npjit.schedule.plan import OutputSpec

    try:
        plan = schedule(graph, [i.layout for i in captured.inputs], few_threads)
    except NotScheduled as e:
        raise NotCaptured(str(e)) from None
    extra = [
        OutputSpec("alias", w.dtype, w.shape, None, w.input, w.offset, w.strides)
        if kind == "alias"
        else OutputSpec("input", captured.inputs[w].node.dtype, (), None, w)
        for kind, w in captured.results
        if kind != "fresh"
    ]
    return with_outputs(plan, extra)


def _without_values(captured: Captured) -> Captured:
    """What a schedule needs of a captured call, which may be much later: none of its arrays."""
    inputs = tuple(replace(i, value=None) for i in captured.inputs)
    return replace(captured, inputs=inputs, steps=())


def _device_plan(captured: Captured, graph: Graph) -> tuple[Graph, Plan]:
    """The graph as it suits a GPU, and its schedule."""
    from npjit.transform.device import for_device

    graph = for_device(graph)
    return graph, make_plan(captured, graph, few_threads=False)


def with_outputs(plan: Plan, extra: list[OutputSpec]) -> Plan:
    """The plan with alias and input results appended, their stride variables among its sources."""
    from npjit.core.size import atoms
    from npjit.schedule.plan import Source

    sources = dict(plan.sources)
    for spec in extra:
        for size in (spec.offset, *spec.shape, *spec.strides):
            for v in atoms(size):
                if v not in sources:
                    position, axis = v.name[1:].split("_")
                    sources[v] = Source(int(position), "stride", int(axis))
    return replace(plan, outputs=(*plan.outputs, *extra), sources=sources)


def _reference(captured: Captured, graph: Graph, watch: Stopwatch, mode: str) -> Compiled:
    entry = callable_entry(captured, graph, reference(graph, None), mode)
    watch.lap("backend")
    return Compiled(entry, graph, "numpy", seconds=watch.seconds)


def _cpp(
    captured: Captured, graph: Graph, plan: Plan, options: Options, watch: Stopwatch
) -> Compiled:
    compiler = _compiler(options)
    if compiler is None:
        raise Unavailable(NO_COMPILER)
    from npjit.codegen.cpp_parts import print_parts

    units = print_parts(plan, compiler, toolchain.processors())
    watch.lap("print")
    try:
        path = toolchain.compile_object(*units, compiler=compiler)
    except toolchain.CompileError as e:
        raise Unavailable(f"the C++ compiler failed: {e}") from None
    watch.lap("compile")
    perms = tuple(o.perm for o in plan.outputs if o.kind == "fresh")
    plans.remember(plans.plan_key(captured, graph, compiler.identity), path, perms)
    native = _runtime.NativeObject(str(path))
    entry = make_entry(captured, native_specs(captured, graph, perms), native=native)
    watch.lap("load")
    return Compiled(entry, graph, "cpp", plan, "\n".join(units), watch.seconds)


def native_specs(captured: Captured, graph: Graph, perms: tuple[Any, ...]) -> list[Any]:
    """The runtime's specs: fresh results first, in the plan's order, then the others."""
    fresh = [what for kind, what in captured.results if kind == "fresh"]
    specs = [result_spec("fresh", k, graph.outputs, perms[k]) for k in fresh]
    rest = [(kind, what) for kind, what in captured.results if kind != "fresh"]
    return specs + [result_spec(kind, what, graph.outputs, None) for kind, what in rest]


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warn_user(text)


def _numba(
    captured: Captured, graph: Graph, plan: Plan, options: Options, watch: Stopwatch
) -> Compiled:
    """The plan's loops as Python, compiled by Numba: for machines without a C++ compiler."""
    from npjit.codegen.numba_prelude import NoNumbaText
    from npjit.codegen.numba_printer import PlanStopped, load_numba, print_numba

    try:
        loops = load_numba(plan, compute)
    except ImportError:
        raise Unavailable("no Numba was found: `pip install npjit[numba]`", told=False) from None
    except NoNumbaText as e:
        raise Unavailable(f"the numba backend: {e}") from None

    def run(inputs: list[Any]) -> list[Any]:
        try:
            results = loops(inputs)
        except PlanStopped as e:
            raise ArithmeticError(str(e)) from None
        return [weighed(r, n.type.weight) for r, n in zip(results, graph.outputs, strict=True)]

    watch.lap("backend")
    entry = callable_entry(captured, graph, run)
    return Compiled(entry, graph, "numba", plan, print_numba(plan), watch.seconds)


def _cython(
    captured: Captured, graph: Graph, plan: Plan, options: Options, watch: Stopwatch
) -> Compiled:
    from npjit.api.export import compile_cython

    return compile_cython(captured, graph, plan, watch)


def _numpy(
    captured: Captured, graph: Graph, plan: Plan, options: Options, watch: Stopwatch
) -> Compiled:
    """The last resort: such calls count as NumPy, for nothing was compiled."""
    del plan
    return _reference(captured, graph, watch, mode="numpy")


_BUILDERS = {"cpp": _cpp, "cython": _cython, "numba": _numba, "numpy": _numpy}
