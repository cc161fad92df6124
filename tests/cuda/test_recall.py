"""What a second process needs no plan for: instances from the disk cache."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import npjit
from npjit.api import native
from npjit.backends import cuda_native, cuda_recall
from npjit.backends.cuda_program import Program
from tests.cuda import fake_cupy


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("NPJIT_CACHE_DIR", str(tmp_path))
    return fake_cupy.install(monkeypatch, recalls=True)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The graphs that were scheduled."""
    found: list[Any] = []
    schedule = native.make_plan

    def noting(captured: Any, graph: Any, few_threads: bool = True) -> Any:
        found.append(graph)
        return schedule(captured, graph, few_threads)

    monkeypatch.setattr(native, "make_plan", noting)
    return found


def normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def check(cupy: Any, function: Any, *args: Any, calls: int = 1, **options: Any) -> Any:
    """Compile anew, as a new process would, and compare with NumPy."""
    jitted = npjit.jit(function, fullgraph=True, **options)
    for k in range(calls):
        varied = [a + k if isinstance(a, float) else a for a in args]
        given = [cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in varied]
        want = function(*[np.copy(a) if isinstance(a, np.ndarray) else a for a in varied])
        for g, w in zip(jitted(*given), want, strict=True):
            assert g.strides == w.strides or g.size < 2
            np.testing.assert_allclose(g.get(), w, rtol=1e-12, atol=1e-12)
    assert jitted.cache_info()["whole"] == calls
    return jitted


def centre(x, scale):
    return (x - x.mean(axis=0)) * scale, x.T * 2.0


def added(x, y):
    return (x + y,)


def trips(x, n):
    x = x * 1.5
    for i in range(n):
        x[i] = x[i] + x[: i + 1].sum()
    while x.max() > 1.0:
        x = x * 0.5
    return (x,)


def product(x):
    return (np.exp(x) @ x.T,)


def taken(x, i):
    return (x[i] * 2.0,)


X, PLACES = normal(6, 5), np.array([3, 0, 2])


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (centre, (X, 2.0)),
        (added, (X, X.copy())),
        (trips, (normal(8) + 2.0, 4)),
        (product, (X,)),
        (taken, (X, PLACES)),
    ],
)
def test_what_was_made_ready_is_recalled(
    cupy: Any, plans: list[Any], function: Any, args: Any
) -> None:
    check(cupy, function, *args)
    assert len(plans) == 1
    check(cupy, function, *args, calls=4)
    check(cupy, function, *args, calls=4, mode="reduce-overhead")
    assert len(plans) == 1


def test_other_sizes_are_made_by_the_plan(cupy: Any, plans: list[Any]) -> None:
    check(cupy, centre, X, 2.0)
    check(cupy, centre, normal(7, 5), 2.0)
    check(cupy, centre, X[:, ::2], 2.0)
    assert len(plans) == 3
    f = check(cupy, centre, normal(7, 5), 2.0)
    assert len(plans) == 3
    f(cupy.asarray(normal(9, 5)), 3.0)
    f(cupy.asarray(normal(11, 5)), 3.0)
    assert len(plans) == 4 and f.cache_info()["compiled"] == 2


def test_sizes_that_do_not_fit_are_refused(cupy: Any, plans: list[Any]) -> None:
    check(cupy, added, X, X.copy())
    f = check(cupy, added, X, X.copy())
    assert len(plans) == 1
    (got,) = f(cupy.asarray(X), cupy.asarray(X[:1]))
    np.testing.assert_allclose(got.get(), X + X[:1])
    assert f.cache_info()["compiled"] == 2


def test_failed_checks_of_recalled_plans(cupy: Any) -> None:
    check(cupy, taken, X, PLACES)
    f = check(cupy, taken, X, PLACES)
    with pytest.raises(IndexError):
        f(cupy.asarray(X), cupy.asarray(PLACES + 5))


def test_what_is_gone_is_made_again(
    cupy: Any, plans: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(cupy, centre, X, 2.0)
    recalled = cuda_native.recall

    def gone(key: str) -> Any:
        stored = recalled(key)
        return stored and cuda_recall.Stored(**{**vars(stored), "codes": {"k0": "gone"}})

    monkeypatch.setattr(cuda_native, "recall", gone)
    check(cupy, centre, X, 2.0)
    assert len(plans) == 2


def test_what_python_does_is_not_stored(cupy: Any, plans: list[Any]) -> None:
    def solved(x):
        return (np.linalg.solve(x, x[0]),)

    square = normal(4, 4)
    check(cupy, solved, square)
    check(cupy, solved, square)
    assert len(plans) == 2


def test_what_waits_holds_no_arrays(cupy: Any) -> None:
    check(cupy, centre, X, 2.0)
    f = npjit.jit(centre, fullgraph=True)
    x = cupy.asarray(X)
    f(x, 2.0)
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is None and f.cache_info()["whole"] == 1


def test_explain_has_the_plan(cupy: Any) -> None:
    check(cupy, centre, X, 2.0)
    f = check(cupy, centre, X, 2.0)
    given = cupy.asarray(X), 2.0
    assert "kernel" in str(f.explain(*given))
    assert "__global__" in f.lower(*given).as_text("cuda")


def test_forms_are_what_json_keeps(cupy: Any) -> None:
    found: list[Any] = []
    stored = Program.stored

    def noting(self: Any, *args: Any) -> Any:
        found.append(stored(self, *args))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Program, "stored", noting)
        check(cupy, trips, normal(8) + 2.0, 4)
    (made,) = found
    data = json.dumps(vars(made), default=int)
    assert json.dumps(json.loads(data)) == data


def test_what_a_hit_imports() -> None:
    program = (
        "import sys, npjit, npjit.api.native, npjit.api.device, npjit.backends.cuda\n"
        "heavy = ('npjit.schedule', 'npjit.codegen.c', 'npjit.codegen.prelude')\n"
        "light = ('npjit.codegen.cache',)\n"
        "print(*[m for m in sys.modules if m.startswith(heavy) and m not in light])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert done.stdout.strip() == ""
