"""Guards, object by object: what a call has read and then finds changed.

A scenario is a generator: it yields the function first, then, after each change that it makes, the
arguments of a call and how many versions there are to be after it. Each call's value must be
NumPy's at once, and what needs no new version must not get one.

    def scenario():
        scale = 2.0
        yield lambda x: x * scale
        yield (X,), 1
        scale = 3.0               # another float: the same version
        yield (X,), 1
"""

import collections
import dataclasses
import enum
import functools
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import npjit
from tests.calls import assert_same, outcome

X = np.linspace(-1.0, 2.0, 20)

Scenario = Callable[[], Iterator[Any]]
SCENARIOS: list[Scenario] = []


def scenario(make: Scenario) -> Scenario:
    SCENARIOS.append(make)
    return make


class Box:
    """An object with these attributes."""

    def __init__(self, **own: Any) -> None:
        self.__dict__.update(own)


def each(function: Callable[..., Any], *values: tuple[Any, int]) -> Iterator[Any]:
    """One call f(X, value) for each value."""
    yield function
    for value, versions in values:
        yield (X, value), versions


# ---------------------------------------------------------------- where names are looked up


@scenario
def a_global():
    scope: dict[str, Any] = {"k": 2.0}
    exec("def f(x): return x * k", scope)
    yield scope["f"]
    for value, versions in (
        *((2.0, 1), (-0.0, 1), (float("nan"), 1), (3, 2), (7, 2), (True, 3), (False, 4)),
        *((np.float32(2), 5), (np.int8(1), 6), (X, 7), (X[::-1], 8), (X.astype("f4"), 9)),
    ):
        scope["k"] = value
        yield (X,), versions


@scenario
def a_global_that_goes_and_comes():
    scope: dict[str, Any] = {"k": 2.0}
    exec("def f(x): return x * k", scope)
    yield scope["f"]
    yield (X,), 1
    del scope["k"]
    yield (X,), 1, "numpy"
    scope["k"] = 3.0
    yield (X,), 1


@scenario
def a_helper():
    scope: dict[str, Any] = {"h": lambda x: x + 1}
    exec("def f(x): return h(x)", scope)
    yield scope["f"]
    yield (X,), 1
    scope["h"] = lambda x: x * 2
    yield (X,), 2
    scope["h"] = np.sin
    yield (X,), 3
    scope["h"] = functools.partial(np.power, 2.0)
    yield (X,), 4


@scenario
def a_closure_cell():
    k: Any = 2.0

    def f(x):
        return x * k

    yield f
    for value, versions in ((2.0, 1), (5.0, 1), (3, 2), (np.float32(2), 3), (X, 4), (X[::-1], 5)):
        k = value
        yield (X,), versions
    del k
    yield (X,), 5, "numpy"
    k = 3.0
    yield (X,), 5


@scenario
def defaults():
    def f(x, a=2.0, *, b=1.0):
        return x * a + b

    yield f
    yield (X,), 1
    f.__defaults__ = (3.0,)
    yield (X,), 1
    f.__kwdefaults__["b"] = 10.0
    yield (X,), 1
    f.__kwdefaults__ = {"b": 9.0}
    yield (X,), 1
    f.__defaults__ = (3,)
    yield (X,), 2
    f.__kwdefaults__["b"] = X
    yield (X,), 3
    f.__defaults__ = None
    yield (X,), 3, "numpy"


@scenario
def defaults_of_a_helper():
    def h(x, a=2.0, *, b=1.0):
        return x * a + b

    yield lambda x: h(x)
    yield (X,), 1
    h.__defaults__ = (3.0,)
    h.__kwdefaults__["b"] = 9.0
    yield (X,), 1
    h.__code__ = (lambda x, a, *, b: x - a - b).__code__
    yield (X,), 2


# ---------------------------------------------------------------- attributes


@scenario
def nested_attributes():
    a = Box(b=Box(c=Box(d=2.0)))
    yield lambda x: x * a.b.c.d
    yield (X,), 1
    a.b.c.d = 3.0
    yield (X,), 1
    a.b.c = Box(d=4.0)
    yield (X,), 1
    a.b = Box(c=Box(d=4.0, e=1))
    yield (X,), 1
    a.b.c.d = 4
    yield (X,), 2


@scenario
def class_attributes_and_those_that_hide_them():
    class A:
        k = 2.0

    class B(A):
        pass

    b = B()
    yield lambda x: x * b.k
    yield (X,), 1
    for change in (
        lambda: setattr(A, "k", 3.0),
        lambda: setattr(B, "k", 4.0),
        lambda: setattr(b, "k", 5.0),
        lambda: setattr(A, "k", 6.0),
        lambda: delattr(b, "k"),
        lambda: delattr(B, "k"),
    ):
        change()
        yield (X,), 1
    b.__class__ = type("C", (A,), {"k": 7.0})
    yield (X,), 2


@scenario
def properties():
    class C:
        v = 2.0
        k = property(lambda self: self.v * 2)

    c = C()
    yield lambda x: x * c.k
    yield (X,), 1
    c.v = 3.0
    yield (X,), 1
    C.k = property(lambda self: self.v * 5)
    yield (X,), 2
    C.k = 6.0
    yield (X,), 3


@scenario
def slots():
    class C:
        __slots__ = ("a", "b")

    c = C()
    c.a = 2.0
    yield lambda x: x * c.b if hasattr(c, "b") else x - c.a
    yield (X,), 1
    c.a = 3.0
    yield (X,), 1
    c.b = 5.0
    yield (X,), 2
    del c.b
    yield (X,), 2


@scenario
def attributes_that_getattr_makes():
    class C:
        def __getattr__(self, name):
            return 3.0

    c = C()
    yield lambda x: x * c.k
    yield (X,), 1
    c.k = 5.0
    yield (X,), 2
    del c.k
    yield (X,), 2


@scenario
def getattribute_is_asked():
    class C:
        def __getattribute__(self, name):
            return 5.0

    c = C()
    yield lambda x: (x + 1) * c.k
    yield (X,), 2, "broken"


@scenario
def functions_of_classes():
    class C:
        k = 2.0

        @staticmethod
        def s(x):
            return x * 2

        @classmethod
        def c(cls, x):
            return x * cls.k

    yield lambda x: C().s(x) + C.c(x)
    yield (X,), 1
    C.k = 3.0
    yield (X,), 1
    C.s = staticmethod(lambda x: x * 7)
    yield (X,), 2
    C.c = classmethod(lambda cls, x: x - cls.k)
    yield (X,), 3


@scenario
def bases():
    class A:
        def m(self, x):
            return x + 1

    class B:
        def m(self, x):
            return x * 2

    class C(A):
        pass

    c = C()
    yield lambda x: c.m(x)
    yield (X,), 1
    C.__bases__ = (B,)
    yield (X,), 2


@scenario
def a_model():
    class Model:
        def __init__(self):
            self.w, self.b = X.copy(), 1.0

        def __call__(self, x):
            return x * self.w + self.b

    m = Model()
    yield m
    yield (X,), 1
    m.b = 2.0
    yield (X,), 1
    m.w = X * 2
    yield (X,), 1
    m.w *= 2
    yield (X,), 1
    Model.__call__ = lambda self, x: x - self.b
    yield (X,), 2


@scenario
def module_attributes():
    m = types.ModuleType("m")
    m.k, m.f = 2.0, lambda x: x + 1
    yield lambda x: m.f(x) * m.k
    yield (X,), 1
    m.k = np.pi
    m.other = 1
    yield (X,), 1
    m.f = np.cos
    yield (X,), 2


# ---------------------------------------------------------------- containers


@scenario
def entries_of_a_dict():
    d: dict[Any, Any] = {"a": 2.0, "b": 3.0}

    def f(x):
        for key, value in d.items():
            x = x * value if key == "a" else x - value
        return x

    yield f
    yield (X,), 1
    d["a"] = 5.0
    yield (X,), 1
    d["a"] = d.pop("a")
    yield (X,), 2
    d["c"] = 1.0
    yield (X,), 3
    del d["c"]
    yield (X,), 3
    d["b"] = 1
    yield (X,), 4
    d.clear()
    yield (X,), 5


@scenario
def a_key_that_may_be_missing():
    d = {"a": 2.0}
    yield lambda x: x * d.get("b", 3.0) if "b" not in d else x - d["b"]
    yield (X,), 1
    d["b"] = 5.0
    yield (X,), 2
    d["b"] = 6.0
    yield (X,), 2
    del d["b"]
    yield (X,), 2


@scenario
def keys_that_are_equal():
    yield lambda x, d: x * d[1]
    yield (X, {1: 2.0}), 1
    yield (X, {True: 3.0}), 2
    yield (X, {1.0: 4.0}), 3
    yield (X, {1: 5.0}), 3


@scenario
def nan_as_a_key():
    nan = float("nan")
    d = {nan: 2.0}
    yield lambda x: (x + 1) * d[nan]
    yield (X,), 2, "broken"
    d[nan] = 4.0
    yield (X,), 2, "broken"


@scenario
def a_number_as_a_key():
    d = {1: 2.0, 2: 3.0}
    yield lambda x, k: x * d[k]
    for key, versions in ((1, 1), (2, 2), (True, 3), (1.0, 4), (1, 4)):
        yield (X, key), versions
    yield (X, 3), 4, "numpy"
    yield (X, 2.5), 4, "numpy"


@scenario
def items_of_a_list():
    values: list[Any] = [2.0, 3.0]
    yield lambda x: x * values[0] + len(values)
    yield (X,), 1
    values[0] = 5.0
    yield (X,), 1
    values.append(7.0)
    yield (X,), 2
    values.reverse()
    yield (X,), 2
    values[:] = [1, 2]
    yield (X,), 3


@scenario
def lists_in_lists():
    values = [[1.0], [2.0, 3.0]]
    yield lambda x: x * sum(sum(row) for row in values)
    yield (X,), 1
    values[0][0] = 9.0
    yield (X,), 1
    values[0].append(2.0)
    yield (X,), 2


# ---------------------------------------------------------------- arrays


@scenario
def a_captured_array():
    w = X.copy()

    def f(x):
        return x + w

    yield f
    yield (X,), 1
    w[:] = 7
    yield (X,), 1
    w = X * 3
    yield (X,), 1
    w = X[:1].copy()
    yield (X,), 2
    w = np.array(5.0)
    yield (X,), 3
    w = X.astype("f4")
    yield (X,), 4
    w = np.zeros(30)
    yield (X,), 4, "numpy"
    yield (np.zeros(30),), 4


@scenario
def an_array_that_is_resized_in_place():
    w = np.zeros(40)
    yield lambda x: x.sum() + w.sum()
    yield (X,), 1
    for length in (20, 60):
        w.resize(length, refcheck=False)
        w += 2
        yield (X,), 1
    w = w.reshape(6, 10)
    yield (X,), 2


@scenario
def arrays_that_share_memory():
    yield lambda x, y: x + y
    yield (X, X), 1
    yield (X, X.copy()), 2
    yield (X[1:], X[:-1]), 2
    yield (X, X), 2
    yield (X, X[::-1]), 3


@scenario
def numpy_numbers_and_pythons():
    x = X.astype("f4")
    yield lambda x, a: x * a
    for a, versions in (
        *((2.0, 1), (np.float64(2), 2), (np.float32(2), 3), (2, 4), (np.int64(2), 5)),
        *((np.array(2.0), 6), (3.0, 6), (True, 7), (1, 7), (1.0, 7)),
    ):
        yield (x, a), versions


@scenario
def numbers_given_back():
    yield lambda x, a: (x.sum(), a)
    for a, versions in ((True, 1), (1, 2), (1.0, 3), (0, 3), (-0.0, 3), (np.True_, 4)):
        yield (X, a), versions


@scenario
def signs_of_zeros():
    yield lambda x, a: np.copysign(x, a)
    for a in (0.0, -0.0, 1.0, float("inf"), float("nan"), -float("nan")):
        yield (X, a), 1


# ---------------------------------------------------------------- other objects as arguments


@scenario
def enumerations():
    class Mode(enum.Enum):
        FAST = 1
        SLOW = 2

    yield lambda x, mode: x * 2 if mode is Mode.FAST else x * mode.value
    for mode, versions in ((Mode.FAST, 1), (Mode.SLOW, 2), (Mode.FAST, 2), (Mode.SLOW, 2)):
        yield (X, mode), versions


@scenario
def named_tuples():
    first = collections.namedtuple("first", "a b")
    other = collections.namedtuple("other", "a b")
    return each(
        lambda x, p: x * p.a + p.b,
        (first(1.0, 2.0), 1),
        (first(3.0, 4.0), 1),
        (other(1.0, 2.0), 2),
        (first(1, 2.0), 3),
    )


@scenario
def dataclass_objects():
    @dataclasses.dataclass
    class Plain:
        a: float
        b: float = 2.0

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        a: float
        b: float = 2.0

    p = Plain(1.0)
    yield lambda x, p: x * p.a + p.b
    yield (X, p), 1
    p.a = 5.0
    yield (X, p), 1
    yield (X, Plain(3.0, 4.0)), 1
    yield (X, Frozen(3.0)), 2
    yield (X, Frozen(4.0)), 2
    yield (X, Frozen(4)), 3


@scenario
def functions():
    def scaled(k):
        return lambda x: x * k

    return each(
        lambda x, g: g(x),
        (np.sin, 1),
        (scaled(1.0), 2),
        (scaled(2.0), 2),
        (lambda x: x + 1, 3),
        (functools.partial(np.add, 1.0), 4),
        (functools.partial(np.add, 2.0), 4),
    )


@scenario
def methods_and_subclasses():
    class C:
        def __init__(self, k):
            self.k = k

        def m(self, x):
            return x * self.k

    class D(C):
        pass

    return each(
        lambda x, m: m(x),
        (C(1.0).m, 1),
        (C(2.0).m, 1),
        (C(2).m, 2),
        (D(2.0).m, 3),
        (D(3.0).m, 3),
    )


@scenario
def dtypes_and_texts():
    return each(
        lambda x, t: x.astype(t),
        (np.float32, 1),
        ("float32", 2),
        (np.dtype("f4"), 3),
        ("".join(["float", "32"]), 3),
        (float, 4),
    )


@scenario
def none_and_tuples():
    return each(
        lambda x, a: x if a is None else x * a[0],
        (None, 1),
        ((1.0,), 2),
        ((2.0,), 2),
        ((1,), 3),
        ([1.0], 4),
        ((1.0, 2.0), 5),
    )


# ---------------------------------------------------------------- ints


@scenario
def an_int_as_an_exponent():
    adam = Box(t=0)
    yield lambda x: x / (1.5 - 0.9**adam.t)
    for t in range(12):
        adam.t = t
        yield (X,), 1


@scenario
def powers_of_two():
    yield lambda x, n: x * 2**n + (1 << n) + (n & 3) + (n >> 1)
    for n in range(2, 12):
        yield (X, n), 1


@scenario
def a_power_of_an_array():
    # a few exponents are worth versions of their own, the others share one
    yield lambda x, n: (x + 2) ** n
    for n, versions in ((2, 1), (3, 2), (4, 3), (5, 4), (7, 5), (9, 5), (-1, 5), (0, 5), (3, 5)):
        yield (X, n), versions


@scenario
def a_root_of_an_extent():
    yield lambda x: x.sum() / len(x) ** 0.5
    for n in (100, 200, 300):
        yield (np.ones(n),), 1


@scenario
def an_int_compared_with_a_float():
    yield lambda x, n: x if n > 2.5 else -x
    for n, versions in ((1, 1), (2, 1), (3, 2), (4, 2), (-5, 2)):
        yield (X, n), versions


@scenario
def an_extent_left_open():
    yield lambda x, n: x.reshape(n, -1).sum(axis=0) if n > 0 else x.reshape(n)
    for n, versions in ((2, 1), (4, 1), (5, 1), (-1, 2), (10, 2)):
        yield (X, n), versions


# ---------------------------------------------------------------- the tests


@pytest.mark.parametrize("make", SCENARIOS, ids=lambda s: s.__name__)
def test_change(make: Scenario) -> None:
    calls = make()
    function = next(calls)
    compiled = npjit.jit(function, backend="numpy")
    ran = collections.Counter()
    for number, (args, versions, *mode) in enumerate(calls):
        ran[mode[0] if mode else "whole"] += 1
        assert_same(outcome(compiled, args, {}), outcome(function, args, {}))
        info = compiled.cache_info()
        assert info["compiled"] == versions, f"call {number}: {info['compiled']} versions"
        assert {m: info[m] for m in ran} == ran, f"call {number}: {info}"


def test_recompile_limit_warns_once_and_names_the_argument() -> None:
    compiled = npjit.jit(lambda x, mode: x + len(mode), backend="numpy", recompile_limit=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(8):
            assert_same(compiled(X, "m" * k), X + k)
    texts = [str(w.message) for w in caught if issubclass(w.category, npjit.NpjitWarning)]
    assert len(texts) == 1
    assert "other values of mode" in texts[0]
    assert (compiled.cache_info()["whole"], compiled.cache_info()["numpy"]) == (3, 5)


@pytest.mark.parametrize(("dynamic", "versions"), [(None, 2), (True, 1), (False, 3)])
def test_dynamic(dynamic: bool | None, versions: int) -> None:
    compiled = npjit.jit(lambda x: x * 2, backend="numpy", dynamic=dynamic)
    for n in (5, 6, 7):
        assert_same(compiled(np.ones(n)), np.full(n, 2.0))
    assert compiled.cache_info()["compiled"] == versions


def test_threads_see_their_own_arguments() -> None:
    compiled = npjit.jit(lambda x, a: x * a, backend="numpy")
    wrong: list[Any] = []

    def work(k: int) -> None:
        for value in (1.5 * k, 2 * k, np.float32(k), X * k):
            for _ in range(5):
                if not np.array_equal(compiled(X, value), X * value):
                    wrong.append(value)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert compiled.cache_info()["compiled"] == 4
    assert compiled.cache_info()["whole"] == 80


def test_errors_that_guards_decide_are_traced_once() -> None:
    def f(x, mode):
        if mode == "bad":
            raise ValueError("bad mode")
        if mode == "axis":
            return x.sum(axis=3)
        return x * 2

    compiled = npjit.jit(f, backend="numpy")
    for _ in range(3):
        for mode in ("bad", "axis", "good"):
            assert_same(outcome(compiled, (X, mode), {}), outcome(f, (X, mode), {}))
    info = compiled.cache_info()
    assert (info["whole"], info["numpy"]) == (3, 6)
    assert list(info["refusals"].values()) == [1, 1]


def test_errors_that_sizes_decide_stay_open() -> None:
    def f(x, y):
        if len(x) != len(y):
            raise ValueError("lengths")
        return x + y

    compiled = npjit.jit(f, backend="numpy")
    for n in (20, 30, 20, 30):
        y = np.ones(n)
        assert_same(outcome(compiled, (X, y), {}), outcome(f, (X, y), {}))
    assert compiled.cache_info()["whole"] == 2
