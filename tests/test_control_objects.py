"""Python objects in staged loops and branches: lists, dicts, attributes are part of the state."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import npjit


class Point:
    def __init__(self) -> None:
        self.x = np.float64(1.0)
        self.hits = 0


def branch_sets_item(x, t):
    found = [np.float64(1.0), 2.0]
    if x[0] > t:
        found[0] = x[1]
    return found[0] + found[1]


def branch_sets_key(x, t):
    found = {"a": np.float64(1.0)}
    if x[0] > t:
        found["a"] = x[1] * 2.0
    else:
        found["a"] = x[2]
    return found["a"]


def branch_sets_attribute(x, t):
    p = Point()
    if x[0] > t:
        p.x = x[1]
        p.hits += 1
    return p.x, p.hits


def branch_in_a_helper(x, t):
    total = [np.float64(0.0)]

    def add(v):
        if v > t:
            total[0] = total[0] + v

    for i in range(len(x)):
        add(x[i])
    return total[0]


def loop_changes_an_item(x, t):
    total = [0.0, t]
    for i in range(len(x)):
        total[0] += x[i]
    return total[0] + total[1]


def loop_changes_attributes(x, t):
    p = Point()
    for i in range(len(x)):
        p.x = p.x * t + x[i]
        p.hits = p.hits + 1
    return p.x, p.hits


def appended(x, t):
    out = []
    for i in range(len(x)):
        out.append(x[i] ** 2 + t)
    return np.array(out)


def appended_in_two_loops(x, t):
    out = [t]
    for i in range(len(x)):
        for j in range(3):
            out.append(x[i] * j)
    return np.array(out), len(out)


def appended_and_read(x, t):
    out = [x[0]]
    for i in range(len(x)):
        out.append(out[-1] + t * (x[i] - out[-1]))
    out.append(x[1])
    return np.array(out), out[-2], len(out)


def appended_arrays(x, t):
    history = []
    u = x
    for _ in range(20):
        u = u * t + 1.0
        history.append(u)
    return np.stack(history).sum(axis=0), u


def appended_and_iterated(x, t):
    out, more = [], []
    for i in range(len(x)):
        out.append(x[i])
        more.append(x[i] * t)
    total = 0.0
    for a, b in zip(out, more, strict=True):
        total += a * b
    return total, np.mean(more)


WHOLE = [
    branch_sets_item,
    branch_sets_key,
    branch_sets_attribute,
    branch_in_a_helper,
    loop_changes_an_item,
    loop_changes_attributes,
    appended,
    appended_in_two_loops,
    appended_and_read,
    appended_arrays,
    appended_and_iterated,
]


@pytest.mark.parametrize("backend", ["numpy", "cpp"])
@pytest.mark.parametrize("f", WHOLE)
def test_whole(f: Any, backend: str) -> None:
    jitted = npjit.jit(f, backend=backend)
    for seed, t in [(1, 0.3), (2, 0.9)]:
        x = np.random.default_rng(seed).random(30)
        _same(jitted(x.copy(), t), f(x.copy(), t))
    assert jitted.cache_info()["whole"] == 2, jitted.cache_info()


def length_depends_on_values(x, t):
    out = []
    for i in range(len(x)):
        if x[i] > t:
            out.append(x[i])
    return len(out)


def set_depends_on_values(x, t):
    seen = set()
    for i in range(len(x)):
        if x[i] > t:
            seen.add(i)
    return len(seen)


def one_array_many_times(x, t):
    out = []
    for _ in range(30):
        x[0] += t
        out.append(x)
    return np.array(out)


def an_iterator(x, t):
    numbers = iter(range(100))
    total = 0
    for i in range(len(x)):
        if x[i] > t:
            total += next(numbers)
    return total


def written_after_appending(x, t):
    out = []
    for _ in range(len(x)):
        row = x * t
        out.append(row)
        row[0] = 5.0
    return np.array(out)


@pytest.mark.parametrize(
    "f",
    [
        length_depends_on_values,
        set_depends_on_values,
        one_array_many_times,
        an_iterator,
        written_after_appending,
    ],
)
@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_what_is_not_staged_is_right(f: Any) -> None:
    jitted = npjit.jit(f)
    for seed in (1, 2):
        x = np.random.default_rng(seed).random(30)
        _same(jitted(x.copy(), 0.5), f(x.copy(), 0.5))


def _same(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        for a, b in zip(got, want, strict=True):
            _same(a, b)
        return
    assert np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, copy.copy(want), rtol=1e-12)


def comprehended(x, t):
    squares = np.array([x[i] ** 2 + t for i in range(len(x))])
    table = np.array([[a * b for b in x] for a in x])
    large = sum(v * t for v in x if v > t)
    most = max(abs(v) for v in x)
    return squares, table.sum(axis=0), large, most, any(v > 2.0 for v in x), all(v < t for v in x)


def test_comprehensions_are_loops() -> None:
    jitted = npjit.jit(comprehended)
    for seed in (1, 2):
        x = np.random.default_rng(seed).random(30)
        _same(jitted(x, 0.5), comprehended(x, 0.5))
    assert jitted.cache_info()["whole"] == 2
