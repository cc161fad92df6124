"""Functions that run over lazy arrays: values, types and memory are NumPy's, effects are Python's.

The programs run by `call_by_recording`, three times each: traced, and twice by what is known then.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from npjit import _runtime
from npjit.api.options import Options
from npjit.api.recorded_call import call_by_recording
from npjit.api.recorder import Recorder, Tape
from tests.calls import assert_same

X = np.linspace(0.5, 2.0, 12)
M = X.reshape(3, 4)
PROGRAMS: list[Any] = []


def program(*args: Any) -> Callable[[Any], Any]:
    def enter(f: Any) -> Any:
        PROGRAMS.append(pytest.param(f, args, id=f.__name__))
        return f

    return enter


@program(X)
def views_are_written_through(x):
    y = x[2:]
    y[0] = 7
    z = y[::2]
    z *= 3
    return x, y, z, x.sum()


@program(X)
def arguments_are_written(x):
    x += 1
    shown = str(x[0])
    x[3] = x[4] * 2
    return x, shown


@program(M)
def reshapes(m):
    t = m.T
    r = t[1:]
    r[0] = 0
    f = m.reshape(-1)
    f[3] = 9.0
    d = m.ravel()
    d += 1
    return m, t, r, f, d


@program(np.asfortranarray(M))
def reshapes_that_copy(m):
    y = m * 2
    y.T[0] = 1
    r = m.reshape(-1)
    r[0] = 55
    return m, y, r


@program(X)
def buffers(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[i] * i
    out[2:5] += x[:3]
    made = np.array([x[0], x[1]])
    wide = np.empty((2, 3))
    wide[:] = x[:3]
    wide[1] = 2
    return out, made, wide


@program(X)
def masks(x):
    y = x[x > 1]
    y *= 2
    x[x < 0.8] = 0
    return y, x, np.nonzero(x), len(y), np.unique(x.round(1))


@program(X)
def numbers(x):
    s, m, k, i = x.sum(), float(x[0]), int(x[3] * 10), x.argmax()
    shown = f"{s:.3f} {x[:2]} %f %d" % (x[0], x[1])
    sorts = type(s), isinstance(s, float), isinstance(x, np.ndarray), x[0] in x
    found = s, m, k, i, x[i], x[k % 5], m + 1, s / 3, round(s), round(s, 2), abs(-s)
    return found, sorts, shown, math.sin(m), math.sqrt(s), 0.7 < x[1] < 1.0, x.max() > 1


@program(M)
def functions_of_the_table(m):
    a = m @ m.T + np.eye(3) * 5
    first, rest = np.split(m, [2])
    parts = {"first": first, "rest": [rest, (np.stack([m[0], m[1]]), np.concatenate([m, m]))]}
    folds = np.cumsum(m, 1), np.sort(m, 0), m.argsort(), np.maximum.accumulate(m, 1)
    algebra = np.linalg.det(a), np.linalg.solve(a, m), np.linalg.eigvalsh(a)
    return parts, folds, algebra, np.einsum("ij,kj->ik", m, m), np.where(m > 1, m, 0), m.mean(0)


@program(X)
def errors_are_numpys(x):
    found = []
    for wrong in (
        lambda: x @ np.ones(3),
        lambda: x[50],
        lambda: np.linalg.inv(np.zeros((2, 2)) * x[0]),
        lambda: x.reshape(5, 5),
        lambda: 1.0 / float(x[0] * 0),
        lambda: x.missing,
        lambda: x[np.array([1, 99])],
        lambda: hash(x),
    ):
        try:
            found.append(wrong())
        except Exception as e:
            found.append((type(e).__name__, str(e)))
    return found, x * 2


@program(np.arange(10))
def integers(n):
    n[2] = 5
    s, q, r = n.sum(), n // 3, n % 4
    n <<= 1
    return s, q, r, n, n & 3, ~n, -n, n**2, divmod(n, 3), [int(i) for i in n[:3]], list(range(n[1]))


@program(X, X[::-1])
def arguments_that_overlap(x, y):
    z = x * y
    y[0] = 100
    return z, x, y, np.dot(x, y)


@program(X)
def written_by_functions(x):
    y = np.empty_like(x)
    np.multiply(x, 2, out=y)
    np.add.at(y, [0, 0, 1], 1.0)
    np.copyto(y[:2], 5)
    y.sort()
    np.clip(y, 0, 6, out=y)
    plain = [np.zeros(12)]
    np.add(x, 1, out=plain[0])
    plain[0][2:4] = x[:2]
    return y, plain, np.add.reduce(y)


@program(X + 1j * X)
def parts_of_complex_numbers(z):
    r = z.real
    r[0] = 5
    z.imag[1] = 7
    z.real = z.real * 2
    return z, z.conj(), abs(z), z.real


@program(X)
def generators(x):
    def products():
        for i in range(3):
            yield x[i] * i

    return list(products()), sum(products()), sorted(-v for v in products())


@program(X)
def copies(x):
    y = copy.deepcopy(x)
    y += 1
    z = x.copy()
    z[0] = 1
    return y, z, x, x.astype("f4") + 1, x.astype(np.float32) * x.astype(int), np.float32(x[0])


@program(X)
def arrays_that_python_holds(x):
    c = np.ones(12)
    held = [c]
    y = x * c
    held[0] *= 3
    z = x * c
    c[0] = 0
    return y, z, c * x, held


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_programs(f, args):
    recorder = Recorder(Options())
    theirs = copy.deepcopy(args)
    want = f(*theirs)
    for _ in range(3):
        mine = copy.deepcopy(args)
        assert_same(call_by_recording(recorder, f.__name__, f, mine, {}), want)
        assert_same(mine, theirs)


def test_one_program_for_all_trips_of_a_loop():
    def walk(x):
        for i in range(20, 400):
            x[i] = x[i - 1] * 0.5 + x[i]
        return x

    recorder = Recorder(Options(backend="numpy"))
    x = np.linspace(0.0, 1.0, 400)
    for _ in range(2):
        assert_same(call_by_recording(recorder, "walk", walk, (x.copy(),), {}), walk(x.copy()))
    assert len(recorder.programs) <= 3


def test_floats_become_inputs_when_they_change():
    recorder = Recorder(Options(backend="numpy"))
    for scale in (0.5, 0.25, 3.0, -0.0, 7.0):
        got = call_by_recording(recorder, "f", lambda x, k=scale: x * k + 1.0, (X,), {})
        assert_same(got, X * scale + 1.0)
    assert len(recorder.programs) == 2


def test_what_is_known_is_not_traced_again(monkeypatch):
    recorder = Recorder(Options(backend="numpy"))
    f = masks
    call_by_recording(recorder, "f", f, (X.copy(),), {})
    monkeypatch.setattr(Tape, "trace", None)
    call_by_recording(recorder, "f", f, (X.copy(),), {})


def test_no_lazy_array_stays_behind():
    class Holder:
        __slots__ = ("inner",)

    kept, table, holder = [], {}, Holder()

    def f(x):
        kept.append((1, (x * 2, [x[1:]])))
        table["sum"] = x.sum()
        holder.inner = x + 1
        raise KeyError("after that")

    with pytest.raises(KeyError):
        call_by_recording(Recorder(Options(backend="numpy")), "f", f, (X,), {})
    assert_same(kept, [(1, (X * 2, [X[1:]]))])
    found = [kept[0][1][0], kept[0][1][1][0], table["sum"], holder.inner]
    assert [type(v) for v in found] == [np.ndarray, np.ndarray, np.float64, np.ndarray]
    assert not any(type(v) is _runtime.LazyArray for v in found)
    assert np.shares_memory(kept[0][1][1][0], X)


def test_what_is_remembered_has_a_bound(monkeypatch):
    monkeypatch.setattr("npjit.api.recorder.MOST_OPERATIONS", 20)
    recorder = Recorder(Options(backend="numpy"))
    for n in range(2, 40):
        got = call_by_recording(recorder, "f", lambda x: (x * 2 + 1, x[1:]), (X[:n],), {})
        assert_same(got, (X[:n] * 2 + 1, X[1:n]))
        assert recorder.known <= 20 + 3


def test_dead_values_are_not_computed():
    recorder = Recorder(Options(backend="numpy"))
    tape = Tape(recorder, "f", keeps=False)
    x = tape.recording.adopt(X)
    y = np.exp(x) * 2
    state, _, _, wanted = tape.recording.pending()
    assert [w is y for w in wanted] == [True]
    assert len(state.path()) == 3


WITHOUT_SOURCE = """
def f(x, log):
    y = np.exp(x) * 2
    log.append(y.max())
    print("seen", round(float(y[0]), 3))
    y[1:] += x[:-1]
    return y / (1 + y), x[::2]
"""


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_functions_without_source_run_in_parts(capsys):
    space = {"np": np}
    exec(WITHOUT_SOURCE, space)
    f, jitted = space["f"], npjit.jit(space["f"])
    for _ in range(2):
        mine, theirs = [], []
        assert_same(jitted(X, mine), f(X, theirs))
        assert_same(mine, theirs)
        first, second = capsys.readouterr().out.splitlines()
        assert first == second
    info = jitted.cache_info()
    assert (info["broken"], info["numpy"], info["compiled"]) == (2, 0, 2)


ORDERS = [
    pytest.param(lambda m: m, id="C"),
    pytest.param(lambda m: m.T, id="F"),
    pytest.param(lambda m: m[::-1, ::2], id="strided"),
]
SHARING = """
r = x.ravel(); r[0] = 9.0
x[0] *= 2; r = x.ravel(); r[0] = 9.0
x[0] *= 2; r = x.T.reshape(-1); r[1] = 9.0
y = x * 2; r = x.ravel("K"); r[0] = 9.0; x = x + y
r = x.T.ravel(); r[2] = 9.0; r = x.ravel("K"); r[0] = 7.0; x = x + 1
r = x.ravel("K"); y = x * 2; r[0] = 9.0; x = x + y
y = x * 2; r = y.ravel("K"); z = y + 1; r[0] = 9.0; x = z - y
"""


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("line", SHARING.strip().splitlines())
def test_memory_shared_with_reshapes_and_with_others(line, order):
    space = {"np": np}
    exec(f"def f(x, log):\n    log.append(1)\n    {line}\n    return x, r", space)
    f, jitted = space["f"], npjit.jit(space["f"])
    for _ in range(2):
        mine, theirs = order(M.copy()), order(M.copy())
        assert_same(jitted(mine, []), f(theirs, []))
        assert_same(mine, theirs)


@pytest.mark.filterwarnings("ignore::npjit.NpjitWarning")
def test_arguments_that_overlap():
    space = {"np": np}
    code = "def f(x, y, log):\n    y[:1] = 5.0\n    log.append(1)"
    exec(f"{code}\n    return x * 2, y + x[:1]", space)
    f, jitted = space["f"], npjit.jit(space["f"])
    for n in (12, 0):
        mine, theirs = np.arange(1.0, n + 1), np.arange(1.0, n + 1)
        assert_same(jitted(mine, mine[::-1], []), f(theirs, theirs[::-1], []))
        assert_same(mine, theirs)


def test_stores_beside_what_may_share_memory_are_refused():
    space = {"np": np}
    code = "def f(x, log):\n    log.append(1)\n    y = np.zeros_like(x)\n    y[:] = x"
    exec(f"{code}\n    log.append(2)\n    r = y.ravel()\n    r[0] = 9\n    return y", space)
    jitted = npjit.jit(space["f"])
    with (
        pytest.warns(npjit.NpjitWarning),
        pytest.raises(npjit.CaptureError, match="may share memory"),
    ):
        jitted(M.copy().T, [])


def written_by_another_name(x, held):
    """Each operation sees what was there when it was recorded, through views as well."""
    tail = x[1:]
    y, z = x * 2, tail * 3
    held[0][1] = 100.0
    w = tail + x[:-1]
    held[0][0] = 50.0
    return y, z, w, x + 1, tail - 1


def written_before_it_is_read(x, held):
    held[0][0] = 100.0
    return x * 2


def written_between_two_reads(x, held):
    y = x * 2
    held[0][0] = 100.0
    return y + x


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("f", [written_by_another_name, written_before_it_is_read])
def test_an_argument_that_another_name_writes(f, step):
    recorder = Recorder(Options())
    for _ in range(2):
        x, y = (np.array([1.0, np.nan, -0.0, 4.0, 5.0, 6.0])[::step] for _ in range(2))
        assert_same(call_by_recording(recorder, "f", f, (x, [x]), {}), f(y, [y]))
        assert_same(x, y)


def test_a_large_argument_that_another_name_writes():
    """It is compared when the program runs, which is too late to tell what has read it."""
    x = np.ones(100_000)
    with pytest.raises(npjit.CaptureError, match="changed by another name"):
        call_by_recording(Recorder(Options()), "f", written_between_two_reads, (x, [x]), {})


OVERLAPPED = np.arange(5.0)
PART = OVERLAPPED[1:]


def read_by_another_name(x, held):
    x[0] = 50.0
    return held[0].sum(), x * 2


def read_through_a_global(x, held):
    before = PART.sum()
    x[1] = 50.0
    return before, PART.sum(), held[0][1] * 2


@pytest.mark.parametrize("f", [read_by_another_name, read_through_a_global])
def test_stores_are_seen_by_other_names(f):
    OVERLAPPED[:] = np.arange(5.0)
    want = f(OVERLAPPED, [OVERLAPPED])
    OVERLAPPED[:] = np.arange(5.0)
    recorder = Recorder(Options())
    assert_same(call_by_recording(recorder, "f", f, (OVERLAPPED, [OVERLAPPED]), {}), want)
