"""Index arrays and masks that are computed: reading, writing, adding up; and their gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.gradients import check_gradients
from tests.tracing import check

RANDOM = np.random.default_rng(23)
X = RANDOM.normal(size=(4, 5))
V = RANDOM.normal(size=6)
I = np.array([0, 3, -1, 1, 1, 0])  # noqa: E741
J = np.array([[1, -2], [3, 0], [-1, 2]], np.int32)
U = np.array([2, 0, 3], np.uint8)

READS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "rows": (lambda x, i: x[i], [X, I]),
    "columns": (lambda x, i: x[:, i], [X, I]),
    "matrix of places": (lambda x, j: x[j], [X, J]),
    "pairs": (lambda x, i: x[i, i], [X, I]),
    "broadcast pairs": (lambda x, j, u: x[j[:, :1], j[:1]] + x[u[:, None], j[:1]], [X, J, U]),
    "apart": (lambda x, i: x[None, i, :, None][:, :, 1:], [X, I]),
    "beside a number": (lambda x, i: x[1, i], [X, I]),
    "number and slice between": (lambda x, i: x.reshape(2, 2, 5)[1, :, i], [X, I]),
    "slices": (lambda x, i: x[::-1, 1:4][:, i % 3], [X, I]),
    "unsigned": (lambda x, u: x[u], [X, U]),
    "0-d": (lambda x, i: x[i[0, ...], i[1, ...]], [X, I]),
    "arange": (lambda xp, x, i: x[xp.arange(4), i[:4]], [X, I]),
    "empty": (lambda x, i: x[i[:0]], [X, I]),
    "listed mask": (lambda x: x[:, [True, False, True, True, False]], [X]),
    "take": (lambda x, i: np.take(x, i, axis=1), [X, I]),
    "take flat": (lambda x, j: np.take(x, j), [X, J]),
    "take clipped": (lambda x, i: np.take(x, i * 3, axis=0, mode="clip"), [X, I]),
    "take wrapped": (lambda x, i: np.take(x, i * 3, axis=0, mode="wrap"), [X, I]),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.argsort(x, 0), 0), [X]),
    "take_along_axis wide": (lambda x, i: np.take_along_axis(x, i[None, :], 1), [X, I]),
    "bincount": (lambda i: np.bincount(i % 5, minlength=7), [I]),
    "bincount weights": (lambda i, v: np.bincount(i % 4, v, 4), [I, V]),
}


@pytest.mark.parametrize("name", READS)
def test_reads(name: str) -> None:
    function, args = READS[name]
    check(function, *args)


def store(x: Any, i: Any, v: Any) -> Any:
    x[i] = v[0]
    return x * 1


def store_rows(x: Any, i: Any, v: Any) -> Any:
    x[i] = v[:, None] * x[i[::-1]]
    return x * 1


def store_columns(x: Any, i: Any, v: Any) -> Any:
    x[:, i] = v
    return x * 1


def store_pairs(x: Any, i: Any, v: Any) -> Any:
    x[i, i] = v
    return x * 1


def store_in_part(x: Any, i: Any, v: Any) -> Any:
    part = x[::-2, 1:]
    part[i % 2, ::2] = v[:, None]
    return x * 1, part + 1


def store_in_local(x: Any, i: Any, v: Any) -> Any:
    y = np.sin(x)
    z = y + 1
    y[i, 2] += v
    return y, z


def store_in_transposed(x: Any, i: Any, v: Any) -> Any:
    x.T[i] -= v[:, None]
    return x * 1


def add_at(x: Any, i: Any, v: Any) -> Any:
    np.add.at(x, (i, slice(1, 4)), v[:, None])
    np.subtract.at(x, i, 0.5)
    return x * 1


def extremes_at(x: Any, i: Any, v: Any) -> Any:
    np.maximum.at(x, (i, i), v)
    np.minimum.at(x, (slice(None), i), v * 0.5)
    np.multiply.at(x, i, 2.0)
    return x * 1


def put_along(x: Any, i: Any, v: Any) -> Any:
    np.put_along_axis(x, np.argmax(x, axis=1, keepdims=True), v[:4, None], axis=1)
    return x * 1


def store_own_values(x: Any, i: Any, v: Any) -> Any:
    x[i] = x[::-1][:1] + x[0]
    x[i[:4]] = x[::-1]
    return x * 1


WRITES = [
    store,
    store_rows,
    store_columns,
    store_pairs,
    store_in_part,
    store_in_local,
    store_in_transposed,
    add_at,
    extremes_at,
    put_along,
    store_own_values,
]


@pytest.mark.parametrize("function", WRITES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_writes(function: Any, dtype: str) -> None:
    check(function, X.astype(dtype), I, V.astype(dtype))


def test_casts_what_is_stored() -> None:
    def stores(k: Any, i: Any) -> Any:
        k[i] = 2.9
        k[i[:2]] += np.array([200, 100], np.int16)
        return k * 1

    check(stores, np.arange(6, dtype=np.int16), I)


def above(x: Any) -> Any:
    m = x > 0.2
    return x[m].sum(), x[m].mean(), x[m].max(), (x[m] ** 2).min(), x[~m].prod(), x[m].size


def of_rows(x: Any) -> Any:
    m = x[:, 0] > 0
    return x[m].sum(axis=0), np.mean(x[m], axis=0), x[m, 1].std(), x[m].any()


def change_masked(x: Any) -> Any:
    m = x > 0
    x[m] *= 2
    x[~m] = x[~m] ** 2 + np.sin(x[~m]) * 3
    x[m] = 1 / x[m]
    return x * 1


def change_rows(x: Any) -> Any:
    m = x[:, 1] > 0
    x[m] = x[0] * 2
    x[m, 2] = 7.0
    x[m, 1:3] += x[0, :2]
    return x * 1


def from_other(x: Any) -> Any:
    y = np.cos(x)
    m = x < y
    y[m] = x[m]
    y[..., m] -= 1.0
    return y


def deal(x: Any) -> Any:
    m = x > x.mean()
    x[m] = np.arange(float(np.sum(X - X.mean() > 0)))
    return x * 1


@pytest.mark.parametrize("function", [above, of_rows, change_masked, change_rows, from_other, deal])
def test_masks(function: Any) -> None:
    check(function, X, bound=1e-14)


GRADIENTS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "rows": (lambda x: np.sum(np.sin(x[I]) * np.arange(30.0).reshape(6, 5)), [X]),
    "columns": (lambda x: np.sum(x[1:, I] ** 2), [X]),
    "pairs": (lambda x: np.sum(np.exp(x[I, J[:, :1]])), [X]),
    "take_along_axis": (
        lambda x: np.sum(np.take_along_axis(x, np.argsort(x, 1), 1) ** 2 * np.arange(5)),
        [X],
    ),
    "store": (lambda x, v: np.sum(store(x * 1, I, v * v) ** 2), [X, V]),
    "store rows": (lambda x, v: np.sum(store_rows(x * 1, I, v) ** 2), [X, V]),
    "store pairs": (lambda x, v: np.sum(store_pairs(np.sin(x), I, v) ** 3), [X, V]),
    "store in part": (lambda x, v: np.sum(store_in_part(x * 1, I, v)[0] ** 3), [X, V]),
    "add at": (lambda x, v: np.sum(np.sin(add_at(x * 1, I, v * v))), [X, V]),
    "bincount": (lambda v: np.sum(np.bincount(I % 4, v * v, 5) ** 2), [V]),
    "masks": (lambda x: np.sum(np.sin(change_masked(x * 1.0))), [X]),
    "mask sum": (lambda x: x[x > 0.2].sum() ** 2 + (x[x < 0] ** 2).mean(), [X]),
    "dealt": (lambda x, v: np.sum(np.sin(deal_of(x * 1, v))), [X, V]),
}


def deal_of(x: Any, v: Any) -> Any:
    x[:2, :3][X[:2, :3] > -9] = v
    return x


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name: str) -> None:
    function, args = GRADIENTS[name]
    check_gradients(function, *args)
