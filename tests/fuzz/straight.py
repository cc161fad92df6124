"""Random programs without control flow: every ufunc and many functions of NumPy, views, and writes
through them.

In: a `random.Random`. Out: a `Program`:

    straight_program(random.Random(3))
"""

from __future__ import annotations

import random

import numpy as np

from tests.fuzz import calls
from tests.fuzz.arguments import argument_lines
from tests.fuzz.program import Program
from tests.fuzz.writer import Writer, is_array

MAKERS = {
    calls.unary: 4,
    calls.binary: 4,
    calls.operator_line: 5,
    calls.augmented: 3,
    calls.assigned: 3,
    calls.view: 5,
    calls.reduction: 4,
    calls.created: 2,
    calls.joined: 3,
    calls.chosen: 2,
    calls.moved: 2,
    calls.contracted: 2,
    calls.cast: 2,
    calls.ufunc_call: 2,
    calls.statistic: 1,
    calls.gathered: 1,
}


def straight_program(rng: random.Random, length: int = 10) -> Program:
    """A program of up to `length` lines, and results of several kinds."""
    names = ["a", "b", "c"][: rng.randrange(1, 4)]
    writer = Writer(rng, argument_lines(rng, names))
    makers, weights = list(MAKERS), list(MAKERS.values())
    wanted = rng.randrange(1, length + 1)
    for _ in range(3 * length):
        if len(writer.lines) >= wanted:
            break
        line = rng.choices(makers, weights)[0](writer)
        if line is not None and not writer.try_line(line) and rng.random() < 0.01:
            writer.add(line)
            break
    return writer.program(results(writer))


def results(writer: Writer) -> list[str]:
    """Some of the names, the last one always, in random order, at times one twice."""
    rng = writer.rng
    known = [
        n for n in writer.names if n in writer.values and not isinstance(writer.values[n], list)
    ]
    made = [n for n in known if n not in writer.arguments] or known
    last = made[-1]
    others = [n for n in known if rng.random() < 0.35]
    chosen = [*others, last] if rng.random() < 0.5 else [last, *others]
    if rng.random() < 0.1:
        view = writer.pick(is_array)
        chosen.append(f"{view}[::2]" if view else last)
    elif rng.random() < 0.9:
        chosen = _apart(writer, chosen)
    return chosen if len(chosen) < 8 else chosen[-8:]


def _apart(writer: Writer, names: list[str]) -> list[str]:
    """The names without those that share memory with an earlier one."""
    kept: list[str] = []
    for name in names:
        value = writer.values[name]
        if not any(np.may_share_memory(value, writer.values[k]) for k in kept):
            kept.append(name)
    return kept or names
