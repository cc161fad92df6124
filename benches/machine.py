"""What a figure depends on: date, processor, threads, versions.

In: a thread count, packages. Out: a dict of texts, for the head of RESULTS.md.
"""

import datetime
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import npjit

PACKAGES = ("numpy", "numba", "jax", "torch")


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def compiler() -> str:
    try:
        answer = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no g++"
    return answer.stdout.splitlines()[0]


def describe(threads: int, packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "absent"
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "threads": str(threads),
        "python": platform.python_version(),
        "compiler": compiler(),
        "npjit": npjit.__version__,
        **versions,
    }
