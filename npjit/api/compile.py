"""From a captured call to an Entry of the Dispatcher: passes, backend, packing of results."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from npjit import _runtime
from npjit.api import logs
from npjit.api.options import Options
from npjit.api.placement import place
from npjit.backends import registry
from npjit.backends.reference import weighed
from npjit.core.graph import Graph, Node, Weight
from npjit.core.size import Size, atoms, substitute
from npjit.frontend.capture import ON_CPU
from npjit.frontend.results import Alias
from npjit.frontend.trace import Captured
from npjit.transform.abreast import rows_abreast
from npjit.transform.behind import sums_behind
from npjit.transform.panels import in_panels
from npjit.transform.simplify import simplify
from npjit.transform.spread import spread
from npjit.transform.whole_products import with_whole_products

# the last word of the search order: C++, then Numba, then NumPy itself
SEARCH = ("cpp", "numba", "numpy")
NO_COMPILER = "no C++ compiler was found: install g++ or `pip install npjit[compiler]`"


@dataclass
class Compiled:
    """One compiled version: the runtime's entry, and what `explain` and `lower` show of it."""

    entry: Any
    graph: Graph
    backend: str
    plan: Any = None
    source: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    # the entry's guards, and which of them fetch the graph's inputs
    steps: tuple[Any, ...] = ()
    inputs: tuple[int, ...] = ()
    # on a GPU: its `Program`
    program: Any = None


class Unavailable(Exception):
    """A built-in backend cannot take a plan, and why. `told`: a user should hear of it also where
    the next backend answers.
    """

    def __init__(self, reason: str, told: bool = True) -> None:
        super().__init__(reason)
        self.told = told


class Stopwatch:
    """Seconds per stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        """Book the time since the last lap under `stage`."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now


def compile_captured(
    captured: Captured, options: Options, watch: Stopwatch, detail: bool = False
) -> Compiled:
    """Run passes and backend, and make the Entry; `detail`: plan and source text are wanted."""
    graph = simplify(captured.graph)
    on_cpu = all(i.device == ON_CPU for i in captured.inputs)
    number = place(captured, options.device)
    whole = with_whole_products(graph) if number == ON_CPU else graph
    wider = sums_behind(in_panels(spread(rows_abreast(whole))))
    if wider is not graph:
        graph = simplify(wider)
    watch.lap("simplify")
    if logs.checking() and on_cpu:
        logs.check_pass("simplify", captured.graph, graph, [i.value for i in captured.inputs])
    made = _compile(captured, graph, options, number, watch, detail or logs.wants_detail())
    made.steps, made.inputs = captured.steps, tuple(i.step for i in captured.inputs)
    return made


def _compile(
    captured: Captured, graph: Graph, options: Options, number: int, watch: Stopwatch, detail: bool
) -> Compiled:
    """`number`: where it will run."""
    backend = options.backend
    if number != ON_CPU:
        backend = "cuda"
    if callable(backend):
        return _with_callable(captured, graph, backend, _name_of(backend), watch)
    if backend is not None and backend not in registry.BUILT_IN:
        return _with_callable(captured, graph, registry.find(backend), backend, watch)
    from npjit.api.native import compile_native

    return compile_native(captured, graph, replace(options, backend=backend), number, watch, detail)


def _name_of(backend: Callable[..., Any]) -> str:
    return getattr(backend, "__name__", type(backend).__name__)


def _with_callable(
    captured: Captured, graph: Graph, backend: Callable[..., Any], name: str, watch: Stopwatch
) -> Compiled:
    run = backend(graph, [n.type for n in graph.inputs])
    watch.lap("backend")
    entry = callable_entry(captured, graph, _delivering(run, graph, name))
    return Compiled(entry, graph, name, seconds=watch.seconds)


def _delivering(
    run: Callable[[list[Any]], Any], graph: Graph, name: str
) -> Callable[[list[Any]], list[Any]]:
    """A backend's function with its results as NumPy would give them: of the right type, and no
    two in the same memory.
    """

    def deliver(inputs: list[Any]) -> list[Any]:
        seen = [id(i) for i in inputs]
        found = []
        for k, (value, node) in enumerate(zip(run(inputs), graph.outputs, strict=True)):
            array = np.asarray(value)
            if (array.dtype, array.ndim) != (node.dtype, len(node.shape)):
                given = f"{array.dtype} with {array.ndim} axes"
                raise TypeError(f"backend {name!r}: result {k} is {given}, not {node.type}")
            if node.type.weight is not Weight.ARRAY or array.base is not None or id(array) in seen:
                array = weighed(array, node.type.weight)
            seen.append(id(array))
            found.append(array)
        return found

    return deliver


def callable_entry(
    captured: Captured, graph: Graph, run: Callable[[list[Any]], Any], mode: str = "whole"
) -> Any:
    """An Entry that calls a Python function of the inputs; `mode` is what its calls count as."""
    results = captured.results
    has_aliases = any(kind == "alias" for kind, _ in results)

    def call(inputs: list[Any]) -> list[Any] | None:
        try:
            fresh = run(inputs)
        except ArithmeticError:
            return None  # a failed check: NumPy answers the call
        sizes = variables(graph, inputs) if has_aliases else {}
        out = []
        for kind, what in results:
            if kind == "fresh":
                out.append(fresh[what])
            elif kind == "alias":
                out.append(alias_result(what, inputs, sizes))
        return out

    specs = [result_spec(kind, what, graph.outputs, None) for kind, what in results]
    fits = size_predicate(graph) if graph.guards else None
    return make_entry(captured, specs, mode, call=call, fits=fits)


_RELATIONS = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, "<": operator.lt}


def size_predicate(graph: Graph) -> Callable[[list[Any]], bool]:
    """Whether inputs pass the graph's size guards; what `npjit_prepare` is for native code."""

    def fits(inputs: list[Any]) -> bool:
        sizes = graph.bind(inputs)
        return all(
            _RELATIONS[g.relation](substitute(g.a, sizes), substitute(g.b, sizes))
            for g in graph.guards
        )

    return fits


def variables(graph: Graph, inputs: list[Any]) -> dict[str, int]:
    """Every size variable's value by name, strides (t<input>_<axis>) included."""
    values = {v.name: n for v, n in graph.bind(inputs).items()}
    for position, node in enumerate(graph.inputs):
        if node.type.weight is Weight.ARRAY:
            array = inputs[position]
            for axis, stride in enumerate(array.strides):
                values[f"t{position}_{axis}"] = stride // array.itemsize
    return values


def alias_geometry(
    alias: Alias, sizes: dict[str, int]
) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """Shape, offset and strides of a view, in elements."""

    def value(size: Size) -> int:
        found = substitute(size, {v: sizes[v.name] for v in atoms(size)})
        assert isinstance(found, int)
        return found

    strides = tuple(map(value, alias.strides))
    return tuple(map(value, alias.shape)), value(alias.offset), strides


def alias_result(alias: Alias, inputs: list[Any], sizes: dict[str, int]) -> np.ndarray:
    """A result that is a view of an input's memory."""
    base = inputs[alias.input]
    shape, offset, steps = alias_geometry(alias, sizes)
    if 0 in shape or not base.size:
        return np.empty(shape, base.dtype)
    strides = tuple(s * base.itemsize for s in steps)
    corner = _element_at(base, offset * base.itemsize)
    writeable = alias.writeable and base.flags.writeable
    return as_strided(corner, shape, strides, writeable=writeable)


def _element_at(base: np.ndarray, offset: int) -> np.ndarray:
    """The one-element view at a byte offset from the array's first element."""
    place = [0] * base.ndim
    for axis in sorted(range(base.ndim), key=lambda a: -abs(base.strides[a])):
        stride = base.strides[axis]
        step = min(base.shape[axis] - 1, offset // stride) if stride and offset * stride > 0 else 0
        offset -= step * stride
        place[axis] = step
    return base[tuple(slice(i, i + 1) for i in place)]


PYTHON_LETTERS = {"b": "b", "i": "i", "u": "i", "f": "f", "c": "c"}


def result_spec(kind: str, what: Any, outputs: tuple[Node, ...], perm: Any) -> tuple[Any, ...]:
    """The runtime's spec of one result leaf."""
    if kind == "input":
        return ("input", what)
    if kind == "alias":
        return ("alias", what.input, what.dtype.num, len(what.shape), what.writeable)
    node = outputs[what]
    if node.type.weight is Weight.WEAK:
        return ("python", PYTHON_LETTERS[node.dtype.kind])
    if node.type.weight is Weight.SCALAR:
        return ("npscalar", node.dtype.num)
    return ("array", node.dtype.num, len(node.shape), perm)


def make_entry(captured: Captured, specs: list[Any], mode: str = "whole", **how: Any) -> Any:
    """The runtime's Entry with the captured guards."""
    return _runtime.Entry(
        mode=mode,
        npositional=captured.npositional,
        kwnames=captured.kwnames,
        steps=captured.steps,
        inputs=tuple(i.step for i in captured.inputs),
        outputs=tuple(specs),
        tree=captured.tree,
        disjoint=captured.disjoint,
        **how,
    )
