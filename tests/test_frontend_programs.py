"""Small programs as users write them, each by compiled code alone: networks, integrators, parsing
of options.
"""

import collections
import dataclasses
import enum
import functools
import math
import operator
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.calls import check_calls

X = np.linspace(-1.0, 2.0, 20)
A = np.arange(12.0).reshape(3, 4) / 5
R = np.random.default_rng(0)
PROGRAMS: list[Any] = []


def program(*args: Any) -> Any:
    """Enter a function with the arguments to call it with."""

    def enter(f: Any) -> Any:
        PROGRAMS.append(pytest.param(f, args, id=f.__name__))
        return f

    return enter


class Linear:
    def __init__(self, i, o):
        self.w = R.normal(size=(i, o))
        self.b = np.zeros(o)

    def __call__(self, x):
        return x @ self.w + self.b


class Relu:
    def __call__(self, x):
        return np.maximum(x, 0)


class Net:
    def __init__(self):
        self.layers = [Linear(4, 8), Relu(), Linear(8, 2)]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    @property
    def params(self):
        return [p for m in self.layers if isinstance(m, Linear) for p in (m.w, m.b)]


net = Net()


@program(np.ones((3, 4)))
def network_loss(x):
    return 0.001 * sum(np.max(np.abs(p)) for p in net.params) * net(x)[0, 0]


class Momentum:
    def __init__(self, count):
        self.m = [np.zeros(20) for _ in range(count)]
        self.rate = 0.1

    def step(self, params, grads):
        for i, (p, g) in enumerate(zip(params, grads, strict=True)):
            self.m[i] *= 0.0
            self.m[i] += g
            p -= self.rate * self.m[i]
        return params


optimizer = Momentum(2)


@program([X, X + 1], [X * 2, X])
def optimizer_step(params, grads):
    return optimizer.step(params, grads)


@program(X, 0.1)
def runge_kutta(y, h):
    def f(t, y):
        return -y * t

    k1 = f(0.0, y)
    k2 = f(h / 2, y + h / 2 * k1)
    k3 = f(h / 2, y + h / 2 * k2)
    k4 = f(h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class State(NamedTuple):
    pos: Any
    vel: Any


@program(State(X, X * 0 + 1), 0.1)
def leapfrog(s, dt):
    v = s.vel - dt * s.pos
    return s._replace(pos=s.pos + dt * v, vel=v)


@dataclasses.dataclass(frozen=True)
class Config:
    mode: str = "a"
    n: int = 3
    scale: float = 2.0
    dtype: Any = np.float32


@program(X, Config())
def configured(x, c):
    if c.mode == "a":
        x = x * c.scale
    for _ in range(c.n):
        x = x + 1
    return x.astype(c.dtype)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@program(X, Color.RED, Color.BLUE)
def enumerated(x, c, d):
    x = x * 2 if c is Color.RED else x
    return {Color.RED: x, Color.BLUE: -x}[d] * d.value


@program(A)
def checked(x, out=None):
    assert x.ndim == 2, f"bad {x.shape}"
    n, d = x.shape
    if x.dtype != np.float64:
        x = x.astype(np.float64)
    if out is None:
        out = np.empty_like(x)
    np.multiply(x, math.sqrt(n / d), out=out)
    return out


@program(X, "square", {"a": 1.0, "b": [2.0, 3.0]})
def options(x, mode, d):
    match mode:
        case "square":
            x = x**2
        case _:
            raise ValueError(mode)
    if (n := len(x)) > 10:
        x = x / n
    return {**d, "c": x * d["a"]}, [v * x for v in d["b"]], dict(zip("pq", d["b"], strict=True))


@program(X)
def imports(x):
    from math import pi, sin

    import numpy as other

    try:
        import no_such_module
    except ImportError:
        no_such_module = None
    return other.sqrt(x + 2) * pi + sin(1.0), no_such_module


def counted(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs)

    return wrapper


@counted
def scaled(x, *, k=2):
    return x * k


table: dict[int, float] = {3: 6.0}


def looked_up(k):
    if k not in table:
        table[k] = k * 2.0
    return table[k]


@program(X)
def helpers(x):
    return scaled(x, k=3) * looked_up(3)


@program(X)
def collections_of_things(x):
    d = collections.deque([x])
    d.append(x * 2)
    o = collections.OrderedDict(a=x)
    groups = collections.defaultdict(list)
    groups["z"].append(x)
    a, *b, c = x[0], x[1], x[2], x[3]
    return d[1] + o["a"] + groups["z"][0], a + c + b[0], sorted([len(x), 3, 1]), [*enumerate([x])]


@program(X)
def functional(x):
    def pieces():
        for i in range(3):
            yield x * i

    made = functools.reduce(operator.mul, [x, x + 1]), operator.itemgetter(0)([2.0])
    return sum(pieces()), made, (lambda **k: k["a"] + k["b"])(a=x, b=2)


@program(X)
def class_inside(x):
    class Inner:
        k = 3

        def f(self, x):
            return x * self.k

    return Inner().f(x)


@program(X, np.int64(3), slice(1, 5))
def indexing(x, k, s):
    return x[k], np.zeros(k), x.reshape(k + 1, -1), x[s], x[(s,)], x[np.s_[2:4]], x[-k]


@program(X)
def texts(x):
    return f"{x.shape}", str(len(x)), f"{x.ndim}", x.dtype.name, str(x.dtype), repr(x.dtype)


@program([1.0, 2.0, 3.0], 2.5)
def plain_numbers(x, a):
    y = np.array(x) * 2, max(x), min(x[0], a), x[0] + x[1]
    return y, np.exp(-a) * a + math.log(a), a**2, a**0.5, int(a), 0.5 * int(a)


@program(X)
def strange_assignments(x):
    y = x.copy()
    y[y.shape[0] // 2 :] = 0
    y[0], y[1] = y[1], y[0]
    y[::2] += 1
    a = b = y
    a += 1
    del x
    return y, b


@program(X)
def early_returns(x):
    if x.ndim == 1:
        if len(x) == 0:
            return None
        return x[0]
    raise ValueError


@program(X)
def casts(x):
    y = np.float32(x[3]) * x, float(x[0]) * x.astype("f4"), np.int64(len(x)), bool(x.any())
    return y, np.inf * x, np.full(3, -np.inf), x == np.nan, np.asarray(x, dtype=float)


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_program(jit, f, args):
    check_calls(jit(f), *args)
