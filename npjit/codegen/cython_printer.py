"""Plans as Cython extension modules: the same C++, and a typed .pyx around it.

In: a `Plan`, the module's name, names for its inputs and what to return. Out: the texts of
<name>_native.cpp, <name>.pyx and a setup.py. The built module needs NumPy alone, runs in the
calling thread, and still exports npjit_prepare and npjit_run for a runtime that has threads:

    print_cython(plan, Module("scale", ("x",), "r0"))
        def scale(x):
            return _call(x)
        cdef object _call(object x0):
            c0 = _checked('x', x0, 'float64', (None,), 'C')
            ...
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from npjit.codegen.cpp import print_cpp
from npjit.codegen.cpp_types import is_complex
from npjit.codegen.toolchain import Compiler
from npjit.core.dtypes import kind_of
from npjit.schedule.kernel import DType
from npjit.schedule.plan import (
    Call,
    Check,
    Contract,
    InputSpec,
    Launch,
    OutputSpec,
    Plan,
    every_step,
)

# what one thread offers to compiled graphs: no workers, no BLAS, memory that grows
_SERIAL = """
extern "C" void* malloc(unsigned long);
extern "C" void free(void*);

static void serial_parallel(npjit_body body, void* context, npjit_int64 n, npjit_int64) {
  body(context, 0, n, 0);
}
static int serial_chunks(npjit_int64, npjit_int64) { return 1; }
static int serial_interrupted() { return 0; }
struct serial_memory {
  void* start = nullptr;
  npjit_int64 size = 0;
  ~serial_memory() { free(start); }
};
static void* serial_scratch(npjit_int64 bytes) {
  static thread_local serial_memory memory;
  if (memory.size < bytes) {
    free(memory.start);
    memory.start = malloc(bytes + 64);
    memory.size = bytes;
  }
  return (char*)memory.start + (64 - (unsigned long)memory.start % 64) % 64;
}
extern "C" const npjit_api* npjit_serial_api() {
  static const npjit_api api = {
      serial_parallel, serial_chunks, serial_interrupted, {}, serial_scratch, nullptr};
  return &api;
}
"""

_HEAD = '''# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Compiled by npjit. Importing it needs NumPy; building it, Cython and a C++ compiler."""

import operator as _operator

import numpy as _np
from numpy.lib.stride_tricks import as_strided as _as_strided

cdef extern from *:
    """
    struct npjit_api;
    extern "C" int npjit_prepare(const long long* in_words, long long* out);
    extern "C" int npjit_run(const npjit_api* api, const long long* in_words,
                             const long long* out, char* const* buffers, char* arena);
    extern "C" const npjit_api* npjit_serial_api();
    """
    ctypedef struct npjit_api:
        pass
    int npjit_prepare(const long long*, long long*) nogil
    int npjit_run(const npjit_api*, const long long*, const long long*, char**, char*) nogil
    const npjit_api* npjit_serial_api()


cdef object _checked(str name, object array, str dtype, tuple shape, object layout):
    """The array, when it is what this module was compiled for; a subclass means other things."""
    if type(array) is not _np.ndarray or array.dtype != dtype or array.ndim != len(shape):
        raise TypeError(f"{name} must be a {len(shape)}-d {dtype} array")
    for axis, extent in enumerate(shape):
        if extent is not None and array.shape[axis] != extent:
            raise ValueError(f"{name} must have extent {extent} along axis {axis}")
        if extent is None and array.shape[axis] < 2:
            raise ValueError(f"{name} must have two or more elements along axis {axis}")
        if layout != "C":
            stride, letter = array.strides[axis], layout[axis]
            unlike = {"0": stride != 0, "1": stride != array.itemsize}.get(letter, False)
            if array.shape[axis] > 1 and unlike:
                raise ValueError(f"{name} has another memory layout along axis {axis}")
    if layout == "C" and not array.flags.c_contiguous:
        raise ValueError(f"{name} must be C-contiguous")
    return array


cdef object _memory(object array):
    """The array, with bool and floats of 16 bits as the integers that hold them."""
    kind = {"?": _np.uint8, "e": _np.uint16, "E": _np.uint16}.get(array.dtype.char, array.dtype)
    return array.view(kind)


cdef object _integer(str name, object value, str dtype):
    """The int or bool, when it is one that the dtype holds."""
    if dtype == "bool":
        if not isinstance(value, (bool, _np.bool_)):
            raise TypeError(f"{name} must be a bool")
        return int(value)
    number = _operator.index(value)
    limits = _np.iinfo(dtype)
    if not limits.min <= number <= limits.max:
        raise OverflowError(f"{name} is no {dtype}")
    return number


cdef object _apart(str name, object written, str other, object array):
    """ValueError for a written array that shares memory with another argument."""
    if _np.may_share_memory(written, array):
        raise ValueError(f"{name} is written and overlaps {other}")


def _view(base, offset, shape, strides):
    """A view of the base's memory; offset and strides count elements."""
    if 0 in shape or not base.size:
        return _np.empty(shape, base.dtype)
    pairs = list(zip(base.shape, base.strides))
    before = -sum((n - 1) * s for n, s in pairs if s < 0) // base.itemsize
    count = sum((n - 1) * abs(s) for n, s in pairs) // base.itemsize + 1
    lowest = base[tuple(slice(n - 1, n) if s < 0 else slice(0, 1) for n, s in pairs)]
    memory = _as_strided(lowest, (count,), (base.itemsize,))
    return _as_strided(memory[before + offset:], shape, [s * base.itemsize for s in strides])
'''

_SETUP = """from Cython.Build import cythonize
from setuptools import Extension, setup

FLAGS = {flags!r}

extension = Extension(
    "{name}",
    ["{name}.pyx", "{name}_native.cpp"],
    language="c++",
    extra_compile_args=FLAGS,
    libraries={libraries!r},
)
setup(name="{name}", ext_modules=cythonize([extension]))
"""

# flags of npjit's own units that are about linking or warnings, or that Cython's code cannot have
_NOT_FOR_MODULES = (
    "-shared",
    "-fPIC",
    "-nostdlib",
    "-w",
    "-fno-exceptions",
    "-fno-stack-protector",
)

_CYTHON_TYPES = {
    "?": "unsigned char",
    "b": "signed char",
    "h": "short",
    "i": "int",
    "l": "long",
    "q": "long long",
    "B": "unsigned char",
    "H": "unsigned short",
    "I": "unsigned int",
    "L": "unsigned long",
    "Q": "unsigned long long",
    "e": "unsigned short",
    "E": "unsigned short",  # bfloat16
    "f": "float",
    "d": "double",
    "F": "float complex",
    "D": "double complex",
}


@dataclass(frozen=True)
class Module:
    """A module to print: its and its function's name, a name for each input, and what is returned,
    an expression of the plan's results r0, r1, ... (arrays, 0-d ones included)."""

    name: str
    arguments: tuple[str, ...]
    returns: str


class NotStandalone(Exception):
    """The plan needs more than its own code: a call back into Python and NumPy."""


def print_cython(
    plan: Plan, module: Module, vector: Collection[str] = frozenset()
) -> tuple[str, str]:
    """The C++ and the .pyx text; `vector` lists functions of libmvec that the module may need."""
    for step in every_step(plan.steps):
        if isinstance(step, Call) and not step.op.c:
            raise NotStandalone(f"{step.op.name} is computed by Python")
    return print_cpp(plan, vector) + _SERIAL, _Wrapper(plan, module).print()


def print_setup(module: Module, compiler: Compiler, vector: Collection[str] = frozenset()) -> str:
    """A setup.py that builds the module in place."""
    flags = ["-O3", *(f for f in compiler.flags if f not in _NOT_FOR_MODULES)]
    libraries = ["mvec", "m"] if vector else ["m"]
    return _SETUP.format(name=module.name, flags=flags, libraries=libraries)


class _Wrapper:
    """Prints the .pyx text."""

    def __init__(self, plan: Plan, module: Module) -> None:
        self.plan = plan
        self.module = module
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(f"    {text}")

    def print(self) -> str:
        arguments = ", ".join(self.module.arguments)
        self.lines = [_HEAD, "", f"def {self.module.name}({arguments}):"]
        self.line(f'"""{self._signature()}"""')
        self.line(f"return _call({arguments})")
        inner = ", ".join(f"object x{i}" for i in range(len(self.plan.inputs)))
        self.lines += ["", "", f"cdef object _call({inner}):"]
        self._declare()
        self._read()
        self.line("if npjit_prepare(words, out) != 0:")
        self.line('    raise ValueError("sizes that this module was not compiled for")')
        self._allocate()
        self.line("cdef char[::1] arena = _np.empty(out[0] + 64, _np.int8)")
        self.line("cdef char* start = &arena[0]")
        self.line("start += (64 - <size_t>start % 64) % 64")
        self.line("cdef const npjit_api* api = npjit_serial_api()")
        self.line("cdef int code")
        self.line("with nogil:")
        self.line("    code = npjit_run(api, words, out, buffers, start)")
        self.line("if code != 0:")
        self.line("    raise ValueError(_CHECKS.get(code, f'check {code} failed'))")
        self.line(f"return {self.module.returns}")
        return "\n".join([*self.lines, "", "", self._checks(), ""])

    def _signature(self) -> str:
        shown = []
        for name, spec in zip(self.module.arguments, self.plan.inputs, strict=True):
            dims = ", ".join(str(n) for n in spec.shape)
            shown.append(f"{name}: {spec.dtype}" + ("" if spec.is_scalar else f"[{dims}]"))
        return ", ".join(shown)

    def _declare(self) -> None:
        words = sum(_words(spec) for spec in self.plan.inputs)
        self.line(f"cdef long long words[{max(1, words)}]")
        self.line(f"cdef long long out[{1 + sum(_described(o) for o in self.plan.outputs)}]")
        self.line(f"cdef char* buffers[{max(1, len(self.plan.outputs))}]")
        self.line("cdef double part")
        self.line("cdef double complex pair")

    def _read(self) -> None:
        """Fill `words` from the arguments."""
        written = self._written()
        word = 0
        for i, (name, spec) in enumerate(zip(self.module.arguments, self.plan.inputs, strict=True)):
            if spec.is_scalar:
                self._scalar(i, name, spec.dtype, word)
            else:
                self._array(i, name, spec, word, i in written)
            word += _words(spec)
        names = self.module.arguments
        arrays = [i for i, spec in enumerate(self.plan.inputs) if not spec.is_scalar]
        for i in written:
            for k in arrays:
                if k != i:
                    self.line(f"_apart({names[i]!r}, c{i}, {names[k]!r}, c{k})")

    def _written(self) -> set[int]:
        """Inputs whose memory the plan writes."""
        places = [save.place for save in self.plan.saves]
        for step in every_step(self.plan.steps):
            if isinstance(step, Launch):
                buffers = self.plan.kernels[step.kernel].buffers
                shared = [b for b in buffers if b.role != "row"]
                pairs = zip(shared, step.buffers, strict=True)
                places += [place for b, place in pairs if b.role != "in"]
            elif isinstance(step, Contract):
                places.append(step.c.place)
            elif isinstance(step, Call):
                places += [result.place for _, result in step.results]
        return {place.number for place in places if place.space == "input"}

    def _array(self, i: int, name: str, spec: InputSpec, word: int, written: bool) -> None:
        rank = len(spec.shape)
        extents = tuple(n if isinstance(n, int) else None for n in spec.shape)
        checked = f"_checked({name!r}, x{i}, {spec.dtype.name!r}, {extents}, {spec.layout!r})"
        self.line(f"c{i} = {checked}")
        const = "" if written else "const "
        # a memoryview has at least one axis
        axes = [":"] * max(1, rank)
        if spec.layout == "C":
            axes[-1] = "::1"
        shaped = f"c{i}.reshape(1)" if rank == 0 else f"c{i}"
        kind = f"{const}{_CYTHON_TYPES[spec.dtype.char]}[{', '.join(axes)}]"
        self.line(f"cdef {kind} a{i} = _memory({shaped})")
        zeros = ", ".join(["0"] * max(1, rank))
        self.line(f"words[{word}] = <long long><size_t>&a{i}[{zeros}]")
        size = spec.dtype.itemsize
        for axis in range(rank):
            self.line(f"words[{word + 1 + axis}] = a{i}.shape[{axis}]")
            self.line(f"words[{word + 1 + rank + axis}] = a{i}.strides[{axis}] // {size}")

    def _scalar(self, i: int, name: str, dtype: DType, word: int) -> None:
        if is_complex(dtype):
            self.line(f"pair = x{i}")
            parts = ["pair.real", "pair.imag"]
        else:
            parts = [f"x{i}"]
        if kind_of(dtype) in "fc":
            for k, part in enumerate(parts):
                self.line(f"part = {part}")
                self.line(f"words[{word + k}] = (<long long*>&part)[0]")
        else:
            kind = "unsigned long long" if dtype.kind == "u" else "long long"
            number = f"_integer({name!r}, x{i}, {dtype.name!r})"
            self.line(f"words[{word}] = <long long><{kind}>{number}")

    def _allocate(self) -> None:
        """The results: fresh arrays, views of inputs, inputs."""
        word = 1
        for i, spec in enumerate(self.plan.outputs):
            rank = len(spec.shape)
            if spec.kind == "fresh":
                order = spec.perm or tuple(range(rank))
                shape = "".join(f"out[{word + a}], " for a in order)
                back = tuple(sorted(range(rank), key=lambda k: order[k]))
                self.line(f"m{i} = _np.empty(({shape}), {spec.dtype.name!r})")
                kind = _CYTHON_TYPES[spec.dtype.char]
                self.line(f"cdef {kind}[::1] b{i} = _memory(m{i}.reshape(-1))")
                self.line(f"buffers[{i}] = <char*>&b{i}[0]")
                self.line(f"r{i} = m{i}.transpose({back})")
            elif spec.kind == "alias":
                shape = "".join(f"out[{word + 1 + a}], " for a in range(rank))
                strides = "".join(f"out[{word + 1 + rank + a}], " for a in range(rank))
                self.line(f"r{i} = _view(c{spec.input}, out[{word}], ({shape}), ({strides}))")
            else:
                self.line(f"r{i} = x{spec.input}")
            word += _described(spec)

    def _checks(self) -> str:
        steps = every_step(self.plan.steps)
        found = {s.number: s.message for s in steps if isinstance(s, Check)}
        return f"_CHECKS = {found!r}"


def _words(spec: InputSpec) -> int:
    """Words of `in` for an input."""
    if spec.is_scalar:
        return 2 if is_complex(spec.dtype) else 1
    return 1 + 2 * len(spec.shape)


def _described(spec: OutputSpec) -> int:
    """Words of `out` for an output."""
    rank = len(spec.shape)
    return {"fresh": rank, "alias": 1 + 2 * rank}.get(spec.kind, 0)
