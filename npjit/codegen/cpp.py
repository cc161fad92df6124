"""Plans as C++: one translation unit with everything that a compiled graph needs.

In: a `Plan`, and the functions of libmvec that its loops may call. Out: the text of a unit, which
exports npjit_prepare and npjit_run as runtime/abi.h says:

    print_cpp(plan, compiler.vector)
        abi.h, the paragraphs of the prelude that are used, then
        static void k0(const npjit_api* api, const f64* mem0, f64* mem1, i64 s0) { ... }
        extern "C" int npjit_prepare(const i64* in, i64* out) { ... }
        extern "C" int npjit_run(...) { ... k0(api, (f64*)in[0], (f64*)buffers[0], n0); ... }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from npjit.codegen.cpp_ahead import ask_ahead
from npjit.codegen.cpp_asked import AskedPrinter, with_questions
from npjit.codegen.cpp_columns import ColumnsPrinter
from npjit.codegen.cpp_form import Form, choose, is_point
from npjit.codegen.cpp_kernel import KernelPrinter
from npjit.codegen.cpp_outer import MapPrinter, RowsPrinter
from npjit.codegen.cpp_packed import printer_of
from npjit.codegen.cpp_point import PointPrinter
from npjit.codegen.cpp_push import push_folds
from npjit.codegen.cpp_skew import skew_rows
from npjit.codegen.cpp_small import SmallPrinter, is_small
from npjit.codegen.cpp_steps import StepsPrinter
from npjit.codegen.cpp_tall import TallPrinter
from npjit.codegen.cpp_trips import TripsPrinter, with_trips
from npjit.codegen.cpp_wave_printer import WavePrinter
from npjit.codegen.cpp_whole import WholePrinter
from npjit.codegen.prelude import prelude_text
from npjit.schedule.kernel import Kernel
from npjit.schedule.plan import (
    Bind,
    Call,
    Check,
    Contract,
    If,
    Launch,
    Loop,
    Plan,
    RowPass,
    Step,
    Sweep,
    While,
    bodies,
    every_step,
)
from npjit.schedule.row_pass import in_row_passes
from npjit.schedule.sweep import in_sweeps

# Two neighbours that are loaded as a vector wait long for a store of one of them.
_SINGLE = '#pragma GCC optimize("no-tree-slp-vectorize")'
# a loop whose trips do more steps than this gains nothing by having them inside
FEW = 4

_PRINTERS: dict[Form, type[KernelPrinter]] = {
    Form.POINT: PointPrinter,
    Form.MAP: MapPrinter,
    Form.ROWS: RowsPrinter,
    Form.COLUMNS: ColumnsPrinter,
    Form.WHOLE: WholePrinter,
}


def print_cpp(plan: Plan, vector: Collection[str]) -> str:
    """The translation unit of a plan, when vector loops may call these functions of libmvec."""
    plan, made = printers(plan)
    return with_prelude(_functions(plan, made), vector, is_scalar(made))


def with_prelude(text: str, vector: Collection[str], scalar: bool = False) -> str:
    """A unit of functions, behind what they need of the texts that every unit shares."""
    head = [_SINGLE] if scalar else []
    return "\n".join([*head, _abi(), prelude_text(text, vector), text])


def is_scalar(made: Collection[KernelPrinter]) -> bool:
    """Whether the loops of a plan are about single elements alone."""
    repeated = [p for p in made if p.is_repeated]
    return bool(repeated) and all(is_point(p.kernel) for p in repeated)


def print_functions(plan: Plan) -> str:
    """The plan's own part of the unit, without the texts that every unit shares."""
    return _functions(*printers(plan))


def _functions(plan: Plan, made: Sequence[KernelPrinter]) -> str:
    return "\n".join([*(p.print() for p in made), StepsPrinter(plan).print()])


def printers(plan: Plan) -> tuple[Plan, list[KernelPrinter]]:
    """The plan as it is printed, and a printer for each kernel, which knows where the plan launches
    it."""
    plan, waves = skew_rows(push_folds(ask_ahead(plan)))
    plan, asks = with_questions(plan)
    plan, carried = with_trips(plan)
    plan = in_sweeps(in_row_passes(plan))
    steps = list(every_step(plan.steps))
    loops = [body for s in steps if isinstance(s, Loop | While) for body in bodies(s)]
    inside = {s.kernel for body in loops for s in every_step(body) if isinstance(s, Launch)}
    launched = [s for s in steps if isinstance(s, Launch)]
    launches = Counter(s.kernel for s in launched)
    clashing = {s.kernel for s in launched if not _is_apart(plan.kernels[s.kernel], s)}
    together = [body for s in steps if isinstance(s, Sweep | RowPass) for body in bodies(s)]
    swept = {s.kernel for body in together for s in body if isinstance(s, Launch)}
    tight = _tight(plan, loops)
    found = []
    for i, kernel in enumerate(plan.kernels):
        name = f"k{i}"
        if not launches[i]:
            continue  # others have taken its place
        if i in carried:
            printer: KernelPrinter = TripsPrinter(kernel, name, carried[i])
        elif i in asks:
            printer = AskedPrinter(kernel, name, asks[i])
        elif i in waves:
            printer = WavePrinter(kernel, name, waves[i])
        elif i in inside - swept and not is_point(kernel) and is_small(kernel):
            printer = SmallPrinter(kernel, name)
        else:
            printer = _printer(kernel)(kernel, name)
        printer.is_repeated, printer.is_tight = i in inside, i in tight
        printer.launches = launches[i]
        printer.is_swept = i in swept
        printer.may_repeat = i not in clashing
        found.append(printer)
    return plan, found


def _tight(plan: Plan, loops: Iterable[tuple[Step, ...]]) -> set[int]:
    """The kernels of loops that do little else."""
    found: set[int] = set()
    for body in loops:
        busy = [s for s in _of_a_trip(body) if not _is_quick(plan, s)]
        if len(busy) <= FEW and not any(isinstance(s, Contract | Call) for s in busy):
            found.update(s.kernel for s in busy if isinstance(s, Launch))
    return found


def _is_apart(kernel: Kernel, launch: Launch) -> bool:
    """Whether a launch reads nothing of what it writes."""
    roles = [b.role for b in kernel.buffers if b.role != "row"]
    read = {p for p, role in zip(launch.buffers, roles, strict=True) if role != "out"}
    written = {p for p, role in zip(launch.buffers, roles, strict=True) if role != "in"}
    return read.isdisjoint(written)


def _of_a_trip(body: tuple[Step, ...]) -> Iterator[Step]:
    """The steps of a loop's body, those of the loops in it aside."""
    for step in body:
        yield step
        if isinstance(step, If):
            yield from _of_a_trip((*step.then, *step.other))


def _is_quick(plan: Plan, step: Step) -> bool:
    """Whether a step takes nanoseconds."""
    if isinstance(step, Launch):
        return is_point(plan.kernels[step.kernel])
    return isinstance(step, Check | Bind | If)


def print_kernel(kernel: Kernel, name: str) -> str:
    """The functions of one kernel; `name` is the one to call."""
    return _printer(kernel)(kernel, name).print()


def _printer(kernel: Kernel) -> type[KernelPrinter]:
    form = choose(kernel)
    may_share = len(kernel.outer) == 1 and all(b.role != "row" for b in kernel.buffers)
    if form is Form.COLUMNS and may_share:
        return TallPrinter
    return printer_of(kernel) if form is Form.LANES else _PRINTERS[form]


@cache
def _abi() -> str:
    return Path(__file__).with_name("prelude").joinpath("abi.h").read_text()
