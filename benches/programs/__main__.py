"""Times every program with npjit, NumPy and Numba by turns and writes benches/RESULTS_PROGRAMS.md.

In: options. Out: the page, and its rows on the terminal as they come:

    python -m benches.programs --size small --only lu,crc16

A turn is one call of each, on fresh arguments, and the least time of all turns counts: a noisy
moment hits one call of one of them. Every first result is compared with NumPy's.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np

import npjit
from benches.machine import describe
from benches.programs.check import assert_right
from benches.programs.numba_forms import FORMS
from benches.programs.program import Kind, Program
from benches.programs.table import PROGRAMS

PAGE = Path(__file__).parent.parent / "RESULTS_PROGRAMS.md"
HEAD = (
    "| program | kind | size | right | whole | NumPy ms | npjit ms | over NumPy | over Numba "
    "| first call s | Numba's s |"
)
# a ratio above this counts as this in a mean
MOST = 10.0


@dataclass
class Row:
    """One program at one size; times are seconds, nan where a form is missing or wrong."""

    program: Program
    size: str
    right: bool
    whole: bool
    times: dict[str, float]
    first: dict[str, float]

    def ratio(self, peer: str) -> float:
        """How many times as fast as the peer npjit is; 0 where npjit is wrong."""
        return self.times[peer] / self.times["npjit"] if self.right else 0.0

    def text(self) -> str:
        numbers = [
            f"{1e3 * self.times['numpy']:.2f}",
            f"{1e3 * self.times['npjit']:.3f}",
            f"{self.ratio('numpy'):.2f}",
            f"{self.ratio('numba'):.2f}",
            f"{self.first['npjit']:.2f}",
            f"{self.first['numba']:.2f}",
        ]
        answers = ["yes" if x else "NO" for x in (self.right, self.whole)]
        cells = [self.program.name, self.program.kind.value, self.size, *answers, *numbers]
        return f"| {' | '.join(cells)} |"


def measure(program: Program, size: str, seconds: float) -> Row:
    """One program at its size named "small" or "large", for about this long."""
    extent = getattr(program, size)
    compiled = npjit.jit(program.function)
    forms = {"numpy": program.function, "npjit": compiled, "numba": FORMS[program.name]}
    checks = {name: first_call(program, form, extent) for name, form in forms.items()}
    times = by_turns(program, forms, extent, seconds)
    times["numba"] = times["numba"] if checks["numba"][0] else math.nan
    info = compiled.cache_info()
    whole = not info["numpy"] and not info["broken"]
    first = {name: seconds for name, (_, seconds) in checks.items()}
    return Row(program, size, checks["npjit"][0], whole, times, first)


def first_call(program: Program, form: Callable[..., Any], extent: int) -> tuple[bool, float]:
    """Whether a call gave what NumPy gives, and the seconds it took."""
    got_args, want_args = program.arguments(extent), program.arguments(extent)
    start = time.perf_counter()
    got = form(*got_args)
    seconds = time.perf_counter() - start
    want = program.function(*want_args)
    try:
        typed = form is not FORMS[program.name]
        assert_right(program, (got, *got_args), (want, *want_args), typed=typed)
    except AssertionError as e:
        print(f"{program.name} of {form}: {e}")
        return False, seconds
    return True, seconds


def by_turns(
    program: Program, forms: dict[str, Callable[..., Any]], extent: int, seconds: float
) -> dict[str, float]:
    """The least time of a call of each form; at least three turns."""
    least = dict.fromkeys(forms, math.inf)
    end = time.perf_counter() + seconds
    turns = 0
    while turns < 3 or time.perf_counter() < end:
        for name, form in forms.items():
            args = program.arguments(extent)
            start = time.perf_counter()
            form(*args)
            least[name] = min(least[name], time.perf_counter() - start)
        turns += 1
    return least


def geomean(ratios: list[float]) -> float:
    """Of the known ratios, each between 0.01 and MOST."""
    known = [min(max(r, 0.01), MOST) for r in ratios if not math.isnan(r)]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else math.nan


def summary(rows: list[Row]) -> list[str]:
    """Counts and means, by kind."""
    lines = [
        f"- right {sum(r.right for r in rows)} of {len(rows)}, whole {sum(r.whole for r in rows)}",
        f"- not slower than NumPy (5 %): {sum(r.ratio('numpy') >= 0.95 for r in rows)}",
        f"- not slower than Numba (5 %): {sum(r.ratio('numba') >= 0.95 for r in rows)}",
    ]
    for kind in Kind:
        mine = [r for r in rows if r.program.kind is kind]
        over = [geomean([r.ratio(peer) for r in mine]) for peer in ("numpy", "numba")]
        lines.append(
            f"- {kind.value}-bound ({len(mine)}): geomean {over[0]:.2f} over NumPy, {over[1]:.2f} "
            f"over Numba (a ratio above {MOST:.0f} counts as {MOST:.0f})"
        )
    firsts = sorted(r.first["npjit"] for r in rows)
    if firsts:
        lines.append(
            f"- first call: median {firsts[len(firsts) // 2]:.2f} s, worst {firsts[-1]:.2f} s"
        )
    return lines


def page(rows: list[Row], threads: int) -> str:
    facts = ", ".join(f"{k} {v}" for k, v in describe(threads).items())
    rule = "|" + "---|" * (HEAD.count("|") - 1)
    intro = (
        "Written by `python -m benches.programs`: the same NumPy program as it stands, by "
        "`npjit.jit`, by NumPy, and rewritten by hand for Numba; least time of a call, by turns. "
        "Ratios above 1 are in favour of npjit."
    )
    table = [HEAD, rule, *(r.text() for r in rows)]
    return "\n".join(["# Programs", "", intro, "", facts, "", *summary(rows), "", *table, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="Times the NumPy programs.")
    parser.add_argument("--size", choices=["small", "large", "both"], default="both")
    parser.add_argument("--only", default="", help="names of programs, separated by commas")
    parser.add_argument("--seconds", type=float, default=0.5, help="for a program at one size")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(PROGRAMS)
    sizes = ["small", "large"] if options.size == "both" else [options.size]
    rows = []
    print(HEAD)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            for size in sizes:
                rows.append(measure(PROGRAMS[name], size, options.seconds))
                print(rows[-1].text(), flush=True)
    print("\n".join(summary(rows)))
    if not options.only:
        PAGE.write_text(page(rows, numba.get_num_threads()))


if __name__ == "__main__":
    main()
