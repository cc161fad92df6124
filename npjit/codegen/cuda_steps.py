"""Reductions that several blocks share: the kernel cut in steps, each a function of its own.

In: a `Kernel`. Out: its `Step`s, the values that later steps need, and the scratch memory for both.
A step is one phase with axes and the phases without axes behind it. Its blocks leave what they hold
in `parts`; the last block to finish joins them, runs the phases without axes and keeps in
`save_v<n>` what later steps need.

    mean and var of everything: step 0 sums and divides, step 1 sums squares of differences from
    save_v4 and divides
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npjit.codegen.cpp_reduce import Fold
from npjit.codegen.cpp_types import stored
from npjit.codegen.cpp_values import operands
from npjit.codegen.cuda_kernel import CudaPrinter, merged
from npjit.codegen.cuda_lanes import LanePrinter
from npjit.codegen.cuda_launch import Request
from npjit.schedule.kernel import Const, Kernel, Phase, Reduce, Store

# additions in a row before a partial sum is put aside
RUN = 16
# loads of a thread that are under way together
_BATCH = 4
# bytes of one cell of a fold and of one saved number, at most
_CELL = 16


@dataclass(frozen=True)
class Step:
    """A looping phase (None: only phases without axes) and the phases without axes behind it, as
    one."""

    number: int
    loop: Phase | None
    finish: Phase


class StepsPrinter(CudaPrinter):
    """What rows and columns share."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        super().__init__(kernel, name)
        self.leading, self.steps = cut(kernel)
        self.saved = [saved_after(self, s) for s in self.steps]
        self.fold_counts = [0] * len(self.steps)

    # ------------------------------------------------------------ memory

    def scratch(self) -> list[str]:
        """Parameters for scratch memory."""
        found = [
            f"{kind}* save_{name}" for names in self.saved for kind, name in self._names(names)
        ]
        rows = [(i, b) for i, b in enumerate(self.kernel.buffers) if b.role == "row"]
        found += [f"{stored(b.dtype)}* rows{i}" for i, b in rows]
        return [*found, "char* parts", "u32* counters"]

    def regions(self, request: Request, splits: int) -> tuple[int, ...]:
        """Their sizes in bytes, counters left out."""
        groups = request.items(self.kernel.outer)
        found = [_CELL * groups for names in self.saved for _ in self._names(names)]
        for b in self.kernel.buffers:
            if b.role == "row":
                found.append(groups * request.value(b.length) * b.dtype.itemsize)
        cells = max(self.fold_counts, default=0)
        return (*found, groups * splits * cells * _CELL if splits > 1 else 0)

    def _names(self, numbers: Sequence[int]) -> Iterator[tuple[str, str]]:
        for n in numbers:
            for kind, name in self.values.names(n):
                yield ("u8" if kind == "b1" else kind, name)

    # ------------------------------------------------------------ values between steps

    def imports(self, step: Step, printer: LanePrinter, at: str) -> list[str]:
        """Statements that read what earlier steps saved for position `at` and this phase uses."""
        before = {n for names in self.saved[: step.number] for n in names}
        used = [n for n in printer.out.imported if n in before]
        return [
            f"const {kind} {name} = save_{name}[{at}];"
            for n in used
            for kind, name in self.values.names(n)
        ]

    def exports(self, step: Step, at: str) -> list[str]:
        """Statements that keep this step's values for later ones."""
        return [f"save_{name}[{at}] = {name};" for _, name in self._names(self.saved[step.number])]

    def prologue(self) -> Phase:
        """The phases without axes in front of the first loop, without their stores."""
        return merged(self.leading, stores=False)

    def finishing(self, step: Step) -> Phase:
        """What runs when the step's reductions are known; the first step does the leading phases'
        stores too."""
        first = merged(self.leading) if step.number == 0 else Phase((), ())
        return merged([first, step.finish])

    def needed_from(self, phase: Phase, printer: LanePrinter) -> list[int]:
        """Values of `phase` that the printed one uses."""
        own = {n for n, i in phase.body if not isinstance(i, Store | Const)}
        return [n for n in printer.out.imported if n in own]

    def note(self, step: Step, folds: Sequence[Fold]) -> None:
        """Remember how much a step's blocks leave."""
        self.fold_counts[step.number] = sum(len(f.cells) for f in folds)


def cut(kernel: Kernel) -> tuple[list[Phase], list[Step]]:
    """The phases in front of the first loop, and the steps; without loops there is one step."""
    leading: list[Phase] = []
    found: list[tuple[Phase | None, list[Phase]]] = []
    for phase in kernel.phases:
        if phase.axes:
            found.append((phase, []))
        elif found:
            found[-1][1].append(phase)
        else:
            leading.append(phase)
    steps = [Step(i, loop, merged(rest)) for i, (loop, rest) in enumerate(found)]
    return leading, steps or [Step(0, None, Phase((), ()))]


def in_batches(index: str, stop: str, body: str) -> list[str]:
    """A loop by `step` up to `stop`; the loads of a batch are under way together, as no branch
    stands between them."""
    last = f"{index} + {_BATCH - 1} * step"
    return [
        f"for (; {last} < {stop}; {index} += {_BATCH} * step) {{",
        "#pragma unroll",
        f"  for (i32 k = 0; k < {_BATCH}; ++k) {body.format(f'{index} + k * step')}",
        "}",
        f"for (; {index} < {stop}; {index} += step) {body.format(index)}",
    ]


def saved_after(printer: StepsPrinter, step: Step) -> list[int]:
    """Values of this step that later steps use."""
    own = [n for n, i in step.finish.body if not isinstance(i, Store | Const)]
    if step.loop is not None:
        own += [n for n, i in step.loop.body if isinstance(i, Reduce)]
    used: set[int] = set()
    for later in printer.steps[step.number + 1 :]:
        for phase in (later.loop, later.finish):
            if phase is not None:
                used |= {a for _, i in phase.body for a in operands(i)}
    return [n for n in own if n in used]
