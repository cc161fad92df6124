"""A little of the fuzzer on every run: random programs give what NumPy gives. `python -m
tests.fuzz` runs more."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import npjit
from tests.fuzz.compare import LESSER
from tests.fuzz.guards import difference_in, story
from tests.fuzz.hunt import PARTS, judge

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@pytest.mark.parametrize(("part", "most"), [("straight", 4), ("control", 4)])
def test_batches(part: str, most: int) -> None:
    """Programs in one translation unit each batch; most of them must have run compiled."""
    made = [PARTS[part].generate(random.Random(seed)) for seed in range(most * 25)]
    verdicts = [v for k in range(0, len(made), 25) for v in judge(PARTS[part], made[k : k + 25])]
    wrong = [
        f"{kind}: {text}\n{program}"
        for (kind, text), program in zip(verdicts, made, strict=True)
        if kind in ("wrong", "defect")
    ]
    assert not wrong, "\n\n".join(wrong)
    assert sum(kind == "ok" for kind, _ in verdicts) > len(made) / 2


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, suppress_health_check=SLOW)
def test_staging(random_: random.Random) -> None:
    """Loops and branches by the reference executor."""
    program = PARTS["control-reference"].generate(random_)
    ((kind, text),) = judge(PARTS["control-reference"], [program])
    assert kind in ("ok", "raised", "numpy", *LESSER), f"{text}\n{program}"


def test_gradients() -> None:
    """Gradients against finite differences, loops and branches among the programs."""
    part = PARTS["gradients-loops-reference"]
    made = [part.generate(random.Random(seed)) for seed in range(60)]
    verdicts = judge(part, made)
    wrong = [
        f"{v}\n{p}" for v, p in zip(verdicts, made, strict=True) if v[0] in ("wrong", "defect")
    ]
    assert not wrong, "\n\n".join(wrong)
    assert sum(kind == "ok" for kind, _ in verdicts) > 50


def test_guards() -> None:
    """Calls between changes of globals, attributes, items, closures and defaults."""
    made: list[Any] = []

    def jit(f: Callable[..., Any]) -> Any:
        made.append(npjit.jit(f, backend="numpy"))
        return made[-1]

    for seed in range(40):
        told = story(random.Random(seed))
        text = difference_in(told, jit)
        assert not text or any(kind in text for kind in LESSER), f"{text}\n{told}"
    ran = [jitted.cache_info() for jitted in made]
    assert sum(info["whole"] for info in ran) > 3 * sum(info["numpy"] for info in ran)
