"""A little of the fuzzer on a GPU on every run: `python -m tests.fuzz cupy-straight` runs more."""

from __future__ import annotations

import random

import numpy as np
import pytest

import npjit
from tests.fuzz import device
from tests.fuzz.compare import LESSER
from tests.fuzz.hunt import PARTS, judge
from tests.fuzz.program import Program


@pytest.mark.parametrize("part", ["cupy-straight", "cuda-control"])
def test_programs(part: str) -> None:
    made = [PARTS[part].generate(random.Random(seed)) for seed in range(5)]
    for program, (kind, text) in zip(made, judge(PARTS[part], made), strict=True):
        assert kind in ("ok", "raised", "numpy", *LESSER), f"{text}\n{program}"


def test_views_of_arguments_stay_views() -> None:
    """The fuzzer's own way there and back: aliasing arguments and results, and what is written."""
    program = Program.of(
        ["a = make('f8', (4, 3), 1, 'shifted')", "b = a[1:]", "c = make('f4', (0, 2), 1)"],
        ["def f(a, b, c):", "    return (b[::2].T, c[:, 1], a.sum(axis=0))"],
    )
    ((kind, text),) = judge(PARTS["cupy-straight"], [program])
    assert kind == "ok", text
    (ran,) = device.run_all([program], npjit.jit, on_device=True)
    assert ran.outcome is not None
    assert np.shares_memory(ran.outcome.result[0], ran.outcome.arguments[0])
    assert not np.shares_memory(ran.outcome.result[2], ran.outcome.arguments[0])
