"""Looking inside a compiled function: its texts, and a report on what happened and why.

In: a `Jitted` and the arguments of a call. Out: a `Lowered`, or an `Explanation`:

    softmax: one graph, backend cpp
      1 kernel, 0 matrix products
      ...
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.api.compile import Compiled, Stopwatch, compile_captured
from npjit.api.guards import in_words
from npjit.api.options import CaptureError
from npjit.api.placement import adopted
from npjit.core.graph import Graph
from npjit.core.size import substitute
from npjit.frontend.trace import Failed
from npjit.ops.errors import NotCaptured

if TYPE_CHECKING:
    from npjit.api.jitted import Jitted


class Lowered:
    """A function compiled for given arguments, not run.

    >>> import numpy as np, npjit
    >>> low = npjit.jit(lambda x: np.sin(x) * x).lower(np.zeros(100))
    >>> print(low.as_text("graph"))
    graph(%0: f64[n0])
      %1: f64[n0] = sin %0
      %2: f64[n0] = multiply %1 %0
      return %2
    """

    def __init__(self, jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        watch = Stopwatch()
        args, kwargs = adopted(args, kwargs) or (args, kwargs)
        try:
            self.captured = jitted.capture(args, kwargs)
            watch.lap("trace")
            self.compiled: Compiled = compile_captured(
                self.captured, jitted.options, watch, detail=True
            )
        except NotCaptured as e:
            raise CaptureError(f"{jitted.label} cannot be captured: {e}") from None
        except Exception as e:
            error = e.error if isinstance(e, Failed) else e
            reason = f"the call raises {type(error).__name__}: {error}"
            raise CaptureError(f"{jitted.label} cannot be captured: {reason}") from error

    @property
    def graph(self) -> Graph:
        """The graph after all passes."""
        return self.compiled.graph

    def as_text(self, stage: str = "graph") -> str:
        """The text of a stage.

        "graph" (after all passes), "kernels" (the plan) or "cpp" (the generated code; "cuda" for
        calls on a GPU).
        """
        texts = {
            "graph": lambda: str(self.compiled.graph),
            "kernels": lambda: str(self.compiled.plan),
            "cuda" if self.compiled.backend == "cuda" else "cpp": lambda: self.compiled.source,
        }
        if stage not in texts:
            raise ValueError(f"no text for {stage!r}; there are {', '.join(texts)}")
        if stage != "graph" and self.compiled.plan is None:
            raise ValueError(f"the {self.compiled.backend} backend makes no {stage} text")
        return texts[stage]()


@dataclass
class Explanation:
    """What `explain` found; prints as a report."""

    name: str
    backend: str = ""
    kernels: int = 0
    contracts: int = 0
    guards: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    bytes_moved: int = 0
    # on a GPU: how long memory takes for them, and what each step moves
    bytes_time: str = ""
    traffic: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if self.breaks:
            count = _count(len(self.parts), "compiled part")
            how = f"runs in {count}, Python elsewhere" if self.parts else "runs as NumPy"
            breaks = [f"  Python: {b}" for b in self.breaks]
            return "\n".join(
                [f"{self.name}: {how}", *breaks, *(f"  part: {p}" for p in self.parts)]
            )
        total = sum(self.seconds.values())
        stages = ", ".join(f"{k} {1e3 * v:.1f} ms" for k, v in self.seconds.items())
        lines = [
            f"{self.name}: one graph, backend {self.backend}",
            f"  {_count(self.kernels, 'kernel')}, {_count(self.contracts, 'matrix product')}",
            f"  at least {self.bytes_moved:,} bytes moved by a call (inputs read, results written)"
            f"{self.bytes_time}",
            f"  compiled in {1e3 * total:.1f} ms: {stages}",
        ]
        lines += [f"  {t}" for t in self.traffic]
        lines += [f"  guard: {g}" for g in self.guards]
        lines += [f"  not fused: {r}" for r in self.refusals]
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def explain(jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    """Compile a call and report on it; what cannot be captured is reported, not raised."""
    try:
        low = Lowered(jitted, args, kwargs)
    except CaptureError as e:
        reason = str(e).removeprefix(f"{jitted.label} cannot be captured: ")
        return _in_parts(jitted, reason, e.__context__)
    made = low.compiled
    report = Explanation(jitted.label, made.backend, seconds=made.seconds)
    report.guards = in_words(jitted.function, made)
    inputs = [i.value for i in low.captured.inputs]
    report.bytes_moved = _bytes(made.graph, inputs)
    if made.plan is not None:
        from npjit.schedule.plan import Contract, Launch, every_step

        steps = list(every_step(made.plan.steps))
        report.kernels = sum(isinstance(s, Launch) for s in steps)
        report.contracts = sum(isinstance(s, Contract) for s in steps)
        report.refusals = list(made.plan.refusals)
    if made.program is not None:
        from npjit.api.traffic import microseconds, traffic

        report.bytes_time = f": {microseconds(made.program, report.bytes_moved)}"
        report.traffic = traffic(made.program, inputs)
    return report


def _in_parts(jitted: Jitted, reason: str, error: BaseException | None) -> Explanation:
    """A report on a function that is not captured whole: the breaks met so far, and its parts."""
    from npjit.api.broken import cut_apart

    if isinstance(error, NotCaptured):
        cut_apart(jitted, error)
    report = Explanation(jitted.label, breaks=[reason])
    if jitted.parts is not None:
        report.breaks = list(dict.fromkeys([reason, *jitted.parts.breaks()]))
        report.parts = jitted.parts.places()
    return report


def _bytes(graph: Graph, inputs: list[Any]) -> int:
    sizes = graph.bind(inputs)
    total = 0
    for n in (*graph.inputs, *graph.outputs, *(w for _, w in graph.writes)):
        shape = [substitute(s, sizes) for s in n.shape]
        total += int(np.prod(shape, dtype=np.int64)) * n.dtype.itemsize
    return total
