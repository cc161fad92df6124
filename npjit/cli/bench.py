"""python -m npjit bench: functions timed on this machine, NumPy against npjit.

In: FILE:FUNCTION of your own with --shape and --dtype for its arguments, or nothing for a few built
in. Out: a table on standard output; status 1 if npjit's result is not NumPy's.

    python -m npjit bench model.py:loss --shape 1000,64 --shape 64
"""

import argparse
import runpy
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import npjit
from npjit.cli.compare import Comparison, relative_error, report, table


def sin2_cos2(x):
    return np.sin(x) ** 2 + np.cos(x) ** 2


def gelu(x):
    return 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def blur(x):
    return 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


def least(f: Callable[[], Any]) -> float:
    """The shortest of the calls that fit into half a second, three at least."""
    best, total, count = float("inf"), 0.0, 0
    while count < 3 or total < 0.5:
        start = time.perf_counter()
        f()
        elapsed = time.perf_counter() - start
        best, total, count = min(best, elapsed), total + elapsed, count + 1
    return best


def compare(f: Callable[..., Any], arguments: tuple[np.ndarray, ...]) -> Comparison:
    compiled = npjit.jit(f)
    start = time.perf_counter()
    got = compiled(*arguments)
    first = time.perf_counter() - start
    error = relative_error(np.asarray(got), np.asarray(f(*arguments)))
    bound = 1e4 * float(np.finfo(arguments[0].dtype).eps)
    return Comparison(
        task=f.__name__,
        numpy_seconds=least(lambda: f(*arguments)),
        npjit_seconds=least(lambda: compiled(*arguments)),
        first_call=first,
        checks={"result against NumPy": (error, bound)},
        calls=compiled.cache_info(),
    )


def read_shape(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(","))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m npjit bench", description=__doc__.splitlines()[0])
    parser.add_argument("function", nargs="?", help="FILE:FUNCTION that returns one array")
    parser.add_argument("--shape", type=read_shape, action="append", help="of each argument: 100,3")
    parser.add_argument("--dtype", default="float64", choices=["float32", "float64"])
    options = parser.parse_args(argv)
    functions = [sin2_cos2, gelu, softmax, blur]
    if options.function:
        path, _, name = options.function.rpartition(":")
        functions = [runpy.run_path(path)[name]]
    random = np.random.default_rng(0)
    shapes = options.shape or [(1000, 1000)]
    arguments = tuple(random.standard_normal(s).astype(options.dtype) for s in shapes)
    comparisons = [compare(f, arguments) for f in functions]
    for comparison in comparisons:
        print(f"{comparison.task}\n{report(comparison)}")
    print("\n" + table(comparisons))
    return 0 if all(comparison.passed for comparison in comparisons) else 1
