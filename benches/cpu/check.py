"""Whether a peer's answer is NumPy's.

In: a workload, its arguments, an answer. Out: the largest relative error; AssertionError past the
bound. Values are compared with the NumPy function run in float64, gradients with a central
difference of it.
"""

from typing import Any

import numpy as np

from benches.cpu.workloads import Workload

BOUND = {"float32": 2e-4, "float64": 1e-9}
GRADIENT_BOUND = {"float32": 2e-3, "float64": 1e-5}


def flatten(value: Any) -> list[np.ndarray]:
    """The arrays in nested tuples and lists, in order."""
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in flatten(part)]
    return [np.asarray(value)]


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference, measured against the largest value."""
    return float(np.max(np.abs(got - want)) / max(float(np.max(np.abs(want))), 1e-30))


def widen(arguments: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return tuple(a.astype(np.float64) for a in arguments)


def check_value(workload: Workload, arguments: tuple[np.ndarray, ...], answer: Any) -> float:
    wanted = flatten(workload.function(*widen(arguments)))
    got = flatten(answer)
    assert [a.shape for a in got] == [a.shape for a in wanted], "shapes differ"
    arrays = [a for a in got if a.ndim > 0]  # Numba turns scalars into Python's float
    assert all(a.dtype == arguments[0].dtype for a in arrays), [a.dtype for a in arrays]
    worst = max(relative_error(a.astype(np.float64), b) for a, b in zip(got, wanted, strict=True))
    assert worst < BOUND[str(arguments[0].dtype)], f"relative error {worst:.2g}"
    return worst


def check_gradient(workload: Workload, arguments: tuple[np.ndarray, ...], answer: Any) -> float:
    """Compares the slope along one random direction per argument."""
    value, *gradients = flatten(answer)
    wide = widen(arguments)
    worst = relative_error(np.float64(value), np.float64(workload.function(*wide)))
    bound = GRADIENT_BOUND[str(arguments[0].dtype)]
    for argnum, gradient in zip(workload.argnums, gradients, strict=True):
        assert gradient.shape == wide[argnum].shape, "gradient's shape differs"
        direction = np.sign(np.random.default_rng(7).standard_normal(gradient.shape))
        direction *= np.sign(gradient.astype(np.float64)) ** 2
        got = np.sum(gradient * direction, dtype=np.float64)
        scale = np.sum(np.abs(gradient), dtype=np.float64)
        step = 1e-6
        ends = []
        for sign in (step, -step):
            moved = list(wide)
            moved[argnum] = wide[argnum] + sign * direction
            ends.append(workload.function(*moved))
        worst = max(worst, abs(got - (ends[0] - ends[1]) / (2 * step)) / scale)
    assert worst < bound, f"relative error {worst:.2g}"
    return float(worst)
