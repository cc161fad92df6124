"""Many programs in one translation unit: compiling them apart would take most of the time.

In: programs. Out: for each a `Ran`: npjit's outcome with how its call ran, or the reason why it was
not compiled. Every copy of the shared object has another number in place of MARK, which says whose
functions it exports.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from npjit import _runtime
from npjit.api.compile import callable_entry, make_entry
from npjit.api.jit import jit
from npjit.api.jitted import Jitted
from npjit.api.native import make_plan, native_specs
from npjit.backends.reference import reference
from npjit.codegen import toolchain
from npjit.codegen.cpp import _abi, print_functions
from npjit.codegen.prelude import prelude_text
from npjit.core.op import CONTROL, Kind
from npjit.frontend.trace import Captured, Failed
from npjit.ops.errors import NotCaptured
from npjit.schedule import NotScheduled
from npjit.schedule.plan import Plan
from npjit.transform.simplify import simplify
from tests.fuzz.program import Outcome, Program

MARK = b"whose functions:"


@dataclass
class Ran:
    """One program's run: `reason` says why it ran as NumPy, `defect` what broke inside npjit."""

    outcome: Outcome | None = None
    reason: str = ""
    defect: str = ""


@dataclass
class _Waiting:
    """A captured program that waits for its code."""

    jitted: Jitted
    captured: Captured
    graph: Any
    plan: Plan | None
    text: str


def run_all(
    programs: Sequence[Program], make: Callable[..., Any] = jit, optimise: str = "-O1"
) -> list[Ran]:
    """Capture, compile and call every program, by C++; `optimise` "" is the reference executor."""
    runs = [Ran() for _ in programs]
    waiting: dict[int, _Waiting] = {}
    for k, program in enumerate(programs):
        try:
            waiting[k] = _prepare(program, make, bool(optimise))
        except (NotCaptured, NotScheduled) as e:
            cause = e.__cause__
            runs[k].reason = str(getattr(e, "reason", e)) if cause is None else repr(cause)
        except Exception as e:
            error = e.error if isinstance(e, Failed) else e
            runs[k].reason = f"{type(error).__name__}: {error} at {_place(error)}"
            runs[k].defect = "" if _raises(program, error) else runs[k].reason
    if optimise:
        _load({k: w for k, w in waiting.items() if w.jitted is not None}, optimise, runs)
    for k, w in waiting.items():
        if not runs[k].defect:
            _call(programs[k], w, runs[k])
    return runs


def _call(program: Program, w: _Waiting, ran: Ran) -> None:
    ran.outcome = program.call(w.jitted)
    if w.jitted.counts()["whole"]:
        return
    ran.reason = "a check of the compiled code failed"
    if not any(n.op.kind in _CHECKING for n in w.graph.nodes) and ran.outcome.error is None:
        ran.defect = "a fresh entry does not take the call that it was made for"


_CHECKING = frozenset([Kind.CHECK, *CONTROL])


def _raises(program: Program, e: Exception) -> bool:
    """Whether an exception met while tracing is the program's own; NumPy may be less strict with
    read-only arrays."""
    if isinstance(e, NameError | ZeroDivisionError):
        return True  # also in a branch that Python does not take
    if _innermost(e).tb_frame.f_code.co_name == "raise_":
        return True  # its own assert or raise; an earlier line may raise in its place
    plain = program.call(program.function()).error
    return isinstance(e, type(plain)) if plain is not None else "read-only" in str(e)


def _innermost(e: BaseException) -> TracebackType:
    trace = e.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    return trace


def _place(e: BaseException) -> str:
    trace = _innermost(e)
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"


def _prepare(program: Program, make: Callable[..., Any], native: bool) -> _Waiting:
    jitted = make(program.function())
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        captured = jitted.capture(program.arguments(), {})
    graph = simplify(captured.graph)
    if not native:
        jitted.add(callable_entry(captured, graph, reference(graph, None), "whole"))
        return _Waiting(jitted, captured, graph, None, "")
    plan = make_plan(captured, graph)
    return _Waiting(jitted, captured, graph, plan, print_functions(plan))


def _load(waiting: dict[int, _Waiting], optimise: str, runs: list[Ran]) -> None:
    """Build the programs' unit and add their entries; one by one if the compiler refuses it."""
    compiler = toolchain.find_compiler()
    assert compiler is not None, "the fuzzer needs a C++ compiler"
    if not waiting:
        return
    source = _unit([w.text for w in waiting.values()], compiler.vector)
    try:
        content = toolchain.compile_object(source, optimise=optimise).read_bytes()
    except toolchain.CompileError as e:
        if len(waiting) == 1:
            runs[next(iter(waiting))].defect = f"CompileError: {e}"
            return
        for k, w in waiting.items():
            _load({k: w}, optimise, runs)
        return
    place = content.index(MARK) + len(MARK)
    with tempfile.TemporaryDirectory() as folder:
        for number, w in enumerate(waiting.values()):
            own = Path(folder) / f"unit{number}.so"
            own.write_bytes(content[:place] + number.to_bytes(4, "little") + content[place + 4 :])
            native = _runtime.NativeObject(str(own))
            assert w.plan is not None
            perms = tuple(o.perm for o in w.plan.outputs if o.kind == "fresh")
            specs = native_specs(w.captured, w.graph, perms)
            w.jitted.add(make_entry(w.captured, specs, native=native))


def _unit(texts: list[str], vector: Any) -> str:
    """One unit: each program's functions in a namespace of its own, and two that choose among
    them."""
    parts = []
    for k, text in enumerate(texts):
        own = text.replace('extern "C" ', "")
        parts.append(f"namespace p{k} {{\n{own}\n}}")
    count = range(len(texts))
    tail = _CHOOSING.replace("PREPARES", ", ".join(f"p{k}::npjit_prepare" for k in count))
    tail = tail.replace("RUNS", ", ".join(f"p{k}::npjit_run" for k in count))
    return "\n".join([_abi(), prelude_text("\n".join(texts), vector), *parts, tail])


_CHOOSING = """
struct choice { char mark[16]; int number; };
__attribute__((used)) static const volatile choice chosen = {
    {MARK_CHARACTERS}, 0};
static int (*const prepares[])(const i64*, i64*) = {PREPARES};
static int (*const runs[])(const npjit_api*, const i64*, const i64*, char* const*, char*) = {RUNS};
extern "C" int npjit_prepare(const i64* in, i64* out) { return prepares[chosen.number](in, out); }
extern "C" int npjit_run(const npjit_api* api, const i64* in, const i64* out,
                         char* const* buffers, char* arena) {
  return runs[chosen.number](api, in, out, buffers, arena);
}
""".replace("MARK_CHARACTERS", ", ".join(str(b) for b in MARK))
