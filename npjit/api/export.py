"""Compiled functions as Cython-built extension modules: `backend="cython"`, and `npjit.export` for
shipping.

Both print the same C++ as the "cpp" backend with a typed .pyx around it, and build a real extension
module. An exported module needs NumPy alone: neither npjit nor a compiler.
"""

from __future__ import annotations

import functools
import importlib.util
import keyword
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npjit.api.compile import NO_COMPILER, Compiled, Stopwatch, Unavailable, make_entry
from npjit.api.guards import parameters_of
from npjit.core.graph import Graph, Weight
from npjit.frontend.trace import Captured

if TYPE_CHECKING:
    from npjit.codegen.cython_printer import Module
    from npjit.codegen.toolchain import Compiler
    from npjit.schedule.plan import Plan


# a module of such a name would hide the other one, or is hidden by it
_TAKEN = sys.stdlib_module_names | {"Cython", "npjit", "numpy", "setup", "setuptools"}


class ExportError(ValueError):
    """What cannot be a module on its own, and why."""

    __module__ = "npjit"


def export(function: Any, example_args: Sequence[Any], name: str, path: str | Path = ".") -> Path:
    """Write a function, compiled for arguments like these, as an extension module.

    Parameters
    ----------
    function : callable
        A function, or what `npjit.jit`, `npjit.grad` or `npjit.value_and_grad` gave. Its arrays and
        numbers must come in as positional arguments; what it reads of globals and closures must be
        functions and modules.
    example_args : sequence
        Arguments whose dtypes, ranks and memory layouts the module is compiled for. Extents above
        16 may differ. Numbers come in with the types they have here.
    name : str
        The module's name, and its function's.
    path : str or Path
        The folder that receives `<name>.pyx`, `<name>_native.cpp`, `setup.py`, the stub
        `<name>.pyi` and the built module, which is for processors like this machine's.

    Returns
    -------
    Path
        The built module.

    Raises
    ------
    ExportError
        When the function needs more than its arguments, or Cython or a C++ compiler is missing.
    CaptureError
        When the function cannot be captured.

    Examples
    --------
    >>> import tempfile, numpy as np, npjit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     built = npjit.export(lambda x: np.sin(x) + 1, [np.zeros(100)], "shifted_sine", folder)
    >>> built.name.startswith("shifted_sine")
    True
    """
    from npjit.api.inspect import Lowered
    from npjit.api.jitted import Jitted
    from npjit.api.options import Options
    from npjit.codegen.toolchain import find_compiler

    if not name.isidentifier() or keyword.iskeyword(name) or name in _TAKEN:
        raise ExportError(f"{name!r} is no name for a module")
    options = Options(backend="cpp")
    is_jitted = isinstance(function, Jitted)
    jitted = function.with_options(options) if is_jitted else Jitted(function, options)
    compiler = find_compiler()
    if compiler is None:
        raise ExportError(NO_COMPILER)
    low = Lowered(jitted, tuple(example_args), {})
    module = module_of(low.captured, low.graph, name, jitted.function)
    texts = _printed(low.compiled.plan, module, compiler)
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.pyi").write_text(_stub(low.captured, low.graph, module))

    def keep(log: str) -> Path:
        (folder / "build.log").write_text(log)
        return folder / "build.log"

    return _built(texts, module, folder, compiler, keep)


def module_of(captured: Captured, graph: Graph, name: str, function: Any) -> Module:
    """Signature and result of the module; ExportError for what is no positional argument."""
    from npjit.codegen.cython_printer import Module

    names = parameters_of(function)
    arguments = []
    for i in captured.inputs:
        fetch = captured.steps[i.step][0]
        if fetch[0] != "arg":
            raise ExportError(
                f"an exported function takes its arrays and numbers as positional arguments; "
                f"this one reads {' '.join(str(f) for f in fetch[:1] + fetch[2:])}"
            )
        position = fetch[1]
        arguments.append(names[position] if position < len(names) else f"argument{position}")
    return Module(name, tuple(arguments), _returned(captured, graph, captured.tree, arguments))


def _returned(captured: Captured, graph: Graph, tree: Any, arguments: list[str]) -> str:
    """The result's tree as an expression of r0, r1, ..."""

    def inner(t: Any) -> str:
        return _returned(captured, graph, t, arguments)

    kind = tree[0]
    if kind == "leaf":
        what, number = captured.results[tree[1]]
        weight = graph.outputs[number].type.weight if what == "fresh" else Weight.ARRAY
        ending = {Weight.ARRAY: "", Weight.SCALAR: "[()]", Weight.WEAK: ".item()"}[weight]
        return f"r{tree[1]}{ending}"
    if kind == "const" and isinstance(tree[1], (type(None), bool, int, float, str)):
        return repr(tree[1])
    if kind == "tuple":
        return f"({''.join(f'{inner(t)}, ' for t in tree[1])})"
    if kind == "list":
        return f"[{', '.join(map(inner, tree[1]))}]"
    if kind == "dict" and tree[1] is dict:
        pairs = zip(tree[2], tree[3], strict=True)
        return f"{{{', '.join(f'{k!r}: {inner(t)}' for k, t in pairs)}}}"
    raise ExportError(f"an exported function cannot return a {kind}")


def _printed(plan: Plan, module: Module, compiler: Compiler) -> tuple[str, str]:
    """The C++ and the .pyx of a module."""
    from npjit.codegen.cython_printer import NotStandalone, print_cython

    try:
        return print_cython(plan, module, compiler.vector)
    except NotStandalone as e:
        raise ExportError(f"no module of its own: {e}") from None


def _built(
    texts: tuple[str, str],
    module: Module,
    folder: Path,
    compiler: Compiler,
    keep: Callable[[str], Path],
) -> Path:
    """Write a module's sources and its setup.py into `folder`, and run that; `keep` saves the log
    of a build that fails.
    """
    from npjit.codegen.cython_printer import print_setup

    name = module.name
    for missing in ("Cython", "setuptools"):
        if importlib.util.find_spec(missing) is None:
            raise ExportError(f"building a module takes {missing}: pip install 'npjit[cython]'")
    (folder / f"{name}_native.cpp").write_text(texts[0])
    (folder / f"{name}.pyx").write_text(texts[1])
    (folder / "setup.py").write_text(print_setup(module, compiler, compiler.vector))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    program = " ".join(compiler.command)
    environment = {**os.environ, "CXX": program, "CC": program}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    found = [p for p in folder.glob(f"{name}.*") if p.suffix in (".so", ".pyd")]
    if done.returncode or not found:
        raise ExportError(f"building {name} failed; see {keep(done.stdout + done.stderr)}")
    return found[0]


def _stub(captured: Captured, graph: Graph, module: Module) -> str:
    """The .pyi text."""
    kinds = [_annotation(i.node.type) for i in captured.inputs]
    shown = ", ".join(f"{n}: {k}" for n, k in zip(module.arguments, kinds, strict=True))
    head = "from typing import Any\n\nimport numpy as np\nfrom numpy.typing import NDArray\n\n"
    result = _result(captured, graph, captured.tree)
    return f"{head}def {module.name}({shown}) -> {result}: ...\n"


def _result(captured: Captured, graph: Graph, tree: Any) -> str:
    """The type of a result's tree."""
    kind = tree[0]
    if kind == "leaf":
        what, number = captured.results[tree[1]]
        if what == "fresh":
            return _annotation(graph.outputs[number].type)
        node = captured.inputs[number if what == "input" else number.input].node
        return _annotation(node.type)
    if kind == "const":
        return "None" if tree[1] is None else type(tree[1]).__name__
    if kind == "tuple":
        inner = ", ".join(_result(captured, graph, t) for t in tree[1])
        return f"tuple[{inner or '()'}]"
    return "dict[str, Any]" if kind == "dict" else "list[Any]"


def _annotation(type_: Any) -> str:
    if type_.weight is Weight.WEAK:
        return {"f": "float", "i": "int", "c": "complex", "b": "bool"}[type_.dtype.kind]
    scalar = f"np.{type_.dtype.name}" if type_.dtype.kind != "b" else "np.bool_"
    return scalar if type_.weight is Weight.SCALAR else f"NDArray[{scalar}]"


def compile_cython(captured: Captured, graph: Graph, plan: Plan, watch: Stopwatch) -> Compiled:
    """backend="cython": the plan as an extension module in the disk cache."""
    from npjit import _runtime
    from npjit.api.native import native_specs
    from npjit.codegen.cache import digest, open_cache
    from npjit.codegen.cython_printer import Module
    from npjit.codegen.toolchain import find_compiler

    compiler = find_compiler()
    if compiler is None:
        raise Unavailable(NO_COMPILER)
    names = tuple(f"x{i}" for i in range(len(captured.inputs)))
    module = Module("graph", names, "None")
    cache = open_cache()
    try:
        texts = _printed(plan, module, compiler)
        watch.lap("print")
        key = digest("cython", compiler.identity, *texts)
        path = cache.object_path(key)
        if path is None:
            with cache.building() as folder:
                keep = functools.partial(cache.keep_failure, key)
                path = cache.put_object(key, _built(texts, module, folder, compiler, keep))
    except ExportError as e:
        raise Unavailable(f"the cython backend: {e}") from None
    watch.lap("compile")
    perms = tuple(o.perm for o in plan.outputs if o.kind == "fresh")
    native = _runtime.NativeObject(str(path))
    entry = make_entry(captured, native_specs(captured, graph, perms), native=native)
    return Compiled(entry, graph, "cython", plan, "\n".join(texts), watch.seconds)
