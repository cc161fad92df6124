"""Plans made and run by hand, for the printers' tests.

In: a `Plan` and arrays. Out: its outputs, computed by compiled C++ through a little runtime in
ctypes, which shares the work in as many chunks as it is told:

    k = KernelBuilder(axes=("s0",), outer=(0,), buffers=[("f8", "in"), ("f8", "out")])
    k.store(1, {0: 1}, k.apply(ADD, "f8", k.load(0, {0: 1}), k.const(1.0, "f8")))
    run(single(k, [x], outputs=[("f8", ("n0",))], sizes=("n0",)), x)
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from npjit.codegen.cpp_parts import print_parts
from npjit.codegen.toolchain import compile_object, find_compiler
from npjit.core.op import Kind, Literal, Op, Reduction
from npjit.core.size import Size, Var, var
from npjit.schedule import kernel as ir
from npjit.schedule.plan import InputSpec, Launch, OutputSpec, Place, Plan, Source

_I64 = ctypes.c_longlong
_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, _I64, _I64, ctypes.c_int)


def sizes(*names: str) -> list[Any]:
    """Size variables that are never negative."""
    return [var(n, lo=0) for n in names]


S = sizes(*[f"s{i}" for i in range(8)])
N = sizes(*[f"n{i}" for i in range(8)])


def row(name: str, c: Any, complex_c: Any = "", cost: int = 1) -> Op:
    """An elementwise row of the printers' tests."""
    return Op(name, Kind.ELEMENTWISE, lambda *_: None, c=c, complex_c=complex_c, cost=cost)


def reduction(style: str) -> Op:
    """A reducing row of the printers' tests."""
    return Op(f"reduce_{style}", Kind.REDUCE, lambda *_: None, reduction=Reduction(style))


ADD = row("add", "{0} + {1}")
SUBTRACT = row("subtract", "{0} - {1}")
MULTIPLY = row("multiply", "{0} * {1}", ("{0r} * {1r} - {0i} * {1i}", "{0r} * {1i} + {0i} * {1r}"))
DIVIDE = row("divide", "{0} / {1}")
SQRT = row("sqrt", "nj_sqrt({0})", cost=4)
SIN = row("sin", "nj_sin({0})", cost=8)
COS = row("cos", "nj_cos({0})", cost=8)
EXP = row("exp", "nj_exp({0})", cost=8)
CAST = row("cast", lambda params, args, result: f"nj_cast<{_ctype(result)}>({{0}})")
LESS = row("less", "{0} < {1}")


def _ctype(dtype: np.dtype[Any]) -> str:
    from npjit.codegen.cpp_types import ctype

    return ctype(dtype)


class KernelBuilder:
    """A kernel written instruction by instruction; `phase` opens the next phase."""

    def __init__(
        self,
        axes: Sequence[Size],
        outer: Sequence[int],
        buffers: Sequence[tuple[Any, ...]],
        scalars: Sequence[str] = (),
    ) -> None:
        self.axes = tuple(ir.Axis(a) for a in axes)
        self.outer = tuple(outer)
        self.buffers = tuple(ir.Buffer(np.dtype(b[0]), *b[1:]) for b in buffers)
        self.scalars = tuple(np.dtype(s) for s in scalars)
        self.phases: list[ir.Phase] = []
        self.dtypes: dict[int, np.dtype[Any]] = {}
        self._number = 0

    def phase(self, *axes: int) -> None:
        self.phases.append(ir.Phase(axes, ()))

    def _add(self, instr: ir.Instr) -> int:
        if not self.phases:
            self.phase()
        last = self.phases[-1]
        number = self._number
        self._number += 1
        self.phases[-1] = ir.Phase(last.axes, (*last.body, (number, instr)))
        return number

    def _access(self, buffer: int, strides: Mapping[int, Size], offset: Size, gathers: Any) -> Any:
        return ir.Access(buffer, tuple(strides.items()), offset, tuple(gathers))

    def load(
        self,
        buffer: int,
        strides: Mapping[int, Size],
        offset: Size = 0,
        within: Sequence[tuple[int, Size, Size]] = (),
        gathers: Sequence[tuple[int, Size]] = (),
    ) -> int:
        bounds = tuple(ir.Bound(*b) for b in within)
        access = self._access(buffer, strides, offset, gathers)
        return self._add(ir.Load(access, self.buffers[buffer].dtype, bounds))

    def store(self, buffer: int, strides: Mapping[int, Size], value: int, offset: Size = 0) -> None:
        self._add(ir.Store(self._access(buffer, strides, offset, ()), value))

    def const(self, value: Any, dtype: str) -> int:
        return self._add(ir.Const(Literal.of(value, np.dtype(dtype)), np.dtype(dtype)))

    def scalar(self, number: int, dtype: str) -> int:
        return self._add(ir.Scalar(number, np.dtype(dtype)))

    def coordinate(self, axis: int, start: Size = 0, step: Size = 1) -> int:
        return self._add(ir.Coordinate(axis, start, step, np.dtype("i8")))

    def extent(self, size: Size) -> int:
        return self._add(ir.Extent(size, np.dtype("i8")))

    def inside(self, arg: int, dtype: str, *within: tuple[int, Size, Size]) -> int:
        return self._add(ir.Inside(arg, tuple(ir.Bound(*b) for b in within), np.dtype(dtype)))

    def apply(self, op: Op, dtype: str, *args: int) -> int:
        return self._add(ir.Apply(op, args, None, np.dtype(dtype)))

    def reduce(self, style: str, dtype: str, arg: int) -> int:
        return self._add(ir.Reduce(reduction(style), arg, np.dtype(dtype)))

    def kernel(self, count: int) -> ir.Kernel:
        phases = tuple(self.phases)
        return ir.Kernel(self.axes, self.outer, phases, self.buffers, self.scalars, count)


def single(
    k: KernelBuilder,
    inputs: Sequence[Any],
    outputs: Sequence[tuple[str, Sequence[Size]]],
    arguments: Sequence[Size] = (),
) -> Plan:
    """A plan that launches one kernel on its inputs and outputs; `arguments` are the sizes s0, s1,
    ... in terms of n0, n1, ..., the inputs' extents in order."""
    specs, sources = describe(inputs)
    taken: list[Place] = []
    arrays = [i for i, spec in enumerate(specs) if not spec.is_scalar]
    produced = 0
    for b in k.buffers:
        if b.role == "in":
            taken.append(Place("input", arrays.pop(0)))
        elif b.role in ("out", "inout"):
            taken.append(Place("output", produced))
            produced += 1
    scalars = tuple(i for i, spec in enumerate(specs) if spec.is_scalar)
    launch = Launch(0, tuple(taken), scalars, tuple(arguments))
    fresh = tuple(OutputSpec("fresh", np.dtype(d), tuple(shape)) for d, shape in outputs)
    return Plan(specs, fresh, (k.kernel(len(arguments)),), (launch,), 0, (), sources)


def describe(inputs: Sequence[Any]) -> tuple[tuple[InputSpec, ...], dict[Var, Source]]:
    """Specs of these inputs, with extents n0, n1, ... in order; NumPy scalars are scalars."""
    specs = []
    sources: dict[Var, Source] = {}
    for i, a in enumerate(inputs):
        shape: list[Size] = []
        for axis in range(np.ndim(a)):
            name = N[len(sources)]
            sources[name.terms[0][0][0]] = Source(i, "extent", axis)
            shape.append(name)
        specs.append(InputSpec(np.asarray(a).dtype, tuple(shape), not isinstance(a, np.ndarray)))
    return tuple(specs), sources


# ---------------------------------------------------------------- running


class _Api(ctypes.Structure):
    _fields_ = (
        ("parallel", ctypes.CFUNCTYPE(None, _BODY, ctypes.c_void_p, _I64, _I64)),
        ("chunks", ctypes.CFUNCTYPE(ctypes.c_int, _I64, _I64)),
        ("interrupted", ctypes.CFUNCTYPE(ctypes.c_int)),
        ("blas", ctypes.c_void_p * 10),
        ("scratch", ctypes.CFUNCTYPE(ctypes.c_void_p, _I64)),
    )


@functools.cache
def _blas() -> Any:
    """NumPy's own BLAS: addresses in npjit_api's order, 0 where a function is missing."""
    stems = [
        "dgemm",
        "sgemm",
        "zgemm",
        "cgemm",
        "dgemv",
        "sgemv",
        "zgemv",
        "cgemv",
        "dsyrk",
        "ssyrk",
    ]
    with open("/proc/self/maps") as file:
        paths = {line.split()[-1] for line in file if "openblas" in line}
    addresses = [0] * len(stems)
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        for i, stem in enumerate(stems):
            function = getattr(library, f"scipy_cblas_{stem}64_", None)
            addresses[i] = addresses[i] or ctypes.cast(function, ctypes.c_void_p).value or 0
    return addresses


def _make_api(
    threads: int, blas: bool | Callable[[int], object], backwards: bool = False
) -> tuple[_Api, list[Any]]:
    """An npjit_api that cuts ranges in `threads` chunks, one after the other or in front of it.
    `blas` is False, True, or called with the number of each function that is used, which then does
    nothing."""
    held: list[Any] = []
    pointers = (ctypes.c_void_p * 10)()
    if blas is True:
        pointers[:] = _blas()
    elif blas:
        for i in range(10):
            spy = ctypes.CFUNCTYPE(None)(functools.partial(blas, i))
            held.append(spy)
            pointers[i] = ctypes.cast(spy, ctypes.c_void_p)

    def count(n: int, grain: int) -> int:
        return max(1, min(threads, n // max(grain, 1)))

    def parallel(body: Any, context: int, n: int, grain: int) -> None:
        chunks = count(n, grain)
        for c in reversed(range(chunks)) if backwards else range(chunks):
            body(context, n * c // chunks, n * (c + 1) // chunks, c)

    def scratch(size: int) -> int:
        block = np.empty(size + 64, np.uint8)
        held.append(block)
        return block.ctypes.data + -block.ctypes.data % 64

    fields = dict(_Api._fields_)
    api = _Api(
        fields["parallel"](parallel),
        fields["chunks"](count),
        fields["interrupted"](lambda: 0),
        pointers,
        fields["scratch"](scratch),
    )
    return api, held


@functools.cache
def _load(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def words(inputs: Sequence[Any]) -> Any:
    """The `in` words of a call."""
    found: list[int] = []
    for a in inputs:
        if isinstance(a, np.ndarray):
            found += [a.ctypes.data, *a.shape, *(s // a.itemsize for s in a.strides)]
        elif np.asarray(a).dtype.kind in "fc":
            parts = [a.real, a.imag] if np.iscomplexobj(a) else [a]
            found += [int(np.float64(p).view(np.int64)) for p in parts]
        else:
            found.append(int(np.asarray(a).astype(np.int64)))
    return (_I64 * max(1, len(found)))(*found)


class CheckFailed(Exception):
    """npjit_run or npjit_prepare gave this number."""


def run(
    plan: Plan,
    *inputs: Any,
    threads: int = 1,
    blas: bool | Callable[[int], object] = False,
    most: int = 1,
    backwards: bool = False,
    edit: Callable[[str], str] = str,
) -> list[np.ndarray[Any, Any]]:
    """The plan's fresh outputs for these inputs, compiled as at most `most` units; chunks may run
    `backwards`. `edit` changes the text."""
    compiler = find_compiler()
    assert compiler is not None
    units = tuple(map(edit, print_parts(plan, compiler, most)))
    library = _load(str(compile_object(*units, compiler=compiler)))
    given = words(inputs)
    out = (_I64 * 64)()
    code = library.npjit_prepare(given, out)
    if code:
        raise CheckFailed(code)
    word = 1
    results = []
    for spec in plan.outputs:
        assert spec.kind == "fresh"
        shape = tuple(out[word : word + len(spec.shape)])
        word += len(spec.shape)
        # what the code does not write shows
        results.append(np.full(shape, 77, spec.dtype))
    pointers = (ctypes.c_void_p * max(1, len(results)))(*(r.ctypes.data for r in results))
    arena = np.zeros(out[0] + 64, np.uint8)
    start = ctypes.c_void_p(arena.ctypes.data + -arena.ctypes.data % 64)
    api, _held = _make_api(threads, blas, backwards)
    code = library.npjit_run(ctypes.byref(api), given, out, pointers, start)
    if code:
        raise CheckFailed(code)
    return results
