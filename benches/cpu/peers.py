"""One interface to the libraries that are compared.

In: a peer's name. Out: a `Peer`: its form of each workload and gradient, and how to hand it arrays.

    peer = load("numba")
    peer.wait(peer.forms["gelu"](*peer.to_device(arguments)))
"""

import importlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benches.cpu.workloads import FORWARD, GRADIENTS, Workload

NAMES = ("numpy", "numba", "jax", "torch", "npjit")


def identity(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Peer:
    """`forms` and `gradients` map workload names to callables; absent ones are not compared."""

    forms: Mapping[str, Callable[..., Any]]
    gradients: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    to_device: Callable[[tuple[Any, ...]], tuple[Any, ...]] = identity
    wait: Callable[[Any], Any] = identity


def load(name: str) -> Peer:
    """Imports one library and no other, so that thread pools never meet in one process."""
    if name == "numpy":
        return Peer({w.name: w.function for w in FORWARD})
    if name == "npjit":
        return load_npjit()
    module = importlib.import_module(f"benches.cpu.{name}_forms")
    gradients = getattr(module, "GRADIENTS", {})
    return Peer(module.FORMS, gradients, module.to_device, module.wait)


def load_npjit() -> Peer:
    """npjit takes the NumPy functions as they are."""
    import npjit

    def differentiate(w: Workload) -> Callable[..., Any]:
        argnums = w.argnums[0] if len(w.argnums) == 1 else w.argnums
        return npjit.value_and_grad(w.function, argnums=argnums)

    return Peer(
        {w.name: npjit.jit(w.function) for w in FORWARD},
        {w.name: differentiate(w) for w in GRADIENTS},
    )


class Copy:
    """The yardstick: moves as many bytes as a workload must at least, half read, half written."""

    def __init__(self, nbytes: int, threads: int) -> None:
        self.source = np.zeros(nbytes // 2, np.uint8)
        self.target = np.empty_like(self.source)
        self.bounds = np.linspace(0, self.source.size, threads + 1).astype(int)
        self.pool = ThreadPoolExecutor(threads)

    def __call__(self) -> None:
        list(self.pool.map(self.copy_part, self.bounds[:-1], self.bounds[1:]))

    def copy_part(self, start: int, stop: int) -> None:
        np.copyto(self.target[start:stop], self.source[start:stop])
