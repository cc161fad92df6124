"""The rules of docs/architecture.md that imports and names can break.

Who may import whom; and that `core`, `schedule`, `codegen` and `transform` know no op by name.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import npjit.ops
from npjit.ops import kinds

PACKAGE = Path(npjit.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# package -> the packages that its modules may import, besides itself
ALLOWED = {
    "core": set(),
    "ops": {"core"},
    "frontend": {"core", "ops", "_runtime"},
    "transform": {"core", "ops"},
    "schedule": {"core"},
    "codegen": {"core", "schedule", "_runtime"},
    "backends": {"core", "codegen", "schedule", "_runtime"},
    "api": {"core", "ops", "frontend", "transform", "schedule", "codegen", "backends", "_runtime"},
    "cli": {"api", "backends", "codegen", "core", "_runtime", ""},
    "": {"api", "backends", "cli", "core"},
}


def package_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and package ("" for npjit itself) of every import of npjit in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            inner = [f"{node.module}.{a.name}" for a in node.names]
            names = inner if node.module == "npjit" else [node.module]
        else:
            continue
        for name in names:
            if name.partition(".")[0] == "npjit":
                found = name.split(".")[1] if "." in name else ""
                is_package = (PACKAGE / found).is_dir() or found == "_runtime"
                yield node.lineno, found if is_package else ""


@pytest.mark.parametrize("package", ALLOWED)
def test_who_imports_whom(package):
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {other or 'npjit'}"
        for path in FILES
        if package_of(path) == package
        for line, other in imported(path)
        if other != package and other not in ALLOWED[package]
    ]
    assert not wrong


def test_every_package_has_its_rule():
    assert {package_of(p) for p in FILES} == set(ALLOWED)


# strings that are an op's name by chance: a size expression's term, parts of a complex number, a
# probe of libmvec. The preludes are libraries of C functions, which have NumPy's names.
CHANCE = {
    "core/assume.py": {"select"},
    "core/size.py": {"select"},
    "schedule/reach.py": {"select"},
    "codegen/cython_printer.py": {"real", "imag"},
    "codegen/cuda_lanes.py": {"sin"},
    "codegen/toolchain.py": {"exp"},
}


def strings_in(path: Path) -> Iterator[tuple[int, str]]:
    """Every string literal of a file but docstrings."""
    docs = {
        node.body[0].value.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.STRING and token.start[0] not in docs:
            yield token.start[0], token.string


@pytest.mark.parametrize("package", ["core", "schedule", "codegen", "transform"])
def test_passes_know_no_op_by_name(package):
    """An op's name in quotes is how a pass would ask for it; kinds and styles have names of their
    own.
    """
    structural = {op.name for op in kinds.ROWS.values() if op.name == op.kind.value}
    styles = {op.reduction.style for op in kinds.ROWS.values() if op.reduction is not None}
    names = set(kinds.ROWS) - structural - styles
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in FILES
        if package_of(path) == package and "prelude" not in str(path)
        for line, text in strings_in(path)
        if text.strip("rbfu").strip("\"'")
        in names - CHANCE.get(path.relative_to(PACKAGE).as_posix(), set())
    ]
    assert not wrong
