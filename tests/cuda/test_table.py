"""Every elementwise row of the table as CUDA against NumPy, under the emulator: all loops, special
values."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from npjit.ops import kinds
from tests import test_ops_compiled as rows
from tests.cuda import emulate


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The C++ tests of rows, with the emulator in place of the C++ printer."""
    monkeypatch.setattr(rows, "run", emulate.run)
    if "NPJIT_TEST_GPU" in os.environ:
        # roots of complex numbers go through the device's hypot
        monkeypatch.setattr(rows, "EXACT", rows.EXACT - {"sqrt"})


@pytest.mark.parametrize("ufunc", sorted(kinds.UFUNCS, key=lambda u: u.__name__))
def test_row(ufunc: np.ufunc) -> None:
    rows.test_row(ufunc)


@pytest.mark.parametrize("source", rows.DTYPES, ids=str)
def test_cast(source: np.dtype[Any]) -> None:
    rows.test_cast(source)


def test_select_and_gate() -> None:
    rows.test_select_and_gate()


@pytest.mark.parametrize("name", rows.PARTS)
def test_part(name: str) -> None:
    rows.test_part(name)


def test_int64_against_uint64() -> None:
    rows.test_int64_against_uint64()
