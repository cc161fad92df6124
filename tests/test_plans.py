"""Remembered plans: what a second process skips, what damage cannot do, what keys tell apart."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import npjit
from npjit.api import plans
from npjit.codegen import toolchain
from npjit.core.faithful import faithful
from npjit.core.graph import Block, Graph, SizeSource, TensorType, Weight
from npjit.core.op import Literal
from npjit.core.size import atoms, var
from npjit.ops import kinds

ROOT = Path(__file__).parent.parent
FLOAT = TensorType((), np.dtype("f8"), Weight.SCALAR)

PROGRAM = """
import sys
import numpy as np
import npjit
from npjit.codegen import toolchain

if sys.argv[1] == "again":
    def refuse(*args):
        raise AssertionError("a compiler was started")
    toolchain._run_compiler = refuse

def layer(x, w):
    hidden = np.tanh(x.T @ w)
    return hidden, hidden.sum(axis=0), x[0]

compiled = npjit.jit(layer, fullgraph=True)
gradient = npjit.grad(lambda w, x: np.sum(layer(x, w)[0]), fullgraph=True)
x, w = np.linspace(0, 1, 600).reshape(20, 30), np.ones((20, 40))
for got, want in zip(compiled(x, w), layer(x, w)):
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert got.strides == want.strides
assert gradient(w, x).shape == w.shape
assert compiled.cache_info()["whole"] == gradient.cache_info()["whole"] == 1

def solved(a, b):  # a step that Python computes
    return np.linalg.solve(a, np.sort(b)) + len(b)

compiled = npjit.jit(solved, fullgraph=True)
np.testing.assert_array_equal(compiled(np.eye(20), w[:, 0]), solved(np.eye(20), w[:, 0]))
print(*[name for name in ("npjit.schedule", "npjit.codegen.cpp") if name in sys.modules])
"""


def run(program: str, *args: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *args],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_second_process_traces_and_loads(tmp_path):
    cache = {"NPJIT_CACHE_DIR": str(tmp_path)}
    assert run(PROGRAM, "first", **cache) == "npjit.schedule npjit.codegen.cpp"
    assert run(PROGRAM, "again", **cache) == ""


# ---------------------------------------------------------------- damage


def scaled(x):
    return np.exp(x) * 3.0 + 1.0


X = np.linspace(-1.0, 1.0, 100)


def call_afresh() -> None:
    """Compile anew, as a new process would, and compare with NumPy."""
    compiled = npjit.jit(scaled, fullgraph=True)
    np.testing.assert_allclose(compiled(X), scaled(X), rtol=1e-14)
    assert compiled.cache_info()["whole"] == 1


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of this test's own, which holds `scaled` and the proof of the compiler."""
    monkeypatch.setenv("NPJIT_CACHE_DIR", str(tmp_path))
    call_afresh()
    return tmp_path


@pytest.fixture
def builds(monkeypatch):
    """The sources that the compiler was started for."""
    started: list[str] = []
    run_compiler = toolchain._run_compiler

    def counted(compiler, sources, *rest):
        started.extend(sources)
        return run_compiler(compiler, sources, *rest)

    monkeypatch.setattr(toolchain, "_run_compiler", counted)
    return started


def replace(path: Path, data: bytes) -> None:
    """Put a file in the place of another one, whose memory may be mapped."""
    path.unlink()
    path.write_bytes(data)


def test_what_is_there_is_used(cache, builds):
    call_afresh()
    assert builds == []


@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped", "gone"])
@pytest.mark.parametrize("suffix", [".bin", ".so"])
def test_damaged_entries_are_made_again(cache, builds, suffix, damage):
    for path in cache.glob(f"*{suffix}"):
        data = path.read_bytes()
        if damage == "gone":
            path.unlink()
            continue
        flipped = bytes([data[0] ^ 1]) + data[1:]
        damaged = {"truncated": data[: len(data) // 2], "emptied": b"", "flipped": flipped}
        replace(path, damaged[damage])
    call_afresh()
    assert any("npjit_run" in source for source in builds) == (suffix == ".so")
    builds.clear()
    call_afresh()
    assert builds == []


# ---------------------------------------------------------------- keys


def graph_of(bits: bytes, lo: int = 2) -> Graph:
    """x + a constant of these bits."""
    block = Block()
    n = var("n", lo=lo)
    array = TensorType((n,), np.dtype("f8"))
    x = block.add(kinds.INPUT, (), 0, array)
    constant = block.add(kinds.CONST, (), Literal("<f8", bits), FLOAT)
    (unknown,) = atoms(n)
    return Graph.of(block, [x], [x, constant], sources={unknown: SizeSource(0, 0)})


ZERO = np.float64(0.0).tobytes()
NAN = np.float64(np.nan).tobytes()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (graph_of(ZERO), graph_of(np.float64(-0.0).tobytes())),
        (graph_of(NAN), graph_of(bytes([1, *NAN[1:]]))),
        (graph_of(ZERO), graph_of(np.int64(0).tobytes()[:7] + b"\x01")),
        (graph_of(ZERO, lo=0), graph_of(ZERO, lo=2)),
        (1, 1.0),
        (1, True),
        (1, "1"),
        ((1, 2), ((1,), 2)),
        (np.float32(1), np.float64(1)),
        (0.0, -0.0),
    ],
)
def test_texts_tell_apart(one, other):
    assert faithful(one) != faithful(other)


def test_equal_graphs_have_one_text():
    assert faithful(graph_of(ZERO)) == faithful(graph_of(ZERO))


def test_what_has_no_text_is_an_error():
    with pytest.raises(TypeError, match="no text tells a object"):
        faithful((1, object()))


def key_of(f, *args) -> str:
    captured = npjit.jit(f).capture(args, {})
    return plans.plan_key(captured, captured.graph, "target")


def test_the_same_call_has_the_same_key():
    assert key_of(scaled, X) == key_of(scaled, X[:50])


def test_bodies_of_loops_and_branches_are_in_the_key():
    def body(x):
        for _ in range(1000):
            x = x * 2.0
        return x

    def other_body(x):
        for _ in range(1000):
            x = x * 3.0
        return x

    def fewer(x):
        for _ in range(900):
            x = x * 2.0
        return x

    assert len({key_of(f, X) for f in (body, other_body, fewer)}) == 3


def test_layouts_are_in_the_key():
    square = np.ones((20, 30))
    layouts = [square, square.T, square[:, ::2], square[::-1], np.broadcast_to(X[:30], (20, 30))]
    assert len({key_of(scaled, x) for x in layouts}) == len(layouts)


def test_dtypes_and_weights_are_in_the_key():
    values = [X, X.astype("f4"), X.astype("c16"), 1.5, np.float64(1.5), np.float32(1.5)]
    assert len({key_of(scaled, x) for x in values}) == len(values)


def test_results_are_in_the_key():
    assert key_of(lambda x: (x, x + 1), X) != key_of(lambda x: (x[:], x + 1), X)


def test_the_target_and_npjits_own_files_are_in_the_key(monkeypatch):
    captured = npjit.jit(scaled).capture((X,), {})
    keys = {plans.plan_key(captured, captured.graph, target) for target in ("a", "b")}
    monkeypatch.setattr(plans, "fingerprint", lambda: "another version")
    keys.add(plans.plan_key(captured, captured.graph, "a"))
    assert len(keys) == 3


def test_constants_of_the_code_are_in_the_key():
    assert key_of(lambda x: x + 0.0, X) != key_of(lambda x: x + -0.0, X)
    assert key_of(lambda x: x + 1.0, X) != key_of(lambda x: x + 1.5, X)


def test_plans_are_of_one_version_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    before = plans.fingerprint.__wrapped__()
    assert plans.fingerprint.__wrapped__() == before
    monkeypatch.setattr(np, "__version__", "2.99")
    assert plans.fingerprint.__wrapped__() != before
