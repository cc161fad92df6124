"""Movement, joins, creation and choices against NumPy, with literal and symbolic extents."""

from typing import Any

import numpy as np
import pytest

from npjit.ops.errors import NotCaptured
from tests.tracing import check, run

X = np.random.default_rng(2).normal(size=(3, 4))
ARRAYS = [X, np.asfortranarray(X), np.arange(12).reshape(3, 4), X > 0, X + 1j]

MOVES = [
    lambda x: x.reshape(4, 3),
    lambda x: x.reshape(-1),
    lambda x: x.reshape((2, -1)),
    lambda x: x.reshape(x.shape[1], x.shape[0]),
    lambda x: x.reshape(x.shape[0] * x.shape[1]),
    lambda x: np.reshape(x, (2, 6), order="F"),
    lambda x: x.T.reshape(2, 6),
    lambda x: x[:, None].reshape(3, 4, 1, 1),
    lambda x: x.ravel(),
    lambda x: x.ravel("F"),
    lambda x: x.flatten("F"),
    lambda x: np.ravel(x[:, ::2]),
    lambda x: x.T,
    lambda x: x.mT,
    lambda x: x.transpose(1, 0),
    lambda x: np.transpose(x, (-1, 0)),
    lambda x: np.swapaxes(x, 0, -1),
    lambda x: np.moveaxis(x[None], (0, 1), (-1, 0)),
    lambda x: np.rollaxis(x[None], 2, 1),
    lambda x: np.expand_dims(x, (0, -1)),
    lambda x: np.squeeze(x[None, :, None]),
    lambda x: np.squeeze(x[None], axis=0),
    lambda x: np.broadcast_to(x, (2, *x.shape)),
    lambda x: np.broadcast_arrays(x, x[0]),
    lambda x: np.atleast_3d(x),
    lambda x: np.atleast_2d(x[0], x),
    lambda x: np.flip(x),
    lambda x: np.fliplr(x),
    lambda x: np.flipud(x),
    *[lambda x, k=k: np.rot90(x, k) for k in range(-1, 4)],
    *[lambda x, k=k: np.diagonal(x, k) for k in (-4, -1, 0, 1, 3)],
    *[lambda x, k=k: np.diag(x[0], k) for k in (-1, 0, 2)],
    *[lambda x, k=k: np.tril(x, k) for k in (-1, 0, 1)],
    *[lambda x, k=k: np.triu(x, k) for k in (-1, 0, 1)],
    lambda x: np.tril(x[0]),
    lambda x: np.trace(x),
    lambda x: x.trace(1),
    *[lambda x, k=k: np.roll(x, k) for k in (-1, 0, 1, 17)],
    lambda x: np.roll(x, (1, -1), axis=(0, 1)),
    lambda x: np.roll(x, 7, axis=1),
    lambda x: np.tile(x, 2),
    lambda x: np.tile(x, (2, 1, 3)),
    lambda x: np.repeat(x, 2),
    lambda x: x.repeat(3, axis=0),
    lambda x: np.concatenate([x, x[:, :2]], axis=-1),
    lambda x: np.concatenate([x, x], axis=None),
    lambda x: np.concatenate([x, np.ones((1, 4), "f4")]),
    lambda x: np.concatenate([x, x[:0]]),
    lambda x: np.stack([x, x + 1], axis=-1),
    lambda x: np.vstack([x, x[0]]),
    lambda x: np.hstack([x, x]),
    lambda x: np.hstack([x[0], x[1]]),
    lambda x: np.dstack([x, x]),
    lambda x: np.column_stack([x[0], x[1]]),
    lambda x: np.append(x, 3),
    lambda x: np.block([[x, x[:, :1]], [x[:1], x[:1, :1]]]),
    lambda x: np.split(x, 2, axis=1),
    lambda x: np.split(x, [1, 3], axis=1),
    lambda x: np.array_split(x, 3, axis=1),
    lambda x: np.vsplit(x, 3),
    lambda x: np.pad(x, 1),
    lambda x: np.pad(x, ((1, 2), (0, 3))),
    lambda x: np.pad(x, 2, constant_values=1),
    lambda x: np.pad(x, 1, mode="edge"),
    lambda x: np.pad(x, 2, mode="wrap"),
    lambda x: np.pad(x, 2, mode="reflect"),
    lambda x: np.pad(x, ((2, 1), (0, 3)), mode="symmetric"),
    lambda x: x.copy(),
    lambda x: np.copy(x[0, 0]),
    lambda x: x.view(),
    lambda x: np.kron(x, x[:2]),
    lambda x: np.take(x, 2),
    lambda x: np.take(x, [0, -1, 1], axis=1),
    lambda x: x.take([[0, 1], [2, 0]], axis=0),
    lambda x: np.delete(x, 1, axis=0),
    lambda x: np.delete(x, -2),
    lambda x: np.maximum.outer(x[0], x),
]


@pytest.mark.parametrize("move", range(len(MOVES)))
def test_move(move: int) -> None:
    for x in ARRAYS:
        check(MOVES[move], x)


@pytest.mark.parametrize(
    "refused",
    [
        lambda x: x.reshape(5, 3),
        lambda x: np.transpose(x, (0, 0)),
        lambda x: np.squeeze(x, axis=0),
        lambda x: np.concatenate([x, x[:, :2]]),
        lambda x: np.stack([x, x[0]]),
        lambda x: np.split(x, 3, axis=1),
        lambda x: np.broadcast_to(x, (3, 5)),
        lambda x: np.expand_dims(x, 5),
    ],
)
def test_numpy_raises_and_nothing_is_captured(refused: Any) -> None:
    with pytest.raises((ValueError, np.exceptions.AxisError)):
        refused(X)
    for dynamic in (False, True):
        with pytest.raises(NotCaptured):
            run(refused, X, dynamic=dynamic)


CREATIONS = [
    lambda xp, x: xp.zeros(x.shape),
    lambda xp, x: xp.zeros((x.shape[0], 3), dtype=int),
    lambda xp, x: xp.zeros(()),
    lambda xp, x: xp.ones(4),
    lambda xp, x: xp.full((2, 2), x[0, 0]),
    lambda xp, x: xp.full(x.shape, 3),
    lambda xp, x: xp.full(3, True),
    lambda xp, x: xp.zeros_like(x, dtype="f4"),
    lambda xp, x: xp.full_like(x, 2),
    lambda xp, x: xp.arange(x.shape[1]) * x,
    lambda xp, x: xp.arange(2, x.shape[1]),
    lambda xp, x: xp.arange(x.shape[1], 0, -2),
    lambda xp, x: xp.arange(5, 1),
    lambda xp, x: xp.arange(0, 1, 0.1),
    lambda xp, x: xp.arange(1, 2, 0.3, dtype="f4"),
    lambda xp, x: xp.arange(3, dtype="u1"),
    lambda xp, x: xp.linspace(0, 1, x.shape[1]),
    lambda xp, x: xp.linspace(x[0, 0], x[1, 1], 7),
    lambda xp, x: xp.linspace(x[0], x[1], 5, axis=1),
    lambda xp, x: xp.linspace(-3, 3, 1000, endpoint=False),
    lambda xp, x: xp.linspace(0, 10, 5, dtype=int),
    lambda xp, x: xp.linspace(2, 2, 4),
    lambda xp, x: xp.linspace(0, 1, 1),
    lambda xp, x: xp.linspace(0, 1, 5, retstep=True),
    lambda xp, x: xp.geomspace(1, 100, 5),
    lambda xp, x: xp.eye(x.shape[0], x.shape[1], k=1),
    lambda xp, x: xp.identity(3, dtype=int),
    lambda xp, x: xp.tri(3, 4, -1),
    lambda xp, x: xp.indices(x.shape),
    lambda xp, x: xp.fromfunction(lambda i, j: i + j, (3, 4)),
    lambda xp, x: xp.meshgrid(x[0], x[:, 0], indexing="ij"),
    lambda xp, x: xp.meshgrid(xp.arange(3), xp.arange(4)),
    lambda xp, x: xp.array([x[0, 0], 1, 2]),
    lambda xp, x: xp.array([[x[0, 0], 1], [2, x[1, 1]]]),
    lambda xp, x: xp.array([1, 2, 3], dtype="f4"),
    lambda xp, x: xp.array(x, ndmin=3),
    lambda xp, x: xp.asarray(3.5),
    lambda xp, x: x / x.shape[1] + x.size,
]


@pytest.mark.parametrize("creation", range(len(CREATIONS)))
def test_creation(creation: int) -> None:
    check(CREATIONS[creation], X)


def test_logspace() -> None:
    check(lambda xp, x: xp.logspace(0, 2, 5), X, ulp=4)


CHOICES = [
    lambda x: np.where(x > 0, x, 0),
    lambda x: np.where(x > 0, 1.0, x),
    lambda x: np.clip(x, -1, 1),
    lambda x: x.clip(0, None),
    lambda x: np.clip(x, None, 2),
    lambda x: np.clip(x, min=0, max=300),
    lambda x: np.select([x > 1, x > 0], [x, x * 2], 5),
    lambda x: np.isclose(x, x + 1e-9),
    lambda x: np.allclose(x, x),
    lambda x: np.array_equal(x, x),
    lambda x: np.array_equal(x, x[:1]),
    lambda x: np.array_equiv(x, x[:1]),
    lambda x: np.isposinf(x / (x * 0)),
    lambda x: np.isneginf(x / (x * 0)),
    lambda x: np.isreal(x),
    lambda x: np.isreal(x + 1j * (x > 0)),
    lambda x: np.iscomplex(x),
    lambda x: np.choose(1, [x, x + 1]),
    lambda x: np.diff(x),
    lambda x: np.diff(x, 2, axis=0, prepend=0),
    lambda x: np.gradient(x, 2.0, edge_order=2),
    lambda x: np.gradient(x, axis=1),
    lambda x: np.trapezoid(x, dx=0.5, axis=0),
    lambda x: np.polyval([1, 2, 3], x),
    lambda x: np.nan_to_num(x / 0.0 * 0),
    lambda x: np.round(x),
    lambda x: np.fix(x),
]


@pytest.mark.parametrize("choice", range(len(CHOICES)))
def test_choice(choice: int) -> None:
    for x in (X, X.astype("f4"), np.arange(12).reshape(3, 4), X[0, 0]):
        try:
            CHOICES[choice](x)
        except (TypeError, ValueError, IndexError):
            with pytest.raises(NotCaptured):
                run(CHOICES[choice], x)
        else:
            check(CHOICES[choice], x)


def test_decimals_and_formulas() -> None:
    for f in (lambda x: np.round(x, 2), lambda x: x.round(-1), np.sinc):
        check(f, X, ulp=4)
    for mode in ("full", "same", "valid"):
        check(lambda x, m=mode: np.convolve(x[0], x[1][:3], m), X, bound=1e-14)
        check(lambda x, m=mode: np.correlate(x[0], x[1][:3], m), X, bound=1e-14)


def test_shape_queries() -> None:
    check(lambda x: [np.shape(x)[0], np.ndim(x), np.size(x), np.size(x, 1), x.nbytes], X)
