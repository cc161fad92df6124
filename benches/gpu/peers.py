"""The GPU workloads by PyTorch and JAX, as far as they are installed.

In: a workload and its arguments (CuPy arrays). Out: `Peer`s, calls on the same memory:

    for peer in peers_of(workload, arguments):
        median_ms(peer.call, 20, peer.clock)

torch.compile runs by default, autotuned without graphs, and for gradients traced inside; JAX jits
the workload's own function with jax.numpy in NumPy's place. JAX runs on streams of its own, so that
it is timed from the host.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import cupy

from benches.gpu.clock import Clock
from benches.gpu.workloads import Workload

# JAX would take most of the device's memory at its start
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_JAX = importlib.util.find_spec("jax") is not None
BRAIN = "bfloat16"
# what XLA compiles for minutes
NOT_BY_JAX = ("pairwise",)
# the columns of the table
NAMES = ("torch", "autotuned", "JAX")


@dataclass(frozen=True)
class Peer:
    """One way of a library: which column it belongs to; `values` gives a result's arrays to
    CuPy."""

    name: str
    call: Callable[[], Any]
    clock: Clock
    values: Callable[[Any], list[Any]]


def peers_of(workload: Workload, arguments: Sequence[Any]) -> Iterator[Peer]:
    """All peers that are installed; each is made when it is asked for."""
    if HAS_TORCH:
        yield from _torch_peers(workload, arguments)
    if HAS_JAX and workload.name not in NOT_BY_JAX:
        yield from _jax_peers(workload, arguments)


def release() -> None:
    """Give back the memory that the libraries keep."""
    if HAS_TORCH:
        import torch

        torch._dynamo.reset()
        torch.cuda.empty_cache()
    if HAS_JAX:
        import jax

        jax.clear_caches()
    cupy.get_default_memory_pool().free_all_blocks()


def leaves(value: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]


def _bits(array: Any) -> Any:
    """An array as the libraries hand it on: bfloat16 numbers as bits."""
    return array.view("u2") if array.dtype.name == BRAIN else array


# ---------------------------------------------------------------- PyTorch


class TorchClock:
    """Events on PyTorch's stream."""

    def wait(self, result: Any) -> None:
        import torch

        torch.cuda.synchronize()

    def batch_ms(self, call: Callable[[], Any], count: int) -> float:
        import torch

        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end))


def _torch_peers(workload: Workload, arguments: Sequence[Any]) -> Iterator[Peer]:
    import torch

    from benches.gpu.torch_forms import FORMS

    form = FORMS[workload.name]
    given = [torch.from_dlpack(_bits(a)) for a in arguments]
    given = [
        g.view(torch.bfloat16) if a.dtype.name == BRAIN else g
        for g, a in zip(given, arguments, strict=True)
    ]
    wanted = workload.gradient
    if wanted:
        yield _torch_peer("torch", _backward(torch.compile(form, dynamic=False), wanted), given)
        form = torch.func.grad_and_value(form, argnums=wanted)
        swapped = _value_first(torch.compile(form, dynamic=False))
        yield _torch_peer("torch", swapped, given)
        return
    yield _torch_peer("torch", torch.compile(form, dynamic=False), given)
    tuned = torch.compile(form, dynamic=False, mode="max-autotune-no-cudagraphs")
    yield _torch_peer("autotuned", tuned, given)


def _torch_peer(name: str, function: Callable[..., Any], given: list[Any]) -> Peer:
    def values(result: Any) -> list[Any]:
        return [cupy.from_dlpack(v.detach().float().contiguous()) for v in leaves(result)]

    return Peer(name, lambda: function(*given), TorchClock(), values)


def _backward(function: Callable[..., Any], wanted: tuple[int, ...]) -> Callable[..., Any]:
    """Value and gradients by a backward pass that is compiled with the function."""
    import torch

    def run(*given: Any) -> Any:
        moved = [a.detach().requires_grad_(i in wanted) for i, a in enumerate(given)]
        value = function(*moved)
        return value, *torch.autograd.grad(value, [moved[i] for i in wanted])

    return run


def _value_first(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: tuple(reversed(function(*given)))


# ---------------------------------------------------------------- JAX


class JaxClock:
    """The host's time, up to the last result."""

    def wait(self, result: Any) -> None:
        import jax

        jax.block_until_ready(result)

    def batch_ms(self, call: Callable[[], Any], count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count):
            result = call()
        self.wait(result)
        return 1e3 * (time.perf_counter() - begin)


def _jax_peers(workload: Workload, arguments: Sequence[Any]) -> Iterator[Peer]:
    import jax

    # float32 products, as the others'
    jax.config.update("jax_default_matmul_precision", "highest")
    form = _JAX_FORMS.get(workload.name) or _with_jax(workload.function)
    if workload.gradient:
        form = jax.value_and_grad(form, argnums=workload.gradient)
    # indices are int32 in JAX
    narrow = [a.astype("i4") if a.dtype == "i8" else a for a in arguments]
    given = [jax.dlpack.from_dlpack(_bits(a)) for a in narrow]
    given = [
        jax.lax.bitcast_convert_type(g, BRAIN) if a.dtype.name == BRAIN else g
        for g, a in zip(given, narrow, strict=True)
    ]
    compiled = jax.jit(form)

    def values(result: Any) -> list[Any]:
        return [cupy.from_dlpack(v.astype("float32")) for v in leaves(result)]

    yield Peer("JAX", lambda: compiled(*given), JaxClock(), values)


def _with_jax(function: FunctionType) -> Callable[..., Any]:
    """The same function, and those of its module that it calls, with jax.numpy as `np`."""
    import jax.numpy as jnp

    names = dict(function.__globals__)
    for name, value in function.__globals__.items():
        if isinstance(value, FunctionType) and value.__module__ == function.__module__:
            names[name] = FunctionType(value.__code__, names, name, value.__defaults__)
    names["np"] = jnp
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__)


def _jax_scatter_add(bins: Any, index: Any, values: Any) -> Any:
    return (bins * 0).at[index].add(values)


_JAX_FORMS: dict[str, Callable[..., Any]] = {"scatter_add": _jax_scatter_add}
