"""Broken mode beyond single programs: counts, breaks, other kinds of callables, learning, threads.

In: functions that print or append. Out: what `cache_info`, `explain` and the warning say, and that
the function is still the user's own.
"""

import asyncio
import copy
import functools
import io
import threading
import traceback
import types
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest

import npjit
from npjit.api import broken
from npjit.core.op import CONTROL
from tests.calls import assert_same, check_calls

LOG: list = []
X = np.linspace(-1.0, 2.0, 20)


@pytest.fixture(autouse=True)
def quiet():
    LOG.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", npjit.NpjitWarning)
        yield


def logged(x, scale=2.0):
    y = np.exp(x) * scale
    LOG.append(float(y[0]))
    return y + y.mean()


def line_of(f, offset):
    return f.__code__.co_firstlineno + offset


# ---------------------------------------------------------------- what is told


def test_counts_breaks_and_one_warning(jit):
    f = jit(logged)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert_same(f(X), logged(X))
        f(X.astype("f4"))
    reason = f"{__file__}:{line_of(logged, 2)}: a store into an object older than the call (append)"
    (warning,) = caught
    assert str(warning.message) == f"logged runs in parts: {reason}"
    info = f.cache_info()
    assert (info["whole"], info["broken"], info["numpy"]) == (0, 4, 0)
    assert info["breaks"] == [reason]
    assert info["compiled"] == 4  # two segments, of two dtypes each


def test_explain_names_the_parts():
    report = npjit.jit(logged).explain(X)
    file = f"{__file__}:{line_of(logged, 1)}"
    assert report.parts == [f"{file}-{line_of(logged, 2)}", f"{__file__}:{line_of(logged, 3)}"]
    assert str(report).splitlines()[0] == "logged: runs in 2 compiled parts, Python elsewhere"
    assert LOG == []


def test_fullgraph_names_line_and_reason():
    f = npjit.jit(logged, fullgraph=True)
    with pytest.raises(npjit.CaptureError, match=rf"py:{line_of(logged, 2)}: a store into"):
        f(X)
    assert LOG == []
    assert f.cache_info()["broken"] == 0


def test_where_nothing_is_compiled_calls_count_as_numpy():
    def f(x):
        LOG.append(x)
        return x

    check_calls(npjit.jit(f), X, mode="numpy")


# ---------------------------------------------------------------- kinds of callables


class Model:
    def __init__(self):
        self.weight = np.ones(20)
        self.steps = 0

    def __call__(self, x):
        self.steps += 1
        return np.tanh(x * self.weight) + self.steps

    def method(self, x, *, scale=3.0):
        y = x * self.weight * scale
        self.steps += 1
        return y + y.sum()

    @classmethod
    def of_class(cls, x):
        y = np.sqrt(np.abs(x)) * 2
        LOG.append(cls.__name__)
        return y + 1

    @staticmethod
    def of_none(x):
        LOG.append("static")
        return np.cos(x) * 2


class Child(Model):
    def method(self, x, *, scale=3.0):
        y = super().method(x, scale=scale) * 2
        LOG.append(__class__.__name__)
        return y + 1


def test_methods_and_objects(jit):
    for cls in (Model, Child):
        own, other = cls(), cls()
        for bound, wanted in (
            (jit(own.method), other.method),
            (
                jit(functools.partial(own.method, scale=0.5)),
                functools.partial(other.method, scale=0.5),
            ),
            (jit(own), other),
            (jit(cls.of_class), cls.of_class),
            (jit(cls.of_none), cls.of_none),
        ):
            for _ in range(2):
                assert_same(bound(X), wanted(X))
            assert bound.cache_info()["broken"] == 2, bound.cache_info()
        assert own.steps == other.steps


def test_a_decorated_class(jit):
    class Net:
        def __init__(self):
            self.calls = []

        @jit
        def forward(self, x):
            y = np.maximum(x @ np.ones((20, 3)), 0)
            self.calls.append(y.shape)
            return y * 2 - y.sum()

    net = Net()
    for _ in range(2):
        assert_same(net.forward(X), np.maximum(X @ np.ones((20, 3)), 0) * 2 - 3 * (X.sum()))
    assert net.calls == [(3,), (3,)]
    assert Net.forward.cache_info()["broken"] == 2


def test_closure_cells_are_the_same_objects(jit):
    def make():
        total, weight = 0.0, np.ones(20)

        def add(x):
            nonlocal total
            y = x * weight
            total += float(np.sum(y * 2))
            return y + total

        def reset(value):
            nonlocal total, weight
            total, weight = 0.0, value

        return add, reset

    (own, reset), (other, reset_other) = make(), make()
    f = jit(own)
    for value in (X, X * 2):
        for _ in range(2):
            assert_same(f(X), other(X))
        reset(value)
        reset_other(value)
    assert f.cache_info()["broken"] == 4


def test_defaults_and_code_may_change():
    def f(x, scale=2.0, *, shift=1.0):
        y = x * scale
        LOG.append(shift)
        return y * 2 + shift

    g = npjit.jit(f, backend="numpy")
    assert_same(g(X), f(X))
    f.__defaults__ = (5.0,)
    assert_same(g(X), f(X))
    f.__kwdefaults__["shift"] = 7.0
    assert_same(g(X), f(X))

    def other(x, scale=2.0, *, shift=1.0):
        y = x + scale
        LOG.append("other")
        return y * 3

    f.__code__ = other.__code__
    assert_same(g(X), f(X))
    assert g.cache_info()["broken"] == 4


def test_coroutines_and_asynchronous_generators():
    async def pause(x):
        await asyncio.sleep(0)
        return x

    async def f(x):
        y = np.exp(x) * 2
        z = await pause(y + 1) * 3
        return z - y

    async def g(x):
        for k in range(3):
            y = x * k + 1
            await asyncio.sleep(0)
            yield y * 2

    async def all_of(items):
        return [i async for i in items]

    coroutine, items = npjit.jit(f, backend="numpy"), npjit.jit(g, backend="numpy")
    for _ in range(2):
        assert_same(asyncio.run(coroutine(X)), asyncio.run(f(X)))
        assert_same(asyncio.run(all_of(items(X))), asyncio.run(all_of(g(X))))
    assert coroutine.cache_info()["broken"] == items.cache_info()["broken"] == 2


def test_generators_are_closed_and_thrown_into():
    def f(x):
        y = x * 2 + 1
        try:
            while True:
                try:
                    y = y + (yield y * 2)
                except ValueError as e:
                    LOG.append(str(e))
                    y = y * 0.5
        finally:
            LOG.append(float(y.sum().round(6)))

    def use(f):
        LOG.clear()
        items = f(X)
        got = [next(items), items.send(2.0), items.throw(ValueError("a")), items.send(1.0)]
        items.close()
        return got, list(LOG)

    compiled = npjit.jit(f, backend="numpy")
    for _ in range(2):
        assert_same(use(compiled), use(f))


def test_functions_that_look_at_themselves_run_as_numpy():
    def f(x):
        y = x * 2 + 1
        LOG.append(sorted(locals()))
        return y * 3

    check_calls(npjit.jit(f), X, mode="numpy")
    assert LOG[-1] == ["x", "y"]


def test_without_source_it_is_recorded():
    scope = {"LOG": LOG, "np": np}
    exec("def f(x):\n    y = x * 2\n    LOG.append(1)\n    return y + 1", scope)
    check_calls(npjit.jit(scope["f"]), X, mode="broken")


# ---------------------------------------------------------------- exceptions


def test_tracebacks_show_the_users_lines(jit):
    def f(x, n):
        y = x * 2
        LOG.append(1)
        z = y + 1
        return z.reshape(n, n)

    g = jit(f)
    assert g(np.arange(4.0), 2).shape == (2, 2)
    with pytest.raises(ValueError, match="cannot reshape") as caught:
        g(X, 3)
    frames = traceback.extract_tb(caught.value.__traceback__)
    last = [frame for frame in frames if frame.filename == __file__][-1]
    assert (last.lineno, last.name) == (line_of(f, 4), "f")
    assert last.line == "return z.reshape(n, n)"
    assert last.colno == 15


def test_effects_happen_once_when_a_segment_fails(jit):
    def f(x, k):
        LOG.append("before")
        x[0] += 1
        y = x[k] * x
        x[1] += 1
        LOG.append("after")
        return y

    g = jit(f)
    for k in (1, 100, 1):
        LOG.clear()
        mine, theirs = X.copy(), X.copy()
        results = []
        for call, x in ((g, mine), (f, theirs)):
            try:
                results.append(call(x, k))
            except IndexError as e:
                results.append(str(e))
        assert_same(results[0], results[1])
        assert_same(mine, theirs)
        half = len(LOG) // 2
        assert LOG[:half] == LOG[half:]


# ---------------------------------------------------------------- learning


def test_other_branches_are_learned_when_they_are_reached():
    def f(x, mode):
        y = x * 2 + 1
        if mode == 0:
            LOG.append("zero")
            return y
        z = np.exp(y)
        if mode == 1:
            print("one")
            return z * 2
        LOG.append("two")
        return z - y

    g = npjit.jit(f, backend="numpy")
    for mode in (0, 1, 2, 0, 1, 2):
        LOG.clear()
        outputs = []
        for call in (g, f):
            text = io.StringIO()
            with redirect_stdout(text):
                outputs.append((call(X, mode), text.getvalue()))
        assert_same(*outputs)
        assert LOG[: len(LOG) // 2] == LOG[len(LOG) // 2 :]
    info = g.cache_info()
    assert info["broken"] == 6
    assert [b.partition("py:")[2].partition(":")[0] for b in info["breaks"]] == [
        str(line_of(f, n)) for n in (3, 7, 9)
    ]


def test_segments_stay_compiled_when_the_function_is_cut_again():
    def f(x, flag):
        y = np.exp(x) * 2
        LOG.append(1)
        z = y * y + 1
        if flag:
            LOG.append(2)
        return z * 3

    g = npjit.jit(f, backend="numpy")
    g(X, False)
    first = [s for s in g.parts.segments.values() if s.body[0].lineno == line_of(f, 1)]
    g(X, True)
    assert [s for s in g.parts.segments.values() if s in first] == first
    assert first[0].cache_info()["whole"] == 2


def test_many_kinds_of_arguments_keep_few_entries():
    g = npjit.jit(lambda x, name: (LOG.append(name), x * 2 + 1)[1], backend="numpy")
    for k in range(200):
        assert_same(g(X, f"n{k}"), X * 2 + 1)
    assert [*LOG] == [f"n{k}" for k in range(200)]
    assert len(g.entries) < 10
    assert g.cache_info()["broken"] == 200


def test_too_little_is_not_compiled():
    def f(x, n):
        k = n * 2 + 1
        LOG.append(k)
        k = k // 3
        print(end="")
        return x * k + 1

    g = npjit.jit(f, backend="numpy")
    check_calls(g, X, 7, mode="broken")
    assert g.cache_info()["compiled"] == 1


def test_loops_and_branches_of_segments_are_staged(jit):
    def f(x):
        LOG.append(len(x))
        best = x[0]
        for i in range(len(x)):
            if x[i] > best:
                best = x[i]
        return best * 2

    g = jit(f)
    check_calls(g, np.sin(np.arange(1000.0)), mode="broken")
    (segment,) = g.parts.segments.values()
    (made,) = segment.compiled
    assert any(n.op.kind in CONTROL for n in made.graph.nodes)
    assert len(made.graph.nodes) < 20


# ---------------------------------------------------------------- helpers


def helper(x):
    y = np.exp(x) * 2
    LOG.append("helper")
    return y + 1


def test_functions_called_by_python_are_cut_in_turn():
    def f(x):
        return helper(x) * helper(x * 2) + 1

    g = npjit.jit(f, backend="numpy")
    check_calls(g, X, mode="broken")
    assert g.parts.helpers[helper].cache_info()["broken"] == 4
    assert LOG == ["helper"] * 8


def test_helpers_that_are_made_anew_are_called_as_they_are():
    def f(x, k):
        def inner(v):
            LOG.append(k)
            return v * k

        return inner(x) + inner(x * 2)

    g = npjit.jit(f, backend="numpy")
    check_calls(g, X, 3.0, mode="broken")
    assert not g.parts.helpers


def test_a_replaced_helper_is_the_one_that_is_called(monkeypatch):
    g = npjit.jit(lambda x: helper(x) * 2, backend="numpy")
    g(X)
    monkeypatch.setitem(globals(), "helper", lambda x: x + 100)
    assert_same(g(X), (X + 100) * 2)


# ---------------------------------------------------------------- state around a call


def test_floating_point_errors_are_raised_as_numpy_does():
    g = npjit.jit(logged, backend="numpy")
    g(X)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        g(X * 1e6)


def test_threads_learn_at_the_same_time():
    def f(x, k):
        y = np.exp(x) * k
        LOG.append(k)
        z = y.sum() + y
        print(end="")
        return z * 2 - x

    g = npjit.jit(f, backend="numpy")
    want = {k: f(X, k) for k in range(8)}
    LOG.clear()
    got = {}

    def work(k):
        for _ in range(5):
            got[k] = g(X, k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert_same(got, dict.fromkeys(got) | {k: want[k] for k in got})
    assert sorted(LOG) == sorted(list(range(8)) * 5)


def test_random_streams_go_on_as_numpy_leaves_them(jit):
    def f(x, rng):
        keep = rng.random(x.shape) < 0.5
        y = np.where(keep, x, 0.0) * 2
        return y + rng.normal(scale=0.1, size=x.shape)

    own, other = np.random.default_rng(5), np.random.default_rng(5)
    g = jit(f)
    for _ in range(3):
        assert_same(g(X, own), f(X, other))
        assert own.bit_generator.state == other.bit_generator.state
    assert g.cache_info()["broken"] == 3


def test_a_defect_of_the_cut_is_answered_by_numpy(monkeypatch):
    monkeypatch.setattr(broken, "cut", None)
    g = npjit.jit(logged, backend="numpy")
    with pytest.warns(npjit.NpjitWarning, match="a defect of npjit: TypeError"):
        assert_same(g(X), logged(X))
    assert g.cache_info()["numpy"] == 1


def test_copies_and_pickles():
    g = npjit.jit(logged, backend="numpy")
    g(X)
    assert copy.deepcopy(g) is g
    assert_same(npjit.jit(g)(X), logged(X))


def test_gradients_draw_the_random_numbers_of_numpy():
    rng, other = np.random.default_rng(3), np.random.default_rng(3)

    def loss(x):
        keep = rng.random(x.shape) < 0.5
        y = np.where(keep, x, 0.0) * 2 + rng.normal(size=x.shape)
        return np.sum(y * y)

    g = npjit.value_and_grad(loss)
    for _ in range(2):
        value, gradient = g(X)
        keep = other.random(X.shape) < 0.5
        y = np.where(keep, X, 0.0) * 2 + other.normal(size=X.shape)
        assert np.isclose(value, np.sum(y * y))
        assert np.allclose(gradient, 4 * y * keep)
        assert rng.bit_generator.state == other.bit_generator.state

    with pytest.raises(npjit.CaptureError, match=r"test_broken.py:\d+: a real array"):
        npjit.grad(lambda x: np.sum(rng.normal(loc=x)))(X)


def test_gradients_draw_from_the_global_stream():
    """np.random.normal is a bound method of compiled code, which checks no type of its object."""
    np.random.seed(3)
    gradient = npjit.grad(lambda x: np.sum(x * np.random.normal(size=x.shape)))(X)
    np.random.seed(3)
    assert np.array_equal(gradient, np.random.normal(size=X.shape))


def test_compiled_methods_get_no_stand_in():
    draw = types.MethodType(np.random.RandomState.normal, np.random.RandomState(3))
    unbound = np.random.RandomState.normal
    state = np.random.RandomState(3)
    expected = np.random.RandomState(3).normal(size=X.shape)
    gradient = npjit.grad(lambda x: np.sum(x * draw(size=x.shape)))(X)
    assert np.array_equal(gradient, expected)
    gradient = npjit.grad(lambda x: np.sum(x * unbound(state, size=x.shape)))(X)
    assert np.array_equal(gradient, expected)
