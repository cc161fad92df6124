"""Lists and deques that are taken from at their front, searched and sorted; `in`; the builtins that
go through many values. All in one compiled program, whatever the length."""

from __future__ import annotations

import copy
import itertools
from collections import deque
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import assert_same, check_calls

X = np.random.default_rng(3).standard_normal(300)
SQUARE = X[:289].reshape(17, 17).copy()
PLACES = (np.abs(X) * 10).astype(int)


# ---------------------------------------------------------------- deques and queues


def moving_average(x):
    last, out, total = deque(maxlen=5), np.zeros(len(x)), 0.0
    for i in range(len(x)):
        if len(last) == 5:
            total -= last[0]
        last.append(x[i])
        total += x[i]
        out[i] = total / len(last)
    return out


def window_sums(x):
    last, out = deque(maxlen=4), []
    for v in x:
        last.append(v)
        out.append(np.sum(last))
        out.append(max(last) - last[0] + last[-1])
    return np.array(out)


def delayed(x):
    line, out = deque([0.0] * 4, maxlen=4), np.zeros(len(x))
    for i, v in enumerate(x):
        out[i] = line[0]
        line.append(v)
    return out


def window_maxima(x):
    best, out = deque(), np.zeros(len(x) - 4)
    for i in range(len(x)):
        while best and best[0] <= i - 5:
            best.popleft()
        while best and x[best[-1]] <= x[i]:
            best.pop()
        best.append(i)
        if i >= 4:
            out[i - 4] = x[best[0]]
    return out


def both_ends(x):
    q = deque()
    for v in x:
        if v > 0:
            q.append(v)
        else:
            q.appendleft(v)
    return np.array(q), len(q)


def breadth_first(a):
    distance = np.full(len(a), -1)
    distance[0] = 0
    q = deque([0])
    while q:
        u = q.popleft()
        for v in range(len(a)):
            if a[u, v] > 1.2 and distance[v] < 0:
                distance[v] = distance[u] + 1
                q.append(v)
    return distance


def breadth_first_in_a_list(a):
    distance = np.full(len(a), -1)
    distance[0] = 0
    q = [0]
    while len(q) > 0:
        u = q.pop(0)
        for v in range(len(a)):
            if a[u, v] > 1.2 and distance[v] < 0:
                distance[v] = distance[u] + 1
                q.append(v)
    return distance


# ---------------------------------------------------------------- lists


def inserted_and_removed(x):
    s = []
    for v in x:
        s.insert(0, v)
        if len(s) > 10:
            s.pop(5)
    s.insert(2, x[0])
    s.remove(x[0])
    return np.array(s), s.index(s[4]), s.count(s[3]), len(s.copy())


def cleared(x):
    s = []
    for v in x:
        s.append(v)
        if v > 1:
            s.clear()
    return np.array(s)


def sorted_in_place(x):
    s = []
    t = list()  # noqa: C408
    for v in x:
        if v > 0:
            s.append(v)
            t.append(v)
    s.sort(key=lambda v: -v)
    s.reverse()
    t.sort()
    return np.array(s), t


def added_lists(x):
    out, more = [], []
    for v in x:
        out += [v, -v]
        more.append(v)
    out += more
    return np.array(out)


def added_arrays(x):
    pair = [1.0, 2.0]
    pair += x[:2]
    return pair


# ---------------------------------------------------------------- order


def order(x):
    return x[sorted(range(len(x)), key=lambda i: x[i])]


def backwards(x):
    return sorted(np.round(x), key=lambda v: abs(v), reverse=True), sorted(x, reverse=True)[:3]


def best_by_key(x):
    nearest = min(range(len(x)), key=lambda i: abs(x[i] - 0.3))
    return max(x, key=abs), nearest, max([x[0], x[1], x[2]], key=lambda v: -v)


# ---------------------------------------------------------------- in


def one_of(k):
    few = {1, 3, 5}
    n = 0
    for i in k:
        if i in (2, 4):
            n += 1
        if i in few:
            n += 10
        if i not in range(8, 2, -2):
            n += 100
    return n


def found_in(x):
    s = []
    for v in x:
        if v > 1:
            s.append(v)
    return x[0] in x, 99.0 in x, s[0] in s, x[5] in (1.0, x[5]), 3 not in [1, 2]


# ---------------------------------------------------------------- builtins over many values


def whole_arrays(x):
    return any(x > 2), all(x > -9), sum(x > 0), max(x), min(x), round(x[0], 2), round(x[3], -1)


def mapped(x):
    kept = list(filter(lambda v: v > 0, x))
    return np.array(kept), sum(map(abs, x)), np.array(list(map(np.exp, x)))


def chosen(x):
    low, high = max(v for v in x if v < 0), min(v * 2 for v in x if v > 0.5)
    return low, high, sum(map(abs, filter(lambda v: v > 0, x)))


def turned(x):
    t, s = 0.0, []
    for i in reversed(range(3, len(x) - 1, 2)):
        t = t * 0.9 + x[i]
    for i in reversed(range(len(x))):
        t = t * 0.9 + x[i]
        s.append(t)
    for i, (a, b) in enumerate(zip(reversed(x), map(np.exp, x), strict=True)):
        t += a * b * i
    for v in reversed(s):
        t = t * 0.5 + v
    return t, list(reversed([1, 2]))


def sorted_again_and_again(x):
    s, medians = [], []
    for v in x:
        s.append(v)
        s.sort()
        medians.append(s[len(s) // 2])
    return np.array(medians)


def queue_of_pairs(x):
    q, t = deque(), 0.0
    for i in range(len(x)):
        q.append((i, x[i]))
        if len(q) > 4:
            q.popleft()
    for i, v in q:
        t += i * v
    return t, q[0][1], q[-1][0]


def arrays_taken_from_a_list(a):
    s = []
    for row in a:
        s.append(row * 1.0)
    first, second = s.pop(0), s.pop(0)
    first += second
    return first, second, np.array(s)


def grids(a):
    t = 0.0
    for (i, j), v in np.ndenumerate(a):
        t += v * i - j
    for i, j in np.ndindex(a.shape):
        t += a[i, j] * j
    for i, j in itertools.product(range(len(a)), range(1, len(a))):
        t -= a[i, j]
    for row, k in itertools.product(a, range(3)):
        t += row[k]
    return t


def copies(x):
    y, (z, (w, n)) = copy.deepcopy(x), copy.deepcopy([x, (x, 2.0)])
    y[0] = z[1] = w[2] = n
    return y, z, w, copy.copy([1, 2])


PROGRAMS: dict[Any, np.ndarray] = {
    **dict.fromkeys([breadth_first, breadth_first_in_a_list, grids], SQUARE),
    arrays_taken_from_a_list: SQUARE,
    **dict.fromkeys([chosen, turned, sorted_again_and_again, queue_of_pairs], X),
    one_of: PLACES,
    **dict.fromkeys([moving_average, window_sums, delayed, window_maxima, both_ends], X),
    **dict.fromkeys([inserted_and_removed, cleared, sorted_in_place, added_lists], X),
    **dict.fromkeys([added_arrays, order, backwards, best_by_key, found_in], X),
    **dict.fromkeys([whole_arrays, mapped, copies], X),
}


@pytest.mark.parametrize("f", PROGRAMS)
def test_whole(f):
    check_calls(npjit.jit(f, backend="numpy"), PROGRAMS[f])


@pytest.mark.parametrize(
    "f", [moving_average, window_maxima, inserted_and_removed, sorted_in_place]
)
def test_compiled(f):
    """In C++ one version serves all lengths."""
    jitted = npjit.jit(f)
    for n in (300, 77):
        check_calls(jitted, X[:n])
    assert jitted.cache_info()["compiled"] == 1


def test_the_usual_algorithm_has_no_name():
    """CuPy knows none."""
    x = np.array([3.0, np.nan, 1.0, 2.0])
    for kind in (None, "quicksort"):
        sorting = npjit.jit(lambda x, k=kind: (np.sort(x, kind=k), np.argsort(x, kind=k)))
        plan = sorting.lower(x).compiled.plan
        assert [s.params for s in plan.steps] == [(0, None)] * 2
        np.testing.assert_array_equal(sorting(x)[0], np.sort(x))


def test_equal_keys_stay_in_their_order():
    jitted = npjit.jit(lambda z: np.array(sorted(z)))
    z = np.array([0.0, -0.0, 1.0] * 9)
    assert np.array_equal(np.signbit(jitted(z)), np.signbit(np.array(sorted(z))))
    assert jitted.cache_info()["whole"] == 1


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_what_python_has_to_sort():
    jitted = npjit.jit(lambda z: sorted(z))
    z = np.array([2.0, np.nan, 1.0] * 9)
    assert_same(jitted(z), sorted(z))
    assert jitted.cache_info()["numpy"] == 1
    with pytest.raises(ValueError, match="ambiguous"):
        npjit.jit(lambda a: sorted(a))(SQUARE)


def used_twice(values):
    return sum(values) + sum(values)


def stopped_and_used_again(x):
    g, t = (v * 2 for v in x), 0.0
    for v in g:
        t += v
        if t > 3:
            break
    return t - sum(g)


def one_and_the_rest(x):
    m = map(abs, x)
    return next(m), sum(m)


def lived_through(x):
    """A condition is looked at when its turn has come."""
    alive, t = np.ones(len(x), bool), 0
    for i in filter(lambda i: alive[i], range(2, len(x))):
        alive[2 * i :: i] = False
        t += i
    return t


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: used_twice(v * 2 for v in x),
        lambda x: used_twice(filter(lambda v: v > 0, x)),
        stopped_and_used_again,
        one_and_the_rest,
        lived_through,
    ],
)
def test_iterators_are_used_up(f):
    jitted = npjit.jit(f, backend="numpy")
    for _ in range(2):
        assert_same(jitted(X), f(X))


def test_a_queue_that_runs_empty():
    def drained(x, n):
        q = [0.0]
        for v in x:
            q.append(v)
        t = 0.0
        for i in range(len(n)):
            if n[i] > 0:
                t += q.pop(0)
        return t

    jitted = npjit.jit(drained)
    assert jitted(X, np.ones(301)) == drained(X, np.ones(301))
    with pytest.raises(IndexError, match="pop from empty list"):
        jitted(X, np.ones(302))
    assert jitted.cache_info()["whole"] == 1


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_deques_stay_pythons_as_results():
    def kept(x):
        q = deque(maxlen=2)
        for v in x:
            q.append(v)
        return q

    assert npjit.jit(kept)(X) == kept(X)
    assert type(npjit.jit(kept)(X)) is deque
