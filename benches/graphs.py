"""Functions of any size, to see how compile time grows.

In: a number of operations. Out: a plain NumPy function of one array with about that many, every one
a statement of its own: npjit would keep a Python loop as a loop.

    GRAPHS["chain"](100)(np.ones(4))
"""

from collections.abc import Callable, Sequence

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]


def written(statements: Sequence[str], result: str = "x") -> Function:
    """The function of x with these statements."""
    text = "\n    ".join(["def f(x):", *statements, f"return {result}"])
    names = {"np": np}
    exec(text, names)
    return names["f"]


def chain(nodes: int) -> Function:
    """Each operation reads the one before it: one long kernel."""
    return written([f"x = x * 0.999 + {0.001 * i}" for i in range(nodes // 2)])


def wide(nodes: int) -> Function:
    """Independent terms, added pairwise: a broad graph, still one kernel."""
    terms = [f"t{i}" for i in range(nodes // 2)]
    statements = [f"{t} = x * {1.0 + 0.001 * i}" for i, t in enumerate(terms)]
    while len(terms) > 1:
        pairs = list(zip(terms[::2], terms[1::2], strict=False))
        statements += [f"{a} = {a} + {b}" for a, b in pairs]
        terms = [a for a, _ in pairs] + terms[len(terms) // 2 * 2 :]
    return written(statements, terms[0])


def many_kernels(nodes: int) -> Function:
    """A sum after every few operations keeps kernels apart."""
    return written(["x = (x - np.sum(x) * 0.001) * 0.999"] * (nodes // 4))


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
