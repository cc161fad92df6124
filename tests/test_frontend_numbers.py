"""Numbers: weak and strong scalars, Python's own arithmetic and errors, conversions, math."""

import cmath
import math
import operator

import numpy as np
import pytest

from tests.calls import assert_same, check_calls, outcome

X = np.linspace(-1.0, 2.0, 20)
NUMBERS = [
    2.5,
    3,
    True,
    1j,
    np.float64(2.5),
    np.float32(2.5),
    np.float16(2.5),
    np.int64(3),
    np.int8(3),
    np.uint8(3),
    np.bool_(True),
    np.complex64(1j),
    np.array(2.5),
    np.array(3, "i2"),
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__}-{n}")
def test_kinds_of_numbers(jit, number):
    f = jit(lambda a, x, y: (x * a, y + a, a * x[0], a + a, a, -a, a * 2, 2.0 * a, y[0] * a))
    args = (number, X, X.astype("f4"))
    for _ in range(2):
        assert_same(outcome(f, args, {}), outcome(f.__wrapped__, args, {}))


ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.eq,
    divmod,
    max,
    min,
]


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda o: o.__name__)
def test_python_arithmetic(jit, op):
    """On Python numbers it is Python's: ZeroDivisionError, OverflowError, complex powers, signed
    zeros.
    """
    f = jit(lambda x, a, b: (op(a, b), x))
    values = [2.0, -3.5, 0.0, -0.0, 1e200, float("inf"), float("nan"), 7, 0, -2, True]
    for a in values:
        for b in (3.0, 0.0, -1.5, 2, 0, -1, float("-inf")):
            assert_same(outcome(f, (X, a, b), {}), outcome(f.__wrapped__, (X, a, b), {}))


@pytest.mark.parametrize("op", ARITHMETIC[:10], ids=lambda o: o.__name__)
def test_arithmetic_with_python_constants(jit, op):
    f = jit(lambda a: (op(a, 2), op(a, 2.0), op(3, a), op(0.5, a), op(a, -1), op(a, 0)))
    g = jit(lambda a: [op(a, 2), op(a, 2.0), op(3, a), op(0.5, a)])
    for a in (2.0, -0.5, 0.0, 1e200, -1e-200, 5, -5, np.float64(-2), np.float32(3), np.int64(4)):
        for compiled in (f, g):
            assert_same(outcome(compiled, (a,), {}), outcome(compiled.__wrapped__, (a,), {}))


MATH = [
    f
    for name, f in vars(math).items()
    if callable(f) and name not in ("factorial", "comb", "perm", "ulp", "lgamma", "gamma")
]


@pytest.mark.parametrize("f", MATH, ids=lambda f: f.__name__)
def test_math_functions(jit, f):
    one = jit(lambda a: f(a))
    two = jit(lambda a, b: f(a, b))
    values = [0.5, -0.5, 0.0, 1.0, -2.0, 1e300, 800.0, math.inf, -math.inf, math.nan, 3, -1]
    for a in values:
        assert_same(outcome(one, (a,), {}), outcome(f, (a,), {}))
        for b in (2.0, 0.0, -1.0, math.inf):
            assert_same(outcome(two, (a, b), {}), outcome(f, (a, b), {}))
    assert_same(outcome(one, (np.float64(0.5),), {}), outcome(f, (np.float64(0.5),), {}))
    assert_same(outcome(one, (np.array(0.5),), {}), outcome(f, (np.array(0.5),), {}))
    assert_same(outcome(one, (X,), {}), outcome(f, (X,), {}))


def test_math_in_compiled_code(jit):
    check_calls(jit(lambda x, a: x * math.exp(-a) + math.sqrt(a) * math.pi), X, 2.0)
    check_calls(jit(lambda x, a: math.atan2(x[1], a) + math.hypot(a, 2)), X, 2.0)
    check_calls(jit(lambda x: math.sqrt(len(x)) * x), X)
    f = jit(lambda x, a: cmath.exp(1j * a) * x)
    assert_same(f(X, 0.5), f.__wrapped__(X, 0.5))


CONVERSIONS = [float, int, bool, complex, np.float32, np.float64, np.int64, np.int8, np.bool_, str]


@pytest.mark.parametrize("to", CONVERSIONS, ids=lambda c: c.__name__)
def test_conversions(jit, to):
    f = jit(lambda v: to(v))
    values = [2.7, -2.7, 0.0, 1e30, math.nan, math.inf, 3, 0, -(2**62), 2**63, True]
    values += [np.float64(2.7), np.float32(-2.7), np.int64(-5), np.uint64(2**63), np.bool_(False)]
    values += [np.array(2.7), np.array([2.7]), np.array(3), np.float16(2.5), np.complex128(1 + 2j)]
    for v in (*values, *values[:4]):
        assert_same(outcome(f, (v,), {}), outcome(to, (v,), {}))


def test_conversions_of_results(jit):
    check_calls(jit(lambda x: float(np.sum(x))), X)
    check_calls(jit(lambda x: bool(np.all(x > -5))), X)
    check_calls(jit(lambda x: int(np.sum(x > 0))), X)
    check_calls(jit(lambda x: int(np.mean(x) * 101)), X)
    check_calls(jit(lambda x: np.float32(np.mean(x))), X)
    check_calls(jit(lambda x: {"loss": float(x[0]), "n": int(x.size)}), X)
    check_calls(jit(lambda x: x[: int(0.8 * len(x))]), X)
    check_calls(jit(lambda x: round(0.3 * len(x))), X)
    check_calls(jit(lambda x: (x.sum().item(), x.item(3), x[2:3].item(), x[:3].tolist())), X)
    check_calls(jit(lambda x: (x > 0)[:2].tolist() + x.astype("u1").reshape(4, 5)[1:3].tolist()), X)
    check_calls(jit(lambda x: x.item()), X, mode="numpy")


def test_types_as_dtypes_and_in_checks(jit):
    def f(x, a):
        y = x.astype(float) + np.zeros(20, dtype=int) + np.ones(20, bool)
        assert isinstance(a, (int, float)) and not isinstance(a, bool)
        assert (
            isinstance(x, np.ndarray) and x.dtype == float and np.issubdtype(x.dtype, np.floating)
        )
        assert type(a) in (int, float)
        table = {float: 1.0, int: 2.0, np.float64: 3.0}
        return y * table[type(a)] + table[x.dtype.type], x.dtype.type(0.5) * x, np.dtype(float)

    check_calls(jit(f), X, 2)
    check_calls(jit(f), X, 2.0)


def test_text_of_numbers(jit):
    f = jit(lambda x, k: {f"n{k:03d}": x, str(len(x)): f"{x.shape}"})
    check_calls(f, X, 7)
    check_calls(f, X, 8)
