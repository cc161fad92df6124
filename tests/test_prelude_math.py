"""The prelude's math functions are NumPy's within 4 ulp, by libmvec and by series, as vectors."""

import math
import re
import shutil
import subprocess

import numpy as np
import pytest
from scipy import special

from npjit.codegen.prelude import prelude_text
from npjit.codegen.toolchain import compile_object, cpu_features
from npjit.core.tolerance import TRANSCENDENTAL
from tests.prelude_loops import C_TYPES, FLOATS, VECTOR, check, needs_compiler

pytestmark = needs_compiler

NAMES = (
    "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log"
    " log2 log10 log1p cbrt"
)
MATH_UNARY = {name: getattr(np, name) for name in NAMES.split()} | {
    "erf": lambda x: special.erf(x.astype(np.float64)).astype(x.dtype),
    # SciPy's loses digits where exp(-x * x) is small.
    "erfc": lambda x: np.array([math.erfc(v) for v in x.tolist()]).astype(x.dtype),
}
MATH_BINARY = {name: getattr(np, name) for name in ("arctan2", "power", "hypot")}
VECTOR_SETS = [pytest.param(None, id="libmvec"), pytest.param(frozenset(), id="series")]


@pytest.mark.parametrize("code", FLOATS)
@pytest.mark.parametrize("vector", VECTOR_SETS)
def test_math(code: str, vector: frozenset[str] | None) -> None:
    cases = [(f"nj_{n}(v0)", code, code, function) for n, function in MATH_UNARY.items()]
    cases += [(f"nj_{n}(v0, v1)", code * 2, code, f) for n, f in MATH_BINARY.items()]
    check(cases, ulp=TRANSCENDENTAL, optimise="-O3", vector=vector)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_quick_forms(name: str) -> None:
    text = f"nj_select(nj_is_near(v0), nj_near_{name}(v0), nj_{name}(v0))"
    check([(text, "f", "f", getattr(np, name))], ulp=TRANSCENDENTAL)


@pytest.mark.parametrize("kind", "fd")
def test_sums_of_logarithms(kind: str) -> None:
    # arguments of which one is at least 20 off 0: near a result of 0 NumPy's own digits are lost
    half, shift = np.array(0.5, kind), np.array(20.0, kind)
    other = f"({C_TYPES[kind]})(v0 * 0.5 + 20.0)"
    cases = [
        (f"nj_{name}(nj_absolute(v0), {other})", kind, kind, function)
        for name, function in (
            ("logaddexp", lambda x: np.logaddexp(np.abs(x), x * half + shift)),
            ("logaddexp2", lambda x: np.logaddexp2(np.abs(x), x * half + shift)),
        )
    ]
    cases += [
        ("nj_logaddexp(v0, v0)", kind, kind, lambda x: np.logaddexp(x, x)),
        ("nj_logaddexp2(v0, v0)", kind, kind, lambda x: np.logaddexp2(x, x)),
        ("nj_logaddexp(v0, -v0)", kind, kind, lambda x: np.logaddexp(x, -x)),
    ]
    check(cases, ulp=TRANSCENDENTAL)


@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
@pytest.mark.skipif("avx2" not in cpu_features(), reason="the series need AVX2 for their angles")
@pytest.mark.parametrize("vector", VECTOR_SETS)
@pytest.mark.parametrize("code", "fd")
def test_math_is_vector_code(code: str, vector: frozenset[str] | None) -> None:
    unary = [*MATH_UNARY, "sqrt", "floor", "rint", "sign", "absolute", "modf_fraction"]
    calls = {name: f"nj_{name}(x[i])" for name in unary}
    calls |= {name: f"nj_{name}(x[i], y[i])" for name in (*MATH_BINARY, "maximum", "logaddexp")}
    calls["where"] = "nj_select(x[i] > 0, nj_exp(x[i]), nj_log(y[i]))"
    calls["masked"] = "nj_select((x[i] > 0) | (y[i] < 3), nj_tanh(x[i]) * 2, x[i])"
    kind = C_TYPES[code]
    z = f"cplx<{kind}>"
    for name, operator in (("add", "+"), ("multiply", "*"), ("divide", "/")):
        calls[f"complex_{name}"] = f"({z}{{x[i], y[i]}} {operator} {z}{{y[i], x[i]}}).im"
    calls["complex_absolute"] = f"nj_absolute({z}{{x[i], y[i]}})"
    calls["half"] = "nj_cast<f16>(x[i]) * nj_cast<f16>(y[i]) < f16{0} ? x[i] : y[i]"
    for integer in ("i8", "u16", "i32", "u32"):
        calls[f"cast_{integer}"] = f"({kind})nj_cast<{integer}>(x[i])"
    # A trip count that every vector length divides: what is scalar is not the loop's remainder.
    functions = [
        f'extern "C" void f_{name}(const {kind}* __restrict x, const {kind}* __restrict y,'
        f" {kind}* __restrict o) {{\n#pragma omp simd\n"
        f"  for (i64 i = 0; i < 1024; ++i) o[i] = {call};\n}}\n"
        for name, call in calls.items()
    ]
    text = "".join(functions)
    path = compile_object(prelude_text(text, VECTOR if vector is None else vector) + text)
    listing = subprocess.run(
        ["objdump", "-d", str(path)], capture_output=True, text=True, check=True
    )
    scalar: dict[str, list[str]] = {}
    for part in listing.stdout.split("\n\n"):
        found = re.match(r"\w+ <f_(\w+)>:", part.strip())
        if found is None:
            continue
        calls_found = re.findall(r"call\s+\w+ <(?!_ZGV)(\w+)", part)
        steps_found = re.findall(r"\sv?(?:mul|add|sub|div|sqrt|fn?m\w+)s[sd]\s", part)
        scalar[found[1]] = calls_found + steps_found
    assert scalar.keys() == calls.keys()
    assert not [name for name, steps in scalar.items() if steps]
