"""The emulator finds what it is there to find, in kernels written wrong on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npjit import _runtime
from npjit.codegen.cuda import OPTIONS
from npjit.codegen.cuda_prelude import cuda_prelude
from tests.cuda import fake_cupy
from tests.cuda.emulate import EmulatedDevice

pytestmark = pytest.mark.skipif(fake_cupy.ON_GPU, reason="of the emulator alone")


def start(body: str, *arrays: Any, block: int = 64, grid: int = 1) -> None:
    """Run a kernel with this body over float arrays x0, x1, ..."""
    given = ", ".join(f"f32* x{i}" for i in range(len(arrays)))
    code = f"template <i32 V> __global__ void k({given}) {{ {body} }}"
    device = EmulatedDevice()
    moved = [device.array(a) for a in arrays]
    (function,) = device.functions(cuda_prelude(code + "nj_load") + code, ["k<4>"], OPTIONS)
    words = [a.ctypes.data for a in moved]
    launch = ("launch", function, grid, 1, block, 0, 0, len(words), "k")
    _runtime.Tape(words, [], [launch]).run([])
    for a, m in zip(arrays, moved, strict=True):
        a[...] = m


def test_threads_work_together() -> None:
    x = np.arange(64, dtype="f4")
    start(
        "__shared__ f32 all[64]; all[threadIdx.x] = x0[threadIdx.x]; __syncthreads();"
        "x0[threadIdx.x] = all[63 - threadIdx.x] + __shfl_xor_sync(0xffffffffu, 1.0f, 1);",
        x,
    )
    np.testing.assert_array_equal(x, np.arange(64)[::-1] + 1)


@pytest.mark.parametrize(
    ("reason", "body"),
    [
        ("outside all buffers", "x0[threadIdx.x + 40] = 1;"),
        ("a race", "x0[threadIdx.x / 2] = 1;"),
        ("a race", "x0[threadIdx.x] = x0[63 - threadIdx.x];"),
        (
            "a race",
            "__shared__ f32 s[64]; s[threadIdx.x] = 1; x0[threadIdx.x] = s[63 - threadIdx.x];",
        ),
        ("an index beyond", "__shared__ f32 s[64]; s[threadIdx.x + V] = 1;"),
        ("barrier that some", "if (threadIdx.x < 32) __syncthreads();"),
        ("barrier that some", "if (threadIdx.x > 9) return; __syncthreads();"),
        ("absent lanes", "if (threadIdx.x % 32) __shfl_xor_sync(0xffffffffu, 1, 1);"),
        ("its mask leaves out", "__shfl_xor_sync(0xffffu, 1, 1);"),
        ("misaligned", "nj_pack<f32, 4> p; nj_load<4, 1>(p, x0 + threadIdx.x, nj_full());"),
    ],
)
def test_faults(reason: str, body: str) -> None:
    with pytest.raises(RuntimeError, match=reason):
        start(body, np.zeros(64, "f4"))


def test_blocks_race_unless_one_waits_for_the_other() -> None:
    with pytest.raises(RuntimeError, match="a race"):
        start("x0[0] = 1;", np.zeros(64, "f4"), block=1, grid=2)
    after = "x0[blockIdx.x] = 1; if (atomicAdd((u32*)x1, 1u) == 1) x0[0] = x0[0] + x0[1];"
    x = np.zeros(64, "f4")
    start(after, x, np.zeros(4, "f4"), block=1, grid=2)
    assert x[0] == 2
