"""What is known of ints in loops: which checks go, which stay, and what then becomes selections."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core import interval
from tests.calls import assert_same, check_calls

rng = np.random.default_rng(5)
FLAGS = rng.random(200) < 0.7
WORDS = rng.integers(0, 2**16, 90).astype(np.uint16)


def runs(flags):
    count = longest = current = 0
    for flag in flags:
        if flag:
            if current == 0:
                count += 1
            current += 1
            longest = max(longest, current)
        else:
            current = 0
    return count, longest


def rows_and_columns(words):
    total = 0
    low = 100
    for row in words:
        for w in row:
            total += int(w) & 1
            low = min(low, int(w) >> 3)
    return total, low


def below_a_limit(words):
    n = 0
    while n < len(words) and words[n] != 7:
        n += 1
    return n


def around(words):
    n = len(words)
    for k in range(n):
        words[(k + 3) % n] ^= words[(k - 2) % n] + words[(int(words[k]) + 1) % n]
    return words


def is_at_most(words):
    worst = 0
    for w in words:
        worst = max(worst, (int(w) ^ 5) | 8)
    return worst if worst < 2**17 else -1


def by_a_modulus(words):
    low, high = 1, 0
    for w in words:
        low = (low * 31 + int(w)) % 65521
        high = (high - 3 * low) % 65521
    return (high << 16) | low


def scaled(words):
    return words * (1 / math.sqrt(len(words)))


WITHOUT = {
    by_a_modulus: WORDS,
    runs: FLAGS,
    rows_and_columns: WORDS.reshape(9, 10),
    below_a_limit: WORDS,
    around: WORDS,
    is_at_most: WORDS,
    scaled: WORDS,
}


@pytest.mark.parametrize("f", WITHOUT, ids=lambda f: f.__name__)
def test_no_check_is_left(f: Callable[..., Any]) -> None:
    given = WITHOUT[f]
    check_calls(npjit.jit(f), given, calls=2)
    assert "check" not in text_of(f, given)


def test_roots_that_may_be_zero_or_none_are_asked_about() -> None:
    def shorter(x, less):
        return x * (1 / math.sqrt(len(x) - less))

    f = npjit.jit(shorter, fullgraph=True)
    x = np.arange(6.0)
    np.testing.assert_array_equal(f(x, 2), x * 0.5)
    with pytest.raises(ZeroDivisionError):
        f(x, 6)
    with pytest.raises(ValueError, match="math domain error"):
        f(x, 7)
    fixed = npjit.jit(lambda x: x * (1 / math.sqrt(len(x) - 5)), fullgraph=True)
    np.testing.assert_array_equal(fixed(x), x)
    with pytest.raises(ZeroDivisionError):
        fixed(x[:5])


def multiplied(words):
    x = 3
    for w in words:
        x *= int(w)
    return x


def doubled(words):
    x = 1
    for _ in words:
        x += x
    return x


def lowered_without_end(words):
    x, y = 5, 0
    while words[y] > 0:
        x -= 3
        y += 1
    return x


def sum_of_large(words):
    total = 0
    for w in words:
        total += int(w)
    return total


def restarted(words):
    x = y = 1
    for _ in words:
        x, y = y, x + y
    return x


def negatives(x):
    t = 0
    for v in x:
        t = -int(v)
    return t


def sizes(x):
    t = 0
    for v in x:
        t = abs(int(v))
    return t


def quotients(x):
    t = 0
    for v in x:
        t = int(v) // (int(x[0]) + 1)
    return t


KEPT = {
    negatives: np.array([-2, -(2**63)]),
    sizes: np.array([-2, -(2**63)]),
    quotients: np.array([-2, -(2**63)]),
    multiplied: np.full(50, 7),
    doubled: np.zeros(70),
    lowered_without_end: np.array([3, 2, 1, 0]),
    sum_of_large: np.full(4, 2**62),
    restarted: np.zeros(100),
}


@pytest.mark.parametrize("f", KEPT, ids=lambda f: f.__name__)
def test_a_check_that_may_fail_stays(f: Callable[..., Any]) -> None:
    """Most of these leave 64 bits, and Python's ints go on."""
    given = KEPT[f]
    assert_same(npjit.jit(f)(given.copy()), f(given.copy()))
    assert "check" in text_of(f, given)


def below_by_less_than_1(x):
    count = 0
    for i in range(len(x)):
        root = math.sqrt(i)
        if root < 3.0:
            x[i] = 1.0
            if root <= 2.0:
                x[i] = 2.0
                count += 1
    return count


def above_by_less_than_1(x):
    count = 0
    for i in range(len(x)):
        root = math.sqrt(i)
        if root > 2.0:
            x[i] = 1.0
            if root >= 3.0:
                x[i] = 2.0
                count += 1
    return count


@pytest.mark.parametrize("f", [below_by_less_than_1, above_by_less_than_1])
def test_what_a_branch_says_of_roots(f: Callable[..., Any]) -> None:
    """A root below 3 may be more than 2."""
    check_calls(npjit.jit(f), np.zeros(12))


def nearest(x, k):
    best = 0
    for i in range(len(x)):
        if x[i] < 0:
            best = best + 1 if k > i else 0
    return best


def where_it_may_be(x, k):
    last = 0.0
    for i in range(len(x)):
        place = int(x[i] * k)
        if place > 1:
            last = last + x[place]
    return last


@pytest.mark.parametrize("f", [nearest, where_it_may_be], ids=lambda f: f.__name__)
def test_branches_as_selections(f: Callable[..., Any]) -> None:
    check_calls(npjit.jit(f), rng.normal(size=50), 20, calls=2)


def test_what_becomes_a_selection() -> None:
    assert "cond" not in text_of(runs, FLAGS)
    assert "cond" in text_of(where_it_may_be, FLAGS / 9.0, 20)


def text_of(f: Callable[..., Any], *given: Any) -> str:
    text: str = npjit.jit(f).lower(*given).as_text("graph")
    return text


BOUNDED: list[Callable[..., Any]] = [
    interval.plus,
    interval.minus,
    interval.times,
    interval.greater,
    interval.lesser,
    interval.common_bits,
    interval.joined_bits,
    interval.without_bits,
    lambda a, b: interval.magnitude(a),
    interval.modulo,
    interval.quotient,
]
MEANT: list[Callable[..., Any]] = [
    np.add,
    np.subtract,
    np.multiply,
    np.maximum,
    np.minimum,
    np.bitwise_and,
    np.bitwise_xor,
    np.right_shift,
    lambda x, y: np.absolute(x + 0 * y),
    np.remainder,
    np.floor_divide,
]


@pytest.mark.parametrize("bounded, meant", list(zip(BOUNDED, MEANT, strict=True)))
def test_intervals_hold_every_value(bounded: Callable[..., Any], meant: Callable[..., Any]) -> None:
    for _ in range(300):
        a, b = (np.sort(rng.integers(-9, 14, 2)) for _ in range(2))
        low, high = bounded((int(a[0]), int(a[1])), (int(b[0]), int(b[1])))
        with np.errstate(divide="ignore"):
            x, y = np.arange(a[0], a[1] + 1)[:, None], np.arange(b[0], b[1] + 1)
            values = meant(x, y)
        assert low is None or low <= values.min()
        assert high is None or high >= values.max()


def test_two_branches_of_one_condition_keep_their_own_results() -> None:
    """Both are selections on the same node."""

    def chosen(x: Any) -> Any:
        out = np.zeros((len(x), 2))
        for i in range(len(x)):
            first, second = 0.0, 0.0
            big = x[i] > 0.5
            if big:
                first = x[i] * 2.0
            if big:
                second = x[i] - 1.0
            out[i, 0], out[i, 1] = first, second
        return out

    x = np.random.default_rng(0).random(30)
    compiled = npjit.jit(chosen)
    np.testing.assert_array_equal(compiled(x), chosen(x))
    assert compiled.cache_info()["whole"] == 1
