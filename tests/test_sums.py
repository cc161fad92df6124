"""sum() as the running Python makes it, and as each version would."""

import itertools

import numpy as np
import pytest

import npjit.frontend.summed as summed
from tests.calls import check_calls, jit

X = np.array([1e100, 1.0, -1e100, 0.1, 0.2, -0.3, 1e-30])
FLOATS = (1e16, 1.0, 3.0)


def neumaier(values, start=0):
    """What sum() is since Python 3.12."""
    total, lost, is_exact = start, 0.0, type(start) is not bool
    for value in values:
        if not is_exact or type(total) is not float or type(value) is not float:
            if lost and type(value) is not int:
                total, lost = total + lost, 0.0
            total = total + value
            continue
        more = total + value
        lost += (total - more) + value if abs(total) >= abs(value) else (value - more) + total
        total = more
    return total + lost if type(total) is float and lost and abs(lost) < np.inf else total


def one_by_one(values, start=0):
    """What it was before."""
    for value in values:
        start = start + value
    return start


def whole(function, *args):
    """What a compiled call gives."""
    compiled = jit(function)
    found = compiled(*args)
    assert compiled.cache_info()["whole"] == 1
    return found


@pytest.mark.parametrize("trips", [3, 1000])
def test_numbers_of_arrays(trips):
    x = np.resize(X, trips)
    check_calls(jit(lambda x: sum(v * v for v in x)), x)
    check_calls(jit(lambda x: sum(x[i] * 2 for i in range(len(x)))), x)
    check_calls(jit(lambda x: sum((v for v in x if v > 0), 2.5)), x)
    check_calls(jit(lambda x: sum(int(v > 0) for v in x)), x)


@pytest.mark.parametrize("compensates", [False, True])
@pytest.mark.parametrize("trips", [3, 1000])
def test_floats(monkeypatch, compensates, trips):
    monkeypatch.setattr(summed, "COMPENSATES", compensates)
    wanted = neumaier if compensates else one_by_one
    for a, b, c in itertools.permutations(FLOATS):

        def terms(a, b, c):
            return (a / (i + 1) if i % 2 == 0 else b - c for i in range(trips))

        def program(a, b, c):
            return sum(a / (i + 1) if i % 2 == 0 else b - c for i in range(trips))

        assert whole(program, a, b, c) == wanted(terms(a, b, c))


@pytest.mark.parametrize("compensates", [False, True])
def test_few_floats(monkeypatch, compensates):
    monkeypatch.setattr(summed, "COMPENSATES", compensates)
    wanted = neumaier if compensates else one_by_one
    for a, b, c in itertools.permutations((1e100, 1.0, -1e100)):
        assert whole(lambda a, b, c: sum([a, b, c]), a, b, c) == wanted([a, b, c])
        assert whole(lambda a, b, c: sum([a, 2, b, c], 1.5), a, b, c) == wanted([a, 2, b, c], 1.5)
        assert whole(lambda a, b, c: sum([a, b, c], True), a, b, c) == wanted([a, b, c], True)
        assert whole(lambda a, b, c: sum([a, b, c, 1j]), a, b, c) == wanted([a, b, c, 1j])
    for a, b in [(np.inf, 1.0), (1e308, 1e308), (np.inf, -np.inf), (-0.0, -0.0)]:
        found = whole(lambda a, b: sum([a, b]), a, b)
        assert str(found) == str(wanted([a, b]))


def test_numpy_scalars_end_it():
    check_calls(jit(lambda x, a: sum([a, 1.0, x[0], x[2], a])), X, 1e16)


def test_a_start_that_was_an_int(monkeypatch):
    monkeypatch.setattr(summed, "COMPENSATES", True)
    compiled = jit(lambda a: sum((a / (i + 1) for i in range(1000)), 5))
    assert compiled(1.0) == pytest.approx(5 + sum(1 / (i + 1) for i in range(1000)))
