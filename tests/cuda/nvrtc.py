"""NVRTC from its wheel: CUDA sources compiled without GPU or driver.

In: a module's source and the names of functions. Out: their machine code for one architecture, or a
`CompileError`:

    cubin = compile_functions(source, ["k0<i32, 4, 0x24ull>"], "sm_90")
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from npjit.codegen.cuda import OPTIONS

BUILT = Path(__file__).parent.parent.parent / "build" / "test-cache" / "cuda"


class CompileError(Exception):
    """What NVRTC says about a source."""


@functools.cache
def library() -> Any:
    """The library of the nvidia-cuda-nvrtc wheel; None when it is not installed."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        return None
    if found is None:
        return None
    folder = Path(next(iter(found.submodule_search_locations))) / "lib"  # type: ignore[arg-type]
    return ctypes.CDLL(str(next(folder.glob("libnvrtc.so.*"))))


def compile_functions(
    source: str, functions: Sequence[str], architecture: str, given: Sequence[str] = OPTIONS
) -> bytes:
    """The cubin of these instances of a module's functions, kept for the next run."""
    options = [f"--gpu-architecture={architecture}", *given]
    key = hashlib.sha256("\0".join([source, *functions, *options]).encode()).hexdigest()[:20]
    built = BUILT / f"{key}.cubin"
    if not built.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        built.write_bytes(_compile(source, functions, options)[0])
    return built.read_bytes()


def report(
    source: str, functions: Sequence[str], architecture: str, given: Sequence[str] = OPTIONS
) -> str:
    """What the assembler says of registers, stack and shared memory."""
    options = [f"--gpu-architecture={architecture}", "--ptxas-options=-v", *given]
    return _compile(source, functions, options)[1]


def _compile(source: str, functions: Sequence[str], options: Sequence[str]) -> tuple[bytes, str]:
    """Machine code and log."""
    nvrtc = library()
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"npjit.cu", 0, None, None)
    for name in functions:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
    log = _text(nvrtc, program)
    if failed:
        raise CompileError(log)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, code)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw, log


def _text(nvrtc: Any, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.value.decode()
