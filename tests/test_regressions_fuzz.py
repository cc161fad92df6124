"""What random programs have found: each function as it stands against npjit's, by compiled code."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import check_calls
from tests.fuzz.program import Program

X = (np.arange(12.0).reshape(4, 3) - 5) / 8
FRACTIONS = np.array([np.nan, -0.3, 0.3, -0.0, np.inf, -np.inf, 1e10, -5.5, 3e9, 1e19])


@pytest.mark.parametrize("through", list("bBhHiIqQ"))
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_through_ints(dtype: str, through: str) -> None:
    """g++ takes the double conversion for trunc(), which keeps NaN and the sign of -0.3."""
    check_calls(npjit.jit(lambda x: x.astype(through).astype(dtype)), FRACTIONS.astype(dtype))


@pytest.mark.parametrize("dtype", list("bBhHiIqQ"))
def test_reciprocal_of_int_zero(dtype: str) -> None:
    check_calls(npjit.jit(np.reciprocal), np.array([0, 1, 2, 3], dtype))


def part_of_what_is_made(x: Any) -> Any:
    """The copy of a part is not the place to compute all of it."""
    y = np.arctanh(x)
    return y + 0.0, y[:2]


def no_part_of_what_is_made(x: Any) -> Any:
    y = np.arctanh(x)
    return y + 0.0, y[1:1]


def read_where_max_is(x: Any) -> Any:
    row = x[np.argmax(x[:, 0])]
    return row < x, row * 2


def any_with_initial(x: Any) -> Any:
    return np.logical_or.reduce(x > 9, axis=0, initial=True)


def imaginary_part_written(x: Any) -> Any:
    """The imaginary part of real numbers is read-only."""
    x.imag[0] = 1
    return x


@pytest.mark.parametrize(
    "function, mode", [(any_with_initial, "broken"), (imaginary_part_written, "numpy")]
)
def test_left_to_numpy(function: Callable[..., Any], mode: str) -> None:
    check_calls(npjit.jit(function), X, mode=mode)


def far_argmax(x: Any) -> Any:
    """An index beyond a byte, computed behind a kernel that leaves it in memory."""
    long = np.tile(np.ravel(x), 50)
    long[400] = 9
    turned = np.vstack([long])
    return (turned % turned)[..., [-1, 2]], long[np.argmax(long)]


def nan_min_of_nothing(x: Any) -> Any:
    return np.nanmin(np.ldexp(x[:0] > 0, x[:0] > 0), axis=1).flatten()


def zeros_over_no_axes(x: Any) -> Any:
    return np.sum(x * -0.0, axis=())


def clipped_zeros(x: Any) -> Any:
    """Constant bounds keep the sign of a zero, arrays of bounds do not."""
    zeros, bound = x * -0.0, np.abs(x) * 0.0
    return np.clip(zeros, 0, 7), np.clip(zeros, bound, 7), np.clip(zeros, bound, bound + 7)


def reshaped_nothing(x: Any) -> Any:
    part = x[-9:0:-2, 0]
    return np.kron(part, part), np.sum(x)


def log_sum_of_bools(x: Any) -> Any:
    return np.logaddexp.reduce(x > 0)


def numbers(x: Any, t: float) -> Any:
    """nan_to_num of a 0-d array is a scalar; ^ of Python bools is a bool."""
    above = t > 0
    return np.nan_to_num(np.sum(x)), np.nan_to_num(x[0, 0, ...]), above ^ above, above & (t < 3)


def items_written_ahead(x: Any) -> Any:
    """A loop that cannot be staged reads each item when its turn comes."""
    y = x[:, 0].copy()
    last = y
    for v in y:
        y[:] = np.where(y > 0.5, y, last + v)
        last = x[::-1, 1]
    return y


@pytest.mark.parametrize(
    "function",
    [
        part_of_what_is_made,
        no_part_of_what_is_made,
        read_where_max_is,
        far_argmax,
        nan_min_of_nothing,
        zeros_over_no_axes,
        clipped_zeros,
        reshaped_nothing,
        log_sum_of_bools,
        items_written_ahead,
    ],
)
def test_arrays(function: Callable[..., Any]) -> None:
    check_calls(npjit.jit(function), X)


def test_numbers() -> None:
    check_calls(npjit.jit(numbers), X, 2.5)


def like(x: Any) -> Any:
    return np.ones_like(x) * 2


def rolled(x: Any) -> Any:
    return np.roll(x, 1, axis=1) * 2


def joined(x: Any) -> Any:
    return np.concatenate([x, x]) * 2


def overwritten(x: Any) -> Any:
    made = np.zeros_like(x)
    made[...] = 1.0
    return made * 2


@pytest.mark.parametrize("make", [like, rolled, joined, overwritten])
def test_reshape_copies_fortran_order(make: Callable[..., Any]) -> None:
    """NumPy's reshape copies an array in Fortran order, which these keep."""

    def f(x: Any) -> Any:
        made = make(x)
        made.reshape(-1)[0] = 7
        return made

    x = np.asfortranarray(X)
    with pytest.warns(npjit.NpjitWarning):
        got = npjit.jit(f)(x)
    assert np.array_equal(got, f(x))


@pytest.mark.parametrize("make", [np.ones_like, like])
def test_memory_order(make: Callable[..., Any]) -> None:
    got = npjit.jit(make)(np.asfortranarray(X))
    assert got.strides == make(np.asfortranarray(X)).strides


@pytest.mark.parametrize("value", [1.5j, np.nan, np.inf, 1e300, np.float64(np.nan)])
@pytest.mark.parametrize("dtype", ["i1", "u8", "f4", "?"])
def test_numbers_stored(dtype: str, value: Any) -> None:
    """Python's own int() and float() stand between a number and an array, and may raise."""

    def f(x: Any, v: Any) -> Any:
        x[:] = v
        return x

    def outcome(g: Callable[..., Any]) -> Any:
        try:
            return g(np.zeros(3, dtype), value)
        except Exception as e:
            return type(e), str(e)

    with np.errstate(all="ignore"):
        want = outcome(f)
        got = outcome(npjit.jit(f))
    assert str(got) == str(want)


# ---------------------------------------------------------------- loops


def bound_to_either(a: Any, b: Any) -> Any:
    """After a trip b may be either array, and the next trip writes to it."""
    for i in range(9):
        b[1:] += b[:-1]
        b = b if a[i] > 0 else a
    return np.sum(b)


def returned_either(a: Any, b: Any) -> Any:
    v = b
    for q in b:
        v = a if q > 0.2 else b
    return v


def swapped_under_a_condition(a: Any, b: Any) -> Any:
    v, w = b, b[:]
    for i in range(8):
        if a[i] < 0:
            v, w = w, v
    return w


@pytest.mark.parametrize("function", [bound_to_either, returned_either, swapped_under_a_condition])
def test_aliases(function: Callable[..., Any]) -> None:
    """Whatever way the call takes: values, writes and shared memory are Python's."""
    mine, theirs = ([np.linspace(-1, 1, 12), np.linspace(1, 2, 12)] for _ in range(2))
    with np.errstate(all="ignore"):
        got, want = _quietly(npjit.jit(function), mine), function(*theirs)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(mine, theirs)
    results = [(got, mine), (want, theirs)]
    shares = [[np.shares_memory(np.asarray(r), a) for a in args] for r, args in results]
    assert shares[0] == shares[1]


def _quietly(f: Callable[..., Any], args: list[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", npjit.NpjitWarning)
        return f(*args)


def type_of_the_last_trip(x: Any) -> Any:
    t = np.float64(0.0)
    for v in x:
        t = v
    return t


def test_number_keeps_its_type() -> None:
    """float32 items are not widened by the float64 that the name held before."""
    check_calls(npjit.jit(type_of_the_last_trip), np.arange(9, dtype="f4"))


ASSERTION = [
    "def f(x):",
    "    s = x.sum()",
    "    if s > 1e9:",
    "        assert len(x) == 3",
    "    return s",
]


def test_assertion_in_a_branch_not_taken() -> None:
    function = Program.of(["x = np.arange(9.0)"], ASSERTION).function()
    check_calls(npjit.jit(function), np.arange(9.0))


UNBOUND = [
    "def f(x):",
    "    w = u",
    "    if x.sum() > 0:",
    "        u = x * 2",
    "    return x",
]


def test_unbound_name_under_another_name() -> None:
    function = Program.of(["x = np.arange(9.0)"], UNBOUND).function()
    with pytest.raises(UnboundLocalError):
        npjit.jit(function)(np.arange(9.0))


def empty_part_written(x: Any) -> Any:
    last = np.sum(x, axis=-1, keepdims=True)[-1, :1]
    square = last.reshape((1, 1))
    square[1:] *= square[1:]
    return square


def test_write_to_no_element() -> None:
    check_calls(npjit.jit(empty_part_written), np.full((3, 3), 2.0))


def products_twice(x: Any) -> Any:
    products = np.multiply.reduce(x, axis=1)
    return np.append(products, products)


def test_flattened_reduction_of_a_middle_axis() -> None:
    check_calls(npjit.jit(products_twice), np.arange(48.0).reshape(4, 4, 3) / 7)


def items_of_what_is_written(x: Any) -> Any:
    """An item is read in its own trip, also where two trips are taken at a time."""
    u, w, total = x.copy(), x - 1.0, 0.0
    for item in u:
        w, x = x, w
        u *= 0.5
        total = total * 0.25 + item
    return total, w


def test_items_of_what_is_written() -> None:
    check_calls(npjit.jit(items_of_what_is_written), np.arange(1.0, 24.0))


def python_or_numpy(x: Any) -> Any:
    """The data decides whether the float is Python's, and with it the dtype of the result."""
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            total = total + np.float64(x[i])
    return x * total


def python_in_the_first_trip(x: Any) -> Any:
    """The product is float32 in the first trip, and float64 in all others."""
    made, total = np.zeros(len(x)), 0.1
    for i in range(len(x)):
        made[i] = x[i] * total
        total = total + np.float64(x[i])
    return made


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(
    "function, mode", [(python_or_numpy, "numpy"), (python_in_the_first_trip, "whole")]
)
def test_number_of_either_kind_beside_narrow_arrays(
    function: Callable[..., Any], mode: str, sign: int
) -> None:
    check_calls(npjit.jit(function), np.arange(1, 30, dtype="f4") * sign, mode=mode)


def recurrence_of_narrow_numbers(x: Any) -> Any:
    """What starts as Python's float is an np.float32 behind the first trip."""
    made, y = np.empty_like(x), 0.1
    for i in range(len(x)):
        y = 0.3 * x[i] + 0.7 * y
        made[i] = y
    return made


@pytest.mark.parametrize("count", [1, 300, 1000])
def test_recurrence_of_narrow_numbers(count: int) -> None:
    check_calls(npjit.jit(recurrence_of_narrow_numbers), np.arange(1, count + 1, dtype="f4") / 7)


def quotient_of_either(x: Any) -> Any:
    """Python's float raises where NumPy's gives inf."""
    s = 0.0
    if x[0] > 0:
        s = x[0] * 2.0
    return 1.0 / s


def root_of_either(x: Any) -> Any:
    """The root of Python's negative number is complex, NumPy's is NaN."""
    s = -2.0
    if x[0] > 0:
        s = x[0] * 2.0
    return s**0.5


@pytest.mark.parametrize("function", [quotient_of_either, root_of_either])
@pytest.mark.parametrize("sign, mode", [(-1, "numpy"), (1, "whole")])
def test_number_of_either_kind_as_python_has_it(
    function: Callable[..., Any], sign: int, mode: str
) -> None:
    check_calls(npjit.jit(function), np.arange(1.0, 30.0) * sign, mode=mode)


def counted_in_ranges_that_empty(x: Any, k: int) -> Any:
    """range(i + 1, n) has no trips from i = n on, not fewer than none."""
    out = np.zeros(k)
    for i in range(k):
        m = 3
        for _ in range(i + 1, len(x)):
            m += 2
        out[i] = m
    return out, m


def counted_after_an_empty_range(x: Any, k: int) -> Any:
    m = k
    for _ in range(k, len(x)):
        m += 1
    return x[:2] * m, m


@pytest.mark.parametrize("function", [counted_in_ranges_that_empty, counted_after_an_empty_range])
def test_counts_of_empty_ranges(function: Callable[..., Any]) -> None:
    jitted = npjit.jit(function)
    check_calls(jitted, np.ones(5), 7)
    for k in (1, 3, 20, 50):
        np.testing.assert_equal(jitted(np.ones(20), k), function(np.ones(20), k))
    assert jitted.cache_info()["numpy"] == 0


def bound_anew_in_no_trip(a: Any, b: Any) -> Any:
    """The condition is known to fail: v stays the argument itself."""
    t = 0
    v = b
    c = 0
    while c < 6 and (0 < t < 2):
        c += 1
        v = np.zeros(len(a))
    return v


def test_while_loop_known_to_have_no_trip() -> None:
    a, b = np.ones(5), np.arange(5.0)
    assert npjit.jit(bound_anew_in_no_trip)(a, b) is b


def long_int(a: Any, n: int, k: int) -> int:
    for i in range(n):
        for _ in range(3):
            k = (k - 1 + i) // 2
            a[k], a[i] = a[i], a[k]
    return k


def test_an_int_of_a_loop_that_outgrows_sizes_is_a_traced_number() -> None:
    compiled = npjit.jit(long_int)
    for n, k in [(1, 5), (3, 7), (3, 2)]:
        ours, numpys = np.arange(8.0), np.arange(8.0)
        assert compiled(ours, n, k) == long_int(numpys, n, k)
        np.testing.assert_array_equal(ours, numpys)
    assert compiled.cache_info()["whole"] == 3


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4"])
@pytest.mark.parametrize("number", [3.7, -1.5, 100.0, 300.0, -40_000.0, 5e9, -5e9, 1e30, np.nan])
def test_numpy_floats_stored_as_ints(dtype: str, number: float) -> None:
    """NumPy's scalars go through int(), which raises where the value is none of the type."""

    def stored(a: Any, x: Any) -> Any:
        for i in range(len(a)):
            a[i] = x[i] * 1.0
        return a

    given = np.full(20, number)
    numpys, ours = np.zeros(20, dtype), np.zeros(20, dtype)
    try:
        stored(numpys, given)
    except (OverflowError, ValueError) as error:
        with pytest.raises(type(error)):
            npjit.jit(stored)(ours, given)
    else:
        npjit.jit(stored)(ours, given)
    np.testing.assert_array_equal(ours, numpys)
