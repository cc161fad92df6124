"""The bench of the programs: what it counts, what it hands to Pythran, and that JAX forms agree."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np
import pytest

import npjit
from benches.programs.check import assert_right
from benches.programs.form import Form
from benches.programs.measure import Row, is_running, measure
from benches.programs.page import absences, row_text, summary
from benches.programs.pythran_forms import pythran_source, said
from benches.programs.table import PROGRAMS


def row(name: str, right: bool = True, **milliseconds: float) -> Row:
    times = {peer: ms / 1e3 for peer, ms in milliseconds.items()}
    return Row(PROGRAMS[name], "small", right, True, times, {"npjit": 0.1})


def test_best_peer_is_the_fastest_there_is() -> None:
    one = row("lu", numpy=8.0, numba=2.0, npjit=1.0)
    assert one.best_peer == "numba"
    assert one.ratio("numba") == 2.0
    assert math.isnan(one.ratio("jax"))
    assert "| Numba | 2.00 |" in row_text(one)


def test_a_program_counts_when_all_its_rows_do() -> None:
    rows = [
        row("lu", numpy=8.0, npjit=1.0),
        row("lu", numpy=0.9, npjit=1.0),
        row("mvt", numpy=0.96, npjit=1.0),
    ]
    assert "- at least equal to the best peer: 2 of 3 rows, 1 of 2 programs" in summary(rows)


def test_a_wrong_result_counts_as_slow() -> None:
    lines = summary([row("lu", right=False, numpy=8.0, npjit=1.0)])
    assert "- at least equal to NumPy: 0 of 1 rows, 0 of 1 programs" in lines


def test_a_large_ratio_counts_as_ten() -> None:
    lines = summary([row("lu", numpy=1000.0, npjit=1.0), row("mvt", numpy=2.5, npjit=1.0)])
    assert any(line.startswith("- all (2): geomean 5.00 over the best peer") for line in lines)


def test_only_peers_with_absences_are_told_of() -> None:
    assert absences({"numba": {}, "jax": {"crc16": "bits"}}) == [
        "No form for JAX:",
        "",
        "- crc16: bits",
        "",
    ]


def test_a_wrong_peer_is_not_timed() -> None:
    program = PROGRAMS["trisolv"]

    def wrong(L: Any, x: Any, b: Any) -> None:
        x[:] = b

    forms = {
        "numpy": Form(program.function, typed=True),
        "npjit": Form(npjit.jit(program.function), typed=True),
        "numba": Form(wrong),
    }
    found = measure(program, "tiny", forms, 0.0)
    assert found.right and found.whole
    assert set(found.times) == {"numpy", "npjit"}


def test_threads_that_wait_are_not_running() -> None:
    done = threading.Event()
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    assert is_running(str(threading.get_native_id()))
    deadline = time.monotonic() + 10
    while is_running(str(waiting.native_id)) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert not is_running(str(waiting.native_id))
    done.set()
    waiting.join()
    assert not is_running(str(waiting.native_id))


def test_pythran_gets_a_program_with_what_it_calls() -> None:
    source = pythran_source(PROGRAMS["n_body"])
    assert source.startswith(
        "# pythran export n_body(float64[:, :], float64[:, :], float64[:, :], "
        "int, float, float, float)\n"
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    program = PROGRAMS["n_body"]
    got, want = program.arguments(program.tiny), program.arguments(program.tiny)
    given = namespace["n_body"](*got)
    np.testing.assert_array_equal(given, program.function(*want))


@pytest.mark.parametrize(
    "output, reason",
    [
        ("a.hpp:1: error: no type\nE: a.py:3:9 error: no overload\n", "no overload"),
        ("a.hpp:1: error: no type\nb.hpp:2: error: other\n", "no type"),
        ("g++: fatal error: Killed signal terminated program cc1plus\n", "more than 60 s"),
        ("", "no reason given"),
    ],
)
def test_why_pythran_refuses(output: str, reason: str) -> None:
    assert reason in said(output)


@pytest.mark.parametrize("name", PROGRAMS)
def test_jax_form_is_right(name: str) -> None:
    pytest.importorskip("jax")
    from benches.programs import jax_forms

    if name in jax_forms.LEFT_OUT:
        assert name not in jax_forms.FORMS
        return
    program, form = PROGRAMS[name], jax_forms.FORMS[name]
    arguments = program.arguments(program.tiny)
    wanted = form.wanted(program.function(*arguments), arguments)
    arguments = form.prepare(program.arguments(program.tiny))
    given = form.given(form(*arguments), arguments)
    assert_right(program, given, wanted, typed=False)
