"""Products against NumPy: matmul and its kin, einsum in all its forms, norms; every dtype."""

from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.op import Kind
from npjit.ops.errors import NotCaptured
from tests.tracing import Trace, check, run

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(3, 4))
Y = RANDOM.normal(size=(3, 4))
WHOLE = np.arange(12).reshape(3, 4)
PAIRS = {
    "f8": (X, Y),
    "f4": (X.astype("f4"), Y.astype("f4")),
    "f2": (X.astype("f2"), Y.astype("f2")),
    "i8": (WHOLE, WHOLE + 1),
    "i1": (WHOLE.astype("i1"), WHOLE.astype("i1") * 5),
    "bool": (X > 0, Y > 0),
    "complex": (X + 1j * Y, Y - 2j * X),
    "mixed": (X, WHOLE),
}
BOUNDS = {"f4": 1e-5, "f2": 2e-2, "f8": 1e-13, "complex": 1e-13, "mixed": 1e-12}

PRODUCTS = [
    lambda x, y: x @ y.T,
    lambda x, y: x @ y[0],
    lambda x, y: x[:, 0] @ y,
    lambda x, y: x[0] @ y[0],
    lambda x, y: np.stack([x, x]) @ y.T,
    lambda x, y: x[None] @ np.stack([y.T, y.T]),
    lambda x, y: np.stack([x, x]) @ y[0],
    lambda x, y: np.dot(x, y.T),
    lambda x, y: x.dot(y[0]),
    lambda x, y: np.dot(np.stack([x, x]), np.stack([y.T, y.T])),
    lambda x, y: np.dot(x, y[0, 0]),
    lambda x, y: np.inner(x, y),
    lambda x, y: np.inner(x, y[0]),
    lambda x, y: np.outer(x[0], y[0]),
    lambda x, y: np.vdot(x, y),
    lambda x, y: np.tensordot(x, y),
    lambda x, y: np.tensordot(x, y, axes=([1], [1])),
    lambda x, y: np.tensordot(x, y, axes=0),
    lambda x, y: np.vecdot(x, y),
    lambda x, y: np.kron(x, y),
    lambda x, y: np.einsum("ij,kj->ik", x, y),
    lambda x, y: np.einsum("ij,kj->ki", x, y),
    lambda x, y: np.einsum("ij,ij->i", x, y),
    lambda x, y: np.einsum("ij,kj", x, y),
    lambda x, y: np.einsum("ij,ij", x, y),
    lambda x, y: np.einsum("ij->ji", x),
    lambda x, y: np.einsum("ij->", x),
    lambda x, y: np.einsum("ij->j", x),
    lambda x, y: np.einsum("ii->i", x[:3, :3]),
    lambda x, y: np.einsum("ii", x[:3, :3]),
    lambda x, y: np.einsum("iij->j", np.stack([x, x, x])),
    lambda x, y: np.einsum("i,j->ij", x[0], y[1]),
    lambda x, y: np.einsum("ij,k->k", x, y[0]),
    lambda x, y: np.einsum("...j,kj->...k", np.stack([x, y]), y),
    lambda x, y: np.einsum("...,...->...", x, y[:1]),
    lambda x, y: np.einsum("ij,kj,kl->il", x, y, x),
    lambda x, y: np.einsum(x, [0, 1], y, [2, 1], [0, 2]),
    lambda x, y: np.einsum(x, [0, 1], y, [2, 1]),
    lambda x, y: np.einsum("ij,jk->ik", x[:, :1], y),
]


@pytest.mark.parametrize("types", PAIRS)
@pytest.mark.parametrize("product", range(len(PRODUCTS)))
def test_product(product: int, types: str) -> None:
    check(PRODUCTS[product], *PAIRS[types], ulp=4, bound=BOUNDS.get(types))


def test_products_of_known_kinds() -> None:
    check(lambda x, y: np.cross(x[:, :3], y[:, :3]), X, Y)
    check(lambda x: np.linalg.matrix_power(x[:3, :3], 5), X, bound=1e-12)
    check(lambda x, y: np.linalg.multi_dot([x, y.T, x]), X, Y, bound=1e-12)
    if hasattr(np, "matvec"):
        check(lambda x, y: np.matvec(np.stack([x, x]), y[0]), X, Y, bound=1e-13)
        check(lambda x, y: np.vecmat(x[:, 0] + 1j, np.stack([y, y])), X, Y, bound=1e-13)


@pytest.mark.parametrize(
    "refused",
    [
        lambda x: x @ x,
        lambda x: x @ 2.0,
        lambda x: np.dot(x, x),
        lambda x: np.dot(x[:, :1], x),
        lambda x: np.inner(x, x[:, :1]),
        lambda x: x[:, :1] @ x,
        lambda x: np.einsum("ij,jk", x, x),
        lambda x: np.einsum("ijk", x),
        lambda x: np.einsum("ij->ijj", x),
        lambda x: np.tensordot(x, x, axes=1),
    ],
)
def test_numpy_raises_and_nothing_is_captured(refused: Any) -> None:
    with pytest.raises(ValueError):
        refused(X)
    with pytest.raises(NotCaptured):
        run(refused, X)


@pytest.mark.parametrize(
    "norm",
    [
        lambda x: np.linalg.norm(x),
        lambda x: np.linalg.norm(x, "fro", axis=(0, 1), keepdims=True),
        *[lambda x, p=p: np.linalg.norm(x, p) for p in (1, -1, np.inf, -np.inf)],
        *[lambda x, p=p: np.linalg.norm(x, p, axis=1) for p in (0, 1, 2, 3, np.inf, -np.inf)],
        lambda x: np.linalg.vector_norm(x),
        lambda x: np.linalg.matrix_norm(x),
    ],
)
def test_norm(norm: Any) -> None:
    for x in (X, WHOLE, X + 1j * Y, X.astype("f4")):
        check(norm, x, bound=1e-5 if x.dtype == np.float32 else 1e-13, ulp=4)


def test_what_becomes_a_contraction() -> None:
    """A matrix product is one CONTRACT; a product with no axes of its own is elementwise."""

    def contractions(function: Any) -> int:
        block = Trace()
        graph = block.graph([function(block.input(X), block.input(Y))])
        return sum(n.op.kind is Kind.CONTRACT for n in graph.nodes)

    assert contractions(lambda x, y: x @ y.T) == 1
    assert contractions(lambda x, y: x @ y[0]) == 1
    assert contractions(lambda x, y: np.einsum("ij,kj,kl->il", x, y, x)) == 2
    assert contractions(lambda x, y: np.vecdot(x, y)) == 0
    assert contractions(lambda x, y: np.outer(x[0], y[0])) == 0


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8"])
@pytest.mark.parametrize("shape", [(40, 50), (300, 70), (33, 1), (1, 40)])
def test_a_matrix_times_its_own_transpose(dtype: str, shape: tuple[int, int]) -> None:
    """NumPy computes half of it, so that it is symmetric to the last bit; slices of both sorts."""
    x = np.asarray(np.random.default_rng(0).random((2 * shape[0], 2 * shape[1])) * 9, dtype)
    for part in (x[: shape[0], : shape[1]], x[::2, ::2], x.T[: shape[1], : shape[0]]):
        for f in (lambda a: a.T @ a, lambda a: a @ a.T, lambda a: (a.T @ a).T):
            got, want = npjit.jit(f)(part), f(part)
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == "f4" else 1e-12)
            # what has no stride of 1 is copied, by NumPy too
            if dtype != "c16" and x.itemsize in part.strides:
                assert (got == got.T).all()


def heads(x, w, v):
    b, n, d = x.shape

    def split(z):
        return z.reshape(b, n, 4, d // 4).transpose(0, 2, 1, 3)

    q, k = split(x @ w), split(x @ v)
    return np.sum((q @ k.swapaxes(-1, -2)) ** 2)


def test_summed_axes_apart_in_memory() -> None:
    """Gradients of heads that lie side by side in rows: the sums run over images and rows, between
    which the heads lie."""
    x, w, v = (RANDOM.normal(size=s) for s in ((2, 6, 8), (8, 8), (8, 8)))
    gradient = npjit.grad(heads, argnums=(0, 1, 2))
    found = gradient(x, w, v)
    assert gradient.cache_info()["whole"] == 1
    for k, g in enumerate(found):
        step = RANDOM.normal(size=g.shape) * 1e-6
        more, less = (
            [a + s * step if i == k else a for i, a in enumerate((x, w, v))] for s in (1, -1)
        )
        np.testing.assert_allclose(np.sum(g * step), (heads(*more) - heads(*less)) / 2, rtol=1e-6)


def test_summed_axes_around_others() -> None:
    a, b = RANDOM.normal(size=(3, 5, 4, 2)), RANDOM.normal(size=(6, 4, 3))
    product = npjit.jit(lambda x, y: np.einsum("anbk,mba->nmk", x, y), fullgraph=True)
    np.testing.assert_allclose(product(a, b), np.einsum("anbk,mba->nmk", a, b), rtol=1e-12)
