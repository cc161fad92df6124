"""Every ufunc on every dtype and on special values: value, dtype, shape and kind as NumPy."""

from typing import Any

import numpy as np
import pytest

from npjit.ops import kinds
from npjit.ops.errors import NotCaptured
from tests.tracing import check, run

UFUNCS = sorted(
    {u for u in vars(np).values() if isinstance(u, np.ufunc) and not u.signature},
    key=lambda u: u.__name__,
)
DTYPES = "?bBhHiIqQefdFD"
FLOATS = [0.0, -0.0, 1, -1, 0.5, -2.5, 3, np.inf, -np.inf, np.nan, 1e-30, 1e4, 2, -3]
PARTS = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 3, np.inf, np.nan])
SPECIAL = {
    "b": [False, True, True, False],
    "i": [0, 1, -1, 5, -7, 100, 127, -128],
    "u": [0, 1, 2, 7, 255, 128],
    "f": FLOATS,
    "c": (PARTS[:, None] + 1j * PARTS).ravel(),
}


def special(dtype: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(SPECIAL[np.dtype(dtype).kind]).astype(dtype)


def operands(ufunc: np.ufunc, dtype: str) -> list[tuple[Any, ...]]:
    a = special(dtype)
    if ufunc.nin == 1:
        return [(a,), (a[2],), (a[:0],)]
    return [(np.repeat(a, len(a)), np.tile(a, len(a))), (a, a[2]), (a[1], a), (a[1], a[2])]


def numpy_refuses(function: Any, args: tuple[Any, ...]) -> bool:
    try:
        with np.errstate(all="ignore"):
            function(*args)
    except (TypeError, ValueError):
        return True
    return False


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", UFUNCS)
def test_ufunc(ufunc: np.ufunc, dtype: str) -> None:
    for args in operands(ufunc, dtype):
        if numpy_refuses(ufunc, args):
            with pytest.raises(NotCaptured):
                run(ufunc, *args)
        elif ufunc is not np.power or dtype not in "bhiq":
            check(ufunc, *args, ulp=4, dynamic=False)


def test_every_ufunc_has_a_row() -> None:
    """Only isnat, which has no loop for a known dtype, is missing."""
    known = {*kinds.UFUNCS, *kinds.FUNCTIONS}
    every = {u for u in vars(np).values() if isinstance(u, np.ufunc)}
    assert {u.__name__ for u in every if u not in known} == {"isnat"}


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_promotion(first: str, second: str) -> None:
    a, b = np.array([1, 0, 1], first), np.array([1, 1, 0], second)
    for ufunc in (np.add, np.multiply, np.true_divide, np.less, np.equal, np.maximum, np.hypot):
        if not numpy_refuses(ufunc, (a, b)):
            check(ufunc, a, b, ulp=4, dynamic=False)
    check(lambda x, y: np.where(x.astype(bool), x, y), a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_numbers_are_weak(dtype: str) -> None:
    x = np.array([1, 0, 1], dtype)
    check(lambda x: x * 2, x)
    check(lambda x: 2.5 + x, x)
    check(lambda x: x * 2j, x)
    check(lambda x: x * True, x)
    check(lambda x: np.where(x.astype(bool), x, 0.5), x)
    check(lambda x, s: x * s, x, 2.5)


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_cast(source: str, target: str) -> None:
    with np.errstate(all="ignore"):
        values = special(source)
        if np.dtype(target).kind in "iu" and values.dtype.kind in "fc":
            values = values[np.isfinite(values) & (np.abs(values) < 100)]
    check(lambda x: x.astype(target), values)


def test_int64_against_uint64() -> None:
    a = np.array([-1, 2**62, 5])
    b = np.array([2**64 - 1, 2**63, 5], np.uint64)
    for compare in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
        check(compare, a, b)
        check(compare, b, a)


EXPONENTS = [0, 1, 2, 3, 4, 5, 7, 2.0, 0.5, -1.0, 2.5, -2.0, np.float32(2), np.int8(3), 0.0]


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("dtype", "bBiqefdFD")
def test_known_exponent(dtype: str, exponent: Any) -> None:
    x = special(dtype)
    if x.dtype.kind == "c":
        x = x[np.isfinite(x)]
    check(lambda x: x**exponent, x, ulp=16)
    check(lambda x: np.power(x, exponent), x, ulp=16)
    check(lambda x: np.float_power(x, exponent), x, ulp=16)


@pytest.mark.parametrize("exponent", [0.5, 2.0, -1.0, 0.0, 1.7])
def test_traced_exponent(exponent: float) -> None:
    for dtype in "fd":
        check(lambda x, p: x**p, special(dtype), exponent, ulp=4)
    for dtype in "eD":
        with pytest.raises(NotCaptured):
            run(lambda x, p: x**p, special(dtype), exponent)


def test_integer_power_that_may_be_negative() -> None:
    x = np.arange(3)
    with pytest.raises(NotCaptured):
        run(lambda a, b: a**b, x, x)
    with pytest.raises(NotCaptured):
        run(lambda a: a**-1, x)
    check(lambda a, b: a**b, x, x.astype(np.uint8))


def test_two_results() -> None:
    x = special("d")[:9]
    for f in (np.modf, np.frexp, lambda x: np.divmod(x, 2.0), lambda x: divmod(x, -3)):
        check(f, x)
    check(np.frexp, special("e")[:9])
    check(lambda x: np.divmod(x, 3), special("b"))


@pytest.mark.parametrize("dtype", "?bBlefdFD")
def test_parts_of_complex_numbers(dtype: str) -> None:
    x = special(dtype)
    for f in (np.real, np.imag, lambda x: x.real, lambda x: x.imag, lambda x: x.conj(), np.conj):
        check(f, x)
        check(f, x[1])
    check(np.angle, x, ulp=4)
    check(lambda x: np.angle(x, deg=True), x, ulp=4)


def test_keyword_arguments_of_ufuncs() -> None:
    x = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    check(lambda x: np.add(x, 1, dtype=np.float32), x)
    check(lambda x: np.multiply(x, 2, dtype=complex), x)
    check(lambda x: np.less(x, 1, dtype=bool), x)

    def masked(x: Any) -> Any:
        np.sqrt(x, out=x, where=x > 0)
        return x * 1

    check(masked, x)
    with pytest.raises(NotCaptured):
        run(lambda x: np.add(x, 1.5, out=x), np.arange(3))
    with pytest.raises(NotCaptured):
        run(lambda x: np.sqrt(x, where=x > 0), x)
