"""What a call returns: views of arguments, new arrays, containers, and what shares memory with
what.
"""

from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import assert_same, check_calls

X = np.linspace(-1.0, 2.0, 20)
A = np.arange(12.0).reshape(3, 4)

pytestmark = pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")

VIEWS = {
    "slice": lambda x: x[1:],
    "step": lambda x: x[::-2],
    "row": lambda x: x[1],
    "transpose": lambda x: x.T,
    "newaxis": lambda x: x[None, :, None],
    "itself": lambda x: x,
    "all of it": lambda x: x[:],
    "reshape": lambda x: x.reshape(2, -1),
    "ravel": lambda x: x.ravel(),
    "diagonal": lambda x: np.diagonal(x),
    "broadcast": lambda x: np.broadcast_to(x[0], (5, *x[0].shape)),
    "chain": lambda x: x[1:].T[::-1][1],
    "asarray": lambda x: np.asarray(x),
    "imag": lambda x: x.real,
}


@pytest.mark.parametrize("f", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_views_of_arguments(jit, f, order):
    """A view that NumPy would give shares the argument's memory, element for element."""
    base = np.arange(96.0).reshape(8, 12)
    x = {"C": base[:4].copy(), "F": np.asfortranarray(base[:4]), "strided": base[::2, ::3]}[order]
    compiled = jit(f)
    for _ in range(2):
        want, got = f(x), compiled(x)
        assert_same(got, want)
        assert got.strides == want.strides
        assert got.flags.writeable == want.flags.writeable
        assert np.shares_memory(got, x) == np.shares_memory(want, x)
        assert got.ctypes.data == want.ctypes.data or not np.shares_memory(want, x)


def test_results_are_new_each_time(jit):
    f = jit(lambda x: (np.zeros(3), np.array([1.0, 2.0]), x * 2, x.copy(), np.arange(4), [x[0]]))
    first, second = f(X), f(X)
    for a, b in zip(first[:5], second[:5], strict=True):
        assert not np.shares_memory(a, b)
        a[:] = 99
    assert_same(second, f.__wrapped__(X))
    assert first[5] is not second[5]
    assert f.cache_info()["whole"] == 2


def test_constants_made_by_numpy_while_tracing(jit):
    def f(x):
        table = np.array([1.0, 2.0, 3.0])
        y = x[:3] + table
        table[0] = 7
        eye = np.eye(3)
        eye[1] = y
        grid = np.mgrid[0:3]
        z = y * grid
        grid[0] = 5
        return y, table, eye, z, grid * 1.0, np.broadcast_to(2.0, (3,)) * table

    check_calls(jit(f), X)


def test_results_that_share_memory_with_each_other(jit):
    def same(x):
        y = x + 1
        return y, y

    a, b = jit(same)(X)
    assert a is b

    def overlapping(x):
        y = x + 1
        return y, y[2:]

    f = jit(overlapping)
    a, b = f(X)
    a[5] = 100
    assert b[3] == 100
    assert f.cache_info()["broken"] == 1

    def apart(x):
        y = x + 1
        return y[:5], y[5:], y[0]

    check_calls(jit(apart), X)

    def copies(x):
        y = x + 1
        return y, y.copy(), y * 1

    f = jit(copies)
    got = f(X)
    got[0][:] = 0
    assert_same(got[1:], (X + 1, X + 1))
    assert f.cache_info()["whole"] == 1


def test_one_list_at_two_places(jit):
    def f(x):
        items = [x]
        return items, {"again": items}

    first, second = jit(f)(X)
    assert second["again"] is first


def test_kinds_of_results(jit):
    check_calls(jit(lambda x: None), X)
    check_calls(jit(lambda x: (1, 2.5, "a", b"b", True, None, ..., slice(1, 2), range(3))), X)
    check_calls(jit(lambda x: (np.float32(1), x.dtype, np.pi, x.sum(), x[0], x.max())), X)
    check_calls(jit(lambda x: {"a": {1: x}, 2.5: [x, (x,)], None: ()}), X)
    check_calls(jit(lambda x: (x.sum(keepdims=True), x[..., 0], np.array(3.0), x[0:0])), X)
    for f in (lambda x: lambda: x, lambda x: {1, 2}, lambda x: iter([1]), lambda x: object):
        compiled = jit(f)
        assert type(compiled(X)) is type(f(X))
        assert compiled.cache_info()["numpy"] == 1


def test_memory_order_of_results(jit):
    f = jit(lambda x, y: (x + y, x * 2, x.T + 1))
    c, fortran = np.ones((20, 30)), np.ones((20, 30), order="F")
    for args in ((c, c), (fortran, fortran), (fortran, c), (c.T, fortran.T)):
        for got, want in zip(f(*args), f.__wrapped__(*args), strict=True):
            assert got.strides == want.strides


def test_arrays_in_unusual_places(jit):
    w = X * 2

    def make() -> Any:
        return [lambda x: x + w, {"w": w, "f": np.cos}]

    def f(x):
        parts = make()
        return parts[0](x) + parts[1]["w"] * parts[1]["f"](x)

    check_calls(jit(f), X)
    check_calls(jit(lambda x: np.stack([x, w, x * 2])[1:, ::2]), X)
    check_calls(jit(lambda x: np.concatenate([x, [1.0, x[0]], w])), X)
    check_calls(jit(lambda a: np.array([[a[0, 0], 2], [3, a[1, 1]]])), A)
    check_calls(jit(lambda a: sum(r * i for i, r in enumerate(a)) + max(a.shape)), A)


def test_shapes_that_values_decide(jit):
    f = jit(lambda x, k: (x[:k], (x * 2)[int(x[3]) + 3 :], x[x > 0]))
    for k in (np.int64(3), np.int64(5)):
        assert_same(f(X, k), f.__wrapped__(X, k))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.copy(order="F"),
        lambda x: np.copy(x, order="F"),
        lambda x: x.astype("f4", order="F"),
        lambda x: np.zeros_like(x, order="F"),
        lambda x: np.array(x, order="F"),
    ],
)
def test_an_order_that_is_asked_for_is_kept(f):
    x = np.ones((20, 30))
    assert npjit.jit(f)(x).strides == f(x).strides
