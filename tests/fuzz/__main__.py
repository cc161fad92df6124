"""The long run: `python -m tests.fuzz straight --examples 20000 --first 0 --seconds 500`.

Prints every example that differs from NumPy, made small, and then how many ran, how, and why not
compiled. The parts `cuda-...` (NumPy's arrays, there and back) and `cupy-...` (the GPU's own) run
under the emulator, or with NPJIT_TEST_GPU=1 on a GPU.
"""

from __future__ import annotations

import argparse

from tests.fuzz.guards import hunt_stories
from tests.fuzz.hunt import PARTS, hunt


def main() -> None:
    """Read the command line and hunt."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("part", choices=[*sorted(PARTS), "guards"])
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first example")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--most", type=int, default=10, help="stop after so many differences")
    given = parser.parse_args()
    if given.part == "guards":
        hunt_stories(given.first, given.examples, given.seconds, given.most)
    else:
        hunt(PARTS[given.part], given.first, given.examples, given.seconds, given.most)


if __name__ == "__main__":
    main()
