"""Compiled functions as Cython-built extension modules: `backend="cython"`, and `npjit.export` for
shipping.

Both print the same C++ as the "cpp" backend with a typed .pyx around it, and build a real extension
module. An exported module needs NumPy alone: neither npjit nor a compiler.
"""

from __future__ import annotations

import inspect
import keyword
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npjit.api.compile import Compiled, Stopwatch, make_entry
from npjit.core.graph import Graph, Weight
from npjit.frontend.trace import Captured

if TYPE_CHECKING:
    from npjit.codegen.cython_printer import Module
    from npjit.codegen.toolchain import Compiler
    from npjit.schedule.plan import Plan


class ExportError(ValueError):
    """What cannot be a module on its own, and why."""


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
        16 may differ.
    name : str
        The module's name, and its function's.
    path : str or Path
        The folder that receives `<name>.pyx`, `<name>_native.cpp`, `setup.py`, the stub
        `<name>.pyi` and the built module.

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
    >>> folder = tempfile.mkdtemp()
    >>> built = npjit.export(lambda x: np.sin(x) + 1, [np.zeros(100)], "shifted_sine", folder)
    >>> built.name.startswith("shifted_sine")
    True
    """
    from npjit.api.inspect import Lowered
    from npjit.api.jit import Jitted
    from npjit.api.options import Options

    if not name.isidentifier() or keyword.iskeyword(name):
        raise ExportError(f"{name!r} is no name for a module")
    jitted = function if isinstance(function, Jitted) else Jitted(function, Options())
    low = Lowered(jitted, tuple(example_args), {})
    if low.compiled.plan is None:
        raise ExportError("exporting takes a C++ compiler; python -m npjit doctor says which")
    module = module_of(low.captured, low.graph, name, jitted.function)
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    built = build_module(low.compiled.plan, module, folder)
    (folder / f"{name}.pyi").write_text(_stub(low.captured, low.graph, module))
    return built


def module_of(captured: Captured, graph: Graph, name: str, function: Any) -> Module:
    """Signature and result of the module; ExportError for what is no positional argument."""
    from npjit.codegen.cython_printer import Module

    names = _parameters(function)
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


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


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


def build_module(plan: Plan, module: Module, folder: Path) -> Path:
    """Print the module's sources into `folder` and build it there."""
    from npjit.codegen import toolchain
    from npjit.codegen.cython_printer import NotStandalone, print_cython, print_setup

    compiler = toolchain.find_compiler()
    if compiler is None:
        raise ExportError(
            "building a module takes a C++ compiler; python -m npjit doctor says which"
        )
    try:
        cpp, pyx = print_cython(plan, module, compiler.vector)
    except NotStandalone as e:
        raise ExportError(f"no module of its own: {e}") from None
    (folder / f"{module.name}_native.cpp").write_text(cpp)
    (folder / f"{module.name}.pyx").write_text(pyx)
    (folder / "setup.py").write_text(print_setup(module, compiler, compiler.vector))
    return _built(module.name, folder, compiler)


def _built(name: str, folder: Path, compiler: Compiler) -> Path:
    """Run the folder's setup.py."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    program = " ".join(compiler.command)
    environment = {**os.environ, "CXX": program, "CC": program}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    found = [p for p in folder.glob(f"{name}.*") if p.suffix in (".so", ".pyd")]
    if done.returncode or not found:
        log = folder / "build.log"
        log.write_text(done.stdout + done.stderr)
        raise ExportError(f"building {name} failed; see {log} (it takes Cython and setuptools)")
    return found[0]


def _stub(captured: Captured, graph: Graph, module: Module) -> str:
    """The .pyi text."""
    kinds = [_annotation(i.node.type) for i in captured.inputs]
    shown = ", ".join(f"{n}: {k}" for n, k in zip(module.arguments, kinds, strict=True))
    head = "from typing import Any\n\nimport numpy as np\nfrom numpy.typing import NDArray\n\n"
    result = "Any"
    if captured.tree[0] == "leaf" and captured.results[captured.tree[1]][0] == "fresh":
        result = _annotation(graph.outputs[captured.results[captured.tree[1]][1]].type)
    return f"{head}def {module.name}({shown}) -> {result}: ...\n"


def _annotation(type_: Any) -> str:
    if type_.weight is Weight.WEAK:
        return {"f": "float", "i": "int", "c": "complex", "b": "bool"}[type_.dtype.kind]
    scalar = f"np.{type_.dtype.name}" if type_.dtype.kind != "b" else "np.bool_"
    return scalar if type_.weight is Weight.SCALAR else f"NDArray[{scalar}]"


def compile_cython(
    captured: Captured, graph: Graph, plan: Plan, watch: Stopwatch
) -> Compiled | None:
    """backend="cython": the plan as an extension module in the disk cache."""
    from npjit import _runtime
    from npjit.api.native import native_specs
    from npjit.codegen import toolchain
    from npjit.codegen.cache import digest, open_cache
    from npjit.codegen.cython_printer import Module, NotStandalone, print_cython
    from npjit.ops.errors import NotCaptured

    compiler = toolchain.find_compiler()
    if compiler is None:
        return None
    names = tuple(f"x{i}" for i in range(len(captured.inputs)))
    module = Module("graph", names, "None")
    try:
        texts = print_cython(plan, module, compiler.vector)
    except NotStandalone as e:
        raise NotCaptured(f"the cython backend: {e}") from None
    watch.lap("print")
    cache = open_cache()
    key = digest("cython", compiler.identity, *texts)
    path = cache.object_path(key)
    if path is None:
        with cache.building() as folder:
            path = cache.put_object(key, build_module(plan, module, folder))
    watch.lap("compile")
    perms = tuple(o.perm for o in plan.outputs if o.kind == "fresh")
    native = _runtime.NativeObject(str(path))
    entry = make_entry(captured, native_specs(captured, graph, perms), native=native)
    return Compiled(entry, graph, "cython", plan, "\n".join(texts), watch.seconds)
