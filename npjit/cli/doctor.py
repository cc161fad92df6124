"""python -m npjit doctor: what npjit finds on this machine, and what to install.

In: nothing. Out: one line per finding on standard output, then advice; status 1 if the processor's
native backend cannot run or a backend gives a wrong result.

    ok    compiler    gcc: g++ (Debian 12.2.0) 12.2.0
    --    cuda        no GPU driver (libcuda.so.1 cannot be loaded)
"""

import argparse
import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import npjit
from npjit import _runtime
from npjit.backends import registry
from npjit.codegen.cache import open_cache
from npjit.codegen.toolchain import cpu_features, find_compiler

VECTOR_MATH = ("sin", "cos", "exp", "log", "pow", "tanh", "erf", "log1p", "expm1", "atan2")
REPORT = "please report it: a backend that is installed should run"


@dataclass(frozen=True)
class Finding:
    """One line of the report. `wrong` makes doctor fail; `advice` is printed at the end."""

    subject: str
    good: bool
    text: str
    advice: str = ""
    wrong: bool = False


def find_versions() -> Finding:
    text = f"Python {platform.python_version()}, NumPy {np.__version__}, npjit {npjit.__version__}"
    return Finding("versions", True, text)


def find_cxx() -> Finding:
    compiler = find_compiler()
    if compiler is None:
        return Finding("compiler", False, "none found", missing("cpp"))
    return Finding("compiler", True, f"{compiler.kind}: {compiler.version}")


def find_processor() -> Finding:
    flags = set(cpu_features().split())
    best = next((f for f in ("avx512f", "avx2", "asimd", "sse2") if f in flags), "none known")
    return Finding("processor", True, f"{platform.machine()}, widest vector instructions: {best}")


def find_vector_math() -> Finding:
    compiler = find_compiler()
    known = compiler.vector if compiler else frozenset()
    missing = [name for name in VECTOR_MATH if name not in known]
    if not missing:
        return Finding("libmvec", True, f"{len(known)} vector functions")
    text = f"without {' '.join(missing)}: npjit's own polynomials serve instead"
    return Finding("libmvec", bool(known), text)


def find_blas() -> Finding:
    blas = _runtime.blas_info()
    if blas.get("path"):
        return Finding("blas", True, f"NumPy's own: {os.path.basename(blas['path'])}")
    return Finding("blas", False, "NumPy has loaded no 64-bit OpenBLAS; products use plain loops")


def find_threads() -> Finding:
    processors = len(os.sched_getaffinity(0))
    text = f"{_runtime.num_threads()} of {processors} processors (NPJIT_NUM_THREADS sets it)"
    return Finding("threads", True, text)


def find_cache() -> Finding:
    cache = open_cache()
    if cache.temporary:
        return Finding("cache", False, "the directory is not used, see above; nothing is kept")
    stats = cache.stats()
    size = f"{stats.size / 2**20:.1f} MiB"
    return Finding("cache", True, f"{stats.directory}: {stats.entries} entries, {size}")


def find_driver() -> Finding:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Finding("driver", False, "no GPU driver (libcuda.so.1 cannot be loaded)")
    count = ctypes.c_int()
    version = ctypes.c_int()
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    driver.cuDriverGetVersion(ctypes.byref(version))
    release = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    if status:
        return Finding("driver", False, f"{release}, but the driver answers with error {status}")
    extra = "cuda13" if version.value >= 13000 else "cuda12"
    has_cupy = importlib.util.find_spec("cupy") is not None
    advice = "" if has_cupy or not count.value else f"CuPy: pip install 'npjit[{extra}]'"
    return Finding("driver", count.value > 0, f"{release}, {count.value} GPU(s)", advice)


def find_cupy() -> Finding:
    for package in ("cupy-cuda12x", "cupy-cuda13x", "cupy"):
        try:
            return Finding("cupy", True, f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return Finding("cupy", False, "not installed")


def missing(backend: str) -> str:
    """What to install for a backend; nothing when its parts are there."""
    compiler = find_compiler() is not None
    if backend in ("cpp", "cython") and not compiler:
        return "a C++ compiler: install g++ or clang, or pip install 'npjit[compiler]'"
    if backend == "cython" and importlib.util.find_spec("Cython") is None:
        return "Cython: pip install 'npjit[cython]'"
    if backend == "numba" and importlib.util.find_spec("numba") is None:
        return "Numba: pip install 'npjit[numba]'"
    return ""


def run_backends() -> Iterator[Finding]:
    """A small function on every backend that npjit knows, against NumPy."""
    for name in registry.names():
        if name == "cuda" and not (find_driver().good and find_cupy().good):
            yield Finding(name, False, "needs a GPU with its driver, and CuPy")
        elif missing(name):
            yield Finding(name, False, "not installed", missing(name), wrong=name == "cpp")
        else:
            yield run_backend(name)


def run_backend(name: str) -> Finding:
    def f(x):
        return np.sum(np.exp(-x * x) * 2.0, axis=1)

    x = np.linspace(-1.0, 1.0, 24).reshape(4, 6)
    compiled = npjit.jit(f, backend=name, fullgraph=True)
    start = time.perf_counter()
    try:
        got = compiled(x)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        return Finding(name, False, text, REPORT, wrong=name == "cpp")
    seconds = time.perf_counter() - start
    calls = compiled.cache_info()
    if not calls["whole"]:
        text = f"not used: {', '.join(calls['refusals'])}"
        return Finding(name, False, text, REPORT, wrong=name == "cpp")
    if not np.allclose(got, f(x), rtol=1e-12, atol=0.0):
        return Finding(name, False, f"gives {got}, not {f(x)}", REPORT, wrong=True)
    return Finding(name, True, f"runs a kernel rightly, first call {seconds * 1e3:.0f} ms")


CHECKS: tuple[Callable[[], Finding], ...] = (
    find_versions,
    find_cxx,
    find_processor,
    find_vector_math,
    find_blas,
    find_threads,
    find_cache,
    find_driver,
    find_cupy,
)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m npjit doctor", description=__doc__.splitlines()[0])
    parser.parse_args(argv)
    findings = []
    for finding in (*(check() for check in CHECKS), *run_backends()):
        findings.append(finding)
        print(f"{'ok' if finding.good else '--':5} {finding.subject:10} {finding.text}", flush=True)
    advice = sorted({finding.advice for finding in findings if finding.advice})
    if advice:
        print("\nTo have more:")
    for line in advice:
        print(f"  {line}")
    return 1 if any(finding.wrong for finding in findings) else 0
