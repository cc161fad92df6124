"""What the demo measures and how it is told.

In: times, errors and notes of one task. Out: text: progress while it runs, a table of NumPy's and
npjit's times with ratios, and each check with its bound.

    print(table([comparison]))
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np

MODES = ("whole", "broken", "numpy")


@dataclass(frozen=True)
class Comparison:
    """One task done by NumPy and by npjit. `checks`: what was compared -> (error, bound)."""

    task: str
    numpy_seconds: float
    npjit_seconds: float
    first_call: float
    checks: dict[str, tuple[float, float]]
    calls: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return all(error <= bound for error, bound in self.checks.values())


class Progress:
    """Counts steps on one line of a terminal and measures the time inside `with`."""

    def __init__(self, label: str, steps: int) -> None:
        self.label = label
        self.steps = steps
        self.seconds = 0.0
        self.shown = 0.0

    def __enter__(self) -> "Progress":
        self.start = time.perf_counter()
        return self

    def __call__(self, step: int) -> None:
        now = time.perf_counter()
        if sys.stdout.isatty() and now - self.shown > 0.1:
            self.shown = now
            print(f"\r  {self.label}: {step} of {self.steps}", end="", flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.seconds = time.perf_counter() - self.start
        end = "\r" if sys.stdout.isatty() else ""
        print(f"{end}  {self.label}: {self.steps} of {self.steps}, {self.seconds:.2f} s")


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference over the largest value."""
    return float(np.max(np.abs(got - want)) / np.max(np.abs(want)))


def slope_error(
    f: Callable[[np.ndarray], np.floating], point: np.ndarray, gradient: np.ndarray
) -> float:
    """The gradient's slope along one random direction against a central difference of f."""
    direction = np.random.default_rng(1).standard_normal(point.shape)
    step = 1e-5
    slope = (f(point + step * direction) - f(point - step * direction)) / (2 * step)
    scale = np.sqrt(np.sum(gradient**2) * np.sum(direction**2) / direction.size)
    return float(abs(np.sum(gradient * direction) - slope) / scale)


def table(comparisons: Sequence[Comparison]) -> str:
    """The closing table: a row for each task."""
    width = max(len(c.task) for c in comparisons)
    head = f"{'':{width}}  {'NumPy':>9}  {'npjit':>9}  {'ratio':>6}  {'first call':>10}"
    lines = [head]
    for c in comparisons:
        ratio = c.numpy_seconds / c.npjit_seconds
        lines.append(
            f"{c.task:{width}}  {milliseconds(c.numpy_seconds)}  {milliseconds(c.npjit_seconds)}"
            f"  {ratio:5.1f}x  {milliseconds(c.first_call):>10}"
        )
    return "\n".join(lines)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:6.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:6.2f} ms"


def report(comparison: Comparison) -> str:
    """Every check with its bound, then the notes and how the calls ran."""
    lines = []
    for name, (error, bound) in comparison.checks.items():
        verdict = "ok" if error <= bound else "WRONG"
        lines.append(f"  {verdict:5} {name}: {error:.1e} (bound {bound:.0e})")
    lines += [f"  {note}" for note in comparison.notes]
    lines.append(f"  {describe_calls(comparison.calls)}")
    return "\n".join(lines)


def add_calls(*infos: dict[str, Any]) -> dict[str, Any]:
    """The `cache_info()` of several compiled functions as one."""
    total = {mode: sum(info[mode] for info in infos) for mode in MODES}
    return total | {"refusals": {r: n for info in infos for r, n in info["refusals"].items()}}


def describe_calls(calls: dict[str, Any]) -> str:
    """`cache_info()` on a line, with every reason for a call that was not compiled."""
    modes = ", ".join(f"{calls.get(mode, 0)} {mode}" for mode in MODES)
    reasons = "".join(f"; {reason}" for reason in calls.get("refusals", {}))
    return f"calls: {modes}{reasons}"
