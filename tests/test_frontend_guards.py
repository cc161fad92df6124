"""What changes between two calls is seen by the second: globals, closures, attributes, methods,
arrays, layouts.
"""

import types
import warnings
from typing import Any

import numpy as np
import pytest

from tests import helper_module
from tests.calls import assert_same, outcome

X = np.linspace(-1.0, 2.0, 20)


def check(compiled: Any, *args: Any, **kwargs: Any) -> None:
    """One call equals NumPy's."""
    got = outcome(compiled, args, kwargs)
    assert_same(got, outcome(compiled.__wrapped__, args, kwargs))


def counts(compiled: Any) -> tuple[int, int, int]:
    info = compiled.cache_info()
    return info["compiled"], info["whole"], info["numpy"]


# ---------------------------------------------------------------- values the function finds


@pytest.fixture
def module():
    kept = dict(vars(helper_module))
    yield helper_module
    for name in set(vars(helper_module)) - set(kept):
        delattr(helper_module, name)
    vars(helper_module).update(kept)


def test_a_global_changes(jit, module):
    f = jit(module.outer)
    check(f, X)
    module.scale = 5.0
    check(f, X)
    module.weights = np.arange(20.0) ** 2
    check(f, X)
    module.weights[3] = 100.0
    check(f, X)
    assert counts(f) == (1, 4, 0)
    module.scale = 3
    check(f, X)
    module.scale = "a"
    check(f, X)
    module.weights = np.arange(20)
    module.scale = np.float32(2)
    check(f, X)
    assert f.cache_info()["whole"] == 6


def test_a_module_attribute_changes(jit, module):
    f = jit(lambda x: module.inner(x) * module.table["k"] + module.table["f"](x))
    check(f, X)
    module.table["k"] = 7.0
    check(f, X)
    assert counts(f) == (1, 2, 0)
    module.table["f"] = np.cos
    check(f, X)
    module.inner = lambda x: x - 1
    check(f, X)
    module.table["new"] = 1
    check(f, X)
    assert f.cache_info()["numpy"] == 0


def test_a_helper_is_replaced_or_its_code_is(jit, module):
    f = jit(module.outer)
    check(f, X)
    module.inner.__code__ = (lambda x: x * 100).__code__
    check(f, X)
    module.inner.__code__ = (lambda x: x * scale).__code__  # noqa: F821
    module.inner = lambda x: x + 1
    check(f, X)
    assert counts(f) == (3, 3, 0)


def test_a_name_of_numpy_is_bound_anew(jit):
    scope: dict[str, Any] = {"g": np.sin}
    exec("def f(x):\n    return g(x)", scope)
    f = jit(scope["f"])
    check(f, X)
    scope["g"] = np.cos
    check(f, X)
    scope["g"] = lambda x: x
    check(f, X)
    assert counts(f) == (3, 3, 0)


def test_a_closure_variable_changes(jit):
    k: Any = 2.0

    def f(x):
        return x * k

    f = jit(f)
    for value in (2.0, -0.0, float("nan"), 1, True, np.float32(3), X * 3, X + 1):
        k = value
        check(f, X)
    # float, int, True, float32, array: numbers and arrays are inputs
    assert counts(f) == (5, 8, 0)


def test_defaults_change(jit):
    def f(x, a=2.0, *, b=1.0):
        return x * a + b

    compiled = jit(f)
    check(compiled, X)
    f.__defaults__ = (5.0,)
    f.__kwdefaults__ = {"b": 7.0}
    check(compiled, X)
    assert counts(compiled) == (1, 2, 0)
    f.__defaults__ = (X,)
    check(compiled, X + 1)
    check(compiled, X + 1, 3.0)
    check(compiled, X + 1, a=3.0, b=2)
    assert compiled.cache_info()["numpy"] == 0


class Holder:
    """An object with one attribute."""

    factor = 3.0

    def __init__(self, value):
        self.value = value

    def scaled(self, x):
        return x * self.factor


def test_attributes_change(jit):
    h = Holder(Holder(2.0))
    f = jit(lambda x: x * h.value.value + h.factor)
    check(f, X)
    h.value.value = 9.0
    check(f, X)
    Holder.factor = 4.0
    check(f, X)
    h.value = Holder(1.0)
    check(f, X)
    assert counts(f) == (1, 4, 0)
    h.factor = 11
    check(f, X)
    h.value = types.SimpleNamespace(value=2.0)
    check(f, X)
    Holder.factor = 3.0
    assert f.cache_info()["numpy"] == 0


def test_an_attribute_appears(jit):
    h = Holder(1.0)

    def f(x):
        if hasattr(h, "bias"):
            return x + h.bias
        return x + getattr(h, "offset", 0.0)

    f = jit(f)
    check(f, X)
    h.offset = 2.0
    check(f, X)
    h.bias = 3.0
    check(f, X)
    del h.bias
    check(f, X)
    assert f.cache_info()["numpy"] == 0


def test_methods_are_replaced(jit, monkeypatch):
    h = Holder(1.0)
    f = jit(lambda x: h.scaled(x))
    check(f, X)
    monkeypatch.setattr(Holder, "scaled", lambda self, x: x + self.factor)
    check(f, X)
    h.scaled = lambda x: x * 100
    check(f, X)
    monkeypatch.setattr(Holder, "half", property(lambda self: 0.5), raising=False)
    g = jit(lambda x: x * h.half)
    check(g, X)
    monkeypatch.setattr(Holder, "half", property(lambda self: 0.25))
    check(g, X)
    made = jit(lambda x: Holder(x).scaled(2.0))
    check(made, X)
    monkeypatch.setattr(Holder, "scaled", lambda self, x: x - self.value)
    check(made, X)
    assert f.cache_info()["numpy"] == g.cache_info()["numpy"] == made.cache_info()["numpy"] == 0


def test_special_methods_are_looked_up_on_the_class(jit, monkeypatch):
    class Adding:
        def __add__(self, x):
            return x + 1

        def __call__(self, x):
            return x * 2

        def __matmul__(self, x):
            return x - 3

    a = Adding()
    a.__add__ = lambda x: x * 1000
    f = jit(lambda x: (a + x) * a(x) + (a @ x))
    check(f, X)
    monkeypatch.setattr(Adding, "__call__", lambda self, x: x * 7)
    check(f, X)
    assert counts(f) == (2, 2, 0)


def test_containers_change(jit):
    d = {"layers": [{"w": X}, {"w": X * 2}], "mode": "train"}

    def f(x):
        for layer in d["layers"]:
            x = x * layer["w"]
        return x if d["mode"] == "train" else -x

    f = jit(f)
    check(f, X)
    d["layers"][1]["w"] = X * 5
    check(f, X)
    assert counts(f) == (1, 2, 0)
    d["layers"].append({"w": X + 1})
    check(f, X)
    d["mode"] = "eval"
    check(f, X)
    d["layers"] = tuple(d["layers"])
    check(f, X)
    d["other"] = None
    check(f, X)
    assert f.cache_info()["numpy"] == 0


def test_flags_that_python_reads(jit):
    def f(x, flag, name=None):
        if flag is True:
            return x * 2
        if name is None and not flag:
            return x
        return x - 1

    f = jit(f)
    for flag in (True, 1, False, 0, None, "a", ""):
        check(f, X, flag)
        check(f, X, flag, name="n")
    assert f.cache_info()["numpy"] == 0
    for flag in (1.0, 0.0, np.True_, np.False_):
        check(f, X, flag)
        check(f, X, flag, name="n")


def test_zero_signs_and_nan(jit):
    f = jit(lambda x, a: np.copysign(x, a) + np.arctan2(a, -1.0))
    for a in (0.0, -0.0, float("nan"), np.float64(-0.0), np.float64("nan")):
        check(f, X, a)
        check(f, X, a)
    assert counts(f)[1:] == (10, 0)


def test_functions_as_arguments(jit):
    """A function is known by its code and what it holds: one made for each call compiles once."""

    def solve(f, y):
        return f(y) + f(y * 2)

    compiled = jit(solve)
    for k in (1.0, 2.0, 3.0):
        check(compiled, lambda y, k=k: y * k, X)
    assert counts(compiled) == (1, 3, 0)

    def close(k):
        return lambda y: y - k

    for k in (1.0, 2.0, 3.0):
        check(compiled, close(k), X)
    assert counts(compiled) == (2, 6, 0)
    check(compiled, close(X), X)
    check(compiled, np.negative, X)
    check(compiled, jit(close(2.0)), X)
    check(compiled, close(close(1.0)(2.0)), X)
    pair = jit(lambda f, g, y: f(y) * g(y))
    same = close(1.0)
    check(pair, same, same, X)
    check(pair, close(3.0), same, X)
    check(pair, same, close(4.0), X)
    assert pair.cache_info()["numpy"] == 0


def test_a_builtin_gets_hidden_by_a_global(jit):
    scope: dict[str, Any] = {}
    exec("def f(x):\n    return x * len(x)", scope)
    f = jit(scope["f"])
    check(f, X)
    scope["len"] = lambda x: 7.0
    check(f, X)
    del scope["len"]
    check(f, X)
    assert counts(f) == (2, 3, 0)


def test_slots(jit):
    class Slotted:
        __slots__ = ("a", "b")

    s = Slotted()
    s.a = X
    f = jit(lambda x: x + s.a if hasattr(s, "b") else x - s.a)
    check(f, X)
    s.b = 1
    check(f, X)
    s.a = X * 2
    check(f, X)
    del s.b
    check(f, X)


# ---------------------------------------------------------------- arrays


ARRAYS = {
    "plain": X,
    "reversed": X[::-1],
    "strided": np.arange(40.0)[::2],
    "broadcast": np.broadcast_to(2.0, 20),
    "float32": X.astype("f4"),
    "int": np.arange(20),
    "int8": np.arange(20, dtype="i1"),
    "bool": np.arange(20) % 3 == 0,
    "complex": X + 1j * X,
    "float16": X.astype("f2"),
    "big endian": X.astype(">f8"),
    "read only": np.broadcast_to(X, X.shape),
    "long double": X.astype("g"),
    "object": X.astype(object),
    "empty": X[:0],
    "one": X[:1],
    "two": X[:2],
    "16": X[:16],
    "17": X[:17],
    "zero axes": np.array(3.0),
}


def test_one_function_for_all_kinds_of_arrays(jit):
    f = jit(lambda x: x * 2 + x)
    for value in ARRAYS.values():
        check(f, value)
    for value in reversed(ARRAYS.values()):
        check(f, value)
    g = jit(lambda x, y: (x + y)[::-1])
    for value in ARRAYS.values():
        check(g, value, 3)
        check(g, X, value) if value.size in (1, 20) else None
    assert f.cache_info()["numpy"] == 6  # big endian, long double and object, twice


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 3), (16, 17), (17, 16), (40, 1)])
def test_two_dimensional_layouts(jit, shape):
    a = np.arange(float(np.prod(shape))).reshape(shape)
    f = jit(
        lambda x: (x + x.T if x.shape[0] == x.shape[1] else x * 2, x.reshape(-1), x.ravel()[:1])
    )
    double = np.repeat(np.repeat(a, 2, 0), 2, 1)
    for x in (a, np.asfortranarray(a), a[::-1], a[:, ::-1], double[::2, ::2], a.T.copy().T):
        got, want = outcome(f, (x,), {}), outcome(f.__wrapped__, (x,), {})
        assert_same(got, want)


def test_writes_in_place(jit):
    def f(x, y):
        x[1:] += y[:-1]
        x *= 2
        y[0] = x[1]
        return x

    compiled = jit(f)
    for make in (
        lambda: (X.copy(), X.copy()),
        lambda: (X.copy()[::-1], np.arange(40.0)[::2]),
        lambda: (lambda a: (a, a))(X.copy()),
        lambda: (lambda a: (a[1:], a[:-1]))(X.copy()),
        lambda: (lambda a: (a, a[::-1]))(X.copy()),
        lambda: (lambda a: (a[:10], a[10:]))(X.copy()),
    ):
        mine, theirs = make(), make()
        got, want = compiled(*mine), f(*theirs)
        assert_same(got, want)
        assert_same(mine, theirs)
        assert got is mine[0]
    read_only = X.copy()
    read_only.flags.writeable = False
    check(compiled, read_only, X.copy())
    check(compiled, X.copy(), read_only)
    with pytest.raises(ValueError, match="read-only"):
        compiled(read_only, X.copy())
    windows = np.lib.stride_tricks.as_strided(X.copy(), (10, 3), (8, 8))
    check(jit(lambda w: w.__iadd__(1.0)), windows)


def test_an_array_passed_twice(jit):
    f = jit(lambda x, y: x * 2 + y)
    check(f, X, X)
    check(f, X, X + 1)
    check(f, X, X)
    assert counts(f) == (2, 3, 0)
    g = jit(lambda x, y: (x, y))
    x = X.copy()
    first, second = g(x, x)
    assert first is x
    assert second is x
    y = X.copy()
    first, second = g(x, y)
    assert first is x
    assert second is y


def test_identity_of_arrays(jit):
    def f(x, y):
        return x + 1 if x is y else x + 2

    f = jit(f)
    for args in ((X, X), (X, X.copy()), (X, X)):
        check(f, *args)


def test_arrays_in_closures_are_not_copied(jit):
    w = X.copy()
    f = jit(lambda x: x + w)
    check(f, X)
    w[:] = 7
    check(f, X)
    g = jit(lambda x: w.__imul__(2) + x)
    kept = w.copy()
    assert np.array_equal(g(X), kept * 2 + X)
    assert np.array_equal(w, kept * 2)
    assert g.cache_info()["whole"] == 1


def test_a_view_of_a_closure_array_comes_back_as_a_view(jit):
    w = X.copy()
    f = jit(lambda n: w[2:n])
    for _ in range(2):
        view = f(10)
        assert np.shares_memory(view, w)
        view[0] = 9
        assert w[2] == 9


def test_array_subclasses_run_as_numpy(jit):
    f = jit(lambda x: x * 2)
    masked = np.ma.masked_array(X, X > 0)
    got = f(masked)
    assert type(got) is type(masked)
    assert np.array_equal(got.mask, masked.mask)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    assert type(f(matrix)) is np.matrix
    check(f, X)
    assert counts(f) == (1, 1, 2)
    for value in (
        np.array(["a", "b"]),
        np.array(["2020-01-01"], "M8[D]"),
        np.array([(1, 2.0)], [("a", int), ("b", float)]),
    ):
        check(jit(lambda x: x[::-1]), value)
        check(f, value)


def test_object_arrays_do_not_stand_in_the_way_of_others(jit):
    f = jit(lambda x: x * 2)
    for _ in range(12):
        check(f, X.astype(object))
    assert f.cache_info()["refusals"] == {
        key: 1 for key in f.cache_info()["refusals"] if "dtype object" in key
    }
    check(f, X)
    check(f, X.astype("f4"))
    assert counts(f) == (2, 2, 12)
