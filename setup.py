"""Builds npjit._runtime from runtime/; everything else about the package is in pyproject.toml."""

from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

RUNTIME = Path("runtime")


def runtime_extension() -> Extension:
    """Cython's module and the C++ beside it, without OpenMP and without a BLAS to link."""
    parts = sorted(path for path in RUNTIME.glob("*.cpp") if path.name != "_runtime.cpp")
    headers = sorted([*RUNTIME.glob("*.h"), *RUNTIME.glob("*.pxi")])
    return Extension(
        "npjit._runtime",
        sources=[str(RUNTIME / "_runtime.pyx"), *map(str, parts)],
        depends=[str(path) for path in headers],
        include_dirs=[str(RUNTIME), numpy.get_include()],
        language="c++",
        extra_compile_args=["-std=c++17", "-O2", "-fvisibility=hidden"],
        libraries=["dl", "pthread"],
    )


setup(ext_modules=cythonize([runtime_extension()], build_dir="build/cython"))
