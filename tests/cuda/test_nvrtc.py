"""Machine code of the kernels that hold the most: registers suffice, and shared memory leaves
room."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import npjit
from benches.gpu import workloads
from tests.cuda import fake_cupy, nvrtc

needs_nvrtc = pytest.mark.skipif(nvrtc.library() is None, reason="needs nvidia-cuda-nvrtc-cu12")
# bytes of shared memory with which two blocks share a multiprocessor of sm_80
MOST_SHARED = 80_000


def lowered(cupy: Any, function: Any, *args: Any) -> str:
    jitted = function if hasattr(function, "lower") else npjit.jit(function)
    return jitted.lower(*map(cupy.asarray, args)).as_text("cuda")


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    ("function", "shapes", "name"),
    [
        (workloads.softmax, [(20, 500)], "k0_held<i32, 4, 0x24ull, 1024, 8, nj_exact>"),
        (workloads.softmax, [(20, 500)], "k0_held<i32, 4, 0x24ull, 1024, 8, nj_skewed>"),
        (
            workloads.layer_norm,
            [(20, 500), (500,), (500,)],
            "k0_held<i32, 4, 0x924ull, 128, 2, nj_exact>",
        ),
        (workloads.pairwise, [(60, 64), (70, 64)], "k0_blocked<i32, 1, 0, 8>"),
        (workloads.transpose_add, [(90, 90), (90, 90)], "k0<i32, 4, 0x124ull, 0x124ull>"),
        (workloads.column_sum, [(300, 300)], "k0_0<i32, 4, 0x24ull, 8>"),
        (workloads.total, [(5000,)], "k0_0<i32, 4, 0x4ull, 256>"),
        (workloads.nbody, [(60, 3), (60,)], "k2_partners<i32, 1, 0, 4>"),
        (workloads.jacobi, [(90, 90)], "k1<i32, 2, 0x1bull, 4>"),
        (
            workloads.scatter_add,
            [(50,), np.ones(90, "i8"), (90,)],
            "nj_scatter_buckets<f32, 7168, 13, 128>",
        ),
        (
            npjit.grad(workloads.layer_norm_loss, argnums=(0, 1, 2)),
            [(20, 500), (500,), (500,), (20, 500)],
            "k2_rows<i32, 4, 0x4924ull, 128, 2, nj_exact>",
        ),
        (
            npjit.grad(workloads.logistic_loss),
            [(100,), (500, 100), (500,)],
            "k1_rows<i32, 4, 0x24ull, 8, 4, nj_skewed>",
        ),
    ],
)
def test_nothing_spills(
    monkeypatch: pytest.MonkeyPatch, function: Any, shapes: Any, name: str, architecture: str
) -> None:
    cupy = fake_cupy.install(monkeypatch)
    given = (np.ones(s, "f4") if isinstance(s, tuple) else s for s in shapes)
    source = lowered(cupy, function, *given)
    report = nvrtc.report(source, [name], architecture)
    spilled = re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", report)
    assert spilled and not any(map(int, spilled)), report
    shared = re.findall(r"(\d+) bytes smem", report)
    assert all(int(n) <= MOST_SHARED for n in shared), report


@needs_nvrtc
def test_an_error_says_what_nvrtc_said() -> None:
    with pytest.raises(nvrtc.CompileError, match="undefined"):
        nvrtc.report("template <int V> __global__ void k() { missing(); }", ["k<1>"], "sm_90")
