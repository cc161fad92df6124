"""`npjit.grad` and `value_and_grad` as users call them; the rules are tested elsewhere."""

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest

import npjit
from tests.calls import assert_same
from tests.test_frontend_calls import Frozen, Layer, Point

X = np.linspace(0.5, 2.0, 20)

pytestmark = pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")


@pytest.fixture(params=["numpy", "cpp"])
def grad(request):
    return functools.partial(npjit.grad, backend=request.param)


def close(got: Any, want: Any) -> None:
    """Structure, types and dtypes exactly, values to rounding."""
    if isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            close(got[key], want[key])
    elif isinstance(want, tuple | list):
        assert type(got) is type(want)
        for g, w in zip(got, want, strict=True):
            close(g, w)
    else:
        assert type(got) is type(want)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype == np.float32 else 1e-11)


def ran(f: Any) -> tuple[int, int, int]:
    info = f.cache_info()
    return info["compiled"], info["whole"], info["numpy"]


def test_argnums(grad):
    def f(x, y, z=2.0):
        return np.sum(x * y) * z

    y = X + 1
    close(grad(f)(X, y), 2 * y)
    close(grad(f, argnums=1)(X, y, 3.0), 3 * X)
    close(grad(f, argnums=-1)(X, y, 3.0), np.float64(np.sum(X * y)))
    close(grad(f, argnums=(0, 2))(X, y, 3.0), (3 * y, np.float64(np.sum(X * y))))
    close(grad(f, argnums=[1])(X, y), (2 * X,))
    close(grad(f)(X, z=4.0, y=y), 4 * y)
    close(grad(f)(X, X), 2 * X)
    close(grad(f, argnums=(0, 1))(X, X), (2 * X, 2 * X))
    with pytest.raises(TypeError, match="argument 3"):
        grad(f, argnums=3)(X, y)


def test_value_and_aux(grad):
    backend = grad.keywords["backend"]
    value_and_grad = functools.partial(npjit.value_and_grad, backend=backend)

    def f(x):
        y = x * x
        return np.sum(y), {"y": y, "n": len(x)}

    gradient, aux = grad(f, has_aux=True)(X)
    close(gradient, 2 * X)
    assert_same(aux, f(X)[1])
    (value, aux), gradient = value_and_grad(f, has_aux=True)(X)
    np.testing.assert_allclose(value, np.sum(X * X))
    close(gradient, 2 * X)
    value, gradient = value_and_grad(lambda a: a**3)(2.0)
    assert (value, gradient) == (8.0, 12.0)
    assert type(value) is float
    with pytest.raises(TypeError, match="pair"):
        grad(lambda x: np.sum(x), has_aux=True)(X)


class Net(NamedTuple):
    w: Any
    b: Any


@pytest.mark.parametrize("kind", [dict, list, tuple, Net, Layer, Frozen, Point])
def test_trees(grad, kind):
    if kind is dict:
        params: Any = {"w": X, "b": [1.0, np.float32(2)]}
    elif kind in (list, tuple):
        params = kind([X, 3.0])
    else:
        params = kind(X, 3.0)

    def f(p, x):
        leaves = (
            [p["w"], *p["b"]] if kind is dict else list(p) if isinstance(p, tuple | list) else None
        )
        if leaves is None:
            leaves = list(vars(p).values())
        return sum(np.sum(v * v * x) for v in leaves)

    def f_object(p, x):
        other = p.b if hasattr(p, "b") else p.scale
        return np.sum(p.w * p.w * x) + np.sum(other * other * x)

    g = grad(f_object if kind in (Layer, Frozen) else f)
    for _ in range(2):
        got = g(params, X)
        assert type(got) is kind
        leaves = list(vars(got).values()) if kind in (Layer, Frozen) else list(got)
        if kind is dict:
            close(got["w"], 2 * X * X)
            close(got["b"], [np.float64(2 * X.sum()), np.float32(4 * X.sum())])
        else:
            close(leaves[0], 2 * X * X)
            close(leaves[1], np.float64(6 * X.sum()))
    assert ran(g) == (1, 2, 0)


def test_methods_of_parameters(grad):
    g = grad(lambda p, x: np.sum(p.apply(x) ** 2))
    got = g(Layer(X, 0.5), X)
    close(got.w, 2 * (X * X + 0.5) * X)
    assert type(got) is Layer
    h = grad(lambda p: np.sum(p.norm()) + np.sum(p.total))
    close(h(Point(X, X)).x, X / np.sqrt(2 * X * X) + 1)


def test_dtypes(grad):
    def f(x):
        return np.sum(x * 3)

    for dtype in ("f2", "f4", "f8", "c8", "c16"):
        x = X.astype(dtype)
        target = (lambda x: np.sum(np.abs(x) ** 2)) if dtype[0] == "c" else f
        got = grad(target)(x)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got, 2 * x if dtype[0] == "c" else 3 + 0 * x, rtol=1e-6)
    assert type(grad(lambda a: a * a)(3.0)) is np.float64
    assert type(grad(lambda a: a * a)(np.float32(3))) is np.float32
    close(grad(lambda a: a * 2.0)(np.array(3.0)), np.array(2.0))


@pytest.mark.parametrize(
    ("f", "args", "error", "text"),
    [
        (lambda x: x * 2, (X,), TypeError, "scalar"),
        (lambda x: np.sum(x), (np.arange(3),), TypeError, "argument 0"),
        (lambda x: np.sum(x), (3,), TypeError, "argument 0"),
        (lambda p: np.sum(p["w"]), ({"w": X, "n": 3},), TypeError, r"argument 0\['n'\]"),
        (lambda x: np.sum(x * 1j), (X,), TypeError, "real"),
        (lambda x: None, (X,), TypeError, "scalar"),
        (lambda x: x @ np.ones(3), (X,), ValueError, "mismatch"),
        (lambda x: 1 / 0, (X,), ZeroDivisionError, "division"),
        (lambda x: np.sum(x > 0), (X,), TypeError, "real|float|int"),
    ],
)
def test_errors(grad, f, args, error, text):
    g = grad(f)
    for _ in range(2):
        with pytest.raises(error, match=text):
            g(*args)


def test_compositions(grad):
    backend = grad.keywords["backend"]
    jit = functools.partial(npjit.jit, backend=backend)

    def f(x):
        return np.sum(x**3)

    want = 3 * X**2
    close(jit(grad(f))(X), want)
    close(grad(jit(f))(X), want)
    close(jit(lambda x: grad(f)(x) * 2)(X), want * 2)
    close(grad(lambda x: np.sum(grad(f)(x)))(X), 6 * X)
    close(grad(grad(lambda a: a**4))(2.0), np.float64(48.0))
    close(grad(grad(grad(lambda a: a**4)))(2.0), np.float64(48.0))
    close(grad(functools.partial(lambda k, x: f(x) * k, 2.0))(X), want * 2)
    k = np.float64(5.0)
    close(jit(lambda x: grad(lambda y: f(y) * k * x[0])(x))(X), want * 5 * X[0])
    assert jit(grad(f)).cache_info()["compiled"] == 0


def test_methods_and_objects(grad):
    class Model:
        def __init__(self):
            self.w = X.copy()

        def loss(self, x):
            return np.sum(self.w * x * x)

        def __call__(self, x):
            return self.loss(x)

        def step(self, x):
            return grad(self.loss)(x)

    m = Model()
    close(grad(m.loss)(X), 2 * X * X)
    close(grad(m)(X), 2 * X * X)
    close(npjit.jit(m.step, backend="numpy")(X), 2 * X * X)
    g = grad(m.loss)
    g(X)
    m.w *= 2
    close(g(X), 4 * X * X)
    m.w = X + 0
    close(g(X), 2 * X * X)
    assert ran(g) == (1, 3, 0)


def test_the_function_s_own_result_is_never_given_instead(grad):
    g = grad(lambda x: np.sum(x / (x + 1)))
    want = 1 / (X + 1) ** 2
    with np.errstate(all="raise"):
        close(g(X), want)
    close(g(X), want)
    h = grad(lambda a: 1.0 / a)
    close(h(2.0), np.float64(-0.25))
    with pytest.raises(ZeroDivisionError):
        h(0.0)


def test_control_flow_on_values(grad):
    def newton(x):
        y = x
        while abs(y * y - x) > 1e-10:
            y = 0.5 * (y + x / y)
        return y

    np.testing.assert_allclose(grad(newton)(2.0), 0.5 / np.sqrt(2.0), rtol=1e-6)

    def piecewise(x):
        if np.sum(x) > 10:
            return np.sum(x * x)
        return np.sum(3 * x)

    g = grad(piecewise)
    close(g(X), 2 * X)
    close(g(X / 10), 3 + 0 * X)

    def with_print(x):
        print("value", float(x[0]))
        return np.sum(x * x)

    close(grad(with_print)(X), 2 * X)


def test_updates_in_place_reach_the_caller(grad):
    def f(x, log):
        log[:] = x * 2
        y = np.zeros(20)
        y[::2] = x[::2] ** 2
        y += x
        return np.sum(y * log)

    log = np.zeros(20)
    even = np.arange(20) % 2 == 0
    want = np.where(even, 6 * X**2, 0) + 4 * X
    g = grad(f)
    for _ in range(2):
        log[:] = 0
        np.testing.assert_allclose(g(X, log), want, rtol=1e-12)
        np.testing.assert_allclose(log, X * 2)
    assert ran(g) == (1, 2, 0)

    def own(x):
        x *= 2
        return np.sum(x * x)

    x = X.copy()
    np.testing.assert_allclose(grad(own)(x), 8 * X)
    np.testing.assert_allclose(x, 2 * X)
