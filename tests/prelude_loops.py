"""Small loops in C++ over the prelude, compiled and compared with NumPy.

In: expressions such as "nj_sin(v0)" with their types, as NumPy's type codes. Out: arrays:

    check([("nj_sin(v0)", "d", "d", np.sin)], ulp=TRANSCENDENTAL)

compiles a loop per expression, runs each over special and random values, and compares.
"""

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npjit.codegen.prelude import prelude_text
from npjit.codegen.toolchain import compile_object, find_compiler
from npjit.core.tolerance import assert_equal_numpy, ulp_distance

COMPILER = find_compiler()
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
VECTOR: frozenset[str] = COMPILER.vector if COMPILER is not None else frozenset()

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


def _load_text(code: str, k: int) -> str:
    return f"nj_truth(a{k}[i])" if code == "?" else f"a{k}[i]"


class Kernels:
    """Loops over arrays, one per expression, compiled as one unit."""

    def __init__(self, optimise: str = "-O1", vector: frozenset[str] | None = None) -> None:
        self.optimise = optimise
        self.vector = VECTOR if vector is None else vector
        self.sources: list[str] = []

    def add(self, expression: str, inputs: str, output: str) -> str:
        """A loop that stores `expression` of v0, v1, ...; its name."""
        name = f"k{len(self.sources)}"
        types = [C_TYPES[code] for code in inputs]
        arguments = [f"const {kind}* __restrict a{k}" for k, kind in enumerate(types)]
        loads = [
            f"const b1 v{k} = nj_truth(a{k}[i]);"
            if code == "?"
            else f"const {kind} v{k} = a{k}[i];"
            for k, (code, kind) in enumerate(zip(inputs, types, strict=True))
        ]
        out = "b1" if output == "?" else C_TYPES[output]
        self.sources.append(
            f'extern "C" void {name}({", ".join(arguments)},'
            f" {C_TYPES[output]}* __restrict o, i64 n) {{\n"
            f"#pragma omp simd\n  for (i64 i = 0; i < n; ++i) {{\n    {' '.join(loads)}\n"
            f"    const {out} r = {expression};\n    o[i] = r;\n  }}\n}}\n"
        )
        return name

    @functools.cached_property
    def path(self) -> Path:
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
    pairs = [
        np.concatenate([g.ravel(), a[:count]])
        for g, a in zip(grid, (one, other[rest]), strict=True)
    ]
    # A whole number of vectors: NumPy's casts of what does not fit differ in the last elements.
    return [pair[: len(pair) // 64 * 64].copy() for pair in pairs]


def run_c(body: str, *arguments: object, optimise: str = "-O3") -> None:
    """Calls `extern "C" void f(...)`, given by its parameters and body."""
    code = f'extern "C" void f{body}\n'
    path = compile_object(prelude_text(code, VECTOR) + code, optimise=optimise)
    plain = [
        ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_longlong(a)
        for a in arguments
    ]
    _load(path).f(*plain)
