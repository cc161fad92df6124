"""Arrays that change their shape from trip to trip of a loop, or in one side of a branch: masks,
slices that shrink, arrays that grow, stacks and steps that are loop indices.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import check_calls

X = np.random.default_rng(1).random(300)


def masked_until(x):
    while x.max() > 0.3:
        x = x[x < x.max() * 0.9]
    return x, len(x)


def masked_alike(x):
    y = x * 2.0
    for i in range(20):
        m = x < 0.97 - 0.01 * i
        x, y = x[m] * 1.01, y[m] + x[m]
    return x, y, (x + y).sum()


def written_then_masked(x):
    x = x.copy()
    for _ in range(20):
        np.multiply(x, 1.02, x)
        x = x[x < 0.97]
    return x


def argument_written_then_masked(x):
    for _ in range(20):
        x *= 1.02
        x = x[x < 0.97]
    return x


def argument_written_then_bound_anew(x):
    first = x
    for _ in range(20):
        x[0] = 5.0
        x = x * 0.5 + 1
    first[1] = 7
    return x


def escape_times(n, trips):
    xi, yi = np.mgrid[0:n, 0:n]
    c = np.linspace(-2, 0.5, n)[xi] + 1j * np.linspace(-1.2, 1.2, n)[yi]
    counts = np.zeros(c.shape, dtype=np.int64)
    xi.shape = yi.shape = c.shape = n * n
    z = np.zeros(c.shape, np.complex128)
    for i in range(trips):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        gone = abs(z) > 2.0
        counts[xi[gone], yi[gone]] = i + 1
        np.logical_not(gone, gone)
        z = z[gone]
        xi, yi = xi[gone], yi[gone]
        c = c[gone]
    return counts.T


def sieve(x):
    left = np.arange(2, len(x))
    found = []
    while left.size:
        p = left[0]
        found.append(p)
        left = left[left % p != 0]
    return np.array(found)


def without_the_last(x):
    s = 0.0
    for _ in range(200):
        s += x[-1]
        x = x[:-1] * 1.0
    return s, x


def differences(x):
    t = 0.0
    while len(x) > 200:
        t += x[0]
        x = np.diff(x)
    return t, x


def both_axes(x):
    a = x.reshape(20, 15)[:, :15].copy()
    s = 0.0
    for _ in range(10):
        s += a[0, 0]
        a = a[1:, 1:] - 0.1 * np.outer(a[1:, 0], a[0, 1:])
    return s, a


def appended(x):
    y = np.array([])
    for v in x:
        y = np.append(y, v * 2)
    return y


def appended_rows(x):
    y = np.zeros((1, 3))
    for v in x:
        y = np.vstack([y, v * np.ones(3)])
    return y


def appended_under_a_condition(x):
    y = np.zeros(1)
    for v in x:
        if v > 0.5:
            y = np.append(y, v)
    return y


def queue(x):
    q, n = np.array([x[0]]), 0
    while len(q) > 0 and n < 200:
        v, q, n = q[0], q[1:], n + 1
        if v > 0.05:
            q = np.append(q, v * 0.6)
            q = np.append(q, v * 0.3)
    return n, q


def bisection(x):
    part = np.sort(x)
    while len(part) > 1:
        h = len(part) // 2
        part = part[:h] if part[h] > 0.4 else part[h:]
    return part[0]


def nested(x):
    t = 0.0
    for _ in range(20):
        y = x * 1.0
        while y.max() > 0.5:
            y = y[y < 0.9 * y.max()]
        t += len(y)
    return t


def largest_taken_out(x):
    out = np.zeros(30)
    for i in range(30):
        k = np.argmax(x)
        out[i] = x[k]
        x = np.delete(x, k)
    return out, np.insert(x, 3, out[0])


def distinct(x):
    y = np.floor(x * 50)
    for _ in range(30):
        y = np.unique(np.floor(y * 0.9))
    return y


def one_side_masks(x):
    y = x[x > 0.2]
    if x[0] > 0.1:
        y = y[y > 0.5]
    return y, y.sum()


def selection_used_in_a_loop(x):
    y, s = x[x > 0.5], 0.0
    for i in range(50):
        s += np.sort(y)[0] * i
        y[0] += 1.0
    return y, s


def selection_changed_in_a_branch(x):
    y = x[x > 0.5]
    if x[0] > 0.1:
        y *= 2.0
    return y


def selection_changed_behind_a_branch(x):
    y, z = x[x > 0.5], x
    if x[0] > 0.1:
        z = z * 2.0
    y *= 2.0
    return np.sort(y), z + 1.0


# ---------------------------------------------------------------- stacks


def depth_first(x):
    stack, s = [0], 0.0
    while stack:
        i = stack.pop()
        s = s * 0.9 + x[i]
        if 2 * i + 1 < len(x):
            stack.append(2 * i + 1)
        if 2 * i + 2 < len(x):
            stack.append(2 * i + 2)
    return s


def next_greater(x):
    out, stack = np.full(len(x), -1), []
    for i in range(len(x)):
        while stack and x[stack[-1]] < x[i]:
            out[stack.pop()] = i
        stack.append(i)
    return out, len(stack)


def halves(x):
    stack, s = [(0, len(x))], 0.0
    while stack:
        lo, hi = stack.pop()
        if hi - lo <= 2:
            s += x[lo]
        else:
            m = (lo + hi) // 2
            stack.append((lo, m))
            stack.append((m, hi))
    return s


def the_last_dropped(x):
    kept = []
    for v in x:
        kept.append(v)
        if len(kept) > 5:
            del kept[-1]
    return np.array(kept)


# ---------------------------------------------------------------- indices of loops


def steps(x):
    y, s = x.copy(), 0.0
    for i in range(1, 40):
        y[::i] += 1.0
        y[i * i :: i] *= 0.5
        s += x[i::i].sum()
    return y, s


def bits(x):
    s, k = 0.0, 0
    for i in range(len(x)):
        s += x[i] * (i & 1) + (i >> 2) * (i | 1)
        if i & 2:
            k += (1 << i % 20) ^ i
        q, r = divmod(100, i + 1)
        k += q * r
    return s, k


def powers(x):
    s, k = 0.0, 0
    for i in range(30):
        s += x[i] ** i + 0.9**i
        k += 2**i + 3**i
    return s, k


def named_in_conditions(x):
    n, t = 0, 0.0
    while (d := x.max()) > 0.1:
        x = x * 0.9
        n += 1
    for v in x:
        if (w := v * 20) > 1:
            t += w
        elif (u := v + 1) > 1.02:
            t -= u
    return n, d, t


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    *((f, (X,)) for f in (masked_until, masked_alike, written_then_masked)),
    *((f, (X,)) for f in (argument_written_then_masked, argument_written_then_bound_anew)),
    (escape_times, (20, 25)),
    *((f, (X,)) for f in (sieve, without_the_last, differences, both_axes, appended)),
    *((f, (X,)) for f in (appended_rows, appended_under_a_condition, queue, bisection, nested)),
    *((f, (X,)) for f in (largest_taken_out, distinct, one_side_masks)),
    *((f, (X,)) for f in (selection_used_in_a_loop, selection_changed_in_a_branch)),
    (selection_changed_behind_a_branch, (X,)),
    *((f, (X,)) for f in (depth_first, next_greater, halves, the_last_dropped)),
    *((f, (X,)) for f in (steps, bits, powers, named_in_conditions)),
]
COMPILED = (masked_alike, escape_times, appended_under_a_condition, queue, next_greater, steps)


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_meaning(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check_calls(npjit.jit(f, backend="numpy"), *args, calls=1)


@pytest.mark.parametrize("f", COMPILED, ids=lambda f: f.__name__)
def test_compiled(f: Callable[..., Any]) -> None:
    compiled = npjit.jit(f)
    check_calls(compiled, *dict(PROGRAMS)[f])
    if f is masked_alike:
        info = check_calls(compiled, np.linspace(0.0, 1.0, 77))
        assert info["compiled"] == 1


def outgrown(x):
    y = np.ones(2)
    while len(y) < 5000:
        y = np.concatenate([y, y * x[0]])
    return y


def popped_too_often(x):
    stack = [1.0]
    for v in x:
        if v > 0.5:
            stack.pop()
    return len(stack)


def first_of_none(x):
    while x.sum() > 0:
        x = x[x > x[0]]
    return x.max()


@pytest.mark.parametrize("f", [popped_too_often, first_of_none], ids=lambda f: f.__name__)
def test_pythons_own_errors(f: Callable[..., Any]) -> None:
    check_calls(npjit.jit(f, backend="numpy"), X, mode="numpy")


def test_an_array_that_outgrows_its_room_is_right() -> None:
    compiled = npjit.jit(outgrown, backend="numpy")
    assert np.array_equal(compiled(X), outgrown(X))


def both_names(x):
    y = x
    for _ in range(20):
        x[0] = x[0] + 1.0
        x = y = x[x < 0.95] * 1.0
    return x, y


def an_older_name(x):
    old = x
    for _ in range(20):
        old = x
        x = x[:-1]
        old[0] += 1.0
    return x.copy(), old.copy()


def a_view_of_what_is_written(x):
    z = x * 1.0
    y = z[:50]
    for i in range(20):
        z[i] = 9.0
        y = y[1:]
    return y.sum(), z


def another_name_is_written(x):
    y = z = x
    s = 0.0
    for _ in range(20):
        y = y[1:]
        z[-1] += 1.0
        s += y[-1]
    return s, z


def one_array_behind_the_loop(x):
    y = x
    for _ in range(20):
        x = np.sort(x)[1:]
        y = x
    x[0] = 7.0
    return x, y


@pytest.mark.parametrize(
    "f",
    [
        both_names,
        an_older_name,
        a_view_of_what_is_written,
        another_name_is_written,
        one_array_behind_the_loop,
    ],
    ids=lambda f: f.__name__,
)
def test_other_names_are_seen(f: Callable[..., Any]) -> None:
    mine, theirs = X.copy(), X.copy()
    got, want = npjit.jit(f, backend="numpy")(mine), f(theirs)
    for g, w in zip((*got, mine), (*want, theirs), strict=True):
        assert np.allclose(g, w, rtol=1e-12, atol=0)


def scattered_through_a_reshaped_grid(n):
    rows, columns = np.mgrid[0:n, 0:n]
    rows.shape = columns.shape = n * n
    counts = np.zeros((n, n))
    chosen = (rows + columns) % 3 == 0
    counts[rows[chosen], columns[chosen]] = 1.0
    np.add.at(counts, (rows, columns), 0.5)
    return counts


def test_a_reshaped_grid_says_where_to_scatter() -> None:
    check_calls(npjit.jit(scattered_through_a_reshaped_grid), 20)
