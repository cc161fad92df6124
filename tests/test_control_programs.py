"""Loops and branches end to end: programs through the reference, the plan interpreter and C++."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.graph import Graph, TensorType, Weight
from npjit.schedule import schedule
from tests import schedule_reference
from tests.control_programs import PROGRAMS


def interpreted(graph: Graph, types: Any) -> Any:
    """A backend that runs the plan element by element."""

    def call(inputs: list[Any]) -> list[Any]:
        plan = schedule(graph, [schedule_reference.layout_of(a) for a in inputs])
        results = schedule_reference.run(plan, inputs)
        return [_as_typed(a, n.type) for a, n in zip(results, graph.outputs, strict=True)]

    return call


def _as_typed(a: Any, type_: TensorType) -> Any:
    if type_.weight is Weight.ARRAY:
        return a
    return a.item() if type_.weight is Weight.WEAK else a[()]


@pytest.mark.parametrize("backend", ["numpy", interpreted, "cpp"], ids=["numpy", "plan", "cpp"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, backend: Any) -> None:
    f, make = PROGRAMS[name]
    jitted = npjit.jit(f, backend=backend)
    for _ in range(2):
        want_args = make(np.random.default_rng(7))
        got_args = make(np.random.default_rng(7))
        want, got = f(*want_args), jitted(*got_args)
        _same(got, want)
        for a, b in zip(got_args, want_args, strict=True):
            _same(a, b)
    info = jitted.cache_info()
    assert info["whole"] == 2, info


def _same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            _same(a, b)
    elif want is None:
        assert got is None
    elif isinstance(want, np.ndarray):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype.itemsize == 4 else 1e-12)
    else:
        assert type(got) is type(want)
        assert got == pytest.approx(want, rel=1e-6 if isinstance(want, np.float32) else 1e-12)


def update_until_bad(x: Any, limit: float) -> Any:
    for i in range(len(x)):
        x[i] = x[i] + 1.0
        if x[i] > limit:
            raise ValueError("too large")
    return x


def write_at(x: Any, where: Any) -> Any:
    x[0] = 9.0
    for k in range(len(where)):
        x[where[k]] += 1.0
    return x


@pytest.mark.parametrize("backend", ["numpy", "cpp"])
@pytest.mark.parametrize(
    "f, bad, good",
    [
        (update_until_bad, (np.arange(6.0), 3.5), (np.arange(6.0), 10.5)),
        (write_at, (np.zeros(5), np.array([1, 2, 9, 3])), (np.zeros(5), np.array([1, -1, 2, 2]))),
        (
            write_at,
            (np.zeros((7, 3))[::-2, 1], np.array([1, 2, 9, 3])),
            (np.zeros((7, 3))[::-2, 1], np.array([1, -1, 2, 2])),
        ),
    ],
    ids=["raise", "index", "strided"],
)
def test_a_failed_check_leaves_what_python_leaves(
    f: Any, bad: Any, good: Any, backend: Any
) -> None:
    jitted = npjit.jit(f, backend=backend)
    _same(jitted(*copy.deepcopy(good)), f(*copy.deepcopy(good)))
    assert jitted.cache_info()["whole"] == 1
    want_args, got_args = copy.deepcopy(bad), copy.deepcopy(bad)
    with pytest.raises(Exception) as want:
        f(*want_args)
    with pytest.raises(type(want.value)) as got:
        jitted(*got_args)
    assert str(got.value) == str(want.value)
    np.testing.assert_array_equal(got_args[0], want_args[0])


def test_one_compilation_serves_all_sizes() -> None:
    f, _ = PROGRAMS["shrinking_temporaries"]
    jitted = npjit.jit(f)
    rng = np.random.default_rng(1)
    for n, m in [(30, 20), (25, 40), (60, 33)]:
        a = rng.random((n, m))
        _same(jitted(a), f(a))
    assert jitted.cache_info()["whole"] == 3
    assert jitted.cache_info()["compiled"] == 1
