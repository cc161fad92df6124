"""What npjit costs beside the work itself: dispatch, first calls, compile time, memory.

In: nothing. Out: a JSON file that report.py adds to RESULTS.md. Each figure has a function of its
own below and runs in a fresh process, which is this module again with the figure's name.

    python -m benches.overheads dispatch
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import npjit
from benches.cpu.workloads import FORWARD, GRADIENTS
from benches.graphs import GRAPHS, mixture

REPEATS = 15
OUTPUT = Path("build/bench/overheads.json")


def microseconds(*calls: Callable[[], Any], number: int = 20_000) -> list[float]:
    """The median over interleaved repeats, for each call."""
    timers = [timeit.Timer(call) for call in calls]
    rounds = [[t.timeit(number) / number * 1e6 for t in timers] for _ in range(REPEATS)]
    return [median(column) for column in zip(*rounds, strict=True)]


def dispatch() -> dict[str, float]:
    """Calls on tiny arrays, beside np.empty and beside NumPy."""
    one = npjit.jit(lambda x: x * 2 + 1)
    two = npjit.jit(lambda x, y: x * 2 + y)
    four = npjit.jit(lambda x, y, z, w: x * 2 + y + z + w)
    small = np.ones(4)

    def three_ufuncs(x):
        return np.exp(x) * 2.0 + x

    compiled = npjit.jit(three_ufuncs)
    hundred = np.linspace(0.0, 1.0, 100)
    for f, arguments in ((one, 1), (two, 2), (four, 4)):
        f(*[small] * arguments)
    compiled(hundred)
    figures = microseconds(
        lambda: np.empty(4),
        lambda: one(small),
        lambda: two(small, small),
        lambda: four(small, small, small, small),
        lambda: compiled(hundred),
        lambda: three_ufuncs(hundred),
    )
    names = (
        "np.empty(4)",
        "x*2+1 on 4 elements",
        "the same with 2 arrays",
        "the same with 4 arrays",
        "three ufuncs on 100 elements",
        "the same in NumPy",
    )
    return dict(zip(names, figures, strict=True))


def first_calls() -> dict[str, float]:
    """Seconds of the first call of each workload in this process."""
    times = {}
    for workload in FORWARD + GRADIENTS:
        arguments = workload.arguments(np.float64)
        jitted = npjit.jit(workload.function)
        f = npjit.grad(workload.function, workload.argnums) if workload.argnums else jitted
        start = time.perf_counter()
        f(*arguments)
        times[workload.name] = time.perf_counter() - start
    return times


def steady_calls() -> dict[str, float]:
    """Seconds of the second call: what of a first call is the work itself."""
    times = {}
    for workload in FORWARD + GRADIENTS:
        arguments = workload.arguments(np.float64)
        jitted = npjit.jit(workload.function)
        f = npjit.grad(workload.function, workload.argnums) if workload.argnums else jitted
        f(*arguments)
        start = time.perf_counter()
        f(*arguments)
        times[workload.name] = time.perf_counter() - start
    return times


def compile_times() -> dict[str, dict[str, float]]:
    """Seconds of the first call of graphs of three shapes, at 100 and 2,000 nodes."""
    times: dict[str, dict[str, float]] = {}
    x = np.linspace(0.1, 0.9, 1000)
    for name, make in GRAPHS.items():
        times[name] = {}
        for nodes in (100, 2000):
            f = npjit.jit(make(nodes))
            start = time.perf_counter()
            f(x)
            times[name][str(nodes)] = time.perf_counter() - start
    return times


def resident() -> float:
    """This process's memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def growth(call: Callable[[int], Any], count: int) -> float:
    """MiB gained between a tenth of the run and its end."""
    for i in range(count // 10):
        call(i)
    early = resident()
    for i in range(count // 10, count):
        call(i)
    return resident() - early


def memory() -> dict[str, float]:
    """Growth over many sizes, many functions, many calls."""
    f = npjit.jit(lambda x: np.sum(x * 2.0 + 1.0))
    base = np.ones(10_100)
    sizes = growth(lambda i: f(base[: i + 20]), 10_000)
    small = np.ones(4)
    calls = growth(lambda i: f(small), 1_000_000)

    functions = growth(lambda i: npjit.jit(mixture(i))(small), 500)
    return {"10,000 sizes": sizes, "500 functions": functions, "1,000,000 calls": calls}


def import_time() -> dict[str, float]:
    """Seconds of `import npjit` once NumPy is there, median of fresh processes, its bytecode in
    place as installed packages have it."""
    program = (
        "import time, numpy; t = time.perf_counter(); import npjit; print(time.perf_counter() - t)"
    )
    command = [sys.executable, "-c", program]
    names = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    outputs = [subprocess.check_output(command, text=True, env=names) for _ in range(7)]
    return {"import npjit after NumPy": median(map(float, outputs))}


FIGURES = {
    "dispatch": dispatch,
    "cold": first_calls,
    "warm": first_calls,
    "steady": steady_calls,
    "compile": compile_times,
    "memory": memory,
    "import": import_time,
}


def run_alone(name: str, cache: str) -> Any:
    """One of the figures in a process of its own, with this cache directory."""
    done = subprocess.run(
        [sys.executable, "-m", "benches.overheads", name],
        env=os.environ | {"NPJIT_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        # "dispatch" compiles no workload, so "cold" still meets an empty cache.
        document = {name: run_alone(name, cache) for name in FIGURES}
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(FIGURES[sys.argv[1]]()))
    else:
        main()
