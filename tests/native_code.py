"""Hand-written compiled graphs for the runtime's tests: C++ text in, a loaded NativeObject out.

double_it = compile_native(tmp_path, "1-d float64 x -> fresh x * 2", PREPARE, RUN)
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from npjit._runtime import Entry, NativeObject, describe_array

ABI = Path(__file__).parent.parent / "runtime" / "abi.h"
NEEDS_COMPILER = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def compile_source(folder: Path, body: str) -> Path:
    """Compile `body` behind the text of abi.h; the object's path."""
    name = hashlib.sha1(body.encode()).hexdigest()[:16]
    built = folder / f"{name}.so"
    if not built.exists():
        source = folder / f"{name}.cpp"
        source.write_text(ABI.read_text() + body)
        command = ["g++", "-std=c++17", "-O2", "-shared", "-fPIC", "-o", built, source]
        subprocess.run(command, check=True)
    return built


def compile_native(folder: Path, prepare: str, run: str, declarations: str = "") -> NativeObject:
    """A compiled graph from the bodies of its two functions."""
    body = f"""
{declarations}
extern "C" int npjit_prepare(const npjit_int64* in, npjit_int64* out) {{
  out[0] = 0;
  {prepare}
  return 0;
}}
extern "C" int npjit_run(const npjit_api* api, const npjit_int64* in, const npjit_int64* out,
                         char* const* buffers, char* arena) {{
  {run}
  return 0;
}}
"""
    return NativeObject(str(compile_source(folder, body)))


def array_step(position: int, array: np.ndarray, writeable: object = None) -> tuple:
    """A step for a positional argument like `array`, of any extents from 2 on."""
    dtype, ndim, extents, layout = describe_array(array)
    loose = tuple(extent if extent < 2 else -1 for extent in extents)
    return ("arg", position), ("array", dtype, ndim, loose, layout, writeable)


def entry_of(native: NativeObject | None, steps: list, outputs: list, **changes: object) -> Entry:
    """A "whole" entry: each step is a positional argument and an input; output 0 is the result."""
    fields: dict = {
        "mode": "whole",
        "npositional": len(steps),
        "kwnames": (),
        "steps": tuple(steps),
        "inputs": tuple(range(len(steps))),
        "outputs": tuple(outputs),
        "tree": ("leaf", 0),
        "native": native,
    }
    return Entry(**(fields | changes))


# One 1-d float64 array: a fresh array of x * 2 + 1.
SCALE_PREPARE = "out[1] = in[1];"
SCALE_RUN = """
  const double* x = (const double*)in[0];
  double* y = (double*)buffers[0];
  for (npjit_int64 i = 0; i < in[1]; ++i) y[i] = x[i] * 2 + 1;
"""
FLOAT64 = np.dtype(np.float64).num
