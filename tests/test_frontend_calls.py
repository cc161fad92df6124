"""What can be jitted, and every way of passing arguments: results as NumPy's, by compiled code."""

import asyncio
import collections
import copy
import dataclasses
import functools
import gc
import inspect
import math
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import npjit
from npjit.core.graph import Node
from tests.calls import check_calls

X = np.linspace(-1.0, 2.0, 20)


class Point(NamedTuple):
    x: Any
    y: Any

    def norm(self):
        return np.sqrt(self.x**2 + self.y**2)

    @property
    def total(self):
        return self.x + self.y

    @classmethod
    def ones(cls, n):
        return cls(np.ones(n), np.ones(n))


Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Layer:
    w: Any
    b: Any = 0.5

    def apply(self, x):
        return x * self.w + self.b


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: Any
    scale: float = 2.0


# ---------------------------------------------------------------- arguments


def defaults(x, a=2.0, *, b=3, c=None):
    return x * a + b if c is None else x * c


def variadic(*args, **kwargs):
    total = args[0]
    for a in args[1:]:
        total = total + a
    for key in kwargs:
        total = total * kwargs[key]
    return total


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((X,), {}),
        ((X, 1.5), {}),
        ((X,), {"a": 1.5}),
        ((), {"x": X, "a": 0.5, "b": 7}),
        ((), {"b": 7, "x": X}),
        ((X,), {"c": 4.0}),
        ((X, np.float32(2)), {"b": True}),
    ],
)
def test_ways_to_pass_arguments(jit, args, kwargs):
    check_calls(jit(defaults), *args, **kwargs)


def test_variadic_arguments(jit):
    f = jit(variadic)
    check_calls(f, X, X[::-1], 1.0)
    check_calls(f, X, p=2.0, q=np.float64(3))
    assert f.cache_info()["compiled"] == 2


@pytest.mark.parametrize(
    "tree",
    [
        (X, X + 1),
        [X, [1.0, (X, 2)]],
        {"w": X, "b": {"c": 2.0, 3: X}},
        Pair(X, 3.0),
        Point(X, X),
        Layer(X),
        Layer({"k": X}, [1.0]),
        Frozen(X),
        (None, X, None),
        ((), [], {}, X),
    ],
    ids=lambda t: type(t).__name__,
)
def test_trees_in_and_out(jit, tree):
    def f(tree):
        return tree, double(tree)

    def double(t):
        if t is None:
            return None
        if isinstance(t, dict):
            return {k: double(v) for k, v in t.items()}
        if isinstance(t, Layer):
            return Layer(double(t.w), double(t.b))
        if isinstance(t, Frozen):
            return dataclasses.replace(t, w=double(t.w))
        if isinstance(t, tuple) and hasattr(t, "_fields"):
            return t._replace(**{k: double(getattr(t, k)) for k in t._fields})
        if isinstance(t, (list, tuple)):
            return type(t)([double(v) for v in t])
        return t * 2

    check_calls(jit(f), tree)


def test_a_returned_container_argument_is_the_same_object(jit):
    f = jit(lambda d, items, layer: (d, items, layer, d["x"]))
    d, items, layer = {"x": X}, [X], Layer(X)
    for _ in range(2):
        got = f(d, items, layer)
        assert got[0] is d
        assert got[1] is items
        assert got[2] is layer
        assert got[3] is X


def test_methods_of_named_tuples_and_dataclasses(jit):
    check_calls(jit(lambda p: p.norm() + p.total), Point(X, X))
    check_calls(jit(lambda x: Point(x, 2.0).norm()), X)
    check_calls(jit(lambda x: Point.ones(3).x * x[0]), X)
    check_calls(jit(lambda layer, x: layer.apply(x)), Layer(2.0), X)
    check_calls(jit(lambda x: Layer(x).apply(x)), X)


# ---------------------------------------------------------------- kinds of functions


class Model:
    """Everything a class can have."""

    rate = 0.1

    def __init__(self, w):
        self.w = w

    def forward(self, x):
        return self.helper(x) * self.doubled + self.rate

    def helper(self, x):
        return x + self.shift(1.0)

    @property
    def doubled(self):
        return self.w * 2

    @staticmethod
    def shift(a):
        return a + 0.5

    @classmethod
    def scaled(cls, x):
        return x * cls.rate

    def __call__(self, x):
        return self.forward(x) + Model.scaled(x)


class Deep(Model):
    def __init__(self, w, extra):
        super().__init__(w)
        self.extra = extra

    def forward(self, x):
        return super().forward(x) + self.extra


def test_methods(jit):
    m = Model(X)
    check_calls(jit(m.forward), X)
    check_calls(jit(Model.forward), m, X)
    check_calls(jit(Model.scaled), X)
    check_calls(jit(Model.shift), X)
    check_calls(jit(lambda x: m(x)), X)
    check_calls(jit(lambda x: Deep(x, 1.0)(x)), X)
    check_calls(jit(Deep(X, 2.0).forward), X)


def test_jitted_methods_bind(jit):
    class Net:
        def __init__(self, w):
            self.w = w

        @jit
        def forward(self, x):
            return self.w * x

        @classmethod
        @jit
        def make(cls, x):
            return x + 1

        @staticmethod
        @jit
        def plain(x):
            return x - 1

        @property
        @jit
        def twice(self):
            return self.w * 2

        def both(self, x):
            return self.forward(x) + self.plain(x)

    net, other = Net(X + 0), Net(X + 1)
    assert np.array_equal(net.forward(X), X * X)
    assert np.array_equal(other.forward(X), (X + 1) * X)
    assert np.array_equal(Net.forward(net, X), X * X)
    assert np.array_equal(Net.make(X), X + 1)
    assert np.array_equal(net.make(X), X + 1)
    assert np.array_equal(net.plain(X), X - 1)
    assert np.array_equal(net.twice, X * 2)
    assert Net.forward.cache_info()["compiled"] == 1
    assert Net.forward.cache_info()["whole"] == 3
    check_calls(jit(Net.both), net, X)


def test_closures_lambdas_partials_and_made_functions(jit):
    k, w = 2.0, X * 3

    def inner(x):
        return x * k + w

    check_calls(jit(inner), X)
    check_calls(jit(lambda x: inner(x) - 1), X)
    scope = {"np": np}
    exec("def made(x):\n    return np.sin(x) + c\nc = 2.0", scope)
    check_calls(jit(scope["made"]), X)
    check_calls(jit(eval("lambda x: np.cos(x)", {"np": np})), X)


def test_partials(jit):
    part = functools.partial(defaults, a=4.0)
    f = jit(part)
    for _ in range(2):
        assert np.array_equal(f(X, b=2), part(X, b=2))
    assert f.cache_info()["whole"] == 2
    g = functools.partial(jit(defaults), a=4.0)
    assert np.array_equal(g(X), part(X))
    check_calls(jit(lambda x: functools.partial(defaults, a=3.0)(x)), X)


def test_functions_that_call_functions(jit):
    from tests import helper_module

    check_calls(jit(lambda x: helper_module.outer(x)), X)
    inner = jit(lambda x: np.sin(x))
    check_calls(jit(lambda x: inner(x) + inner(x * 2)), X)
    check_calls(jit(lambda x: functools.reduce(lambda a, b: a * b, [x, x, x])), X)
    check_calls(jit(lambda x: sum([x, x]) + sorted([3, 1, 2])[0]), X)


def test_stacked_decorators(jit):
    def doubled(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            return 2 * f(*args, **kwargs)

        return wrapper

    @jit
    @doubled
    @jit
    @doubled
    def f(x, a=1.0):
        return x + a

    assert np.array_equal(f(X), 4 * (X + 1.0))
    assert np.array_equal(f(X, a=2.0), 4 * (X + 2.0))
    assert f.cache_info()["whole"] == 2
    assert f.__name__ == "f"


def test_recursion(jit):
    def local(x, n):
        return x if n == 0 else local(x * 2, n - 1)

    check_calls(jit(local), X, 3)
    check_calls(jit(power), X, 4)


def power(x, n):
    return np.ones_like(x) if n == 0 else x * power(x, n - 1)


@pytest.mark.parametrize("f", [np.sin, np.add, np.sum, np.zeros_like, abs, len, math.sqrt, np.dot])
def test_numpy_functions_and_builtins(jit, f):
    args = {np.add: (X, X), math.sqrt: (2.0,), np.dot: (X, X)}.get(f, (X,))
    compiled = jit(f)
    for _ in range(2):
        got, want = compiled(*args), f(*args)
        assert type(got) is type(want)
        assert np.allclose(got, want, rtol=1e-14)
    assert compiled.cache_info()["whole"] == 2


def test_generators_and_coroutines_run_as_they_are(jit):
    def counted(x):
        yield x + 1
        yield x + 2

    async def later(x):
        return x * 2

    with pytest.warns(npjit.NpjitWarning, match="generator"):
        _, second = jit(counted)(X)
    assert np.array_equal(second, X + 2)
    with pytest.warns(npjit.NpjitWarning, match="coroutine"):
        assert np.array_equal(asyncio.run(jit(later)(X)), X * 2)
    check = jit(lambda x: sum(v for v in [x, x]))
    assert np.array_equal(check(X), X + X)


def test_what_cannot_be_jitted():
    with pytest.raises(TypeError, match="class Layer"):
        npjit.jit(Layer)
    with pytest.raises(TypeError, match="callable"):
        npjit.jit(3)
    with pytest.raises(TypeError, match="callable"):
        npjit.grad(3)
    with pytest.raises(ValueError, match="no backend named"):
        npjit.jit(len, backend="nothing")


# ---------------------------------------------------------------- callable objects


class Count(Model):
    def __init__(self, w):
        super().__init__(w)
        self.run = "own attribute"
        self.options = 3

    def __len__(self):
        return 5

    def __getitem__(self, i):
        return self.w[i]

    def __eq__(self, other):
        return isinstance(other, Count)

    __hash__ = None


def test_callable_objects(jit):
    model = Count(X.copy())
    f = jit(model)
    assert isinstance(f, Count)
    assert np.array_equal(f(X), model(X))
    assert (f.run, f.options, f.rate, len(f), f[1]) == ("own attribute", 3, 0.1, 5, X[1])
    assert f == model
    assert np.array_equal(f.helper(X), model.helper(X))
    f.w = X * 2
    assert np.array_equal(model.w, X * 2)
    assert np.array_equal(f(X), model(X))
    model.w *= 3
    assert np.array_equal(f(X), model(X))
    f.w -= 1
    assert np.array_equal(f(X), model(X))
    assert f.cache_info()["compiled"] == 1
    assert f.cache_info()["whole"] == 4
    assert jit(f).cache_info()["whole"] in (0, 4)
    check_calls(jit(lambda x: f(x) + 1), X)


def test_a_call_that_updates_a_parameter_in_place(jit):
    class Step:
        def __init__(self):
            self.w = np.zeros(20)

        def __call__(self, g):
            self.w -= 0.5 * g
            return np.sum(self.w)

    step = Step()
    w = step.w
    f = jit(step)
    for i in range(1, 4):
        assert f(np.ones(20)) == -10.0 * i
        assert np.array_equal(w, np.full(20, -0.5 * i))
    assert f.cache_info()["whole"] == 3


# ---------------------------------------------------------------- what a jitted function keeps


@npjit.jit
def documented(x, a=2.0):
    """Its docstring."""
    return x * a


documented.note = "an attribute"


def test_names_and_signatures_are_kept():
    assert documented.__name__ == "documented"
    assert documented.__doc__ == "Its docstring."
    assert documented.__module__ == __name__
    assert str(inspect.signature(documented)) == "(x, a=2.0)"
    assert documented.note == "an attribute"
    assert inspect.signature(npjit.jit(Count(X))) == inspect.signature(Count(X))

    def f(x):
        return x

    f.options = f.function = "the user's"
    assert npjit.jit(f)(3) == 3


def test_pickle_and_copy():
    assert pickle.loads(pickle.dumps(documented)) is documented
    assert copy.deepcopy(documented) is documented
    assert copy.copy(documented) is documented
    model = pickle.loads(pickle.dumps(npjit.jit(Model(X))))
    assert np.array_equal(model(X), Model(X)(X))
    assert isinstance(model, Model)
    gradient = pickle.loads(pickle.dumps(npjit.grad(total)))
    assert np.array_equal(gradient(X), 2 * X)
    part = pickle.loads(pickle.dumps(npjit.jit(functools.partial(power, n=2))))
    assert np.array_equal(part(X), X * X)


def total(x):
    return np.sum(x * x)


def test_a_dropped_function_leaves_nothing_to_collect() -> None:
    def call() -> Any:
        f = npjit.jit(lambda x: np.sin(x) * 2.0 + np.sum(x))
        f(np.ones(4))
        return f

    def nodes() -> int:
        return sum(isinstance(o, Node) for o in gc.get_objects())

    call()  # from here on the plan is in the cache
    gc.collect()
    before = nodes()
    gc.disable()
    try:
        f = call()
        assert nodes() > before
        del f
        assert nodes() == before
    finally:
        gc.enable()
