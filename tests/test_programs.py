"""Every program of benches/programs, at a tiny size: right, twice, and without falling back."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import npjit
from benches.programs.check import assert_right
from benches.programs.program import Program
from benches.programs.table import PROGRAMS

CALLS = 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_right(name: str) -> None:
    call_counts(PROGRAMS[name])


def test_how_programs_run(golden: Callable[[str, str], None]) -> None:
    """A program that falls back where it ran whole changes the golden list."""
    counts = {name: call_counts(p) for name, p in PROGRAMS.items()}
    lines = [f"{name} whole {c['whole']} numpy {c['numpy']}" for name, c in counts.items()]
    golden("programs.txt", "\n".join(lines) + "\n")


@functools.cache
def call_counts(program: Program) -> dict[str, Any]:
    """cache_info after some calls, each compared with NumPy: results, types, arguments."""
    compiled = npjit.jit(program.function)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", npjit.NpjitWarning)
        for _ in range(CALLS):
            got_args = program.arguments(program.tiny)
            want_args = program.arguments(program.tiny)
            got = compiled(*got_args)
            want = program.function(*want_args)
            assert_right(program, (got, *got_args), (want, *want_args))
    return compiled.cache_info()
