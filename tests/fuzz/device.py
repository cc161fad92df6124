"""Programs on a GPU: the emulated one, or the real one where NPJIT_TEST_GPU is set.

In: programs. Out: for each a `Ran` of one call with NumPy's arrays, there and back, or with arrays
of the device:

    run_all(programs, npjit.jit, on_device=True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from npjit import _runtime
from npjit.backends import cuda
from npjit.core.trees import tree_map
from tests.cuda import fake_cupy
from tests.fuzz.batch import Ran
from tests.fuzz.program import Outcome, Program


def run_all(programs: Sequence[Program], make: Callable[..., Any], on_device: bool) -> list[Ran]:
    """Call every program once; results and arguments are NumPy's afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        cupy = fake_cupy.install(patch)
        patch.setenv("NPJIT_CHECK", "1")  # defects of npjit are raised
        return [_run(program, make, cupy if on_device else None) for program in programs]


def _run(program: Program, make: Callable[..., Any], cupy: Any) -> Ran:
    if cupy is None:
        jitted = make(program.function(), device="cuda")
        outcome = program.call(jitted)
    else:
        jitted = make(program.function())
        outcome = program.call(lambda *args: _there_and_back(cupy, jitted, args))
    info = jitted.cache_info()
    if info["whole"]:
        return Ran(outcome)
    if not info["refusals"]:
        return Ran(outcome, "a check of the compiled code failed")
    reason = next(iter(info["refusals"]))
    # the emulator's arrays are not for Python
    kept = None if cupy is not None and not fake_cupy.ON_GPU else outcome
    is_defect = reason.startswith(_DEFECTS) and program.call(program.function()).error is None
    return Ran(kept, reason.split(": ", 1)[-1], reason if is_defect else "")


# what is no refusal: code that does not build, a library that is called in a wrong way
_DEFECTS = ("AssertionError", "CalledProcessError", "CompileError", "FileNotFoundError", "KeyError")


def _there_and_back(cupy: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    blocks = _Blocks(cupy)
    result = function(*[blocks.up(a) for a in args])
    blocks.write()
    return tree_map(blocks.down, result)


class _Blocks:
    """Memory of NumPy's arrays and its copies on the device: views stay views."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        # by the address of NumPy's memory: that memory, and the device's
        self.known: dict[int, tuple[np.ndarray, Any]] = {}
        # by identity: a result may come twice
        self.results: dict[int, np.ndarray] = {}

    def up(self, value: Any) -> Any:
        """An argument on the device."""
        if not isinstance(value, np.ndarray) or not value.size:
            return self.cupy.asarray(value) if isinstance(value, np.ndarray) else value
        root = value
        while isinstance(root.base, np.ndarray):
            root = root.base
        flat = root.ravel(order="K")
        _, block = self.known.setdefault(flat.ctypes.data, (flat, self.cupy.asarray(flat)))
        offset = (value.ctypes.data - flat.ctypes.data) // value.itemsize
        strides = tuple(s // value.itemsize for s in value.strides)
        return cuda.device(0).part_of(block, value.shape, offset, strides)

    def write(self) -> None:
        """What the call wrote, into NumPy's memory."""
        for flat, block in self.known.values():
            flat[...] = block.get()

    def down(self, value: Any) -> Any:
        """A result: views of arguments are that; CuPy has 0-d arrays for numbers."""
        if not _runtime.is_device_array(value):
            return value
        if not value.shape:
            return value.get()[()]
        for flat, block in self.known.values():
            offset = value.data.ptr - block.data.ptr
            if 0 <= offset < flat.nbytes and value.size:
                return np.ndarray(value.shape, value.dtype, flat, offset, value.strides)
        return self.results.setdefault(id(value), value.get())


def without_places(outcome: Outcome) -> Outcome:
    """An outcome with numbers for 0-d arrays, as CuPy does not tell these apart."""
    return replace(outcome, result=tree_map(_number, outcome.result))


def _number(value: Any) -> Any:
    return value[()] if isinstance(value, np.ndarray) and not value.shape else value
