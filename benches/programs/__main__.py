"""Times every program by npjit, NumPy, Numba, JAX and Pythran by turns.

In: options. Out: benches/RESULTS_PROGRAMS.md, and its rows on the terminal as they come:

    python -m benches.programs --size small --only lu,crc16

Pythran compiles ahead, once, what its folder lacks: ten minutes at the first run.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numba
import numpy as np

import npjit
from benches.programs import jax_forms, numba_forms
from benches.programs.form import Form
from benches.programs.measure import measure
from benches.programs.page import HEAD, page, row_text, summary
from benches.programs.program import Program
from benches.programs.pythran_forms import PythranForms, Refused
from benches.programs.table import PROGRAMS

PAGE = Path(__file__).parent.parent / "RESULTS_PROGRAMS.md"


class Contest:
    """The forms of each program, and of those missing the reason, by peer and program."""

    def __init__(self, programs: list[Program]) -> None:
        self.pythran = PythranForms()
        self.pythran.build(programs)
        self.missing: dict[str, dict[str, str]] = {"numba": {}, "jax": {}, "pythran": {}}

    def forms(self, program: Program) -> dict[str, Form]:
        forms = {
            "numpy": Form(program.function, typed=True),
            "npjit": Form(npjit.jit(program.function), typed=True),
            "numba": Form(numba_forms.FORMS[program.name]),
        }
        if program.name in jax_forms.FORMS:
            forms["jax"] = jax_forms.FORMS[program.name]
        else:
            self.missing["jax"][program.name] = jax_forms.LEFT_OUT[program.name]
        built = self.pythran.form(program)
        if isinstance(built, Refused):
            self.missing["pythran"][program.name] = built.reason
        else:
            forms["pythran"] = Form(built)
        return forms


def main() -> None:
    parser = argparse.ArgumentParser(description="Times the NumPy programs.")
    parser.add_argument("--size", choices=["small", "large", "both"], default="both")
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--seconds", type=float, default=0.5, help="for a program at one size")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(PROGRAMS)
    sizes = ["small", "large"] if options.size == "both" else [options.size]
    contest = Contest([PROGRAMS[name] for name in names])
    rows = []
    print(HEAD)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            for size in sizes:
                forms = contest.forms(PROGRAMS[name])
                row = measure(PROGRAMS[name], size, forms, options.seconds)
                for peer in forms.keys() - row.times.keys():
                    contest.missing[peer][name] = f"wrong at its {size} size"
                rows.append(row)
                print(row_text(row), flush=True)
    print("\n".join(summary(rows)))
    if not options.only:
        PAGE.write_text(page(rows, contest.missing, numba.get_num_threads()))


if __name__ == "__main__":
    main()
