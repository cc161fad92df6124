"""Handed-over programs, where they lie beside the checkout: which pass, and how their calls ran.

The golden list has a line for each case: name, verdict, and the calls that ran whole, broken and as
NumPy. A jit that does nothing would pass nearly all of them, so a verdict alone says little; a
regression and an unexpected pass both change the list.
"""

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import npjit

FOLDER = Path(__file__).parent.parent.parent / "shared" / "cases"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no ../shared/cases")

MODES = ("whole", "broken", "numpy")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Recorder:
    """npjit.jit and npjit.grad that remember what they made, to add up its calls."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def jit(self, f: Callable[..., Any]) -> Any:
        return self.remember(npjit.jit(f))

    def grad(self, f: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        return self.remember(npjit.grad(f, *arguments, **options))

    def remember(self, compiled: Any) -> Any:
        if hasattr(compiled, "cache_info"):
            self.made.append(compiled)
        return compiled

    def counts(self) -> str:
        totals = [sum(f.cache_info()[mode] for f in self.made) for mode in MODES]
        return " ".join(f"{mode} {total}" for mode, total in zip(MODES, totals, strict=True))


def run_forked(work: Callable[[Recorder], str]) -> str:
    """The verdict of `work` and its counts, from a child: a crash is one line of the list."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open(os.devnull, "w") as silence, np.errstate(all="ignore"):
                sys.stdout = sys.stderr = silence
                recorder = Recorder()
                verdict = work(recorder)
                os.write(writing, json.dumps(f"{verdict}  {recorder.counts()}").encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else "died"


def test_handed_cases(golden):
    module = load("handed_cases")

    def judge(case: dict[str, Any]) -> Callable[[Recorder], str]:
        return lambda r: module.run(r.jit, r.grad, [case], time_limit=30.0)[0]["status"].lower()

    lines = [f"{c['kind']} {c['name']}: {run_forked(judge(c))}" for c in module.CASES]
    golden("handed_cases.txt", "\n".join(lines) + "\n")


def test_edge_programs(golden):
    module = load("edge_programs")

    def judge(f: Callable[..., Any], make: Any) -> Callable[[Recorder], str]:
        return lambda r: "differs" if module.run(r.jit, f, make) else "agrees"

    lines = [f"{f.__name__}: {run_forked(judge(f, make))}" for f, make in module.F]
    golden("edge_programs.txt", "\n".join(lines) + "\n")
