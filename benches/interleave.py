"""Times the workloads on every library, turn by turn, so that a noisy minute hits all alike.

In: options. Out: a JSON file that report.py turns into RESULTS.md. Each library lives in a process
of its own, with the same number of threads and the same cores; a round gives each one burst in
turn, the others asleep. The copy of as many bytes runs in the same rounds.

    python -m benches.interleave --peers numpy,npjit --only gelu --rounds 3
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from benches.cpu.peers import NAMES
from benches.cpu.workloads import FORWARD, GRADIENTS
from benches.machine import describe

PAUSE = 0.02  # seconds: threads that wait for work by spinning have gone to sleep


class Worker:
    """The other end of worker.py."""

    def __init__(self, name: str, threads: int) -> None:
        names = ("OMP", "OPENBLAS", "NUMBA", "NPJIT", "MKL")
        environment = os.environ | {f"{n}_NUM_THREADS": str(threads) for n in names}
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benches.worker", name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(order), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"failure": "the process ended"}

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(
    workers: list[Worker], copier: Worker, name: str, dtype: str, rounds: int, calls: int
) -> dict[str, Any]:
    """One workload on every library: medians, first calls, failures and the copy's time."""
    results: dict[str, Any] = {}
    for worker in workers:
        results[worker.name] = worker.ask(do="prepare", workload=name, dtype=dtype)
    ready = [w for w in workers if "failure" not in results[w.name]]
    nbytes = max((results[w.name]["bytes"] for w in ready), default=0)
    copier.ask(do="prepare", bytes=nbytes)
    times: dict[str, list[float]] = {w.name: [] for w in (*ready, copier)}
    for _ in range(rounds):
        for worker in (*ready, copier):
            time.sleep(PAUSE)
            times[worker.name] += worker.ask(do="burst", calls=calls)["times"]
    for worker in ready:
        results[worker.name]["median"] = median(times[worker.name])
        results[worker.name]["least"] = min(times[worker.name])
    copy = median(times["copy"])
    return {"workload": name, "dtype": dtype, "bytes": nbytes, "copy": copy, "peers": results}


def show(row: dict[str, Any]) -> None:
    print(f"{row['workload']:20} {row['dtype']:8} copy {row['copy'] * 1e3:8.2f} ms", end="")
    for name, result in row["peers"].items():
        figure = f"{result['median'] * 1e3:8.2f}" if "median" in result else result["failure"]
        print(f"  {name} {figure}", end="")
    print(flush=True)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default=",".join(NAMES))
    parser.add_argument("--only", default="", help="a pattern for the workloads' names")
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=3, help="timed calls in a burst")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--output", type=Path, default=Path("build/bench/cpu.json"))
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    names = options.peers.split(",")
    workers = {name: Worker(name, options.threads) for name in names}
    copier = Worker("copy", options.threads)
    rows = []
    for workload in FORWARD + GRADIENTS:
        if not re.search(options.only, workload.name):
            continue
        able = [n for n in names if not workload.argnums or n in ("jax", "npjit")]
        for dtype in options.dtypes.split(","):
            group = [workers[n] for n in able]
            rows.append(measure(group, copier, workload.name, dtype, options.rounds, options.calls))
            show(rows[-1])
    for worker in (*workers.values(), copier):
        worker.close()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": describe(options.threads), "rows": rows}
    options.output.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
