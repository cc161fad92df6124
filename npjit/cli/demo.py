"""python -m npjit demo: a photograph denoised and a million options priced, NumPy and npjit.

In: nothing (a photograph that Matplotlib ships). Out: progress, checks and a table on standard
output, before.png and after.png in ./demo-output; status 1 if a check failed.
"""

import argparse
import importlib.util
from pathlib import Path

from npjit.cli.compare import report, table


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m npjit demo", description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="for pictures")
    folder = parser.parse_args(argv).output
    if not all(importlib.util.find_spec(name) for name in ("matplotlib", "PIL")):
        print("The demo takes its photograph from Matplotlib: pip install 'npjit[demo]'")
        return 1
    from npjit.cli import options as market
    from npjit.cli import photo

    folder.mkdir(parents=True, exist_ok=True)
    print("Denoising a photograph: npjit.grad of a loss in plain NumPy, against a gradient by hand")
    denoised = photo.denoise(folder)
    print(report(denoised))
    print("\nPricing options: npjit.jit and npjit.grad, against NumPy and pricing again")
    comparisons = [denoised, *market.price()]
    for comparison in comparisons[1:]:
        print(report(comparison))
    print("\n" + table(comparisons))
    return 0 if all(comparison.passed for comparison in comparisons) else 1
