"""Functions of any size, to see how compile time grows.

In: a number of operations. Out: a plain NumPy function of one array with about that many.

    GRAPHS["chain"](100)(np.ones(4))
"""

from collections.abc import Callable

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]


def chain(nodes: int) -> Function:
    """Each operation reads the one before it: one long kernel."""

    def f(x):
        for i in range(nodes // 2):
            x = x * 0.999 + 0.001 * i
        return x

    return f


def wide(nodes: int) -> Function:
    """Independent terms, added pairwise: a broad graph, still one kernel."""

    def f(x):
        terms = [x * (1.0 + 0.001 * i) for i in range(nodes // 2)]
        while len(terms) > 1:
            pairs = range(0, len(terms) - 1, 2)
            terms = [terms[i] + terms[i + 1] for i in pairs] + terms[len(terms) // 2 * 2 :]
        return terms[0]

    return f


def many_kernels(nodes: int) -> Function:
    """A sum after every few operations keeps kernels apart."""

    def f(x):
        for _ in range(nodes // 4):
            x = (x - np.sum(x) * 0.001) * 0.999
        return x

    return f


def mixture(number: int) -> Function:
    """One of 512 different functions of nine operations: a choice per bit."""
    choices = [number >> bit & 1 for bit in range(9)]

    def f(x):
        for choice in choices:
            x = np.sqrt(x) if choice else x * 2.0
        return x

    return f


GRAPHS: dict[str, Callable[[int], Function]] = {
    "chain": chain,
    "wide": wide,
    "many kernels": many_kernels,
}
