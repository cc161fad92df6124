"""Calls with arrays that live on a GPU, or that `device="cuda"` moves there.

In: a `Jitted` and the arguments of a call. Out: the call's result, with CuPy arrays for CuPy arrays
and NumPy arrays for NumPy arrays. A device array enters the Dispatcher as a *header*: an ndarray
with its shape, strides and address, which nobody reads through. So guards, tracing and the choice
of an entry are the same as on the CPU.

    >>> npjit.jit(f)(cupy.ones(1000))                    # doctest: +SKIP
    >>> npjit.jit(f, device="cuda")(np.ones(1000))       # doctest: +SKIP
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from npjit.api.compile import (
    Compiled,
    Stopwatch,
    alias_result,
    make_entry,
    result_spec,
    variables,
)
from npjit.api.jit import Jitted
from npjit.api.placement import is_device_array, leaves_of
from npjit.backends.cuda_program import CheckFailed, Program
from npjit.core.graph import Graph, Weight
from npjit.core.trees import kind_of, tree_map
from npjit.frontend.trace import Captured

if TYPE_CHECKING:
    from npjit.frontend.outside import Outside
    from npjit.schedule.plan import Plan


class Header:
    """What makes NumPy see a device array: its interface, and the array itself. `source` is the
    NumPy array that it was copied from."""

    def __init__(self, owner: Any, source: np.ndarray | None) -> None:
        self.owner = owner
        self.source = source
        self.__array_interface__ = {
            "shape": owner.shape,
            "typestr": owner.dtype.str,
            "strides": owner.strides,
            # an empty array may have no address, which NumPy would not take
            "data": (owner.data.ptr or 64, False),
            "version": 3,
        }


class DeviceScalar:
    """A result that NumPy gives as a scalar: a 0-d device array, and which sort of scalar."""

    def __init__(self, array: Any, weight: Weight) -> None:
        self.array = array
        self.weight = weight


def header_root(array: np.ndarray) -> Header | None:
    """The header behind an array of this module's making."""
    root: Any = array
    while root is not None and not isinstance(root, Header):
        root = getattr(root, "base", None)
    return root


def route(jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DeviceJitted | None:
    """What answers calls with such arguments; None: the CPU."""
    numbers: set[int] = set()
    on_host = False
    for v in leaves_of(args, kwargs):
        if is_device_array(v):
            numbers.add(_number_of(v))
        elif isinstance(v, np.ndarray) and v.ndim:
            on_host = True
    if numbers and on_host:
        raise TypeError(
            "arguments live on both CPU and GPU: move one side, by cupy.asarray or cupy.asnumpy"
        )
    if len(numbers) > 1:
        raise TypeError(f"arguments live on several GPUs: {sorted(numbers)}")
    if numbers:
        return _for_device(jitted, numbers.pop(), to_host=False)
    wanted = jitted.options.device
    if wanted is None:
        return None
    _, _, number = wanted.partition(":")
    return _for_device(jitted, int(number or 0), to_host=True)


def _for_device(jitted: Jitted, number: int, to_host: bool) -> DeviceJitted:
    found = jitted.on_devices.get((number, to_host))
    if found is None:
        found = jitted.on_devices.setdefault(
            (number, to_host), DeviceJitted(jitted, number, to_host)
        )
    return found


def _number_of(array: Any) -> int:
    from npjit.backends.cuda import cupy

    found: int = cupy().asarray(array).data.device_id
    return found


class DeviceJitted(Jitted):
    """A function compiled for one GPU; the entries are its own."""

    def __init__(self, outer: Jitted, number: int, to_host: bool) -> None:
        options = replace(outer.options, backend="cuda", device=None)
        super().__init__(outer.function, options, original=self._plain)
        self.outer = outer
        self.number = number
        self.to_host = to_host

    def inline(self, outside: Outside) -> Any:
        """What traced code calls in place of this function."""
        return self.outer.inline(outside)

    def elsewhere(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Headers are of this device."""

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call."""
        from npjit.backends.cuda import cupy

        cuda = cupy().cuda
        if cuda.runtime.getDevice() == self.number:
            return self._answer(args, kwargs)
        with cuda.Device(self.number):
            return self._answer(args, kwargs)

    def _answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given, named = self.wrapped(args, kwargs)
        result = self(*given, **named)
        if is_device_array(result) and not self.to_host:
            return result
        return tree_map(self._finish, result)

    def wrapped(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with headers in place of arrays."""
        changed = tuple(
            self._wrap(v) if kind_of(v) == "leaf" else tree_map(self._wrap, v) for v in args
        )
        return changed, tree_map(self._wrap, kwargs) if kwargs else kwargs

    # ------------------------------------------------------------ arguments and results

    def _wrap(self, value: Any) -> Any:
        from npjit.backends.cuda import cupy

        if is_device_array(value):
            return np.asarray(Header(cupy().asarray(value), None))
        if self.to_host and type(value) is np.ndarray and value.ndim:
            return np.asarray(Header(_uploaded(value), value))
        return value

    def _finish(self, value: Any) -> Any:
        """A result as the caller is to see it."""
        from npjit.backends.cuda import cupy

        if isinstance(value, DeviceScalar):
            if value.weight is Weight.WEAK:
                return value.array.item()
            return cupy().asnumpy(value.array)[()] if self.to_host else value.array
        if isinstance(value, np.ndarray):
            return _unwrapped(value)
        if self.to_host and is_device_array(value):
            return cupy().asnumpy(value, order="A")
        return value

    def _plain(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, on the arrays behind the headers."""
        changed = tree_map(_unwrapped, [list(args), kwargs])
        return self.outer.original(*changed[0], **changed[1])


def _uploaded(value: np.ndarray) -> Any:
    """A copy on the current device, in the same memory order."""
    from npjit.backends.cuda import cupy

    return cupy().asarray(value, order="K")


def _unwrapped(value: Any) -> Any:
    """The array that a header, or a view of one, stands for."""
    root = header_root(value) if isinstance(value, np.ndarray) else None
    if root is None:
        return value
    base = root.owner if root.source is None else root.source
    whole = root.__array_interface__
    offset = value.ctypes.data - whole["data"][0]
    if offset == 0 and value.shape == base.shape and value.dtype == base.dtype:
        same = root.source is not None or value.strides == base.strides
        if same and value.strides == root.owner.strides:
            return base
    if root.source is not None:
        return _host_view(root, value, offset)
    from npjit.backends.cuda import cupy

    pointer = base.data + offset
    return cupy().ndarray(value.shape, value.dtype, pointer, value.strides)


def _host_view(root: Header, value: np.ndarray, offset: int) -> np.ndarray:
    """The view of the NumPy source that `value` is of its copy, which has the same memory order."""
    source = root.source
    assert source is not None
    if source.strides != root.owner.strides:
        raise TypeError(
            "a view of an argument that is not contiguous cannot come back from the GPU"
        )
    return np.lib.stride_tricks.as_strided(
        np.ndarray((1,), value.dtype, source.data, offset), value.shape, value.strides
    )


# ---------------------------------------------------------------- entries


def compile_cuda(captured: Captured, graph: Graph, plan: Plan, watch: Stopwatch) -> Compiled:
    """An entry that runs the plan on the GPU."""
    from npjit.backends.cuda import program_for

    program = program_for(plan)
    watch.lap("print")
    call = DeviceCall(captured, graph, program)
    specs = [result_spec(kind, what, graph.outputs, None) for kind, what in captured.results]
    fits = program.fits if plan.guards else None
    entry = make_entry(captured, specs, call=call, fits=fits)
    return Compiled(entry, graph, "cuda", plan, program.module.source, watch.seconds)


class DeviceCall:
    """What an entry calls: headers in, one result for each output that is no input."""

    def __init__(self, captured: Captured, graph: Graph, program: Program) -> None:
        self.results = captured.results
        self.weights = [n.type.weight for n in graph.outputs]
        self.program = program
        self.written = program.written_inputs()
        self.has_alias = any(kind == "alias" for kind, _ in captured.results)
        self._graph = graph
        self._constants: dict[int, Any] = {}

    def __call__(self, inputs: list[Any]) -> list[Any] | None:
        arrays = [self._array(v) for v in inputs]
        try:
            fresh = self.program(arrays)
        except CheckFailed:
            return None  # the function itself answers the call
        self._write_back(inputs, arrays)
        sizes = variables(self._graph, inputs) if self.has_alias else {}
        found = []
        for kind, what in self.results:
            if kind == "fresh":
                weight = self.weights[what]
                value = fresh[what]
                found.append(value if weight is Weight.ARRAY else DeviceScalar(value, weight))
            elif kind == "alias":
                found.append(alias_result(what, inputs, sizes))
        return found

    def _array(self, value: Any) -> Any:
        """The device array of a header; a NumPy array that the function itself brought is copied
        once.
        """
        if type(value) is not np.ndarray:
            return value
        root = value.base
        if isinstance(root, Header):
            return root.owner
        known = self._constants.get(id(value))
        if known is None:
            known = self._constants[id(value)] = (_uploaded(value), value)
        return known[0]

    def _write_back(self, inputs: list[Any], arrays: list[Any]) -> None:
        """Results in place of arguments that came from the CPU."""
        for position in self.written:
            root = inputs[position].base
            if isinstance(root, Header) and root.source is not None:
                root.source[...] = arrays[position].get()
