"""Effects of Python and errors: they happen once in each call, in order, as without npjit."""

import io
import logging
import os
import random
import signal
import sys
import threading
import time
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest

import npjit
from tests.calls import assert_same, check_calls, outcome

X = np.linspace(-1.0, 2.0, 20)
STATE = {"count": 0, "log": []}
COUNT = 0

pytestmark = pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")


class Meter:
    """Objects that remember what was done to them."""

    total = 0.0

    def __init__(self):
        self.seen = []
        self.last = None

    def __setitem__(self, key, value):
        self.seen.append(key)

    def __iadd__(self, value):
        self.total += 1
        return self

    def add(self, value):
        self.last = value
        return value


def store_global(x):
    global COUNT
    COUNT += 1
    return x + COUNT


def store_item(x):
    STATE["count"] += 1
    return x + STATE["count"]


def append(x):
    STATE["log"].append(x[0])
    return x + len(STATE["log"])


def run_three_times(f):
    """Results of three calls, and what is left of the state."""
    global COUNT
    COUNT = 0
    STATE.update(count=0, log=[])
    return [f(X) for _ in range(3)], COUNT, STATE["count"], list(STATE["log"])


@pytest.mark.parametrize("f", [store_global, store_item, append])
def test_stores_outside(jit, f):
    compiled = jit(f)
    assert_same(run_three_times(compiled), run_three_times(f))
    assert compiled.cache_info()["broken"] == 3


def test_stores_into_objects(jit):
    def effects():
        meter, items, closed = Meter(), [1], 0

        def f(x):
            meter.last = x
            return x + 1

        def g(x):
            meter[x.shape[0]] = 3
            return x

        def h(x):
            items.insert(0, 5)
            return x * len(items)

        def k(x):
            nonlocal closed
            closed += 1
            return x * closed

        def m(x):
            f.calls = getattr(f, "calls", 0) + 1
            return x + f.calls

        def c(x):
            Meter.total += 1
            return x * Meter.total

        def i(x):
            nonlocal meter
            meter += x
            return x

        return [f, g, h, k, m, c, i, lambda x: meter.add(x)], meter, items

    for number in range(8):
        results = []
        for wrap in (lambda f: f, jit):
            Meter.total = 0.0
            functions, meter, items = effects()
            f = wrap(functions[number])
            results.append(([f(X) for _ in range(3)], meter.seen, meter.last, meter.total, items))
        assert_same(*results)
        # storing what is there already, as these do from their second call on, is no effect
        info = f.cache_info()
        assert info["broken"] + info["numpy"] == (1 if number in (0, 7) else 3), number


def test_a_dict_argument_is_changed(jit):
    def f(d, x):
        d["n"] = x * 2
        del d["old"]
        return d["n"] + 1

    check_calls(jit(f), {"old": 1}, X, mode="broken")

    def in_place(d, items):
        d["w"] -= 0.5
        items[0] *= 2
        d["w"][1:] = 0
        return d

    check_calls(jit(in_place), {"w": X}, [X + 1])


def test_what_is_made_inside_may_change(jit):
    def f(x):
        d, items, meter = {}, [], Meter()
        for i in range(3):
            items.append(x * i)
            d[i] = items[-1]
        d.update(a=x)
        items[0] = x + 1
        meter.last = items
        meter.other = d["a"]
        return d, items[1:], meter.add(x) + meter.last[0], meter.other

    check_calls(jit(f), X)


def test_print_and_logging(jit, caplog):
    def f(x):
        print("sum", x.sum())
        return x + 1

    compiled = jit(f)
    text = io.StringIO()
    with redirect_stdout(text):
        for _ in range(2):
            assert np.array_equal(compiled(X), X + 1)
    first, second = text.getvalue().splitlines()
    assert first == second
    assert np.isclose(float(first.removeprefix("sum ")), X.sum(), rtol=1e-14)
    log = logging.getLogger("npjit-test")

    def g(x):
        log.warning("value %s", x[0])
        return x

    compiled = jit(g)
    for _ in range(2):
        compiled(X)
    assert [r.getMessage() for r in caplog.records] == [f"value {X[0]}"] * 2


def test_random_numbers_are_numpys(jit):
    rng = np.random.default_rng(3)
    functions = [
        lambda x: x + np.random.rand(20),
        lambda x: x + np.random.default_rng().random(20) * 0 + np.random.normal(),
        lambda x: x + rng.random(20),
        lambda x: x * random.random(),
        lambda x: x * random.uniform(1.0, 2.0),
    ]
    for f in functions:
        results = []
        for call in (f, jit(f)):
            np.random.seed(0)
            random.seed(0)
            rng.bit_generator.state = np.random.default_rng(3).bit_generator.state
            results.append([call(X) for _ in range(3)])
        assert_same(*results)
    drawn = jit(lambda x: x + np.random.default_rng().random())
    assert not np.array_equal(drawn(X), drawn(X))


def test_time_and_environment(jit):
    f = jit(lambda x: x * 0 + time.perf_counter())
    assert f(X)[0] < f(X)[0]
    g = jit(lambda x: x * len(os.environ.get("NPJIT_TEST", "")))
    assert g(X)[0] == 0
    os.environ["NPJIT_TEST"] = "ab"
    try:
        assert np.array_equal(g(X), X * 2)
    finally:
        del os.environ["NPJIT_TEST"]


# ---------------------------------------------------------------- errors


class Own(Exception):
    """A user's exception."""


def raising(x, kind):
    if kind == 0:
        return x + 1
    if kind == 1:
        raise Own("own", x.shape)
    if kind == 2:
        return x @ np.ones(7)
    if kind == 3:
        return x[100]
    if kind == 4:
        return undefined_name  # noqa: F821
    if kind == 5:
        return x.no_such_attribute
    if kind == 6:
        return np.sum(x, axis=3)
    if kind == 7:
        return x.reshape(7, 3)
    if kind == 8:
        return x + np.ones(3)
    return x + "text"


def test_errors_are_python_s_and_numpy_s(jit):
    f = jit(raising)
    for kind in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1):
        got, want = outcome(f, (X, kind), {}), outcome(raising, (X, kind), {})
        assert_same(got, want)
    assert f.cache_info()["whole"] == 2
    assert_same(outcome(f, (), {}), outcome(raising, (), {}))
    assert_same(outcome(f, (X, 0, 1), {}), outcome(raising, (X, 0, 1), {}))
    assert_same(outcome(f, (X,), {"kin": 1}), outcome(raising, (X,), {"kin": 1}))


def test_the_user_s_line_is_in_the_traceback(jit):
    f = jit(raising)
    with pytest.raises(ValueError, match="operands") as info:
        f(X, 8)
    assert info.traceback[-1].path.name == "test_frontend_effects.py"


def test_errors_that_the_function_catches(jit):
    def f(x, d):
        try:
            y = d["missing"]
        except KeyError:
            y = 2.0
        try:
            x = x.reshape(7, 3)
        except ValueError as e:
            x = x + len(str(e)) * 0
        try:
            z = x + np.ones(3)
        except Exception:
            z = x
        finally:
            y = y + 1
        try:
            z = z.no_such
        except:  # noqa: E722
            z = z + 0
        return z * y

    compiled = jit(f)
    for _ in range(2):
        assert_same(compiled(X, {"a": 1.0}), f(X, {"a": 1.0}))


def test_unknown_things_do_not_hide_behind_a_bare_except(jit):
    seen = []

    def f(x):
        try:
            seen.append(x)
        except:  # noqa: E722
            return x * 0
        return x + 1

    compiled = jit(f)
    for _ in range(2):
        assert_same(compiled(X), X + 1)
    assert all(type(s) is np.ndarray for s in seen)
    assert len(seen) == 2


def test_nothing_traced_stays_behind(jit):
    kept = []

    class Leak:
        def __init__(self, x):
            kept.append(x)

    def f(x):
        Leak(x)
        return x

    jit(f)(X)
    assert [type(k) for k in kept] == [np.ndarray]
    escaped = {}

    def backend(graph, types):
        return lambda inputs: graph.run(*inputs)

    def keep(x):
        escaped["tracer"] = x
        return x + 1

    with pytest.raises(npjit.CaptureError, match="store into an object"):
        npjit.jit(keep, fullgraph=True, backend=backend)(X)
    assert not escaped


def test_a_traced_value_used_after_its_trace(jit, monkeypatch):
    escaped = []
    monkeypatch.setattr("npjit.frontend.library._PURE_FUNCTIONS", frozenset(["typename"]))
    monkeypatch.setattr(np, "typename", escaped.append)
    jit(lambda x: np.typename(x) or x + 1)(X)
    if not isinstance(escaped[0], np.ndarray) or type(escaped[0]) is not np.ndarray:
        with pytest.raises(RuntimeError, match="used after"):
            escaped[0] + 1


def test_checks_fail_before_anything_is_written(jit):
    def f(x, a):
        x += 1
        x[0] = 5
        return 1.0 / a

    compiled = jit(f)
    for a in (2.0, 0.0, 2.0, 0.0):
        mine, theirs = X.copy(), X.copy()
        assert_same(outcome(compiled, (mine, a), {}), outcome(f, (theirs, a), {}))
        assert_same(mine, theirs)
    assert compiled.cache_info()["whole"] == 2

    def late(x):
        x += 1
        return 1.0 / float(x[0])

    compiled = jit(late)
    for first in (1.0, -1.0):
        mine, theirs = X.copy(), X.copy()
        mine[0] = theirs[0] = first
        assert_same(outcome(compiled, (mine,), {}), outcome(late, (theirs,), {}))
        assert_same(mine, theirs)


# ---------------------------------------------------------------- warnings, fullgraph, errstate


def test_one_warning_with_line_and_reason():
    f = npjit.jit(append, backend="numpy")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(X)
        f(X)
        f(X.astype("f4"))
    (warning,) = [w for w in caught if issubclass(w.category, npjit.NpjitWarning)]
    assert "append runs in parts" in str(warning.message)
    assert "test_frontend_effects.py:" in str(warning.message)
    assert warning.filename == __file__
    with pytest.raises(npjit.CaptureError, match=r"test_frontend_effects.py:\d+: a store"):
        npjit.jit(append, fullgraph=True)(X)


def test_errstate(jit):
    f = jit(lambda x: x / 0.0)
    with np.errstate(all="ignore"):
        assert np.isinf(f(X)).all()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        f(X)
    assert f.cache_info()["whole"] == 1
    assert f.cache_info()["numpy"] == 1

    def inside(x):
        with np.errstate(divide="ignore", invalid="warn"):
            return np.log(x * 0)

    check_calls(jit(inside), X)

    def raising_inside(x):
        with np.errstate(divide="raise"):
            return 1.0 / (x * 0)

    check_calls(jit(raising_inside), X, mode="numpy")


# ---------------------------------------------------------------- threads, processes, interrupts


def test_many_threads_call_first_at_once(jit):
    f = jit(lambda x, k: np.sin(x) * k)
    barrier = threading.Barrier(8)
    wrong = []

    def work(number):
        barrier.wait()
        for _ in range(5):
            if not np.allclose(f(X, float(number)), np.sin(X) * number):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert f.cache_info()["compiled"] == 1
    assert f.cache_info()["whole"] == 40


def test_fork_after_use(jit):
    f = jit(lambda x: np.sum(x * 2))
    f(X)
    child = os.fork()
    if child == 0:
        fine = np.isclose(f(X), np.sum(X * 2)) and np.isclose(f(X.astype("f4")), np.sum(X * 2))
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_interrupt_while_compiling():
    def slow(graph, types):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    def quick(graph, types):
        return lambda inputs: graph.run(*inputs)

    chosen = [slow]
    f = npjit.jit(lambda x: x + 1, backend=lambda g, t: chosen[0](g, t))
    with pytest.raises(KeyboardInterrupt):
        f(X)
    chosen[0] = quick
    assert np.array_equal(f(X), X + 1)
    assert f.cache_info()["whole"] == 1
    assert sys.exc_info() == (None, None, None)
