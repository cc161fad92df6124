"""The prelude's functions give NumPy's results, and math functions are vector code."""

import ctypes
import functools
import math
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from npjit.codegen.prelude import prelude_text
from npjit.codegen.toolchain import Compiler, compile_object, find_compiler
from npjit.core.tolerance import TRANSCENDENTAL, assert_equal_numpy, sum_bound, ulp_distance

COMPILER = find_compiler()
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

C_TYPES = {
    "?": "u8", "b": "i8", "h": "i16", "i": "i32", "q": "i64", "B": "u8", "H": "u16", "I": "u32",
    "Q": "u64", "e": "f16", "f": "f32", "d": "f64", "F": "c64", "D": "c128",
}  # fmt: skip
INTS = "bhiqBHIQ"
FLOATS = "efd"
COMPLEX = "FD"

SPECIAL = [
    0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, -2.2e-308, 1e-45,
    -1e-45, 1e-40, 6e-8, -6e-5, 1e-38, 1e308, -1.7e308, 3e38, -3.4e38, 65504.0, 65519.0, 65520.0,
    0.5, -0.5, 1.5, 2.5, -2.5, 2.0, 3.0, -3.0, 7.0, 127.0, 128.0, -129.0, 255.0, 256.0, 32768.0,
    65536.0, 2.0**31, -(2.0**31), 2.0**32 + 5, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64, 1e10,
    -1e22, 1e-10, 0.3, -0.7, 709.78, 709.79, -745.13, -745.14, -708.5, 88.7, 88.8, -103.97, -104.0,
    1023.5, 1024.0, -1074.0, -1075.0, 127.5, -149.0, -150.0, 710.0, 710.5, 89.4, 37.0, 11.2, -17.5,
]  # fmt: skip


def values(code: str, count: int = 4000, seed: int = 0) -> np.ndarray:
    """Special values, then random ones of every size."""
    rng = np.random.default_rng(seed)
    if code == "?":
        return rng.integers(0, 2, count).astype("?")
    if code in INTS:
        info = np.iinfo(code)
        edges = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 8, 31, 63, 64]
        edges += [info.bits - 1, info.bits] + ([-1, -2, -7, -8, -64] if info.min else [])
        small = rng.integers(max(info.min, -20), 20, count // 2, dtype=code)
        wide = rng.integers(info.min, info.max, count // 2, dtype=code, endpoint=True)
        return np.concatenate([np.array(edges, object).astype(code), small, wide])
    with np.errstate(all="ignore"):
        if code in COMPLEX:
            return _complex_values(code, rng, count)
        spread = rng.normal(0, 1, count) * 10.0 ** rng.uniform(-8, 8, count)
        near = np.concatenate([rng.uniform(-1, 1, count), rng.uniform(-30, 30, count)])
        return np.concatenate([SPECIAL, near, 1 + near / 1e4, spread]).astype(code)


def _complex_values(code: str, rng: np.random.Generator, count: int) -> np.ndarray:
    edges = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, np.inf, -np.inf, np.nan, 1e-30, -30.0])
    re, im = (part.ravel() for part in np.meshgrid(edges, edges))
    out = np.empty(edges.size**2 + count, code)
    out.real = np.concatenate([re, rng.normal(0, 1, count) * 10.0 ** rng.uniform(-2, 1, count)])
    out.imag = np.concatenate([im, rng.normal(0, 1, count) * 10.0 ** rng.uniform(-2, 1, count)])
    return out


class Kernels:
    """Loops over arrays, one per expression, compiled as one unit."""

    def __init__(self, optimise: str = "-O1", vector: frozenset[str] | None = None) -> None:
        self.optimise = optimise
        self.vector = COMPILER.vector if vector is None and COMPILER is not None else vector or ()
        self.sources: list[str] = []

    def add(self, expression: str, inputs: str, output: str) -> str:
        """A loop that stores `expression` of v0, v1, ...; its name."""
        name = f"k{len(self.sources)}"
        types = [C_TYPES[code] for code in inputs]
        arguments = [f"const {kind}* __restrict a{k}" for k, kind in enumerate(types)]
        loads = [
            f"const b1 v{k} = nj_truth(a{k}[i]);" if code == "?" else f"const {kind} v{k} = a{k}[i];"
            for k, (code, kind) in enumerate(zip(inputs, types, strict=True))
        ]
        out = "b1" if output == "?" else C_TYPES[output]
        self.sources.append(
            f'extern "C" void {name}({", ".join(arguments)}, {C_TYPES[output]}* __restrict o, i64 n)'
            f" {{\n#pragma omp simd\n  for (i64 i = 0; i < n; ++i) {{\n    {' '.join(loads)}\n"
            f"    const {out} r = {expression};\n    o[i] = r;\n  }}\n}}\n"
        )
        return name

    @functools.cached_property
    def path(self) -> Path:
        assert isinstance(COMPILER, Compiler)
        code = "\n".join(self.sources)
        text = prelude_text(code, self.vector) + code
        return compile_object(text, optimise=self.optimise, compiler=COMPILER)

    def __call__(self, name: str, output: str, *arrays: np.ndarray) -> np.ndarray:
        out = np.empty(len(arrays[0]), output)
        run = getattr(_load(self.path), name)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)]
        run(*pointers, ctypes.c_longlong(len(out)))
        return out


@functools.cache
def _load(path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(path))


def check(
    cases: list[tuple[str, str, str, Callable[..., np.ndarray]]],
    *,
    ulp: int = 0,
    optimise: str = "-O1",
    vector: frozenset[str] | None = None,
) -> None:
    """Each case: expression, input codes, output code, and NumPy's function of the same arrays."""
    kernels = Kernels(optimise, vector)
    named = [(kernels.add(*case[:3]), case) for case in cases]
    for name, (expression, inputs, output, function) in named:
        arrays = [values(code, seed=k) for k, code in enumerate(inputs)]
        if len(arrays) == 2:
            arrays = _pairs(*arrays)
        with np.errstate(all="ignore"):
            want = function(*arrays)
        got = kernels(name, output, *arrays)
        try:
            assert_equal_numpy(got, want, ulp=ulp)
        except AssertionError as error:
            where = np.flatnonzero(~(ulp_distance(got, want) <= ulp)) if output in "efdFD" else []
            where = where if len(where) else np.flatnonzero(got != want)
            sample = [tuple(array[where[:3]]) for array in arrays]
            raise AssertionError(f"{expression} of {inputs}: {error}, at {sample}") from None


def _pairs(one: np.ndarray, other: np.ndarray) -> list[np.ndarray]:
    """Every special value with every other, then all the rest side by side."""
    few = min(90, len(one), len(other))
    grid = np.meshgrid(one[:few], other[:few])
    count = min(len(one), len(other))
    rest = np.random.default_rng(7).permutation(count)
    pairs = [np.concatenate([g.ravel(), a[:count]]) for g, a in zip(grid, (one, other[rest]), strict=True)]
    # A whole number of vectors: NumPy's casts of what does not fit differ in the last elements.
    return [pair[: len(pair) // 64 * 64].copy() for pair in pairs]


@pytest.mark.parametrize("source", "?" + INTS + FLOATS + COMPLEX)
def test_casts(source: str) -> None:
    targets = "?" + INTS + FLOATS + COMPLEX
    kernels = Kernels()
    names = {}
    for target in targets:
        kind = "b1" if target == "?" else C_TYPES[target]
        names[target] = kernels.add(f"nj_cast<{kind}>(v0)", source, target)
    array = values(source)
    array = array[: len(array) // 64 * 64].copy()
    for target in targets:
        with warnings.catch_warnings(action="ignore"):
            want = array.astype(target)
        assert_equal_numpy(kernels(names[target], target, array), want)


INT_BINARY = "floor_divide remainder fmod left_shift right_shift gcd lcm maximum minimum fmax fmin"


@pytest.mark.parametrize("code", INTS)
def test_integers(code: str) -> None:
    unary = "absolute sign negative square"
    check(
        [(f"nj_{n}(v0, v1)", code * 2, code, getattr(np, n)) for n in INT_BINARY.split()]
        + [(f"nj_{n}(v0)", code, code, getattr(np, n)) for n in unary.split()]
        + [("nj_bitwise_count(v0)", code, "B", np.bitwise_count)]
        + [("nj_power(v0, nj_absolute(nj_remainder(v1, v1)))", code * 2, code, lambda a, b: a**0)]
        + [("nj_power(v0, (decltype(v0))5)", code, code, lambda a: a ** np.array(5, code))]
    )


FLOAT_UNARY = (
    "floor ceil trunc rint sqrt reciprocal square fabs absolute negative positive sign spacing"
    " deg2rad rad2deg"
)
FLOAT_BINARY = (
    "copysign nextafter heaviside fmod remainder floor_divide maximum minimum"
)


@pytest.mark.parametrize("code", FLOATS)
def test_exact_floats(code: str) -> None:
    check(
        [(f"nj_{n}(v0)", code, code, getattr(np, n)) for n in FLOAT_UNARY.split()]
        + [(f"nj_{n}(v0, v1)", code * 2, code, getattr(np, n)) for n in FLOAT_BINARY.split()]
        + [(f"nj_{n}(v0)", code, "?", getattr(np, n)) for n in "isnan isinf isfinite signbit".split()]
        + [
            ("nj_modf_fraction(v0)", code, code, lambda x: np.modf(x)[0]),
            ("nj_modf_whole(v0)", code, code, lambda x: np.modf(x)[1]),
            ("nj_frexp_mantissa(v0)", code, code, lambda x: np.frexp(x)[0]),
            ("nj_frexp_exponent(v0)", code, "i", lambda x: np.frexp(x)[1]),
            ("nj_ldexp(v0, v1)", code + "i", code, np.ldexp),
            ("v0 + v1", code * 2, code, np.add),
            ("v0 - v1", code * 2, code, np.subtract),
            ("v0 * v1", code * 2, code, np.multiply),
            ("v0 / v1", code * 2, code, np.divide),
            ("v0 < v1", code * 2, "?", np.less),
            ("v0 >= v1", code * 2, "?", np.greater_equal),
            ("v0 == v1", code * 2, "?", np.equal),
        ]
    )  # fmt: skip


MATH_UNARY = {
    name: getattr(np, name)
    for name in (
        "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1"
        " log log2 log10 log1p cbrt"
    ).split()
} | {
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


def test_sums_of_logarithms() -> None:
    # near a result of 0 the rounding of the larger argument shows, in NumPy's result too
    code = "v0 * 0.5 + 20.0"
    cases = []
    for kind in "fd":
        other = f"({C_TYPES[kind]})({code})"
        for name, function in (("logaddexp", np.logaddexp), ("logaddexp2", np.logaddexp2)):
            half = np.array(0.5, kind), np.array(20.0, kind)
            cases.append((f"nj_{name}(nj_absolute(v0), {other})", kind, kind, function, half))
    for text, kind, _, function, (half, shift) in cases:
        reference = lambda x, f=function, h=half, s=shift: f(np.abs(x), x * h + s)  # noqa: E731
        check([(text, kind, kind, reference)], ulp=TRANSCENDENTAL)
    check(
        [("nj_logaddexp(v0, v0)", "d", "d", lambda x: np.logaddexp(x, x))]
        + [("nj_logaddexp(v0, -v0)", "d", "d", lambda x: np.logaddexp(x, -x))],
        ulp=TRANSCENDENTAL,
    )


COMPLEX_UNARY = (
    "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2"
    " log10 log1p sqrt"
)


@pytest.mark.parametrize("code", COMPLEX)
def test_complex(code: str) -> None:
    real = code.lower()
    check(
        [(f"nj_{n}(v0)", code, code, getattr(np, n)) for n in "conjugate negative positive rint".split()]
        + [(f"nj_{n}(v0)", code, "?", getattr(np, n)) for n in "isnan isinf isfinite".split()]
        + [
            ("v0 + v1", code * 2, code, np.add),
            ("v0 - v1", code * 2, code, np.subtract),
            ("v0 / v1", code * 2, code, np.divide),
            ("v0 == v1", code * 2, "?", np.equal),
            ("v0 != v1", code * 2, "?", np.not_equal),
            ("v0 < v1", code * 2, "?", np.less),
            ("v0 <= v1", code * 2, "?", np.less_equal),
            ("v0 > v1", code * 2, "?", np.greater),
            ("v0 >= v1", code * 2, "?", np.greater_equal),
            ("nj_maximum(v0, v1)", code * 2, code, np.maximum),
            ("nj_minimum(v0, v1)", code * 2, code, np.minimum),
            ("nj_fmax(v0, v1)", code * 2, code, np.fmax),
            ("nj_fmin(v0, v1)", code * 2, code, np.fmin),
            ("nj_reciprocal(v0)", code, code, np.reciprocal),
            ("nj_real(v0)", code, real, lambda x: x.real.copy()),
        ]
    )  # fmt: skip
    check(
        [
            ("v0 * v1", code * 2, code, np.multiply),
            ("nj_square(v0)", code, code, np.square),
            ("nj_sign(v0)", code, code, np.sign),
            ("nj_absolute(v0)", code, real, np.absolute),
            ("nj_angle(v0)", code, real, np.angle),
        ]
        + [(f"nj_{n}(v0)", code, code, getattr(np, n)) for n in COMPLEX_UNARY.split()]
        + [("nj_power(v0, v1)", code * 2, code, np.power)],
        ulp=TRANSCENDENTAL,
    )


def run_c(body: str, *arguments: object, optimise: str = "-O3") -> None:
    """Calls `extern "C" void f(...)`, given by its parameters and body."""
    assert isinstance(COMPILER, Compiler)
    code = f'extern "C" void f{body}\n'
    path = compile_object(prelude_text(code, COMPILER.vector) + code, optimise=optimise)
    plain = [
        ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_longlong(a)
        for a in arguments
    ]
    _load(path).f(*plain)


@pytest.mark.parametrize("code", "fd")
def test_cascade_is_as_good_as_pairwise(code: str) -> None:
    kind = C_TYPES[code]
    body = f"""(const {kind}* x, {kind}* out, i64 n) {{
      nj_cascade<{kind}> s;
      for (i64 b = 0; b < n; b += NJ_BLOCK({kind})) {{
        const i64 m = nj_size_min(NJ_BLOCK({kind}), n - b);
        {kind} t = 0;
      #pragma omp simd reduction(+ : t)
        for (i64 j = 0; j < m; ++j) t += x[b + j];
        s.push(t);
      }}
      *out = s.total();
    }}"""
    for count in (0, 1, 7, 129, 5000, 1_000_003):
        x = np.random.default_rng(count).uniform(0.1, 1, count).astype(code)
        got = np.empty((), code)
        run_c(body, x, got, count)
        exact = math.fsum(x.tolist())
        # half the distance that two sums may have: this one is compared with the exact sum
        assert abs(float(got) - exact) <= sum_bound(x) / 2 + np.spacing(exact) / 2
    sizes = np.array([1.0, 2.0**-60, -1.0], code)
    got = np.empty((), code)
    run_c(body, sizes, got, 3)
    assert_equal_numpy(got, np.asarray(sizes.sum()))


@pytest.mark.parametrize("code", "bBqQ?efd")
@pytest.mark.parametrize("sign", [1, -1])
def test_argument_and_identity(code: str, sign: int) -> None:
    kind = "b1" if code == "?" else C_TYPES[code]
    body = f"""(const {kind}* x, i64* out, {kind}* ends, i64 n) {{
      nj_argument<{kind}, {sign}> s;
      for (i64 b = 0; b < n; b += 100) s.push(x + b, nj_size_min(100, n - b), b);
      *out = s.at;
      ends[0] = nj_lowest<{kind}>();
      ends[1] = nj_highest<{kind}>();
    }}"""
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 50, 1000).astype(code), rng.integers(0, 2, 99).astype(code)]
    if code in "efd":
        rows += [np.where(rng.uniform(size=700) < 0.01, np.nan, rng.normal(size=700)).astype(code)]
        rows += [np.array([-np.inf, np.inf, np.inf, -np.inf], code), np.array([-0.0, 0.0], code)]
    for x in rows:
        at, ends = np.empty((), "q"), np.empty(2, code)
        run_c(body, x, at, ends, len(x))
        assert at == (np.argmax(x) if sign > 0 else np.argmin(x))
        assert ends[0] <= x.min() or np.isnan(x.min())
        limits = np.iinfo(code) if code in "bBqQ" else None
        assert limits is None or (ends[0], ends[1]) == (limits.min, limits.max)
        assert code not in "efd" or (ends[0], ends[1]) == (-np.inf, np.inf)


@pytest.mark.parametrize("code", "?" + INTS + FLOATS + COMPLEX)
def test_small_products(code: str) -> None:
    kind = "b1" if code == "?" else C_TYPES[code]
    stored = C_TYPES[code]
    rng = np.random.default_rng(1)
    scale = 100 if code in INTS else 2 if code == "?" else 8
    body = f"""(i64 m, i64 n, i64 k, const {stored}* a, i64 a0, i64 a1, const {stored}* b, i64 b0,
      i64 b1_, {stored}* c, {stored}* y, {stored}* d) {{
      nj_gemm<{kind}>(m, n, k, a, a0, a1, b, b0, b1_, c, n, 1);
      nj_gemv<{kind}>(m, k, a, a0, a1, b, b0, y, 1);
      *d = nj_dot<{kind}>(k, a, a1, b, b0);
    }}"""
    for m, n, k in ((3, 5, 4), (1, 1, 1), (9, 40, 17), (2, 3, 0)):
        for order in "CF":
            a = rng.integers(0, scale, (m, k)).astype(code, order=order)
            b = rng.integers(0, scale, (k, n)).astype(code, order=order)
            c, y, d = np.empty((m, n), code), np.empty(m, code), np.empty((), code)
            steps = [s // a.itemsize for s in (*a.strides, *b.strides)]
            run_c(body, m, n, k, a, *steps[:2], b, *steps[2:], c, y, d)
            # small whole numbers: every order of additions gives the same floats
            assert_equal_numpy(c, a @ b)
            assert_equal_numpy(y, a @ b[:, 0])
            assert_equal_numpy(d, np.asarray(a[0] @ b[:, 0]))


def test_sizes_and_indices() -> None:
    body = """(const i64* a, const i64* b, i64* out, i64 n) {
      for (i64 i = 0; i < n; ++i) {
        i32 failed = 0;
        out[5 * i] = nj_size_floordiv(a[i], b[i]);
        out[5 * i + 1] = nj_size_mod(a[i], b[i]);
        out[5 * i + 2] = nj_size_min(a[i], b[i]);
        out[5 * i + 3] = nj_size_max(a[i], b[i]);
        out[5 * i + 4] = nj_wrap_index(a[i], 5, &failed) + 100 * failed;
      }
    }"""
    pairs = [(a, b) for a in range(-8, 9) for b in range(-3, 4) if b]
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    out = np.empty((len(a), 5), np.int64)
    run_c(body, a, b, out, len(a))
    wrapped = [x % 5 if -5 <= x < 5 else 100 for x in a.tolist()]
    want = np.stack([a // b, a % b, np.minimum(a, b), np.maximum(a, b), wrapped], axis=1)
    assert_equal_numpy(out, want)


def test_half_rounds_like_numpy_everywhere() -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    kernels = Kernels("-O3")
    widen = kernels.add("nj_widen(v0)", "e", "f")
    narrow = kernels.add("nj_narrow(v0)", "f", "e")
    narrow64 = kernels.add("nj_narrow(v0)", "d", "e")
    finite = halves[np.isfinite(halves)].astype(np.float64)
    with np.errstate(all="ignore"):
        assert_equal_numpy(kernels(widen, "f", halves), halves.astype("f"))
        for step in (0.5, 0.5 + 2.0**-12, 0.5 - 2.0**-12, 0.5 + 2.0**-40, 0.5 - 2.0**-40):
            between = finite + step * np.spacing(halves[np.isfinite(halves)]).astype("d")
            single = between.astype("f")
            assert_equal_numpy(kernels(narrow, "e", single), single.astype("e"))
            assert_equal_numpy(kernels(narrow64, "e", between), between.astype("e"))


@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
@pytest.mark.parametrize("vector", VECTOR_SETS)
@pytest.mark.parametrize("code", "fd")
def test_math_is_vector_code(code: str, vector: frozenset[str] | None) -> None:
    unary = [*MATH_UNARY, "sqrt", "floor", "rint", "sign", "absolute", "modf_fraction"]
    calls = {name: f"nj_{name}(x[i])" for name in unary}
    calls |= {name: f"nj_{name}(x[i], y[i])" for name in (*MATH_BINARY, "maximum", "logaddexp")}
    calls["where"] = "nj_select(x[i] > 0, nj_exp(x[i]), nj_log(y[i]))"
    calls["masked"] = "nj_select((x[i] > 0) | (y[i] < 3), nj_tanh(x[i]) * 2, x[i])"
    kind = C_TYPES[code]
    # A trip count that every vector length divides: what is scalar is not the loop's remainder.
    functions = [
        f'extern "C" void f_{name}(const {kind}* __restrict x, const {kind}* __restrict y,'
        f" {kind}* __restrict o) {{\n#pragma omp simd\n  for (i64 i = 0; i < 1024; ++i) o[i] = {call};\n}}\n"
        for name, call in calls.items()
    ]
    assert isinstance(COMPILER, Compiler)
    text = "".join(functions)
    path = compile_object(prelude_text(text, COMPILER.vector if vector is None else vector) + text)
    listing = subprocess.run(["objdump", "-d", str(path)], capture_output=True, text=True, check=True)
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
