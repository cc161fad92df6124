"""A double of CUDA's driver in Python, for the runtime's launches without a GPU.

In: `function(start)` registers what stands for a kernel; `install()` puts the double in libcuda's
place. Out: launches and graphs call `start(grid, block, address of the parameters' addresses)` at
once, products are NumPy's, and `log` says what the driver was asked for:

    handle = function(lambda grid, block, parameters: ..., words=3)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npjit import _runtime
from npjit.core.dtypes import accumulator_of

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

    def run(self) -> int:
        return _run(self)


@dataclass
class _Graph:
    nodes: list[Any] = field(default_factory=list)

    def run(self) -> int:
        """0, or the first node's error."""
        return next((e for e in (node.run() for node in self.nodes) if e), 0)


@dataclass
class _Child:
    graph: _Graph

    def run(self) -> int:
        return self.graph.run()


@dataclass
class _Multiplication:
    """A product with its operands as they were when it was recorded."""

    work: Callable[[], None]

    def run(self) -> int:
        self.work()
        return 0


_handles: list[Any] = [None]
_functions: dict[int, tuple[Start, int]] = {}
# what was asked for: "launch", "product", "graph", "change", "run graph", "read", "wait",
# "destroy"
log: list[str] = []
# the text of the last error, the current device, and how many changes of graphs succeed before one
# fails
state: dict[str, Any] = {"error": b"CUDA_ERROR_DOUBLE", "device": 0, "changes": 1 << 30}
# the graph that is being recorded, and memory that hosts and libraries were given
_recorded_graph: list[_Graph] = []
_memory: list[Any] = []


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
    assert z == 1 and rest[:2] == (1, 1)
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


def _changed() -> int:
    log.append("change")
    state["changes"] -= 1
    if state["changes"] < 0:
        state["error"] = b"CUDA_ERROR_DOUBLE"
        return 999
    return 0


def _change(ready: int, node: int, parameters: Any) -> int:
    error = _changed()
    if error == 0:
        _handles[node].words = _of_node(parameters).words
    return error


def _add_child(out: Any, graph: int, after: Any, count: int, child: int) -> int:
    assert count == (1 if _handles[graph].nodes else 0), "products follow what is before them"
    made = _Child(_handles[child])
    _handles[graph].nodes.append(made)
    out[0] = _handle(made)
    return 0


def _change_child(ready: int, node: int, child: int) -> int:
    error = _changed()
    if error == 0:
        _handles[node].graph = _handles[child]
    return error


def _run_graph(ready: int, stream: Any) -> int:
    log.append("run graph")
    return int(_handles[ready].run())


def _create_stream(out: Any, flags: int) -> int:
    out[0] = _handle("stream")
    return 0


def _begin_capture(stream: int, mode: int) -> int:
    assert not _recorded_graph, "one recording at a time"
    _recorded_graph.append(_Graph())
    return 0


def _end_capture(stream: int, out: Any) -> int:
    out[0] = _handle(_recorded_graph.pop())
    return 0


def _allocate_host(out: Any, size: int, flags: int) -> int:
    _memory.append(ctypes.create_string_buffer(size))
    out[0] = ctypes.addressof(_memory[-1])
    return 0


def _copy_to_host(to: int, source: int, size: int, stream: Any) -> int:
    log.append("read")
    ctypes.memmove(to, source, size)
    return 0


def _wait(stream: Any) -> int:
    log.append("wait")
    return 0


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


def _array(address: int, code: str, shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    item = np.dtype(code).itemsize
    size = 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    memory = (ctypes.c_char * (size * item)).from_address(address)
    return np.ndarray(shape, code, memory, 0, tuple(s * item for s in steps))


def _do(work: Callable[[], None]) -> int:
    log.append("product")
    if _recorded_graph:
        _recorded_graph[0].nodes.append(_Multiplication(work))
    else:
        work()
    return 0


# by cuBLAS's number of a dtype
_CODES = {0: "f4", 1: "f8", 2: "f2", 4: "c8", 5: "c16", 14: "bfloat16"}


def _columns(address: int, code: str, turned: int, sizes: tuple[int, int, int], lead: int, s: int):
    """A batch of matrices column by column, turned around."""
    batch, rows, columns = sizes
    if turned:
        return _array(address, code, sizes, (s, lead, 1))
    return _array(address, code, (batch, rows, columns), (s, 1, lead))


def _gemm(handle: Any, to_a: int, to_b: int, m: int, n: int, k: int, one: Any, *rest: Any) -> int:
    a, kind, lead_a, step_a, b, _, lead_b, step_b, _, c, made, lead_c, step_c, batch, *_ = rest
    code = _CODES[kind]

    def work() -> None:
        x = _columns(a, code, to_a, (batch, m, k), lead_a, step_a)
        y = _columns(b, code, to_b, (batch, k, n), lead_b, step_b)
        z = _columns(c, _CODES[made], 0, (batch, m, n), lead_c, step_c)
        z[...] = np.matmul(x, y, dtype=accumulator_of(z.dtype))

    return _do(work)


def _gemv(code: str) -> Callable[..., int]:
    def gemv(handle: Any, turn: int, m: int, n: int, one: Any, *rest: Any) -> int:
        a, lead, x, step_x, _, y, step_y = rest
        rows, columns = (n, m) if turn else (m, n)

        def work() -> None:
            matrix = _columns(a, code, turn, (1, rows, columns), lead, 0)[0]
            _array(y, code, (rows,), (step_y,))[...] = matrix @ _array(
                x, code, (columns,), (step_x,)
            )

        return _do(work)

    return gemv


def _create_blas(out: Any) -> int:
    out[0] = _handle("cuBLAS")
    return 0


_I, _L = ctypes.c_int, ctypes.c_longlong
_VECTOR = (_P, _I, _L, _L, _P, _P, _L, _P, _L, _P, _P, _L)
_MATRICES = (_P, _I, _I, _L, _L, _L, _P, *(_P, _I, _L, _L) * 2, _P, _P, _I, _L, _L, _L, _I, _I)
CUBLAS = {
    "cublasCreate_v2": _c(_create_blas, _OUT),
    "cublasSetStream_v2": _c(lambda handle, stream: 0, _P, _P),
    "cublasSetMathMode": _c(lambda handle, mode: 0, _P, _I),
    "cublasSetWorkspace_v2": _c(lambda handle, memory, size: 0, _P, _P, ctypes.c_size_t),
    **{
        f"cublas{letter}gemv_v2_64": _c(_gemv(code), *_VECTOR)
        for letter, code in zip("SDCZ", ("f4", "f8", "c8", "c16"), strict=True)
    },
    "cublasGemmStridedBatchedEx_64": _c(_gemm, *_MATRICES),
}
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
    "cuStreamCreate": _c(_create_stream, _OUT, _U),
    "cuStreamBeginCapture_v2": _c(_begin_capture, _P, _I),
    "cuStreamEndCapture": _c(_end_capture, _P, _OUT),
    "cuGraphAddChildGraphNode": _c(_add_child, _OUT, _P, _P, ctypes.c_size_t, _P),
    "cuGraphExecChildGraphNodeSetParams": _c(_change_child, _P, _P, _P),
    "cuMemHostAlloc": _c(_allocate_host, _OUT, ctypes.c_size_t, _U),
    "cuMemcpyDtoHAsync_v2": _c(_copy_to_host, _P, ctypes.c_ulonglong, ctypes.c_size_t, _P),
    "cuStreamSynchronize": _c(_wait, _P),
    "cuEventCreate": _c(_create_stream, _OUT, _U),
    "cuEventRecord": _c(lambda event, stream: 0, _P, _P),
    "cuStreamWaitEvent": _c(lambda stream, event, flags: 0, _P, _P, _U),
    "cuFuncSetAttribute": _c(lambda function, attribute, value: 0, _P, _I, _I),
}


def install(workspace: Callable[[], tuple[int, int]] = lambda: (1, 1)) -> None:
    """Put the double in libcuda's and cuBLAS's place, for the rest of the process."""
    addresses = {n: ctypes.cast(f, _P).value for n, f in {**DRIVER, **CUBLAS}.items()}
    _runtime.set_driver(addresses)
    _runtime.set_cublas(addresses.__getitem__, workspace)
