"""One library in one process: prepares a workload, then times short bursts of calls when told to.

In: JSON lines on standard input, from interleave.py. Out: one JSON line for each.

    {"do": "prepare", "workload": "gelu", "dtype": "float32"}  ->  {"first": 0.31, "error": 1e-7}
    {"do": "burst", "calls": 3}                                ->  {"times": [0.0021, ...]}
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benches.cpu import check
from benches.cpu.peers import Copy, Peer, load
from benches.cpu.workloads import FORWARD, GRADIENTS

WORKLOADS = {w.name: w for w in FORWARD + GRADIENTS}


def prepare(peer: Peer, name: str, dtype: str) -> tuple[Callable[[], Any], dict[str, Any]]:
    """The call to time, and what its first run told; the answer is checked against NumPy."""
    workload = WORKLOADS[name]
    arguments = workload.arguments(getattr(np, dtype))
    form = peer.gradients[name] if workload.argnums else peer.forms[name]
    prepared = peer.to_device(arguments)

    def call() -> Any:
        return peer.wait(form(*prepared))

    start = time.perf_counter()
    answer = call()
    first = time.perf_counter() - start
    check_answer = check.check_gradient if workload.argnums else check.check_value
    error = check_answer(workload, arguments, answer)
    if hasattr(form, "cache_info"):
        calls = form.cache_info()
        assert calls["numpy"] == calls["broken"] == 0, f"not whole: {calls}"
        backends = {version.backend for version in form.compiled}
        assert backends == {"cpp"}, f"ran on {backends}"
    nbytes = sum(a.nbytes for a in arguments) + sum(a.nbytes for a in check.flatten(answer))
    return call, {"first": first, "error": error, "bytes": nbytes}


def burst(call: Callable[[], Any], calls: int) -> list[float]:
    """Seconds of each call; one more goes ahead untimed, as another process has used the caches."""
    call()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def serve(name: str, threads: int) -> None:
    # JAX has as many threads as it sees processors.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if name == "torch":
        import torch

        torch.set_num_threads(threads)
    peer = None if name == "copy" else load(name)
    call: Callable[[], Any] | None = None
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any]
        try:
            if order["do"] == "burst":
                assert call is not None
                answer = {"times": burst(call, order["calls"])}
            elif peer is None:
                call, answer = Copy(order["bytes"], threads), {}
            else:
                call, answer = prepare(peer, order["workload"], order["dtype"])
        except Exception as failure:
            answer = {"failure": f"{type(failure).__name__}: {failure}"[:300]}
        print(json.dumps(answer), file=ANSWERS, flush=True)


if __name__ == "__main__":
    # Only answers go to the pipe; what a library prints goes to standard error.
    ANSWERS = sys.stdout
    sys.stdout = sys.stderr
    serve(sys.argv[1], int(sys.argv[2]))
