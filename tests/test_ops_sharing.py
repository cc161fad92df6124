"""Arrays that share memory: a write through one is seen by the other as in NumPy."""

from typing import Any

import numpy as np
import pytest

from npjit.ops.errors import NotCaptured
from tests.tracing import check, run

X = np.arange(12.0).reshape(3, 4)
FORTRAN = np.asfortranarray(X)


def write_through_reshape(x: Any) -> Any:
    flat = x.reshape(-1)
    flat[0] = 5
    return x * 1


def write_under_reshape(x: Any) -> Any:
    y = x.reshape(4, 3)
    x[0, 0] = 7
    y[1] += 1
    x[2] *= 2
    return y * 1


def write_result_and_its_ravel(x: Any) -> Any:
    y = x * 2
    z = y.ravel()
    z[3] = 0
    y[1, 1] = 9
    return y, z * 1


def write_through_transpose(x: Any) -> Any:
    x.T[0] = 3
    return x.ravel("F") + 1


def write_new_row(x: Any) -> Any:
    rows = np.atleast_2d(x[0])
    rows[0, 0] = 4
    return x * 1


def write_flatten(x: Any) -> Any:
    flat = x.flatten()
    flat[0] = 100
    return flat


def write_copy(x: Any) -> Any:
    y = x.copy()
    y[0] = 0
    return y, x * 1


def write_scalar_made_array(x: Any) -> Any:
    s = np.expand_dims(x[0, 0], 0)
    s[0] = 9
    return s, x * 1


def read_scalar_then_write(x: Any) -> Any:
    s = x[0, 0]
    x[0, 0] = 9
    return s


def write_split(x: Any) -> Any:
    left, right = np.split(x, 2, axis=1)
    left[:] = right
    return x * 1


def read_broadcast_then_write(x: Any) -> Any:
    wide = np.broadcast_to(x[0], (3, 4))
    x[0] = 1
    return wide * 1


def write_overlapping(x: Any) -> Any:
    x[:, 1:] = x[:, :-1]
    x += x[::-1]
    return x * 1


def write_in_other_ways(x: Any) -> Any:
    np.fill_diagonal(x, 0)
    x[x > 8] = -1
    np.add(x, 1, out=x)
    x[0].fill(3)
    np.copyto(x[1], x[2] * 2, where=x[0] > 0)
    return x * 1


def write_joined(x: Any) -> Any:
    both = np.concatenate([x, x])
    both[0] = 9
    return both


def two_equal_buffers(xp: Any, x: Any) -> Any:
    a, b = xp.zeros(3), xp.zeros(3)
    a[0] = 1
    return a, b


def write_created(xp: Any, x: Any) -> Any:
    a = xp.arange(12).reshape(3, 4)
    a[0] = -1
    b = xp.zeros((3, 4))
    b[1:, ::2] = x[1:, ::2]
    c = xp.array([x[0], x[1]])
    c[0] = 5
    return a, b, c


EVERYWHERE = [
    *(write_through_transpose, write_new_row, write_flatten, write_copy),
    *(write_scalar_made_array, read_scalar_then_write, write_split, read_broadcast_then_write),
    *(write_overlapping, write_in_other_ways, write_joined, two_equal_buffers, write_created),
]


@pytest.mark.parametrize("program", EVERYWHERE)
def test_program(program: Any) -> None:
    for x in (X, FORTRAN, X[::-1]):
        check(program, x)


RESHAPES = [write_through_reshape, write_under_reshape, write_result_and_its_ravel]


@pytest.mark.parametrize("program", RESHAPES)
def test_reshape_of_contiguous_memory(program: Any) -> None:
    check(program, X)


@pytest.mark.parametrize("program", RESHAPES)
def test_reshape_that_numpy_copies_is_not_captured(program: Any) -> None:
    with pytest.raises(NotCaptured):
        run(program, FORTRAN.copy("K"))


def test_reshape_of_a_view_may_be_read() -> None:
    def reads(x: Any) -> Any:
        total = x[0, ...].reshape(2, 2).sum()
        x[0] = total
        return x * 1

    def writes(x: Any) -> Any:
        square = x[0, ...].reshape(2, 2)
        x[0, 0] = 1
        return square * 1

    check(reads, X)
    with pytest.raises(NotCaptured):
        run(writes, X)


@pytest.mark.parametrize(
    "copied",
    [
        lambda x: x.T.reshape(-1),
        lambda x: x[:, 1:].reshape(-1),
        lambda x: x[::-1].reshape(2, 6),
        lambda x: np.broadcast_to(x[0], (3, 4)).reshape(-1),
        lambda x: x[:, ::2].T.reshape(3, 2),
        lambda x: x[:, ::2].ravel(),
    ],
)
def test_reshape_that_numpy_copies(copied: Any) -> None:
    def program(x: Any) -> Any:
        y = copied(x)
        y[0] = -1
        x[0, 0] = 5
        return y * 1, x * 1

    check(program, X)


@pytest.mark.parametrize(
    "shared",
    [
        lambda x: x[1:].reshape(-1),
        lambda x: x[:, ::2].reshape(3, 2, 1, 1).reshape(3, 1, 2),
        lambda x: x[:, ::2].reshape(-1),
        lambda x: x[0, ...].reshape(2, 2),
        lambda x: x.T.reshape(2, 2, 3),
    ],
)
def test_reshape_that_numpy_shares(shared: Any) -> None:
    """Written to, such an array ends the trace or is seen through the other."""

    def program(x: Any) -> Any:
        y = shared(x)
        y[0] = -1
        return x * 1

    try:
        run(program, X.copy())
    except NotCaptured:
        return
    check(program, X, dynamic=False)


def test_writes_that_are_not_followed() -> None:
    def broadcast(x: Any) -> Any:
        wide = np.broadcast_to(x[0], (3, 4))
        wide[0] = 3
        return x * 1

    with pytest.raises(NotCaptured):
        run(broadcast, X.copy())
