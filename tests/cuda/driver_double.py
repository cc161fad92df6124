"""A double of CUDA's driver in Python, for the runtime's launches without a GPU.

In: `function(start)` registers what stands for a kernel; `install()` puts the double in libcuda's
place. Out: launches and graphs call `start(grid, block, address of the parameters' addresses)` at
once, and `log` says what the driver was asked for:

    handle = function(lambda grid, block, parameters: ..., words=3)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from npjit import _runtime

Start = Callable[[tuple[int, int], int, int], None]

_P, _U = ctypes.c_void_p, ctypes.c_uint
_OUT = ctypes.POINTER(ctypes.c_void_p)


class _KernelNode(ctypes.Structure):
    _fields_ = [
        ("function", _P),
        *((n, _U) for n in ("x", "y", "z", "block", "block_y", "block_z", "shared")),
        *((n, _P) for n in ("parameters", "extra", "kernel", "context")),
    ]


@dataclass
class _Launch:
    """A kernel with its parameters as they were when it was recorded."""

    function: int
    grid: tuple[int, int]
    block: int
    words: list[int]


@dataclass
class _Graph:
    nodes: list[_Launch] = field(default_factory=list)


_handles: list[Any] = [None]
_functions: dict[int, tuple[Start, int]] = {}
# what was asked for: "launch", "graph", "change", "run graph", "destroy"
log: list[str] = []
# the text of the last error, the current device, and how many changes of graphs succeed before one
# fails
state: dict[str, Any] = {"error": b"CUDA_ERROR_DOUBLE", "device": 0, "changes": 1 << 30}


def _handle(value: Any) -> int:
    _handles.append(value)
    return len(_handles) - 1


def function(start: Start, words: int) -> int:
    """A handle for a kernel with so many parameters."""
    number = _handle(None)
    _functions[number] = (start, words)
    return number


def _run(launch: _Launch) -> int:
    words = (ctypes.c_longlong * max(1, len(launch.words)))(*launch.words)
    first = ctypes.addressof(words)
    table = (ctypes.c_longlong * len(words))(*(first + 8 * i for i in range(len(words))))
    start, _ = _functions[launch.function]
    try:
        start(launch.grid, launch.block, ctypes.addressof(table))
    except Exception as e:
        state["error"] = str(e).encode()
        return 700
    return 0


def _recorded(function: int, grid: tuple[int, int], block: int, parameters: int) -> _Launch:
    count = _functions[function][1]
    table = ctypes.cast(parameters, ctypes.POINTER(ctypes.POINTER(ctypes.c_longlong)))
    return _Launch(function, grid, block, [table[i][0] for i in range(count)])


def _launch(f: int, x: int, y: int, z: int, block: int, *rest: Any) -> int:
    assert z == 1 and rest[:3] == (1, 1, 0)
    log.append("launch")
    return _run(_recorded(f, (x, y), block, rest[4]))


def _of_node(node: Any) -> _Launch:
    given = node[0]
    return _recorded(given.function, (given.x, given.y), given.block, given.parameters)


def _add_kernel(out: Any, graph: int, after: Any, count: int, node: Any) -> int:
    launch = _of_node(node)
    assert count == (1 if _handles[graph].nodes else 0), "launches follow each other"
    _handles[graph].nodes.append(launch)
    out[0] = _handle(launch)
    return 0


def _instantiate(out: Any, graph: int, flags: int) -> int:
    log.append("graph")
    out[0] = _handle(_handles[graph])
    return 0


def _change(ready: int, node: int, parameters: Any) -> int:
    log.append("change")
    state["changes"] -= 1
    if state["changes"] < 0:
        state["error"] = b"CUDA_ERROR_DOUBLE"
        return 999
    _handles[node].words = _of_node(parameters).words
    return 0


def _run_graph(ready: int, stream: Any) -> int:
    log.append("run graph")
    return next((e for e in map(_run, _handles[ready].nodes) if e), 0)


def _create(out: Any, flags: int) -> int:
    out[0] = _handle(_Graph())
    return 0


def _device(out: Any) -> int:
    out[0] = state["device"]
    return 0


def _error(error: int, out: Any) -> int:
    out[0] = state["error"]
    return 0


def _destroy(handle: int) -> int:
    log.append("destroy")
    return 0


def _c(function: Any, *types: Any) -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(function)


_NODE = ctypes.POINTER(_KernelNode)
DRIVER = {
    "cuLaunchKernel": _c(_launch, _P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P),
    "cuCtxGetDevice": _c(_device, ctypes.POINTER(ctypes.c_int)),
    "cuGetErrorName": _c(_error, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
    "cuGraphCreate": _c(_create, _OUT, _U),
    "cuGraphAddKernelNode_v2": _c(_add_kernel, _OUT, _P, _P, ctypes.c_size_t, _NODE),
    "cuGraphInstantiateWithFlags": _c(_instantiate, _OUT, _P, ctypes.c_ulonglong),
    "cuGraphExecKernelNodeSetParams_v2": _c(_change, _P, _P, _NODE),
    "cuGraphLaunch": _c(_run_graph, _P, _P),
    "cuGraphDestroy": _c(_destroy, _P),
    "cuGraphExecDestroy": _c(_destroy, _P),
}


def install() -> None:
    """Put the double in libcuda's place, for the rest of the process."""
    addresses = {n: ctypes.cast(f, ctypes.c_void_p).value for n, f in DRIVER.items()}
    _runtime.set_driver(addresses)
