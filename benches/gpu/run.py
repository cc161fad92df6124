"""Times of the GPU workloads: npjit and, on the same arrays in the same process, PyTorch, JAX and
CuPy, as far as they are installed; beside the time that memory alone would take.

In: names of workloads (all without), a scale of their sizes. Out: a table on standard output, and
with --out as a file:

    python -m benches.gpu.run --scale 0.7 --out benches/RESULTS_GPU.md
"""

from __future__ import annotations

import argparse
import statistics
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import npjit
from benches.gpu import peers
from benches.gpu.clock import CupyClock, median_ms
from benches.gpu.workloads import WORKLOADS, Maker, Workload, scale_shift
from benches.machine import describe

PACKAGES = ("npjit", "numpy", "cupy-cuda13x", "cupy-cuda12x", "torch", "jax")
COLUMNS = ("#", "workload", "npjit ms", "of copy", *(f"{n} ms" for n in peers.NAMES), "CuPy ms")
COLUMNS += ("peer / npjit", "asked for", "distance", "peers'", "first call s")
# what is asked of the best peer's time over npjit's, by workload and fastmath; else a tie
BARS: dict[tuple[str, str | None], float] = {
    ("softmax_32768", None): 1.3,
    ("layer_norm_backward", None): 1.8,
    ("logsumexp", None): 1.35,
    ("pairwise", "contract"): 2.5,
    ("jacobi", None): 1.15,
    ("logistic", None): 1.9,
    ("scatter_add", None): 1.35,
    ("attention", None): 1 / 1.3,
    ("nbody", "approx"): 2.0,
}
TIE = 0.95
# pairs as arrays: CuPy needs gigabytes and a hundred times as long; and products of bfloat16
NOT_BY_CUPY = ("pairwise", "nbody", "attention", "matmul_bias_gelu_bf16")
# a result this far from the reference, by norm, is no result of the workload
FAR = 1e-2


def copy_rate(count: int = 2**29) -> float:
    """Bytes per second of a large copy, read and written."""
    a, b = cupy.ones(count, np.float32), cupy.empty(count, np.float32)
    ms = median_ms(lambda: cupy.copyto(b, a), 20, CupyClock())
    return float(2 * a.nbytes / (ms / 1e3))


def distance(got: Any, want: Any) -> float:
    """The largest relative distance of all results, by norm."""
    found = []
    for g, w in zip(peers.leaves(got), peers.leaves(want), strict=True):
        g, w = (cupy.asarray(v, dtype=np.float64).ravel() for v in (g, w))
        norm = float(cupy.linalg.norm(w)) or 1.0
        found.append(float(cupy.linalg.norm(g - w)) / norm)
    return max(found)


class Row:
    """The measurements of one workload."""

    def __init__(self, workload: Workload, options: argparse.Namespace, rate: float) -> None:
        self.workload = workload
        self.options = options
        self.arguments = workload.make(Maker(cupy, options.scale))
        self.limit = workload.least(*self.arguments) / rate * 1e3
        self.cells = {"#": workload.number, "workload": workload.name}

    def measure(self) -> str:
        """The row of the table."""
        workload, options = self.workload, self.options
        if workload.gradient:
            jitted = npjit.value_and_grad(
                workload.function, argnums=workload.gradient, fastmath=options.fastmath
            )
        else:
            jitted = npjit.jit(workload.function, fastmath=options.fastmath)
        start = time.perf_counter()
        got = jitted(*self.arguments)
        cupy.cuda.Device().synchronize()
        self.cells["first call s"] = f"{time.perf_counter() - start:.2f}"
        if not jitted.cache_info()["whole"]:
            self.cells["npjit ms"] = "not compiled: " + "; ".join(jitted.cache_info()["refusals"])
            return self.text()
        own = median_ms(lambda: jitted(*self.arguments), options.repeats, CupyClock())
        self.cells |= {"npjit ms": f"{own:.3f}", "of copy": f"{100 * self.limit / own:.0f} %"}
        reference = self._by_cupy(got)
        if not options.alone:
            self._by_peers(reference, own)
        return self.text()

    def _by_cupy(self, got: Any) -> Any:
        """CuPy's time, if it does such things, and its result; else npjit's."""
        function, name = self.workload.function, self.workload.name
        if self.workload.gradient or name in NOT_BY_CUPY:
            return got
        want = function(*self.arguments)
        self.cells["distance"] = f"{distance(got, want):.0e}"
        ms = median_ms(lambda: function(*self.arguments), 3, CupyClock())
        self.cells["CuPy ms"] = f"{ms:.3f}"
        return want

    def _by_peers(self, reference: Any, own: float) -> None:
        """The peers' times, where their results are right, and the best of them."""
        times: dict[str, float] = {}
        furthest = 0.0
        for peer in peers.peers_of(self.workload, self.arguments):
            try:
                far = distance(peer.values(peer.call()), peers.leaves(reference))
                furthest = max(furthest, far)
                if far < FAR:
                    ms = median_ms(peer.call, self.options.repeats, peer.clock)
                    times[peer.name] = min(ms, times.get(peer.name, ms))
                else:
                    self.cells[f"{peer.name} ms"] = f"far: {far:.0e}"
            except Exception as e:
                traceback.print_exc(limit=-4)
                self.cells[f"{peer.name} ms"] = type(e).__name__
        self.cells |= {f"{name} ms": f"{ms:.3f}" for name, ms in times.items()}
        if "CuPy ms" in self.cells:
            times["CuPy"] = float(self.cells["CuPy ms"])
        if times:
            asked = BARS.get((self.workload.name, self.options.fastmath), TIE)
            self.cells["peer / npjit"] = f"{min(times.values()) / own:.2f}"
            self.cells["asked for"] = f"{asked:.2f}"
            self.cells["peers'"] = f"{furthest:.0e}"

    def text(self) -> str:
        """The cells in order."""
        return f"| {' | '.join(self.cells.get(c, '') for c in COLUMNS)} |"


def tiny_call(call: Callable[[Any], Any]) -> float:
    """Host time of a call on 1024 elements, in microseconds."""
    x = cupy.ones(1024, np.float32)
    for _ in range(3):
        call(x)
    times = []
    for _ in range(20):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(100):
            call(x)
        times.append((time.perf_counter() - start) / 100)
    return 1e6 * statistics.median(times)


def tiny_calls() -> str:
    """The same by npjit and by CuPy."""
    modes = ("default", "reduce-overhead")
    calls = {f"mode {m}": npjit.jit(scale_shift, mode=m) for m in modes} | {"CuPy": scale_shift}
    found = ", ".join(f"{name} {tiny_call(call):.1f}" for name, call in calls.items())
    return f"Tiny call (1024 elements), host us: {found}."


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--fastmath", choices=("contract", "approx"))
    parser.add_argument("--alone", action="store_true", help="no PyTorch and no JAX")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rate = copy_rate()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    known = describe(1, PACKAGES)
    versions = ", ".join(
        f"{k} {known[k]}" for k in ("date", "python", *PACKAGES) if known[k] != "absent"
    )
    lines = [
        f"{device}; copy {rate / 1e9:.0f} GB/s; sizes times {options.scale}; "
        f"fastmath {options.fastmath}; {versions}",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
    ]
    print("\n".join(lines), flush=True)
    for workload in WORKLOADS:
        if options.names and workload.name not in options.names:
            continue
        try:
            row = Row(workload, options, rate).measure()
        except Exception as e:
            traceback.print_exc(limit=-4)
            why = f"{type(e).__name__}: {str(e)[:80]}"
            row = f"| {workload.number} | {workload.name} | {why} |" + " |" * (len(COLUMNS) - 3)
        print(row, flush=True)
        lines.append(row)
        peers.release()
    lines += ["", tiny_calls()]
    print(lines[-1])
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
