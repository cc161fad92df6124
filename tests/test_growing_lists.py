"""Lists that grow under conditions, in several loops, by items of several parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import assert_same


def positive(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append(x[i] * 2)
    return np.array(out), len(out)


def parted(x):
    low, high = [], []
    for v in x:
        if v > 0:
            high.append(v)
        else:
            low.append(v * 2)
    return np.array(low), np.array(high)


def up_to_two_a_trip(x):
    out = []
    for v in x:
        if v > 0:
            out.append(1)
        elif v < -1:
            out.append(2)
            out.append(3)
    return out


def two_loops(x):
    out = []
    for v in x:
        out.append(v)
    for v in x:
        if v < 0:
            out.append(v * 2)
    return np.array(out)


def until_break(x):
    out = []
    for v in x:
        if v > 1.5:
            break
        out.append(v)
    return np.array(out)


def while_filled(x):
    out = []
    v = x[0]
    k = 0
    while abs(v) < 50 and k < 30:
        out.append(v)
        v = v * 1.5 + 1
        k += 1
    return np.array(out)


def runs(x):
    values, lengths = [], []
    i = 0
    while i < len(x):
        j = i
        while j < len(x) and (x[j] > 0) == (x[i] > 0):
            j += 1
        values.append(x[i])
        lengths.append(j - i)
        i = j
    return np.array(values), np.array(lengths)


def pairs(x):
    out = []
    for i in range(len(x)):
        for j in range(i):
            if x[i] * x[j] > 4:
                out.append((i, x[i] - x[j]))
    return out


def tuples(x):
    out = []
    for i in range(len(x)):
        out.append((i, x[i]))
    total = 0.0
    for i, v in out:
        total += i * v
    return out[5], total


def rows_of_numbers(x):
    out = []
    for v in x:
        out.append([v, v * 2, 1.0])
    return np.array(out)


def records(x):
    out = []
    for i in range(len(x)):
        if x[i] > 1:
            out.append({"place": i, "value": x[i]})
    return out


def lists_of_lists(x):
    out = []
    for i in range(len(x)):
        row = []
        for j in range(5):
            row.append(x[i] * j)
        out.append(row)
    return np.array(out)


def windows(x):
    out = []
    for i in range(len(x) - 3):
        if x[i] > 0:
            out.append(x[i : i + 3] * 2)
    return np.array(out)


def read_back(x):
    stack = [x[0]]
    for i in range(1, len(x)):
        if x[i] > stack[-1]:
            stack.append(x[i])
        else:
            stack[-1] = stack[-1] * 0.9
    return np.array(stack), stack[-1]


def looped_over(x):
    places = []
    for i in range(len(x)):
        if x[i] > 0:
            places.append(i)
    total = 0.0
    for k, place in enumerate(places):
        total += k * x[place]
    for a, b in zip(places[:-2], places[2:], strict=False):
        total += b - a
    return total, max(places), min(places), any(p > 5 for p in places)


def filtered(x):
    return [v * 2 for v in x if v > 0], [i for i in range(len(x)) if x[i] > 0.2]


def counted(x):
    counts = [0] * 9
    for v in x:
        counts[min(int(abs(v) * 2), 8)] += 1
    return counts


def looked_up(x):
    table = [1.5, 2.5, 3.5]
    total = 0.0
    for i in range(len(x)):
        total += x[i] * table[i % 3]
    return total


def filled(x):
    out = [0.0] * len(x)
    for i in range(len(x)):
        out[i] = x[i] * 2
    return np.array(out)


def short_loops(x):
    out = [1.0]
    for i in range(3):
        if x[i] > 0:
            out.append(x[i] * 1)
    if x[0] < 5:
        out.append(2.0)
    return np.array(out), len(out)


WHOLE = [
    positive,
    parted,
    up_to_two_a_trip,
    two_loops,
    until_break,
    while_filled,
    runs,
    tuples,
    rows_of_numbers,
    records,
    lists_of_lists,
    windows,
    read_back,
    looped_over,
    filtered,
    counted,
    looked_up,
    filled,
    short_loops,
]


def inputs(length: int) -> list[Any]:
    return [np.random.default_rng(seed).standard_normal(length) for seed in (1, 2)]


@pytest.mark.parametrize("f", [*WHOLE, pairs])
def test_compiled(f: Any) -> None:
    """More trips than a loop is unrolled for."""
    jitted = npjit.jit(f)
    for x in inputs(300):
        assert_same(jitted(x), f(x))
    assert jitted.cache_info()["whole"] == 2, jitted.cache_info()


@pytest.mark.parametrize("f", WHOLE)
def test_meaning(f: Any) -> None:
    jitted = npjit.jit(f, backend="numpy")
    for x in inputs(40):
        assert_same(jitted(x), f(x))
    assert jitted.cache_info()["whole"] == 2


def test_nothing_found() -> None:
    jitted = npjit.jit(positive)
    x = np.full(300, -1.0)
    assert_same(jitted(x), positive(x))
    assert jitted.cache_info()["whole"] == 1


def one_list_many_times(x):
    out = []
    row = [0.0, 1.0]
    for i in range(len(x)):
        row[0] = x[i]
        out.append(row)
    return np.array(out)


def changed_after_appending(x):
    out = []
    for i in range(len(x)):
        row = [x[i], 1.0]
        out.append(row)
        row[1] = x[i] * 2
    return np.array(out)


def carried_item(x):
    out = []
    row = [0.0, 0.0]
    for i in range(len(x)):
        row[0] = x[i]
        row = [x[i], 1.0]
        out.append(row)
    return np.array(out), row


def changed_in_the_list(x):
    out = []
    for i in range(len(x)):
        out.append([x[i], 1.0])
    out[3][1] = 9.0
    return np.array(out)


def list_of_mixed_numbers(x):
    out = [0.0] * len(x)
    for i in range(1, len(x)):
        out[i] = x[i] * 2
    return out


@pytest.mark.parametrize(
    "f",
    [
        one_list_many_times,
        changed_after_appending,
        carried_item,
        changed_in_the_list,
        list_of_mixed_numbers,
    ],
)
@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_items_with_other_names_are_right(f: Any) -> None:
    jitted = npjit.jit(f)
    for x in inputs(20):
        assert_same(jitted(x), f(x))


def test_a_list_longer_than_its_room_runs_as_numpy() -> None:
    """How many items a `while` appends is a guess."""

    def halved(x):
        out = []
        n = 5000
        while n > 0:
            out.append(n * x[0])
            n -= 1
        return np.array(out)

    jitted = npjit.jit(halved)
    x = np.ones(3)
    assert_same(jitted(x), halved(x))


def test_one_compilation_serves_all_lengths() -> None:
    jitted = npjit.jit(positive)
    for n in (30, 300, 77):
        x = inputs(n)[0]
        assert_same(jitted(x), positive(x))
    assert jitted.cache_info()["compiled"] == 1
    assert jitted.cache_info()["whole"] == 3


# ---------------------------------------------------------------- changed while a loop goes over it


def given_more(x):
    todo, t = [0], 0.0
    for k, u in enumerate(todo):
        t += x[u] * k
        if len(todo) < 5:
            todo.append(u + 1)
    return t


def given_more_by_values(x):
    todo, t = [0], 0.0
    for u in todo:
        t += x[u]
        if x[u] > -1 and u < 15:
            todo.append(u + 1)
    return t


def rows_given_more(x):
    todo, t, n = [], 0.0, 0
    for i in range(len(x)):
        if x[i] > 0:
            todo.append(i)
    for k, u in enumerate(todo):
        t += x[u] * k
        n += 1
        if n < 30 and x[u] > 1:
            todo.append(u // 2)
    return t, n


def given_less(x):
    s, t = [0, 1, 2, 3], 0.0
    for u in s:
        if u == 1:
            s.remove(2)
        t += x[u]
    return t


def rows_given_less(x):
    s, t = [], 0.0
    for v in x:
        s.append(v)
    for v in s:
        t += v
        if len(s) > 5:
            s.pop(0)
    return t


def stored_into(x):
    s, t = [x[0], x[1], x[2]], 0.0
    for v in s:
        s[2] = x[5]
        t += v
    return t


def by_a_generator(x):
    alive, t = [True] * len(x), 0.0

    def wanted():
        for i in range(2, len(x)):
            if alive[i]:
                yield i

    for i in wanted():
        for j in range(2 * i, len(x), i):
            alive[j] = False
        t += x[i]
    return t


@pytest.mark.parametrize(
    "f",
    [
        given_more,
        given_more_by_values,
        rows_given_more,
        given_less,
        rows_given_less,
        stored_into,
        by_a_generator,
    ],
)
@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_lists_that_change_while_a_loop_goes_over_them(f: Any) -> None:
    jitted = npjit.jit(f, backend="numpy")
    for x in inputs(20):
        assert_same(jitted(x), f(x))
