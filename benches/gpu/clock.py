"""Times of calls on a device.

In: a call, and how its library tells time. Out: the median of several batches, whose calls follow
each other so closely that the host is not seen:

    median_ms(lambda: jitted(x), 20, CupyClock())     0.245
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

import cupy

# calls of a batch, and the seconds that they may take
BATCH = 40
LONGEST = 0.1


class Clock(Protocol):
    """How a library waits for its results, and tells how long a batch took."""

    def wait(self, result: Any) -> None:
        """Wait until a call's result is there."""

    def batch_ms(self, call: Callable[[], Any], count: int) -> float:
        """Milliseconds of so many calls, one after the other."""


class CupyClock:
    """Events on CuPy's stream, where npjit runs too."""

    def wait(self, result: Any) -> None:
        cupy.cuda.Device().synchronize()

    def batch_ms(self, call: Callable[[], Any], count: int) -> float:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end))


def median_ms(call: Callable[[], Any], repeats: int, clock: Clock) -> float:
    """The median time of a call; the first one compiles."""
    clock.wait(call())
    begin = time.perf_counter()
    clock.wait(call())
    batch = max(1, min(BATCH, int(LONGEST / (time.perf_counter() - begin))))
    return statistics.median(clock.batch_ms(call, batch) / batch for _ in range(repeats))
