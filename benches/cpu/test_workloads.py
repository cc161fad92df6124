"""pytest-benchmark: every workload as NumPy and as npjit, quick to run while working on npjit.

pytest benches/cpu -k gelu
"""

import numpy as np
import pytest

from benches.cpu import check
from benches.cpu.peers import load
from benches.cpu.workloads import FORWARD, GRADIENTS, Workload


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("library", ["numpy", "npjit"])
@pytest.mark.parametrize("workload", FORWARD, ids=lambda w: w.name)
def test_forward(benchmark, workload: Workload, library: str, dtype) -> None:
    benchmark.group = f"{workload.name} {np.dtype(dtype)}"
    form = load(library).forms[workload.name]
    arguments = workload.arguments(dtype)
    check.check_value(workload, arguments, form(*arguments))
    benchmark(form, *arguments)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("workload", GRADIENTS, ids=lambda w: w.name)
def test_gradient(benchmark, workload: Workload, dtype) -> None:
    form = load("npjit").gradients[workload.name]
    arguments = workload.arguments(dtype)
    check.check_gradient(workload, arguments, form(*arguments))
    benchmark(form, *arguments)
