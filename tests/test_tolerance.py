"""assert_equal_numpy accepts what is equal to NumPy and nothing else."""

from typing import Any

import numpy as np
import pytest

from npjit.core.tolerance import assert_equal_numpy, product_bound, sum_bound, ulp_distance

ONE = np.float64(1.0)
NEXT = np.nextafter(ONE, 2.0)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (np.array([1, 2]), np.array([1, 2])),
        (np.array([np.nan, -0.0]), np.array([np.nan, -0.0])),
        (np.array([], np.float32), np.array([], np.float32)),
        (np.array(3.0), np.array(3.0)),
        (np.float32(2), np.float32(2)),
        (complex(np.nan, 1), complex(np.nan, 1)),
        (3, 3),
        (None, None),
        ((np.arange(2), {"a": 1.5}), (np.arange(2), {"a": 1.5})),
        (np.array(["a", None], object), np.array(["a", None], object)),
    ],
)
def test_equal(got: Any, want: Any) -> None:
    assert_equal_numpy(got, want)


@pytest.mark.parametrize(
    ("got", "want", "message"),
    [
        (np.array([1.0]), np.array([1]), "dtype float64, not int64"),
        (np.array([1.0]), np.array([[1.0]]), "shape"),
        (np.array(1.0), np.float64(1.0), "not a float64"),
        (np.float64(1.0), 1.0, "not a float"),
        (1, True, "not a bool"),
        (np.array([0.0]), np.array([-0.0]), "1 of 1 differ"),
        (np.array([NEXT]), np.array([ONE]), "1 of 1 differ"),
        (np.array([np.nan, 1.0]), np.array([np.nan, np.nan]), "1 of 2 differ, first at"),
        (np.array([np.inf]), np.array([-np.inf]), "differ"),
        (np.array([1 + 0j]), np.array([complex(1, -0.0)]), "differ"),
        ([1.0], (1.0,), "list, not tuple"),
        ((1.0,), (1.0, 2.0), "1 results, not 2"),
        ({"a": 1}, {"b": 1}, "keys"),
    ],
)
def test_not_equal(got: Any, want: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_equal_numpy(got, want)


def test_units_in_the_last_place() -> None:
    four = ONE + 4 * np.spacing(ONE)
    assert_equal_numpy(np.array([four]), np.array([ONE]), ulp=4)
    with pytest.raises(AssertionError):
        assert_equal_numpy(np.array([np.nextafter(four, 2)]), np.array([ONE]), ulp=4)
    # special values are exact however wide the tolerance
    for got, want in ((np.inf, np.finfo("d").max), (0.0, -0.0), (np.nan, 1.0), (1e-320, -0.0)):
        with pytest.raises(AssertionError):
            assert_equal_numpy(np.array([got]), np.array([want]), ulp=4)


def test_distance_counts_floats() -> None:
    for code in "efd":
        tiny = np.nextafter(np.array(0, code), np.array(1, code))
        assert ulp_distance(tiny, -tiny) == 2
        assert ulp_distance(np.array(1, code), np.nextafter(np.array(1, code), 0, dtype=code)) == 1
        assert ulp_distance(np.array(np.nan, code), np.array(np.nan, code)) == 0
        assert ulp_distance(np.array(np.nan, code), np.array(1, code)) == np.inf
        largest = np.finfo(code).max
        assert ulp_distance(np.array(largest, code), np.array(-largest, code)) > 1e4
    # a part that cancelled is measured by the other
    assert ulp_distance(np.array(1 + 1e-16j), np.array(1 + 2e-16j)) < 1
    assert ulp_distance(np.array(1 + 1j), np.array(1 + 1.1j)) > 1e10


def test_bounds_of_sums_and_products() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 1000)).astype(np.float32)
    exact = x.astype(np.float64).sum(axis=1).astype(np.float32)
    assert_equal_numpy(x.sum(axis=1), exact, bound=sum_bound(x, axis=1))
    wrong = exact + np.float32(0.01)
    with pytest.raises(AssertionError):
        assert_equal_numpy(wrong, exact, bound=sum_bound(x, axis=1))
    y = rng.normal(size=(1000, 3)).astype(np.float32)
    product = (x.astype(np.float64) @ y).astype(np.float32)
    assert_equal_numpy(x @ y, product, bound=product_bound(x, y))
    with pytest.raises(AssertionError):
        assert_equal_numpy(product * np.float32(1.01), product, bound=product_bound(x, y))
    # integers have no rounding to allow
    with pytest.raises(AssertionError):
        assert_equal_numpy(np.array([3]), np.array([4]), bound=sum_bound(np.array([3, 4])))
