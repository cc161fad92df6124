"""Rows that NumPy computes from whole arrays: values, dtypes and gradients to order 2."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.gradients import check_gradients, gradient, numeric_gradient
from tests.tracing import check

RANDOM = np.random.default_rng(17)
X = RANDOM.normal(size=(3, 5))
SQUARE = RANDOM.normal(size=(2, 3, 3)) + 4 * np.eye(3)
POSITIVE = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(3)
TALL = RANDOM.normal(size=(4, 3))
COMPLEX = SQUARE[0] + 1j * RANDOM.normal(size=(3, 3))
ROTATION = np.array([[0.0, -2.0, 1.0], [1.0, 0.5, 0.0], [0.0, 0.0, 3.0]])
UP = np.array([-1.0, 0.0, 0.5, 2.0])
SIX = RANDOM.normal(size=(6, 6)) + 3 * np.eye(6)
B = RANDOM.normal(size=(2, 3, 2))


def weighted(*parts: Any) -> Any:
    """A real scalar that tells all elements of all parts apart."""
    total = 0.0
    for y in parts:
        weights = 1 + np.arange(y.size).reshape(y.shape) / 7
        total = total + np.sum(np.sin(np.real(y) * 1.3) * weights)
        if y.dtype.kind == "c":
            total = total + np.sum(np.cos(np.imag(y)) * (1 + weights))
    return total


VALUES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "solve vector": (np.linalg.solve, [SQUARE[0], X[:, 0]]),
    "solve stacks": (np.linalg.solve, [SQUARE, B[0]]),
    "solve single": (np.linalg.solve, [SQUARE.astype("f4"), B.astype("f4")]),
    "solve integers": (np.linalg.solve, [np.array([[2, 1], [1, 3]]), np.array([1, 2])]),
    "inv": (np.linalg.inv, [SQUARE]),
    "det": (np.linalg.det, [SQUARE]),
    "det of one": (np.linalg.det, [SQUARE[0]]),
    "slogdet": (lambda a: tuple(np.linalg.slogdet(a)), [SQUARE]),
    "slogdet complex": (lambda a: tuple(np.linalg.slogdet(a)), [COMPLEX]),
    "cholesky": (np.linalg.cholesky, [POSITIVE]),
    "qr": (lambda a: tuple(np.linalg.qr(a)), [TALL]),
    "qr wide": (lambda a: tuple(np.linalg.qr(a)), [TALL.T]),
    "qr complete": (lambda a: tuple(np.linalg.qr(a, "complete")), [TALL]),
    "qr r": (lambda a: np.linalg.qr(a, "r"), [TALL]),
    "eigh": (lambda a: tuple(np.linalg.eigh(a)), [POSITIVE]),
    "eigh upper": (lambda a: tuple(np.linalg.eigh(a, "U")), [SQUARE]),
    "eigvalsh": (np.linalg.eigvalsh, [POSITIVE]),
    "eig": (lambda a: tuple(np.linalg.eig(a)), [COMPLEX]),
    "eig real": (lambda a: tuple(np.linalg.eig(a)), [POSITIVE]),
    "eig of a rotation": (lambda a: tuple(np.linalg.eig(a)), [ROTATION]),
    "eigvals": (np.linalg.eigvals, [ROTATION]),
    "lstsq": (np.linalg.lstsq, [TALL, TALL[:, 1:] ** 2]),
    "lstsq vector": (lambda a, b: np.linalg.lstsq(a, b, rcond=None), [TALL, TALL[:, 0] ** 2]),
    "lstsq wide": (lambda a, b: np.linalg.lstsq(a, b, rcond=1e-9), [TALL.T, TALL[0]]),
    "tensorinv": (lambda a: np.linalg.tensorinv(a.reshape(3, 2, 6)), [SIX]),
    "tensorsolve": (lambda a, b: np.linalg.tensorsolve(a.reshape(6, 3, 2), b), [SIX, SIX[0]]),
    "svd": (lambda a: tuple(np.linalg.svd(a)), [TALL]),
    "svd reduced": (lambda a: tuple(np.linalg.svd(a, False)), [SQUARE]),
    "svd values": (lambda a: np.linalg.svd(a, compute_uv=False), [TALL.T]),
    "pinv": (np.linalg.pinv, [TALL]),
    "matrix_rank": (np.linalg.matrix_rank, [SQUARE]),
    "norm 2": (lambda a: np.linalg.norm(a, 2), [TALL]),
    "norm nuclear": (lambda a: np.linalg.norm(a, "nuc"), [TALL]),
    "cond": (np.linalg.cond, [SQUARE]),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, -2), [SQUARE]),
    "matrix_power 0": (lambda a: np.linalg.matrix_power(a, 0), [SQUARE]),
    "sort": (np.sort, [X]),
    "sort all": (lambda x: np.sort(x, axis=None), [X]),
    "sort strided": (lambda x: np.sort(x[::-1, ::2], axis=0, kind="stable"), [X]),
    "argsort": (lambda x: np.argsort(x, axis=0), [X]),
    "argsort ties": (lambda x: np.argsort(x, kind="stable"), [np.array([2, 1, 2, 1, 1])]),
    "partition": (lambda x: np.partition(x, 2, axis=1), [X]),
    "argpartition": (lambda x: np.argpartition(x, (1, -1), axis=1), [X]),
    "lexsort": (lambda a, b: np.lexsort((a, b)), [X[0], np.array([1, 0, 1, 0, 0])]),
    "searchsorted": (lambda a, v: np.searchsorted(np.sort(a), v, "right"), [X[0], X]),
    "digitize": (lambda x: np.digitize(x, [-1.0, 0.0, 0.5]), [X]),
    "digitize down": (lambda x: np.digitize(x, [0.5, 0.0, -1.0], right=True), [X]),
    "interp": (lambda x, p: np.interp(x, np.sort(p), p), [X, X[1]]),
    "interp ends": (lambda x, p: np.interp(x, np.sort(p), p, left=-7, right=9.5), [X, X[1]]),
    "interp at places": (lambda x, p: np.interp(p, np.sort(p), x[0] * 1j), [X, X[1]]),
    "interp period": (lambda x, p: np.interp(x * 9, p, p * 2, period=3.0), [X, X[1]]),
    "interp infinite": (lambda x, p: np.interp(p, p, x), [np.array([0, np.inf, np.inf, 1]), UP]),
    "interp of a number": (lambda x, p: np.interp(x[0, 0], p, p**2), [X, UP]),
    "histogram": (lambda x: np.histogram(x, 7), [X]),
    "histogram weights": (
        lambda x, w: np.histogram(x, 4, (-1, 1.5), weights=w, density=True),
        [X, np.abs(X)],
    ),
    "add.reduceat": (lambda x, i: np.add.reduceat(x, i, axis=1), [X, np.array([0, 3, 1, 1])]),
    "maximum.reduceat": (lambda x: np.maximum.reduceat(x, np.array([0, 2])), [X]),
    "nanargmin": (lambda x: np.nanargmin(np.where(x > 0, np.nan, x), axis=1), [X]),
    "nanargmax": (lambda x: np.nanargmax(x), [X]),
    "unravel_index": (lambda i: np.unravel_index(i, (2, 3, 4)), [np.array([[5, 23], [0, 7]])]),
    "ravel_multi_index": (
        lambda i, j: np.ravel_multi_index((i, j), (3, 4), order="F"),
        [np.array([0, 2]), np.array([3, 1])],
    ),
    "ix_": (lambda x, i: x[np.ix_(i[:2], i)], [X, np.array([0, 2, 1])]),
    "unwrap": (lambda x: np.unwrap(x * 4, axis=0), [X]),
    "unwrap period": (lambda x: np.unwrap(x * 4, discont=1.5, period=2.5), [X]),
    "vander": (lambda x: (np.vander(x), np.vander(x, 3, increasing=True)), [X[0]]),
    "vander integers": (lambda x: np.vander(x, 4), [np.array([2, 3], np.int8)]),
    "polyfit": (lambda x, y: np.polyfit(x, y, 2), [X[0], X[1]]),
    "polyfit weights": (lambda x, y, w: np.polyfit(x, y, 1, w=w), [X[0], X[1:].T, X[2] ** 2]),
    "isin": (lambda x, y: np.isin(x, y, invert=True), [np.arange(6), np.array([3, 9, 1])]),
    "fft": (np.fft.fft, [X]),
    "fft of a part": (lambda x: np.fft.fft(x, 3, axis=0, norm="ortho"), [X]),
    "fft padded": (lambda x: np.fft.fft(x, 8), [X]),
    "fft single": (np.fft.fft, [X.astype("f4")]),
    "ifft": (lambda x: np.fft.ifft(x, norm="forward"), [X * (1 + 1j)]),
    "rfft": (lambda x: np.fft.rfft(x, axis=0), [X]),
    "rfft even": (lambda x: np.fft.rfft(x, 4), [X]),
    "irfft": (np.fft.irfft, [X * (1 + 1j)]),
    "irfft odd": (lambda x: np.fft.irfft(x, 7), [X * (1 + 1j)]),
    "hfft": (lambda x: np.fft.hfft(x, 6), [X * (1 + 1j)]),
    "ihfft": (np.fft.ihfft, [X]),
    "fft2": (np.fft.fft2, [SQUARE]),
    "ifft2": (lambda x: np.fft.ifft2(x, (4, 2), (0, 1)), [X]),
    "fftn": (np.fft.fftn, [SQUARE]),
    "rfft2": (np.fft.rfft2, [SQUARE]),
    "rfftn": (lambda x: np.fft.rfftn(x, axes=(1, 0)), [X]),
    "irfftn": (lambda x: np.fft.irfftn(x, (3, 4), (0, 1)), [X * (1 + 1j)]),
    "fftshift": (np.fft.fftshift, [X]),
    "ifftshift": (lambda x: np.fft.ifftshift(x, 1), [X]),
}
# sums of their own, in another order than NumPy's
BOUNDED = ("norm", "cond", "matrix_power", "polyfit")


@pytest.mark.parametrize("name", VALUES)
def test_value(name: str) -> None:
    function, args = VALUES[name]
    bound = 1e-12 if name.startswith(BOUNDED) else None
    check(function, *args, bound=bound)


def test_in_place() -> None:
    def sorts(x: Any) -> Any:
        x[1].sort()
        x[:, ::2].partition(1, axis=0)
        return x + 1

    check(sorts, X)


@pytest.mark.parametrize("name", ["det", "eigvalsh", "svd values", "fft", "sort", "argsort"])
def test_empty_stacks(name: str) -> None:
    function, args = VALUES[name]
    check(function, args[0][:0])


def hermitian(a: Any) -> Any:
    return a + np.conj(np.swapaxes(a, -1, -2))


GRADIENTS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "solve": (lambda a, b: weighted(np.linalg.solve(a, b)), [SQUARE, B[0]]),
    "solve vector": (lambda a, b: weighted(np.linalg.solve(a, b)), [COMPLEX, X[:, 0]]),
    "inv": (lambda a: weighted(np.linalg.inv(a)), [SQUARE]),
    "det": (lambda a: weighted(np.linalg.det(a)), [SQUARE]),
    "det complex": (lambda a: weighted(np.linalg.det(a)), [COMPLEX]),
    "slogdet": (lambda a: weighted(*np.linalg.slogdet(a)), [SQUARE]),
    "slogdet complex": (lambda a: weighted(*np.linalg.slogdet(a)), [COMPLEX]),
    "cholesky": (lambda a: weighted(np.linalg.cholesky(hermitian(a))), [POSITIVE]),
    "cholesky upper": (
        lambda a: weighted(np.linalg.cholesky(hermitian(a), upper=True)),
        [POSITIVE],
    ),
    "cholesky complex": (
        lambda a: weighted(np.linalg.cholesky(a @ np.conj(a.T) + np.eye(3))),
        [COMPLEX],
    ),
    "qr": (lambda a: weighted(*np.linalg.qr(a)), [TALL]),
    "qr wide": (lambda a: weighted(*np.linalg.qr(a)), [TALL.T]),
    "qr r": (lambda a: weighted(np.linalg.qr(a, "r")), [TALL]),
    "eigh": (
        lambda a: weighted(
            (lambda w, v: (v * np.sqrt(w)[..., None, :]) @ v.swapaxes(-1, -2))(
                *np.linalg.eigh(hermitian(a))
            )
        ),
        [POSITIVE],
    ),
    "eigh vectors": (lambda a: weighted(np.linalg.eigh(hermitian(a))[1] ** 2), [POSITIVE]),
    "eigh complex": (
        lambda a: weighted(np.abs(np.linalg.eigh(hermitian(a))[1]) ** 2),
        [COMPLEX],
    ),
    "eigvalsh": (lambda a: weighted(np.linalg.eigvalsh(hermitian(a))), [POSITIVE]),
    "eigvals": (lambda a: weighted(np.linalg.eigvals(a)), [COMPLEX]),
    "eigvals real": (lambda a: weighted(np.linalg.eigvals(a)), [ROTATION]),
    "eig": (lambda a: weighted(np.abs(np.linalg.eig(a)[1]) ** 2), [COMPLEX]),
    "eig real": (
        lambda a: weighted(*np.linalg.eig(a)),
        [np.diag([1.0, 3.0, 7.0]) + 0.1 * X[:, :3]],
    ),
    "lstsq": (lambda a, b: weighted(np.linalg.lstsq(a, b)[0]), [TALL, TALL[:, 0] ** 2]),
    "lstsq residuals": (lambda a, b: np.linalg.lstsq(a, b)[1][0], [TALL, TALL[:, 0] ** 2]),
    "lstsq wide": (lambda a, b: weighted(np.linalg.lstsq(a, b)[0]), [TALL.T, TALL[0]]),
    "lstsq values": (lambda a, b: weighted(np.linalg.lstsq(a, b)[3]), [TALL, TALL[:, 0]]),
    "polyfit": (lambda x, y: weighted(np.polyfit(x, y, 2)), [X[0], X[1]]),
    "add.reduceat": (
        lambda x: weighted(np.add.reduceat(x * x, np.array([1, 3, 4]), axis=1)),
        [X],
    ),
    "interp": (lambda x, p: weighted(np.interp(x, UP, p)), [X, X[1, :4]]),
    "interp places": (lambda p: weighted(np.interp(X, p, UP**2)), [UP * 1.1 + 0.07]),
    "svd": (lambda a: weighted(*(p**2 for p in np.linalg.svd(a, False))), [TALL]),
    "svd complex": (
        lambda a: weighted((lambda u, s, vh: (u * s**1.5) @ vh)(*np.linalg.svd(a, False))),
        [COMPLEX],
    ),
    "svd full": (lambda a: weighted(np.linalg.svd(a)[1]), [TALL.T]),
    "svd values": (lambda a: weighted(np.linalg.svdvals(a)), [TALL]),
    "norm 2": (lambda a: np.linalg.norm(a, 2), [TALL]),
    "pinv": (lambda a: weighted(np.linalg.pinv(a)), [TALL]),
    "pinv wide": (lambda a: weighted(np.linalg.pinv(a)), [TALL.T]),
    "sort": (lambda x: weighted(np.sort(x, 0), np.sort(x, None)), [X]),
    "partition": (lambda x: weighted(np.partition(x, 2, axis=1)[:, 2]), [X]),
    "fft": (lambda x: weighted(np.fft.fft(x, axis=0)), [X]),
    "fft complex": (lambda x: weighted(np.fft.fft(x, 7, norm="ortho")), [X * (1 + 1j)]),
    "ifft": (lambda x: weighted(np.fft.ifft(x, 3)), [X * (2 + 1j)]),
    "rfft": (lambda x: weighted(np.fft.rfft(x)), [X]),
    "rfft even": (lambda x: weighted(np.fft.rfft(x, 6, norm="forward")), [X]),
    "irfft": (lambda x: weighted(np.fft.irfft(x)), [X * (1 + 2j)]),
    "irfft odd": (lambda x: weighted(np.fft.irfft(x, 7, axis=1)), [X * (1 + 2j)]),
    "hfft": (lambda x: weighted(np.fft.hfft(x, 6), np.fft.ihfft(np.real(x))), [X * (1 + 2j)]),
    "irfftn": (lambda x: weighted(np.fft.irfftn(np.fft.rfft2(x))), [X]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name: str) -> None:
    function, args = GRADIENTS[name]
    check_gradients(function, *args)


def test_determinant_of_a_singular_matrix() -> None:
    a = np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]])
    found = gradient(np.linalg.det, a)
    np.testing.assert_allclose(found, numeric_gradient(np.linalg.det, [a], 0), atol=1e-8)


def test_equal_eigenvalues() -> None:
    """What depends on the eigenvalues alone has a gradient; whatever else, a finite one."""
    a = np.diag([2.0, 2.0, 5.0])
    np.testing.assert_allclose(gradient(lambda a: np.sum(np.linalg.eigh(a)[0] ** 2), a), 2 * a)
    np.testing.assert_allclose(gradient(lambda a: np.sum(np.linalg.svdvals(a) ** 2), a), 2 * a)
    for both in (
        lambda a: weighted(*np.linalg.eigh(a)),
        lambda a: weighted(*np.linalg.svd(a)),
    ):
        assert np.all(np.isfinite(gradient(both, a)))


def test_complex_gradient_descends() -> None:
    def size(z: Any) -> Any:
        return np.sum(np.abs(np.fft.fft(z)) ** 2)

    z = X[0] + 1j * X[1]
    np.testing.assert_allclose(gradient(size, z), 2 * 5 * z, rtol=1e-12)
