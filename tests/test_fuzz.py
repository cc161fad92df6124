"""A little of the fuzzer on every run: random programs give what NumPy gives. `python -m
tests.fuzz` runs more."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.hunt import LESSER, PARTS, judge

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
