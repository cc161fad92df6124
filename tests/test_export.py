"""Cython-built modules and the other built-in backends, end to end."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import npjit
from npjit.codegen import cython_printer

pytest.importorskip("Cython")

X = np.linspace(-2.0, 2.0, 600).reshape(20, 30)


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def scaled(x, factor, /):
    x *= factor
    return {"total": x.sum(), "first": x[0], "same": x}


def moved(out, start, words):
    out += start * words
    return out, 1, None


@pytest.mark.parametrize("backend", ["cpp", "cython", "numba", "numpy"])
def test_built_in_backends_answer_whole(backend):
    if backend == "numba":
        pytest.importorskip("numba")
    f = npjit.jit(softmax, backend=backend)
    for x in (X, X[:, :17].copy(), X[3:]):
        np.testing.assert_allclose(f(x), softmax(x), rtol=1e-13)
    info = f.cache_info()
    assert (info["whole"], info["numpy"]) == (3, 0)
    assert f.compiled[0].backend == backend


def run_without_npjit(folder, code):
    """Run code where npjit cannot be imported and no compiler is found."""
    script = f"import sys; sys.modules['npjit'] = None; import numpy as np\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={"PATH": "/nonexistent", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_exported_gradient_needs_numpy_alone(tmp_path):
    g = npjit.grad(lambda w: np.sum(np.sin(w) ** 2))
    built = npjit.export(g, [np.zeros(50)], "sine_gradient", tmp_path)
    assert built.parent == tmp_path
    assert {"sine_gradient.pyx", "sine_gradient.pyi", "setup.py"} <= set(os.listdir(tmp_path))
    stub = (tmp_path / "sine_gradient.pyi").read_text()
    assert "def sine_gradient(w: NDArray[np.float64]) -> NDArray[np.float64]" in stub
    code = """
from sine_gradient import sine_gradient
for n in (50, 31, 17):
    x = np.arange(float(n))
    assert np.allclose(sine_gradient(x), np.sin(2 * x), rtol=1e-12, atol=1e-14)
try:
    sine_gradient(np.arange(20))
except TypeError:
    print("refused")
"""
    assert run_without_npjit(tmp_path, code) == "refused"


def test_exported_function_writes_its_argument(tmp_path):
    npjit.export(scaled, [X, 2.0], "scaled", tmp_path)
    code = """
from scaled import scaled
x = np.arange(600.0).reshape(20, 30)
r = scaled(x, 0.5)
assert np.array_equal(x, np.arange(600.0).reshape(20, 30) / 2)
assert r["same"] is x and np.shares_memory(r["first"], x) and type(r["total"]) is np.float64
print(r["total"])
"""
    assert run_without_npjit(tmp_path, code) == "89850.0"


def test_exported_function_takes_what_it_was_compiled_for(tmp_path):
    x = np.zeros(40)
    # names that the module's own code might use, and a backend that has no C++
    npjit.export(npjit.jit(moved, backend="numpy"), [x, x.copy(), 3], "np", tmp_path)
    stub = (tmp_path / "np.pyi").read_text()
    assert "words: int) -> tuple[NDArray[np.float64], int, None]" in stub
    code = """
from np import np as moved
x = np.arange(50.0)
assert moved(x, x.copy(), 2)[0] is x and x[2] == 6.0
masked = np.ma.masked_array(x.copy(), mask=True)
wrong = [(x, x, 2), (x[1:], x[:-1], 2), (x, x.copy(), 2.0), (x, masked, 2), (x[:0], x[:0], 2)]
for arguments in wrong:
    try:
        moved(*arguments)
    except (TypeError, ValueError):
        continue
    raise AssertionError(f"{arguments!r} was taken")
print(x[2])
"""
    assert run_without_npjit(tmp_path, code) == "6.0"


@pytest.mark.parametrize("missing", ["Cython", "setuptools"])
def test_the_cython_backend_says_what_is_missing(monkeypatch, missing):
    found = importlib.util.find_spec
    absent = {missing: None}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: absent[name] if name in absent else found(name)
    )
    f = npjit.jit(lambda x: x * 3.25 - np.cos(x), backend="cython")
    with pytest.warns(npjit.NpjitWarning, match=f"takes {missing}: pip install"):
        f(X)
    assert f.cache_info()["numpy"] == 1


def test_a_failed_build_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("NPJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cython_printer, "_HEAD", "no Cython at all")
    f = npjit.jit(softmax, backend="cython")
    with pytest.warns(npjit.NpjitWarning, match="failed; see") as caught:
        f(X)
    assert "no Cython at all" in Path(str(caught[0].message).split()[-1]).read_text()
    with pytest.raises(npjit.ExportError, match="failed; see"):
        npjit.export(softmax, [X], "failing", tmp_path)
    assert "no Cython at all" in (tmp_path / "build.log").read_text()


FACTOR = np.arange(30.0)


def test_export_refuses_what_is_no_argument(tmp_path):
    with pytest.raises(npjit.ExportError, match="positional arguments"):
        npjit.export(lambda x: x * FACTOR, [X], "module", tmp_path)
    for name in ("not a name", "class", "numpy", "json"):
        with pytest.raises(npjit.ExportError, match="no name"):
            npjit.export(softmax, [X], name, tmp_path)
