"""The printed text itself: golden files for each form, and properties of vector loops."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

import npjit
from npjit.codegen.cpp import print_cpp, print_functions
from npjit.codegen.cpp_form import Form, choose
from npjit.codegen.toolchain import compile_object, find_compiler
from npjit.schedule.plan import Plan
from tests.plan_runner import (
    ADD,
    CAST,
    COS,
    DIVIDE,
    EXP,
    MULTIPLY,
    SIN,
    SQRT,
    SUBTRACT,
    KernelBuilder,
    N,
    S,
    single,
)

MATRIX = {0: S[1], 1: 1}


def sum_of_squares() -> Plan:
    k = KernelBuilder([S[0]], (0,), [("f8", "in"), ("f8", "out")])
    x = k.load(0, {0: 1})
    s, c = k.apply(SIN, "f8", x), k.apply(COS, "f8", x)
    squares = k.apply(MULTIPLY, "f8", s, s), k.apply(MULTIPLY, "f8", c, c)
    k.store(1, {0: 1}, k.apply(ADD, "f8", *squares))
    return single(k, [np.zeros(3)], [("f8", (N[0],))], (N[0],))


def softmax() -> Plan:
    k = KernelBuilder([S[0], S[1]], (0,), [("f4", "in"), ("f4", "row", S[1]), ("f4", "out")])
    k.phase(1)
    top = k.reduce("max", "f4", k.load(0, MATRIX))
    k.phase(1)
    e = k.apply(EXP, "f4", k.apply(SUBTRACT, "f4", k.load(0, MATRIX), top))
    k.store(1, {1: 1}, e)
    total = k.reduce("sum", "f4", e)
    k.phase(1)
    k.store(2, MATRIX, k.apply(DIVIDE, "f4", k.load(1, {1: 1}), total))
    return single(k, [np.zeros((2, 3), "f4")], [("f4", (N[0], N[1]))], (N[0], N[1]))


def centred_columns() -> Plan:
    k = KernelBuilder([S[0], S[1]], (1,), [("f8", "in"), ("f8", "out")])
    k.phase(0)
    total = k.reduce("sum", "f8", k.load(0, MATRIX))
    k.phase()
    mean = k.apply(DIVIDE, "f8", total, k.apply(CAST, "f8", k.extent(S[0])))
    k.phase(0)
    k.store(1, MATRIX, k.apply(SUBTRACT, "f8", k.load(0, MATRIX), mean))
    return single(k, [np.zeros((2, 3))], [("f8", (N[0], N[1]))], (N[0], N[1]))


def distances() -> Plan:
    k = KernelBuilder([S[0], S[1], 3], (0, 1), [("f8", "in"), ("f8", "in"), ("f8", "out")])
    k.phase(2)
    d = k.apply(SUBTRACT, "f8", k.load(0, {0: 3, 2: 1}), k.load(1, {1: 3, 2: 1}))
    total = k.reduce("sum", "f8", k.apply(MULTIPLY, "f8", d, d))
    k.phase()
    k.store(2, MATRIX, k.apply(SQRT, "f8", total))
    points = np.zeros((2, 3))
    return single(k, [points, points], [("f8", (N[0], N[2]))], (N[0], N[2]))


def mean_and_position() -> Plan:
    k = KernelBuilder([S[0], S[1]], (), [("f8", "in"), ("f8", "out"), ("i8", "out")])
    k.phase(0, 1)
    x = k.load(0, MATRIX)
    total, best = k.reduce("sum", "f8", x), k.reduce("argmax", "i8", x)
    k.phase()
    count = k.apply(CAST, "f8", k.extent(S[0] * S[1]))
    k.store(1, {}, k.apply(DIVIDE, "f8", total, count))
    k.store(2, {}, best)
    return single(k, [np.zeros((2, 3))], [("f8", ()), ("i8", ())], (N[0], N[1]))


PLANS = {
    Form.MAP: sum_of_squares,
    Form.ROWS: softmax,
    Form.COLUMNS: centred_columns,
    Form.LANES: distances,
    Form.WHOLE: mean_and_position,
}


@pytest.mark.parametrize("form", PLANS)
def test_golden(form: Form, golden: Callable[[str, str], None]) -> None:
    plan = PLANS[form]()
    assert choose(plan.kernels[0]) is form
    golden(f"cpp_{form.value}.cpp", print_functions(plan))


@pytest.mark.parametrize("form", PLANS)
def test_names_do_not_clash(form: Form) -> None:
    """No variable is called like a type of the prelude (f32, i8, ...), whatever its number."""
    text = print_functions(PLANS[form]())
    declared = re.findall(r"(?:[a-z]\w*[&*]?) (?:const )?(\w+)(?:\[\w+\])? =", text)
    assert declared
    assert not [name for name in declared if re.fullmatch(r"[biufc]\d+", name)]


def test_equal_kernels_have_equal_text() -> None:
    """No name of the table reaches the text."""
    before = print_functions(sum_of_squares())
    assert "sin" in before
    assert not re.search(r"\b(add|multiply|cos|sin)\b", before)


def test_bounds_of_outer_axes_leave_the_vector_loop() -> None:
    """g++ makes no vectors of a loop that joins its own comparisons with fixed booleans."""
    k = KernelBuilder([S[0], S[1]], (0, 1), [("f4", "in"), ("f4", "out")])
    x = k.load(0, MATRIX, -1, [(0, 2, S[0]), (1, 1, S[1])])
    k.store(1, MATRIX, k.inside(x, "f4", (0, 0, S[0] - 1)))
    text = print_functions(single(k, [np.zeros((2, 3), "f4")], [("f4", (N[0], N[1]))], N[:2]))
    _, loop = text.split("#pragma omp simd")
    assert "x0 >=" not in loop
    assert "x0 <" not in loop
    assert "&&" not in loop


def test_padding_that_one_range_decides_leaves_the_vector_loop() -> None:
    k = KernelBuilder([S[0], S[1]], (0, 1), [("f4", "in"), ("f4", "out")])
    k.store(1, MATRIX, k.load(0, MATRIX, -1, [(0, 2, S[0]), (1, 1, S[1])]))
    text = print_functions(single(k, [np.zeros((2, 3), "f4")], [("f4", (N[0], N[1]))], N[:2]))
    _, before, inside, behind = text.split("#pragma omp simd")
    assert "true ? mem0" in inside
    assert "false ? mem0" in before
    assert "false ? mem0" in behind


@pytest.mark.parametrize("form", [Form.MAP, Form.ROWS])
@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
def test_math_in_vector_loops(form: Form) -> None:
    """With libmvec the loops call its vector variants; scalar calls stand only behind them."""
    compiler = find_compiler()
    if compiler is None or not {"sin", "cos", "expf"} <= compiler.vector:
        pytest.skip("needs a compiler with libmvec")
    path = compile_object(print_cpp(PLANS[form](), compiler.vector), compiler=compiler)
    shown = subprocess.run(["objdump", "-d", path], capture_output=True, text=True, check=True)
    assert re.search(r"call.*_ZGV[bcde]N\d+v_(sin|expf)", shown.stdout)


def test_offsets_into_the_arena_are_computed_once() -> None:
    def f(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        c = a @ b
        d = np.sort(c) @ a
        for i in range(len(a)):
            d[i] = d[i] @ c + b[i]
        return d @ b

    text = npjit.jit(f).lower(np.ones((30, 30)), np.ones((30, 30))).as_text("cpp")
    offsets = re.findall(r"arena \+ ([^,;]*n0[^,;]*)", text)
    assert len(offsets) == len(set(offsets)) == 2
