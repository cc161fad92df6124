"""Turns the measured figures into benches/RESULTS.md.

In: build/bench/cpu.json and build/bench/overheads.json, by interleave.py and overheads.py. Out: a
Markdown page: machine and versions, the speed table, gradients, overheads, and every bar with its
figure, met or missed; README.md gets the speed table.

    python -m benches.report
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from benches.cpu.peers import NAMES

FOLDER = Path("build/bench")
PAGE = Path(__file__).parent / "RESULTS.md"
README = PAGE.parent.parent / "README.md"
MARK = "<!-- benchmarks: written by `make bench` -->\n"
END_MARK = "<!-- /benchmarks -->\n"

Row = dict[str, Any]


def geomean(values: Iterable[float]) -> float:
    """nan of nothing, 0 if one is 0 (a failure)."""
    values = list(values)
    if not values or min(values) == 0:
        return 0.0 if values else math.nan
    return math.exp(sum(map(math.log, values)) / len(values))


def milliseconds(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    return f"{result['median'] * 1e3:.2f}" if "median" in result else "fails"


def best_peer(row: Row) -> tuple[str, float]:
    """The fastest library but npjit, with its seconds."""
    others = {n: r["median"] for n, r in row["peers"].items() if n != "npjit" and "median" in r}
    name = min(others, key=lambda n: others[n])
    return name, others[name]


def ratio(row: Row) -> float:
    """How many times as fast as the best of the others; 0 if npjit failed."""
    mine = row["peers"].get("npjit", {}).get("median")
    return best_peer(row)[1] / mine if mine else 0.0


def bandwidth(row: Row, seconds: float) -> float:
    """The share of the copy's speed that moving each byte once in this time is."""
    return row["copy"] / seconds


def workload_table(rows: list[Row]) -> list[str]:
    names = [n for n in NAMES if any(n in row["peers"] for row in rows)]
    lines = [
        "| workload | dtype | " + " | ".join(names) + " | copy | npjit, times the best | of copy |",
        "|---|---|" + "---|" * (len(names) + 3),
    ]
    for row in rows:
        cells = [milliseconds(row["peers"].get(name)) for name in names]
        mine = row["peers"].get("npjit", {}).get("median")
        share = f"{100 * bandwidth(row, mine):.0f} %" if mine else "-"
        times = f"{ratio(row):.2f} ({best_peer(row)[0]})"
        cells += [f"{row['copy'] * 1e3:.2f}", times, share]
        lines.append(f"| {row['workload']} | {row['dtype']} | " + " | ".join(cells) + " |")
    return lines


def overhead_table(figures: dict[str, Any]) -> list[str]:
    lines = ["| what | figure |", "|---|---|"]
    lines += [f"| {name} | {value:.2f} us |" for name, value in figures["dispatch"].items()]
    for name in ("cold", "warm"):
        lines.append(f"| first call, {name} cache, median | {first_call(figures, name):.0f} ms |")
    for name, times in figures["compile"].items():
        for nodes, seconds in times.items():
            lines.append(f"| compile, {name}, {nodes} operations | {seconds:.2f} s |")
    lines += [f"| {name} | {value * 1e3:.0f} ms |" for name, value in figures["import"].items()]
    lines += [f"| memory gained over {n} | {v:.2f} MiB |" for n, v in figures["memory"].items()]
    return lines


def first_call(figures: dict[str, Any], cache: str) -> float:
    """Milliseconds of a first call less the work itself, median over the workloads."""
    steady = figures["steady"]
    return median((t - steady[n]) * 1e3 for n, t in figures[cache].items())


def speed_bars(forward: list[Row], gradients: list[Row]) -> list[tuple[str, float, float, bool]]:
    """(bar, figure, limit, whether the figure must be at least the limit)."""
    slow = [row for row in forward if bandwidth(row, best_peer(row)[1]) < 0.8]
    fast = [row for row in forward if row not in slow]
    mine = [row["copy"] / row["peers"]["npjit"].get("median", math.inf) for row in fast]
    return [
        ("least ratio to the best library, any workload", min(map(ratio, forward)), 0.95, True),
        ("geomean where the best is under 80 % of the copy", geomean(map(ratio, slow)), 1.3, True),
        ("least share of the copy elsewhere", min(mine, default=math.nan), 0.9, True),
        ("gradients, geomean over JAX", geomean(map(ratio, gradients)), 1.2, True),
    ]


def overhead_bars(figures: dict[str, Any]) -> list[tuple[str, float, float, bool]]:
    calls = figures["dispatch"]
    empty, one, many = calls["np.empty(4)"], calls["x*2+1 on 4 elements"], "the same with 4 arrays"
    ufuncs = calls["three ufuncs on 100 elements"] / calls["the same in NumPy"]
    growth = max(t["2000"] / t["100"] for t in figures["compile"].values())
    return [
        ("tiny call over np.empty(4), us", one - empty, 1.0, False),
        ("each further array argument, us", (calls[many] - one) / 3, 0.1, False),
        ("three ufuncs on 100 elements, of NumPy's time", ufuncs, 1.0, False),
        ("first call, median, ms", first_call(figures, "cold"), 600.0, False),
        ("first call in a second process, median, ms", first_call(figures, "warm"), 30.0, False),
        ("compile time of 2,000 nodes over that of 100", growth, 25.0, False),
        ("import after NumPy, s", max(figures["import"].values()), 0.2, False),
        ("memory gained, the largest, MiB", max(figures["memory"].values()), 1.0, False),
    ]


def bar_table(bars: list[tuple[str, float, float, bool]]) -> list[str]:
    lines = ["| bar | figure | limit | |", "|---|---|---|---|"]
    for name, figure, limit, at_least in bars:
        met = figure >= limit if at_least else figure <= limit
        sign = "≥" if at_least else "≤"
        verdict = "met" if met else "**missed**"
        lines.append(f"| {name} | {figure:.2f} | {sign} {limit:g} | {verdict} |")
    return lines


def write_page(cpu: dict[str, Any], figures: dict[str, Any]) -> str:
    forward = [row for row in cpu["rows"] if "numpy" in row["peers"]]
    gradients = [row for row in cpu["rows"] if "numpy" not in row["peers"]]
    sections = {
        "": [", ".join(f"{name} {value}" for name, value in cpu["machine"].items()) + "."],
        "Bars": bar_table(speed_bars(forward, gradients) + overhead_bars(figures)),
        "Workloads": workload_table(forward),
        "Value and gradient": workload_table(gradients),
        "Overheads": overhead_table(figures),
    }
    text = ["# CPU benchmarks", "", INTRODUCTION]
    for title, lines in sections.items():
        text += ["", f"## {title}", ""] if title else [""]
        text += lines
    return "\n".join(text) + "\n"


def readme_section(cpu: dict[str, Any]) -> str:
    """The speed table and what it was measured on."""
    machine = cpu["machine"]
    where = f"{machine['processor']}, {machine['threads']} threads, {machine['date']}"
    lines = [
        f"Milliseconds on {where}; all figures and how they were taken are in",
        "[benches/RESULTS.md](benches/RESULTS.md).",
        "",
        *workload_table([row for row in cpu["rows"] if "numpy" in row["peers"]]),
    ]
    return "\n".join(lines) + "\n"


INTRODUCTION = """\
Written by `make bench`; the sizes are in `cpu/workloads.py`. Milliseconds, medians. npjit and NumPy
run the same plain NumPy function; Numba runs loops written for it by hand, JAX and torch.compile
their own forms. Each library has a process of its own, the same cores and threads, and its turn in
every round; every answer was checked against NumPy before it was timed. Numba is as pip installs
it, without Intel's vector math library. `copy` moves as many bytes
as the workload's inputs and outputs hold, on the same threads in the same rounds."""


def main() -> None:
    cpu = json.loads((FOLDER / "cpu.json").read_text())
    figures = json.loads((FOLDER / "overheads.json").read_text())
    PAGE.write_text(write_page(cpu, figures))
    before, _, rest = README.read_text().partition(MARK)
    after = rest.partition(END_MARK)[2]
    README.write_text(before + MARK + readme_section(cpu) + END_MARK + after)


if __name__ == "__main__":
    main()
