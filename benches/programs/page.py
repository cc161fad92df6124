"""The results as text: a table of rows, counts and means, and which form is missing why.

In: rows as measured. Out: the lines of benches/RESULTS_PROGRAMS.md:

    page(rows, {"jax": {"crc16": "one bit a step"}}, threads=2)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from benches.machine import describe
from benches.programs.measure import PEERS, Row
from benches.programs.program import Kind

TITLES = {"numpy": "NumPy", "numba": "Numba", "jax": "JAX", "pythran": "Pythran"}
COLUMNS = (
    *("program", "kind", "size", "right", "whole", "NumPy ms", "npjit ms"),
    *(f"over {TITLES[peer]}" for peer in PEERS),
    *("best peer", "over it", "first call s", "Numba's s", "JAX's s"),
)
HEAD = f"| {' | '.join(COLUMNS)} |"
RULE = "|" + "---|" * len(COLUMNS)
INTRO = (
    "Written by `python -m benches.programs`: the same NumPy program as it stands, by `npjit.jit`, "
    "by NumPy, compiled ahead by Pythran, and rewritten by hand for Numba and for JAX; least time "
    "of a call, by turns in one process. Ratios above 1 are in favour of npjit. The best peer of a "
    "row is the fastest right one of the four, NumPy among them; equal means within 5 %. A program "
    "counts when both its sizes do. A mean is over the rows that have the peer; a ratio above 10 "
    "counts as 10 in it."
)
# a ratio above this counts as this in a mean
MOST = 10.0


def row_text(row: Row) -> str:
    answers = ["yes" if x else "NO" for x in (row.right, row.whole)]
    times = [f"{1e3 * row.times['numpy']:.2f}", f"{1e3 * row.times['npjit']:.3f}"]
    ratios = [number(row.ratio(peer)) for peer in PEERS]
    best = [TITLES[row.best_peer], number(row.ratio(row.best_peer))]
    firsts = [number(row.first.get(name, math.nan)) for name in ("npjit", "numba", "jax")]
    cells = [row.program.name, row.program.kind.value, row.size, *answers, *times, *ratios]
    return f"| {' | '.join([*cells, *best, *firsts])} |"


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def geomean(ratios: Iterable[float]) -> float:
    """Of the known ratios, each between 0.01 and MOST."""
    known = [min(max(r, 0.01), MOST) for r in ratios if not math.isnan(r)]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else math.nan


def summary(rows: list[Row]) -> list[str]:
    """Counts, then means by kind."""
    lines = [
        f"- right {sum(r.right for r in rows)} of {len(rows)}, whole {sum(r.whole for r in rows)}"
    ]
    for peer in PEERS:
        held = [(r.program.name, r.holds(peer)) for r in rows if peer in r.times]
        lines.append(f"- at least equal to {TITLES[peer]}: {counts(held)}")
    held = [(r.program.name, r.holds(r.best_peer)) for r in rows]
    lines.append(f"- at least equal to the best peer: {counts(held)}")
    for kind in Kind:
        mine = [row for row in rows if row.program.kind is kind]
        lines += [mean_line(f"{kind.value}-bound", mine)] if mine else []
    lines.append(mean_line("all", rows))
    firsts = sorted(r.first["npjit"] for r in rows)
    middle = firsts[len(firsts) // 2]
    return [*lines, f"- first call: median {middle:.2f} s, worst {firsts[-1]:.2f} s"]


def counts(held: list[tuple[str, bool]]) -> str:
    """Of rows, and of programs: those all of whose rows hold."""
    programs = {name for name, _ in held}
    whole = programs - {name for name, holds in held if not holds}
    rows = sum(holds for _, holds in held)
    return f"{rows} of {len(held)} rows, {len(whole)} of {len(programs)} programs"


def mean_line(title: str, rows: list[Row]) -> str:
    over = [f"{geomean(r.ratio(p) for r in rows):.2f} over {TITLES[p]}" for p in PEERS]
    best = geomean(r.ratio(r.best_peer) for r in rows)
    return f"- {title} ({len(rows)}): geomean {best:.2f} over the best peer, {', '.join(over)}"


def absences(missing: dict[str, dict[str, str]]) -> list[str]:
    """For each peer, the programs without a form of it and why."""
    lines = []
    for peer, reasons in missing.items():
        if not reasons:
            continue
        lines += [f"No form for {TITLES[peer]}:", ""]
        lines += [f"- {name}: {reason}" for name, reason in reasons.items()]
        lines.append("")
    return lines


def page(rows: list[Row], missing: dict[str, dict[str, str]], threads: int) -> str:
    facts = ", ".join(f"{k} {v}" for k, v in describe(threads, PEERS).items())
    table = [HEAD, RULE, *map(row_text, rows)]
    lines = ["# Programs", "", INTRO, "", facts, "", *summary(rows), "", *table, ""]
    return "\n".join([*lines, *absences(missing)])
