"""The environment variables that make npjit talk, and what it says when something goes wrong."""

import os
import re
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import npjit
from npjit.core.graph import Graph
from npjit.core.rebuild import rebuild

ROOT = Path(__file__).parent.parent

PROGRAM = """
import numpy as np
import npjit

@npjit.jit
def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)

softmax(np.ones((20, 30)))
softmax(np.ones((20, 30), "f4"))
softmax(np.ones((40, 50)))
print(softmax.cache_info()["whole"], softmax.cache_info()["compiled"])
"""


def run(program: str, *args: str, **variables: str) -> tuple[str, str]:
    """What a program prints to standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-c", program, *args],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_silent_by_default():
    assert run(PROGRAM) == ("3 2", "")


def test_topics(tmp_path):
    _, said = run(PROGRAM, NPJIT_LOGS="graph,guards,recompiles")
    assert re.findall(r"^\[(\w+)\] softmax: ", said, re.M) == ["graph", "guards", "recompiles"] * 2
    assert "reduce_max %0 (1)" in said
    assert "x: float64[n > 1, n > 1] in C order" in said
    assert "[recompiles] softmax: version 2" in said


def test_all_topics():
    _, said = run(PROGRAM, NPJIT_LOGS="all")
    topics = set(re.findall(r"^\[(\w+)\] softmax: ", said, re.M))
    assert topics == {"graph", "guards", "fusion", "code", "recompiles", "time"}
    assert 'extern "C" int npjit_run' in said
    assert "kernel over (i0 < s0)" in said
    assert re.search(r"\[time\] softmax: trace \d+\.\d ms, ", said)


def test_unknown_topics_are_told():
    _, said = run(PROGRAM, NPJIT_LOGS="tme, guards")
    assert "NPJIT_LOGS knows graph, guards, fusion, code, recompiles, time and all, not tme" in said
    assert said.count("not tme") == 1
    assert said.count("[guards] softmax: ") == 2


def test_dump(tmp_path):
    run(PROGRAM, NPJIT_DUMP=str(tmp_path / "dump"))
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    endings = ("cpp", "graph.txt", "kernels.txt")
    assert names == [f"000{n}-softmax.{ending}" for n in (1, 2) for ending in endings]
    assert (tmp_path / "dump" / "0001-softmax.graph.txt").read_text().startswith("graph(")


def test_a_dump_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    out, told = run(PROGRAM, NPJIT_DUMP=str(tmp_path / "file"))
    assert out == "3 2"
    assert "NpjitWarning: NPJIT_DUMP=" in told and "cannot be written: File exists" in told


def test_check_passes_on_sound_code():
    assert run(PROGRAM, NPJIT_CHECK="1") == ("3 2", "")


# ---------------------------------------------------------------- defects


def wrong(graph: Graph) -> Graph:
    """A pass that computes something else: cosines in place of sines."""
    from npjit.ops.kinds import ROWS

    def rewrite(block, node, args):
        if node.op is ROWS["sin"]:
            return block.add(ROWS["cos"], args, node.params, node.type)
        return None

    return rebuild(graph, rewrite)


def test_check_finds_a_wrong_pass(monkeypatch):
    monkeypatch.setattr("npjit.api.compile.simplify", wrong)
    monkeypatch.setenv("NPJIT_CHECK", "1")
    with pytest.raises(AssertionError, match="simplify changed result 0"):
        npjit.jit(lambda x: np.sin(x))(np.ones(20))


def test_a_defect_is_answered_by_numpy_and_told(monkeypatch):
    monkeypatch.setattr("npjit.api.native.make_plan", None)
    monkeypatch.setenv("NPJIT_BACKEND", "cpp")
    compiled = npjit.jit(lambda x: np.sin(x) * 17.5)
    with pytest.warns(npjit.NpjitWarning, match="a defect of npjit: TypeError") as caught:
        assert compiled(np.zeros(20)).tolist() == [0.0] * 20
    assert caught[0].filename == __file__
    assert (compiled.cache_info()["numpy"], compiled.cache_info()["whole"]) == (1, 0)


def test_a_defect_leaves_gradients_right(monkeypatch):
    monkeypatch.setattr("npjit.api.native.make_plan", None)
    gradient = npjit.grad(lambda x: np.sum(x * x * 18.5), backend="cpp")
    with pytest.warns(npjit.NpjitWarning, match="a defect of npjit: TypeError"):
        assert gradient(np.ones(3)).tolist() == [37.0] * 3
    assert (gradient.cache_info()["numpy"], gradient.cache_info()["whole"]) == (1, 0)


def test_errors_of_the_function_itself_are_no_defects():
    @npjit.jit
    def f(x):
        raise LookupError("mine")

    with warnings.catch_warnings(), pytest.raises(LookupError, match="mine"):
        warnings.simplefilter("error")
        f(np.ones(3))


def test_a_warning_names_the_users_line():
    compiled = npjit.jit(lambda x: x.tolist())
    with pytest.warns(npjit.NpjitWarning) as caught:
        compiled(np.ones(100))
    assert caught[0].filename == __file__
    assert len(caught) == 1


def test_warnings_that_are_errors_pass(tmp_path, monkeypatch):
    monkeypatch.setenv("NPJIT_CACHE_DIR", str(tmp_path / "nothing" / "file"))
    (tmp_path / "nothing").touch()
    compiled = npjit.jit(lambda x: x * 0.375)
    with warnings.catch_warnings():
        warnings.simplefilter("error", npjit.NpjitWarning)
        with pytest.raises(npjit.NpjitWarning, match=r"cache directory .* is not used"):
            compiled(np.ones(3))
    assert compiled.cache_info()["refusals"] == {}


# ---------------------------------------------------------------- a compiler that fails

# passes every check of the search, then fails on generated code with pages of text
FAILING = """#!/bin/sh
for last; do
    if [ -f "$last" ] && grep -q npjit_run "$last"; then
        i=0
        while [ $i -lt 500 ]; do echo "unit.cpp:$i:1: error: all is lost"; i=$((i + 1)); done
        exit 1
    fi
done
exec g++ "$@"
"""

FALLBACK = """
import sys
import warnings
sys.modules["ziglang"] = None
if "without numba" in sys.argv:
    sys.modules["numba"] = None
import numpy as np
import npjit

compiled = npjit.jit(lambda x: np.sin(x) + 0.25)
x = np.linspace(0, 1, 50)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x), np.sin(x) + 0.25)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")
print(compiled.cache_info()["whole"], compiled.cache_info()["numpy"])
"""


def test_a_failing_compiler_is_told_in_one_line(tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text(FAILING)
    compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    cache = tmp_path / "cache"
    variables = {"CXX": str(compiler), "NPJIT_CACHE_DIR": str(cache)}
    printed, said = run(FALLBACK, "without numba", **variables)
    warning, counts = printed.splitlines()
    assert warning.startswith("NpjitWarning: the C++ compiler failed: ")
    assert "unit.cpp:0:1: error: all is lost (source and log in " in warning
    assert len(warning) < 400
    saved = Path(re.search(r"log in ([^)]*)\)", warning)[1])
    text = saved.read_text()
    assert "npjit_run" in text
    assert text.count("all is lost") == 500
    assert counts == "0 3"
    assert said == ""


@pytest.mark.parametrize("cxx", ["", "false", "/nowhere/c++"])
def test_without_a_compiler(cxx, tmp_path):
    variables = {"CXX": cxx, "PATH": "", "NPJIT_CACHE_DIR": str(tmp_path)}
    printed, _ = run(FALLBACK, "without numba", **variables)
    warning, counts = printed.splitlines()
    assert warning.startswith("NpjitWarning: no C++ compiler was found: install g++ or `pip ")
    assert counts == "0 3"


def test_without_a_compiler_numba_answers(tmp_path):
    pytest.importorskip("numba")
    printed, _ = run(FALLBACK, CXX="", PATH="", NPJIT_CACHE_DIR=str(tmp_path))
    warning, counts = printed.splitlines()
    assert warning.startswith("NpjitWarning: no C++ compiler was found: ")
    assert counts == "3 0"


def test_a_named_backend_that_is_not_there(monkeypatch):
    monkeypatch.setattr("npjit.codegen.toolchain.find_compiler", lambda: None)
    compiled = npjit.jit(lambda x: np.sin(x) * 0.125, backend="cpp")
    with pytest.warns(npjit.NpjitWarning, match="no C\\+\\+ compiler was found"):
        compiled(np.zeros(20))
    assert (compiled.cache_info()["numpy"], compiled.cache_info()["whole"]) == (1, 0)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.warns(
        npjit.NpjitWarning, match=r"no Numba was found: `pip install npjit\[numba\]`"
    ):
        npjit.jit(lambda x: np.sin(x) * 0.125, backend="numba")(np.zeros(20))
