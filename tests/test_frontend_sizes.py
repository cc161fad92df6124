"""Sizes and int arguments: symbols from the first call, guarded where Python decides by them."""

import gc
import math
import warnings

import numpy as np
import pytest

import npjit
from tests.calls import assert_same, outcome

X = np.linspace(-1.0, 2.0, 20)


def check_sizes(f, sizes, compiled=None, numpy=0):
    """Calls with arrays of these lengths equal NumPy's; returns nothing, asserts how many versions
    were made.
    """
    for n in sizes:
        for _ in range(2):
            x = np.arange(float(n))
            assert_same(outcome(f, (x,), {}), outcome(f.__wrapped__, (x,), {}))
    info = f.cache_info()
    assert info["numpy"] == numpy, info
    if compiled is not None:
        assert info["compiled"] == compiled, info


def test_large_sizes_are_one_version(jit):
    check_sizes(jit(lambda x: np.sqrt(x) * 2 + x[::-1]), range(17, 60, 7), compiled=1)
    check_sizes(jit(lambda x: x[1:] - x[:-1]), range(17, 60, 7), compiled=1)
    check_sizes(jit(lambda x: x.sum() / x.size + len(x)), range(17, 60, 7), compiled=1)
    check_sizes(jit(lambda x: np.zeros(2 * len(x) + 1)[1:] + 1), range(17, 60, 7), compiled=1)
    check_sizes(jit(lambda x: x.reshape(2, -1) * 2), range(18, 60, 6), compiled=1)


def test_small_sizes_are_literal_until_another_is_seen(jit):
    check_sizes(jit(lambda x: x + 1), [0, 1, 2, 3, 4, 16, 17, 100, 2, 1, 0], compiled=4)
    check_sizes(jit(lambda x: x + 1, dynamic=True), [5, 6, 7, 16, 17], compiled=1)
    check_sizes(jit(lambda x: x + 1, dynamic=False), [5, 6, 17, 18], compiled=4)


def test_branches_on_sizes_are_guarded(jit):
    def f(x):
        n = len(x)
        if n > 30:
            return x * 2
        if n % 2:
            return x - 1
        return x + n

    f = jit(f)
    check_sizes(f, [40, 20, 21, 50, 22, 23, 30, 31, 29], compiled=3)

    def g(x):
        return x[: len(x) // 2] + x[len(x) - len(x) // 2 :]

    check_sizes(jit(g), range(17, 30), compiled=1)
    check_sizes(jit(lambda x: x[3:25]), range(17, 35))
    check_sizes(jit(lambda x: x[-25:]), range(17, 35))
    check_sizes(jit(lambda x: x[20:] * 2), range(17, 25))


def test_equal_extents_are_guarded_not_assumed(jit):
    f = jit(lambda x, y: x + y)
    for n, m in ((20, 20), (30, 30), (20, 30), (20, 1), (1, 30), (25, 25)):
        x, y = np.ones(n), np.ones(m)
        assert_same(outcome(f, (x, y), {}), outcome(f.__wrapped__, (x, y), {}))
    assert f.cache_info()["compiled"] == 3
    g = jit(lambda a, b: a @ b)
    for n, m, k in ((20, 30, 40), (20, 20, 20), (17, 18, 19), (20, 30, 20)):
        a, b = np.ones((n, m)), np.ones((m, k))
        assert_same(outcome(g, (a, b), {}), outcome(g.__wrapped__, (a, b), {}))
        bad = np.ones((m + 1, k))
        assert_same(outcome(g, (a, bad), {})[0], ValueError)
    assert g.cache_info()["compiled"] == 1


@pytest.mark.parametrize(
    ("f", "values", "versions"),
    [
        (lambda x, k: x * k + k, [0, 1, 5, -3, 2**40], 1),
        (lambda x, k: x[k:] if k > 0 else x, [1, 3, 0, -1, 19, 25], None),
        (lambda x, k: x[k], [0, 5, 19, -1, -20, 20, -21], None),
        (lambda x, k: np.full(k, 2.0) if k >= 0 else x, [0, 1, 2, 30, 31], None),
        (lambda x, k: np.sum(x, axis=k), [0, -1, 1], None),
        (lambda x, k: [x * i for i in range(k)], [0, 1, 3, 7, 40], 2),
        (lambda x, k: (k // 3, k % 3, -k, abs(k), k**2, divmod(k, 4)), [7, -7, 0], 2),
        (lambda x, k: (k / 3, k * 0.5, float(k), k == 3, k > 2.5), [3, 4, -1], None),
        (lambda x, k: (k & 3, k | 4, k << 1, ~k, bool(k), str(k)), [1, 2], 2),
        (lambda x, k: x[: int(0.5 * k)], [4, 10], 2),
        (lambda x, k: x.reshape(k, -1), [4, 5, 2, 3], None),
        (lambda x, k: math.sqrt(k) * x, [4, 5, 0, -1], None),
        (lambda x, k: np.sqrt(np.float32(2)) * k + np.int64(3) * k, [4, 5], 1),
        (lambda x, k: {k: x}[k] * [1.0, 2.0, 3.0][k], [0, 2, 3], None),
        (lambda x, k: (k, (k + 1, [k * 2])), [5, -5], 1),
        (lambda x, k: max(k, 3) + min(len(x), k), [1, 5, 30], None),
    ],
)
def test_int_arguments(jit, f, values, versions):
    compiled = jit(f)
    for k in (*values, *values):
        assert_same(outcome(compiled, (X, k), {}), outcome(f, (X, k), {}))
    if versions is not None:
        info = compiled.cache_info()
        assert info["compiled"] == versions, info
        assert info["numpy"] == 0, info


def test_ints_are_unbounded(jit):
    def f(x, k):
        return k * k * k + 1, k - 1, x * (k // 2)

    compiled = jit(f)
    for k in (3, 2**20, 2**21 + 1, 2**40, -(2**40), 2**62, 2**63 - 1, 2**63, 2**70, -(2**63), 10):
        assert_same(outcome(compiled, (X, k), {}), outcome(f, (X, k), {}))

    def g(x, k):
        return x + k, (k * k) % 7

    compiled = jit(g)
    for k in (3, 50, 2**31, 2**32, 2**33):
        assert_same(outcome(compiled, (X, k), {})[-1], outcome(g, (X, k), {})[-1])

    def h(x, k):
        if k * k > 10**18:
            return x
        return x + 1

    compiled = jit(h)
    for k in (3, 2**31, 2**32, 2**33, 10**10, 4 * 10**9):
        assert_same(outcome(compiled, (X, k), {}), outcome(h, (X, k), {}))


def test_shapes_as_values(jit):
    def f(x):
        n, m = x.shape
        return x.astype(np.float32) * np.prod(x.shape), x * np.sqrt(n), n * m, x.shape, x.ndim

    compiled = jit(f)
    for shape in ((20, 30), (21, 30), (3, 40), (2, 2)):
        x = np.ones(shape)
        assert_same(outcome(compiled, (x,), {}), outcome(f, (x,), {}))
    assert compiled.cache_info()["numpy"] == 0


def test_a_while_loop_over_an_int_argument(jit):
    def collatz(x, n):
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return x + count

    compiled = jit(collatz)
    for n in (27, 6, 97, 27):
        assert_same(compiled(X, n), collatz(X, n))


def test_float_arguments_that_decide(jit):
    def f(x, a):
        return x * a if a > 0.5 else x - a

    compiled = jit(f)
    for a in (1.0, 2.0, 0.25, -1.0, 1.0, float("nan"), np.float64(3), np.float32(0.1), 7.0, 8.0):
        assert_same(compiled(X, a), f(X, a))


def test_the_recompile_limit_names_the_argument():
    f = npjit.jit(lambda x, axis: (x * 2,) * axis, backend="numpy", recompile_limit=4)
    with pytest.warns(npjit.NpjitWarning, match="compiled 4 times, for other values of axis"):
        for k in range(1, 8):
            assert len(f(X, k)) == k
    assert f.cache_info()["compiled"] == 4
    assert f.cache_info()["numpy"] == 3
    g = npjit.jit(lambda x, mode: x, backend="numpy", recompile_limit=2)
    with pytest.warns(npjit.NpjitWarning, match="other values of mode"):
        for mode in "abc":
            g(X, mode)


def test_ten_thousand_sizes_and_many_odd_calls_keep_nothing():
    f = npjit.jit(lambda x: x * 2 + 1, backend="numpy")
    g = npjit.jit(lambda x, k: x[k], backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(1, 10_000, 1):
            f(np.empty(n))
        for k in range(100, 400):
            with pytest.raises(IndexError):
                g(X, k)
    assert f.cache_info()["compiled"] <= 4
    assert len(f.entries) <= 4
    assert len(g.entries) + len(g.refusals) < 60
    gc.collect()
    assert sum(isinstance(o, npjit.api.compile.Compiled) for o in gc.get_objects()) < 1000


def test_arguments_are_not_kept_alive():
    import weakref

    class Array(np.ndarray):
        """An array that can be referred to weakly."""

    f = npjit.jit(lambda x: x + 1, backend="numpy")
    base = np.ones(30).view(Array)
    x = np.asarray(base)
    kept = weakref.ref(base)
    f(x)
    del x, base
    gc.collect()
    assert kept() is None


def multiples(x, n):
    t = 0
    for i in range(n, n + len(x)):
        t = i * 2305843009213693952
    return t


def products(x, n):
    t = 0
    for i in range(len(x)):
        for j in range(i):
            t = i * j * 4611686018427387904 + n
    return t


def powers(x, n):
    t = 0
    for i in range(len(x)):
        t = i * i * i * i * i * i * i + n
    return t


def elements(x, n):
    for i in range(len(x)):
        x[i * 18446744073709551616] = n


@pytest.mark.parametrize("f", [multiples, products, powers, elements], ids=lambda f: f.__name__)
def test_ints_of_a_loop_that_leave_64_bits(f):
    """Python's go on: what a trip computes is bounded as what stands outside is."""
    for length in (3, 9, 1000):
        for n in (1, 2**61, 2**62):
            mine, theirs = (np.ones(length), n), (np.ones(length), n)
            assert_same(outcome(npjit.jit(f), mine, {}), outcome(f, theirs, {}))
            assert_same(mine, theirs)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i4", "i1"])
def test_clipped_to_a_size(dtype):
    """A size is within int64, which nobody needs to ask."""

    def inside(x, n):
        return np.clip(x, 0, x.shape[0] - 1), np.clip(x, -n, n)

    compiled = npjit.jit(inside, fullgraph=True)
    for length, n in ((20, 5), (50, 200)):
        x = (np.arange(length) * 3 - 9).astype(dtype)
        assert_same(compiled(x, n), inside(x, n))


def test_ints_of_a_loop_that_stay_are_compiled():
    compiled = npjit.jit(powers)
    assert compiled(np.ones(20), 3) == powers(np.ones(20), 3)
    assert compiled(np.ones(1000), 3) == powers(np.ones(1000), 3)
    info = compiled.cache_info()
    assert (info["whole"], info["numpy"]) == (1, 1)
