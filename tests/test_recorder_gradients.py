"""Gradients of functions that break: right, with every effect once and in order.

Each program is differentiated by a compiled reverse pass over what it has recorded, and compared
with finite differences; output, what it has stored, and its arguments, with a plain run.
"""

from __future__ import annotations

import contextlib
import copy
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.core.trees import flatten, unflatten
from tests.calls import assert_same

X = np.linspace(0.5, 2.0, 12)
LOG: list[Any] = []
STATE: dict[str, Any] = {}
TABLE = {0: 1.0, 1: 10.0}
COUNT = 0
PROGRAMS: list[Any] = []

pytestmark = pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")


def program(*args: Any) -> Callable[[Any], Any]:
    def enter(f: Any) -> Any:
        PROGRAMS.append(pytest.param(f, args, id=f.__name__))
        return f

    return enter


@program(X)
def appends(x):
    y = np.sin(x)
    LOG.append(y.sum())
    LOG.append((1, y, [x[1:]]))
    return (y * y).sum()


@program(X)
def updates_of_dicts(x):
    STATE["n"] = STATE.get("n", 0) + 1
    STATE["last"] = x * 2
    return np.sum(x**3) * TABLE[int(x[0] > 1)]


def squashed(x, k):
    print("squashed", k)
    return np.tanh(x) * k


@program(X)
def helpers(x):
    return squashed(x, 2.0).sum() + squashed(x * x, 3).sum()


@program(X)
def exceptions(x):
    try:
        LOG.append(1)
        y = x @ np.ones(3)
    except ValueError as e:
        LOG.append(str(e))
        y = x * 3
    finally:
        LOG.append(2)
    try:
        np.linalg.inv(np.outer(x, x) * 0)
    except np.linalg.LinAlgError:
        LOG.append("singular")
    with contextlib.suppress(ValueError):
        y = np.exp(y)
        raise ValueError
    return np.sum(y * x)


@program(X)
def generators(x):
    def products():
        for i in range(4):
            LOG.append(i)
            yield x[i] * x[i + 1]

    return sum(products())


@program(X)
def stores(x):
    y = x.copy()
    print(y[0])
    y[2:] *= 2
    v = y[::2]
    v += x[::2] ** 2
    y[y > 2] = x[y > 2] * 0.5
    z = np.zeros((2, 6))
    z[0], z[1] = y[:6], y[6:] * 2
    LOG.append(z.shape)
    z[1, 2] = 0
    made = np.array([x[0] * 2, x[1]])
    return (z * z).sum() + made.prod()


@program(X)
def picks(x):
    LOG.append("picks")
    y = x[x > 1]
    found = x[np.argmax(x)] + x[np.nonzero(x > 1.5)].sum() + np.sort(x)[2]
    return (y * y).sum() + len(y) + found


@program(X)
def numbers(x):
    LOG.append(f"{x.sum():.2f} %.3f" % x[1])
    a, b = float(x[0]), np.float64(x[1])
    return (math.sin(a) * math.sqrt(b) + a**2) * x[2] + x[3].item()


@program(2.0)
def one_number(a):
    print(f"{a:.3f}")
    b = a
    for _ in range(3):
        b = b * a + math.exp(-b)
    return b


@program({"w": X.reshape(3, 4), "b": [X[:3], 1.5]})
def trees(p):
    LOG.append(p["w"].sum())
    return np.sum((p["w"] @ p["w"].T + p["b"][0]) * p["b"][1])


@program(X)
def closures(x):
    n = 0

    def scaled(v):
        nonlocal n
        n += 1
        LOG.append(n)
        return v * n

    return np.sum(scaled(x) + scaled(x) * x)


class Layer:
    def __init__(self):
        self.w = np.linspace(0, 1, 12)
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        self.cache = x * self.w
        return np.tanh(self.cache)


@program(X)
def methods(x):
    layer = STATE.setdefault("layer", Layer())
    y = layer(x)
    return np.sum(y * layer.cache)


@program(X, np.arange(12.0), np.zeros(12))
def arguments_are_written(x, c, buffer):
    print(c[0])
    c += 1
    buffer[:] = x * c
    buffer += 1
    return np.sum(buffer * x * c)


@program(X)
def loops_on_values(x):
    y = x
    LOG.append(0)
    while y.max() > 0.1:
        y = y * 0.5
    total = 0.0
    for v in x:
        if v > 1.2:
            total = total + v * v
        elif v > 0.9:
            total += 3 * v
    return y.sum() * total


@program(X)
def global_names(x):
    global COUNT
    COUNT += 1
    LOG.append(COUNT)
    return np.sum(np.sin(x))


@program(X)
def linear_algebra(x):
    a = np.outer(x[:3], x[3:6]) + np.eye(3) * 4
    LOG.append(np.linalg.det(a))
    s = np.linalg.solve(a, x[:3])
    return np.linalg.inv(a).sum() + s.sum() + np.linalg.norm(a) + np.linalg.slogdet(a)[1]


@program(X)
def views(x):
    m = x.reshape(3, 4)
    LOG.append(m.T.shape)
    t = m.T
    print(t[0, 0])
    u = np.split(t.reshape(-1), 3)[1]
    return np.sum(u * u) + np.sum(t[1] * m[0, :3])


@program(X)
def random_numbers(x):
    rng = STATE.setdefault("rng", np.random.default_rng(0))
    mask, n = rng.random(12) < 0.5, rng.normal(size=x.shape)
    n *= 2
    y = x * n
    n += 1
    return np.sum(np.where(mask, y * x, n * x))


@program(X)
def complex_numbers(x):
    z = np.exp(1j * x) * x
    print(bool(z[0].real > 100))
    return np.sum(np.abs(z) ** 2) + np.sum(z.real)


def reset() -> None:
    global COUNT
    LOG.clear()
    STATE.clear()
    COUNT = 0


def effects() -> Any:
    state = {k: v for k, v in STATE.items() if k != "rng"}
    stream = str(STATE["rng"].bit_generator.state) if "rng" in STATE else ""
    return copy.deepcopy((LOG, state, stream, COUNT))


def plain(f: Any, args: Any) -> tuple[Any, Any, Any, str]:
    reset()
    mine, out = copy.deepcopy(args), io.StringIO()
    with contextlib.redirect_stdout(out):
        value = f(*mine)
    return value, effects(), mine, out.getvalue()


def differences(f: Any, args: Any) -> list[Any]:
    """The gradient for the first argument, leaf by leaf, by finite differences."""
    leaves, tree = flatten(args[0])
    found = []
    for k, leaf in enumerate(leaves):
        gradient = np.zeros(np.shape(leaf))
        for place in np.ndindex(np.shape(leaf)):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [copy.deepcopy(v) for v in leaves]
                change = np.zeros(np.shape(leaf))
                change[place] = step
                moved[k] = leaf + change if np.ndim(leaf) else float(leaf + change)
                ends.append(plain(f, (unflatten(tree, moved), *args[1:]))[0])
            gradient[place] = (ends[0] - ends[1]) / 2e-6
        found.append(gradient)
    return found


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_programs(f, args):
    want = differences(f, args)
    value, after, theirs, out = plain(f, args)
    g = npjit.value_and_grad(f)
    for _ in range(2):
        got, found, mine, shown = plain(g, args)
        assert shown == out
        assert_same(got[0], value)
        assert_same(found, after)
        assert_same(mine, theirs)
        for a, b in zip(flatten(got[1])[0], want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    info = g.cache_info()
    assert (info["whole"], info["broken"], info["numpy"]) == (0, 2, 0)
    assert info["compiled"] > 0


def test_the_same_gradient_as_without_effects():
    def loss(x, w):
        return np.sum(np.tanh(x @ w) ** 2)

    def told(x, w):
        LOG.append(x.sum())
        y = np.tanh(x @ w)
        print(y[0, 0])
        return np.sum(y**2)

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(20, 5)), rng.normal(size=(5, 3))
    want = npjit.grad(loss, argnums=(0, 1))(x, w)
    g = npjit.grad(told, argnums=(0, 1))
    for _ in range(3):
        for a, b in zip(g(x, w), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    compiled = g.cache_info()["compiled"]
    g(x[:18], w)
    assert g.cache_info()["compiled"] == compiled  # sizes are symbols


def test_a_long_loop_of_python():
    def f(x, w):
        LOG.append(0)
        h = x
        for _ in range(500):
            h = np.tanh(h * w) + x
        return np.sum(h)

    g = npjit.grad(f, argnums=(0, 1), backend="numpy")
    got = g(X, 0.9)
    want = npjit.grad(f.__wrapped__ if hasattr(f, "__wrapped__") else f, argnums=(0, 1))(X, 0.9)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-10)
    assert len(g.recorder.programs) <= 4


@npjit.jit
def cubed(x):
    return x**3


def test_compiled_functions_inside():
    inner = npjit.grad(lambda x: np.sum(cubed(x)))

    def f(x):
        LOG.append(0)
        return np.sum(inner(x) * x) + np.sum(cubed(x))

    np.testing.assert_allclose(npjit.grad(f)(X), 12 * X**2, rtol=1e-12)


def test_results_are_real_and_alias_as_numpys():
    def f(x):
        LOG.append(x)
        return np.sum(x * x), {"x": x, "tail": x[1:], "y": x + 1}

    x = X.copy()
    LOG.clear()
    _, aux = npjit.grad(f, has_aux=True)(x)
    assert LOG[0] is x
    assert aux["x"] is x
    assert np.shares_memory(aux["tail"], x)
    assert type(aux["y"]) is np.ndarray


class Cell:
    """A method makes a buffer and fills it; so does `__init__`."""

    def __init__(self, weights):
        self.weights = weights
        self.scaled = np.zeros(len(weights))
        self.scaled[:] = weights * 2

    def __call__(self, x):
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = x[i] * self.weights[i]
        return out

    def shifted(self, x):
        out = np.empty(x.shape)
        out[1:] = x[:-1] * self.scaled[1:]
        out[0] = x[0]
        return out


class Doubled(Cell):
    def shifted(self, x):
        return super().shifted(x) * 2


class Network:
    def __init__(self):
        self.cells = [Cell(np.linspace(0.5, 1.0, 5)), Doubled(np.linspace(1.0, 0.5, 5))]

    def loss(self, x):
        LOG.append(0)
        for cell in self.cells:
            x = cell.shifted(np.tanh(cell(x)))
        return np.sum(x**2)

    def of_new_cells(self, w):
        LOG.append(0)
        return np.sum(Doubled(w).shifted(np.ones(5)) * Cell(w[::-1])(w))


@pytest.mark.parametrize("name", ["loss", "of_new_cells"])
def test_methods_are_recorded(name):
    f = getattr(Network(), name)
    x = np.linspace(0.1, 1.0, 5)
    LOG.clear()
    gradient = npjit.grad(f)
    found = [gradient(x), gradient(x)]
    assert len(LOG) == 2
    for k, step in enumerate(1e-6 * np.eye(5)):
        slope = (f(x + step) - f(x - step)) / 2e-6
        assert all(np.isclose(g[k], slope, rtol=1e-6, atol=1e-9) for g in found)


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x: (LOG.append(0), np.sum(np.array(object=[x]).tolist()))[1], "a real array"),
        (lambda x: (LOG.append(0), np.random.default_rng(0).normal(x).sum())[1], "a real array"),
        (lambda x: (LOG.append(0), float.__float__(x.sum()))[1], "float|descriptor"),
        (lambda x: (LOG.append(0), np.frompyfunc(abs, 1, 1)(x).sum())[1], "abs"),
    ],
)
def test_values_that_would_leave(f, text):
    with pytest.raises((npjit.CaptureError, TypeError), match=text):
        npjit.grad(f)(X)


def test_the_error_names_the_line():
    def f(x):
        LOG.append(0)
        return np.sum(np.random.default_rng(0).normal(x))  # here

    line = f.__code__.co_firstlineno + 2
    with pytest.raises(npjit.CaptureError, match=rf"test_recorder_gradients.py:{line}: .* depends"):
        npjit.grad(f)(X)


def test_what_is_written_before_an_error_stays():
    def f(x):
        LOG.append(x * 2)
        x += 1
        raise KeyError("after that")

    x = X.copy()
    LOG.clear()
    with pytest.raises(KeyError):
        npjit.grad(f)(x)
    assert_same(x, X + 1)
    assert_same(LOG, [X * 2])


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_a_flattened_copy_of_an_argument_is_written():
    def f(x, log):
        log.append(1)
        r = x.ravel()
        r[0] = 9.0
        return np.sum(x**2) + np.sum(r)

    x = np.arange(1.0, 13.0).reshape(3, 4).T
    want = 2 * x + 1
    want[0, 0] -= 1  # of the copy, not of x
    value, found = npjit.value_and_grad(f)(x.copy(order="F"), [])
    assert value == f(x.copy(order="F"), [])
    assert np.array_equal(found, want)


def written_by_another_name(x, held):
    y = np.sin(x)
    LOG.append(float(y[0]) > 2)  # the sine has run
    held[0][0] = 100.0
    return y.sum()


def read_after_another_name_has_written(x, held):
    y = np.sin(x)
    LOG.append(0)
    held[0][0] = 100.0
    return y.sum() + x.sum()


def read_when_another_name_had_written(x, held):
    LOG.append(0)
    held[0][0] = 100.0
    return x.sum()


def test_gradients_of_what_another_name_writes_later():
    x = np.arange(4.0)
    assert_same(npjit.grad(written_by_another_name)(x, [x]), np.cos(np.arange(4.0)))
    assert x[0] == 100.0


@pytest.mark.parametrize(
    "f", [read_after_another_name_has_written, read_when_another_name_had_written]
)
def test_gradients_through_what_another_name_has_written(f):
    x = np.arange(4.0)
    with pytest.raises(npjit.CaptureError, match="changed by another name"):
        npjit.grad(f)(x, [x])
