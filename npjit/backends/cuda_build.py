"""Machine code for printed CUDA sources: NVRTC through CuPy's bindings, kept in npjit's disk cache.

In: a module's source and the instances of its functions that are wanted. Out: handles of the
driver's functions. CuPy's own `RawModule` is not used: it compiles with flushing of numbers below
the normal ones, which NumPy does not do.

    key, functions = load_functions(source, ["k0<i32, 4, 0x24ull>"], OPTIONS)
    functions = load_code(key)                          # in another process, without the source
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from npjit.codegen.cache import digest, open_cache


class CudaCompileError(RuntimeError):
    """NVRTC refused a source: a defect of npjit's printer."""


def load_functions(
    source: str, names: Sequence[str], options: tuple[str, ...]
) -> tuple[str, dict[str, int]]:
    """The key of the functions' machine code; and the functions, loaded on the current device."""
    options = (f"--gpu-architecture={architecture()}", *options)
    key = digest("cuda", source, *names, *options, str(_version()))
    found = load_code(key)
    if found is None:
        code, lowered = _compile(source, names, options)
        open_cache().put_blob(key, json.dumps(lowered).encode() + b"\0" + code)
        found = _load(code, lowered)
    return key, found


def load_code(key: str) -> dict[str, int] | None:
    """The functions of what was compiled before, loaded; None if the cache has it no more."""
    stored = open_cache().get_blob(key)
    if stored is None:
        return None
    head, _, code = stored.partition(b"\0")
    return _load(code, json.loads(head))


def _load(code: bytes, lowered: Mapping[str, str]) -> dict[str, int]:
    from cupy_backends.cuda.api import driver

    module = driver.moduleLoadData(code)
    _loaded.append(module)
    return {name: driver.moduleGetFunction(module, known) for name, known in lowered.items()}


# modules stay loaded as long as the process lives
_loaded: list[int] = []


@functools.cache
def _version() -> tuple[int, int]:
    from cupy_backends.cuda.libs import nvrtc

    found: tuple[int, int] = nvrtc.getVersion()
    return found


def architecture() -> str:
    """The current device's machine language; Hopper's with what no other has (wgmma)."""
    import cupy

    found = cupy.cuda.Device().compute_capability
    return f"sm_{found}a" if found == "90" else f"sm_{found}"


def _compile(
    source: str, names: Sequence[str], options: tuple[str, ...]
) -> tuple[bytes, dict[str, str]]:
    """Machine code, and the names of the functions in it."""
    from cupy_backends.cuda.libs import nvrtc

    program: Any = nvrtc.createProgram(source, "npjit.cu", (), ())
    try:
        for name in names:
            nvrtc.addNameExpression(program, name)
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as e:
            raise CudaCompileError(f"{e}\n{nvrtc.getProgramLog(program)}") from None
        lowered = {name: nvrtc.getLoweredName(program, name) for name in names}
        return nvrtc.getCUBIN(program), lowered
    finally:
        nvrtc.destroyProgram(program)
