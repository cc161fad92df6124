"""Looking inside a compiled function: its graph, what was fused, and a picture.

In: a small neural network and its loss, made here. Out: texts, and network.svg in a folder of its
own, whose path is printed.
"""

import tempfile
from pathlib import Path

import numpy as np

import npjit


def loss(weights, x, wanted):
    hidden = np.tanh(x @ weights["in"])
    return np.mean((hidden @ weights["out"] - wanted) ** 2)


def main():
    random = np.random.default_rng(0)
    weights = {"in": random.standard_normal((30, 50)), "out": random.standard_normal(50)}
    args = weights, random.standard_normal((400, 30)), random.standard_normal(400)
    descend = npjit.value_and_grad(loss)
    print(descend.lower(*args).as_text("graph"))
    print(descend.explain(*args))
    folder = Path(tempfile.mkdtemp(prefix="npjit-"))
    print(descend.visualize(*args, folder / "network.svg"))


if __name__ == "__main__":
    main()
