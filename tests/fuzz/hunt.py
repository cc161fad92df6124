"""Running many examples, in child processes: a crash of compiled code is found like any other
difference.

In: a `Part` and a range of seeds. Out: printed findings, each with the smallest program that still
shows it, and a `Tally`.
"""

from __future__ import annotations

import functools
import multiprocessing
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import npjit
from tests.fuzz import device
from tests.fuzz.batch import Ran, run_all
from tests.fuzz.compare import LESSER, difference
from tests.fuzz.control import control_program
from tests.fuzz.gradients import gradient_difference, gradient_program
from tests.fuzz.program import Outcome, Program
from tests.fuzz.straight import straight_program

BATCH = 50
PATIENCE = 90.0
SHRINKING = 25.0
# so many findings that begin alike are made small and shown
SHOWN = 2


@dataclass(frozen=True)
class Part:
    """A kind of programs, and how they are run ("" is the reference executor)."""

    name: str
    generate: Callable[[random.Random], Program]
    optimise: str = "-O1"
    make: Callable[..., Any] = npjit.jit
    differ: Callable[[Program, Outcome], str] | None = None
    # "there and back": NumPy's arrays on a GPU; "arrays": the GPU's own
    gpu: str = ""
    # examples for each child process
    batch: int = BATCH


def _gradient(f: Callable[..., Any], **options: Any) -> Any:
    return npjit.grad(f, argnums=tuple(range(f.__code__.co_argcount)), **options)


def _loss_of_gradient(f: Callable[..., Any], backend: str | None) -> Callable[..., Any]:
    """A number made of a gradient."""
    first = npjit.grad(f, argnums=tuple(range(f.__code__.co_argcount)), backend=backend)

    def loss(*args: Any) -> Any:
        return sum(np.sum(np.sin(g)) for g in first(*args))

    return loss


def _second_gradient(f: Callable[..., Any]) -> Any:
    return npjit.grad(_loss_of_gradient(f, None), argnums=tuple(range(f.__code__.co_argcount)))


def _second_difference(program: Program, mine: Outcome) -> str:
    return gradient_difference(program, mine, _loss_of_gradient(program.function(), "numpy"))


def _gradients(name: str, loops: bool, optimise: str) -> Part:
    generate = functools.partial(gradient_program, loops=loops)
    return Part(name, generate, optimise, _gradient, gradient_difference)


def _array_difference(program: Program, mine: Outcome) -> str:
    """Differences of a call with device arrays."""
    plain = device.without_places(program.call(program.function()))
    return difference(program, plain, device.without_places(mine))


HOST = {
    "straight": Part("straight", straight_program),
    "straight-reference": Part("straight-reference", straight_program, ""),
    "control": Part("control", control_program),
    "control-reference": Part("control-reference", control_program, ""),
    "gradients": _gradients("gradients", False, "-O1"),
    "gradients-reference": _gradients("gradients-reference", False, ""),
    "gradients-loops": _gradients("gradients-loops", True, "-O1"),
    "gradients-loops-reference": _gradients("gradients-loops-reference", True, ""),
    "second": Part("second", gradient_program, "", _second_gradient, _second_difference),
}


def _on_gpu(part: Part) -> dict[str, Part]:
    """A kind of programs on a GPU, with both kinds of arrays."""
    there = replace(part, name=f"cuda-{part.name}", gpu="there and back", batch=10)
    differ = part.differ or _array_difference
    arrays = replace(there, name=f"cupy-{part.name}", gpu="arrays", differ=differ)
    return {p.name: p for p in (there, arrays)}


PARTS = HOST | {
    name: part
    for kind in ("straight", "control", "gradients", "gradients-loops")
    for name, part in _on_gpu(HOST[kind]).items()
}


@dataclass
class Tally:
    """How many examples ran, and why some did not run compiled."""

    examples: int = 0
    compiled: int = 0
    raised: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    # an example of each reason
    seeds: dict[str, int] = field(default_factory=dict)
    findings: list[tuple[int, str]] = field(default_factory=list)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [
            f"{self.examples} examples, {self.compiled} by compiled code, "
            f"{self.raised} raised as NumPy does, {len(self.findings)} differ"
        ]
        lines += [f"{n:6d}  {kind}: {text}" for (kind, text), n in self.kinds.items()]
        for reason, n in self.reasons.most_common(60):
            lines.append(f"{n:6d}  {reason} (seed {self.seeds[reason]})")
        return "\n".join(lines)


def hunt(part: Part, first: int, examples: int, seconds: float, most: int) -> Tally:
    """Run examples until the time is over or enough differ."""
    tally = Tally()
    end = time.monotonic() + seconds
    for start in range(first, first + examples, part.batch):
        if time.monotonic() > end or len(tally.findings) >= most:
            break
        seeds = range(start, min(start + part.batch, first + examples))
        _add(part, tally, list(seeds))
        if tally.examples % 1000 == 0:
            print(str(tally).splitlines()[0], flush=True)
    print(tally, flush=True)
    return tally


def _add(part: Part, tally: Tally, seeds: list[int]) -> None:
    found = _in_child(_judge_seeds, part, seeds)
    if isinstance(found, str):
        if len(seeds) > 1:
            known = len(tally.findings)
            for half in (seeds[: len(seeds) // 2], seeds[len(seeds) // 2 :]):
                _add(part, tally, half)
            if len(tally.findings) == known:
                tally.findings.append((seeds[0], found))
                tally.kinds[("crash", "only in a batch")] += 1
                print(f"--- seeds {seeds[0]} to {seeds[-1]}, only together: {found}", flush=True)
            return
        found = [("crash", found)]
    for seed, (kind, text) in zip(seeds, found, strict=True):
        tally.examples += 1
        if kind == "ok":
            tally.compiled += 1
        elif kind == "raised":
            tally.raised += 1
        elif kind == "numpy":
            tally.reasons[text[:150]] += 1
            tally.seeds.setdefault(text[:150], seed)
        elif kind in LESSER:
            tally.reasons[f"another {kind}"] += 1
            tally.seeds.setdefault(f"another {kind}", seed)
        else:
            tally.kinds[(kind, text[:40])] += 1
            tally.findings.append((seed, text))
            if tally.kinds[(kind, text[:40])] <= SHOWN:
                program = part.generate(random.Random(seed))
                small, text = shrink(part, program, kind, text)
                print(f"--- seed {seed}: {kind}: {text}\n{small}\n", flush=True)


def _judge_seeds(part: Part, seeds: list[int]) -> list[tuple[str, str]]:
    return judge(part, [part.generate(random.Random(seed)) for seed in seeds])


def judge(part: Part, programs: list[Program]) -> list[tuple[str, str]]:
    """For each program: ("ok" | "raised" | "numpy" | "wrong" | "defect", what)."""
    if part.gpu:
        runs = device.run_all(programs, part.make, part.gpu == "arrays")
    else:
        runs = run_all(programs, part.make, part.optimise)
    return [_verdict(part, program, ran) for program, ran in zip(programs, runs, strict=True)]


def _verdict(part: Part, program: Program, ran: Ran) -> tuple[str, str]:
    if ran.defect:
        return "defect", ran.defect
    if ran.outcome is not None:
        if part.differ is not None:
            text = part.differ(program, ran.outcome)
        else:
            text = difference(program, program.call(program.function()), ran.outcome)
        if text:
            return next((kind for kind in LESSER if kind in text), "wrong"), text
        if not ran.reason:
            return "ok", ""
    plain = program.call(program.function())
    return ("raised", "") if plain.error is not None else ("numpy", ran.reason)


def shrink(part: Part, program: Program, kind: str, text: str) -> tuple[Program, str]:
    """The smallest program found that fails in the same way."""
    end = time.monotonic() + SHRINKING
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for smaller in program.smaller():
            if time.monotonic() > end:
                break
            found = _in_child(_judge_one, part, smaller)
            again = ("crash", found) if isinstance(found, str) else found
            if again[0] == kind and (kind != "defect" or again[1][:30] == text[:30]):
                program, text, progress = smaller, again[1], True
                break
    return program, text


def _judge_one(part: Part, program: Program) -> tuple[str, str]:
    return judge(part, [program])[0] if _is_legal(program) else ("illegal", "")


def _is_legal(program: Program) -> bool:
    try:
        function = program.function()
    except SyntaxError:
        return False
    return not isinstance(program.call(function).error, NameError)


def _in_child(work: Callable[..., Any], *args: Any) -> Any:
    """The result of work(*args) in a forked process; a text when it dies or hangs."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def body() -> None:
        try:
            sender.send(work(*args))
        except Exception:
            sender.send(traceback.format_exc())
        sender.close()

    child = context.Process(target=body)
    child.start()
    sender.close()
    try:
        result = receiver.recv() if receiver.poll(PATIENCE) else "it hangs"
    except EOFError:
        result = ""
    if result == "it hangs":
        child.kill()
    child.join()
    return result or f"the process ended with {child.exitcode}"
