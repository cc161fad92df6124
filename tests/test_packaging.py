"""What installing npjit brings, and what importing it does not."""

import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import npjit

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SLOW_IMPORTS = (
    "numba",
    "cupy",
    "cython",
    "Cython",
    "scipy.linalg",
    "matplotlib",
    "networkx",
    "setuptools",
)


def test_import_loads_nothing_heavy():
    program = "import sys, npjit; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "npjit" in loaded
    assert loaded.isdisjoint(SLOW_IMPORTS)


def test_numpy_is_the_only_hard_dependency():
    assert PROJECT["project"]["dependencies"] == ["numpy>=2.0"]


def test_version_is_said_once():
    assert npjit.__version__ == PROJECT["project"]["version"]


def test_every_data_file_is_packaged():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]
    for path in (ROOT / "npjit").rglob("*"):
        if path.is_dir() or path.suffix in (".py", ".pyc", ".so"):
            continue
        package = ".".join(path.parent.relative_to(ROOT).parts)
        assert any(fnmatch(path.name, p) for p in patterns.get(package, [])), path


def test_every_package_has_init():
    for path in (ROOT / "npjit").rglob("*.py"):
        assert (path.parent / "__init__.py").exists(), path


def test_packaged_contract_is_the_runtimes():
    packaged = ROOT / "npjit" / "codegen" / "prelude" / "abi.h"
    assert packaged.read_bytes() == (ROOT / "runtime" / "abi.h").read_bytes()


def test_extras():
    extras = PROJECT["project"]["optional-dependencies"]
    named = "bench compiler cuda12 cuda13 cython demo docs draw numba programs test"
    assert set(named.split()) <= set(extras)
