"""Times of the GPU workloads: npjit and CuPy on the same arrays, beside the time that memory alone
would take.

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
from benches.gpu.workloads import BEST_PEER, WORKLOADS, Maker, Workload, scale_shift

# calls between two readings of the device's clock, and the seconds that they may take
BATCH = 40
LONGEST = 0.1


def median_ms(call: Callable[[], Any], repeats: int) -> float:
    """The median time on the device; calls follow each other so closely that the host is not
    seen."""
    call()
    begin = time.perf_counter()
    call()
    cupy.cuda.Device().synchronize()
    batch = max(1, min(BATCH, int(LONGEST / (time.perf_counter() - begin))))
    times = []
    for _ in range(repeats):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(batch):
            call()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) / batch)
    return statistics.median(times)


def copy_rate(count: int = 2**29) -> float:
    """Bytes per second of a large copy, read and written."""
    a, b = cupy.ones(count, np.float32), cupy.empty(count, np.float32)
    ms = median_ms(lambda: cupy.copyto(b, a), 20)
    return 2 * a.nbytes / (ms / 1e3)


def distance(got: Any, want: Any) -> float:
    """The largest relative distance of all results, by norm."""
    pairs = zip(_flat(got), _flat(want), strict=True)
    found = []
    for g, w in pairs:
        g, w = cupy.asarray(g, dtype=np.float64), cupy.asarray(w, dtype=np.float64)
        norm = float(cupy.linalg.norm(w.ravel())) or 1.0
        found.append(float(cupy.linalg.norm((g - w).ravel())) / norm)
    return max(found)


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [leaf for v in value for leaf in _flat(v)]
    return [value]


def measure(
    workload: Workload, scale: float, rate: float, repeats: int, fastmath: str | None
) -> str:
    """One row of the table."""
    arguments = workload.make(Maker(cupy, scale))
    function = workload.function
    if workload.gradient:
        jitted = npjit.value_and_grad(function, argnums=workload.gradient, fastmath=fastmath)
    else:
        jitted = npjit.jit(function, fastmath=fastmath)
    start = time.perf_counter()
    got = jitted(*arguments)
    cupy.cuda.Device().synchronize()
    first = time.perf_counter() - start
    if not jitted.cache_info()["whole"]:
        reasons = "; ".join(jitted.cache_info()["refusals"])
        return f"| {workload.number} | {workload.name} | not compiled: {reasons} | | | | | | |"
    own = median_ms(lambda: jitted(*arguments), repeats)
    limit = workload.least(*arguments) / rate * 1e3
    peer, wrong = "", ""
    if not workload.gradient and workload.name not in ("pairwise", "nbody", "attention"):
        want = function(*arguments)
        wrong = f"{distance(got, want):.1e}"
        del want
        peer = f"{median_ms(lambda: function(*arguments), 3):.3f}"
    best = BEST_PEER.get(workload.name) if scale == 1 else None
    against = f"{best:.3f} | {best / own:.2f}" if best else " | "
    return (
        f"| {workload.number} | {workload.name} | {own:.3f} | {100 * limit / own:.0f} % "
        f"| {against} | {peer} | {wrong} | {first:.2f} |"
    )


def tiny_call(mode: str) -> str:
    """Host time of a call on 1024 elements, in microseconds."""
    jitted = npjit.jit(scale_shift, mode=mode)
    x = cupy.ones(1024, np.float32)
    jitted(x)
    times = []
    for _ in range(20):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(100):
            jitted(x)
        times.append((time.perf_counter() - start) / 100)
    us = 1e6 * statistics.median(times)
    return f"tiny call (1024 elements), mode {mode}: {us:.1f} us of host time"


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--fastmath", choices=("contract", "approx"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rate = copy_rate()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    lines = [
        f"{name}, CuPy {cupy.__version__}, sizes times {options.scale}, "
        f"fastmath {options.fastmath}; "
        f"copy {rate / 1e9:.0f} GB/s; {time.strftime('%Y-%m-%d')}",
        "",
        "| # | workload | npjit ms | of copy | best peer ms | times the peer | CuPy ms "
        "| distance to CuPy | first call s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for workload in WORKLOADS:
        if options.names and workload.name not in options.names:
            continue
        try:
            row = measure(workload, options.scale, rate, options.repeats, options.fastmath)
        except Exception as e:
            traceback.print_exc(limit=-4)
            why = f"{type(e).__name__}: {str(e)[:80]}"
            row = f"| {workload.number} | {workload.name} | {why} | | | | | | |"
        print(row, flush=True)
        lines.append(row)
        cupy.get_default_memory_pool().free_all_blocks()
    lines += ["", tiny_call("default"), "", tiny_call("reduce-overhead")]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
