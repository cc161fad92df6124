"""The programs compiled ahead by Pythran, from their own source and the types of their arguments.

In: a program. Out: its compiled function, or a `Refused` that says why there is none:

    form = PythranForms().form(PROGRAMS["lu"])

Nothing is rewritten: the function and those of its module that it calls, below an export line, go
to Pythran with the options its documentation advises. What is built or refused is kept in a folder
by a hash of all that, so that a second run builds nothing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from benches.programs.program import Program

FOLDER = Path(__file__).parents[2] / "build" / "pythran"
OPTIONS = (
    *("-O3", "-march=native", "-DUSE_XSIMD", "-fopenmp"),
    *("--config", "compiler.blas=scipy-openblas"),
)
# of the processor for one C++ file, however loaded the machine
MOST_SECONDS = 60
MOST_LETTERS = 160


@dataclass(frozen=True)
class Refused:
    """Why Pythran compiles a program not."""

    reason: str


class PythranForms:
    """What Pythran makes of programs; the folder holds NAME_HASH.so, or .txt with a reason."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.command = shutil.which("pythran", path=Path(sys.executable).parent)

    def build(self, programs: Iterable[Program], workers: int = 2) -> None:
        """Compiles those that the folder lacks, some at a time."""
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(self._built, programs))

    def form(self, program: Program) -> Callable[..., Any] | Refused:
        built = self._built(program)
        if isinstance(built, Refused):
            return built
        found = importlib.util.spec_from_file_location(program.name, built)
        assert found is not None and found.loader is not None
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        form: Callable[..., Any] = getattr(module, program.name)
        return form

    def _built(self, program: Program) -> Path | Refused:
        if self.command is None:
            return Refused("Pythran is not installed")
        source = pythran_source(program)
        inputs = repr((source, OPTIONS, version("pythran"))).encode()
        name = f"{program.name}_{hashlib.sha256(inputs).hexdigest()[:12]}"
        library, reason = self.folder / f"{name}.so", self.folder / f"{name}.txt"
        if reason.exists():
            return Refused(reason.read_text())
        if not library.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            refused = self._compile(program.name, source, library)
            if refused:
                reason.write_text(refused)
                return Refused(refused)
        return library

    def _compile(self, name: str, source: str, library: Path) -> str:
        """Empty, or why it did not compile."""
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            module = Path(scratch) / f"{name}.py"
            built = module.with_suffix(".so")
            module.write_text(source)
            limited = ["sh", "-c", f'ulimit -t {MOST_SECONDS}; exec "$0" "$@"', str(self.command)]
            command = [*limited, *OPTIONS, "-o", built.name, module.name]
            answer = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
            if not built.exists():
                return said(answer.stderr)
            built.replace(library)
        return ""


def said(output: str) -> str:
    """Why it did not compile: Pythran's own word, else the first of the C++ compiler's."""
    if "signal terminated program" in output:
        return f"the C++ compiler takes more than {MOST_SECONDS} s"
    for mark in (r"^E: \S+ error: (.*)$", r" error: (.*)$"):
        found = re.search(mark, output, re.MULTILINE)
        if found:
            return found[1][:MOST_LETTERS]
    return "no reason given"


def pythran_source(program: Program) -> str:
    """A module with the program, what it calls, and its export line."""
    functions = called(program.function)
    types = ", ".join(type_name(x) for x in program.arguments(program.tiny))
    parts = [f"# pythran export {program.name}({types})\nimport numpy as np\n"]
    parts += [inspect.getsource(f) for f in functions]
    return "\n\n".join(parts)


def called(function: Callable[..., Any]) -> list[FunctionType]:
    """The function and, before it, those of its module that it calls."""
    assert isinstance(function, FunctionType)
    found: list[FunctionType] = []
    for name in function.__code__.co_names:
        helper = function.__globals__.get(name)
        if isinstance(helper, FunctionType) and helper is not function:
            found += [f for f in called(helper) if f not in found]
    return [*found, function]


def type_name(value: Any) -> str:
    """As Pythran writes it: `float64[:, :]`, `int`."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{', '.join(':' * value.ndim)}]"
    return type(value).__name__
