"""Every function of the table on every element type: NumPy's result and type, or NumPy's error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import npjit
from npjit.core.tolerance import assert_equal_numpy
from npjit.ops import kinds

CODES = "?bBhHiIqQefdFD"
# what is in memory before it is written is nobody's to compare
FUNCTIONS = [f for f in kinds.FUNCTIONS if callable(f) and f is not np.empty_like]


def square(code: str, seed: int) -> np.ndarray:
    """A small matrix of numbers of both signs, where the type has them."""
    random = np.random.default_rng(seed)
    if code in "efdFD":
        values = random.random((3, 3)) * 2.0 - 0.5
        return (values + 1j * random.random((3, 3)) if code in "FD" else values).astype(code)
    least = 0 if code in "?BHIQ" else -3
    return random.integers(least, 2 if code == "?" else 4, (3, 3)).astype(code)


def outcome(f, arguments):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return f(*[a.copy() for a in arguments])
        except Exception as e:
            return type(e), str(e)


def is_error(found) -> bool:
    return type(found) is tuple and isinstance(found[0], type)


def assert_same(got, wanted) -> None:
    if is_error(wanted) or is_error(got):
        assert is_error(got) and got == wanted
    elif isinstance(wanted, (tuple, list)):
        assert type(got) is type(wanted) and len(got) == len(wanted)
        for g, w in zip(got, wanted, strict=True):
            assert_same(g, w)
    elif isinstance(wanted, (np.ndarray, np.generic)) and wanted.dtype.kind in "fc":
        finite = np.abs(wanted[np.isfinite(wanted)])
        bound = 64.0 * np.finfo(wanted.dtype).eps * (1.0 + float(np.max(finite, initial=0.0)))
        assert_equal_numpy(got, wanted, bound=bound)
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert_equal_numpy(got, wanted)
    else:
        assert got == wanted


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f"{f.__module__}.{f.__name__}")
@pytest.mark.parametrize("count", [1, 2])
def test_every_dtype(f, count):
    for code in CODES:
        arguments = [square(code, k) for k in range(count)]
        wanted = outcome(f, arguments)
        if is_error(wanted) and "argument" in wanted[1]:
            continue  # takes more or fewer
        got = outcome(npjit.jit(lambda *given: f(*given), backend="numpy"), arguments)
        assert_same(got, wanted)


@pytest.mark.parametrize(
    "indices", [[True, False, True], np.array([False, True]), [[True], [False]]]
)
def test_take_counts_bools_as_numbers(indices):
    x = square("d", 0)
    for axis in (None, 1):
        taken = npjit.jit(lambda x, a=axis: np.take(x, indices, a), fullgraph=True)
        assert_equal_numpy(taken(x), np.take(x, indices, axis))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.average(x, returned=True),
        lambda x: np.average(x, axis=0, returned=True),
        lambda x: np.cov(x, bias=None),
        lambda x: np.fft.rfftn(x, axes=(0, 0)),
        lambda x: np.var(x, mean=1j),
        lambda x: np.linalg.pinv(x, 1),
    ],
)
@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_rare_arguments(f):
    x = square("d", 0)
    assert_same(npjit.jit(f)(x), f(x))
