"""Plans as extension modules: built once with Cython, imported where npjit cannot be."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from npjit.codegen.cython_printer import Module, NotStandalone, print_cython, print_setup
from npjit.codegen.toolchain import find_compiler
from npjit.core.op import Kind, Op
from npjit.schedule.plan import Call, Check, InputSpec, Launch, OutputSpec, Place, Plan, Source
from tests.plan_runner import ADD, CAST, LESS, MULTIPLY, KernelBuilder, N, S, row

pytest.importorskip("Cython")

F8 = np.dtype("f8")

# run in a process that cannot import npjit
SCRIPT = """
import sys
sys.modules["npjit"] = None
import numpy as np
from scaled import scaled

x = np.arange(12.0).reshape(3, 4)
flags = np.array([True, False, True])
halves = np.float16([1, 2, 3])
y, total, flipped, same, doubled = scaled(x, 2.5, flags, halves, 7, 1 + 2j)
assert np.array_equal(y, x * 2.5) and y.flags.f_contiguous
assert total.shape == () and total == x[flags].sum() + 7 + 2j.imag
assert np.array_equal(flipped, x[::-1, 1]) and np.shares_memory(flipped, x)
assert same is x
assert np.array_equal(doubled, halves + halves) and doubled.dtype == np.float16

masked = np.ma.masked_array(x)
for wrong in (x.astype("f4"), x[0], x[:, ::2], x[:2], x.T, list(x), masked, x[:, :1], x[:, :0]):
    try:
        scaled(wrong, 2.5, flags, halves, 7, 1j)
    except (TypeError, ValueError):
        continue
    raise AssertionError(f"{wrong!r} was taken")
try:
    scaled(x, 1e9, flags, halves, 7, 1j)
except ValueError as error:
    assert "too large" in str(error)
else:
    raise AssertionError("the check did not stop the run")
x.flags.writeable = False
scaled(x, 1.0, flags, halves, 7, 1j)
"""


def plan() -> Plan:
    """y = x * factor in Fortran order; a masked sum; a view of x; x; halves doubled."""
    scale = KernelBuilder([S[0], S[1]], (0, 1), [("f8", "in"), ("f8", "out")], ["f8"])
    x = scale.load(0, {0: S[1], 1: 1})
    scale.store(1, {0: 1, 1: S[0]}, scale.apply(MULTIPLY, "f8", x, scale.scalar(0, "f8")))
    small = KernelBuilder([], (), [("?", "out")], ["f8"])
    limit = small.apply(LESS, "?", small.scalar(0, "f8"), small.const(1e6, "f8"))
    small.store(0, {}, limit)
    masked = KernelBuilder(
        [S[0], S[1]], (), [("f8", "in"), ("?", "in"), ("f8", "out")], ["i8", "c16"]
    )
    masked.phase(0, 1)
    choice = row("choice", "{0} ? {1} : 0.0")
    taken = masked.apply(choice, "f8", masked.load(1, {0: 1}), masked.load(0, {0: S[1], 1: 1}))
    total = masked.reduce("sum", "f8", taken)
    masked.phase()
    imaginary = row("imaginary", "", "{0i}")
    extra = masked.apply(imaginary, "f8", masked.scalar(1, "c16"))
    shift = masked.apply(ADD, "f8", masked.apply(CAST, "f8", masked.scalar(0, "i8")), extra)
    masked.store(2, {}, masked.apply(ADD, "f8", total, shift))
    double = KernelBuilder([S[0]], (0,), [("f2", "in"), ("f2", "out")])
    h = double.load(0, {0: 1})
    double.store(1, {0: 1}, double.apply(ADD, "f2", h, h))
    kernels = tuple(k.kernel(c) for k, c in [(scale, 2), (small, 0), (masked, 2), (double, 1)])
    place, flag = Place, Place("arena", 0)
    steps = (
        Launch(1, (flag,), (1,), ()),
        Check(1, flag, "factor too large"),
        Launch(0, (place("input", 0), place("output", 0)), (1,), (N[0], N[1])),
        Launch(2, (place("input", 0), place("input", 2), place("output", 1)), (4, 5), (N[0], N[1])),
        Launch(3, (place("input", 3), place("output", 4)), (), (N[0],)),
    )
    inputs = (
        InputSpec(F8, (3, N[1]), False),
        InputSpec(F8, (), True),
        InputSpec(np.dtype("?"), (3,), False),
        InputSpec(np.dtype("f2"), (3,), False),
        InputSpec(np.dtype("i8"), (), True),
        InputSpec(np.dtype("c16"), (), True),
    )
    outputs = (
        OutputSpec("fresh", F8, (N[0], N[1]), (1, 0)),
        OutputSpec("fresh", F8, ()),
        OutputSpec("alias", F8, (N[0],), input=0, offset=2 * N[1] + 1, strides=(-N[1],)),
        OutputSpec("input", F8, (N[0], N[1]), input=0),
        OutputSpec("fresh", np.dtype("f2"), (N[0],)),
    )
    names = [v.terms[0][0][0] for v in N]
    sources = {names[axis]: Source(0, "extent", axis) for axis in (0, 1)}
    return Plan(inputs, outputs, kernels, steps, 64, (), sources)


def test_a_module_stands_alone(tmp_path: Path) -> None:
    compiler = find_compiler()
    if compiler is None or compiler.kind == "zig":
        pytest.skip("setuptools needs g++ or clang++")
    arguments = ("x", "factor", "flags", "halves", "count", "z")
    module = Module("scaled", arguments, "r0, r1, r2, r3, r4")
    native, wrapper = print_cython(plan(), module)
    (tmp_path / "scaled_native.cpp").write_text(native)
    (tmp_path / "scaled.pyx").write_text(wrapper)
    (tmp_path / "setup.py").write_text(print_setup(module, compiler))
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


def test_python_calls_are_refused() -> None:
    """A module has no Python side to sort or invert for it."""
    made = plan()
    sort = Op("sort", Kind.EXTERN, lambda *_: None)
    with pytest.raises(NotStandalone):
        print_cython(replace(made, steps=(Call(1, sort, 0, (), ()),)), Module("s", ("x",), "r0"))
